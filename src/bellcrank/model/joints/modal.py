"""Nodes of flexible bodies as joints: the body's modes move the frame F of a node from its undeformed place G.

All nodes of a body share its modal coordinates.

    p = sum shift_k n_k + 1/2 sum second_kl n_k n_l          in G's axes
    b = 1/2 sum turn_k n_k,  R = 1 + 2 ([b] + [b][b]) / (1 + b.b)

R is a rotation for any n, is 1 + [turn n] for small n, and needs no sine of an angle that may be zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.model.flexible_body import ModalNode
from bellcrank.model.kind import Kind
from bellcrank.process_state import evaluated_once
from bellcrank.scalar import Scalar, is_zero
from bellcrank.spatial.moves import FullRotation, Move, Shift, Transform
from bellcrank.spatial.vector import AXES, ZERO, Mat, Motion, Vec, vec, weighted_sum

MODAL_PREFIX = "modal "


@dataclass(frozen=True)
class ModalJoint(Kind):
    """A node of a flexible body; types for a number of modes are made by `modal_joint_type`."""

    node: ModalNode | None = None

    name, nq, nv, has_axis = "modal", 0, 0, False
    coordinates = ()

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from G to F at coordinates `q`."""
        p, R = self._position(q), _node_rotation(self._rodrigues_vector(q))
        shift: list[Move] = [] if all(map(is_zero, p)) else [Shift(p)]
        return Transform([*shift, FullRotation(R)] if R is not None else shift)

    def subspace(self, q: Sequence[Scalar]) -> list[Motion]:
        """Return the columns of the motion subspace S at `q`."""
        if self.node is None:
            return [Motion(e, ZERO) for e in AXES]  # any rotation is possible
        R, b = _node_rotation(self._rodrigues_vector(q)), self._rodrigues_vector(q)
        s = 2.0 / (1.0 + b.dot(b))
        columns = []
        for k, turn in enumerate(self.node.turn):
            db, along = vec(turn) * 0.5, self._position_derivative(k, q)
            columns.append(Motion((db - b.cross(db)) * s, along if R is None else R.T @ along))
        return columns

    def subspace_rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Motion]:
        """Return the columns of dS/dt at `q` and `v`."""
        R, b, rate = _node_rotation(self._rodrigues_vector(q)), self._rodrigues_vector(q), self._rodrigues_vector(v)
        s = 2.0 / (1.0 + b.dot(b))
        ds = -(s * s * b.dot(rate))
        w = (rate - b.cross(rate)) * s
        assert self.node is not None
        rates = []
        for k, turn in enumerate(self.node.turn):
            db = vec(turn) * 0.5
            along, change = self._position_derivative(k, q), self._position_derivative(k, v) - vec(self.node.shift[k])
            if R is not None:
                along, change = R.T @ along, R.T @ change
            rates.append(Motion((db - b.cross(db)) * ds - rate.cross(db) * s, change - w.cross(along)))
        return rates

    def bias(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> Motion:
        """Return (dS/dt) v at `q` and `v`."""
        R, b, db = _node_rotation(self._rodrigues_vector(q)), self._rodrigues_vector(q), self._rodrigues_vector(v)
        s = 2.0 / (1.0 + b.dot(b))
        turning = db - b.cross(db)
        w, ang = turning * s, turning * -(s * s * b.dot(db))
        velocity = weighted_sum((self._position_derivative(k, q) for k in range(len(v))), v)
        still = [0.0] * len(v)
        changes = (self._position_derivative(k, v) - self._position_derivative(k, still) for k in range(len(v)))
        acceleration = weighted_sum(changes, v)
        if R is not None:
            velocity, acceleration = R.T @ velocity, R.T @ acceleration
        return Motion(ang, acceleration - w.cross(velocity))

    def _rodrigues_vector(self, q: Sequence[Scalar]) -> Vec:
        assert self.node is not None
        return weighted_sum(map(vec, self.node.turn), (x * 0.5 for x in q))

    def _position_derivative(self, k: int, q: Sequence[Scalar]) -> Vec:
        """Return dp/dn_k."""
        assert self.node is not None
        return weighted_sum(map(vec, self.node.second[k]), q, vec(self.node.shift[k]))

    def _position(self, q: Sequence[Scalar]) -> Vec:
        assert self.node is not None
        slopes = (vec(shift) + self._position_derivative(k, q) for k, shift in enumerate(self.node.shift))
        return weighted_sum(slopes, (x * 0.5 for x in q))


def _node_rotation(b: Vec) -> Mat | None:
    """Return R, or None where nothing rotates."""
    if all(map(is_zero, b)):
        return None
    s = 2.0 / (1.0 + b.dot(b))
    x, y, z = b
    return Mat(
        Vec(1.0 - s * (y * y + z * z), s * (x * y - z), s * (x * z + y)),
        Vec(s * (x * y + z), 1.0 - s * (x * x + z * z), s * (y * z - x)),
        Vec(s * (x * z - y), s * (y * z + x), 1.0 - s * (x * x + y * y)),
    )


@evaluated_once
def modal_joint_type(modes: int) -> type[ModalJoint]:
    """Return the joint type for the nodes of a body with `modes` modes."""
    names = tuple(f"mode{k + 1}" for k in range(modes))
    fields: dict[str, Any] = {"nq": modes, "nv": modes, "coordinates": names}
    return type("Modal", (ModalJoint,), fields)


class JointTypes(dict[str, type[Kind]]):
    """Joint types by name.

    "modal 3" and so on, for nodes of bodies with three modes, are not listed, and are made when looked up.
    """

    def __missing__(self, name: str) -> type[Kind]:
        digits = name.removeprefix(MODAL_PREFIX)
        if digits == name or not digits.isdecimal():
            raise KeyError(name)
        return modal_joint_type(int(digits))
