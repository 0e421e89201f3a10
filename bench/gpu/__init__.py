"""Benchmarks of kernels and simulations on a GPU: python -m bench.gpu (docs/gpu.md)."""
