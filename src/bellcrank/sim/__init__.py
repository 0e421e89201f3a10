"""Compiled simulation runs: systems, steppers, events, fixed and adaptive steps, records, gradients and linearisation.

Each module is imported where it is needed; importing the package itself loads none of them.
"""
