"""Contents of a record: stored and derived columns with units, the reasons why runs ended, and plain data.

Derived columns are energies, passive forces, powers, positions of frames, and section loads of beams. They are computed
on first access by compiled kernels of the mechanism, all rows of all runs in one call. Rows that are not finite (after
the end of a run) stay NaN, because kernels take finite numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from bellcrank.errors import InputError, brief
from bellcrank.model import Array, Mechanism
from bellcrank.model.joints import KINDS
from bellcrank.model.outline import LOAD_NAMES, STRESS_NAME, BeamSlice
from bellcrank.quoting import name_problem
from bellcrank.scalar import float_array

if TYPE_CHECKING:
    from bellcrank.record.record import Record

# Names of coordinates, from the joint types (model/joints/), that are lengths or dimensionless.
LENGTHS, DIMENSIONLESS = ("x", "y", "z", "distance"), ("qx", "qy", "qz", "qw")
RATES = {"rad": ("rad/s", "rad/s^2", "N m"), "m": ("m/s", "m/s^2", "N")}  # units of v, a and forces
# Forces of drives; of springs, dampers and friction; external; of force elements; of prescribed motions.
FORCES = ("tau", "passive", "external", "element", "motion")
COMPONENTS = ("fx", "fy", "fz", "mx", "my", "mz")  # of a wrench on a frame, in world axes: "tool.fx"
STATE_KINDS = ("q", "v", "a", *FORCES)
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


@dataclass(frozen=True, eq=False)
class Column:
    """One quantity over time: values of the shape (*batch, rows), NaN where nothing was recorded."""

    name: str
    unit: str
    values: Array


@dataclass(frozen=True)
class Stop:
    """Reason ("end", "event", "not finite", ...), time in s and message of the end of a run."""

    reason: str
    time: float
    message: str = ""


def units(mechanism: Mechanism) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the units of q of `mechanism`, and for each element of v its unit times s, "rad" or "m" (see RATES)."""
    q: list[str] = []
    v: list[str] = []
    for j in mechanism.own_joints:
        kind = KINDS[j.kind]
        units = [
            "m" if c in LENGTHS or c.startswith("mode") else "1" if c in DIMENSIONLESS else "rad"
            for c in kind.coordinates
        ]
        q += units
        # A quaternion's rate is an angular velocity, which comes after the linear velocity.
        moving = [u for u in units if u != "1"]
        v += moving + ["rad"] * (kind.nv - len(moving))
    return tuple(q), tuple(v)


def _numbers(name: str, values: Any) -> Array:
    try:
        return float_array(values)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is {brief(values)}; expected an array of real numbers.") from None


def rate_column_name(name: str) -> str:
    """Return the name of the column of the rate of the state `name`."""
    return f"d({name})/dt"


def rate_unit(unit: str) -> str:
    """Return the unit of the rate of a quantity in `unit`."""
    if unit in ("", "1"):
        return "1/s"
    return unit[:-2] + "/s^2" if unit.endswith("/s") else f"{unit}/s"


def state_columns(mechanism: Mechanism, t: Any, **arrays: Any) -> dict[str, Column]:
    """Return the columns of a state: "t", "boom.q", "boom.v", ...

    Parameters
    ----------
    mechanism
        Mechanism, which determines names and units.
    t
        Time, shape (*batch, rows) or (rows,).
    arrays
        Arrays q, v, a, tau, passive, external, ..., shape (*batch, rows, n).
    """
    names, unit_names = mechanism.columns, units(mechanism)
    columns = {"t": Column("t", "s", _numbers("t", t))}
    for key, values in arrays.items():
        if key not in STATE_KINDS:
            raise InputError(f'columns of a state are {", ".join(STATE_KINDS)}; got "{key}".')
        values = _numbers(key, values)
        coordinate_names = names[0] if key == "q" else names[1]
        if values.ndim < 2 or values.shape[-1] != len(coordinate_names):
            raise InputError(f"{key} has the shape {values.shape}; expected (..., rows, {len(coordinate_names)}).")
        kind = 2 if key in FORCES else ("v", "a").index(key) if key != "q" else 0
        unit = unit_names[0] if key == "q" else [RATES[u][kind] for u in unit_names[1]]
        for i, name in enumerate(coordinate_names):
            columns[f"{name}.{key}"] = Column(f"{name}.{key}", unit[i], values[..., i])
    return columns


