"""Partitioning of the equations of motion for parallel computers (P. Schäfer and W. Schiehlen 1992)."""
