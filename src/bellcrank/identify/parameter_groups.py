"""Base parameters: the numbers, and sums of numbers, that forces can identify.

Columns of the regressor over many random states are added one by one, from the root to the tip. A column that depends
linearly on earlier ones is dropped, and its coefficients are added to their groups (M. Gautier, Numerical calculation
of the base inertial parameters of robots, 1991). Bodies come from the root and moments before masses, so that the
groups are those that are usually published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import InputError
from bellcrank.identify.closed_loops import actuated_regressor, random_states
from bellcrank.identify.linear_parameters import BODY_NUMBERS, Array, Number, numbers_of, values_of
from bellcrank.model import Mechanism
from bellcrank.quoting import single_line
from bellcrank.text_table import table

MIN_ROWS = 300  # least number of rows; three rows or more for every number
INDEPENDENT_SHARE = 1e-8  # share of a column that must be independent; the gap to dependent ones is 1e10 and more
ROUNDING_TOLERANCE = 1e-9
NUMBER_ORDER = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz", "mx", "my", "mz", "mass")


@dataclass(frozen=True, eq=False)
class Base:
    """Base parameters of a mechanism: base = groups @ numbers, and tau = Y[:, independent] @ base.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism.
    numbers : tuple of Number
        Candidate numbers.
    independent : tuple of int
        Indices of the numbers that represent the groups.
    groups : ndarray, shape (base, numbers)
        Coefficients of each group; the identity on the independent numbers.
    unseen : tuple of int
        Indices of numbers that no force depends on.
    actuated : tuple of str
        Driven joints of a mechanism with loops.
    at : array_like or mapping, optional
        Guess of a configuration where closed loops are assembled.
    """

    mechanism: Mechanism
    numbers: tuple[Number, ...]
    independent: tuple[int, ...]  # numbers that represent the groups
    groups: Array  # (base, numbers); the identity on the independent ones
    unseen: tuple[int, ...]  # numbers that no force depends on
    actuated: tuple[str, ...] = ()
    at: Any = None  # guess of a configuration where closed loops are assembled

    def __len__(self) -> int:
        return len(self.independent)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the independent numbers."""
        return tuple(self.numbers[k].name for k in self.independent)

    @property
    def nominal(self) -> Array:
        """Base parameters of the mechanism itself."""
        return np.asarray(self.groups @ values_of(self.mechanism, self.numbers))

    def regressor(self, q: Any, v: Any, a: Any) -> Array:
        """Return the regressor of the base parameters.

        Parameters
        ----------
        q : array_like, shape (samples, nq)
            Joint positions, rad or m.
        v : array_like, shape (samples, nv)
            Joint velocities, rad/s or m/s.
        a : array_like, shape (samples, nv)
            Joint accelerations, rad/s^2 or m/s^2.

        Returns
        -------
        ndarray, shape (samples, forces, base)
            Contribution of a unit of each base parameter to each force.
        """
        Y = actuated_regressor(self.mechanism, q, v, a, self.numbers, self.actuated)
        return Y[:, :, list(self.independent)]

    def combination(self, k: int) -> str:
        """Return the group of a base parameter as text: "link2.ixx + link3.iyy - 0.15 link3.mass".

        Parameters
        ----------
        k : int
            Index of the base parameter.

        Returns
        -------
        str
            Sum of numbers by name.
        """
        text = ""
        order = [self.independent[k], *(j for j in range(len(self.numbers)) if j != self.independent[k])]
        for j in order:
            c = self.groups[k, j]
            if not c:
                continue
            size = "" if abs(abs(c) - 1.0) < ROUNDING_TOLERANCE else f"{abs(c):.5g} "
            sign = ("-" if c < 0 else "") if not text else (" - " if c < 0 else " + ")
            text += f"{sign}{size}{self.numbers[j].name}"
        return text

    def __str__(self) -> str:
        nominal = self.nominal
        rows = [(str(k + 1), self.combination(k), f"{nominal[k]:.6g}") for k in range(len(self))]
        head = f"{single_line(self.mechanism.name)}: {len(self)} base parameters of {len(self.numbers)} numbers"
        lines = [head, "", table(("", "base parameter", "nominal"), rows, right=(0, 2))]
        if self.unseen:
            lines += ["", f"no force depends on {', '.join(single_line(self.numbers[k].name) for k in self.unseen)}"]
        return "\n".join(lines)

    __repr__ = __str__


