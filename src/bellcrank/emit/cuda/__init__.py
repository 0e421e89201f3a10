"""Graphs on an NVIDIA GPU: one thread per state, LLVM's NVPTX for the text, CuPy to run it (docs/gpu.md)."""
