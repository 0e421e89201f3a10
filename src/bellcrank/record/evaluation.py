"""Evaluation of a record: last row, interpolation between rows, errors of invariants, and a text summary.

The summary is a table of the columns, the provenance, and why the runs stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import InputError, brief
from bellcrank.model.joints import KINDS
from bellcrank.model.parts import Array
from bellcrank.quoting import single_line
from bellcrank.record.contents import Stops
from bellcrank.scalar import float_array
from bellcrank.text_table import table

if TYPE_CHECKING:
    from bellcrank.model.mechanism import Mechanism
    from bellcrank.record.record import Record

ROUNDING_SHARE = 1e-12  # relative energy below which a change is rounding noise
MAX_TABLE_ROWS = 60  # maximum number of table rows; a humanoid has hundreds of columns
MAX_VALUE_CHARACTERS = 2000  # characters: longer values are abbreviated


class RecordRow(Mapping[str, Any]):
    """Columns at one time: any stored or derived column, computed on access; iteration is over the stored ones."""

    def __init__(self, run: Record, value: Callable[[str], Array]) -> None:
        self._run, self._value = run, value

    def __getitem__(self, name: str) -> Any:
        return _number(self._value(self._run.column(name).name))

    def __contains__(self, name: object) -> bool:
        return name in self._run

    def __iter__(self) -> Iterator[str]:
        return iter(self._run.columns)

    def __len__(self) -> int:
        return len(self._run.columns)

    def __repr__(self) -> str:
        return repr(dict(self))


def final_row(run: Record) -> RecordRow:
    """Return the last recorded row of each run of `run`."""
    last = np.maximum(row_counts(run) - 1, 0)
    if not len(run):
        raise InputError("the record has no rows, so there is no final row.")
    return RecordRow(run, lambda name: np.take_along_axis(run[name], last[..., None], -1)[..., 0])


def row_counts(run: Record) -> Array:
    """Return the number of rows of each run of `run`; the time is NaN after the end of a run."""
    return np.asarray(np.isfinite(run.t).sum(axis=-1))


def interpolated_row(run: Record, t: Any) -> RecordRow:
    """Return the columns of `run` at the time or times `t`, by linear interpolation, with normalised quaternions."""
    try:
        times, rows = float_array(t), row_counts(run)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"at: t is {brief(t)}; expected a time in seconds, or several.") from None
    for lane in np.ndindex(*run.batch):
        n = int(rows[lane])
        clock = run.t[lane][:n]
        bad = times[~((times >= (clock[0] if n else np.inf)) & (times <= (clock[-1] if n else -np.inf)))]
        if bad.size:
            run_text = f" of run {lane}" if lane else ""
            span = f"from {clock[0]:g} to {clock[-1]:g} s" if n else "without rows"
            raise InputError(f"t = {bad.flat[0]:g} s is outside the record{run_text}, which is {span}.")
    quaternion_columns = {name: names for names in quaternions(run).values() for name in names}

    def value(name: str) -> Array:
        values = np.empty((*run.batch, *times.shape))
        for lane in np.ndindex(*run.batch):
            n = int(rows[lane])
            clock = run.t[lane][:n]
            if (names := quaternion_columns.get(name)) is not None:
                values[lane] = _interpolated_quaternions(run, names, lane, times, clock)[names.index(name)]
            else:
                values[lane] = np.interp(times, clock, run[name][lane][:n])
        return values

    return RecordRow(run, value)


def _interpolated_quaternions(
    run: Record, names: list[str], lane: tuple[int, ...], times: Array, clock: Array
) -> Array:
    """Interpolate quaternions linearly on the shorter arc, and normalise them."""
    Q = np.stack([run[name][lane][: clock.size] for name in names])
    mixed = np.stack([np.interp(times, clock, row) for row in Q * _hemisphere_signs(Q)])
    return np.asarray(mixed / np.linalg.norm(mixed, axis=0))


def _hemisphere_signs(Q: Array) -> Array:
    """Return signs that put neighbouring quaternions into one hemisphere: q and -q are the same rotation."""
    same = np.where(np.sum(Q[:, 1:] * Q[:, :-1], axis=0) < 0.0, -1.0, 1.0)
    return np.concatenate([np.ones(1), np.cumprod(same)])


def residuals(run: Record) -> dict[str, Any]:
    """Return the errors of energy and quaternions of `run`, as `Record.residuals` describes."""
    out: dict[str, Any] = {}
    supplied = supplied_work(run) if "energy" in run and len(run) > 1 else None  # a single row cannot be compared
    if supplied is not None:
        E = run["energy"]
        out["energy"] = _number(_relative_energy(run, _largest(E - E[..., :1] - supplied)))
    for joint, names in quaternions(run).items():
        length = np.sqrt(sum(run[name] ** 2 for name in names))
        out[f"quaternion {joint}"] = _number(_largest(length - 1.0))
    return out


def _relative_energy(run: Record, energy: Array) -> Array:
    """Divide by the largest kinetic energy, or without motion by the largest change of potential energy."""
    E = run["energy"]
    scale = _largest(run["kinetic_energy"]) if "kinetic_energy" in run else _largest(E - E[..., :1])
    if "potential_energy" in run:
        V = run["potential_energy"]
        scale = np.where(scale > 0.0, scale, _largest(V - V[..., :1]))
    # A run that hardly moves is compared with its total energy.
    scale = np.where(scale > ROUNDING_SHARE * _largest(E), scale, _largest(E))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(energy > 0.0, energy / np.where(scale > 0.0, scale, np.nan), energy))


def quadrature_error(run: Record) -> Any:
    """Return the part of residuals()["energy"] of `run` that may come from the spacing of the rows.

    Powers are known at the rows only. The error of their integral is at most its change when every other row is left
    out (and about a fifteenth of this change if rows are close).
    """
    supplied = supplied_work(run)
    if supplied is None or len(run) < 3:
        return _number(np.zeros(run.t.shape[:-1]))
    coarse = supplied_work(run, 2)
    assert coarse is not None
    return _number(_relative_energy(run, _largest(supplied[..., ::2] - coarse)))


POWER_COLUMNS = {
    "actuators": "drive_power",
    "control": "drive_power",
    "forces": "external_power",
    "everywhere": "external_power",
    "elements": "element_power",
    "motions": "motion_power",
}  # power column by entry of the provenance


def supplied_work(run: Record, every: int = 1) -> Array | None:
    """Return the work of drives, dampers, friction and external forces in `run` since the first row, J.

    The integral uses every `every`-th row. The result is None if the powers are unknown.
    """
    m, t = run.mechanism, run.t[..., ::every]
    total = np.zeros(t.shape)
    for power in {POWER_COLUMNS[key]: None for key in POWER_COLUMNS if run.provenance.get(key)}:
        if power not in run:
            return None
        total = total + time_integral(t, run[power][..., ::every])
    damped = m is not None and any(not isinstance(x, (int, float)) or x for x in dissipation_coefficients(m))
    if damped and "passive_power" in run:
        total = total + time_integral(t, run["passive_power"][..., ::every])
    return total


def time_integral(t: Array, x: Array) -> Array:
    """Integrate `x` over `t` along the rows, from 0, by cubics with the slopes of parabolas through three rows."""
    out = np.full(x.shape, np.nan)
    for lane in np.ndindex(*x.shape[:-1]):
        good = np.isfinite(t[lane]) & np.isfinite(x[lane])
        clock, values = t[lane][good], x[lane][good]
        if len(clock) < 3:
            slope = np.zeros(len(clock))
        else:
            slope = np.gradient(values, clock, edge_order=2)
        h = np.diff(clock)
        each = h / 2 * (values[1:] + values[:-1]) + h * h / 12 * (slope[:-1] - slope[1:])
        out[lane][good] = np.concatenate([np.zeros(min(1, len(clock))), np.cumsum(each)])
    return out


def is_conservative(run: Record) -> bool:
    """Return whether energy is conserved in `run`: no actuator, control, external force, damper or friction.

    The result is False if the provenance does not describe the drives.
    """
    provenance, m = run.provenance, run.mechanism
    if m is None or "actuators" not in provenance or any(provenance.get(key) for key in POWER_COLUMNS):
        return False
    return not any(not isinstance(x, (int, float)) or x for x in dissipation_coefficients(m))


def dissipation_coefficients(m: Mechanism) -> list[Any]:
    """Return all coefficients of dissipation of `m`: damping and friction of joints, springs and flexible bodies."""
    joints = [x for j in m.joints for x in (j.damping, j.friction)]
    return [*joints, *(s.damping for s in m.springs), *(x for body in m.flexible for x in body.damping)]


def quaternions(run: Record) -> dict[str, list[str]]:
    """Return the four columns of each joint with a quaternion, if `run` stores them."""
    if run.mechanism is None or not run.has_state("q"):
        return {}
    joints = [j.name for j in run.mechanism.own_joints if KINDS[j.kind].nq > KINDS[j.kind].nv]
    return {name: [f"{name}.{c}.q" for c in ("qx", "qy", "qz", "qw")] for name in joints}


def _largest(values: Array) -> Array:
    """Return the largest magnitude over the recorded rows."""
    return np.asarray(np.nanmax(np.abs(values), axis=-1, initial=0.0))


def _number(values: Any) -> Any:
    values = np.asarray(values)
    return float(values) if values.ndim == 0 else values


def summary(run: Record) -> str:
    """Return the summary of `run`."""
    t = run.t
    span = f"{np.nanmax(t) - np.nanmin(t):.6g} s" if np.isfinite(t).any() else "no time"
    if len(run) == 1 and np.isfinite(t).any():
        first, last = np.nanmin(t), np.nanmax(t)
        span = f"at {first:.6g} s" if first == last else f"at {first:.6g} to {last:.6g} s"
    batch = f"{run.runs} runs {run.batch} of " if run.batch else ""
    head = f"{repr(run)[1:].partition(':')[0]}: {batch}{len(run)} row{'s' * (len(run) != 1)}, {span}"
    rows = [(name, *_numbers(run[name]), run.column(name).unit) for name in run.columns[:MAX_TABLE_ROWS]]
    parts = [table(("column", "first", "last", "min", "max", "unit"), rows, right=(1, 2, 3, 4))]
    if len(run.columns) > MAX_TABLE_ROWS:
        parts.append(f"... and {len(run.columns) - MAX_TABLE_ROWS} more")
    facts = [f"{key}: {value_text(value)}" for key, value in run.provenance.items()]
    return "\n".join([single_line(head), *parts, *map(single_line, (*facts, *stop_lines(run)))])


def _numbers(values: Array) -> tuple[str, ...]:
    """Return the first and last value of the first run, and the minimum and maximum of all runs."""
    first_run = values.reshape(-1, values.shape[-1])[:1].ravel() if values.size else values.ravel()
    first_run, every = first_run[~np.isnan(first_run)], values[~np.isnan(values)]
    if not first_run.size or not every.size:
        return ("-",) * 4
    return tuple(f"{x:.6g}" for x in (first_run[0], first_run[-1], every.min(), every.max()))


def value_text(value: object) -> str:
    """Return a `value` of the provenance as one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {value_text(x)}" for key, x in value.items())
    if isinstance(value, list):
        return ", ".join(map(value_text, value))
    text = f"{value:.12g}" if isinstance(value, float) else str(value)
    return text if len(text) <= MAX_VALUE_CHARACTERS else f"{text[:60]}... ({len(text)} letters)"


def stop_lines(run: Record) -> list[str]:
    """Return a line for the stop of each run of `run` if they are few, otherwise the number of runs by reason."""
    if len(run.stops) > 8:
        counts = (
            run.stops.counts()
            if isinstance(run.stops, Stops)
            else dict(Counter(s.reason for s in run.stops).most_common())
        )
        return [f"stopped: {', '.join(f'{n} x {reason}' for reason, n in counts.items())}"]
    lanes = list(np.ndindex(*run.batch))
    return [
        f"stopped{f' {lane}' if lane else ''} at {s.time:.6g} s: {s.reason}{f' ({s.message})' if s.message else ''}"
        for lane, s in zip(lanes, run.stops, strict=False)
    ]
