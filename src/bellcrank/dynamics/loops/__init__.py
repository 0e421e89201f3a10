"""Closed loops: equations, redundancy, assembly, and the forms of the dynamics."""

from __future__ import annotations

from bellcrank.dynamics.loops.assembly_from_guess import assemble
from bellcrank.dynamics.loops.equation_analysis import Analysis, analysis

__all__ = ["Analysis", "analysis", "assemble"]
