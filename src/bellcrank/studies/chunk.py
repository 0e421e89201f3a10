"""Runs of one chunk in a worker: values in, a table out; the worker caches compiled programs.

A run that fails is a row with its reason, and so is one whose values are refused: the others are not affected.
"""

from __future__ import annotations

import hashlib
import io
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from bellcrank.content_digest.package import code_versions
from bellcrank.errors import BellcrankError, InputError
from bellcrank.extras import extra
from bellcrank.record import Record
from bellcrank.sim.simulator import Simulator
from bellcrank.studies.identity import Expected, differing, program_digest, setup_digests, study_name
from bellcrank.studies.ranges import Array
from bellcrank.studies.runs import groups, ran
from bellcrank.studies.setup import Setup, group_key

SEAL, STUDY = b"bellcrank seal", b"bellcrank study"  # keys of the metadata of a file of rows
REFUSED = "refused"  # value of "stop" for a run that could not begin
KEPT = 4  # setups with their compiled programs that one worker caches

Table = dict[str, Array]
_setups: dict[str, tuple[Setup, dict[str, Simulator]]] = {}


def worked(
    packed: bytes, expected: Expected, path: list[str], first: int, values: Mapping[str, Array]
) -> dict[str, Any]:
    """Compute one chunk in a worker.

    Workers whose code, or whose versions of the user's modules, would compute other numbers compute nothing.

    Parameters
    ----------
    packed
        The pickled Setup.
    expected
        Digests that the worker must reproduce.
    path
        Folders of the user's modules, for workers on the same computer.
    first
        Number of the first run.
    values
        Values of the runs, by name.

    Returns
    -------
    dict
        The chunk as a Parquet file ("data"), with "seconds" and "rows"; or "error", a message.
    """
    began = time.perf_counter()
    sys.path.extend(p for p in path if p not in sys.path)
    try:
        if other := differing(expected.code, code_versions()):
            told = ", ".join(f"{name} {here or 'none'} instead of {there or 'none'}" for name, there, here in other)
            return {"error": f"a worker would compute other numbers: it has {told}. Install the same there."}
        setup, made = unpacked(packed, expected)
        table = computed(setup, made, first, values, expected.programs)
    except BellcrankError as error:
        return {"error": str(error)}
    data = encoded(table, expected.study)
    return {"data": data, "seconds": time.perf_counter() - began, "rows": len(table["run"])}


def unpacked(packed: bytes, expected: Expected) -> tuple[Setup, dict[str, Simulator]]:
    """Return the Setup in `packed` and its compiled simulators, after checking that it arrived as `expected`."""
    key = hashlib.sha256(packed + expected.study.encode()).hexdigest() + study_name({"programs": expected.programs})
    if key not in _setups:
        setup = extra("cloudpickle", "study", "a study").loads(packed)
        if other := differing(expected.setup, setup_digests(setup)):
            names = ", ".join(name for name, _, _ in other)
            raise InputError(
                f"a worker would compute other numbers: {names} is different there. Functions of modules are sent by "
                "name: give the workers the same files, and restart them."
            )
        while len(_setups) >= KEPT:
            _setups.pop(next(iter(_setups)))
        _setups[key] = setup, {}
    return _setups[key]


def computed(
    setup: Setup,
    made: dict[str, Simulator],
    first: int,
    values: Mapping[str, Array],
    programs: Mapping[str, str] | None = None,
) -> Table:
    """Return all columns of the runs of a chunk.

    Parameters
    ----------
    setup
        The study's setup.
    made
        Compiled simulators by group, extended here.
    first
        Number of the first run.
    values
        Values of the runs, by name.
    programs
        Expected digests of the graphs, by group.
    """
    n = len(next(iter(values.values())))
    whole: Table = {"run": np.arange(first, first + n, dtype=np.int64), **values}
    parts: list[tuple[Array, Table]] = []
    for choice, rows in groups(setup, values):
        key = group_key(choice)
        part = {name: x[rows] for name, x in values.items()}
        sim = made.get(key) or setup.simulator(choice)
        if key not in made and _traced_as_expected(setup, sim, part, (programs or {}).get(key)):
            made[key] = sim
        parts.append((rows, _safely(setup, sim, whole["run"][rows], part)))
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


def _traced_as_expected(setup: Setup, sim: Simulator, values: Table, expected: str | None) -> bool:
    """Return whether these runs execute any graph, after checking that it is the expected one.

    Raises
    ------
    InputError
        If the digest of the graph differs from `expected`.
    """
    found = program_digest(setup, sim, values)
    if expected is not None and found not in (expected, None):
        raise InputError(
            "a worker would compute other numbers: it traces other equations from the same plant. They depend on "
            "something that is not sent along: an entry of bellcrank.register, a changed number of a module, a file."
        )
    return found is not None


def _safely(setup: Setup, sim: Simulator, runs: Array, values: Table) -> Table:
    """Run a batch; if it is refused, bisect it until the invalid runs stand alone."""
    try:
        if len(runs) > 1:
            return tabulated(setup, sim, ran(setup, sim, runs, values))
        twice = {name: x.repeat(2) for name, x in values.items()}  # a single run would need another compiled program
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


def tabulated(setup: Setup, sim: Simulator, run: Record) -> Table:
    """Return a row for each run: summaries, kept rows or final state, and reason and time of its end.

    Parameters
    ----------
    setup
        The study's setup.
    sim
        The simulator.
    run
        Its record.
    """
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
    """Return a list for each run, up to the end of that run."""
    found = np.empty(len(column), dtype=object)
    for i, (x, times) in enumerate(zip(column, t, strict=True)):
        found[i] = x[np.isfinite(times)]
    return found


# -- Parquet files


def encoded(table: Table, study: str) -> bytes:
    """Return `table` as a Parquet file with a seal over its content and the name of the `study`; deterministic."""
    pa, pq = (extra(name, "study", "a study") for name in ("pyarrow", "pyarrow.parquet"))
    arrays = [_array(pa, name, x) for name, x in table.items()]
    made = pa.Table.from_arrays(arrays, names=list(table))
    floats = [name for name, x in table.items() if x.dtype.kind == "f"]
    words = [name for name, x in table.items() if x.dtype.kind not in "fi" and not is_rows(name)]
    made = made.replace_schema_metadata({SEAL: seal(made, study), STUDY: study.encode()})
    stream = io.BytesIO()
    pq.write_table(
        made, stream, compression="zstd", use_dictionary=words, write_page_checksum=True,
        use_byte_stream_split=floats,
    )  # fmt: skip
    return stream.getvalue()


def is_rows(name: str) -> bool:
    """Return whether the column `name` contains lists of rows."""
    return name.startswith("rows(")


def _array(pa: Any, name: str, x: Array) -> Any:
    if is_rows(name):
        return pa.array(list(x), pa.list_(pa.float64()))
    return pa.array(x if x.dtype.kind in "fi" else [str(v) for v in x])


def seal(table: Any, study: str) -> bytes:
    """Return a digest of the `study`, names and values of `table`, independent of the layout of the file."""
    found = hashlib.sha256(study.encode())
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        kind = "rows" if is_rows(name) else column.type  # Parquet may rename the elements of lists
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
