"""Numerical treatment of states between steps: checks of starts, and the choice of graphs; here for trees.

A tree has no loops to close. LoopClosure (constraints/loop_closure.py) does the same for closed loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import InputError, unknown

if TYPE_CHECKING:
    from bellcrank.sim.program.system_graphs import Dynamics

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class RunGroup:
    """Runs that use the same graphs."""

    dynamics: Dynamics
    members: Array  # indices of the runs
    bound: Array | None = None  # largest allowed element of E for each run; above it the partition must change


class Closure:
    """Treatment of the states of a system without loops: every state is admissible, and one set of graphs suits all.

    y is (runs, size) and parameters (runs, np), or both without the first axis in methods for one state.
    """

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics = dynamics

    def neutral(self) -> Array:
        """Return the default configuration of the mechanism."""
        return self.dynamics.system.mechanism.neutral()

    def checked(self, y: Array, parameters: Array) -> Array:
        """Return the starts `y` with `parameters`, loops closed, or raise an error if the mechanism cannot take one."""
        return y

    def grouped(self, y: Array, parameters: Array) -> list[RunGroup]:
        """Return the runs in states `y` with `parameters`, grouped by the graphs that they use from here."""
        return [RunGroup(self.dynamics, np.arange(len(y)))]

    def common_dynamics(self, y: Array, parameters: Array, independent: Sequence[str] = ()) -> Dynamics:
        """Return the dynamics that suit all states at once.

        Parameters
        ----------
        y
            States, (runs, size).
        parameters
            Free parameters, (runs, np).
        independent
            Joints that must be independent coordinates.
        """
        self.check_independent(independent)
        return self.dynamics

    def check_independent(self, names: Sequence[str]) -> None:
        """Raise an InputError if one of `names` is not an element of v."""
        m = self.dynamics.system.mechanism
        for name in names:
            if name not in m.columns[1]:
                raise InputError(f'independent, of "{m.name}": {unknown("joint", name, m.columns[1])}')

    def closed_points(self, y: Array, parameters: Array) -> tuple[Array, Array]:
        """Return the states `y` with `parameters`, loops closed, and a mask of the singular ones, which are unchanged.

        Raise an error where a state is impossible.
        """
        return y, np.zeros(len(y), bool)

    def polished(self, y: Array, parameters: Array) -> Array:
        """Return the row `y` with `parameters`, its loops closed numerically, where the graphs could not do it."""
        return y

    def provenance(self, widest: float, switched: int) -> dict[str, Any]:
        """Return the provenance entries for the loops.

        Parameters
        ----------
        widest
            Largest distance by which loops were open.
        switched
            Number of changes of the partition.
        """
        return {}

    def open_loop_message(self, y: Array, parameters: Array, t: float) -> str:
        """Return why loops could not be closed in a step from `y` with `parameters` at the time `t`."""
        return ""

    def singular_ahead(self, y: Array, parameters: Array, h: float) -> bool:
        """Return True if the step `h` from `y` with `parameters` ends on or near a singular configuration."""
        return False

    def near_singular_text(self, y: Array, parameters: Array) -> str:
        """Return a description if `y` with `parameters` is near a singular configuration, else an empty string."""
        return ""
