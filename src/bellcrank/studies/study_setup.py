"""Setup of a study, checked before anything starts, and study.toml, a study as a file.

A varied name means a free parameter of the plant, a number of its mechanism that is freed for the study, an element of
the start ("elbow.q", "elbow.v", "elbow.integral"), an input, a setting of the solver, "seed", or "variant". A file is

    mechanism = "arm.urdf"            # a file or built in; or plant = "model.py:plant", a name in a file of yours
    seconds = 1.0
    runs = 1000
    summary = ["max(elbow.tau)"]
    to = "folder"                     # beside the file

    [over]
    "upper.mass" = { uniform = [1.5, 2.1], unit = "kg" }
    "elbow.q" = [0.1, 0.2, 0.4]

    [start]                           # of all runs, by name: "elbow.q" = 0.3
    [inputs]
    [parameters]

Everything else is as in bc.study: points, seed, step, integrator, tolerance, method, form, keep, chunk, workers,
cluster, threads, target, input_step, max_steps.
"""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.errors import InputError, ReadError, brief, unknown
from bellcrank.files import read_bytes
from bellcrank.record.table_files import read_table
from bellcrank.sim.program.events import Event
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.system.observed_columns import observable_units
from bellcrank.sim.system.systems import System, system
from bellcrank.studies.sampling_plans import Array, Levels, Points, Range, log_uniform, normal, uniform

WORD_SETTINGS = ("integrator", "method", "form")  # settings that are texts; runs of one group share them
NUMBER_SETTINGS = ("step", "tolerance")
RESERVED_COLUMNS = ("run", "stop", "stop_time", "message")  # columns of the result
START_ARGUMENTS = ("q0", "v0", "x0")
RANGE_MAKERS = {"uniform": uniform, "log_uniform": log_uniform, "normal": normal}
PLAIN_SETTINGS = (
    "seconds", "runs", "summary", "to", "points", "seed", "step", "integrator", "tolerance", "method", "form", "keep",
    "every", "chunk", "workers", "cluster", "threads", "target", "input_step", "max_steps",
)  # fmt: skip
TABLES = ("over", "start", "inputs", "parameters")
MAX_NAME_CHARACTERS = 240  # characters of a name, which may be a file name


@dataclass(frozen=True, eq=False)
class StudySetup:
    """Everything that a worker needs except the values of its runs."""

    plants: Mapping[str, System]  # by the name of the variant; "" if there is only one
    meaning: Mapping[str, str]  # of each varied name: parameter, q0, v0, x0, input, samples, seed, variant, ...
    seconds: float
    given: Mapping[str, Any]  # arguments that all runs share: q0, v0, x0, inputs, input_step, parameters
    settings: Mapping[str, Any]  # of the solver
    summary: tuple[str, ...]
    keep: str | None
    seed: int
    events: tuple[Event, ...] = ()
    samples: Mapping[str, Array] = field(default_factory=dict)  # contents of varied files, by their names

    methods: Mapping[str, str] = field(default_factory=dict)  # methods that "auto" chose, by group_key

    def simulator(self, choice: Mapping[str, str]) -> Simulator:
        """Return a simulator for the runs that share this `choice` of variant and words."""
        words: dict[str, Any] = {name: choice.get(name, self.settings.get(name)) for name in WORD_SETTINGS}
        words["method"] = self.methods.get(group_key(choice), words["method"])
        plant = self.plants[choice.get("variant", "")]
        return Simulator(plant, summary=self.summary, events=self.events, **words)

    @property
    def grouped(self) -> list[str]:
        """Names whose values are part of a compiled program: runs that differ in them need different programs."""
        return [n for n, what in self.meaning.items() if what in ("variant", "word", "number")]

    def choice(self, values: Mapping[str, Array], row: int = 0) -> dict[str, str]:
        """Return the variant and the words of the run in `row` of `values`."""
        return {n: str(values[n][row]) for n in self.grouped if self.meaning[n] != "number"}


def group_key(choice: Mapping[str, str]) -> str:
    """Return the name of the group of runs with this `choice` of variant and words, which share a program."""
    return "|".join(choice.get(name, "") for name in ("variant", *WORD_SETTINGS))


def study_setup(plant: Any, points: Points, settings: Mapping[str, Any], **options: Any) -> StudySetup:
    """Check the arguments of a study and return its setup.

    Parameters
    ----------
    plant
        Mechanism or system, or several by name.
    points
        Values of all runs.
    settings
        Settings of the solver.
    **options
        The other fields of a StudySetup.
    """
    plants = _plants(plant, points)
    freed: list[str] = []
    meaning: dict[str, str] = {}
    for name, values in points.columns.items():
        if name in RESERVED_COLUMNS:
            raise InputError(f'over: "{name}" is the name of a column of every study; choose another name.')
        kinds = {_meaning(name, s, values, options["given"]) for s in plants.values()}
        if len(kinds) > 1:
            raise InputError(f'over: "{name}" means {" and ".join(sorted(kinds))} in different variants.')
        meaning[name] = kinds.pop()
        if meaning[name] == "number of the mechanism":
            freed.append(name)
            meaning[name] = "parameter"
    if freed:
        plants = {key: replace(s, mechanism=s.mechanism.free(*freed)) for key, s in plants.items()}
    _check_units(plants, points, meaning)
    samples = _samples(points, meaning, options["given"])
    return StudySetup(plants, meaning, settings=settings, samples=samples, **options)


