"""Runs: execution of a program on lanes, threads or a GPU, and the record of its rows."""
