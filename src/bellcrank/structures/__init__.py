"""Structures that bend: sections, beams of finite elements, and their reduction to a few modes. Numbers only, no
mechanism and no graph; formats/ makes bodies of them.
"""
