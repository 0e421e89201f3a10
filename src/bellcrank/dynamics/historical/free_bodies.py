"""Free bodies in common axes: pose, motion and load at the centre of mass.

The notation follows nikravesh1989, section 2.1, and schaefer1992, section 2.

    A_i   axes of body i                     J_i   inertia about the centre of mass, in common axes
    r_i   its centre of mass                 u_j   columns of joint j: how its frame F_j moves, at the origin p_j of F_j
    M_i   [J_i, m_i] as an Inertia           d_ji  = r_i - p_j, from joint j to the centre of body i (d_i where j is i)
    B_ik  block of body i and coordinate k: [-d~ u; u]

Common axes are those of the internal ground frame, in which the gravity of a Tree is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bellcrank.dynamics.historical.inertial_frame import inertial_poses
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches, external_forces, joint_elements, subspace_motion
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, is_zero, step
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import FullRotation, Shift
from bellcrank.spatial.vector import AXES, NO_MOTION, ZERO, Acceleration, Force, Mat, Motion, Vec, vec


@dataclass(slots=True, eq=False)
class PlacedBody:
    """Pose, inertia and joint columns of one body, in common axes."""

    A: Mat
    p: Vec
    d: Vec
    r: Vec
    M: Inertia
    u: list[Motion]
    H: list[Motion]  # the same columns at the centre
    du: Motion  # acceleration due to the change of the columns in F: (dS/dt) v
    fixed: bool  # the columns are constant in common axes instead of rotating with the body: see `place_bodies`

    def force(self, f: Force) -> Force:
        """Express a force `f` in F about its origin in common axes about the centre of mass."""
        f = f.rotated(self.A)
        return Force(f.ang - self.d.cross(f.lin), f.lin)

    def frame_acceleration(self, w: Vec, dv: Motion, gravity: Vec) -> Acceleration:
        """Return the acceleration of F less gravity, in its axes.

        Parameters
        ----------
        w
            Angular velocity of the body.
        dv
            Acceleration of its centre.
        gravity
            Acceleration due to gravity.
        """
        origin = dv.lin - dv.ang.cross(self.d) - w.cross(w.cross(self.d)) - gravity
        return Acceleration(self.A.T @ w, self.A.T @ dv.ang, self.A.T @ origin)


def place_bodies(tree: Tree, q: Vector, v: Vector | None = None, common: bool = False) -> list[PlacedBody]:
    """Return every body with its joint's columns.

    With `common`, joints that rotate (or slide) freely have their columns along the common axes, where most elements
    are zeros and ones: the block of a ball joint is then [-d~; 1]. `to_common` and `from_common` convert velocities,
    forces and accelerations accordingly.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    common
        Use common axes where possible.
    """
    placed_bodies: list[PlacedBody] = []
    for link, (A, p) in zip(tree.links, inertial_poses(tree, q), strict=True):
        step("r", link.name)
        centre = link.inertia.centre
        d = A @ centre
        step("J", link.name)
        M = FullRotation(A).inertia(link.inertia.central)
        step("u", link.name)
        S = link.subspace(q)
        fixed = common and _spans_all_directions(S) and not link.armature  # the axes of a rotor rotate
        u = S if fixed else [s.rotated(A) for s in S]
        H = [Shift(d).motion(s) for s in S] if fixed else [Shift(centre).motion(s).rotated(A) for s in S]
        du = link.bias(q, v if v is not None else [0.0] * tree.nv).rotated(A)
        placed_bodies.append(PlacedBody(A, p, d, p + d, M, u, H, du, fixed))
    return placed_bodies


def _spans_all_directions(S: list[Motion]) -> bool:
    """Return True if the columns are the rotations about the axes of F, the translations along them, or both."""
    triples = [S[c : c + 3] for c in range(0, len(S), 3)]
    return all(
        _are_axes([s.ang, s.lin] for s in three) or _are_axes([s.lin, s.ang] for s in three) for three in triples
    )


def _are_axes(pairs: Iterable[Sequence[Vec]]) -> bool:
    """Return True if the first vectors of the `pairs` are the three axes, and the second ones are zero."""
    first, second = zip(*pairs, strict=True)
    same = len(first) == 3 and all(is_zero_vector(x - e) for x, e in zip(first, AXES, strict=True))
    return same and all(map(is_zero_vector, second))


def is_zero_vector(x: Vec) -> bool:
    """Return True if the vector `x` is identically zero."""
    return all(is_zero(e) for e in x)


def to_common(tree: Tree, bodies: Sequence[PlacedBody], x: Vector) -> list[Scalar]:
    """Convert a velocity or generalised force to common axes, for the joints that use them.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    bodies
        Bodies, as `place_bodies` returns them.
    x
        Vector of nv elements, in the bodies' axes.
    """
    out = list(x)
    for link, body in zip(tree.links, bodies, strict=True):
        step("common", link.name)
        for three in _common_triples(link, body):
            for k, e in zip(three, body.A @ vec([x[k] for k in three]), strict=True):
                out[k] = e
    return out


def from_common(tree: Tree, bodies: Sequence[PlacedBody], w: Sequence[Vec], v: Vector, a: Vector) -> list[Scalar]:
    """Convert accelerations back to the bodies' own axes: as these rotate with w, A^T (a - w x v).

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    bodies
        Bodies, as `place_bodies` returns them.
    w
        Angular velocity of each body.
    v
        Velocities, in common axes.
    a
        Accelerations, in common axes.
    """
    out = list(a)
    for link, body, wj in zip(tree.links, bodies, w, strict=True):
        step("common", link.name)
        for three in _common_triples(link, body):
            turning = wj.cross(vec([v[k] for k in three]))
            for k, e in zip(three, body.A.T @ (vec([a[k] for k in three]) - turning), strict=True):
                out[k] = e
    return out


def _common_triples(link: Link, body: PlacedBody) -> list[tuple[int, ...]]:
    return [link.v_index[c : c + 3] for c in range(0, len(link.v_index), 3)] if body.fixed else []


def _coincide(a: Vec, b: Vec) -> bool:
    """Return True if two points coincide in every state, as the origins in a wrist do: then distances are reused."""
    return all(x is y for x, y in zip(a, b, strict=True))


def joint_to_centre(joint: PlacedBody, body: PlacedBody) -> Shift:
    """Return d_ji as a transform, from the `joint` of one body to the centre of another `body`."""
    return Shift(body.d if _coincide(joint.p, body.p) else body.r - joint.p)


def centre_to_centre(up: PlacedBody, body: PlacedBody) -> Shift:
    """Return the transform from the centre of the body `up` to that of `body`."""
    return Shift(body.d - up.d if _coincide(up.p, body.p) else body.r - up.r)


def body_jacobians(tree: Tree, bodies: Sequence[PlacedBody]) -> list[dict[int, Motion]]:
    """Return the columns [-d~ u; u] of each body for every coordinate on its path, summed where joints share one.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    bodies
        Bodies, as `place_bodies` returns them.
    """
    body_rows = []
    for i, link in enumerate(tree.links):
        step("B", link.name)
        row: dict[int, Motion] = {}
        for j in reversed(tree.path(i)):
            H = bodies[i].H if j == i else [joint_to_centre(bodies[j], bodies[i]).motion(u) for u in bodies[j].u]
            for h, k in zip(H, tree.links[j].v_index, strict=True):
                row[k] = row.get(k, NO_MOTION) + h
        body_rows.append(row)
    return body_rows


def applied_forces(
    tree: Tree, q: Vector, bodies: Sequence[PlacedBody], frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Force]:
    """Return gravity and external wrenches on each body.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    bodies
        Bodies, as `place_bodies` returns them.
    frames
        Names of the frames on which wrenches act.
    wrench
        [force, moment] for each of these frames, in world axes at its origin.
    """
    body_forces = []
    for link, body, f in zip(tree.links, bodies, external_forces(tree, q, frames, wrench), strict=True):
        step("g", link.name)
        body_forces.append(body.force(f) + Force(ZERO, tree.gravity * body.M.m))
    return body_forces


@dataclass(slots=True, eq=False)
class VelocityPropagation:
    """Propagation of velocity from the parent: v_j = G_j v_i + H_j theta_j' (eq 28)."""

    G: Shift  # from the parent's centre to this body's
    gamma: Motion  # G_j' v_i + H_j' theta_j' (eq 30)
    w: Vec  # angular velocity


def propagate_velocities(tree: Tree, bodies: list[PlacedBody], v: Vector) -> list[VelocityPropagation]:
    """Return the velocity propagation of every body.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    bodies
        Bodies, as `place_bodies` returns them.
    v
        Velocities, nv elements.
    """
    propagations: list[VelocityPropagation] = []
    for link, b in zip(tree.links, bodies, strict=True):
        step("v", link.name)
        h, wi = subspace_motion(b.H, joint_elements(link, v)), propagations[link.parent].w if link.parent >= 0 else ZERO
        G = centre_to_centre(bodies[link.parent], b) if link.parent >= 0 else Shift(b.r)
        step("gamma", link.name)
        wj, ds = wi + h.ang, Shift(b.d).motion(b.du)
        turning = Motion(ZERO, h.ang.cross(wj.cross(b.d))) if b.fixed else Motion(wi.cross(h.ang), wj.cross(h.lin))
        rate = wi.cross(G.r) + h.lin  # rate of G.r
        gamma = Motion(ZERO, wi.cross(rate)) + turning + ds  # 30
        propagations.append(VelocityPropagation(G, gamma, wj))
    return propagations
