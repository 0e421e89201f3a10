"""The experiments, each run once for all tests that look at it."""

from __future__ import annotations

from functools import cache

from bellcrank.papers import EXPERIMENTS, Result


@cache
def rerun(name: str) -> Result:
    return EXPERIMENTS[name].run()
