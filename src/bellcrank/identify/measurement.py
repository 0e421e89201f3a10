"""A measured motion from a file: t, then JOINT.q, JOINT.v, JOINT.a and JOINT.tau, in any order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.errors import InputError, ReadError, unknown
from bellcrank.identify.branch import Branch
from bellcrank.model import Mechanism
from bellcrank.studies.points import read_table

Array = np.ndarray[Any, Any]


def measured(
    m: Mechanism, path: Path, actuated: Sequence[str] = (), at: Any = None
) -> tuple[Array, Array, Array, Array]:
    """q, v, a and tau (samples, n each). Velocities and accelerations that are not there are differences of what is.
    With closed loops the driven joints are enough: the others follow, on the branch that is assembled from `at`.
    """
    table = checked_table(read_table(path), str(path))
    driven = tuple(actuated) or m.columns[1]
    if m.loops and not {f"{n}.q" for n in m.columns[0]} <= set(table):
        q, v, a, _ = Branch(m, driven, at).motion(*_motion(table, driven, str(path)))
    elif m.nq != m.nv:
        raise InputError(f'"{m.name}" has quaternions; files of measurements are for plain joints.')
    else:
        q, v, a = _motion(table, m.columns[1], str(path))
    return q, v, a, _stacked(table, driven, "tau", str(path))


def _motion(table: Mapping[str, Array], names: Sequence[str], where: str) -> tuple[Array, Array, Array]:
    t, q = table["t"], _stacked(table, names, "q", where)
    v = _stacked(table, names, "v", where) if f"{names[0]}.v" in table else np.gradient(q, t, axis=0, edge_order=2)
    a = _stacked(table, names, "a", where) if f"{names[0]}.a" in table else np.gradient(v, t, axis=0, edge_order=2)
    return q, v, a


def checked_table(table: Mapping[str, Any], where: str) -> dict[str, Array]:
    """Columns of finite numbers of one length, with a time "t" that runs forwards."""
    if "t" not in table:
        raise ReadError(f'{where}: {unknown("column", "t", table)} The time is called "t".')
    found: dict[str, Array] = {}
    for name, x in table.items():
        x = np.asanyarray(x)
        if x.dtype.kind not in "fiu":
            raise ReadError(f'{where}: column "{name}" has words; expected numbers.')
        if np.ma.is_masked(x):
            raise ReadError(f'{where}: column "{name}" has masked entries; expected numbers. Leave these rows out.')
        if x.shape != np.asarray(table["t"]).shape:
            raise ReadError(f'{where}: column "{name}" has the length {len(x)}, and t {len(table["t"])}.')
        bad = np.flatnonzero(~np.isfinite(x.astype(float)))
        if len(bad):
            raise ReadError(f'{where}: column "{name}", row {bad[0]} is {x[bad[0]]}; expected finite numbers.')
        found[name] = np.asarray(x, float)
    t = found["t"]
    if len(t) < 3:
        raise ReadError(f"{where}: {len(t)} rows; expected three at least.")
    back = np.flatnonzero(np.diff(t) <= 0)
    if len(back):
        k = int(back[0])
        raise ReadError(f"{where}: the time runs backwards: t is {t[k]:g} in row {k} and {t[k + 1]:g} in row {k + 1}.")
    return found


def _stacked(table: Mapping[str, Array], names: Sequence[str], kind: str, where: str) -> Array:
    for n in names:
        if f"{n}.{kind}" not in table:
            raise ReadError(f"{where}: {unknown('column', f'{n}.{kind}', table)}")
    return np.stack([table[f"{n}.{kind}"] for n in names], axis=1)
