"""Graphs as C: one function for one state, for compilers that are not ours."""
