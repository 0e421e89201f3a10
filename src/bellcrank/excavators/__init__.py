"""Two complete excavators: mechanism, hydraulics, control, sticks and programs that drive them.

rotary/    Wong's excavator (1991, chapter 5) with a rotary drive in every joint
linkage/   an excavator with cylinders, a bucket linkage and soil
"""
