"""Identity of a study: digests of everything that decides its numbers, by name.

A worker's results follow from what it is sent, a StudySetup and values, and from its code. So the identity is made of
these, and of no list that has to be maintained:

    code        versions of the libraries, and the text of this package and its plug-ins
    setup       every field of the StudySetup, and every field of its systems, down to the last number and function
    programs    the graphs that are executed, which also cover what else a function reads while it is traced
    numbers     the starts, inputs, parameters and settings that the first runs are executed with, defaults included

A worker compares the first three with its own before it computes anything. The random inputs of all runs have digests
beside the rows (random_inputs.py).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from bellcrank.content_digest import ContentDigest, UnidentifiedError
from bellcrank.errors import InputError
from bellcrank.graph import Graph
from bellcrank.graph.graph import structure
from bellcrank.graph.program import Ports, Program
from bellcrank.model import Mechanism
from bellcrank.parameters import Parameters
from bellcrank.parameters.free import Free
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.settings import Plan
from bellcrank.studies.distributions import Array
from bellcrank.studies.run_batches import Table, run_arguments, shared_settings
from bellcrank.studies.study_setup import NUMBER_SETTINGS, StudySetup

DIGEST_DIGITS = 32  # hexadecimal digits of a digest in a manifest


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
