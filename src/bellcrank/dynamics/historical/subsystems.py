"""Equations of motion of subsystems, and their coupling (P. Schäfer, W. Schiehlen 1992, sections 2 and 3).

A mechanism is cut at joints into subsystems. The local velocities of a subsystem are the twists of the bodies at its
cuts, and the rates of its joints:

    M_s x_s + k_s = q_s + Q_s g                  (9)    g: forces that the cut joints transmit without work
    x_s = I_s ydd                                (10)   I_s: Jacobian of the subsystem

Two ways eliminate the unknown forces g:

    coordinates   M = sum I_s^T M_s I_s, and k and q likewise: g does no work                            (6)
    forces        each subsystem is solved alone (8), and N g = -D sum x_s holds the cuts together       (7)

    N = D M^-1 D^T,   D = [Q_1^T Q_2^T ...]

Loops add their equations C ydd = gamma and their forces to g, in either way. The velocity-dependent parts of the
accelerations are in k_s, where the recursion over the bodies puts them, so that (10) has no further term.

A force on coordinate k is a pair of forces on two bodies where joint k is cut, and acts on x_s where it is not. The
sum of its products with all x_s is the acceleration of that coordinate. `CoordinateForces` is this pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bellcrank.dynamics.historical.cut_joints import ConstraintRow, constraints, on_both_bodies
from bellcrank.dynamics.historical.free_bodies import PlacedBody, body_jacobians, centre_to_centre, joint_to_centre
from bellcrank.dynamics.ltl_factorisation import Rows, solve
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, is_zero, step
from bellcrank.spatial.vector import AXES, NO_MOTION, ZERO, Force, Motion

UNIT_TWISTS = (*(Motion(e, ZERO) for e in AXES), *(Motion(ZERO, e) for e in AXES))
Key = tuple[int, int]  # a local velocity: (-1, index in v), or (body at a cut, element of its twist)
LocalVector = dict[Key, Scalar]


@dataclass(frozen=True)
class CutTree:
    """A tree whose bodies are divided among subsystems: `members[i]` is the subsystem of body i."""

    tree: Tree
    members: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of subsystems."""
        return max(self.members, default=-1) + 1

    @cached_property
    def cuts(self) -> tuple[int, ...]:
        """Bodies whose parent is in another subsystem; the ground is in none, so that joints on it are not cut."""
        rows = enumerate(self.tree.links)
        return tuple(i for i, x in rows if x.parent >= 0 and self.members[x.parent] != self.members[i])

    def path(self, i: int) -> tuple[list[int], int]:
        """Return the joints from body `i` inwards that are not cut, and the body at the cut; -1 on the ground."""
        joints = []
        while i >= 0 and i not in self.cuts:
            joints.append(i)
            i = self.tree.links[i].parent
        return joints, i

    def keys(self, s: int) -> list[Key]:
        """Return the local velocities of subsystem `s`: twists at the cuts, then rates of the joints."""
        own = [i for i, member in enumerate(self.members) if member == s]
        twists = [(i, c) for i in own if i in self.cuts for c in range(6)]
        rates = dict.fromkeys((-1, k) for i in own if i not in self.cuts for k in self.tree.links[i].v_index)
        return [*twists, *sorted(rates)]


