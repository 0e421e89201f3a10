"""What a simulation leaves behind: columns over time, files of them, plots, and a page that replays the run."""

from bellcrank.record.column import Column, Stop, state_columns, units
from bellcrank.record.record import Record

__all__ = ["Column", "Record", "Stop", "state_columns", "units"]
