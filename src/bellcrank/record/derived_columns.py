"""Columns derived from stored ones: energies, passive forces, powers, positions of frames, and section loads of beams.

They are computed on first access by compiled kernels of the mechanism, all rows of all runs in one call. Rows that are
not finite (after the end of a run) stay NaN, because kernels take finite numbers only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bellcrank.model import Mechanism
from bellcrank.model.outline import LOAD_NAMES, STRESS_NAME, BeamSlice
from bellcrank.model.parts import Array
from bellcrank.record.contents import Column, state_columns

if TYPE_CHECKING:
    from bellcrank.record.record import Record

ENERGIES = ("energy", "potential_energy", "kinetic_energy")
# d(energy)/dt is their sum. Springs store energy, so passive_power includes only dampers and friction.
POWERS = {
    "drive_power": "tau",
    "passive_power": "passive",
    "external_power": "external",
    "element_power": "element",
    "motion_power": "motion",
}
FRAME_COLUMNS = ("x", "y", "z", "speed")


def derivable_names(run: Record) -> list[str]:
    """Return the names of columns that can be derived from `run`."""
    m = run.mechanism
    if m is None or not run.has_state("q"):
        return []
    moving = run.has_state("v")
    energies = ENERGIES if moving else ("potential_energy",)
    passive = [f"{name}.passive" for name in m.columns[1]] if moving else []
    powers = [name for name, kind in POWERS.items() if moving and (kind == "passive" or run.has(kind))]
    frames = [f"{frame}.{p}" for frame in m.frames for p in FRAME_COLUMNS if moving or p != "speed"]
    return [*passive, *energies, *powers, *frames, *sections(m)]


def sections(m: Mechanism) -> dict[str, tuple[BeamSlice, str]]:
    """Return section and kind of load or stress, by column name, for the named beam sections of `m`."""
    return {name: column for outline in m.outlines for name, column in outline.columns.items()}


def _section_column(run: Record, name: str, place: BeamSlice, what: str) -> Column:
    m = run.mechanism
    assert m is not None
    q = run.q[..., [m.columns[0].index(x) for x in place.coordinates]]
    if what == STRESS_NAME:
        return Column(name, "Pa", place.stress(q))
    return Column(name, "N" if what in ("N", "Vy", "Vz") else "N m", place.load(q)[..., LOAD_NAMES.index(what)])


def derived_column(run: Record, name: str) -> Column | None:
    """Return the derived column `name` of `run`; None if there is no such column."""
    m = run.mechanism
    if m is None or name not in derivable_names(run):
        return None
    if name == "energy":
        return Column(name, "J", run["kinetic_energy"] + run["potential_energy"])
    if name == "kinetic_energy":
        return Column(name, "J", apply_to_rows(m.kinetic_energy, run.q, run.v, *run.free))
    if name == "potential_energy":
        return Column(name, "J", apply_to_rows(m.potential_energy, run.q, *run.free))
    if name in POWERS:
        force = dissipative_forces(run) if name == "passive_power" else run.stacked(POWERS[name])
        return Column(name, "W", (force * run.v).sum(axis=-1))
    if name.endswith(".passive"):
        passive_columns = state_columns(m, run.t, passive=apply_to_rows(m.passive_torque, run.q, run.v, *run.free))
        return passive_columns[name]
    if name in (cuts := sections(m)):
        return _section_column(run, name, *cuts[name])
    frame, _, kind = name.rpartition(".")
    if kind == "speed":
        V = apply_to_rows(lambda q, v, p=None: m.velocity(q, v, frame, p=p), run.q, run.v, *run.free)
        return Column(name, "m/s", np.linalg.norm(V[..., :3], axis=-1))
    return Column(name, "m", run.poses(frame)[..., FRAME_COLUMNS.index(kind), 3])


def dissipative_forces(run: Record) -> Array:
    """Return the forces of dampers and friction in `run`: the passive forces minus those at rest, which are springs."""
    m, still = run.mechanism, np.zeros(run.v.shape)
    assert m is not None
    return run.passive - apply_to_rows(m.passive_torque, run.q, still, *run.free)


def apply_to_rows(function: Callable[..., Array], *arrays: Array) -> Array:
    """Apply `function` to the rows that are finite in all `arrays`; the result of other rows is NaN."""
    shape = arrays[0].shape[:-1]
    flat = [a.reshape(-1, a.shape[-1]) for a in arrays]
    finite = np.logical_and.reduce([np.isfinite(a).all(axis=-1) for a in flat])
    results = np.asarray(function(*(np.ascontiguousarray(a[finite]) for a in flat)))
    out = np.full((finite.size, *results.shape[1:]), np.nan)
    out[finite] = results
    return out.reshape(*shape, *results.shape[1:])
