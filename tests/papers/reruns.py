"""The experiments of the papers, each run once for all tests that use it."""

from __future__ import annotations

from functools import cache

from bellcrank.papers import EXPERIMENTS, Result


@cache
def rerun(name: str) -> Result:
    return EXPERIMENTS[name].run()