def _plants(plant: Any, points: Points) -> dict[str, System]:
    if not isinstance(plant, Mapping):
        if "variant" in points.columns:
            raise InputError('over: "variant" needs several plants: give a mapping of them by name.')
        return {"": system(plant)}
    if not plant:
        raise InputError("there is no plant in the mapping; expected mechanisms or systems by name.")
    if "variant" not in points.columns:
        raise InputError(f'several plants are given; choose them for the runs: over={{"variant": {list(plant)}}}.')
    for name in np.unique(points.columns["variant"]):
        if name not in plant:
            raise InputError(f'over "variant": {unknown("plant", str(name), plant)}')
    return {str(name): system(p) for name, p in plant.items()}


def _meaning(name: str, s: System, values: Array, given: Mapping[str, Any]) -> str:
    words = values.dtype.kind == "U"
    if name in ("variant", *WORD_SETTINGS):
        return "variant" if name == "variant" else "word"
    if name in s.inputs:
        return "samples" if words else "input"
    if words:
        raise InputError(f'over: "{name}" has words ({values[0]!r}); expected numbers.')
    if name in ("seed", *NUMBER_SETTINGS):
        return "seed" if name == "seed" else "number"
    element, _, kind = name.rpartition(".")
    q, v = s.mechanism.columns
    starts = {"q0": kind == "q" and element in q, "v0": kind == "v" and element in v}
    starts["x0"] = name in [z.name for z in s.states]
    for start, fits in starts.items():
        if fits:
            if given.get(start) is not None and not isinstance(given[start], Mapping):
                raise InputError(f'over: "{name}" varies, so {start} must be a mapping by name; got an array.')
            return start
    if name in s.parameters:
        return "parameter"
    try:
        s.mechanism.free(name)
    except InputError as error:
        known = [*s.parameters, *s.inputs, *(f"{n}.q" for n in q), *(f"{n}.v" for n in v)]
        raise InputError(f"over: {unknown('parameter, start or input', name, known)} ({error})") from None
    return "number of the mechanism"


def varied_unit(s: System, name: str, what: str) -> str:
    """Return the unit of the varied `name` with the meaning `what` in the system `s`; "" if it is not known."""
    if what == "parameter":
        return s.parameters.unit(name)
    if what in START_ARGUMENTS:
        return observable_units(s).get(name, "")
    return {"step": "s"}.get(name, "")


def _check_units(plants: Mapping[str, System], points: Points, meaning: Mapping[str, str]) -> None:
    s = next(iter(plants.values()))
    for name, r in points.ranges.items():
        range_unit = r.unit if isinstance(r, Range) else ""
        unit = varied_unit(s, name, meaning[name])
        if range_unit and unit and range_unit != unit:
            raise InputError(
                f'over: "{name}" is given in {range_unit}, but the plant has it in {unit}; expected {unit}.'
            )


def _samples(points: Points, meaning: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Array]:
    """Return the samples of varied files; each has a column of the input's name, or one column beside the time."""
    samples: dict[str, Array] = {}
    for name, what in meaning.items():
        if what != "samples":
            continue
        if given.get("input_step") is None:
            raise InputError(f'over: "{name}" varies over files of samples; give the time each holds: input_step=....')
        r = points.ranges.get(name)
        files = r.values if isinstance(r, Levels) else np.unique(points.columns[name])
        for file in files:
            samples[str(file)] = _file_samples(str(file), name)
    if len({len(x) for x in samples.values()}) > 1:
        text = ", ".join(f"{file} {len(x)}" for file, x in samples.items())
        raise InputError(f"files of samples are of different lengths: {text}; expected one.")
    return samples


def _file_samples(file: str, name: str) -> Array:
    table = read_table(Path(file))
    others = [n for n in table if n not in ("t", "time")]
    column = name if name in table else others[0] if len(others) == 1 else None
    if column is None:
        raise InputError(f"{file}: {unknown('column', name, table)}")
    x = np.asarray(table[column])
    if x.dtype.kind not in "fiu" or not np.isfinite(x).all() or not len(x):
        raise InputError(f'{file}: column "{column}" is empty, or has values that are not finite numbers.')
    return x.astype(float)


def drawn_inputs(inputs: Mapping[str, Any] | None) -> dict[str, Callable[..., Any]]:
    """Return those `inputs` that are drawn for each run: functions of (times, random generator)."""
    return {name: x for name, x in (inputs or {}).items() if callable(x)}


