"""Identity of a study: digests of everything that decides its numbers, by name.

A worker's results follow from what it is sent, a StudySetup and values, and from its code. So the identity is made of
these, and of no list that has to be maintained:

    code        versions of the libraries, and the text of this package and its plug-ins
    setup       every field of the StudySetup, and every field of its systems, down to the last number and function
    programs    the graphs that are executed, which also cover what else a function reads while it is traced
    numbers     the starts, inputs, parameters and settings that the first runs are executed with, defaults included

A worker compares the first three with its own before it computes anything. The random inputs of all runs have digests
beside the rows (run_batches.py).

Equations are compared by their digests. A summary of them is stored beside these for the message alone: it tells what
changed in their elements, operations and numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from bellcrank.content_digest import ContentDigest, UnidentifiedError
from bellcrank.errors import InputError
from bellcrank.graph import Graph, Program
from bellcrank.graph.graph import structure
from bellcrank.graph.program import Ports
from bellcrank.model import Mechanism
from bellcrank.nodes.node import Node
from bellcrank.parameters import Parameters
from bellcrank.parameters.free import Free
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.settings import Plan
from bellcrank.studies.run_batches import Table, run_arguments, shared_settings
from bellcrank.studies.sampling_plans import Array
from bellcrank.studies.study_setup import NUMBER_SETTINGS, WORD_SETTINGS, StudySetup

DIGEST_DIGITS = 32  # hexadecimal digits of a digest in a manifest
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


@dataclass(frozen=True)
class ExpectedDigests:
    """Digests that a worker must reproduce before it computes; `study`, of the whole identity, seals files of rows."""

    code: Mapping[str, str]
    setup: Mapping[str, str]
    programs: Mapping[str, str]
    study: str


def study_name(identity: Mapping[str, Mapping[str, str]]) -> str:
    """Return one digest of the whole `identity`."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def setup_digests(setup: StudySetup) -> dict[str, str]:
    """Return digests of all fields of a StudySetup, and of each field of its systems.

    Parameters
    ----------
    setup
        The setup.

    Raises
    ------
    InputError
        If something has no comparable content: a later study could not be recognised as the same.
    """
    digests: dict[str, str] = {}
    digest = _content_digest()
    for variant, system in setup.plants.items():
        for field in fields(system):
            digests[f"{variant or 'plant'}.{field.name}"] = _digest_of(digest, field.name, getattr(system, field.name))
    deciding = {name: x for name, x in setup.settings.items() if name != "threads"}
    other_fields = replace(setup, plants={}, settings=deciding)
    for field in fields(setup):
        if field.name != "plants":
            value = getattr(other_fields, field.name)
            parts = value if isinstance(value, Mapping) else {"": value}
            for name, x in parts.items():
                label = f"{field.name}.{name}".rstrip(".")
                digests[label] = _digest_of(digest, label, x)
    return digests


def program_digest(program: Program) -> str:
    """Return the digest of the graphs of `program`, which runs execute."""
    return _digest_of(_content_digest(), "program", program)


def executed_program(setup: StudySetup, sim: Simulator, values: Table) -> Program | None:
    """Return the program that runs execute, or None if the step of every run is refused.

    Parameters
    ----------
    setup
        The study's setup.
    sim
        Simulator of these runs.
    values
        Their values, by name.
    """
    settings = {name: x for name, x in shared_settings(setup).items() if name != "target"}
    varied = [name for name in NUMBER_SETTINGS if name in values]
    rows = np.unique(np.stack([values[name] for name in varied], axis=1), axis=0).tolist() if varied else [()]
    for numbers in rows:
        try:
            plan = sim.planned(setup.seconds, settings | dict(zip(varied, numbers, strict=True)))
        except InputError:
            continue
        return sim.program(plan.mode, rows=plan.keeps_rows)
    return None


def number_digests(setup: StudySetup, sim: Simulator, runs: Array, values: Table) -> dict[str, str]:
    """Return digests of the numbers that runs are executed with, by their names.

    Parameters
    ----------
    setup
        The study's setup.
    sim
        Simulator of these runs.
    runs
        Their numbers.
    values
        Their values, by name.
    """
    given, settings = run_arguments(setup, runs, values)
    settings.pop("target", None)
    try:
        ready = sim.prepared(setup.seconds, batch=len(runs), progress=False, **given, **settings)
    except InputError as error:
        return {"refused": str(error)}
    data = ready.runs
    initial = {name: x for name, x in data.initial_fields.items() if name != "y"}  # "y" is assembled, and so rounded
    parts: dict[str, Any] = {"settings": ready.plan, "start": ready.start}
    parts |= {f"input {name}": data.input_table[..., k] for k, name in enumerate(sim.system.inputs)}
    parts |= {f"parameter {name}": data.parameters[..., k] for k, name in enumerate(sim.system.parameters)}
    parts["initial state"] = replace(data, initial_fields=initial, input_table=np.zeros(0), parameters=np.zeros(0))
    digest = _content_digest()
    return {name: _digest_of(digest, "numbers", x) for name, x in parts.items()}


def _content_digest() -> ContentDigest:
    """Return a digest computer; free parameters have their own digests, and the source of a mechanism is ignored."""
    return ContentDigest(
        instead={
            Free: lambda x: x.digest,
            Graph: structure,
            Parameters: lambda p: [leaf.digest for leaf in p.leaves],
            Ports: _port_values,
        },
        without={Mechanism: ("report",), Plan: ("where",)},
    )


def _port_values(ports: Ports) -> dict[str, Any]:
    """Return the values of ports, and the results of those that are callable."""
    values = {}
    for field in fields(ports):
        value = getattr(ports, field.name)
        try:
            values[field.name] = value() if callable(value) else value
        except LookupError:  # a port that this program does not have
            values[field.name] = "none"
    return values


def _digest_of(digest: ContentDigest, name: str, value: Any) -> str:
    try:
        return digest.digest(value)[:DIGEST_DIGITS]
    except UnidentifiedError as error:
        raise InputError(
            f"the study: in {name}, {error}: a continued study could not be recognised as the same one. Use functions "
            "and plain data, and create such objects inside of the function that needs them."
        ) from None


def digest_differences(expected: Mapping[str, str], computed: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return (name, expected, found) of all differences; "" stands for a missing entry.

    Parameters
    ----------
    expected, computed
        Digests by name.
    """
    names = [*expected, *(name for name in computed if name not in expected)]
    pairs = [(name, expected.get(name, ""), computed.get(name, "")) for name in names]
    return [pair for pair in pairs if pair[1] != pair[2]]


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
