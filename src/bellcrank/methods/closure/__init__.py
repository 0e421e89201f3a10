"""Closed loops: equations, which of them say something new, how to assemble, and the forms of the dynamics."""

from __future__ import annotations

from bellcrank.methods.closure.analysis import Analysis, analysed
from bellcrank.model import Mechanism

__all__ = ["Analysis", "analysis"]


def analysis(mechanism: Mechanism) -> Analysis:
    """What the loops do to this mechanism; worked out once. Free numbers have their nominal values."""
    kept: dict[str, Analysis] = mechanism.__dict__
    if "_closure" not in kept:
        plain = mechanism.at() if mechanism.parameters else mechanism
        kept["_closure"] = analysed(plain.tree, plain.neutral(), plain.random(0, 8)[0])
    return kept["_closure"]
