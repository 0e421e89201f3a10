"""Loads of a run for stress analysis: reactions of joints and loops, and the forces that act on bodies.

    joints        [force, moment] that a joint transmits to its body, about the origin of the body frame
    loops         [force, moment] of a loop closure, about its frame b
    drives        forces of actuators on their coordinates
    elements      wrenches of force elements at frame b; external wrenches at their frames

All are in world axes, or each in the axes of its body. The reactions include the accelerations due to all forces:
drives, elements and prescribed motions in the joints, wrenches of elements and external wrenches on the frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import InputError, unknown
from bellcrank.model.parts import Array
from bellcrank.record.contents import COMPONENTS, Column, apply_to_rows
from bellcrank.text_table import table

if TYPE_CHECKING:
    from bellcrank.record.record import Record

AXES = ("world", "body")
UNITS = {"f": "N", "m": "N m"}


@dataclass(frozen=True)
class Peak:
    """Largest force or moment at one place, with its time, run, and wrench at that time."""

    name: str
    what: str  # "force" or "moment"
    size: float
    time: float
    run: int
    wrench: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Loads:
    """Loads of `Record.loads`: `record` has all columns, `places` their names; str() is a table of the peaks."""

    record: Record
    places: tuple[str, ...]

    def wrench(self, name: str) -> Array:
        """Return the wrench of one place.

        Parameters
        ----------
        name : str
            Joint, loop, force element or frame.

        Returns
        -------
        ndarray, shape (*batch, rows, 6)
            [force, moment], N and N m.

        Raises
        ------
        InputError
            If there is no such place.
        """
        if name not in self.places:
            raise InputError(f"loads: {unknown('joint, loop, element or frame', name, self.places)}")
        return np.stack([self.record[f"{name}.{c}"] for c in COMPONENTS], axis=-1)

    def peaks(self, begin: float = -np.inf, end: float = np.inf) -> list[Peak]:
        """Return the largest force and the largest moment of every place within a time span.

        Parameters
        ----------
        begin, end : float
            Time span, s; by default the whole run.

        Returns
        -------
        list of Peak
            Two peaks for each place.

        Raises
        ------
        InputError
            If no row is within the time span.
        """
        inside = (self.record.t >= begin) & (self.record.t <= end)
        if not inside.any():
            raise InputError(f"loads: no row lies between {begin:g} and {end:g} s.")
        peak_list = []
        for name in self.places:
            W = self.wrench(name)
            for what, part in (("force", W[..., :3]), ("moment", W[..., 3:])):
                size = np.where(inside & np.isfinite(part).all(axis=-1), np.linalg.norm(part, axis=-1), -1.0)
                peak_index = np.unravel_index(int(np.argmax(size)), size.shape)
                run = int(np.ravel_multi_index(peak_index[:-1], size.shape[:-1])) if len(peak_index) > 1 else 0
                time = np.broadcast_to(self.record.t, size.shape)[peak_index]
                wrench = tuple(float(x) for x in W[peak_index])
                peak_list.append(Peak(name, what, float(size[peak_index]), float(time), run, wrench))
        return peak_list

    def save(self, path: str | Path) -> Path:
        """Write all columns with their units, in any format of `Record.save`.

        Parameters
        ----------
        path : str or Path
            File, such as loads.csv or loads.parquet.

        Returns
        -------
        Path
            The written file.
        """
        return self.record.save(path)

    def __str__(self) -> str:
        head = ("place", "largest", "", "at s", "run", "fx N", "fy N", "fz N", "mx N m", "my N m", "mz N m")
        rows = []
        for p in self.peaks():
            cells = (p.name, f"{p.size:.4g}", f"{p.what}, {UNITS[p.what[0]]}", f"{p.time:.4f}", str(p.run))
            rows.append((*cells, *(f"{x:.4g}" for x in p.wrench)))
        return table(head, rows, right=(1, 3, 4, 5, 6, 7, 8, 9, 10))


def loads(run: Record, axes: str = "world") -> Loads:
    """Return the loads of `run` in "world" `axes`, or in those of each "body"."""
    m = run.mechanism
    if m is None or not run.has_state("v") or "t" not in run:
        raise InputError("loads: the record has no mechanism and state to compute them from.")
    if axes not in AXES:
        raise InputError(f"loads: {unknown('axes', axes, AXES)}")
    tau, wrenches = _joint_forces(run), _frame_wrenches(run)
    frames = [f for f in wrenches if m.frames[f].body != m.ground]
    row_arguments = (run.q, run.v, tau, *(wrenches[f] for f in frames), *run.free)

    def evaluated(quantity: str) -> Array:
        def evaluate(q: Any, v: Any, tau: Any, *more: Any) -> Any:
            acting = dict(zip(frames, more, strict=False))
            p = more[len(frames)] if len(more) > len(frames) else None
            return getattr(m, quantity)(q, v, tau, p=p, **({"wrenches": acting} if frames else {}))

        return apply_to_rows(evaluate, *row_arguments)

    reactions = evaluated("reactions")
    places = {j.name: (j.child, reactions[..., k, :]) for k, j in enumerate(m.joints)}
    if m.loops:
        closure_wrenches = evaluated("loop_forces")
        bodies = [m.frames[x.b].body if x.b else _child(m, x.joints[1]) for x in m.loops]
        places |= {
            x.name: (body, closure_wrenches[..., k, :]) for k, (x, body) in enumerate(zip(m.loops, bodies, strict=True))
        }
    for name, about in _elements(run).items():
        if "frames" in about:
            b = about["frames"][1]
            places[name] = (m.frames[b].body, _element_wrench(run, name))
    for frame in run.wrenches:
        places[frame] = (m.frames[frame].body, run.wrenches[frame])
    return _load_columns(run, places, axes)


def _load_columns(run: Record, places: Mapping[str, tuple[str, Array]], axes: str) -> Loads:
    m = run.mechanism
    assert m is not None
    columns = {"t": run.column("t")}
    for name, (body, W) in places.items():
        if axes == "body" and body != m.ground:
            R = run.poses(body)[..., :3, :3]
            W = np.concatenate([np.einsum("...ji,...j->...i", R, W[..., k : k + 3]) for k in (0, 3)], axis=-1)
        for k, c in enumerate(COMPONENTS):
            columns[f"{name}.{c}"] = Column(f"{name}.{c}", UNITS[c[0]], W[..., k])
    for joint in m.columns[1]:
        for kind in ("tau", "passive", "external", "element", "motion"):
            if f"{joint}.{kind}" in run:
                columns[f"{joint}.{kind}"] = run.column(f"{joint}.{kind}")
    return Loads(type(run)(columns, provenance={**run.provenance, "axes": axes}), tuple(places))


def _child(m: Any, joint: str) -> str:
    return str(next(j.child for j in m.joints if j.name == joint))


def _elements(run: Record) -> Mapping[str, Any]:
    elements = run.provenance.get("elements") or {}
    return elements if isinstance(elements, Mapping) else {}


def _element_wrench(run: Record, name: str) -> Array:
    return np.stack([run[f"{name}.{c}"] for c in COMPONENTS], axis=-1)


def _joint_forces(run: Record) -> Array:
    """Return the forces in the joints: drives, elements between joints, prescribed motions of joints."""
    m = run.mechanism
    assert m is not None
    names = list(m.columns[1])
    tau = np.array(run.tau)
    for name, about in _elements(run).items():
        for joint in about.get("joints", ()):
            tau[..., names.index(joint)] += run[f"{name}.{joint}"]
    for name in run.provenance.get("motions", ()):
        if name in names:
            tau[..., names.index(name)] += run[f"{name}.drive"]
    return tau


def _frame_wrenches(run: Record) -> dict[str, Array]:
    """Return the wrenches on frames: external ones, elements at both ends, prescribed motions of frames."""
    m = run.mechanism
    assert m is not None
    if run.provenance.get("everywhere"):
        raise InputError(
            "loads: in this run a force acted on every body (everywhere=...), and the record does not have the forces "
            "on single bodies. Use forces= on frames instead, or call mechanism.reactions with these wrenches."
        )
    wrenches: dict[str, Array] = {frame: np.array(W) for frame, W in run.wrenches.items()}

    def add(frame: str, W: Array) -> None:
        wrenches[frame] = wrenches[frame] + W if frame in wrenches else W

    for name, about in _elements(run).items():
        if "frames" in about:
            a, b = about["frames"]
            W = _element_wrench(run, name)
            arm = run.poses(b)[..., :3, 3] - run.poses(a)[..., :3, 3]
            back = W[..., 3:] + np.cross(arm, W[..., :3])
            add(b, W)
            add(a, -np.concatenate([W[..., :3], back], axis=-1))
    for name in run.provenance.get("motions", ()):
        frame, _, axis = name.rpartition(".")
        if name not in m.columns[1]:
            W = np.zeros((*run.t.shape, 6)) if run.t.ndim == run.q.ndim - 1 else np.zeros((*run.q.shape[:-1], 6))
            W[..., "xyz".index(axis)] = run[f"{name}.drive"]
            add(frame, W)
    return wrenches
