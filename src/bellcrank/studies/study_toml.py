"""study.toml: a study as a file.

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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bellcrank.errors import InputError, ReadError, brief, unknown
from bellcrank.files import read_bytes
from bellcrank.studies.distributions import log_uniform, normal, uniform

RANGE_MAKERS = {"uniform": uniform, "log_uniform": log_uniform, "normal": normal}
PLAIN_SETTINGS = (
    "seconds", "runs", "summary", "to", "points", "seed", "step", "integrator", "tolerance", "method", "form", "keep",
    "every", "chunk", "workers", "cluster", "threads", "target", "input_step", "max_steps",
)  # fmt: skip
TABLES = ("over", "start", "inputs", "parameters")
MAX_NAME_CHARACTERS = 240  # characters of a name, which may be a file name


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
