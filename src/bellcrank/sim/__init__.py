"""Whole runs in machine code: systems, events, the loop, records."""

from bellcrank.sim.events import Event
from bellcrank.sim.simulate import Interrupted, Simulator, simulate
from bellcrank.sim.system import System, system

__all__ = ["Event", "Interrupted", "Simulator", "System", "simulate", "system"]
