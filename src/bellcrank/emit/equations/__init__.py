"""Readable equations from graphs: LaTeX, Python, SymPy, C."""
