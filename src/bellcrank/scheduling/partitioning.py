"""Coarse-grained partitioning where messages are expensive: branches of a tree, or steps of a method, per processor.

Labels name the owner of a task: `IA[boom]` is step IA of boom. Bodies that exchange many values are neighbours; their
maximum spanning tree is split into branches for different processors, trunk and largest branch on the first. A chain
has no branches, but the steps of a method can run in a pipeline. All candidates are timed on the machine, and the
shortest schedule is kept; one processor is used if nothing beats it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from bellcrank.graph import Graph
from bellcrank.scheduling.coarsening import Key, coarse_tasks, fine_tasks, slice_keys, sums
from bellcrank.scheduling.machines import Machine
from bellcrank.scheduling.placement import Placement, Plan, upward_rank
from bellcrank.scheduling.task import Tasks
from bellcrank.scheduling.timetable import Schedule

MAX_SPLITS = 24  # number of times that a branch is split in two
ENUMERATED_STEPS = 6  # steps of a method that are assigned in all ways
GRAINS_MESSAGES = (64.0, 8.0, 3.0)  # time of a task, in messages
WORK_SLICES = 12  # tasks into which all work is cut: another grain
FINALISTS = 8  # proposals that are timed exactly


def partitioned_schedule(graph: Graph, machine: Machine, stays: Mapping[int, int]) -> Schedule:
    """Return the shortest schedule with few messages.

    Parameters
    ----------
    graph
        The graph.
    machine
        The machine.
    stays
        Nodes that move to the cluster of their only user (coarsening.py).
    """
    todo = fine_tasks(graph, stays)
    work = [task.work(machine.cost) for task in todo]
    best = single_processor(graph, machine, stays)
    if machine.processors == 1 or not len(todo):
        return best
    candidates = [
        (estimate(todo, home, work, grain, machine), k, home, grain)
        for k, home in enumerate(proposals(todo, work, machine.processors))
        for grain in (*(x * max(machine.message(1), 1e-9) for x in GRAINS_MESSAGES), max(sum(work) / WORK_SLICES, 1e-9))
    ]
    for _, _, home, grain in sorted(candidates, key=lambda row: row[:2])[:FINALISTS]:
        candidate = timed_schedule(*coarse_tasks(todo, home, work, grain), machine)
        if candidate.makespan < best.makespan:
            best = candidate
    return best


def single_processor(graph: Graph, machine: Machine, stays: Mapping[int, int]) -> Schedule:
    """Return the schedule with everything on the first processor.

    Parameters
    ----------
    graph
        The graph.
    machine
        The machine.
    stays
        Nodes that move to the cluster of their only user (coarsening.py).
    """
    todo = fine_tasks(graph, stays)
    return timed_schedule(*coarse_tasks(todo, [0] * len(todo), [0.0] * len(todo), float("inf")), machine)


def estimate(todo: Tasks, where: Sequence[int], work: Sequence[float], grain: float, machine: Machine) -> float:
    """Estimate the makespan of a partition without looking at nodes.

    Parameters
    ----------
    todo
        The small tasks.
    where
        Processor of each.
    work
        Time of each.
    grain
        Time of one slice.
    machine
        The machine.
    """
    keys = slice_keys(todo, where, work, grain)
    size = sums(zip(keys, work, strict=True))
    predecessors: dict[Key, set[Key]] = {}
    words: dict[Key, int] = {}
    for task, key in zip(todo, keys, strict=True):
        for j, values in task.needs.items():
            if keys[j][3] != key[3]:
                predecessors.setdefault(key, set()).add(keys[j])
                words[keys[j]] = words.get(keys[j], 0) + values
    free_times = [0.0] + [machine.start] * (machine.processors - 1)
    finish: dict[Key, float] = {}
    for key in sorted(size):
        arrivals = (finish[other] + machine.message(words[other]) for other in predecessors.get(key, ()))
        begin = max(free_times[key[3]], max(arrivals, default=0.0))
        free_times[key[3]] = finish[key] = begin + size[key]
    return max(free_times[0], max(free_times[1:], default=0.0) + machine.start)


def timed_schedule(todo: Tasks, where: Sequence[int], machine: Machine) -> Schedule:
    """Return the schedule of the tasks `todo` on processors `where` of a `machine`."""
    plan = Plan(todo, machine)
    rank = upward_rank(plan, 1.0)
    return Placement(plan).run(sorted(range(len(todo)), key=lambda i: (-rank[i], i)), where)


def proposals(todo: Tasks, work: Sequence[float], processors: int) -> Iterator[list[int]]:
    """Yield assignments of the tasks `todo`, with times `work`, to a number of `processors`."""
    yield from by_branch(todo, work, processors)
    yield from by_step(todo, work, processors)


# -- branches to processors


def by_branch(todo: Tasks, work: Sequence[float], processors: int) -> Iterator[list[int]]:
    """Yield assignments of branches to processors.

    Parameters
    ----------
    todo
        The tasks.
    work
        Time of each.
    processors
        Number of processors.
    """
    unit = [task.name.partition("[")[2].rstrip("]") for task in todo]
    size = sums(zip(unit, work, strict=True))
    tree = strongest_tree(todo, unit)
    seen = set()
    for branches in tree_splits(tree, size):
        processor_of = pack_branches(branches, size, processors)
        home = [processor_of.get(name, 0) for name in unit]
        if any(home) and tuple(home) not in seen:
            seen.add(tuple(home))
            yield home


def strongest_tree(todo: Tasks, unit: Sequence[str]) -> dict[str, list[str]]:
    """Return the neighbours in the maximum spanning tree of the exchanged values (Kruskal).

    Parameters
    ----------
    todo
        The tasks.
    unit
        Body of each task.
    """
    bond: dict[tuple[str, str], int] = {}
    for task in todo:
        for j, values in task.needs.items():
            a, b = sorted((unit[task.index], unit[j]))
            if a != b:
                bond[a, b] = bond.get((a, b), 0) + values
    near: dict[str, list[str]] = {name: [] for name in dict.fromkeys(unit)}
    head = {name: name for name in near}

    def top(name: str) -> str:
        while head[name] != name:
            head[name] = name = head[head[name]]
        return name

    for a, b in sorted(bond, key=lambda pair: (-bond[pair], pair)):
        if top(a) != top(b):
            head[top(a)] = top(b)
            near[a].append(b)
            near[b].append(a)
    return near


def tree_splits(near: Mapping[str, Sequence[str]], size: Mapping[str, float]) -> Iterator[list[list[str]]]:
    """Yield the branches around the centre of a tree, then repeatedly with the largest branch split further.

    Parameters
    ----------
    near
        Neighbours in the tree.
    size
        Work of each body.
    """
    branches = [list(_connected(near, name, set())) for name in _tree_centres(near, size)]
    for _ in range(MAX_SPLITS):
        branches.sort(key=lambda branch: (-sum(size[name] for name in branch), branch[0]))
        largest = branches.pop(0)
        inside = set(largest)
        first = largest[0]
        outside = {first} | (set(near) - inside)
        branches += [list(_connected(near, name, outside)) for name in near[first] if name in inside]
        if not branches:
            return
        yield branches


def _tree_centres(near: Mapping[str, Sequence[str]], size: Mapping[str, float]) -> list[str]:
    """Return for each tree the body whose largest branch is smallest."""
    remaining, centres = dict.fromkeys(near), []
    while remaining:
        members = _connected(near, next(iter(remaining)), set())
        for name in members:
            remaining.pop(name)
        centres.append(_tree_centre(near, size, members))
    return centres


def _tree_centre(near: Mapping[str, Sequence[str]], size: Mapping[str, float], parent: Mapping[str, str | None]) -> str:
    """Return the centre of one tree; `parent` has its bodies, parents before children."""
    below = {name: size[name] for name in parent}
    for name, up in reversed(list(parent.items())):
        if up is not None:
            below[up] += below[name]
    total = below[next(iter(parent))]

    def worst(name: str) -> float:
        down = [below[other] for other in near[name] if other != parent[name]]
        return max([*down, total - below[name]])

    return min(parent, key=worst)


def _connected(near: Mapping[str, Sequence[str]], first: str, closed: set[str]) -> dict[str, str | None]:
    """Return everything connected with `first`, which comes first, each with the one that it was reached from."""
    reached: dict[str, str | None] = {first: None}
    front = [first]
    for name in front:
        for other in near[name]:
            if other not in reached and other not in closed:
                reached[other] = name
                front.append(other)
    return reached


def pack_branches(branches: Sequence[Sequence[str]], size: Mapping[str, float], processors: int) -> dict[str, int]:
    """Assign branches to processors, large branches first, each to the processor with the least load.

    The first processor has the trunk already.

    Parameters
    ----------
    branches
        The branches.
    size
        Work of each body.
    processors
        Number of processors.
    """
    load = [sum(size.values()) - sum(size[name] for branch in branches for name in branch)] + [0.0] * (processors - 1)
    processor_of: dict[str, int] = {}
    for branch in sorted(branches, key=lambda b: (-sum(size[name] for name in b), b[0])):
        p = min(range(processors), key=lambda i: (load[i], -i))
        load[p] += sum(size[name] for name in branch)
        processor_of.update(dict.fromkeys(branch, p))
    return processor_of


# -- steps to processors


def by_step(todo: Tasks, work: Sequence[float], processors: int) -> Iterator[list[int]]:
    """Yield assignments of the steps with most work in all ways; the others stay where their work is used.

    Parameters
    ----------
    todo
        The tasks.
    work
        Time of each.
    processors
        Number of processors.
    """
    step = [task.name.partition("[")[0] for task in todo]
    size = sums(zip(step, work, strict=True))
    large = sorted(size, key=lambda name: (-size[name], name))[:ENUMERATED_STEPS]
    total = sum(work)
    for choice in product(range(min(processors, 2)), repeat=len(large) - 1):
        processor_of = dict(zip(large, (0, *choice), strict=True))
        load = sum(size[name] for name, p in processor_of.items() if p)
        if 0.2 * total < load < 0.8 * total:
            yield [processor_of.get(name, 0) for name in step]
            yield [1 - processor_of.get(name, 0) for name in step]
