"""Crossed features. A package, so that its modules do not stand before those of tests/ that have the same names."""
