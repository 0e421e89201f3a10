"""Parallel evaluation of one state on several CPU cores: an instruction stream per core and their handover protocol."""
