"""Measured motions from files with columns t, JOINT.q, JOINT.v, JOINT.a and JOINT.tau, in any order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.errors import InputError, ReadError, unknown
from bellcrank.identify.loop_branch import Branch
from bellcrank.model import Mechanism
from bellcrank.studies.sampling_plans import read_table

Array = np.ndarray[Any, Any]


def read_measurement(
    m: Mechanism, path: Path, actuated: Sequence[str] = (), guess: Any = None
) -> tuple[Array, Array, Array, Array]:
    """Return q, v, a and tau (samples, n each) from a file.

    Velocities and accelerations that are missing are computed by differences. With closed loops the driven joints are
    enough: the others follow, on the branch that is assembled from a guess.

    Parameters
    ----------
    m
        Mechanism.
    path
        File of the measurement.
    actuated
        Driven joints; all joints by default.
    guess
        Guess of a configuration on the branch.
    """
    table = checked_table(read_table(path), str(path))
    driven = tuple(actuated) or m.columns[1]
    if m.loops and not {f"{n}.q" for n in m.columns[0]} <= set(table):
        q, v, a, _ = Branch(m, driven, guess).motion(*_motion(table, driven, str(path)))
    elif m.nq != m.nv:
        raise InputError(f'"{m.name}" has quaternions; measurement files are for one-coordinate joints.')
    else:
        q, v, a = _motion(table, m.columns[1], str(path))
    return q, v, a, _stack_columns(table, driven, "tau", str(path))


def _motion(table: Mapping[str, Array], names: Sequence[str], where: str) -> tuple[Array, Array, Array]:
    t, q = table["t"], _stack_columns(table, names, "q", where)
    v = (
        _stack_columns(table, names, "v", where)
        if f"{names[0]}.v" in table
        else np.gradient(q, t, axis=0, edge_order=2)
    )
    a = (
        _stack_columns(table, names, "a", where)
        if f"{names[0]}.a" in table
        else np.gradient(v, t, axis=0, edge_order=2)
    )
    return q, v, a


def checked_table(table: Mapping[str, Any], where: str) -> dict[str, Array]:
    """Return the columns of `table` as finite numbers of one length with increasing times; errors name `where`."""
    if "t" not in table:
        raise ReadError(f'{where}: {unknown("column", "t", table)} The time column is named "t".')
    columns: dict[str, Array] = {}
    for name, x in table.items():
        x = np.asanyarray(x)
        if x.dtype.kind not in "fiu":
            raise ReadError(f'{where}: column "{name}" has text; expected numbers.')
        if np.ma.is_masked(x):
            raise ReadError(f'{where}: column "{name}" has masked entries; expected numbers. Omit these rows.')
        if x.shape != np.asarray(table["t"]).shape:
            raise ReadError(f'{where}: column "{name}" has the length {len(x)}, and t {len(table["t"])}.')
        bad = np.flatnonzero(~np.isfinite(x.astype(float)))
        if len(bad):
            raise ReadError(f'{where}: column "{name}", row {bad[0]} is {x[bad[0]]}; expected finite numbers.')
        columns[name] = np.asarray(x, float)
    t = columns["t"]
    if len(t) < 3:
        raise ReadError(f"{where}: {len(t)} rows; expected at least three.")
    reversals = np.flatnonzero(np.diff(t) <= 0)
    if len(reversals):
        k = int(reversals[0])
        raise ReadError(f"{where}: the time runs backwards: t is {t[k]:g} in row {k} and {t[k + 1]:g} in row {k + 1}.")
    return columns


def _stack_columns(table: Mapping[str, Array], names: Sequence[str], kind: str, where: str) -> Array:
    for n in names:
        if f"{n}.{kind}" not in table:
            raise ReadError(f"{where}: {unknown('column', f'{n}.{kind}', table)}")
    return np.stack([table[f"{n}.{kind}"] for n in names], axis=1)
