"""A. Fijany and A. K. Bejczy 1989: the mass matrix on arrays of processors."""
