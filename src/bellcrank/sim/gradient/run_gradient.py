"""Gradients of runs: the result type, and the scalar that is differentiated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.errors import InputError, unknown
from bellcrank.scalar import Scalar
from bellcrank.sim.system.observed_columns import observable_units
from bellcrank.sim.system.systems import System

Array = np.ndarray[Any, Any]
Cost = str | Callable[..., Scalar] | None


@dataclass(frozen=True, eq=False)
class Gradient:
    """A scalar of each run and its derivatives; leading axes are those of the batch.

    Parameters
    ----------
    value : ndarray
        The scalar.
    inputs : mapping of str to ndarray
        Derivatives by inputs: (..., lines) for samples, else (...).
    q0, v0, x0 : ndarray
        Derivatives by the initial state, in its coordinates. With closed loops, dependent joints have zeros.
    parameters : mapping of str to ndarray
        Derivatives by free parameters.
    independent : tuple of str
        Joints that determine an initial state; the others follow them, also if a parameter changes.
    """

    value: Array
    inputs: Mapping[str, Array]
    q0: Array
    v0: Array
    x0: Array
    parameters: Mapping[str, Array]
    independent: tuple[str, ...]

    def __repr__(self) -> str:
        counts = {"inputs": len(self.inputs), "parameters": len(self.parameters)}
        shown = ", ".join(f"{n} {what}" for what, n in counts.items())
        return f"<Gradient of {self.value.size} runs: {shown}, {self.q0.shape[-1]} positions at the start>"


def with_cost_column(plant: System, what: str, cost: Cost) -> tuple[System, str]:
    """Return a system with the scalar as a column, and the name of the column; an empty name without a scalar.

    Parameters
    ----------
    plant
        System.
    what
        Name of the argument, for messages and for the column.
    cost
        None, the name of a column, or a function of (t, q, v, x, u).
    """
    if cost is None:
        return plant, ""
    if isinstance(cost, str):
        known = list(observable_units(plant))
        if cost not in known:
            raise InputError(f"{what}: {unknown('column', cost, known)}")
        return plant, cost
    if not callable(cost):
        raise InputError(f"{what} is {cost!r}; expected a function of (t, q, v, x, u), or the name of a column.")
    while what in plant.outputs:
        what += "'"
    return replace(plant, outputs={**plant.outputs, what: cost}), what
