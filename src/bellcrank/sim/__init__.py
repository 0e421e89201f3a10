"""Whole runs in machine code: systems, events, the loop, records."""

from bellcrank.sim.adjoint import Adjoint, gradient
from bellcrank.sim.events import Event
from bellcrank.sim.exchange import Clock
from bellcrank.sim.outcome import Interrupted
from bellcrank.sim.realtime import Drive, drive
from bellcrank.sim.run_gradient import Gradient
from bellcrank.sim.sampling import Sampled
from bellcrank.sim.settings import Saving, Solver
from bellcrank.sim.simulator import Simulator, simulate
from bellcrank.sim.steppers import Stepper
from bellcrank.sim.stepping import stepper
from bellcrank.sim.systems import System, system

__all__ = [
    "Adjoint",
    "Clock",
    "Drive",
    "Event",
    "Gradient",
    "Interrupted",
    "Sampled",
    "Saving",
    "Simulator",
    "Solver",
    "Stepper",
    "System",
    "drive",
    "gradient",
    "simulate",
    "stepper",
    "system",
]
