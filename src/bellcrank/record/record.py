"""Record of a simulation: immutable named columns over time, with mechanism and provenance."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_methods
from bellcrank.errors import InputError, unknown
from bellcrank.lazy_import import lazy_import
from bellcrank.model import Array, Mechanism
from bellcrank.quoting import single_line
from bellcrank.record import contents, evaluation
from bellcrank.record.contents import COMPONENTS, Column, Stop, Stops, plain
from bellcrank.record.dug_ground import DugGround, read_ground
from bellcrank.record.loads import Loads, loads


@explain_methods(
    "__init__",
    "column",
    "plot",
    "noting",
    "including",
    "at",
    "between",
    "has",
    "has_state",
    "save",
    "report",
    "loads",
    "poses",
    "stacked",
    "animation",
)
class Record:
    """Columns over time, of one run or of a batch of runs.

        run["boom.q"], run["bucket.z"], run["energy"]     arrays of shape (*batch, rows)
        run.t, run.q, run.v, run.x                        time, and the state: (*batch, rows, n)
        run.a, run.tau, run.passive, run.external         accelerations and forces: (*batch, rows, nv)

    Columns that are not stored but follow from the state are computed on access: energies, powers, passive forces, the
    position (.x .y .z) and speed of every frame of the mechanism, and columns of the simulator (`derived`).
    `columns` are the stored names, `names` all. Rows after the end of a run are NaN.

    Parameters
    ----------
    columns : mapping of str to Column
        Columns to store; the first is "t".
    mechanism : Mechanism, optional
        Mechanism that was simulated.
    provenance : mapping, optional
        Plain data about the origin of the record.
    stops : sequence of Stop
        Ends of the runs, in the order of the flattened batch.
    states : sequence of str
        Names of the columns that make up x.
    derived : callable, optional
        Function from a name to a further Column, or None.
    derivable : sequence of str
        Names of the columns of `derived`.
    """

    def __init__(
        self,
        columns: Mapping[str, Column],
        *,
        mechanism: Mechanism | None = None,
        provenance: Mapping[str, Any] | None = None,
        stops: Sequence[Stop] = (),
        states: Sequence[str] = (),
        derived: Callable[[str], Column | None] | None = None,
        derivable: Sequence[str] = (),
    ) -> None:
        self._stored = MappingProxyType(contents.read_only(columns))
        self.batch: tuple[int, ...] = self._stored["t"].values.shape[:-1]
        self.mechanism = mechanism
        # Converted to JSON and back, so that it is equal before saving and after loading.
        self.provenance: Mapping[str, Any] = MappingProxyType(json.loads(json.dumps(plain(dict(provenance or {})))))
        self.stops: Sequence[Stop] = stops if isinstance(stops, Stops) else tuple(stops)
        self.states = tuple(states)
        self.sealed: bool | None = None  # for a loaded record: whether it had a valid seal
        self._derived = derived
        self._derivable = tuple(derivable)
        self._column_cache: dict[str, Column] = {}
        self._arrays: dict[str, Array] = {}
        if self.stops and len(self.stops) != self.runs:
            raise InputError(f"there are {len(self.stops)} stops for {self.runs} runs; expected one for each, or none.")
        for name in self.states:
            if name not in self._stored:
                raise InputError(f"states: {unknown('column', name, self._stored)}")

    # -- columns

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the stored columns."""
        return tuple(self._stored)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns: the stored ones, then the derived ones."""
        return tuple(dict.fromkeys((*self._stored, *self._derivable, *contents.derivable_names(self))))

    def column(self, name: str) -> Column:
        """Return a stored or derived column.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        Column
            Name, unit and values of shape (*batch, rows).

        Raises
        ------
        InputError
            If there is no such column.
        """
        if name in self._stored:
            return self._stored[name]
        if name not in self._column_cache:
            column = self._derived(name) if self._derived is not None else None
            column = column or contents.derived_column(self, name)
            if column is None:
                raise InputError(f"{self._title}: {unknown('column', name, self.names)}")
            self._column_cache[name] = contents.read_only({"t": self._stored["t"], name: column})[name]
        return self._column_cache[name]

    def __getitem__(self, name: str) -> Array:
        return self.column(name).values

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        """Return the number of rows of each run."""
        return int(self.t.shape[-1])

    def including(self, *names: str) -> Record:
        """Return a record that also stores some derived columns, so that its files contain them.

        Parameters
        ----------
        *names : str
            Names of the columns.

        Returns
        -------
        Record
            Record with these columns.
        """
        return self._replaced({**self._stored, **{name: self.column(name) for name in names}})

    @property
    def rate_names(self) -> tuple[str, ...]:
        """Names of the columns of the rates of all states, "d(boom.q)/dt" and so on.

        `run.including(*run.rate_names)` stores them. A record from a file has those that were stored.
        """
        known, states = {*self.names}, [name for kind in "qvx" for name in self._elements(kind)]
        return tuple(name for name in map(contents.rate_column_name, states) if name in known)

    def noting(self, facts: Mapping[str, Any]) -> Record:
        """Return a record with additional provenance.

        Parameters
        ----------
        facts : mapping
            Plain data to add.

        Returns
        -------
        Record
            Record with these facts.
        """
        return self._replaced(self._stored, provenance={**self.provenance, **facts})

    def _replaced(self, columns: Mapping[str, Column], **other: Any) -> Record:
        """Return a record with these columns, and everything else equal unless given."""
        same = {"mechanism": self.mechanism, "provenance": self.provenance, "stops": self.stops, "states": self.states}
        return Record(columns, **{**same, "derived": self._derived, "derivable": self._derivable, **other})

    def between(self, begin: float, end: float) -> Record:
        """Return the rows within a time span; of a batch, all rows in which any run is within it.

        A run whose last row is not included ends with the last included row, with the reason "end".

        Parameters
        ----------
        begin, end : float
            Time span, s.

        Returns
        -------
        Record
            Record of these rows.
        """
        inside = ((self.t >= begin) & (self.t <= end)).any(axis=tuple(range(self.t.ndim - 1)))

        def part(column: Column) -> Column:
            return Column(column.name, column.unit, column.values[..., inside])

        def derived(name: str) -> Column | None:
            column = self._derived(name) if self._derived is not None else None
            return None if column is None else part(column)

        if inside.all():
            return self
        times = self.t.reshape(self.runs, len(self))
        part_times = times[:, inside]
        stops = [contents.stop_of_part(stop, t, rows) for stop, t, rows in zip(self.stops, times, part_times)]
        seen = part_times[np.isfinite(part_times)]
        span = f"{seen.min():.6g} to {seen.max():.6g} s of a longer run" if seen.size else "no rows of a longer run"
        provenance = {**self.provenance, "part": span}
        columns = {n: part(c) for n, c in self._stored.items()}
        return self._replaced(columns, provenance=provenance, stops=stops, derived=derived)

    # -- the state

    @property
    def runs(self) -> int:
        """Number of runs in the batch; 1 without a batch."""
        return int(np.prod(self.batch, dtype=int))

    @property
    def t(self) -> Array:
        """Time in seconds, (*batch, rows)."""
        return self["t"]

    @property
    def q(self) -> Array:
        """Positions, (*batch, rows, nq)."""
        return self.stacked("q")

    @property
    def v(self) -> Array:
        """Velocities, (*batch, rows, nv)."""
        return self.stacked("v")

    @property
    def a(self) -> Array:
        """Accelerations, (*batch, rows, nv)."""
        return self.stacked("a")

    @property
    def tau(self) -> Array:
        """Forces of the drives, as `forward_dynamics` and `reactions` take them, (*batch, rows, nv).

        They come from actuators or directly from the controller. Springs, dampers and friction of the mechanism are in
        `passive`, external forces in `external`.
        """
        return self.stacked("tau")

    @property
    def passive(self) -> Array:
        """Generalised forces of the mechanism's springs, dampers and friction, (*batch, rows, nv)."""
        return self.stacked("passive")

    @property
    def external(self) -> Array:
        """Generalised external forces, (*batch, rows, nv); `wrenches` has them by frame."""
        return self.stacked("external")

    @property
    def wrenches(self) -> dict[str, Array]:
        """External wrenches by frame, [force, moment] in world axes, (*batch, rows, 6).

        Kernels take them under this name: mechanism.reactions(run.q, run.v, run.tau, wrenches=run.wrenches).
        """
        frames = self.mechanism.frames if self.mechanism is not None else ()
        known = set(self.names)
        return {f: np.stack([self[f"{f}.{c}"] for c in COMPONENTS], axis=-1) for f in frames if f"{f}.fx" in known}

    @property
    def x(self) -> Array:
        """State variables of actuators and controllers, (*batch, rows, nx)."""
        return self.stacked("x")

    @property
    def free(self) -> tuple[Array, ...]:
        """Further arguments of the mechanism's kernels: the values of its free parameters, (*batch, rows, np)."""
        names = list(self.mechanism.parameters) if self.mechanism is not None else []
        if not names:
            return ()
        return (np.stack([self[f"parameter.{name}"] for name in names], axis=-1),)

    def has_state(self, kind: str) -> bool:
        """Return whether every element of q, v or x is stored.

        Parameters
        ----------
        kind : str
            "q", "v" or "x".

        Returns
        -------
        bool
            True if all columns are stored.
        """
        return all(name in self._stored for name in self._elements(kind))

    def has(self, kind: str) -> bool:
        """Return whether every element of a vector is stored, or can be computed by the simulator.

        Parameters
        ----------
        kind : str
            "q", "v", "x", "a" or a kind of force, such as "tau".

        Returns
        -------
        bool
            True if all columns are available.
        """
        known = {*self._stored, *self._derivable}
        return all(name in known for name in self._elements(kind))

    def _elements(self, kind: str) -> list[str]:
        if kind == "x":
            return list(self.states)
        if self.mechanism is None:
            return [name for name in self._stored if name.endswith(f".{kind}")]
        return [f"{name}.{kind}" for name in self.mechanism.columns[kind != "q"]]

    def stacked(self, kind: str) -> Array:
        """Return all elements of a vector in one array.

        Parameters
        ----------
        kind : str
            "q", "v", "x", "a" or a kind of force, such as "tau".

        Returns
        -------
        ndarray, shape (*batch, rows, n)
            Read-only array.

        Raises
        ------
        InputError
            If a column is missing.
        """
        if kind not in self._arrays:
            known = set(self.names)
            missing = [name for name in self._elements(kind) if name not in known]
            if missing:
                keep = "" if kind in ("q", "v", "x") else " To keep them, call run.including(...) before saving."
                raise InputError(
                    f"{self._title} has no {kind}: the columns {missing[:8]} are not in it. It has {self.columns}."
                    f"{keep}"
                )
            parts = [self[name] for name in self._elements(kind)]
            stacked = np.stack(parts, axis=-1) if parts else np.zeros((*self.t.shape, 0))
            stacked.flags.writeable = False
            self._arrays[kind] = stacked
        return self._arrays[kind]

    def poses(self, frame: str) -> Array:
        """Return the pose of a frame in the world.

        Parameters
        ----------
        frame : str
            Name of the frame.

        Returns
        -------
        ndarray, shape (*batch, rows, 4, 4)
            Homogeneous transformations.
        """
        if self.mechanism is None:
            raise InputError(f'{self._title} has no mechanism, so the pose of "{frame}" is unknown.')
        m, key = self.mechanism, f"pose of {frame}"
        m.frame(frame)
        if key not in self._arrays:
            self._arrays[key] = contents.apply_to_rows(lambda q, p=None: m.pose(q, frame, p=p), self.q, *self.free)
        return self._arrays[key]

    @property
    def ground(self) -> DugGround | None:
        """Dug ground, for a machine that digs: run.ground.at(t) are its heights at time t."""
        return read_ground(self.provenance["ground"]) if "ground" in self.provenance else None

    # -- evaluation

    @property
    def final(self) -> Mapping[str, Any]:
        """Last recorded row of each run: floats, or arrays of shape (*batch,).

        All stored and derived columns are available; iteration is over the stored ones.
        """
        return evaluation.final_row(self)

    def at(self, t: Any) -> Mapping[str, Any]:
        """Interpolate all columns linearly at given times; quaternions are normalised.

        Parameters
        ----------
        t : float or array_like
            Times, s.

        Returns
        -------
        mapping of str to float or ndarray
            Values of shape (*batch, *t.shape). All stored and derived columns are available; iteration is over the
            stored ones.

        Raises
        ------
        InputError
            If a time is outside the record.
        """
        return evaluation.interpolated_row(self, t)

    def energy(self) -> Array:
        """Return the sum of kinetic and potential energy.

        Returns
        -------
        ndarray, shape (*batch, rows)
            Energy, J.
        """
        return self["energy"]

    @property
    def realtime(self) -> Mapping[str, Any] | None:
        """Deadline report, for a run in real time."""
        return self.provenance.get("realtime")

    def residuals(self) -> dict[str, Any]:
        """Return the errors of quantities that the exact solution conserves.

        "energy" is the largest |E - E(0) - W|, divided by the largest kinetic energy of the run (or without motion by
        the largest change of potential energy). W is the work of drives, dampers, friction and external forces,
        integrated from their powers at the rows. If there is such work, the rows must be close enough to resolve it,
        and jumps of inputs or events cause errors. There is no "energy" if the forces of the drives are unknown (saved
        without tau). "quaternion NAME" is the largest deviation of that joint's quaternion from length 1.

        Returns
        -------
        dict
            Errors by name: floats, or arrays of shape (*batch,).
        """
        return evaluation.residuals(self)

    # -- loads, files and pages

    def loads(self, axes: str = "world") -> Loads:
        """Return reactions of joints and loops, and forces on bodies, with their peaks.

        Parameters
        ----------
        axes : str
            "world", or "body" for the axes of the body on which each acts.

        Returns
        -------
        Loads
            Columns, peaks, and a table by str().

        Raises
        ------
        InputError
            If the record has no mechanism and state.
        """
        return loads(self, axes)

    def save(self, path: str | Path) -> Path:
        """Write the record to a file, which `bellcrank.load_record` reads.

        Parameters
        ----------
        path : str or Path
            File with the suffix .parquet, .csv, .npz or .mcap.

        Returns
        -------
        Path
            The written file.

        Raises
        ------
        InputError
            If the suffix is unknown or the file cannot be written.
        """
        from bellcrank.record.files import save

        return save(self, path)

    def plot(self, *names: str, path: str | Path | None = None) -> Any:
        """Plot columns with matplotlib.

        Parameters
        ----------
        *names : str
            Columns; by default positions, velocities and energies.
        path : str or Path, optional
            File to which the figure is written (.png, .pdf, .svg, ...).

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        return lazy_import("view.record_page:plot")(self, names, path)

    def html(self, lane: int | Sequence[int] = ()) -> str:
        """Return a page that replays and plots one run.

        Parameters
        ----------
        lane : int or sequence of int
            Index of the run in the batch; by default the first run.

        Returns
        -------
        str
            HTML page without dependencies.
        """
        return str(lazy_import("view.record_page:html")(self, lane))

    def report(self, path: str | Path, lane: int | Sequence[int] = ()) -> Path:
        """Write the page of one run (see `html`) to a file that needs no network.

        Parameters
        ----------
        path : str or Path
            File with the suffix .html or .htm.
        lane : int or sequence of int
            Index of the run in the batch; by default the first run.

        Returns
        -------
        Path
            The written file.
        """
        from bellcrank.files import write_page

        return write_page(path, self.html(lane), "The record is still in memory: try again", ".html", ".htm")

    def animation(self, path: str | Path, frames: int = 60, speed: float = 1.0, lane: int | Sequence[int] = ()) -> Path:
        """Write an animated SVG of one run, which plays in an endless loop.

        Parameters
        ----------
        path : str or Path
            File with the suffix .svg.
        frames : int
            Number of frames, 2 to 400.
        speed : float
            Simulated time per real time.
        lane : int or sequence of int
            Index of the run in the batch; by default the first run.

        Returns
        -------
        Path
            The written file.
        """
        from bellcrank.files import write_page

        text = str(lazy_import("view.mechanism_picture:animated_svg")(self, lane, frames, speed))
        return write_page(path, text, "The record is still in memory: try again", ".svg")

    def __getstate__(self) -> dict[str, Any]:
        """Return the pickled state, as in a file: functions that derive columns are left out."""
        state = {"_stored": dict(self._stored), "provenance": dict(self.provenance), "_derived": None, "_derivable": ()}
        return self.__dict__ | state | {"_column_cache": {}, "_arrays": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._stored = MappingProxyType(contents.read_only(state["_stored"]))
        self.provenance = MappingProxyType(state["provenance"])

    @property
    def _title(self) -> str:
        name = self.mechanism.name if self.mechanism is not None else self.provenance.get("mechanism", "no mechanism")
        return f"the record of {single_line(str(name))}"

    def __repr__(self) -> str:
        batch = f"{self.runs} runs of " if self.batch else ""
        return f"<{self._title[4:].capitalize()}: {batch}{len(self)} rows, {len(self.columns)} columns>"

    def _repr_html_(self) -> str:
        return str(lazy_import("view.notebook:record")(self))

    def __str__(self) -> str:
        return evaluation.summary(self)
