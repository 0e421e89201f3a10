"""What the processors know from the start: the numbers of the bodies, and the angles and rates of the joints.

    A_i  turns the coordinates of the body before into body i's   k_i  from the centre of mass to the joint
    l_i  from the centre of mass of the body before to joint i    z_i  the axis in body i's coordinates
    J_i  inertia about the centre of mass                         m_i  mass

`general` knows nothing of them but what table 3.1 knows: the two zeros of A_i, and that w x z has two products. Every
number is an input, the axis too, as in a program for any arm. `of` has the numbers of a mechanism, and what they make
zero or constant vanishes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bellcrank.errors import InputError
from bellcrank.graph import Tape
from bellcrank.model import Mechanism
from bellcrank.scalar import Scalar, cos, sin
from bellcrank.spatial.vector import AXES, IDENTITY, ZERO, Mat, Sym, Vec


@dataclass(frozen=True)
class Body:
    """Bodies are numbered from 1; 0 is the ground."""

    number: int
    parent: int
    turn: Callable[[], Mat]  # A_i, computed by whoever needs it
    k: Vec
    l: Vec
    z: Vec
    J: Sym
    m: Scalar
    rate: Scalar
    load: Callable[[], Scalar]  # what drives the joint: tau and what springs and friction add
    rotor: Scalar = 0.0


@dataclass(frozen=True)
class Arm:
    name: str
    bodies: tuple[Body, ...]
    gravity: Vec
    still: tuple[Vec, Vec]  # how the ground turns, and how that changes: not at all, but any arm's program asks
    nothing: Scalar  # what comes from beyond the last column: nothing
    inputs: dict[str, tuple[int, ...]]

    @property
    def n(self) -> int:
        return len(self.bodies)

    def path(self, i: int) -> list[int]:
        """Joints between body i and the ground, its own first: a row of the connectivity matrix (3.14)."""
        found = []
        while i:
            found.append(i)
            i = self.bodies[i - 1].parent
        return found


def general(tape: Tape, parents: Sequence[int]) -> Arm:
    n = len(parents)
    inputs: dict[str, tuple[int, ...]] = {"q": (n,), "v": (n,), "tau": (n,), "number": (18 * n + 10,)}
    q, v, tau, number = (tape.inputs(name, shape) for name, shape in inputs.items())
    numbers = iter(number)

    def vec() -> Vec:
        return Vec(next(numbers), next(numbers), next(numbers))

    def turn(angle: Scalar, c: Scalar, s: Scalar) -> Callable[[], Mat]:
        def made() -> Mat:  # 3.18, with c and s of the twist
            C, S = cos(angle), sin(angle)
            return Mat(Vec(C, c * S, s * S), Vec(-S, c * C, s * C), Vec(0.0, -s, c))

        return made

    bodies = []
    for i, parent in enumerate(parents):
        A = turn(q[i], next(numbers), next(numbers))
        k, l, z = vec(), vec(), vec()
        J, m = Sym(*(next(numbers) for _ in range(6))), next(numbers)
        bodies.append(Body(i + 1, parent, A, k, l, z, J, m, v[i], partial(tau.__getitem__, i)))
    _tree(bodies)
    return Arm(f"any arm of {n} joints", tuple(bodies), vec(), (vec(), vec()), next(numbers), inputs)


def of(tape: Tape, mechanism: Mechanism) -> Arm:
    tree, n = mechanism.tree, len(mechanism.tree.links)
    inputs: dict[str, tuple[int, ...]] = {"q": (n,), "v": (n,), "tau": (n,)}
    for link in tree.links:
        if link.kind.name != "revolute" or link.joint.mimic is not None:
            raise InputError(
                f'{mechanism.name}: joint "{link.joint.name}" is {link.kind.name}; '
                "Wong's mesh is for hinges of their own. Schedule the graph on a machine instead."
            )
    q, v, tau = (tape.inputs(name, shape) for name, shape in inputs.items())
    centres = [link.inertia.centre for link in tree.links]

    def turn(link: Any) -> Callable[[], Mat]:
        def made() -> Mat:
            x, y, z = (link.transform(q).down(axis) for axis in AXES)
            return Mat(x, y, z).T

        return made

    def load(link: Any) -> Callable[[], Scalar]:
        return lambda: tau[link.v_index[0]] + sum(link.passive(q, v))

    bodies = []
    for i, link in enumerate(tree.links):
        m, centre, J = link.inertia.m, link.inertia.centre, link.inertia.I_centre
        at = link.transform([0.0] * tree.nq).pose(IDENTITY, ZERO)[1]
        l = at - centres[link.parent] if link.parent >= 0 else at
        own = v[link.v_index[0]], load(link), link.armature
        bodies.append(Body(i + 1, link.parent + 1, turn(link), -centre, l, AXES[2], J, m, *own))
    return Arm(mechanism.name, tuple(bodies), tree.gravity, (ZERO, ZERO), 0.0, inputs)


def _tree(bodies: Sequence[Body]) -> None:
    for body in bodies:
        if not 0 <= body.parent < body.number:
            raise InputError(f"body {body.number} stands on {body.parent}; expected one from 0 to {body.number - 1}.")
