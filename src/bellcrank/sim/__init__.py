"""Whole runs in machine code: systems, events, the loop, records."""

from bellcrank.sim.events import Event
from bellcrank.sim.exchange import Clock
from bellcrank.sim.realtime import Drive, drive
from bellcrank.sim.settings import Saving, Solver
from bellcrank.sim.simulator import Interrupted, Simulator, simulate
from bellcrank.sim.systems import System, system

__all__ = [
    "Clock",
    "Drive",
    "Event",
    "Interrupted",
    "Saving",
    "Simulator",
    "Solver",
    "System",
    "drive",
    "simulate",
    "system",
]
