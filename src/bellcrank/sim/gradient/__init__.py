"""Gradients of runs, by discrete adjoints."""
