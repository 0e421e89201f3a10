"""Body recursions: tree algorithms written as the work of one body, for rolled loops over link classes.

A method of the table sweeps over all links at once. The work of one link is a generator that requests the values of its
neighbours and sends values:

    w = yield FromParent(ZERO)         the value that the parent sent; bodies on the ground get this default
    yield Send(w)                      the value that this body sends, in the direction of the last request
    parts = yield FromChildren()       the values that the children sent

The code between two requests belongs to one sweep over the tree. The generator returns the body's elements of the
result. The equations themselves are those of the method's own file.
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
    """Request for the value that the parent sent; `ground` is its value for bodies on the ground."""

    ground: Any


@dataclass(frozen=True)
class FromChildren:
    """Request for the values that the children sent."""

    pass


@dataclass(frozen=True)
class Send:
    """A value to send, in the direction of the last request."""

    value: Any


Exchange = FromParent | FromChildren | Send
BodyRecursion = Generator[Exchange, Any, list[Scalar]]


@dataclass(frozen=True)
class Ground:
    """Gravity, in the ground's own axes, and the pose of these axes in the world."""

    gravity: Vec
    R: Mat
    p: Vec


def ground_of(tree: Tree) -> Ground:
    """Return gravity and pose of the ground of `tree`."""
    return Ground(tree.gravity, *tree.ground.pose(IDENTITY, ZERO))


@dataclass(frozen=True)
class BodyFrames:
    """Frames of a body: their origins in the body, and their axes where needed.

    A recursion's parameter `pushed` has the frames on which external forces act, `seen` those of the results.
    """

    points: Sequence[Vec]
    axes: Sequence[Mat] = ()
