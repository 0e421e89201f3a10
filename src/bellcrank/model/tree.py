"""The mechanism as the methods see it: bodies on joints in internal frames (chosen in model/frames.py).

A Link answers for its joint: how the frame moves, along which axes, what its springs and friction do, which elements
of q and v are its own, so that coupled joints and passive forces are no cases in a method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from bellcrank.model.bending import Bending
from bellcrank.model.kind import Kind
from bellcrank.model.parts import Joint, Loop, Spring
from bellcrank.parameters import depends
from bellcrank.scalar import Scalar, clip, fabs, maximum
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat, Motion, Vec

HIDDEN = 1e-9  # of all inertia: far more than rounding, and less than any body that was meant to be one
MANY = 150  # coordinates: of so many alike bodies are looked at once, over there
REACH = 1.0  # m that a slide moves, for the order of magnitude


@dataclass(frozen=True)
class Link:
    """One body on its joint, in internal frames."""

    name: str
    parent: int
    joint: Joint
    kind: Kind
    placement: Transform  # constant moves from the parent's F to this joint's G
    inertia: Inertia  # about F
    q_index: tuple[int, ...]  # where the joint's coordinates stand in q and v
    v_index: tuple[int, ...]

    def coordinates(self, q: Sequence[Scalar]) -> list[Scalar]:
        """This joint's own q: its part of the mechanism's, or the coupling to another's."""
        m = self.joint.mimic
        return [q[i] if m is None else q[i] * m.multiplier + m.offset for i in self.q_index]

    def velocities(self, v: Sequence[Scalar]) -> list[Scalar]:
        m = self.joint.mimic
        return [v[i] if m is None else v[i] * m.multiplier for i in self.v_index]

    def transform(self, q: Sequence[Scalar]) -> Transform:
        return self.placement + self.kind.transform(self.coordinates(q))

    def subspace(self, q: Sequence[Scalar]) -> list[Motion]:
        """Columns of S, one per element of v_index."""
        m = self.joint.mimic
        S = self.kind.subspace(self.coordinates(q))
        return S if m is None else [s * m.multiplier for s in S]

    def subspace_rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Motion]:
        """Columns of dS/dt."""
        m = self.joint.mimic
        dS = self.kind.subspace_rate(self.coordinates(q), self.velocities(v))
        return dS if m is None else [d * m.multiplier for d in dS]

    def bias(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> Motion:
        return self.kind.bias(self.coordinates(q), self.velocities(v))

    @property
    def armature(self) -> Scalar:
        """Rotor inertia as the coordinate feels it."""
        m = self.joint.mimic
        return self.joint.armature if m is None else self.joint.armature * m.multiplier**2

    def passive(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        """Forces of friction and spring that the joint's own coordinates feel, one per element of v_index.

        With them the armature's share of what velocities need: -armature w x v, where v is given in axes that turn.
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
        """Slopes with which damping and friction oppose each element of v_index; of dry friction that of the chord."""
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
    links: tuple[Link, ...]
    nq: int
    nv: int
    gravity: Vec  # in the internal ground frame
    ground: Transform  # from the world to the internal ground frame
    frames: Mapping[str, tuple[int, Mat, Vec]]  # body (-1: ground), pose in its F
    loops: tuple[Loop, ...] = ()  # between frames, or between joints
    springs: tuple[Spring, ...] = ()
    flexible: tuple[Bending, ...] = ()  # what bodies do that bend; their nodes are links of no mass

    def path(self, i: int) -> list[int]:
        """Link i and all that carry it, down to the one on the ground."""
        found = []
        while i >= 0:
            found.append(i)
            i = self.links[i].parent
        return found

    @cached_property
    def depths(self) -> tuple[int, int, int, int]:
        """How many coordinates there are, the sum of their depths (coordinates down to the ground, itself among them),
        that of the squares, and how many bodies stand on the ground or carry none.
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
        """Whether joints share a coordinate, or have it in common with a body that bends."""
        return bool(self.flexible) or any(link.joint.mimic is not None for link in self.links)

    @property
    def following(self) -> bool:
        """Whether a joint follows another; nodes of one body do not, they are one."""
        return any(link.joint.mimic is not None and link.kind.name != "modal" for link in self.links)

    @cached_property
    def invertible(self) -> tuple[bool, ...]:
        """Of every link, whether its inertia is; alike ones are asked once."""
        known: dict[tuple[Scalar, ...], bool] = {}
        found = []
        for link in self.links:
            key = link.inertia.numbers
            if key not in known:
                known[key] = link.inertia.invertible
            found.append(known[key])
        return tuple(found)

    @cached_property
    def massive(self) -> bool:
        """Whether every joint turns or slides a body that resists by itself, and not so little that the rest could hide
        it: then forces determine accelerations in every configuration, for no pivot of the mass matrix is less than
        what the body itself adds. False where it takes a closer look (dynamics/immobility.py).
        """
        own: list[tuple[Scalar, bool]] = []  # of each joint, and whether it turns
        mass, turning, reach = 0.0, 0.0, 0.0
        for link in self.links:
            at_rest, I, m = link.kind.neutral(), link.inertia.I, link.inertia.m
            shift = link.placement.pose(IDENTITY, ZERO)[1]
            if self.coupled or self.nv > MANY or link.kind.nv != 1 or depends((*link.inertia.numbers, *shift)):
                return False
            (s,), (ds,) = link.kind.subspace(at_rest), link.kind.subspace_rate(at_rest, [1.0])
            turns, slides, changes = (any(x != 0.0 for x in part) for part in (s.ang, s.lin, (*ds.ang, *ds.lin)))
            if changes or turns == slides:
                return False
            own.append((s.dot(link.inertia @ s), turns))
            mass, turning = mass + m, turning + I.xx + I.yy + I.zz
            reach += sum(abs(x) for x in shift) + slides * REACH + abs(float(link.kind.distance0))
        most = {True: turning + mass * reach * reach, False: mass}
        return all(x > HIDDEN * most[turns] for x, turns in own)

    def inertias(self, q: Sequence[Scalar]) -> list[Inertia]:
        """Of every link, about its F, as it is bent now."""
        found = [link.inertia for link in self.links]
        for body in self.flexible:
            if body.link >= 0:
                found[body.link] = found[body.link] + body.inertia(q)
        return found


def regrouped(tree: Tree) -> Tree:
    """The same motion from emptier bodies.

    What a joint's motion cannot change in its child's inertia may as well belong to the parent (`Kind.unfelt`). Carried
    from the leaves to the root this leaves, for a revolute arm, bodies without mass, without first moment along the
    axis and without one of the moments: the mass matrix, the joint forces and the kinetic energy stay what they are,
    with 4 to 16 per cent fewer operations on real robots (docs/counting.md). What asks where the mass really is (com,
    momentum, potential energy: `Quantity.regrouped` is False) is computed from the true bodies. It pays for bodies with
    free parameters too, although they are regrouped at every call; but not through a placement that is free, where all
    that is beyond would become an expression.
    """
    links = list(tree.links)
    for i in reversed(range(len(links))):
        link = links[i]
        rest = link.kind.transform(link.kind.neutral())  # any q would do: that is what unfelt means
        if depends(link.placement.moves, rest.moves):
            continue
        given = link.kind.unfelt(link.inertia)
        links[i] = replace(link, inertia=link.inertia - given)
        if link.parent >= 0:
            up = links[link.parent]
            links[link.parent] = replace(up, inertia=up.inertia + link.placement.inertia(rest.inertia(given)))
    return replace(tree, links=tuple(links))
