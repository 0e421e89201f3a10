"""Graphs as equations that people read: LaTeX, Python, SymPy, C."""
