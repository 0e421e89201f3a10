"""Spatial algebra over any scalar: vectors, motions, forces, inertias and transforms."""
