"""The runs of one chunk: values in, a table out. It runs in a worker, which keeps what it compiled.

A run that fails is a row with its reason, and so is one whose values are refused: the others are not its business.
"""

from __future__ import annotations

import hashlib
import io
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bellcrank.emit.cuda.device import missing
from bellcrank.errors import BellcrankError, InputError
from bellcrank.extras import extra
from bellcrank.record import Record
from bellcrank.sim.simulator import Simulator
from bellcrank.studies.ranges import Array
from bellcrank.studies.setup import NUMBERS, STARTS, Setup, noises
from bellcrank.version import __version__

SEAL = b"bellcrank seal"
AUTO = "auto"  # target: the GPU of those workers that have one
REFUSED = "refused"  # the stop of a run that could not begin
KEPT = 4  # setups and what was compiled of them, in one worker

Table = dict[str, Array]
_setups: dict[str, tuple[Setup, dict[tuple[str, ...], Simulator]]] = {}


def worked(packed: bytes, version: str, path: list[str], first: int, values: Mapping[str, Array]) -> dict[str, Any]:
    """What a worker gives back: the chunk as a Parquet file, or what is wrong, in words. path: where the modules of
    the user's functions are, for workers of the same computer.
    """
    if version != __version__:
        return {"error": f"this worker has bellcrank {__version__}, and the study is by {version}; install the same."}
    began = time.perf_counter()
    sys.path.extend(p for p in path if p not in sys.path)
    try:
        setup, made = unpacked(packed)
        table = computed(setup, made, first, values)
    except BellcrankError as error:
        return {"error": str(error)}
    return {"data": encoded(table), "seconds": time.perf_counter() - began, "rows": len(table["run"])}


def unpacked(packed: bytes) -> tuple[Setup, dict[tuple[str, ...], Simulator]]:
    key = hashlib.sha256(packed).hexdigest()
    if key not in _setups:
        while len(_setups) >= KEPT:
            _setups.pop(next(iter(_setups)))
        _setups[key] = extra("cloudpickle", "study", "a study").loads(packed), {}
    return _setups[key]


def computed(setup: Setup, made: dict[tuple[str, ...], Simulator], first: int, values: Mapping[str, Array]) -> Table:
    """All columns of the runs from `first` on."""
    n = len(next(iter(values.values())))
    whole: Table = {"run": np.arange(first, first + n, dtype=np.int64), **values}
    parts: list[tuple[Array, Table]] = []
    for choice, rows in groups(setup, values):
        key = tuple(choice.get(name, "") for name in ("variant", "integrator", "method", "form"))
        if key not in made:
            made[key] = setup.simulator(choice)
        part = {name: x[rows] for name, x in values.items()}
        parts.append((rows, _safely(setup, made[key], whole["run"][rows], part)))
    for name in dict.fromkeys(name for _, part in parts for name in part):  # variants may differ in their columns
        kind = next(part[name] for _, part in parts if name in part)
        column = (
            np.full(n, np.nan) if kind.dtype.kind == "f" else np.full(n, None if is_rows(name) else "", dtype=object)
        )
        for rows, part in parts:
            if name in part:
                column[rows] = part[name]
        whole[name] = column
    return whole


def groups(setup: Setup, values: Mapping[str, Array]) -> Iterator[tuple[dict[str, str], Array]]:
    """Rows that one program runs in one go."""
    names, n = setup.grouped, len(next(iter(values.values())))
    if not names:
        yield {}, np.arange(n)
        return
    codes = np.stack([np.unique(values[name], return_inverse=True)[1] for name in names], axis=1)
    for code in np.unique(codes, axis=0):
        rows = np.flatnonzero((codes == code).all(axis=1))
        yield {name: str(values[name][rows[0]]) for name in names if name not in NUMBERS}, rows


def _safely(setup: Setup, sim: Simulator, runs: Array, values: Table) -> Table:
    """What is refused is divided until the runs that are to blame stand alone."""
    try:
        if len(runs) > 1:
            return tabulated(setup, sim, ran(setup, sim, runs, values))
        twice = {name: x.repeat(2) for name, x in values.items()}  # a run alone would be another program to compile
        found = tabulated(setup, sim, ran(setup, sim, runs.repeat(2), twice))
        return {name: x[:1] for name, x in found.items()}
    except InputError as error:
        if len(runs) == 1:
            words = {"stop": REFUSED, "message": str(error)}
            return {"stop_time": np.zeros(1), **{k: np.array([x], dtype=object) for k, x in words.items()}}
    half = len(runs) // 2
    parts = [
        _safely(setup, sim, runs[part], {name: x[part] for name, x in values.items()})
        for part in (slice(None, half), slice(half, None))
    ]
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: np.concatenate([_or_nothing(part, name) for part in parts]) for name in names}


def _or_nothing(part: Table, name: str) -> Array:
    none = np.full(len(part["stop"]), None, dtype=object) if is_rows(name) else np.full(len(part["stop"]), np.nan)
    return part.get(name, none)


