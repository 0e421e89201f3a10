"""Force elements of a large mechanism: elements of one kind form a rolled loop over a table of their numbers.

    bodies that carry ends   their poses and velocities: a recursion, one outward pass (external_forces.py)
    elements                 each from its two ends, in world axes: a rolled loop for each kind
                             (forces/element_classes.py)
    joints                   the generalised forces of all elements: another recursion, one inward pass

An element from one end of a chain to the other thus costs no more than one between neighbours, and a thousand elements
need no more code than one. Elements without others of their kind are straight-line code between the same passes. For
few bodies, an element is a force on the coordinates between its ends (element_forces.py), which is less work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

from bellcrank.build import policy
from bellcrank.build.independent_loops import ElementClass, independent_loops
from bellcrank.build.recursion_layout import MOTION_AND_AXES_RESULTS
from bellcrank.dynamics.frame_pairs import FrameEnd
from bellcrank.forces import element_classes
from bellcrank.forces.element import Between, Coupling, Element
from bellcrank.graph.cells import RESULT
from bellcrank.graph.graph import Graph, Shape
from bellcrank.model import Mechanism
from bellcrank.parameters import Parameters
from bellcrank.scalar import Scalar, step
from bellcrank.sim.system import external_forces
from bellcrank.sim.system.element_forces import ElementResult, coupling_forces, end_forces
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat, Vec

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
