"""The mechanism as the methods see it: bodies on joints in internal frames (chosen in model/internal_frames.py).

A Link represents its joint: motion, axes, spring and friction forces, and its elements of q and v, so that mimic joints
and passive forces are not special cases in a method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from bellcrank.model.flexible_body import FlexibleBody
from bellcrank.model.kind import Kind
from bellcrank.model.parts import Joint, Loop, Spring
from bellcrank.parameters import has_free
from bellcrank.scalar import Scalar, clip, fabs, maximum
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat, Motion, Vec

HIDDEN_INERTIA_FRACTION = 1e-9  # fraction of all inertia: far more than rounding, and less than any intended body
# Coordinates, above which dynamics/singular_mass.py decides, where identical bodies are checked once.
MAX_COORDINATES = 150
SLIDE_TRAVEL_METRES = 1.0  # m, order of magnitude of the travel of a slide


@dataclass(frozen=True)
class Link:
    """One body on its joint, in internal frames."""

    name: str
    parent: int
    joint: Joint
    kind: Kind
    placement: Transform  # constant moves from the parent's F to this joint's G
    inertia: Inertia  # about F
    q_index: tuple[int, ...]  # indices of the joint's coordinates in q and v
    v_index: tuple[int, ...]

    def coordinates(self, q: Sequence[Scalar]) -> list[Scalar]:
        """Return the joint's own coordinates from the mechanism's `q`, or from the master of a mimic joint."""
        m = self.joint.mimic
        return [q[i] if m is None else q[i] * m.multiplier + m.offset for i in self.q_index]

    def velocities(self, v: Sequence[Scalar]) -> list[Scalar]:
        """Return the joint's own velocities from the mechanism's `v`."""
        m = self.joint.mimic
        return [v[i] if m is None else v[i] * m.multiplier for i in self.v_index]

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Return the moves from the parent's F to this body's F at `q`."""
        return self.placement + self.kind.transform(self.coordinates(q))

    def subspace(self, q: Sequence[Scalar]) -> list[Motion]:
        """Return the columns of S at `q`, one per element of v_index."""
        m = self.joint.mimic
        S = self.kind.subspace(self.coordinates(q))
        return S if m is None else [s * m.multiplier for s in S]

    def subspace_rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Motion]:
        """Return the columns of dS/dt at `q` and `v`, one per element of v_index."""
        m = self.joint.mimic
        dS = self.kind.subspace_rate(self.coordinates(q), self.velocities(v))
        return dS if m is None else [d * m.multiplier for d in dS]

    def bias(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> Motion:
        """Return (dS/dt) v at `q` and `v`."""
        return self.kind.bias(self.coordinates(q), self.velocities(v))

    @property
    def armature(self) -> Scalar:
        """Rotor inertia seen at the coordinate."""
        m = self.joint.mimic
        return self.joint.armature if m is None else self.joint.armature * m.multiplier**2

    def passive(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Return the friction and spring forces at `q` and `v`, one per element of v_index.

        They include the velocity terms of the armature, -armature w x v, where v is given in turning axes.
        """
        j = self.joint
        turned, moved = self.coordinates(q), self.velocities(v)
        k = 1.0 if j.mimic is None else j.mimic.multiplier
        sprung = j.stiffness and self.kind.nq == self.kind.nv
        spring = self.kind.felt(turned, [(x - j.rest) * j.stiffness for x in turned]) if sprung else []
        turning = self.kind.turning_axes(moved) if j.armature else []
        out = []
        for i, u in enumerate(moved):
            f = 0.0 if not j.damping else -(u * j.damping)
            if turning:
                f = f - turning[i] * j.armature
            if j.friction:
                f = f - clip(u / j.friction_speed, -1.0, 1.0) * j.friction
            if spring:
                f = f - spring[i]
            out.append(f * k)
        return out

    def resistance(self, v: Sequence[Scalar]) -> list[Scalar]:
        """Return the slopes of damping and friction at `v`, one per element of v_index; for dry friction the chord."""
        j = self.joint
        k = 1.0 if j.mimic is None else j.mimic.multiplier * j.mimic.multiplier
        out = []
        for u in self.velocities(v):
            slope: Scalar = j.damping
            if j.friction:
                slope = slope + j.friction / maximum(fabs(u), j.friction_speed)
            out.append(slope * k)
        return out


@dataclass(frozen=True)
class Tree:
    """All links with their coordinates, and gravity, frames, loops and springs."""

    links: tuple[Link, ...]
    nq: int
    nv: int
    gravity: Vec  # in the internal ground frame
    ground: Transform  # from the world to the internal ground frame
    frames: Mapping[str, tuple[int, Mat, Vec]]  # body (-1: ground), pose in its F
    loops: tuple[Loop, ...] = ()  # between frames, or between joints
    springs: tuple[Spring, ...] = ()
    flexible: tuple[FlexibleBody, ...] = ()  # modes of flexible bodies; their nodes are massless links

    def path(self, i: int) -> list[int]:
        """Return link `i` and all links that carry it, ending on the ground."""
        path = []
        while i >= 0:
            path.append(i)
            i = self.links[i].parent
        return path

    @cached_property
    def work_sizes(self) -> tuple[int, int, int, int]:
        """Sizes for estimates of work.

        The number of coordinates, the sum of their depths (coordinates down to the ground, itself included), the sum of
        the squared depths, and the number of bodies on the ground plus the number of leaves.
        """
        depth, leaves, each = [0] * len(self.links), [1] * len(self.links), list[int]()
        for i, link in enumerate(self.links):
            begin = 0
            if link.parent >= 0:
                begin, leaves[link.parent] = depth[link.parent], 0
            depth[i] = begin + len(link.v_index)
            each += range(begin + 1, depth[i] + 1)
        roots = sum(link.parent < 0 for link in self.links)
        return len(each), sum(each), sum(d * d for d in each), sum(leaves) + roots

    @cached_property
    def coupled(self) -> bool:
        """True if joints share a coordinate, with each other or with a flexible body."""
        return bool(self.flexible) or any(link.joint.mimic is not None for link in self.links)

    @property
    def has_mimics(self) -> bool:
        """True if there is a mimic joint; nodes of one flexible body do not count."""
        return any(link.joint.mimic is not None and link.kind.name != "modal" for link in self.links)

    @cached_property
    def invertible(self) -> tuple[bool, ...]:
        """For each link, whether its inertia is invertible; identical links are checked once."""
        known: dict[tuple[Scalar, ...], bool] = {}
        flags = []
        for link in self.links:
            key = link.inertia.numbers
            if key not in known:
                known[key] = link.inertia.invertible
            flags.append(known[key])
        return tuple(flags)

    @cached_property
    def has_massive_bodies(self) -> bool:
        """True if every joint moves a body with enough inertia of its own that the mass matrix is always invertible.

        Then no pivot of the mass matrix is smaller than the share of the body itself, and that share is not hidden by
        rounding of the rest. False where a closer check is needed (dynamics/singular_mass.py).
        """
        joint_inertias: list[tuple[Scalar, bool]] = []  # inertia of each joint, and whether it turns
        mass, turning, reach = 0.0, 0.0, 0.0
        for link in self.links:
            at_rest, I, m = link.kind.neutral(), link.inertia.I, link.inertia.m
            shift = link.placement.pose(IDENTITY, ZERO)[1]
            if (
                self.coupled
                or self.nv > MAX_COORDINATES
                or link.kind.nv != 1
                or has_free((*link.inertia.numbers, *shift))
            ):
                return False
            (s,), (ds,) = link.kind.subspace(at_rest), link.kind.subspace_rate(at_rest, [1.0])
            turns, slides, changes = (any(x != 0.0 for x in part) for part in (s.ang, s.lin, (*ds.ang, *ds.lin)))
            if changes or turns == slides:
                return False
            joint_inertias.append((s.dot(link.inertia @ s), turns))
            mass, turning = mass + m, turning + I.xx + I.yy + I.zz
            reach += sum(abs(x) for x in shift) + slides * SLIDE_TRAVEL_METRES + abs(float(link.kind.distance0))
        largest = {True: turning + mass * reach * reach, False: mass}
        return all(x > HIDDEN_INERTIA_FRACTION * largest[turns] for x, turns in joint_inertias)

    def link_inertias(self, q: Sequence[Scalar]) -> list[Inertia]:
        """Return the inertia of every link about its F, deformed as at `q`."""
        totals = [link.inertia for link in self.links]
        for body in self.flexible:
            if body.link >= 0:
                totals[body.link] = totals[body.link] + body.inertia(q)
        return totals


def regrouped(tree: Tree) -> Tree:
    """Return a tree with the same motion and emptier bodies.

    The part of a child's inertia that its joint's motion cannot change is moved to the parent (`Kind.unfelt`). Done
    from the leaves to the root, this leaves, for a revolute arm, bodies without mass, without first moment along the
    axis and without one of the moments: the mass matrix, the joint forces and the kinetic energy stay the same, with 4
    to 16 per cent fewer operations on real robots (docs/counting.md). Quantities that depend on the true mass
    distribution (com, momentum, potential energy: `Quantity.regrouped` is False) use the true bodies. Regrouping pays
    for bodies with free parameters too, although it is then part of every call; but not across a placement that is
    free, where all inertia beyond would become an expression.

    Parameters
    ----------
    tree
        The tree of true bodies.
    """
    links = list(tree.links)
    for i in reversed(range(len(links))):
        link = links[i]
        neutral_transform = link.kind.transform(link.kind.neutral())  # any q would do, by the definition of unfelt
        if has_free(link.placement.moves, neutral_transform.moves):
            continue
        moved_inertia = link.kind.unfelt(link.inertia)
        links[i] = replace(link, inertia=link.inertia - moved_inertia)
        if link.parent >= 0:
            up = links[link.parent]
            carried = link.placement.inertia(neutral_transform.inertia(moved_inertia))
            links[link.parent] = replace(up, inertia=up.inertia + carried)
    return replace(tree, links=tuple(links))
