"""Mesh of transputers for the dynamics of trees, as a program that is traced, counted, scheduled and run.

Source: D. Wong. Parallel implementation of multibody dynamics for real-time simulation. PhD thesis, University of
British Columbia, 1991, chapters 4 to 6. The mesh has n (n + 1)/2 + n processors.

    wong_mesh(zoo.excavator())           a Schedule on transputers, printed and drawn like any other
    wong_mesh(zoo.torso(), "hidden")     a tree: rows 0 and 1 follow its branches (figure 6.1); messages are free
    mesh(4).cycles(1)                    table 4.5, from the program of any arm of four joints
    mesh(4, balanced=False).cycles(0)    table 4.3
    comparison.curves("total")           figure 4.9
"""

from bellcrank.papers.wong.atom_programs import Cost
from bellcrank.papers.wong.mesh_schedule import Mesh, mesh, wong_mesh

__all__ = ["Cost", "Mesh", "mesh", "wong_mesh"]
