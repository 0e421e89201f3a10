"""Summary of the equations of a study, which tells what changed in them: elements, operations and numbers.

Equations are compared by their digests (study_identity.py). The summary is stored beside them for the message alone.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bellcrank.graph import Graph, Program
from bellcrank.graph.graph import structure
from bellcrank.nodes.node import Node
from bellcrank.sim.run.simulator import Simulator
from bellcrank.studies.study_setup import WORD_SETTINGS

MAX_ELEMENTS, MAX_NUMBERS = 500, 500  # of one graph that are stored
MAX_NODES = 100_000  # nodes of a graph whose elements are compared one by one
MAX_SHOWN = 3  # differences of one kind in a message
ELEMENT_DIGITS = 12

# Graphs in the order in which they are named in a message: later ones follow from earlier ones.
PART_NAMES = {
    "rate": "the rate of", "outputs": "the output", "indicators": "the event function",
    "switch": "the change by events of",
}  # fmt: skip
Summary = Mapping[str, Mapping[str, Any]]  # by the name of the graph


def equation_summary(sim: Simulator, program: Program) -> dict[str, dict[str, Any]]:
    """Return a summary of the graphs of `program`, made by `sim`, as plain data."""
    ports = program.ports
    columns = {place: name for name, place in ports.columns.items()}
    events = [e.name for e in sim.events]
    names: dict[str, Callable[[str, int], str]] = {
        "rate": lambda _, k: ports.names[k],
        "outputs": lambda key, k: columns.get((key, k), f"{key}[{k}]"),
        "indicators": lambda _, k: events[k],
        "switch": lambda _, k: ports.names[k],
    }
    summary = {}
    for part, name_of in names.items():
        try:
            graph = getattr(ports, part)
        except LookupError:  # a port that this program does not have
            continue
        summary[part] = _graph_summary(graph, name_of)
    return summary | {name: _graph_summary(graph, None) for name, graph in program.graphs.items()}


def _graph_summary(graph: Any, name_of: Callable[[str, int], str] | None) -> dict[str, Any]:
    summary: dict[str, Any] = {key: {} for key in ("elements", "operations", "numbers")}
    summary["digest"] = _structure_digest(graph)
    if not isinstance(graph, Graph):
        return summary
    summary["operations"] = dict(Counter(node.op for node in graph.nodes if node.op != "input"))
    numbers = Counter(f"{x:.17g}" for x in _constants(graph))
    summary["numbers"] = dict(numbers) if len(numbers) <= MAX_NUMBERS else {}
    size = sum(x.size for x in graph.outputs.values())
    if name_of is not None and size <= MAX_ELEMENTS and len(graph.nodes) <= MAX_NODES:
        summary["elements"] = _element_digests(graph, name_of)
    return summary


def _short_digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:ELEMENT_DIGITS]


def _structure_digest(graph: Any) -> str:
    digest = hashlib.sha256()
    for part in structure(graph):
        for x in part if isinstance(part, tuple) else (part,):  # one at a time: the text of a large graph would be long
            digest.update(repr(x).encode() + b"\0")
    return digest.hexdigest()[:ELEMENT_DIGITS]


def _constants(graph: Graph) -> Iterator[float]:
    """Yield all constants in the operations and outputs of `graph`, as often as they occur."""
    for node in graph.nodes:
        yield from (x for x in node.args if isinstance(x, float))
    for array in graph.outputs.values():
        yield from (x for x in array.flat if isinstance(x, float))


def _element_digests(graph: Graph, name_of: Callable[[str, int], str]) -> dict[str, str]:
    """Return a digest of the operations that each element of the outputs depends on, by its name."""
    known: dict[int, str] = {}

    def digest(x: Any) -> str:
        if isinstance(x, Node):
            return known[x.serial]
        return x.hex() if isinstance(x, float) else repr(structure(x) if isinstance(x, Graph) else x)

    for node in graph.nodes:
        known[node.serial] = _short_digest((node.op, *map(digest, node.args)))
    return {name_of(key, k): digest(x) for key, array in graph.outputs.items() for k, x in enumerate(array.flat)}


# -- messages


def equation_differences(before: Any, now: Mapping[str, Summary]) -> str:
    """Describe what changed in the equations; "" if that is not known.

    Parameters
    ----------
    before, now
        Summaries by group of runs.
    """
    for group, summary in now.items():
        old = before.get(group) if isinstance(before, Mapping) else None
        if not isinstance(old, Mapping) or old == summary:
            continue
        different = [part for part in summary if old.get(part) != summary[part]]
        named = [part for part in different if part in PART_NAMES]
        shown = named or [part for part in different if part not in PART_NAMES][:1]
        text = "; ".join(_part_difference(part, old.get(part) or {}, summary[part]) for part in shown)
        return ": ".join(filter(None, (group_label(group), text)))
    return ""


def group_label(group: str) -> str:
    """Return the name of a group of runs (group_key) for a message; "" if there is only one."""
    pairs = zip(("variant", *WORD_SETTINGS), group.split("|"), strict=False)
    return ", ".join(f"{name} {value}" for name, value in pairs if value)


def _part_difference(part: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    changes = _changes(old, new)
    elements = [name for name, x in new["elements"].items() if old.get("elements", {}).get(name) != x]
    elements += [f"{name} (gone)" for name in old.get("elements", {}) if name not in new["elements"]]
    place = f"{PART_NAMES[part]} {_listed(elements)}" if elements and part in PART_NAMES else f"the graph {part}"
    return f"{place}: {', '.join(changes)}"


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return what changed in the operations and the numbers of a graph."""
    changes = []
    before, now = Counter(old.get("numbers", {})), Counter(new["numbers"])
    gone, come = list((before - now).keys()), list((now - before).keys())
    if gone and come:
        changes.append(f"the number{'s' * (len(gone) > 1)} {_listed(gone)} became {_listed(come)}")
    elif gone or come:
        listed = gone or come
        plural = len(listed) > 1
        verb = "are" if plural else "is"
        changes.append(f"the number{'s' * plural} {_listed(listed)} {verb} {'gone' if gone else 'new'}")
    counts, old_counts = new["operations"], old.get("operations", {})
    changed = [op for op in dict.fromkeys([*counts, *old_counts]) if counts.get(op, 0) != old_counts.get(op, 0)]
    texts = [f"{op} {counts.get(op, 0)} times instead of {old_counts.get(op, 0)}" for op in changed]
    if texts:
        changes.append(f"the operation{'s' * (len(texts) > 1)} {_listed(texts)}")
    return changes or ["the order or the arguments of its operations"]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else ""
    return ", ".join(names[:MAX_SHOWN]) + more
