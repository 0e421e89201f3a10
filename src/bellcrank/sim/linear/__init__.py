"""Operating points of a system: equilibrium, linearisation and modes."""