def read_only(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Return `columns` with read-only arrays of equal shape; the given t may have the shape (rows,)."""
    names = list(columns)
    if not names or names[0] != "t":
        raise InputError(f'the first column of a record is "t", the time; got {names[:3]}.')
    shapes = {name: np.shape(c.values) for name, c in columns.items()}
    full = max(shapes.values(), key=len)
    out = {}
    for name, column in columns.items():
        shape = shapes[name]
        if not name or name == "run" or column.name != name:
            raise InputError(
                f'a column is named "{column.name}" and stored as "{name}"; expected the same name, not empty and '
                'not "run" (in files that is the number of the run in a batch).'
            )
        if why := name_problem(name) or name_problem(column.unit):
            raise InputError(f"the column {why}.")
        if len(shape) < 1 or (shape != full and not (name == "t" and shape == full[-1:])):
            raise InputError(f'column "{name}" has the shape {shape}; expected {full} as the others: (*batch, rows).')
        try:
            values = float_array(column.values)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f'column "{name}" is {column.values!r}; expected an array of numbers.') from None
        values = values.view() if shape == full else np.broadcast_to(values, full)
        values.flags.writeable = False
        out[name] = Column(name, column.unit, values)
    return out


class Stops(Sequence[Stop]):
    """Sequence of Stop, one for each run, created on access: a million runs cost no more than arrays."""

    def __init__(
        self, words: Sequence[str], reason_indices: Array, times: Array, message: Callable[[int], str]
    ) -> None:
        """Take the reasons `words`, the `reason_indices` and `times` of all runs, and the function `message`."""
        self._reasons, self._reason_indices, self._times, self._message = tuple(words), reason_indices, times, message
        self._messages: dict[int, str] = {}

    @overload
    def __getitem__(self, run: int) -> Stop: ...

    @overload
    def __getitem__(self, run: slice) -> tuple[Stop, ...]: ...

    def __getitem__(self, run: int | slice) -> Stop | tuple[Stop, ...]:
        if isinstance(run, slice):
            return tuple(self[k] for k in range(*run.indices(len(self))))
        k = range(len(self))[run]  # raises IndexError if there is no such run
        if k not in self._messages:
            self._messages[k] = self._message(k)
        return Stop(self._reasons[int(self._reason_indices[k])], float(self._times[k]), self._messages[k])

    def __len__(self) -> int:
        return len(self._reason_indices)

    def counts(self) -> dict[str, int]:
        """Return the number of runs by reason, most frequent first.

        Returns
        -------
        dict
            Number of runs by reason.
        """
        counts = np.bincount(self._reason_indices, minlength=len(self._reasons))
        return {self._reasons[k]: int(counts[k]) for k in np.argsort(-counts, kind="stable") if counts[k]}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


def stop_of_part(run_stop: Stop, t: Array, part: Array) -> Stop:
    """Return the stop of a part of a run.

    Parameters
    ----------
    run_stop
        Stop of the run, which is returned if the part includes the last row.
    t
        Times of the run.
    part
        Times of the part.
    """
    times, part_times = t[np.isfinite(t)], part[np.isfinite(part)]
    if not part_times.size:
        return Stop("end", float("nan"), "none of its rows is in this part")
    if part_times[-1] == times[-1]:
        return run_stop
    return Stop("end", float(part_times[-1]), "the end of this part; the run went on")


def plain(value: Any) -> Any:
    """Return any `value` as data that JSON can hold, so that a finished run is never lost because of its type."""
    if isinstance(value, Mapping):
        return {str(key): plain(x) for key, x in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(x) for x in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, (str, bool, int)) else str(value)


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
        return state_columns(m, run.t, passive=apply_to_rows(m.passive_torque, run.q, run.v, *run.free))[name]
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
