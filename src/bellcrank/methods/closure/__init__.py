"""Closed loops: equations, which of them say something new, how to assemble, and the forms of the dynamics."""

from __future__ import annotations

from bellcrank.methods.closure.analysis import Analysis, analysis
from bellcrank.methods.closure.assemble import assemble

__all__ = ["Analysis", "analysis", "assemble"]
