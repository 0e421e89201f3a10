"""Ground that is dug and keeps what is dug: a field of heights, soils with names, and what a blade meets in them.

soils.py      named soils and where their numbers come from
wedge.py      the fundamental earthmoving equation: what a wedge of soil in front of a blade resists with
field.py      heights on a grid, cut, carried, pushed, spilled, at rest: no grain is won or lost
contact.py    what a machine feels of it: numbers that the compiled step takes as parameters
"""
