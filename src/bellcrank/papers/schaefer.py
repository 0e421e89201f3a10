"""Three strategies to partition the equations of motion, and the Stanford arm on transputers (Schäfer 1992, 3 and 5).

    subsystems      1   separate the bodies of different branches of the tree
    modules         2   separate M, k, q and the control law
    factorisation   3   factorise M in parallel with the force vectors k and q

`tasks_of` partitions the traced equations (6) by any combination of the strategies. Values that several modules need
(poses of the bodies and their Jacobians) are either computed in each module, as the paper advises where messages are
expensive, or computed once and sent. The subsystems are those of figure 2 without the cut: the Jacobians stay global,
so no constraint force is added. The experiment is the arm on one and on three transputers (figures 7 and 8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bellcrank.dynamics.historical.control_laws import CONTROL_LAWS
from bellcrank.dynamics.historical.free_bodies import applied_forces, body_jacobians
from bellcrank.dynamics.historical.free_bodies import place_bodies as free_bodies
from bellcrank.dynamics.historical.newton_euler_symbolic import coriolis
from bellcrank.dynamics.historical.orthogonal_complement import inertia_matrix, project_forces
from bellcrank.dynamics.ltl_factorisation import coordinate_names, full_matrix, solve
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.errors import InputError, check_known
from bellcrank.graph import Graph, Node, trace
from bellcrank.model import Mechanism
from bellcrank.papers.operation_counts import published
from bellcrank.scalar import step
from bellcrank.scheduling import Schedule, Task, Tasks, list_schedule, machine, tasks_from_groups
from bellcrank.scheduling.placement import Placement, Plan
from bellcrank.text_table import Table
from bellcrank.view.schedule_picture import diagram
from bellcrank.zoo import stanford, torso

STRATEGIES = ("subsystems", "modules", "factorisation")
SHARING_MODES = ("copied", "sent")
TASK_PROCESSORS = {"state": 0, "M": 0, "L": 0, "end": 0, "k": 1, "q": 2, "u": 2}  # processor of each task in figure 8
NodesBySerial = dict[int, Node]


# -- equations of motion by part


def trace_motion(m: Mechanism, control: str = "none") -> Graph:
    """Trace M ydd = q - k with its parts as outputs.

    Parameters
    ----------
    m
        Mechanism without loops. The input w is the force at each joint, or its desired coordinate.
    control
        Name of the control law.
    """
    check_known("control law", control, CONTROL_LAWS)
    t = m.tree
    if t.loops:
        raise InputError(f'"{m.name}" has loops; the strategies apply to trees only.')
    if t.nq != t.nv:
        raise InputError(f'"{m.name}" has {t.nq} coordinates for {t.nv} velocities; the strategies need equally many.')

    def parts(q: Vector, v: Vector, w: Vector) -> dict[str, object]:
        bodies = free_bodies(t, q, v)
        J = body_jacobians(t, bodies)
        M = inertia_matrix(t, J, [body.M for body in bodies])
        k = project_forces(t, J, coriolis(t, bodies, v), "k")
        qa = project_forces(t, J, applied_forces(t, q, bodies), "q")
        u = CONTROL_LAWS[control](t, q, v, w)
        step("q - k")
        ydd = solve(M, [f + x - c for f, x, c in zip(qa, u, k, strict=True)], coordinate_names(t))
        return {"M": full_matrix(M), "k": k, "q": qa, "u": u, "ydd": ydd}

    return trace(f"{m.name}.motion", parts, {"q": (t.nq,), "v": (t.nv,), "w": (t.nv,)})


def needed_nodes(g: Graph, name: str) -> NodesBySerial:
    """Return the operations of `g` that the output `name` depends on, by serial number."""
    part = Graph(name, g.inputs, {name: g.outputs[name]}, g.tape)
    return {n.serial: n for n in part.nodes if n.op != "input"}


def split_modules(g: Graph) -> dict[str, NodesBySerial]:
    """Split the operations of `g` into modules.

    The modules are M, k, q and u, each with all its operands; L, the factors of M; and "end", the remaining two
    triangular solutions.
    """
    parts = {name: needed_nodes(g, name) for name in ("M", "k", "q", "u")}
    assigned = {s for part in parts.values() for s in part}
    remaining = {s: n for s, n in needed_nodes(g, "ydd").items() if s not in assigned}
    factor_nodes: set[int] = set()  # remaining nodes that depend on M only
    for s, n in sorted(remaining.items()):
        if all(a.serial in factor_nodes or a.serial in parts["M"] for a in n.operands):
            factor_nodes.add(s)
    parts["L"] = {s: n for s, n in remaining.items() if s in factor_nodes}
    parts["end"] = {s: n for s, n in remaining.items() if s not in factor_nodes}
    return {name: part for name, part in parts.items() if part}


# -- partitioning


def body_branches(m: Mechanism) -> dict[str, str]:
    """Map each body of `m` to its branch; "" for bodies that carry several branches, and for all bodies of a chain."""
    children: dict[int, list[int]] = {}
    for i, up in enumerate(m.parent):
        children.setdefault(up, []).append(i)
    branches: dict[str, str] = {}

    def spread(i: int, branch: str) -> None:
        child_indices = children.get(i, [])
        split = not branch and len(child_indices) > 1
        if i >= 0:
            branches[m.tree.links[i].name] = branch
        for j in child_indices:
            spread(j, m.tree.links[j].name if split else branch)

    spread(-1, "")
    return branches


def tasks_of(m: Mechanism, *strategies: str, control: str = "none", shared: str = "copied") -> Tasks:
    """Partition the equations of motion into tasks.

    Parameters
    ----------
    m
        Mechanism without loops.
    strategies
        Any of "subsystems", "modules" and "factorisation".
    control
        Name of the control law.
    shared
        "copied" to compute shared values in each module, "sent" to compute them once.
    """
    for name in strategies:
        check_known("strategy", name, STRATEGIES)
    check_known("way to share", shared, SHARING_MODES)
    g = trace_motion(m, control)
    parts = split_modules(g)
    merged: dict[str, NodesBySerial] = {}
    for name, part in parts.items():
        merged.setdefault(_group_of(name, strategies), {}).update(part)
    if shared == "sent":
        merged = separate_shared_nodes(merged)
    if "subsystems" in strategies:
        branch = body_branches(m)
        merged = {
            key: part for name, whole in merged.items() for key, part in _split_by_branch(name, whole, branch).items()
        }
    return ordered_tasks(f"{m.name} by {' and '.join(strategies) or 'nothing'}", merged, g)


def _group_of(module: str, strategies: Sequence[str]) -> str:
    """Return the task of a module."""
    if not {"modules", "factorisation"} & {*strategies}:
        return "all"
    if module in ("k", "q", "u"):
        return module if "modules" in strategies else "k q"
    return module if module == "M" or (module == "L" and "factorisation" in strategies) else "end"


def separate_shared_nodes(parts: Mapping[str, NodesBySerial]) -> dict[str, NodesBySerial]:
    """Move the nodes that several of the `parts` need into a task of their own, "J"."""
    uses: dict[int, int] = {}
    for part in parts.values():
        for s in part:
            uses[s] = uses.get(s, 0) + 1
    shared = {s: n for part in parts.values() for s, n in part.items() if uses[s] > 1}
    exclusive = {name: {s: n for s, n in part.items() if s not in shared} for name, part in parts.items()}
    return {name: part for name, part in ({"J": shared} | exclusive).items() if part}


def _split_by_branch(name: str, part: NodesBySerial, branch: Mapping[str, str]) -> dict[str, NodesBySerial]:
    branches: dict[str, NodesBySerial] = {}
    for s, n in part.items():
        branch_name = branch.get(n.label.partition("[")[2].rstrip("]"), "")
        branches.setdefault(f"{name} {branch_name}".strip(), {})[s] = n
    return branches


def ordered_tasks(name: str, parts: Mapping[str, NodesBySerial], graph: Graph | None = None) -> Tasks:
    """Return tasks of the named node sets in topological order; sets with cyclic dependences are split into levels.

    Parameters
    ----------
    name
        Name of the task graph.
    parts
        Nodes by task.
    graph
        The graph of the nodes; needed to execute a schedule of the tasks.
    """
    order = _topological_order(parts)
    if order is None:
        owner = {s: key for key, part in reversed(list(parts.items())) for s in part}
        level: dict[int, int] = {}
        for s, n in sorted({s: n for part in parts.values() for s, n in part.items()}.items()):
            sources = [(owner[a.serial], level[a.serial]) for a in n.operands if a.op != "input"]
            level[s] = max((depth + (key != owner[s]) for key, depth in sources), default=0)
        cut: dict[str, NodesBySerial] = {}
        for key, part in parts.items():
            for s, n in part.items():
                cut.setdefault(f"{key} {level[s]}", {})[s] = n
        parts, order = cut, _topological_order(cut)
    assert order is not None
    groups = [[parts[key][s] for s in sorted(parts[key])] for key in order]
    return tasks_from_groups(name, "strategy", groups, order, graph)


def _topological_order(parts: Mapping[str, NodesBySerial]) -> list[str] | None:
    """Return the names in topological order; None if the dependences are cyclic."""
    owner = {s: key for key, part in reversed(list(parts.items())) for s in part}
    needs = {
        key: {owner[a.serial] for n in part.values() for a in n.operands if a.op != "input" and a.serial not in part}
        for key, part in parts.items()
    }
    order: list[str] = []
    while len(order) < len(parts):
        following = next((key for key in parts if key not in order and needs[key] <= set(order)), None)
        if following is None:
            return None
        order.append(following)
    return order


# -- on transputers


@dataclass(frozen=True)
class TransputerTimes:
    """Schedules on one and on three transputers."""

    one: Schedule
    three: Schedule

    @property
    def speedup(self) -> float:
        """Ratio of the makespans."""
        return self.one.makespan / self.three.makespan

    @property
    def third_idle(self) -> float:
        """Idle time of the third processor per cycle, us."""
        return self.three.makespan - self.three.busy[2]


def figure_8(control: str = "none", state: bool = True) -> TransputerTimes:
    """Schedule strategies 2 and 3: M and its factors, k, and q with the control law on three connected transputers.

    Parameters
    ----------
    control
        Name of the control law.
    state
        If True, the first processor has y and yd, for example from the integrator, and sends them to the others.
    """
    m = stanford()
    one = list_schedule(tasks_of(m, control=control), machine("single", "t800"))
    todo = tasks_of(m, "modules", "factorisation", control=control)
    todo = with_state(todo, m.nq + m.nv) if state else todo
    processors = [TASK_PROCESSORS[task.name] for task in todo]
    return TransputerTimes(one, Placement(Plan(todo, machine("complete:3", "t800"))).run(range(len(todo)), processors))


def with_state(todo: Tasks, words: int) -> Tasks:
    """Prepend a task without duration that supplies the state to all tasks without other operands.

    Parameters
    ----------
    todo
        Tasks.
    words
        Number of values in the state.
    """
    g, state = todo.graph, tuple[Node, ...]()
    if g is not None:
        state = tuple(x for name in ("q", "v") for x in g.tape.inputs(name, g.inputs[name]).flat)
    first = Task(0, "state", (), {}, words, state, owns_inputs=True)
    later = [
        replace(task, index=task.index + 1, needs={j + 1: n for j, n in task.needs.items()} or {0: words})
        for task in todo
    ]
    return replace(todo, tasks=(first, *later))


def combinations(m: Mechanism) -> Iterable[tuple[str, str, Schedule]]:
    """Yield all combinations of the strategies for `m`, with both ways to share values, placed by the scheduler."""
    for bits in range(1, 8):
        names = [name for i, name in enumerate(STRATEGIES) if bits >> i & 1]
        for shared in SHARING_MODES:
            todo = tasks_of(m, *names, shared=shared)
            yield " + ".join(names), shared, list_schedule(todo, machine("complete:3", "t800"))


def tables() -> list[Table]:
    """Return figure 8 beside the paper's numbers, and all combinations of the strategies."""
    return [_figure_8_table(), _combination_table()]


