"""Joint coordinates against absolute coordinates, and the benefit of parallelism (P. E. Nikravesh and G. Gim 1989)."""
