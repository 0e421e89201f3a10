"""Interface of a running system in the cockpit, implemented by bellcrank.sim.Drive and by the fakes of the tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from bellcrank.record import Record
from bellcrank.sim.system.systems import System

Array = np.ndarray[Any, Any]


class Snapshot(Protocol):
    """State of a drive at one step."""

    @property
    def n(self) -> int:
        """Steps done."""

    @property
    def t(self) -> float:
        """Time, s."""

    @property
    def y(self) -> Array:
        """State q, v, x."""

    @property
    def u(self) -> Array:
        """Inputs in force."""

    @property
    def status(self) -> str:
        """Status of the drive, such as "running" or "failed"."""

    @property
    def outputs(self) -> Mapping[str, float]:
        """Outputs of the system."""


class DriveInterface(Protocol):
    """Drive: a system that runs in real time."""

    @property
    def system(self) -> System:
        """System that runs."""

    @property
    def rate(self) -> float:
        """Steps per second."""

    @property
    def paused(self) -> bool:
        """True after pause(), until resume()."""

    def start(self) -> Any:
        """Start the drive."""

    def pause(self) -> Any:
        """Pause the drive."""

    def resume(self) -> Any:
        """End a pause."""

    def stop(self) -> Any:
        """Stop the drive."""

    def reset(self, q0: Any = None, v0: Any = None, x0: Any = None) -> Any:
        """Continue from positions `q0`, velocities `v0` and states `x0`."""

    def slow(self, factor: float) -> Any:
        """Run slower than real time by `factor`; 1 is real time."""

    def input(self, values: Mapping[str, float] | Sequence[float]) -> Any:
        """Set the inputs to `values`."""

    def tune(self, values: Mapping[str, float], *, check: bool = True) -> Any:
        """Set parameters to `values` from now on; `check` validates them."""

    def snapshot(self) -> Snapshot:
        """Return the newest state."""

    def report(self) -> dict[str, Any]:
        """Return the deadline report."""

    def record(self) -> Record:
        """Return the record."""


# (system, rate, integrator, method) to a drive that is not started.
DriveFactory = Callable[[System, float, str, str], DriveInterface]
