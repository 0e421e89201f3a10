"""Deformable bodies in absolute coordinates: a body with its modes, and the nodes that move with both.

P. E. Nikravesh, G. Gim, A. Arabyan and U. Rein, 1989, section 6: rigid bodies keep the absolute coordinates of eqs 1-4,
flexible bodies have modal or nodal coordinates n besides. A velocity transformation as in eqs 5-10, within the body,
removes the constraints between a body and its nodes, which have no coordinates of their own.

    C_j     columns of link j, the body or a node, at its centre: v_j = C_j [v; n'], where v is that of the body
    gamma   C_j' [v; n']                    M   sum C_j^T M_j C_j, with the terms of the modes themselves
    f       sum C_j^T f_j of forces f_j on the links

A rigid body has one link and no modes. Nodes of a body on the ground have columns of the modes only. Columns are keyed
by modal coordinate; RIGID_KEYS are those of v. A body that is welded to a node belongs to it, with its own modes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bellcrank.dynamics.historical.cut_joints import Mobility, mobility
from bellcrank.dynamics.historical.free_bodies import PlacedBody, VelocityPropagation, centre_to_centre
from bellcrank.dynamics.ltl_factorisation import Rows, inverse_matrix
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.flexible_body import FlexibleBody
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, dot, step
from bellcrank.spatial.inertia import six_numbers, to_motion
from bellcrank.spatial.moves import Shift
from bellcrank.spatial.vector import AXES, NO_FORCE, NO_MOTION, ZERO, Acceleration, Force, Motion, weighted_sum

UNIT_MOTIONS = [Motion(e, ZERO) for e in AXES] + [Motion(ZERO, e) for e in AXES]
RIGID_KEYS = range(-6, 0)
Columns = dict[int, Motion]


@dataclass(slots=True, eq=False)
class DeformingForce:
    """Force about the centre of a deformable body, and a force on each of its modes by coordinate."""

    body: Force
    modes: dict[int, Scalar]

    def __add__(self, o: DeformingForce) -> DeformingForce:
        modes = {k: self.modes.get(k, 0.0) + o.modes.get(k, 0.0) for k in [*self.modes, *o.modes]}
        return DeformingForce(self.body + o.body, modes)


@dataclass(slots=True, eq=False)
class DeformingMotion:
    """Motion of the centre of a deformable body, and of its modes by coordinate."""

    body: Motion
    modes: dict[int, Scalar]

    def dot(self, f: DeformingForce) -> Scalar:
        """Return the scalar product with `f`."""
        total = self.body.dot(f.body)
        for k, x in f.modes.items():
            total = total + x * self.modes[k]
        return total


@dataclass(slots=True, eq=False)
class RigidMobility:
    """M^-1 of a free body without modes."""

    of: Mobility

    def __matmul__(self, f: DeformingForce) -> DeformingMotion:
        return DeformingMotion(self.of @ f.body, {})


@dataclass(slots=True, eq=False)
class DeformableMobility:
    """M^-1 of a free body with modes: the rows are those of v, if the body can move, then those of the modes."""

    inverse: list[list[Scalar]]
    modes: list[int]

    def __matmul__(self, f: DeformingForce) -> DeformingMotion:
        forces = [*six_numbers(f.body), *(f.modes.get(k, 0.0) for k in self.modes)]
        rigid = len(self.inverse) - len(self.modes)
        moved = [dot(row, forces[6 - rigid :]) for row in self.inverse]
        body = to_motion(moved[:rigid]) if rigid else NO_MOTION
        return DeformingMotion(body, dict(zip(self.modes, moved[rigid:], strict=True)))


@dataclass(eq=False)
class DeformableBody:
    """A body with its nodes; root is its link, -1 for the ground with the nodes of bodies that are fixed to it."""

    root: int
    shift: dict[int, Shift] = field(default_factory=dict)  # from the centre of the body to that of each node
    columns: dict[int, Columns] = field(default_factory=dict)  # of the modes, for each node
    gamma: dict[int, Motion] = field(default_factory=dict)
    flexible: list[FlexibleBody] = field(default_factory=list)

    @property
    def links(self) -> list[int]:
        """The body, unless it is the ground, and its nodes."""
        return [*([self.root] if self.root >= 0 else []), *self.columns]

    @property
    def modes(self) -> list[int]:
        """Modal coordinates."""
        return [k for body in self.flexible for k in body.v_index]

    def add_node(self, placed: PlacedTree, j: int) -> None:
        """Add link `j`, a node of the tree `placed`."""
        link, by, body = placed.tree.links[j], placed.propagation[j], placed.bodies[j]
        step("C", link.name)
        columns = {k: by.G.motion(h) for k, h in self.columns.get(link.parent, {}).items()}
        self.columns[j] = columns | dict(zip(link.v_index, body.H, strict=True))
        self.gamma[j] = by.G.motion(self.gamma.get(link.parent, NO_MOTION)) + by.gamma
        self.shift[j] = centre_to_centre(placed.bodies[self.root], body) if self.root >= 0 else Shift(body.r)

    def gather(self, forces: Mapping[int, Force]) -> DeformingForce:
        """Return f = sum C_j^T f_j of `forces` on its links, each about the link's centre."""
        body, modes = NO_FORCE, dict[int, Scalar]()
        for j, f in forces.items():
            if self.root >= 0:
                body = body + (f if j == self.root else self.shift[j].force(f))
            for k, h in self.columns.get(j, {}).items():
                modes[k] = modes.get(k, 0.0) + h.dot(f)
        return DeformingForce(body, modes)

    def acceleration(self, j: int, a: DeformingMotion) -> Motion:
        """Return the acceleration of link `j` where the body has the acceleration `a`."""
        if j == self.root:
            return a.body
        carried = self.gamma[j] + (self.shift[j].motion(a.body) if self.root >= 0 else NO_MOTION)
        return weighted_sum(self.columns[j].values(), (a.modes[k] for k in self.columns[j]), carried)

    def mobility(self, placed: PlacedTree, q: Vector) -> RigidMobility | DeformableMobility:
        """Return M^-1 of the body in the tree `placed` at positions `q`."""
        if not self.flexible:
            return RigidMobility(mobility(placed.tree.links[self.root], placed.bodies[self.root]))
        M = self._mass_matrix(placed.bodies, q)
        names = [placed.tree.links[self.links[0]].name] * len(M)
        return DeformableMobility(inverse_matrix(M, names), self.modes)

    def _mass_matrix(self, bodies: Sequence[PlacedBody], q: Vector) -> Rows:
        """Return the lower triangle of M, with the rows of v first."""
        row_of = {k: i for i, k in enumerate([*(RIGID_KEYS if self.root >= 0 else ()), *self.modes])}
        M: Rows = [{} for _ in row_of]

        def add(a: int, b: int, x: Scalar) -> None:
            j, i = sorted((row_of[a], row_of[b]))
            M[i][j] = M[i].get(j, 0.0) + x

        for j in self.links:
            C = list(self._all_columns(j).items())
            for n, (a, h) in enumerate(C):
                momentum = bodies[j].M @ h
                for b, other in C[: n + 1]:
                    add(a, b, other.dot(momentum))
        for flexible in self.flexible:
            for n, (k, F) in enumerate(zip(flexible.v_index, flexible.modal_momentum(q), strict=True)):
                for b, h in self._all_columns(flexible.link).items():
                    add(k, b, h.dot(bodies[flexible.link].force(F)))
                for l, x in zip(flexible.v_index[: n + 1], flexible.M[n], strict=False):
                    add(k, l, x)
        return M

    def _all_columns(self, j: int) -> Columns:
        """Return the columns C_j of link `j`; the ground has none."""
        if self.root < 0:
            return self.columns.get(j, {})
        rigid = UNIT_MOTIONS if j == self.root else [self.shift[j].motion(s) for s in UNIT_MOTIONS]
        return dict(zip(RIGID_KEYS, rigid, strict=True)) | self.columns.get(j, {})


