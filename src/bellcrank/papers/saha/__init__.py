"""Dynamics by decoupled natural orthogonal complement matrices (S. K. Saha 2001)."""