def _figure_8_table() -> Table:
    printed_times = published()["transputer"]
    plain, with_control, state_known = figure_8(), figure_8("computed_torque"), figure_8(state=False)
    rows = [
        ("one transputer, us", f"{printed_times['stanford_one_transputer_us']}", f"{plain.one.makespan:.0f}"),
        ("three transputers, us", f"{printed_times['stanford_three_transputers_us']}", f"{plain.three.makespan:.0f}"),
        ("  if all know the state", "", f"{state_known.three.makespan:.0f}"),
        ("speed-up", f"{printed_times['stanford_speedup']}", f"{plain.speedup:.2f}"),
        ("  if all know the state", "", f"{state_known.speedup:.2f}"),
        ("left on the third, us", "500", f"{plain.third_idle:.0f}"),
        ("speed-up with that much control", f"{printed_times['stanford_speedup_with_control']}",
         f"{(plain.one.makespan + plain.third_idle) / plain.three.makespan:.2f}"),
        ("speed-up with computed torque", "", f"{with_control.speedup:.2f}"),
    ]  # fmt: skip
    title = "Figures 7 and 8: the Stanford arm, modules and factorisation"
    return Table(title, ("", "print", "ours"), rows, (1, 2), diagram(plain.three))


def _combination_table() -> Table:
    """Tabulate the makespan of each combination, with shared values copied or sent."""
    makespans: dict[str, list[str]] = {}
    for m in (stanford(), torso()):
        for cut, _, s in combinations(m):
            makespans.setdefault(cut, []).append(f"{s.makespan:.0f}")
    head = ("strategies", *(f"{name}, {shared}" for name in ("stanford", "torso") for shared in SHARING_MODES))
    title = "All combinations on three transputers, us: what modules share is copied or sent"
    return Table(title, head, [(cut, *times) for cut, times in makespans.items()], range(1, 5))


FIGURES: Mapping[str, Callable[[], str]] = {
    "schaefer1992_figure_8.svg": lambda: figure_8().three.svg(),
    "schaefer1992_figure_8.html": lambda: figure_8().three.html(),
}
