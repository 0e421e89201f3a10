"""Task coarsening for machines on which a message costs as much as hundreds of operations.

Given the processor of every small task, one large task contains all small tasks of a processor that depend on the same
number of messages in a row; its values leave in one message. If that delays others too much, it is cut into slices. A
task named "call" sends the inputs from the first processor to the others, and one named "result" waits for them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from bellcrank.graph import Graph, Node
from bellcrank.scheduling.task import Task, Tasks, tasks, tasks_from_groups, with_values

CALL, RESULT = "call", "result"
K = TypeVar("K")


def fine_tasks(graph: Graph, stays: Mapping[int, int]) -> Tasks:
    """Return the clusters of a graph with some nodes moved to the cluster of their only user.

    Parameters
    ----------
    graph
        The graph.
    stays
        For some nodes, the node to whose cluster they move; by serial number.
    """
    clusters = tasks(graph)
    task_of_node = {node.serial: task.index for task in clusters for node in task.nodes}
    groups: list[list[Node]] = [[] for _ in clusters]
    for task in clusters:
        for node in task.nodes:
            groups[task_of_node[stays.get(node.serial, node.serial)]].append(node)
    in_order = [sorted(g, key=lambda node: node.serial) for g in groups if g]
    return tasks_from_groups(graph.name, "cluster", in_order, graph=graph)


Key = tuple[int, int, int, int]


def slice_keys(todo: Tasks, processor_of: Sequence[int], work: Sequence[float], grain: float) -> list[Key]:
    """Return for every small task the large task it belongs to.

    A key has the number of messages before, 0 if others wait for it and 1 if not, the slice, and the processor. Sorted,
    the keys are in the order of computation.

    Parameters
    ----------
    todo
        The small tasks.
    processor_of
        Processor of each.
    work
        Time of each.
    grain
        Time of one slice.
    """
    level: list[int] = []
    for task, p in zip(todo, processor_of, strict=True):
        level.append(max((level[j] + (processor_of[j] != p) for j in task.needs), default=0))
    used_locally = [1] * len(todo)
    for task in reversed(todo.tasks):
        i = task.index
        for j in task.needs:
            if processor_of[j] != processor_of[i] or (level[j] == level[i] and not used_locally[i]):
                used_locally[j] = 0
    done: dict[tuple[int, int, int], float] = {}
    keys = []
    for deep, late, p, w in zip(level, used_locally, processor_of, work, strict=True):
        earlier_work = done.get((deep, late, p), 0.0)
        done[deep, late, p] = earlier_work + w
        keys.append((deep, late, int(earlier_work // grain), p))
    return keys


def coarse_tasks(todo: Tasks, where: Sequence[int], work: Sequence[float], grain: float) -> tuple[Tasks, list[int]]:
    """Return large tasks and the processor of each.

    Parameters
    ----------
    todo
        The small tasks.
    where
        Processor of each.
    work
        Time of each.
    grain
        Maximum time of one task, approximately.
    """
    parts: dict[Key, list[Task]] = {}
    for task, key in zip(todo, slice_keys(todo, where, work, grain), strict=True):
        parts.setdefault(key, []).append(task)
    order = sorted(parts)
    processor_of_task = [key[3] for key in order]
    groups = [[node for task in parts[key] for node in task.nodes] for key in order]
    names = [leading_labels((task.name, work[task.index]) for task in parts[key]) for key in order]
    grouped_tasks = tasks_from_groups(todo.name, "coarse", groups, names, todo.graph)
    return with_call_and_result(_count_sent_values(grouped_tasks, processor_of_task), processor_of_task)


def _count_sent_values(todo: Tasks, where: Sequence[int]) -> Tasks:
    """Count as given only the values that another processor uses."""
    home = {node.serial: task.index for task in todo for node in task.nodes}
    used: dict[int, dict[int, Node]] = {}
    for task in todo:
        for node in task.nodes:
            for a in node.operands:
                if a.op != "input" and where[home[a.serial]] != where[task.index]:
                    used.setdefault(home[a.serial], {})[a.serial] = a
    return replace(todo, tasks=tuple(with_values(task, used.get(task.index, {})) for task in todo))


def with_call_and_result(todo: Tasks, where: list[int]) -> tuple[Tasks, list[int]]:
    """Add a call before and a result after the tasks `todo` on processors `where`, both on the first processor."""
    call = Task(0, CALL, (), {})
    shifted = []
    for t in todo:
        needs = {j + 1: n for j, n in t.needs.items()} or ({0: 0} if where[t.index] else {})
        shifted.append(replace(t, index=t.index + 1, needs=needs))
    used = {j for t in shifted for j in t.needs}
    ends = {t.index: 0 for t in shifted if t.index not in used}
    result = Task(len(shifted) + 1, RESULT, (), ends)
    return Tasks(todo.name, todo.level, (call, *shifted, result), todo.graph), [0, *where, 0]


def sums(parts: Iterable[tuple[K, float]]) -> dict[K, float]:
    """Return the total of the numbers for each name in `parts`: pairs of name and number."""
    total: dict[K, float] = {}
    for name, x in parts:
        total[name] = total.get(name, 0.0) + x
    return total


def leading_labels(parts: Iterable[tuple[str, float]]) -> str:
    """Return the labels with most work, such as "IA pA", from `parts`: pairs of label and work."""
    total = sums((label.partition("[")[0], work) for label, work in parts)
    return " ".join(sorted(total, key=lambda head: (-total[head], head))[:3])
