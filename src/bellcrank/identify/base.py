"""Base parameters: which numbers, and which sums of them, forces can tell at all.

Columns of the regressor over many random states are taken one by one, from the root to the tip; one that is a sum of
those taken before is no news, and what it weighs in them is added to their numbers (M. Gautier, Numerical calculation
of the base inertial parameters of robots, 1991). Bodies come from the root and moments before masses, so that what
remains are the groups that people print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bellcrank.errors import InputError
from bellcrank.identify.branch import some_states
from bellcrank.identify.loops import actuated_regressor
from bellcrank.identify.numbers import TEN, Number, numbers_of, values_of
from bellcrank.misfits import explained
from bellcrank.model import Mechanism
from bellcrank.quoting import line
from bellcrank.text import table

Array = np.ndarray[Any, Any]
STATES = 300  # random ones; three rows or more for every number
NEWS = 1e-8  # of a column's length that must be left for it to be one of the base; the gap is 1e10 and more
CLEAN = 1e-9
INSIDE = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz", "mx", "my", "mz", "mass")


@dataclass(frozen=True, eq=False)
class Base:
    """The base parameters of a mechanism: base = groups @ numbers, and tau = Y[:, independent] @ base."""

    mechanism: Mechanism
    numbers: tuple[Number, ...]
    independent: tuple[int, ...]  # the numbers that stand for the groups
    groups: Array  # (base, numbers); the identity on the independent ones
    unseen: tuple[int, ...]  # numbers that no force depends on
    actuated: tuple[str, ...] = ()
    at: Any = None  # a guess of where closed loops are assembled

    def __len__(self) -> int:
        return len(self.independent)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.numbers[k].name for k in self.independent)

    @property
    def nominal(self) -> Array:
        """Of the mechanism itself."""
        return np.asarray(self.groups @ values_of(self.mechanism, self.numbers))

    def regressor(self, q: Any, v: Any, a: Any) -> Array:
        """What every base number adds to every force: (samples, forces, base)."""
        Y = actuated_regressor(self.mechanism, q, v, a, self.numbers, self.actuated)
        return Y[:, :, list(self.independent)]

    def combination(self, k: int) -> str:
        """What base parameter k is made of: "link2.ixx + link3.iyy - 0.15 link3.mass"."""
        text = ""
        order = [self.independent[k], *(j for j in range(len(self.numbers)) if j != self.independent[k])]
        for j in order:
            c = self.groups[k, j]
            if not c:
                continue
            size = "" if abs(abs(c) - 1.0) < CLEAN else f"{abs(c):.5g} "
            sign = ("-" if c < 0 else "") if not text else (" - " if c < 0 else " + ")
            text += f"{sign}{size}{self.numbers[j].name}"
        return text

    def __str__(self) -> str:
        nominal = self.nominal
        rows = [(str(k + 1), self.combination(k), f"{nominal[k]:.6g}") for k in range(len(self))]
        head = f"{line(self.mechanism.name)}: {len(self)} base parameters of {len(self.numbers)} numbers"
        lines = [head, "", table(("", "base parameter", "nominal"), rows, right=(0, 2))]
        if self.unseen:
            lines += ["", f"no force depends on {', '.join(line(self.numbers[k].name) for k in self.unseen)}"]
        return "\n".join(lines)

    __repr__ = __str__


@explained
def base_parameters(
    m: Mechanism,
    joints: Sequence[str] | None = None,
    actuated: Sequence[str] = (),
    seed: int = 0,
    at: ArrayLike | Mapping[str, float] | None = None,
) -> Base:
    """joints: which numbers every joint has (armature, damping, friction, stiffness, offset); those of the mechanism
    where nothing is said. actuated: the joints that are driven, where the mechanism has loops, and at: a guess of a
    configuration on the branch on which it works (what is assembled from zero where nothing is said).
    """
    if at is not None and not m.loops:
        raise InputError(f'"{m.name}" has no closed loops, and so no branches: leave at= out.')
    numbers = numbers_of(m, joints)
    if not numbers:
        raise InputError(f'"{m.name}" has no numbers to find.')
    rows = max(STATES, 3 * len(numbers))
    q, v, a = some_states(m, -(-rows // max(1, len(actuated) or m.nv)) + 20, seed, actuated, at)
    Y = actuated_regressor(m, q, v, a, numbers, tuple(actuated))
    found = reduced(Y.reshape(-1, len(numbers)), _order(m, numbers))
    return Base(m, numbers, *found, actuated=tuple(actuated), at=at)


def reduced(Y: Array, order: Sequence[int]) -> tuple[tuple[int, ...], Array, tuple[int, ...]]:
    """Columns that are news, in the order in which they are asked; groups; and columns that are nothing."""
    size = np.linalg.norm(Y, axis=0)
    typical = size.max(initial=0.0)
    unseen = tuple(k for k in range(Y.shape[1]) if size[k] <= 1e-12 * typical)
    basis = np.zeros((Y.shape[0], 0))
    taken: list[int] = []
    for k in order:
        if k in unseen:
            continue
        x = Y[:, k] / size[k]
        rest = x - basis @ (basis.T @ x)
        rest = rest - basis @ (basis.T @ rest)  # twice is enough
        if np.linalg.norm(rest) > NEWS:
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
            taken.append(k)
    taken.sort()
    scaled = Y / np.where(size > 0, size, 1.0)
    weights = np.linalg.lstsq(scaled[:, taken], scaled, rcond=None)[0]
    weights[np.abs(weights) < CLEAN] = 0.0
    groups = weights * size[None, :] / size[taken][:, None]
    for row, k in enumerate(taken):
        groups[:, k] = 0.0
        groups[row, k] = 1.0
    groups[:, list(unseen)] = 0.0
    near = np.round(groups)
    groups = np.where(np.abs(groups - near) < CLEAN * np.maximum(1.0, np.abs(near)), near, groups)
    return tuple(taken), groups, unseen


def _order(m: Mechanism, numbers: Sequence[Number]) -> list[int]:
    """Joints and springs first, for they have columns of their own; then bodies from the root, masses last."""
    bodies = {b.name: i for i, b in enumerate(m.bodies)}

    def place(k: int) -> tuple[int, int, int]:
        n = numbers[k]
        return (1, bodies[n.part], INSIDE.index(n.kind)) if n.kind in TEN else (0, 0, k)

    return sorted(range(len(numbers)), key=place)
