"""Fijany's processor array as a machine: its layout, its two kinds of synchronisation, and frames of projection.

Slide "Algorithm-To-Architecture Mapping": the processors of a column are connected by a shuffle-exchange network and by
nearest neighbours (SENN), those of a row by nearest neighbours. Every column computes its part of the mass matrix with
V N-E B in the frame of the last body, as the three steps of the unnamed slides list it, and the columns do not
communicate: rotations and positions are computed in each of them.

    PR_ji   processor of row j in column i, in place k = j - i of its column

Recursive doubling combines the values of rows k and k + 2^eta. On nearest neighbours they are 2^eta hops apart. On
SENN the values move: before stage eta, row k is at the place whose binary number is k, rotated right by eta digits.
There its partner is the next place, and a rotation by one digit is a shuffle, which takes one hop. The message costs of
a stage are therefore those of two hops, and their sum over all stages is O(log n) instead of O(n).

Synchronisation: "data driven" waits for values only (wavefront). With a "clock" all processors of a column, or of the
array, begin a step together, when the slowest of them has finished the step before and its messages have arrived
(systolic).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from bellcrank.build import graphs
from bellcrank.dynamics import METHODS
from bellcrank.dynamics.quantities import Request
from bellcrank.graph import Graph, trace
from bellcrank.model import Mechanism, Tree
from bellcrank.papers import operation_counts as papers
from bellcrank.papers.fijany import UNIT_COSTS, ProcessorArray, count_busiest
from bellcrank.papers.generalised_speeds import Choice, GeneralisedSpeeds, absolute_rates, joint_rates
from bellcrank.papers.wong.atom_programs import ProcessorTape
from bellcrank.scalar import Scalar, step
from bellcrank.scheduling import Machine, Schedule, Task, Tasks, tasks
from bellcrank.scheduling.machines import Topology, machine_of_kind
from bellcrank.scheduling.placement import Placement, Plan, upward_rank
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat, Vec
from bellcrank.text_table import Table
from bellcrank.zoo import planar3r, puma600

LAYOUTS = ("senn", "nearest")
LABEL_PATTERN = re.compile(r"([^(\[]*)\((\d+),(\d+)\)\[.*\]")  # equation, column, place
SIZES = (4, 8, 16, 32)
MAX_CLOCKED_JOINTS = 16


@dataclass(frozen=True)
class ColumnPlaces:
    """Places of the processors of one column: as many as the next power of two, so that values can be shuffled."""

    rows: int

    @property
    def digits(self) -> int:
        """Number of binary digits of a place."""
        return (self.rows - 1).bit_length()

    def rotated(self, k: int, stage: int) -> int:
        """Return the place of row `k` after the shuffles before a `stage` of recursive doubling."""
        d = self.digits
        eta = stage % d if d else 0
        return (k >> eta) | ((k & ((1 << eta) - 1)) << (d - eta))


def array_topology(n: int, layout: str) -> Topology:
    """Return the processors of all columns of `n` joints in a `layout` and their links, column by column."""
    columns = [ColumnPlaces(n - i) for i in range(n)]
    first = np.cumsum([0, *(1 << c.digits for c in columns)])
    links: dict[int, dict[int, None]] = defaultdict(dict)

    def join(a: int, b: int) -> None:
        if a != b:
            links[a][b] = links[b][a] = None

    for i, column in enumerate(columns):
        base, size = int(first[i]), 1 << column.digits
        for k in range(size):
            if k + 1 < size:
                join(base + k, base + k + 1)
            if layout == "senn" and column.digits:
                join(base + k, base + column.rotated(k, 1))
            if i and k < n - i:
                join(base + k, int(first[i - 1]) + k + 1)  # the same row in the column before
    count = int(first[-1])
    places = tuple((float(i), float(k)) for i, c in enumerate(columns) for k in range(1 << c.digits))
    return Topology(f"{layout}({n})", tuple(tuple(links[p]) for p in range(count)), places)


class _Column:
    """Recorder of the program of one column."""

    def __init__(self, tape: ProcessorTape, column: int, rows: int, layout: str) -> None:
        self.tape, self.column, self.layout = tape, column, layout
        self.places = ColumnPlaces(rows)
        self.rows = range(rows)
        self.steps = 0

    def at(self, equation: str, k: int, stage: int = 0) -> None:
        """Record the following operations as those of row `k`, for a `stage` of recursive doubling."""
        place = self.places.rotated(k, stage) if self.layout == "senn" else k
        self.tape.select((self.column, place))
        step(f"{equation}({self.column},{place})", str(k))

    def doubled(self, values: Sequence[Any], name: str, join: Any, outward: bool) -> list[Any]:
        """Combine all values up to each row (`outward`) or from each row on, by recursive doubling."""
        parts, distance, stage = list(values), 1, 0
        while distance < len(parts):
            before = list(parts)
            for k in self.rows:
                other = k - distance if outward else k + distance
                if other in self.rows:
                    self.at(f"{name}{stage}", k, stage)
                    parts[k] = join(before[min(k, other)], before[max(k, other)])
            distance, stage = 2 * distance, stage + 1
        return parts


def _column_elements(on: _Column, tree: Tree, q: Sequence[Scalar]) -> list[Scalar]:
    """Return a_ji of one column i for j >= i, in the frame of the last body."""
    links = tree.links[on.column :]
    local: list[tuple[Mat, Vec]] = []
    for k in on.rows:
        on.at("R", k)  # step 1, 1: R(j+1, j)
        following = links[k + 1] if k + 1 < len(links) else None
        local.append(following.transform(q).pose(IDENTITY, ZERO) if following else (IDENTITY, ZERO))
    turns = [R.T for R, _ in local]
    R = on.doubled(turns, "R", lambda low, high: high.times(low), False)  # step 1, 2: R(n+1, j)
    Z, P, H = [], [], []
    for k, link in enumerate(links):
        on.at("Z", k)  # step 1, 4
        Z.append(R[k] @ link.subspace(q)[0].ang)
        on.at("P", k)
        P.append(R[k] @ local[k][1])
        on.at("H", k)
        H.append(R[k] @ link.inertia.h)
    reach = on.doubled([ZERO, *P[:-1]], "P", lambda low, high: low + high, True)  # step 2, 1: P(j, i)
    F, N = [], []
    for k, link in enumerate(links):
        on.at("V", k)
        V = Z[0].cross(reach[k])  # step 2, 2a
        on.at("F", k)
        F.append(Z[0].cross(H[k]) + V * link.inertia.m)  # 2b
        on.at("N", k)
        N.append(R[k] @ (link.inertia.I @ (R[k].T @ Z[0])) + H[k].cross(V))  # 2c
    F = on.doubled(F, "F", lambda low, high: low + high, False)  # step 3, 1
    for k in on.rows[:-1]:
        on.at("PxF", k)
        N[k] = N[k] + P[k].cross(F[k + 1])  # step 3, 2 and 3a
    N = on.doubled(N, "N", lambda low, high: low + high, False)  # 3b
    elements = []
    for k in on.rows:
        on.at("a", k)
        elements.append(Z[k].dot(N[k]))
    return elements


def array_program(tree: Tree, layout: str) -> Graph:
    """Trace the program of all columns for a serial chain of revolute joints.

    Parameters
    ----------
    tree
        The chain.
    layout
        "senn" or "nearest": it determines the places of the stages.
    """
    n, tape = len(tree.links), ProcessorTape()
    q = list(tape.inputs("q", (n,)))
    matrix = np.zeros((n, n), dtype=object)
    for i in range(n):
        column = _column_elements(_Column(tape, i, n - i, layout), tree, q)
        matrix[i:, i] = matrix[i, i:] = column
    for i, link in enumerate(tree.links):
        if link.armature:
            matrix[i, i] = matrix[i, i] + link.armature
    step("")
    return Graph(f"vneb.chain{n}", {"q": (n,)}, {"M": matrix}, tape)


@cache
def _tasks(n: int, layout: str) -> Tasks:
    return tasks(array_program(papers.tree(n, False), layout), "cluster")


def _equation_and_place(label: str) -> tuple[str, int, int]:
    match = LABEL_PATTERN.fullmatch(label)
    assert match, label
    return match[1], int(match[2]), int(match[3])


def array_machine(n: int, layout: str, kind: str = "t800") -> Machine:
    """Return the array for `n` joints in a `layout`, with the costs of a `kind`."""
    return machine_of_kind(array_topology(n, layout), kind)


@dataclass(frozen=True)
class PlacedTasks:
    """Tasks with their processors; relays pass values on, so that a link carries each value once."""

    todo: Tasks
    where: tuple[int, ...]
    steps: tuple[tuple[int, str], ...]  # column and equation; a relay has those of its producer


@cache
def placed_tasks(n: int, layout: str) -> PlacedTasks:
    """Return the tasks of the program for `n` joints in a `layout`, with relays along the routes."""
    todo, topology = _tasks(n, layout), array_topology(n, layout)
    first = np.cumsum([0, *(1 << ColumnPlaces(n - i).digits for i in range(n))])
    labels = [_equation_and_place(task.nodes[0].label) for task in todo]
    where = [int(first[column]) + place for _, column, place in labels]
    targets: dict[int, dict[int, None]] = defaultdict(dict)
    for task in todo:
        for j in task.needs:
            if where[j] != where[task.index]:
                targets[j][where[task.index]] = None
    out: list[Task] = []
    at: list[int] = []
    steps: list[tuple[int, str]] = []
    source: dict[tuple[int, int], int] = {}  # new index of the task that has the values of j on a processor
    for task in todo:
        own, (equation, column, _) = where[task.index], labels[task.index]
        needs = {source[j, own]: words for j, words in task.needs.items()}
        source[task.index, own] = len(out)
        out.append(replace(task, index=len(out), needs=needs))
        at.append(own)
        steps.append((column, equation))
        for target in targets[task.index]:
            for a, b in topology.route(own, target):
                if (task.index, b) not in source:
                    needs = {source[task.index, a]: task.gives}
                    source[task.index, b] = len(out)
                    out.append(Task(len(out), f"{task.name} passes", (), needs, task.gives))
                    at.append(b)
                    steps.append((column, equation))
    return PlacedTasks(Tasks(todo.name, "relayed", tuple(out)), tuple(at), tuple(steps))


def array_schedule(n: int, layout: str, kind: str = "t800") -> Schedule:
    """Return the data-driven schedule of the program on its array.

    Parameters
    ----------
    n
        Number of joints.
    layout
        "senn" or "nearest".
    kind
        Cost model of the machine.
    """
    placed = placed_tasks(n, layout)
    plan = Plan(placed.todo, array_machine(n, layout, kind))
    rank = upward_rank(plan)
    # A relay with free messages has the rank of its user; producers come first.
    order = sorted(range(len(plan)), key=lambda i: (-rank[i], i))
    return Placement(plan).run(order, placed.where)


# The equations in the order of the slides; "P0", "P1", ... are the stages of the doubling of P.
EQUATIONS = ("R", "R*", "Z", "P", "H", "P*", "V", "F", "N", "F*", "PxF", "N*", "a")


def _step_order(equation: str) -> tuple[int, int]:
    stage = equation.lstrip("PxFRNVZHa")
    name = equation.removesuffix(stage) if stage else equation
    return EQUATIONS.index(f"{name}*" if stage else name), int(stage or 0)


def clocked_schedule(n: int, layout: str, kind: str = "t800", whole_array: bool = False) -> Schedule:
    """Return the schedule of the program if a clock starts every step for all processors.

    A step is one equation, or one stage of a doubling. It starts when all its values have arrived.

    Parameters
    ----------
    n
        Number of joints.
    layout
        "senn" or "nearest".
    kind
        Cost model of the machine.
    whole_array
        True: one clock for the array. False: one for each column.
    """
    placed = placed_tasks(n, layout)
    place = Placement(Plan(placed.todo, array_machine(n, layout, kind)))
    members: dict[str, list[int]] = defaultdict(list)
    for i, (_, equation) in enumerate(placed.steps):
        members[equation].append(i)
    clock: dict[int, float] = defaultdict(float)
    for equation in sorted(members, key=_step_order):
        group = {i: 0 if whole_array else placed.steps[i][0] for i in members[equation]}
        for i in group:
            place.put(i, placed.where[i], clock[group[i]] if placed.todo[i].nodes else 0.0)
        late: dict[tuple[int, int], float] = {}
        for i, g in group.items():
            if placed.todo[i].nodes:
                late.setdefault((g, placed.where[i]), place.start[i])
        begin = {g: max(t for (other, _), t in late.items() if other == g) for g in set(group.values())}
        for i, g in group.items():
            if placed.todo[i].nodes:
                delay = begin[g] - late[g, placed.where[i]]
                place.start[i], place.finish[i] = place.start[i] + delay, place.finish[i] + delay
        for g in begin:
            clock[g] = max(place.finish[i] for i in group if group[i] == g)
    return place.schedule()


def tables() -> list[Table]:
    """Return the tables of layouts, of frames of projection, and of the bounds of the processors."""
    return [_layout_table(), _projection_table(), _bound_table(), _speed_table()]


def _layout_table() -> Table:
    rows = []
    for layout in LAYOUTS:
        for n in SIZES:
            hidden, sent = array_schedule(n, layout, "hidden"), array_schedule(n, layout)
            clocks = [""] * 2
            if n <= MAX_CLOCKED_JOINTS:
                clocks = [f"{clocked_schedule(n, layout, 't800', whole).makespan:.0f}" for whole in (False, True)]
            more = f"{sent.makespan - hidden.makespan:.0f}"
            cells = (f"{hidden.makespan:.0f}", f"{sent.makespan:.0f}", *clocks, more)
            farthest = max(array_machine(n, layout).topology.hops(0)[: 1 << ColumnPlaces(n).digits])
            rows.append((layout, str(n), str(sent.machine.processors), *cells, str(farthest)))
    head = ("layout", "n", "processors", "free", "data driven", "column clock", "array clock", "messages", "hops")
    caption = (
        "V N-E B in the frame of the last body on T800. free: messages cost nothing. messages: data driven less free.\n"
        "hops: across the first column. senn: columns of a power of two processors."
    )
    return Table("Layouts and synchronisation of the array, us", head, rows, range(1, 9), caption)


ALGORITHMS = {"V N-E B": "vneb_parallel", "V C R-B": "vcrb_parallel", "O K E": "oke_parallel"}


def projected_counts(method: str, projection: str, n: int) -> tuple[int, float, int]:
    """Return operations, span, and steps of the busiest processors of a method in a frame of projection.

    Parameters
    ----------
    method
        Parallel method of the mass matrix.
    projection
        Frame of projection.
    n
        Number of joints of the general chain.
    """
    by = METHODS[method].projected(projection)
    g = graphs.trace_quantity(papers.chain(n), Request("mass_matrix", method), by)
    array = ProcessorArray(f"{method}.{projection}", by.function("mass_matrix"), True)
    return sum(papers.tally(g)), g.span(UNIT_COSTS), sum(count_busiest(array, n))


def _projection_table(n: int = 8) -> Table:
    rows = []
    for title, method in ALGORITHMS.items():
        for projection in METHODS[method].projections:
            work, span, busiest = projected_counts(method, projection, n)
            rows.append((title, projection, str(work), f"{span:g}", str(busiest)))
    caption = (
        "steps: multiplications and additions of the busiest processor, equation by equation, as the slides count."
    )
    head = ("algorithm", "frame", "operations", "span", "steps")
    return Table(f"Frames of projection, {n} joints", head, rows, (2, 3, 4), caption)


def _bound_table(sizes: Sequence[int] = (4, 8, 16, 32)) -> Table:
    rows = []
    for title, method in (("oke", "oke"), ("oke_parallel", "oke_parallel"), ("vneb_parallel", "vneb_parallel")):
        cells = []
        for n in sizes:
            g = graphs.graph(papers.chain(n), "mass_matrix", method)
            work, span = g.work(UNIT_COSTS), g.span(UNIT_COSTS)
            cells += [f"{span:g}", f"{work / span:.0f}"]
        rows.append((title, *cells))
    head = ("method", *(text for n in sizes for text in (f"span, n = {n}", "proc.")))
    caption = "proc.: work / span, the least number with which the span could be reached."
    return Table("Original Kane's equation in O(log n)", head, rows, range(1, 2 * len(sizes) + 1), caption)


SPEEDS = {"joint rates": joint_rates, "sums of joint rates": absolute_rates}


def speed_graph(m: Mechanism, choice: Choice) -> Graph:
    """Trace the mass matrix of a mechanism for a choice of generalised speeds.

    Parameters
    ----------
    m
        Mechanism without quaternions.
    choice
        Function of the positions that returns A and B of U = A Qdot + B.
    """
    speeds = GeneralisedSpeeds(m.tree, choice, m.neutral().tolist())
    return trace(f"{m.name}.speeds", lambda q: {"M": speeds.mass_matrix(list(q))}, {"q": (m.nq,)})


def _speed_table() -> Table:
    rows = []
    for m in (planar3r(), puma600(), papers.chain(6)):
        for title, choice in SPEEDS.items():
            g = speed_graph(m, choice)
            rows.append((m.name, title, str(sum(papers.tally(g))), f"{g.span(UNIT_COSTS):g}"))
    head = ("mechanism", "generalised speeds", "operations", "span")
    return Table("Kane's mass matrix for U = A Qdot + B", head, rows, (2, 3))