@dataclass(frozen=True, eq=False)
class PlacedSubsystems:
    """Subsystems in one configuration, with the Jacobians of their bodies."""

    cut: CutTree
    bodies: Sequence[PlacedBody]
    q: Vector

    @property
    def tree(self) -> Tree:
        """The whole tree."""
        return self.cut.tree

    @cached_property
    def H(self) -> list[dict[Key, Motion]]:
        """Local Jacobian of every body: motion of its centre, in common axes, for each local velocity."""
        rows = []
        for i, link in enumerate(self.tree.links):
            step("B", link.name)
            (joints, base), row = self.cut.path(i), dict[Key, Motion]()
            for j in reversed(joints):
                at_centre = joint_to_centre(self.bodies[j], self.bodies[i])
                H = self.bodies[i].H if j == i else [at_centre.motion(u) for u in self.bodies[j].u]
                for h, k in zip(H, self.tree.links[j].v_index, strict=True):
                    row[-1, k] = row.get((-1, k), NO_MOTION) + h
            if base >= 0:
                shift = centre_to_centre(self.bodies[base], self.bodies[i])
                row |= {(base, c): u if base == i else shift.motion(u) for c, u in enumerate(UNIT_TWISTS)}
            rows.append(row)
        return rows

    def own(self, s: int) -> list[int]:
        """Return the bodies of subsystem `s`."""
        return [i for i, member in enumerate(self.cut.members) if member == s]

    def inertia(self, s: int) -> dict[tuple[Key, Key], Scalar]:
        """Return the elements of M_s of subsystem `s`, on and below the diagonal in the order of the keys."""
        order = {key: n for n, key in enumerate(self.cut.keys(s))}
        M: dict[tuple[Key, Key], Scalar] = {}
        for i in self.own(s):
            link, row = self.tree.links[i], self.H[i]
            step("P", link.name)
            P = {key: self.bodies[i].M @ h for key, h in row.items()}
            step("M", link.name)
            for a in row:
                for b in row:
                    if order[b] <= order[a]:
                        M[a, b] = M.get((a, b), 0.0) + row[b].dot(P[a])
            for k in link.v_index if i not in self.cut.cuts else ():
                M[(-1, k), (-1, k)] = M[(-1, k), (-1, k)] + link.armature
        return M

    def projected(self, s: int, forces: Mapping[int, Force] | Sequence[Force], what: str) -> LocalVector:
        """Return the local forces of subsystem `s` due to forces on bodies at their centres.

        Parameters
        ----------
        s
            Subsystem.
        forces
            Force by body.
        what
            Label of the step.
        """
        f: LocalVector = {}
        given = dict(forces.items() if isinstance(forces, Mapping) else enumerate(forces))
        for i in [i for i in self.own(s) if i in given]:
            step(what, self.tree.links[i].name)
            for key, h in self.H[i].items():
                f[key] = f.get(key, 0.0) + h.dot(given[i])
        return f

    # -- coupling by coordinates

    @cached_property
    def jacobian(self) -> dict[Key, dict[int, Scalar]]:
        """Rows of I_s for all local velocities: nonzero columns by index in v."""
        rows: dict[Key, dict[int, Scalar]] = {}
        whole = body_jacobians(self.tree, self.bodies)
        for i in self.cut.cuts:
            step("I", self.tree.links[i].name)
            for c in range(6):
                entries = {k: (*h.ang, *h.lin)[c] for k, h in whole[i].items()}
                rows[i, c] = {k: x for k, x in entries.items() if not is_zero(x)}
        return rows | {(-1, k): {k: 1.0} for k in range(self.tree.nv)}

    def coupled_force(self, f: LocalVector) -> dict[int, Scalar]:
        """Return I_s^T `f`."""
        out: dict[int, Scalar] = {}
        step("I^T f")
        for key, x in f.items():
            for k, e in self.jacobian[key].items():
                out[k] = out.get(k, 0.0) + e * x
        return out

    def coupled_inertia(self, s: int) -> dict[tuple[int, int], Scalar]:
        """Return the lower triangle of I_s^T M_s I_s, and the armatures of the cut joints of subsystem `s`."""
        out: dict[tuple[int, int], Scalar] = {}
        step("I^T M I")

        def add(a: int, b: int, x: Scalar) -> None:
            if b <= a:
                out[a, b] = out.get((a, b), 0.0) + x

        for (row, column), x in self.inertia(s).items():
            for a, e in self.jacobian[row].items():
                for b, f in self.jacobian[column].items():
                    add(a, b, e * x * f)
                    if row != column:
                        add(b, a, e * x * f)
        for i in (i for i in self.own(s) if i in self.cut.cuts):
            for k in self.tree.links[i].v_index:
                add(k, k, self.tree.links[i].armature)
        return out

    # -- coupling by forces

    @cached_property
    def cut_rows(self) -> tuple[list[ConstraintRow], list[list[Force]]]:
        """Constraint equations of the cut joints, and the working forces of all joints."""
        D, W = constraints(self.tree, self.q, self.bodies)
        return [row for row in D if row.joint in self.cut.cuts], W

    @cached_property
    def coordinate_forces(self) -> list[dict[int, LocalVector]]:
        """A unit force on each coordinate, as local forces by subsystem."""
        forces: list[dict[int, LocalVector]] = []
        joint_of = {k: (i, c) for i, link in enumerate(self.tree.links) for c, k in enumerate(link.v_index)}
        for k in range(self.tree.nv):
            i, c = joint_of[k]
            if i in self.cut.cuts:
                forces.append(self.shares(on_both_bodies(self.tree, self.bodies, i, self.cut_rows[1][i][c])))
            else:
                forces.append({self.cut.members[i]: {(-1, k): 1.0}})
        return forces

    def shares(self, forces: Mapping[int, Force]) -> dict[int, LocalVector]:
        """Return what each subsystem feels of `forces` on bodies."""
        members = sorted({self.cut.members[i] for i in forces})
        return {s: self.projected(s, forces, "Q") for s in members}

    def generalised(self, f: Mapping[int, Scalar]) -> dict[int, LocalVector]:
        """Return what each subsystem feels of generalised forces `f`, by index in v."""
        out: dict[int, LocalVector] = {}
        for k, x in f.items():
            for s, local in self.coordinate_forces[k].items():
                target = out.setdefault(s, {})
                for key, e in local.items():
                    target[key] = target.get(key, 0.0) + e * x
        return out

    def solved(self, s: int, M: Mapping[tuple[Key, Key], Scalar], f: LocalVector) -> LocalVector:
        """Return x_s with M_s x_s = f.

        Parameters
        ----------
        s
            Subsystem.
        M
            Its inertia matrix, as `inertia` returns it.
        f
            Local forces.
        """
        keys, rows, names = self.cut.keys(s), *self.triangle(s, M)
        return dict(zip(keys, solve(rows, [f.get(key, 0.0) for key in keys], names), strict=True))

    def triangle(self, s: int, M: Mapping[tuple[Key, Key], Scalar]) -> tuple[Rows, list[str]]:
        """Return M_s by rows, and the name of the body of each row.

        Parameters
        ----------
        s
            Subsystem.
        M
            Its inertia matrix, as `inertia` returns it.
        """
        keys = self.cut.keys(s)
        index = {key: n for n, key in enumerate(keys)}
        rows: Rows = [{} for _ in keys]
        for (a, b), x in M.items():
            rows[index[a]][index[b]] = x
        joints = {k: link.name for link in self.tree.links for k in link.v_index}
        return rows, [joints[k] if i < 0 else self.tree.links[i].name for i, k in keys]


@dataclass(frozen=True, eq=False)
class CoupledRow:
    """An equation that couples subsystems: its local parts, its right-hand side, and its compliance."""

    parts: dict[int, LocalVector]
    rate: Scalar = 0.0
    compliance: Scalar = 0.0


def inner(a: Mapping[Key, Scalar], b: Mapping[Key, Scalar]) -> Scalar:
    """Return the inner product of local vectors `a` and `b`."""
    return total(x * b[key] for key, x in a.items() if key in b)


def total(terms: Iterable[Scalar]) -> Scalar:
    """Return the sum of `terms`; zero without any."""
    out: Scalar = 0.0
    for x in terms:
        out = out + x
    return out
