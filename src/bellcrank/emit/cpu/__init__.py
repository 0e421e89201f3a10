"""Graphs, and the loops of programs, as LLVM IR for this processor: one state, or as many as there are lanes."""
