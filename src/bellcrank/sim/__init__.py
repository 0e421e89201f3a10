"""Whole runs in machine code: systems, events, the loop, records. Each file is loaded by who needs it."""
