"""The two excavators, each whole: mechanism, hydraulics, control, sticks and the programs that drive it.

rotary/    Wong's (1991, chapter 5): a rotary drive in every joint
linkage/   the same machine with its cylinders, its bucket linkage and the soil
"""