def checked_keep(keep: str | None, summary: Sequence[str], every: float | None) -> str | None:
    """Return the checked `keep` of a study, with its default for this `summary` and `every`."""
    if keep not in (None, "final", "rows"):
        raise InputError(
            f'keep is {keep!r}; expected "final" (where each run ends), "rows" (all its rows, as lists), or nothing: '
            "summaries only."
        )
    if keep == "rows" and summary:
        raise InputError(
            'a summary is one number for each run, so that keep="rows" cannot be combined with it: leave one out.'
        )
    if every is not None and keep != "rows":
        raise InputError('every= is the interval between rows, but no rows are kept: add keep="rows".')
    return keep or (None if summary else "final")


def read_study(path: Path, mechanism: Callable[[str], Any]) -> tuple[Any, dict[str, Any]]:
    """Return the plant, and the arguments of bc.study.

    Parameters
    ----------
    path
        The file.
    mechanism
        Function that returns the mechanism of a name.
    """
    try:
        data = tomllib.loads(read_bytes(path, "study")[2].decode("utf-8"))
    except ReadError:
        raise
    except RecursionError:
        raise ReadError(f"{path} is not readable TOML: it is nested too deeply.") from None
    except ValueError as error:  # also invalid UTF-8, and integers with thousands of digits
        raise ReadError(f"{path} is not TOML: {str(error)[:300]}") from None
    _check(path, data)
    arguments = {key: data[key] for key in PLAIN_SETTINGS if key in data}
    folder = path.resolve().parent
    arguments["to"] = folder / data["to"]
    if isinstance(arguments.get("points"), str) and Path(arguments["points"]).suffix:
        arguments["points"] = folder / arguments["points"]
    if "over" in data:
        arguments["over"] = {name: _range(path, name, x) for name, x in data["over"].items()}
    arguments |= {key: data[key] for key in ("inputs", "parameters") if key in data}
    arguments |= _start(path, data.get("start", {}))
    return _plant(path, folder, data, mechanism), arguments


def _check(path: Path, data: Mapping[str, Any]) -> None:
    """Check that the settings are known and of the right type."""
    for key in data:
        if key not in (*PLAIN_SETTINGS, *TABLES, "mechanism", "plant"):
            raise ReadError(f"{path}: {unknown('setting', key, ('mechanism', 'plant', *PLAIN_SETTINGS, *TABLES))}")
    for key in TABLES:
        if not isinstance(data.get(key, {}), dict):
            raise ReadError(f"{path}: {key} is {brief(data[key])}; expected a table, [{key}].")
    for key in ("seconds", "to"):
        if key not in data:
            raise ReadError(f"{path}: {key} is missing.")
    for key in ("to", "mechanism", "plant"):
        given = data.get(key, "x")
        if not isinstance(given, str) or not 0 < len(given) < MAX_NAME_CHARACTERS or "\0" in given:
            raise ReadError(f"{path}: {key} is {brief(given)}; expected a name in quotes.")


def _range(path: Path, name: str, given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    kind = next((k for k in given if k in RANGE_MAKERS), None)
    numbers = given.get(kind) if kind else None
    if kind is None or set(given) - {kind, "unit"} or not isinstance(numbers, list) or len(numbers) != 2:
        raise ReadError(
            f"{path}: over {brief(name)} is {brief(given)}; expected {{ uniform = [low, high] }}, log_uniform or "
            "normal, with a unit where you like, or a list."
        )
    return RANGE_MAKERS[kind](numbers[0], numbers[1], str(given.get("unit", "")))


def _start(path: Path, given: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    starts: dict[str, dict[str, float]] = {}
    for name, x in given.items():
        element, _, kind = name.rpartition(".")
        argument = {"q": "q0", "v": "v0"}.get(kind, "x0")
        starts.setdefault(argument, {})[name if argument == "x0" else element] = x
    return starts


def _plant(path: Path, folder: Path, data: Mapping[str, Any], mechanism: Callable[[str], Any]) -> Any:
    if ("mechanism" in data) == ("plant" in data):
        raise ReadError(f'{path}: expected either mechanism = "..." or plant = "file.py:name".')
    if "mechanism" in data:
        name = data["mechanism"]
        return mechanism(str(folder / name) if (folder / name).is_file() else name)
    file, _, name = data["plant"].rpartition(":")
    is_below = folder in (folder / file).resolve().parents  # only code that came with the file is run
    if not file.endswith(".py") or not is_below or not (folder / file).is_file():
        raise ReadError(f'{path}: plant is {brief(data["plant"])}; expected "file.py:name", a file beside this one.')
    spec = importlib.util.spec_from_file_location(Path(file).stem, folder / file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        raise InputError(f"{folder / file}: it does not define {name!r}.")
    plant = getattr(module, name)
    return plant() if callable(plant) and not hasattr(plant, "mechanism") and not hasattr(plant, "bodies") else plant
