"""excavator_linkage: an excavator with cylinders, bucket linkage and soil."""
