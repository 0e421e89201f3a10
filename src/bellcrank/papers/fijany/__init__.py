"""Mass matrix on processor arrays (A. Fijany and A. K. Bejczy 1989)."""