@explain_argument_errors
def base_parameters(
    m: Mechanism,
    joints: Sequence[str] | None = None,
    actuated: Sequence[str] = (),
    seed: int = 0,
    at: ArrayLike | Mapping[str, float] | None = None,
) -> Base:
    """Return the base parameters of a mechanism.

    Parameters
    ----------
    m : Mechanism
        Mechanism.
    joints : sequence of str, optional
        Numbers that every joint has (armature, damping, friction, stiffness, offset); the mechanism's by default.
    actuated : sequence of str, optional
        Driven joints, required for a mechanism with loops.
    seed : int, default 0
        Seed of the random states.
    at : array_like or mapping, optional
        Guess of a configuration on the working branch of a mechanism with loops; the zero configuration by default.

    Returns
    -------
    Base
        Base parameters and their groups.

    Raises
    ------
    InputError
        If the mechanism has no numbers, or the arguments do not fit.
    """
    if at is not None and not m.loops:
        raise InputError(f'"{m.name}" has no closed loops and so no branches: omit at=.')
    numbers = numbers_of(m, joints)
    if not numbers:
        raise InputError(f'"{m.name}" has no numbers to identify.')
    rows = max(MIN_ROWS, 3 * len(numbers))
    q, v, a = random_states(m, -(-rows // max(1, len(actuated) or m.nv)) + 20, seed, actuated, at)
    Y = actuated_regressor(m, q, v, a, numbers, tuple(actuated))
    reduction = reduce_columns(Y.reshape(-1, len(numbers)), _column_order(m, numbers))
    return Base(m, numbers, *reduction, actuated=tuple(actuated), at=at)


def reduce_columns(Y: Array, order: Sequence[int]) -> tuple[tuple[int, ...], Array, tuple[int, ...]]:
    """Return the independent columns, the groups and the unseen columns of a regressor.

    Parameters
    ----------
    Y
        Regressor, (rows, numbers).
    order
        Order in which columns are tried.
    """
    size = np.linalg.norm(Y, axis=0)
    typical = size.max(initial=0.0)
    unseen = tuple(k for k in range(Y.shape[1]) if size[k] <= 1e-12 * typical)
    basis = np.zeros((Y.shape[0], 0))
    independent: list[int] = []
    for k in order:
        if k in unseen:
            continue
        x = Y[:, k] / size[k]
        remainder = x - basis @ (basis.T @ x)
        remainder = remainder - basis @ (basis.T @ remainder)  # orthogonalised twice against rounding
        if np.linalg.norm(remainder) > INDEPENDENT_SHARE:
            basis = np.column_stack([basis, remainder / np.linalg.norm(remainder)])
            independent.append(k)
    independent.sort()
    scaled = Y / np.where(size > 0, size, 1.0)
    weights = np.linalg.lstsq(scaled[:, independent], scaled, rcond=None)[0]
    weights[np.abs(weights) < ROUNDING_TOLERANCE] = 0.0
    groups = weights * size[None, :] / size[independent][:, None]
    for row, k in enumerate(independent):
        groups[:, k] = 0.0
        groups[row, k] = 1.0
    groups[:, list(unseen)] = 0.0
    near = np.round(groups)
    groups = np.where(np.abs(groups - near) < ROUNDING_TOLERANCE * np.maximum(1.0, np.abs(near)), near, groups)
    return tuple(independent), groups, unseen


def _column_order(m: Mechanism, numbers: Sequence[Number]) -> list[int]:
    """Return the order of columns: joints and springs first, then bodies from the root with masses last."""
    bodies = {b.name: i for i, b in enumerate(m.bodies)}

    def sort_key(k: int) -> tuple[int, int, int]:
        n = numbers[k]
        return (1, bodies[n.part], NUMBER_ORDER.index(n.kind)) if n.kind in BODY_NUMBERS else (0, 0, k)

    return sorted(range(len(numbers)), key=sort_key)