def ran(setup: Setup, sim: Simulator, runs: Array, values: Table, **more: Any) -> Record:
    """The runs themselves, as a batch. more: settings in the place of the study's."""
    meaning = setup.meaning
    given = dict(setup.given)
    for start in STARTS:
        mine = {n: x for n, x in values.items() if meaning[n] == start}
        if mine:
            plain = {n.rpartition(".")[0] if start != "x0" else n: x for n, x in mine.items()}
            given[start] = {**(given.get(start) or {}), **plain}
    free = {n: x for n, x in values.items() if meaning[n] == "parameter"}
    given["parameters"] = {**(given.get("parameters") or {}), **free}
    given["inputs"] = _inputs(setup, runs, values)
    settings = {n: x for n, x in setup.settings.items() if n not in ("integrator", "method", "form") and x is not None}
    settings |= {n: float(values[n][0]) for n in NUMBERS if n in values}
    if settings.get("target") == AUTO:
        settings["target"] = "cpu" if missing() else "cuda"
    if not setup.summary:
        settings["keep"] = setup.keep or "final"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a worker has nobody to warn
        return sim.run(setup.seconds, batch=len(runs), progress=False, **given, **{**settings, **more})


def _inputs(setup: Setup, runs: Array, values: Table) -> dict[str, Any]:
    hold = setup.given.get("input_step")
    found = dict(setup.given.get("inputs") or {})
    for name, what in setup.meaning.items():
        if what == "input" and name in values:
            x = values[name]
            found[name] = x if hold is None else x[:, None]
        elif what == "samples" and name in values:
            found[name] = np.stack([setup.samples[str(file)] for file in values[name]])
    drawn = noises(found)
    if drawn:
        assert hold is not None
        t = np.arange(int(np.ceil(setup.seconds / hold - 1e-9))) * hold
        seeds = values.get("seed", runs)
        for k, (name, draw) in enumerate(sorted(drawn.items())):
            rngs = [np.random.default_rng([setup.seed, k, int(seed)]) for seed in seeds]
            found[name] = np.stack([np.asarray(draw(t, rng), float) for rng in rngs])
    return found


def tabulated(setup: Setup, sim: Simulator, run: Record) -> Table:
    """A row for each run: summaries, the end where it is kept, and why and when it ended."""
    found: Table = {n: np.asarray(run[n])[..., 0] for n in sim.saving.summary}
    if setup.keep == "rows":
        found |= {f"rows({n})": _listed(np.asarray(run[n]), run.t) for n in run.columns}
    if setup.keep == "final":
        ends = [n for n in run.columns if n.endswith((".q", ".v")) or n in run.states]
        found |= {f"final({n})": np.asarray(run[n])[..., 0] for n in ends}
    stops = run.stops
    reasons = np.array([s.reason for s in stops], dtype=object)
    found["stop"] = reasons
    found["stop_time"] = np.array([s.time for s in stops], float)
    found["message"] = np.array([s.message for s in stops], dtype=object)
    return found


def _listed(column: Array, t: Array) -> Array:
    """A list for each run, which ends where the run does."""
    found = np.empty(len(column), dtype=object)
    for i, (x, times) in enumerate(zip(column, t, strict=True)):
        found[i] = x[np.isfinite(times)]
    return found


# -- as a file


def encoded(table: Table) -> bytes:
    """A Parquet file with a seal over what is in it: the same bytes for the same rows."""
    pa, pq = (extra(name, "study", "a study") for name in ("pyarrow", "pyarrow.parquet"))
    arrays = [_array(pa, name, x) for name, x in table.items()]
    made = pa.Table.from_arrays(arrays, names=list(table))
    floats = [name for name, x in table.items() if x.dtype.kind == "f"]
    words = [name for name, x in table.items() if x.dtype.kind not in "fi" and not is_rows(name)]
    made = made.replace_schema_metadata({SEAL: seal(made)})
    stream = io.BytesIO()
    pq.write_table(
        made, stream, compression="zstd", use_dictionary=words, write_page_checksum=True,
        use_byte_stream_split=floats,
    )  # fmt: skip
    return stream.getvalue()


def is_rows(name: str) -> bool:
    return name.startswith("rows(")


def _array(pa: Any, name: str, x: Array) -> Any:
    if is_rows(name):
        return pa.array(list(x), pa.list_(pa.float64()))
    return pa.array(x if x.dtype.kind in "fi" else [str(v) for v in x])


def seal(table: Any) -> bytes:
    """Over names and values, whatever the file looks like."""
    found = hashlib.sha256()
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        kind = "rows" if is_rows(name) else column.type  # Parquet calls the elements of lists otherwise
        found.update(f"{name}\0{kind}\0{len(column)}\0".encode())
        if str(column.type) == "string":
            for x in column.to_pylist():
                found.update(x.encode() + b"\0")
        elif is_rows(name):
            for x in column.to_numpy(zero_copy_only=False):
                found.update(b"none" if x is None else len(x).to_bytes(8, "little") + np.ascontiguousarray(x).tobytes())
        else:
            found.update(np.ascontiguousarray(column.to_numpy(zero_copy_only=False)).tobytes())
    return found.hexdigest().encode()
