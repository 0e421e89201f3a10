"""Closed loops: equations, redundancy, assembly, and the forms of the dynamics."""

from __future__ import annotations

from bellcrank.dynamics.loops.equation_analysis import Analysis, analysis
from bellcrank.dynamics.loops.loop_requests import assemble

__all__ = ["Analysis", "analysis", "assemble"]
