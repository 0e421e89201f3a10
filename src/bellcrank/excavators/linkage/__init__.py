"""excavator_linkage: the same machine with its cylinders, bucket linkage and soil."""
