"""S. K. Saha 2001: the decoupled natural orthogonal complements."""
