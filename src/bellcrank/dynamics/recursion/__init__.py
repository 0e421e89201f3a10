"""Methods as the work of one body, for rolled loops over link classes."""
