"""Force elements of a system: relative motion of their frames, generalised forces, and columns of the record.

An element between frames a and b depends on the motion of b relative to a. It acts on b, and with the opposite wrench,
at the same place, on a. In generalised coordinates both ends together give one row, taken relative to the last body
that carries both (dynamics/frame_pairs.py), so that an element between two bodies of a robot depends only on the joints
between them.

In a large mechanism, elements of one kind form a rolled loop over a table of their numbers:

    bodies that carry ends   their poses and velocities: a recursion, one outward pass (external_forces.py)
    elements                 each from its two ends, in world axes: a rolled loop for each kind
                             (forces/element_classes.py)
    joints                   the generalised forces of all elements: another recursion, one inward pass

An element from one end of a chain to the other thus costs no more than one between neighbours, and a thousand elements
need no more code than one. Elements without others of their kind are straight-line code between the same passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

import numpy as np

from bellcrank.build import policy
from bellcrank.build.independent_loops import ElementClass, independent_loops
from bellcrank.build.recursion_layout import MOTION_AND_AXES_RESULTS
from bellcrank.dynamics.frame_pairs import FrameEnd, frame_pair, jacobian_row
from bellcrank.dynamics.tree_sweeps import poses
from bellcrank.errors import InputError, brief, warn
from bellcrank.forces import element_classes
from bellcrank.forces.bearings import BearingFriction
from bellcrank.forces.contact import Contact
from bellcrank.forces.element import Between, Coupling, Element
from bellcrank.forces.latch import Latch
from bellcrank.forces.shapes import Box, Sphere, Terrain, inner_radius
from bellcrank.graph.cells import RESULT
from bellcrank.graph.graph import Graph, Shape
from bellcrank.model import Mechanism, Tree
from bellcrank.parameters import Parameters, nominal
from bellcrank.parameters.validation import check_numbers
from bellcrank.record.contents import COMPONENTS, RATES
from bellcrank.record.contents import units as joint_units
from bellcrank.scalar import Scalar, step
from bellcrank.sim.run_arguments import as_tuple, call_user_function, check_known, check_unique_names, named_scalars
from bellcrank.sim.system import external_forces
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
        if not isinstance(e, Between | Coupling | BearingFriction | Latch):
            raise InputError(
                f"elements: {brief(e)} is not a force element (Between, Coupling, BearingFriction, Latch); "
                "see bellcrank.forces."
            )
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


FRAME_NUMBERS = 12  # numbers of a frame: its position and orientation on its body

Numbers = Sequence[Scalar]
Wrench = tuple[str, list[Scalar]]


@dataclass(frozen=True, eq=False)
class ElementPasses:
    """Passes over all force elements of a system; graphs are cached, so that equal calls share one."""

    mechanism: Mechanism
    elements: tuple[Element, ...]
    parameters: Parameters

    def acts(self, t: Scalar, q: Numbers, v: Numbers, x: Numbers, shown: bool) -> list[ElementResult]:
        """Return what each element does.

        Parameters
        ----------
        t
            Time, s.
        q, v
            Positions and velocities of the mechanism.
        x
            States of all elements.
        shown
            Include stored energy and power loss.
        """
        known: dict[str, Numbers] = {"t": [t], "q": q, "v": v, "x": x, "bodies": ()}
        if self.carriers:
            known["bodies"] = external_forces.call_graph(self.mechanism, self.outward_graph, q=q, v=v)
        numbers_by_element = self._rolled_results(known, shown) if self.kinds else {}
        results = []
        for i, e in enumerate(self.elements):
            if i not in numbers_by_element:
                names, constants = list(self.input_indices[i]), self._constants(e)
                read_values = [[known[name][k] for k in indices] for name, indices in self.input_indices[i].items()]
                numbers_by_element[i] = self.law(e, names, shown, constants, *read_values)
            results.append(self._element_result(e, numbers_by_element[i]))
        return results

    def _rolled_results(self, known: Mapping[str, Numbers], shown: bool) -> dict[int, list[Scalar]]:
        """Return the results of elements in rolled loops, by the number of the element."""
        graph = self._shown if shown else self._acting
        free = {"p": self.parameters.leaves} if self.parameters else {}
        graph_inputs = {name: list(known[name]) for name in graph.inputs if name != "p"}
        numbers = list(graph.call(**graph_inputs, **free)["acts"])
        return {i: [numbers[k] for k in slots] for i, slots in self._result_slots(shown).items()}

    def generalised_forces(self, wrenches: Sequence[Wrench], q: Numbers) -> list[Scalar]:
        """Return the generalised forces, (nv,), of `wrenches` on bodies in the configuration `q`."""
        count = Counter(body for body, _ in wrenches)
        acts = [(body, wrench) for body, wrench in wrenches if count[body] <= policy.MAX_BODY_WRENCHES]
        for body in (body for body, n in count.items() if n > policy.MAX_BODY_WRENCHES):
            first, *more = (wrench for index, wrench in wrenches if index == body)
            acts.append((body, [sum(column, x) for x, *column in zip(first, *more, strict=True)]))
        return external_forces.generalised_forces(self.mechanism, acts, q)

    # -- frames and bodies

    @cached_property
    def carriers(self) -> dict[str, int]:
        """Bodies that carry ends of elements, in the order of the outward pass."""
        ends = [body for e in self.elements if isinstance(e, Between) for body in self._bodies(e)]
        return {body: i for i, body in enumerate(dict.fromkeys(ends))}

    @cached_property
    def outward_graph(self) -> Graph:
        """Graph of the outward pass to the carriers."""
        return external_forces.outward_graph(self.mechanism, list(self.carriers))

    def _bodies(self, e: Between) -> list[str]:
        """Return the bodies of its two ends, without the ground."""
        return [body for body in map(self._body, (e.a, e.b)) if body]

    def _body(self, frame: str) -> str:
        """Return the name of the body that carries a frame; "" is the ground."""
        body = self.mechanism.tree.frames[frame][0]
        return self.mechanism.tree.links[body].name if body >= 0 else ""

    def _frame_numbers(self, frame: str) -> list[Scalar]:
        """Return the pose of a frame on its body, or in the world if it is fixed to the ground."""
        if self._body(frame):
            f = self.mechanism.frames[frame]
            return [*f.point, *(x for row in f.rotation for x in row)]
        _, R, p = self.mechanism.tree.frames[frame]
        ground, origin = self.mechanism.tree.ground.pose(IDENTITY, ZERO)
        return [*(origin + ground @ p), *(x for row in ground.times(R).rows for x in row)]

    # -- kinds

    @cached_property
    def kinds(self) -> list[list[int]]:
        """Numbers of the elements of each kind; kinds with few elements are left out."""
        members_by_kind: dict[Any, list[int]] = {}
        for i, e in enumerate(self.elements):
            carried_ends = (bool(self._body(e.a)), bool(self._body(e.b))) if isinstance(e, Between) else ()
            if not (self.parameters and element_classes.may_hide_parameters(e)):
                members_by_kind.setdefault((carried_ends, element_classes.class_key(e)), []).append(i)
        return [members for members in members_by_kind.values() if len(members) >= policy.MIN_KIND_ELEMENTS]

    @cached_property
    def _shown(self) -> Graph:
        return self._graph(True)

    @cached_property
    def _acting(self) -> Graph:
        return self._graph(False)

    def _graph(self, shown: bool) -> Graph:
        """Return the graph (t, q, v, x, bodies, p) -> results of all elements in rolled loops."""
        m = self.mechanism
        states = sum(len(e.states) for e in self.elements)
        sizes = {"t": 1, "q": m.nq, "v": m.nv, "x": states, "bodies": MOTION_AND_AXES_RESULTS * len(self.carriers)}
        used_inputs = [name for name in sizes if any(self.input_indices[members[0]][name] for members in self.kinds)]
        slots, kinds = self._result_slots(shown), []
        for members in self.kinds:
            like = self.elements[members[0]]
            member_indices = {name: [self.input_indices[i][name] for i in members] for name in used_inputs}
            member_indices[RESULT] = [slots[i] for i in members]
            rows = [self._constants(self.elements[i]) for i in members]
            law = partial(self.law, like, used_inputs, shown)
            kinds.append(ElementClass(law, f"{type(like).__name__} as {like.name}", like.name, rows, member_indices))
        inputs: dict[str, Shape] = {name: (sizes[name],) for name in used_inputs}
        output = "acts", sum(map(len, slots.values()))
        return independent_loops(f"{m.name}.elements", inputs, output, kinds, self.parameters)

    def _result_slots(self, shown: bool) -> dict[int, tuple[int, ...]]:
        """Return where the results of each element lie: forces of all, then rates of all, then shown numbers of all.

        In this order each of the three is one contiguous block.
        """
        slots: dict[int, tuple[int, ...]] = dict.fromkeys(sorted(i for members in self.kinds for i in members), ())
        offset = 0
        for block in range(2 + shown):
            for i in slots:
                size = self._sizes(self.elements[i])[block]
                slots[i] += tuple(range(offset, offset + size))
                offset += size
        return slots

    @cached_property
    def input_indices(self) -> list[dict[str, tuple[int, ...]]]:
        """Indices of the inputs that each element reads, by the name of the input."""
        names, ends = self.mechanism.columns, accumulate((len(e.states) for e in self.elements), initial=0)
        indices = []
        for e, first_state in zip(self.elements, ends, strict=False):
            q, v = ([columns.index(joint) for joint in getattr(e, "joints", ())] for columns in names)
            carrier_indices = [self.carriers[body] for body in self._bodies(e)] if isinstance(e, Between) else []
            bodies = [MOTION_AND_AXES_RESULTS * k + i for k in carrier_indices for i in range(MOTION_AND_AXES_RESULTS)]
            own_states = range(first_state, first_state + len(e.states))
            element_indices = {"t": [0], "q": q, "v": v, "x": own_states, "bodies": bodies}
            indices.append({name: tuple(input_places) for name, input_places in element_indices.items()})
        return indices

    # -- one element

    def _constants(self, e: Element) -> list[Scalar]:
        return [*element_classes.varying_numbers(e), *(x for frame in _frames(e) for x in self._frame_numbers(frame))]

    def _sizes(self, e: Element) -> tuple[int, int, int]:
        """Return the numbers of forces, of rates of states, and of shown values of an element."""
        if isinstance(e, Between):
            return 6 * len(self._bodies(e)), len(e.states), 8
        return len(getattr(e, "joints", ())), len(e.states), 2

    def law(
        self, like: Element, names: Sequence[str], shown: bool, constants: Numbers, *given: Numbers
    ) -> list[Scalar]:
        """Return the forces on joints, or wrenches on bodies in world axes, then rates of states, then shown values.

        Parameters
        ----------
        like
            An element of the kind.
        names
            Names of the inputs in `given`.
        shown
            Include the shown values.
        constants
            Numbers of the element and of its frames.
        *given
            Inputs that the element reads.
        """
        step("element", like.name)
        values = {"x": [], **dict(zip(names, given, strict=True))}
        numbers = iter(constants)
        e = element_classes.replace_numbers(like, numbers)
        (t,), x = values["t"], values["x"]
        if isinstance(e, Coupling):
            q, v = values["q"], values["v"]
            force, rates = coupling_forces(e, t, q, v, x)
            return [*force, *rates, *([e.energy(t, q, x), e.loss(t, q, v, x)] if shown else [])]
        assert isinstance(e, Between)
        seen, size = values["bodies"], MOTION_AND_AXES_RESULTS
        bodies = iter([external_forces.frame_end(seen[i : i + size]) for i in range(0, len(seen), size)])
        carriers = [next(bodies) if self._body(f) else None for f in _frames(e)]
        ends = [_CarriedFrame(carrier, [next(numbers) for _ in range(FRAME_NUMBERS)]) for carrier in carriers]
        pull = end_forces(e, t, ends[0].end, ends[1].end, x)
        out: list[Scalar] = []
        for end, f, n in zip(ends, (-pull.f, pull.f), (-pull.moment_on_a, pull.n), strict=True):
            out += end.wrench(f, n)
        return [*out, *pull.rates, *([*pull.f, *pull.n, *pull.energy_and_loss(t, x)] if shown else [])]

    def _element_result(self, e: Element, numbers: list[Scalar]) -> ElementResult:
        """Return the ElementResult of an element from the numbers that its law gave."""
        if isinstance(e, Coupling):
            v_indices = [self.mechanism.columns[1].index(joint) for joint in e.joints]
            force, tail = numbers[: len(v_indices)], numbers[len(v_indices) :]
            torque = dict(zip(v_indices, force, strict=True))
            return ElementResult(e, torque, tail[: len(e.states)], [*force, *tail[len(e.states) :]])
        assert isinstance(e, Between)
        bodies = self._bodies(e)
        wrenches = [(body, numbers[6 * k : 6 * k + 6]) for k, body in enumerate(bodies)]
        tail = numbers[6 * len(bodies) :]
        return ElementResult(e, {}, tail[: len(e.states)], tail[len(e.states) :], wrenches)


def _frames(e: Element) -> tuple[str, ...]:
    return (e.a, e.b) if isinstance(e, Between) else ()


class _CarriedFrame:
    """Frame on a carrier body, or on the ground."""

    def __init__(self, body: FrameEnd | None, placed: Numbers) -> None:
        p, *rows = (Vec(*placed[i : i + 3]) for i in range(0, FRAME_NUMBERS, 3))
        self.body = body
        self.end = FrameEnd(Mat(*rows), p, [], ZERO, ZERO, ZERO, ZERO)
        if body is not None:
            self.arm = body.R @ p
            u = body.u + body.w.cross(self.arm)
            self.end = FrameEnd(body.R.times(Mat(*rows)), body.p + self.arm, [], body.w, u, ZERO, ZERO)

    def wrench(self, f: Vec, n: Vec) -> list[Scalar]:
        """Return the wrench on the body, at its origin."""
        return [] if self.body is None else [*f, *(n + self.arm.cross(f))]
