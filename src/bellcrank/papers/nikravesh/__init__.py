"""P. E. Nikravesh and G. Gim 1989: joint coordinates against absolute ones, and what parallelism could bring."""
