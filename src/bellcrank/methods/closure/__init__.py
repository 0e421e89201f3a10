"""Closed loops: equations, which of them say something new, how to assemble, and the forms of the dynamics."""

from __future__ import annotations

from bellcrank.methods.closure.analysis import Analysis, analysed
from bellcrank.methods.closure.assemble import assemble
from bellcrank.methods.closure.numbers import Array
from bellcrank.model import Mechanism

__all__ = ["Analysis", "analysis", "assemble"]


def analysis(mechanism: Mechanism, start: Array | None = None) -> Analysis:
    """What the loops do to this mechanism; worked out once, where it is closed near the zero configuration.

    start: a configuration to begin at instead. Free numbers have their nominal values.
    """
    kept: dict[str, Analysis] = mechanism.__dict__
    if "_closure" in kept and start is None:
        return kept["_closure"]
    plain = mechanism.at() if mechanism.parameters else mechanism
    found = analysed(plain.tree, plain.neutral() if start is None else start)
    return kept.setdefault("_closure", found) if start is None else found
