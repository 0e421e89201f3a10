"""Two complete excavators: mechanism, hydraulics, control, sticks and programs that drive them.

rotary_machine, spool_control    Wong's excavator (1991, chapter 5) with a rotary drive in every joint
linkage_*, tool_forces           an excavator with cylinders, a bucket linkage and soil
"""
