"""Flexible structures: cross-sections, beam finite elements, and reduction to a few modes.

This package computes numbers only, without mechanisms and graphs; formats/ makes bodies of them.
"""
