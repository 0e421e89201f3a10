"""Recursions as what one body does: for mechanisms of so many bodies that alike ones share their code.

A method of the table sweeps over all links at once. What one link does is a generator that asks for what its neighbours
hand over and says what it hands on:

    w = yield FromParent(ZERO)         what the parent handed on; a body on the ground gets the value named here
    yield Hands(w)                     what this body hands on, in the direction of the last question
    parts = yield FromChildren()       what each child handed on

What is computed between two questions belongs to one sweep over the tree. It returns its elements of the result. The
equations themselves are those of the method's own file.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat, Vec


@dataclass(frozen=True)
class FromParent:
    ground: Any


@dataclass(frozen=True)
class FromChildren:
    pass


@dataclass(frozen=True)
class Hands:
    value: Any


Asked = FromParent | FromChildren | Hands
Body = Generator[Asked, Any, list[Scalar]]


@dataclass(frozen=True)
class Ground:
    """What bodies stand on: gravity, in the ground's own axes, and where in the world those are."""

    gravity: Vec
    R: Mat
    p: Vec


def ground_of(tree: Tree) -> Ground:
    return Ground(tree.gravity, *tree.ground.pose(IDENTITY, ZERO))


@dataclass(frozen=True)
class Frames:
    """Some frames of a body: where they are in it, and if it is asked for, how they are turned. `pushed` are those that
    forces from outside act on, `seen` those that something is said of.
    """

    points: Sequence[Vec]
    axes: Sequence[Mat] = ()
