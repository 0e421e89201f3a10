"""Closed loops: equations, which of them say something new, how to assemble, and the forms of the dynamics."""
