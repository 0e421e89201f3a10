"""D. Wong's mesh of transputers (Parallel implementation of multibody dynamics for real-time simulation, 1991)."""

from bellcrank.wong.mesh import Cost, Mesh, mesh

__all__ = ["Cost", "Mesh", "mesh"]
