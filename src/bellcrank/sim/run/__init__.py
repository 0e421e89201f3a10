"""Runs: execution of a program on lanes, threads or a GPU, the record of its rows, and gradients by adjoints."""
