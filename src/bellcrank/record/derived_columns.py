"""Columns that are not stored but follow from those that are: energies, passive forces, powers, where the frames of
the mechanism are, and what beams carry at their named sections.

Computed when first asked for, by the mechanism's compiled kernels, all rows of all runs in one call. Rows that are not
finite (a run that has stopped) stay NaN: a kernel takes finite numbers only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bellcrank.model import Mechanism
from bellcrank.model.outline import LOADS, STRESS, Slice
from bellcrank.model.parts import Array
from bellcrank.record.contents import Column, state_columns

if TYPE_CHECKING:
    from bellcrank.record.record import Record

ENERGIES = ("energy", "potential_energy", "kinetic_energy")
# d(energy)/dt is their sum. Springs store energy, so that of what is passive dampers and friction alone have a power.
POWERS = {
    "drive_power": "tau",
    "passive_power": "passive",
    "external_power": "external",
    "element_power": "element",
    "motion_power": "motion",
}
PLACES = ("x", "y", "z", "speed")


def names(run: Record) -> list[str]:
    """What `column` can find beside what is stored."""
    m = run.mechanism
    if m is None or not run.has_state("q"):
        return []
    moving = run.has_state("v")
    energies = ENERGIES if moving else ("potential_energy",)
    passive = [f"{name}.passive" for name in m.columns[1]] if moving else []
    powers = [name for name, kind in POWERS.items() if moving and (kind == "passive" or run.has(kind))]
    frames = [f"{frame}.{p}" for frame in m.frames for p in PLACES if moving or p != "speed"]
    return [*passive, *energies, *powers, *frames, *sections(m)]


def sections(m: Mechanism) -> dict[str, tuple[Slice, str]]:
    """Loads and stresses at named sections of beams."""
    return {name: found for outline in m.outlines for name, found in outline.columns.items()}


def _carried(run: Record, name: str, place: Slice, what: str) -> Column:
    m = run.mechanism
    assert m is not None
    q = run.q[..., [m.columns[0].index(x) for x in place.coordinates]]
    if what == STRESS:
        return Column(name, "Pa", place.stress(q))
    return Column(name, "N" if what in ("N", "Vy", "Vz") else "N m", place.load(q)[..., LOADS.index(what)])


def column(run: Record, name: str) -> Column | None:
    m = run.mechanism
    if m is None or name not in names(run):
        return None
    if name == "energy":
        return Column(name, "J", run["kinetic_energy"] + run["potential_energy"])
    if name == "kinetic_energy":
        return Column(name, "J", over_rows(m.kinetic_energy, run.q, run.v, *run.free))
    if name == "potential_energy":
        return Column(name, "J", over_rows(m.potential_energy, run.q, *run.free))
    if name in POWERS:
        force = dissipative(run) if name == "passive_power" else run.stacked(POWERS[name])
        return Column(name, "W", (force * run.v).sum(axis=-1))
    if name.endswith(".passive"):
        found = state_columns(m, run.t, passive=over_rows(m.passive_torque, run.q, run.v, *run.free))
        return found[name]
    if name in (cuts := sections(m)):
        return _carried(run, name, *cuts[name])
    frame, _, what = name.rpartition(".")
    if what == "speed":
        V = over_rows(lambda q, v, p=None: m.velocity(q, v, frame, p=p), run.q, run.v, *run.free)
        return Column(name, "m/s", np.linalg.norm(V[..., :3], axis=-1))
    return Column(name, "m", run.poses(frame)[..., PLACES.index(what), 3])


def dissipative(run: Record) -> Array:
    """Of the passive forces, those of dampers and friction: what is left of them at rest are springs."""
    m, rest = run.mechanism, np.zeros(run.v.shape)
    assert m is not None
    return run.passive - over_rows(m.passive_torque, run.q, rest, *run.free)


def over_rows(function: Callable[..., Array], *arrays: Array) -> Array:
    """function of the rows that are finite in all arrays; NaN in the others."""
    shape = arrays[0].shape[:-1]
    flat = [a.reshape(-1, a.shape[-1]) for a in arrays]
    good = np.logical_and.reduce([np.isfinite(a).all(axis=-1) for a in flat])
    some = np.asarray(function(*(np.ascontiguousarray(a[good]) for a in flat)))
    out = np.full((good.size, *some.shape[1:]), np.nan)
    out[good] = some
    return out.reshape(*shape, *some.shape[1:])
