"""Diggable ground that conserves soil: a height field, named soils, and the resistance that a blade meets.

soils.py      named soils with sources of their numbers, and the fundamental earthmoving equation: resistance of the
              soil wedge in front of a blade
field.py      heights on a grid: soil is cut, carried, pushed, spilled and slumps, with constant volume
contact.py    effect on the machine: numbers that the compiled step takes as parameters
"""
