"""Force elements of a system: relative motion of their frames, generalised forces, and columns of the record.

An element between frames a and b depends on the motion of b relative to a. It acts on b, and with the opposite wrench,
at the same place, on a. In generalised coordinates both ends together give one row, taken relative to the last body
that carries both (dynamics/frame_pairs.py), so that an element between two bodies of a robot depends only on the joints
between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.dynamics.frame_pairs import FrameEnd, frame_pair, jacobian_row
from bellcrank.dynamics.tree_sweeps import poses
from bellcrank.errors import InputError, brief, warn
from bellcrank.forces.contact import Contact
from bellcrank.forces.element import Between, Coupling, Element
from bellcrank.forces.shapes import Box, Sphere, Terrain, inner_radius
from bellcrank.model import Mechanism, Tree
from bellcrank.parameters import nominal
from bellcrank.parameters.validation import check_numbers
from bellcrank.record.contents import COMPONENTS, RATES
from bellcrank.record.contents import units as joint_units
from bellcrank.scalar import Scalar, step
from bellcrank.sim.run_arguments import as_tuple, call_user_function, check_known, check_unique_names, named_scalars
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat, Vec, vec

AXES = ("x", "y", "z")
CHECKED_RUNS = 16  # runs of a batch whose start is checked
OVERLAP_CHECK_ROWS = 17  # rows of a run in which a terrain is compared with the shapes on it


class OverlapError(InputError):
    """A start with bodies inside each other. Callers that vary the start may find that another start is valid."""


@dataclass(frozen=True)
class ElementResult:
    """Result of one force element in one state."""

    element: Element
    torque: dict[int, Scalar]  # generalised force by element of v
    rates: list[Scalar]
    shown: list[Scalar]  # its columns, in the order of `element_columns`
    wrenches: Sequence[tuple[str, list[Scalar]]] = ()  # on bodies, in world axes, if not contained in `torque`


def checked_elements(mechanism: Mechanism, value: Any) -> tuple[Element, ...]:
    """Return the force elements `value` for `mechanism`, or raise an InputError for one that cannot be."""
    elements = as_tuple("elements", value, "force elements")
    single = [name for name in mechanism.columns[1] if name in mechanism.columns[0]]
    for e in elements:
        if not isinstance(e, Between | Coupling):
            raise InputError(f"elements: {brief(e)} is not a force element (Between, Coupling); see bellcrank.forces.")
        check_numbers(e, "elements")
        where = f'{type(e).__name__} "{e.name}" of "{mechanism.name}"'
        if isinstance(e, Between):
            check_known(where, "frame", (e.a, e.b), mechanism.frames)
            if mechanism.frames[e.a].body == mechanism.frames[e.b].body:
                raise InputError(
                    f'{where}: "{e.a}" and "{e.b}" are on one body, and cannot move relative to each other.'
                )
        if isinstance(e, Coupling):
            check_known(where, "joint", e.joints, single)
    check_unique_names("element", [e.name for e in elements])
    return elements


def element_columns(mechanism: Mechanism, elements: Sequence[Element]) -> dict[str, str]:
    """Return the record columns of `elements` of `mechanism` with their units: forces, stored energy and power loss."""
    measured = dict(zip(mechanism.columns[1], joint_units(mechanism)[1], strict=True))
    units_by_column: dict[str, str] = {}
    for e in elements:
        force = {c: "N" if c[0] == "f" else "N m" for c in COMPONENTS}
        if isinstance(e, Coupling):
            force = {joint: RATES[measured[joint]][2] for joint in e.joints}
        units_by_column |= {f"{e.name}.{key}": unit for key, unit in {**force, "energy": "J", "loss": "W"}.items()}
    return units_by_column


def element_description(e: Element) -> dict[str, Any]:
    """Return the description of the element `e` that a record keeps."""
    where = {"frames": [e.a, e.b]} if isinstance(e, Between) else {"joints": list(getattr(e, "joints", ()))}
    return {"what": str(e), **where}


def element_result(
    mechanism: Mechanism, e: Element, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], x: Sequence[Scalar]
) -> ElementResult:
    """Return what one force element does in one state.

    Parameters
    ----------
    mechanism
        The mechanism with its frames and joints.
    e
        The force element.
    t
        Time, s.
    q, v
        Positions and velocities of the mechanism.
    x
        States of the element.
    """
    step("element", e.name)
    if isinstance(e, Coupling):
        return _coupling_result(mechanism, e, t, q, v, x)
    assert isinstance(e, Between)
    return _between_result(mechanism, e, t, q, v, x)


def _coupling_result(m: Mechanism, e: Coupling, t: Scalar, q: Any, v: Any, x: Any) -> ElementResult:
    v_indices = [m.columns[1].index(joint) for joint in e.joints]
    joint_state = [q[m.columns[0].index(joint)] for joint in e.joints], [v[k] for k in v_indices]
    force, rates = coupling_forces(e, t, *joint_state, x)
    energy_and_loss = [e.energy(t, joint_state[0], x), e.loss(t, *joint_state, x)]
    return ElementResult(e, dict(zip(v_indices, force, strict=True)), rates, [*force, *energy_and_loss])


def coupling_forces(e: Coupling, t: Scalar, q: Any, v: Any, x: Any) -> tuple[list[Scalar], list[Scalar]]:
    """Return the forces on the joints of a coupling and the rates of its states.

    Parameters
    ----------
    e
        The coupling.
    t
        Time, s.
    q, v
        Positions and velocities of its joints.
    x
        States of the coupling.
    """
    description = f'{type(e).__name__} "{e.name}"'
    force, rates = call_user_function(description, e, t, q, v, x, expected="(t, q, v, x)")
    return named_scalars(description, force, e.joints), list(rates)


def _between_result(m: Mechanism, e: Between, t: Scalar, q: Any, v: Any, x: Any) -> ElementResult:
    tree = m.tree
    a, b = frame_pair(tree, e.a, e.b, q, v)
    step("element", e.name)
    pull = end_forces(e, t, a, b, x)
    f, n, moment_on_a = pull.f, pull.n, pull.moment_on_a
    torque = jacobian_row(
        a, b, lambda s: -(f.dot(s.lin) + moment_on_a.dot(s.ang)), lambda s: f.dot(s.lin) + n.dot(s.ang)
    )  # fmt: skip
    from bellcrank.dynamics.loops.loop_layer import common_axes

    R = common_axes(tree, e.a, e.b, q)
    on_b = [*(R @ f), *(R @ n)]
    return ElementResult(e, torque, pull.rates, [*on_b, *pull.energy_and_loss(t, x)])


@dataclass(frozen=True)
class EndForces:
    """Forces of an element on its ends: f and n on b at its origin, -f and -back on a; all in common axes."""

    element: Between
    f: Vec
    n: Vec
    moment_on_a: Vec
    rates: list[Scalar]
    pose: Any
    velocity: list[Scalar]

    def energy_and_loss(self, t: Scalar, x: Any) -> list[Scalar]:
        """Return the stored energy and the power loss at the time `t`, with the states `x` of the element."""
        e = self.element
        return [e.energy(t, self.pose, x), e.loss(t, self.pose, self.velocity, x)]


def end_forces(e: Between, t: Scalar, a: FrameEnd, b: FrameEnd, x: Any) -> EndForces:
    """Return the forces of an element on its ends.

    Parameters
    ----------
    e
        The force element.
    t
        Time, s.
    a, b
        Its ends.
    x
        States of the element.
    """
    description = f'{type(e).__name__} "{e.name}"'
    pose, velocity, d = relative_motion(a, b)
    force, moment, rates = call_user_function(description, e, t, pose, velocity, x, expected="(t, pose, velocity, x)")
    f = a.R @ vec(named_scalars(description, force, AXES))
    n = a.R @ vec(named_scalars(f"moment of {description}", moment, AXES))
    return EndForces(e, f, n, n + d.cross(f), list(rates), pose, velocity)


def check_start(mechanism: Mechanism, elements: Sequence[Element], q: Any, label: str = "q0") -> None:
    """Raise an OverlapError if bodies in contact overlap so much at the start that they would be shot apart.

    Parameters
    ----------
    mechanism
        The mechanism.
    elements
        Its force elements.
    q
        Initial positions, (runs, nq); only the first few runs are checked.
    label
        Argument that gave the start.
    """
    contacts = [nominal(e) for e in elements if isinstance(e, Contact)]
    if not contacts:
        return
    tree = (mechanism.at() if mechanism.parameters else mechanism).tree
    for k, one in enumerate(q[:CHECKED_RUNS]):
        places = poses(tree, one.tolist())
        for e in contacts:
            ours, theirs = (_frame_at_rest(tree, places, frame) for frame in (e.a, e.b))
            deep, most = e.started_inside(relative_motion(ours, theirs)[0]), 0.5 * inner_radius(e.shape_b)
            if most and deep > most:
                run = f" (run {k})" if len(q) > 1 else ""
                raise OverlapError(
                    f'{label}{run}: bodies start inside each other: contact "{e.name}", "{e.b}" in "{e.a}" by '
                    f"{deep:.3g} m. They would be shot apart. Start further away: move what is free, "
                    "or give another start."
                )


def partial_contacts(elements: Sequence[Element]) -> list[Contact]:
    """Return the contacts in `elements` whose shapes can enter each other between their contact points."""
    contacts = [e for e in elements if isinstance(e, Contact)]
    return [
        nominal(e)
        for e in contacts
        if (isinstance(e.shape_a, Terrain) and not isinstance(e.shape_b, Sphere))
        or (isinstance(e.shape_a, Box) and isinstance(e.shape_b, Box))
    ]


def warn_unfelt_overlaps(mechanism: Mechanism, contacts: Sequence[Contact], t: Any, q: Any) -> list[Contact]:
    """Warn if shapes were inside each other between their contact points, without a force; return the other contacts.

    Parameters
    ----------
    mechanism
        The mechanism.
    contacts
        Contacts, from `partial_contacts`.
    t
        Times of the rows, (runs, rows).
    q
        Positions, (runs, rows, nq); a few rows of every run are compared.
    """
    tree = (mechanism.at() if mechanism.parameters else mechanism).tree
    silent = list(contacts)  # those without a warning so far
    rows = np.unique(np.linspace(0, q.shape[1] - 1, OVERLAP_CHECK_ROWS).astype(int))
    for time, positions in zip(t[:, rows].flat, q[:, rows].reshape(-1, q.shape[-1]), strict=True):
        if not np.isfinite(positions).all():
            continue
        places = poses(tree, positions.tolist())
        for e in tuple(silent):
            a, b = (_frame_at_rest(tree, places, frame) for frame in (e.a, e.b))
            depth = e.unfelt_depth(relative_motion(a, b)[0])
            if depth:
                silent.remove(e)
                warn(_overlap_text(e, time, depth))
        if not silent:
            break
    return silent


def _overlap_text(e: Contact, time: float, depth: float) -> str:
    if isinstance(e.shape_a, Box):
        return (
            f'Contact "{e.name}": at t = {time:.4g} s the boxes on "{e.a}" and "{e.b}" are {depth:.3g} m inside each '
            "other between contact points, which are the corners of the second and the edges of one face of the first, "
            "so that no force acts there. Exchange the two frames, or use several shorter boxes."
        )
    return (
        f'Contact "{e.name}": at t = {time:.4g} s the terrain on "{e.a}" reaches {depth:.3g} m into the '
        f'{type(e.shape_b).__name__} on "{e.b}" between its contact points, which are at its ends or corners, so that '
        "no force acts there. Use several spheres along the shape, closer to each other than the bumps of the terrain "
        "are wide."
    )


def _frame_at_rest(tree: Tree, places: Sequence[tuple[Mat, Vec]], frame: str) -> FrameEnd:
    """Return a frame at rest, in the world."""
    body, R_frame, p_frame = tree.frames[frame]
    R, p = places[body] if body >= 0 else tree.ground.pose(IDENTITY, ZERO)
    return FrameEnd(R.times(R_frame), p + R @ p_frame, [], ZERO, ZERO, ZERO, ZERO)


def relative_motion(a: FrameEnd, b: FrameEnd) -> tuple[Any, list[Scalar], Vec]:
    """Return pose (4x4) and velocity of `b` relative to `a` in a's axes, and their distance vector in common axes."""
    d = b.p - a.p
    turn: Mat = a.R.T
    R, p = turn.times(b.R), turn @ d
    u, w = turn @ (b.u - a.u - a.w.cross(d)), turn @ (b.w - a.w)
    pose = np.array([*([*r, s] for r, s in zip(R.rows, p, strict=True)), [0.0, 0.0, 0.0, 1.0]], object)
    return pose, [*u, *w], d
