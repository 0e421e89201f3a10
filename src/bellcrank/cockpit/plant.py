"""What the cockpit needs of a running system. bellcrank.sim.Drive has it, and so have the fakes of the tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from bellcrank.record import Record
from bellcrank.sim.systems import System

Array = np.ndarray[Any, Any]


class Snapshot(Protocol):
    @property
    def n(self) -> int: ...  # steps done
    @property
    def t(self) -> float: ...  # s
    @property
    def y(self) -> Array: ...  # q, v, x
    @property
    def u(self) -> Array: ...  # the inputs in force
    @property
    def status(self) -> str: ...
    @property
    def outputs(self) -> Mapping[str, float]: ...


class Driven(Protocol):
    @property
    def system(self) -> System: ...
    @property
    def rate(self) -> float: ...  # steps per second
    def start(self) -> Any: ...
    def pause(self) -> Any: ...
    def resume(self) -> Any: ...
    def stop(self) -> Any: ...
    def reset(self, q0: Any = None, v0: Any = None, x0: Any = None) -> Any: ...
    def slow(self, factor: float) -> Any: ...
    def input(self, values: Mapping[str, float] | Sequence[float]) -> Any: ...
    def tune(self, values: Mapping[str, float], *, check: bool = True) -> Any: ...  # parameters, from now on
    def snapshot(self) -> Snapshot: ...
    def report(self) -> dict[str, Any]: ...
    def record(self) -> Record: ...


Make = Callable[[System, float, str, str], Driven]  # (system, rate, integrator, method), not yet started
