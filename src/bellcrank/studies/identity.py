"""The identity of a study: digests of everything that decides its numbers, by name.

What a worker computes follows from what it is sent, a Setup and values, and from the code that it has. So the identity
is made of these and of nothing that is listed by hand:

    code        versions of the libraries, and the text of this package and its plug-ins
    setup       every field of the Setup, and every field of its systems, taken apart to the last number and function
    programs    the graphs that are executed, which also tell what else a function looks at while it is traced
    numbers     the starts, inputs, parameters and settings that the first runs are executed with, defaults included

A worker compares the first three with its own before it computes anything.
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
from bellcrank.graph.program import Ports, structure
from bellcrank.model import Mechanism
from bellcrank.parameters import Parameters
from bellcrank.parameters.free import Free
from bellcrank.sim.settings import Plan
from bellcrank.sim.simulator import Simulator
from bellcrank.studies.ranges import Array
from bellcrank.studies.runs import Table, asked, settings_of
from bellcrank.studies.setup import NUMBERS, Setup, noises

SHORT = 32  # hexadecimal digits of a digest in a manifest


@dataclass(frozen=True)
class Expected:
    """What a worker must have before it computes. study: the identity as a whole, which seals the files of rows."""

    code: Mapping[str, str]
    setup: Mapping[str, str]
    programs: Mapping[str, str]
    study: str


def study_name(identity: Mapping[str, Mapping[str, str]]) -> str:
    """One digest of the whole identity."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def setup_digests(setup: Setup) -> dict[str, str]:
    """Digests of all fields of a Setup, those of its systems each by itself.

    Raises
    ------
    InputError
        If something cannot be identified: whether a later study is the same one could not be told.
    """
    found: dict[str, str] = {}
    digest = _digest()
    for variant, system in setup.plants.items():
        for field in fields(system):
            found[f"{variant or 'plant'}.{field.name}"] = _of(digest, field.name, getattr(system, field.name))
    deciding = {name: x for name, x in setup.settings.items() if name != "threads"}
    rest = replace(setup, plants={}, settings=deciding)
    for field in fields(setup):
        if field.name != "plants":
            value = getattr(rest, field.name)
            parts = value if isinstance(value, Mapping) else {"": value}
            for name, x in parts.items():
                label = f"{field.name}.{name}".rstrip(".")
                found[label] = _of(digest, label, x)
    return found


def program_digest(setup: Setup, sim: Simulator, values: Table) -> str | None:
    """Digest of the graphs that these runs execute; None where the step of every run is refused."""
    settings = {name: x for name, x in settings_of(setup).items() if name != "target"}
    varied = [name for name in NUMBERS if name in values]
    for numbers in _distinct([values[name] for name in varied]):
        try:
            plan = sim.planned(setup.seconds, settings | dict(zip(varied, numbers, strict=True)))
        except InputError:
            continue
        return _of(_digest(), "program", sim.program(plan.mode, rows=plan.in_rows))
    return None


def numbers_digest(setup: Setup, sim: Simulator, runs: Array, values: Table) -> str:
    """Digest of the numbers that these runs are executed with.

    Raises
    ------
    InputError
        If a random input is not the same for the same generator.
    """
    found = [_numbers(setup, sim, runs, values) for _ in range(2 if noises(setup.given.get("inputs")) else 1)]
    if len(set(found)) > 1:
        names = ", ".join(noises(setup.given.get("inputs")))
        raise InputError(
            f"inputs: {names} gave different numbers for the same times and the same random generator, so that no run "
            "could be made again. Draw every number from the generator that is the second argument."
        )
    return found[0]


def _numbers(setup: Setup, sim: Simulator, runs: Array, values: Table) -> str:
    given, settings = asked(setup, runs, values)
    settings.pop("target", None)
    try:
        ready = sim.prepared(setup.seconds, batch=len(runs), progress=False, **given, **settings)
    except InputError as error:
        return f"refused: {error}"
    first = {name: x for name, x in ready.runs.first.items() if name != "y"}  # which is assembled, and so rounded
    return _of(_digest(), "numbers", (ready.plan, ready.start, replace(ready.runs, first=first)))


def _distinct(columns: list[Array]) -> list[tuple[float, ...]]:
    return [tuple(map(float, row)) for row in np.unique(np.stack(columns, axis=1), axis=0)] if columns else [()]


def _digest() -> ContentDigest:
    """Free numbers know their own digests; where a mechanism comes from and where a run is made decide nothing."""
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
    """What ports hold, and what they make when they are asked."""
    found = {}
    for field in fields(ports):
        value = getattr(ports, field.name)
        try:
            found[field.name] = value() if callable(value) else value
        except LookupError:  # a port that this program does not have
            found[field.name] = "none"
    return found


def _of(digest: ContentDigest, name: str, value: Any) -> str:
    try:
        return digest.of(value)[:SHORT]
    except UnidentifiedError as error:
        raise InputError(
            f"the study: in {name}, {error}: whether a study that goes on is still the same could not be told. Use "
            "functions and plain data, and make such objects inside of the function that needs them."
        ) from None


def differing(expected: Mapping[str, str], found: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """(name, expected, found) of all that differs; "" for what is missing on one side."""
    names = [*expected, *(name for name in found if name not in expected)]
    pairs = [(name, expected.get(name, ""), found.get(name, "")) for name in names]
    return [pair for pair in pairs if pair[1] != pair[2]]
