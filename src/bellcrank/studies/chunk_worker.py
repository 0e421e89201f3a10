"""Runs of one chunk in a worker: values in, a table out; the worker caches compiled programs.

A run that fails is a row with its reason, and so is one whose values are refused: the others are not affected.
"""

from __future__ import annotations

import hashlib
import io
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.content_digest.libraries import code_versions
from bellcrank.errors import BellcrankError, InputError
from bellcrank.lazy_import import optional_import
from bellcrank.record import Record
from bellcrank.sim.run.simulator import Simulator
from bellcrank.studies.run_batches import (
    DrawnRun,
    Table,
    block_digests,
    draw_inputs,
    encode_digests,
    run_batch,
    run_groups,
)
from bellcrank.studies.sampling_plans import Array
from bellcrank.studies.study_identity import (
    ExpectedDigests,
    digest_differences,
    executed_program,
    program_digest,
    setup_digests,
    study_name,
)
from bellcrank.studies.study_setup import StudySetup, group_key

# keys of the metadata of a file of rows
SEAL_KEY, STUDY_KEY, DRAWN_KEY = b"bellcrank seal", b"bellcrank study", b"bellcrank random inputs"
REFUSED = "refused"  # value of "stop" for a run that could not begin
MAX_CACHED_SETUPS = 4  # setups with their compiled programs that one worker caches

_setups: dict[str, tuple[StudySetup, dict[str, Simulator]]] = {}


def compute_chunk(
    packed: bytes, expected: ExpectedDigests, path: list[str], first: int, values: Mapping[str, Array]
) -> dict[str, Any]:
    """Compute one chunk in a worker.

    Workers whose code, or whose versions of the user's modules, would compute different numbers compute nothing.

    Parameters
    ----------
    packed
        The pickled StudySetup.
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
        The chunk as a Parquet file ("data"), with "seconds", "rows" and "drawn", the digests of its random inputs; or
        "error", a message. "warnings" has the texts of the runs' warnings, which would reach no user from here, without
        those that are in the column "stop".
    """
    began = time.perf_counter()
    sys.path.extend(p for p in path if p not in sys.path)
    try:
        if other := digest_differences(expected.code, code_versions()):
            differences = ", ".join(
                f"{name} {present or 'none'} instead of {wanted or 'none'}" for name, wanted, present in other
            )
            return {"error": f"a worker would compute different numbers: it has {differences}. Install the same there."}
        setup, simulators = unpack_setup(packed, expected)
        drawn = draw_inputs(setup, first + np.arange(len(next(iter(values.values())))), values)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            table = chunk_table(setup, simulators, first, values, expected.programs, drawn)
    except BellcrankError as error:
        return {"error": str(error)}
    digests = block_digests(drawn)
    data = encode_table(table, expected.study, encode_digests(digests))
    stops = {message for message in table["message"] if message}
    texts = [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]
    issued = [text for text in texts if not any(message in text for message in stops)]
    seconds = time.perf_counter() - began
    return {"data": data, "seconds": seconds, "rows": len(table["run"]), "drawn": digests, "warnings": issued}


def unpack_setup(packed: bytes, expected: ExpectedDigests) -> tuple[StudySetup, dict[str, Simulator]]:
    """Return the StudySetup in `packed` and its compiled simulators, after checking that it arrived as `expected`."""
    key = hashlib.sha256(packed + expected.study.encode()).hexdigest() + study_name({"programs": expected.programs})
    if key not in _setups:
        setup = optional_import("cloudpickle", "study", "a study").loads(packed)
        if other := digest_differences(expected.setup, setup_digests(setup)):
            names = ", ".join(name for name, _, _ in other)
            raise InputError(
                f"a worker would compute different numbers: {names} is different there. Functions of modules are sent "
                "by name: give the workers the same files, and restart them."
            )
        while len(_setups) >= MAX_CACHED_SETUPS:
            _setups.pop(next(iter(_setups)))
        _setups[key] = setup, {}
    return _setups[key]


def chunk_table(
    setup: StudySetup,
    simulators: dict[str, Simulator],
    first: int,
    values: Mapping[str, Array],
    programs: Mapping[str, str] | None = None,
    drawn: Sequence[DrawnRun] | None = None,
) -> Table:
    """Return all columns of the runs of a chunk.

    Parameters
    ----------
    setup
        The study's setup.
    simulators
        Compiled simulators by group, extended here.
    first
        Number of the first run.
    values
        Values of the runs, by name.
    programs
        Expected digests of the graphs, by group.
    drawn
        Random inputs of the runs; drawn here if they are None.
    """
    n = len(next(iter(values.values())))
    table: Table = {"run": np.arange(first, first + n, dtype=np.int64), **values}
    drawn = draw_inputs(setup, table["run"], values) if drawn is None else drawn
    parts: list[tuple[Array, Table]] = []
    for choice, rows in run_groups(setup, values):
        key = group_key(choice)
        part = {name: x[rows] for name, x in values.items()}
        sim = simulators.get(key) or setup.simulator(choice)
        if key not in simulators and _check_program(setup, sim, part, (programs or {}).get(key)):
            simulators[key] = sim
        parts.append((rows, _run_bisecting(setup, sim, table["run"][rows], part, [drawn[k] for k in rows])))
    for name in dict.fromkeys(name for _, part in parts for name in part):  # variants may differ in their columns
        kind = next(part[name] for _, part in parts if name in part)
        empty = None if is_row_list(name) else ""
        column = np.full(n, np.nan) if kind.dtype.kind == "f" else np.full(n, empty, dtype=object)
        for rows, part in parts:
            if name in part:
                column[rows] = part[name]
        table[name] = column
    return table


