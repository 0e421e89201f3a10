"""Whole runs in machine code: systems, events, the loop, records."""

from bellcrank.sim.events import Event
from bellcrank.sim.simulator import Interrupted, Simulator, simulate
from bellcrank.sim.systems import System, system

__all__ = ["Event", "Interrupted", "Simulator", "System", "simulate", "system"]
