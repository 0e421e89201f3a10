"""P. Schäfer and W. Schiehlen 1992: three strategies to cut the equations for parallel computers."""