@dataclass(frozen=True, eq=False)
class PlacedTree:
    """Links of a tree in their present shape and motion."""

    tree: Tree  # of rigid bodies in their present shape
    bodies: list[PlacedBody]
    propagation: list[VelocityPropagation]


def is_node(tree: Tree, j: int) -> bool:
    """Return True if link `j` of `tree` is a node of a flexible body."""
    return tree.links[j].kind.name == "modal"


def deformable_bodies(placed: PlacedTree, flexible: Sequence[FlexibleBody]) -> list[DeformableBody]:
    """Return the deformable body of each link, and last that of the ground; links of one body have the same.

    Parameters
    ----------
    placed
        Links of the tree.
    flexible
        Flexible bodies of the tree.
    """
    ground, found = DeformableBody(-1), list[DeformableBody]()
    for j, link in enumerate(placed.tree.links):
        if not is_node(placed.tree, j):
            found.append(DeformableBody(j))
            continue
        found.append(found[link.parent] if link.parent >= 0 else ground)
        found[j].add_node(placed, j)
    found.append(ground)
    for body in flexible:
        found[body.link].flexible.append(body)
    return found


def modal_loads(
    placed: PlacedTree, flexible: FlexibleBody, gamma: Motion, q: Vector, v: Vector
) -> tuple[Force, list[Scalar]]:
    """Return the force on the link and on each mode that velocities and gravity need, besides that of a rigid body.

    Parameters
    ----------
    placed
        Links of the tree.
    flexible
        The flexible body.
    gamma
        Acceleration of its link due to velocities.
    q, v
        Positions and velocities of the mechanism.
    """
    j, still = flexible.link, [0.0] * len(v)
    if j < 0:
        return flexible.newton_euler(q, v, still, Acceleration(ZERO, ZERO, -placed.tree.gravity))
    m = placed.bodies[j].frame_acceleration(placed.propagation[j].w, gamma, placed.tree.gravity)
    force, needed = flexible.newton_euler(q, v, still, m)
    return placed.bodies[j].force(force), needed
