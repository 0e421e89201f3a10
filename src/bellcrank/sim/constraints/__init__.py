"""Closed loops in a simulation: dynamics in three forms, and their numerical treatment between steps."""