def _check_program(setup: StudySetup, sim: Simulator, values: Table, expected: str | None) -> bool:
    """Return whether these runs execute any graph, after checking that it is the expected one.

    Raises
    ------
    InputError
        If the digest of the graph differs from `expected`.
    """
    program = executed_program(setup, sim, values)
    if program is not None and expected is not None and program_digest(program) != expected:
        raise InputError(
            "a worker would compute different numbers: it traces different equations from the same plant. They depend "
            "on something that is not sent along: an entry of bellcrank.register, a changed number of a module, a file."
        )
    return program is not None


def _run_bisecting(setup: StudySetup, sim: Simulator, runs: Array, values: Table, drawn: Sequence[DrawnRun]) -> Table:
    """Run a batch; if it is refused, bisect it until the invalid runs stand alone."""
    try:
        if len(runs) > 1:
            return run_rows(setup, sim, run_batch(setup, sim, runs, values, drawn))
        twice = {name: x.repeat(2) for name, x in values.items()}  # a single run would need another compiled program
        rows = run_rows(setup, sim, run_batch(setup, sim, runs.repeat(2), twice, [*drawn, *drawn]))
        return {name: x[:1] for name, x in rows.items()}
    except InputError as error:
        if len(runs) == 1:
            words = {"stop": REFUSED, "message": str(error)}
            return {"stop_time": np.zeros(1), **{k: np.array([x], dtype=object) for k, x in words.items()}}
    half = len(runs) // 2
    parts = [
        _run_bisecting(setup, sim, runs[part], {name: x[part] for name, x in values.items()}, drawn[part])
        for part in (slice(None, half), slice(half, None))
    ]
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: np.concatenate([_column_or_missing(part, name) for part in parts]) for name in names}


def _column_or_missing(part: Table, name: str) -> Array:
    none = np.full(len(part["stop"]), None, dtype=object) if is_row_list(name) else np.full(len(part["stop"]), np.nan)
    return part.get(name, none)


def run_rows(setup: StudySetup, sim: Simulator, run: Record) -> Table:
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
    table: Table = {n: np.asarray(run[n])[..., 0] for n in sim.saving.summary}
    if setup.keep == "rows":
        table |= {f"rows({n})": _row_lists(np.asarray(run[n]), run.t) for n in run.columns}
    if setup.keep == "final":
        ends = [n for n in run.columns if n.endswith((".q", ".v")) or n in run.states]
        table |= {f"final({n})": np.asarray(run[n])[..., 0] for n in ends}
    stops = run.stops
    reasons = np.array([s.reason for s in stops], dtype=object)
    table["stop"] = reasons
    table["stop_time"] = np.array([s.time for s in stops], float)
    table["message"] = np.array([s.message for s in stops], dtype=object)
    return table


def _row_lists(column: Array, t: Array) -> Array:
    """Return a list for each run, up to the end of that run."""
    lists = np.empty(len(column), dtype=object)
    for i, (x, times) in enumerate(zip(column, t, strict=True)):
        lists[i] = x[np.isfinite(times)]
    return lists


# -- Parquet files


def encode_table(table: Table, study: str, drawn: bytes = b"") -> bytes:
    """Return `table` as a Parquet file with a seal over its content and the name of the `study`; deterministic.

    `drawn` are the encoded digests of its random inputs.
    """
    pa, pq = (optional_import(name, "study", "a study") for name in ("pyarrow", "pyarrow.parquet"))
    arrays = [_array(pa, name, x) for name, x in table.items()]
    arrow_table = pa.Table.from_arrays(arrays, names=list(table))
    floats = [name for name, x in table.items() if x.dtype.kind == "f"]
    words = [name for name, x in table.items() if x.dtype.kind not in "fi" and not is_row_list(name)]
    arrow_table = arrow_table.replace_schema_metadata(
        {SEAL_KEY: table_seal(arrow_table, study, drawn), STUDY_KEY: study.encode(), DRAWN_KEY: drawn}
    )
    stream = io.BytesIO()
    pq.write_table(
        arrow_table, stream, compression="zstd", use_dictionary=words, write_page_checksum=True,
        use_byte_stream_split=floats,
    )  # fmt: skip
    return stream.getvalue()


def is_row_list(name: str) -> bool:
    """Return whether the column `name` contains lists of rows."""
    return name.startswith("rows(")


def _array(pa: Any, name: str, x: Array) -> Any:
    if is_row_list(name):
        return pa.array(list(x), pa.list_(pa.float64()))
    return pa.array(x if x.dtype.kind in "fi" else [str(v) for v in x])


def table_seal(table: Any, study: str, drawn: bytes = b"") -> bytes:
    """Return a digest of the `study`, `drawn`, names and values of `table`, independent of the layout of the file."""
    digest = hashlib.sha256(study.encode() + drawn)
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        kind = "rows" if is_row_list(name) else column.type  # Parquet may rename the elements of lists
        digest.update(f"{name}\0{kind}\0{len(column)}\0".encode())
        if str(column.type) == "string":
            for x in column.to_pylist():
                digest.update(x.encode() + b"\0")
        elif is_row_list(name):
            for x in column.to_numpy(zero_copy_only=False):
                digest.update(
                    b"none" if x is None else len(x).to_bytes(8, "little") + np.ascontiguousarray(x).tobytes()
                )
        else:
            digest.update(np.ascontiguousarray(column.to_numpy(zero_copy_only=False)).tobytes())
    return digest.hexdigest().encode()
