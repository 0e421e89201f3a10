"""Records of simulations: columns over time, their files, plots, and a page that replays the run."""

from bellcrank.record.contents import Column, Stop, Stops, state_columns, units
from bellcrank.record.files import load as load_record
from bellcrank.record.record import Record

__all__ = ["Column", "Record", "Stop", "Stops", "load_record", "state_columns", "units"]
