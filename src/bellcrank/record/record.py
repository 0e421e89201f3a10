"""The Record: named columns over time, with what produced them. Made once, never changed; prints and saves itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from bellcrank.errors import InputError, unknown
from bellcrank.misfits import explained_class
from bellcrank.model import Mechanism
from bellcrank.model.parts import Array
from bellcrank.quoting import line
from bellcrank.record import derived_columns as derive
from bellcrank.record import measure
from bellcrank.record.contents import COMPONENTS, Column, Stop, Stops, frozen, plain, stop_of_part
from bellcrank.record.dug_ground import DugGround, read_ground
from bellcrank.record.loads import Loads, loads
from bellcrank.stairs import view


@explained_class(
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
    """Columns over time, of one run or of a batch of them.

        run["boom.q"], run["bucket.z"], run["energy"]     arrays of the shape (*batch, rows)
        run.t, run.q, run.v, run.x                        time, and the state: (*batch, rows, n)
        run.a, run.tau, run.passive, run.external         what follows from it

    Columns that are not stored but follow from the state are computed on demand: energies, powers, passive forces, the
    place (.x .y .z) and the speed of every frame of the mechanism, and what the simulator can work out (`derived`).
    run.columns are the stored names, run.names all. A row of a run that had already stopped is NaN.
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
        """columns: the first is "t". provenance: what made this, plain data. stops: one for each run of the batch, in
        the order of the flattened batch. states: names of the columns that make up x. derived: finds further columns,
        of which derivable are the names.
        """
        self._stored = MappingProxyType(frozen(columns))
        self.batch: tuple[int, ...] = self._stored["t"].values.shape[:-1]
        self.mechanism = mechanism
        # Once to JSON and back: the same before saving and after loading.
        self.provenance: Mapping[str, Any] = MappingProxyType(json.loads(json.dumps(plain(dict(provenance or {})))))
        self.stops: Sequence[Stop] = stops if isinstance(stops, Stops) else tuple(stops)
        self.states = tuple(states)
        self.sealed: bool | None = None  # of a record from a file: whether a seal showed that nothing was damaged
        self._derived = derived
        self._derivable = tuple(derivable)
        self._found: dict[str, Column] = {}
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
        """Names that run[name] knows: the stored ones, then those that follow from them."""
        return tuple(dict.fromkeys((*self._stored, *self._derivable, *derive.names(self))))

    def column(self, name: str) -> Column:
        """A column with its unit, stored or derived."""
        if name in self._stored:
            return self._stored[name]
        if name not in self._found:
            found = self._derived(name) if self._derived is not None else None
            found = found or derive.column(self, name)
            if found is None:
                raise InputError(f"{self._called}: {unknown('column', name, self.names)}")
            self._found[name] = frozen({"t": self._stored["t"], name: found})[name]
        return self._found[name]

    def __getitem__(self, name: str) -> Array:
        return self.column(name).values

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        """Rows of each run."""
        return int(self.t.shape[-1])

    def including(self, *names: str) -> Record:
        """A record that stores these columns too: files then have them, also where no mechanism can be asked."""
        return self._like({**self._stored, **{name: self.column(name) for name in names}})

    def noting(self, facts: Mapping[str, Any]) -> Record:
        """A record with more in its provenance."""
        return self._like(self._stored, provenance={**self.provenance, **facts})

    def _like(self, columns: Mapping[str, Column], **other: Any) -> Record:
        """With these columns, and all else as here but for what is given."""
        same = {"mechanism": self.mechanism, "provenance": self.provenance, "stops": self.stops, "states": self.states}
        return Record(columns, **{**same, "derived": self._derived, "derivable": self._derivable, **other})

    def between(self, begin: float, end: float) -> Record:
        """The rows from one time to another; of a batch, those in which any run is there. A run whose end is not among
        them ends with the last that is: why the whole of it stopped is no fact about a part.
        """
        inside = ((self.t >= begin) & (self.t <= end)).any(axis=tuple(range(self.t.ndim - 1)))

        def part(column: Column) -> Column:
            return Column(column.name, column.unit, column.values[..., inside])

        def derived(name: str) -> Column | None:
            found = self._derived(name) if self._derived is not None else None
            return None if found is None else part(found)

        if inside.all():
            return self
        kept = self.t.reshape(self.runs, len(self))[:, inside]
        stops = [
            stop_of_part(stop, t, rows) for stop, t, rows in zip(self.stops, self.t.reshape(self.runs, len(self)), kept)
        ]
        seen = kept[np.isfinite(kept)]
        span = f"{seen.min():.6g} to {seen.max():.6g} s of a longer run" if seen.size else "no rows of a longer run"
        made = {**self.provenance, "part": span}
        return self._like({n: part(c) for n, c in self._stored.items()}, provenance=made, stops=stops, derived=derived)

    # -- the state

    @property
    def runs(self) -> int:
        """How many runs the batch has; 1 without a batch."""
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
        """What the drives do, as forward_dynamics and reactions take it: actuators, or the control itself. Springs,
        dampers and friction of the mechanism are in `passive`, and forces from outside in `external`.
        """
        return self.stacked("tau")

    @property
    def passive(self) -> Array:
        """Springs, dampers and friction of the mechanism, as forces on the coordinates, (*batch, rows, nv)."""
        return self.stacked("passive")

    @property
    def external(self) -> Array:
        """Forces from outside, as forces on the coordinates, (*batch, rows, nv); `wrenches` has them where they act."""
        return self.stacked("external")

    @property
    def wrenches(self) -> dict[str, Array]:
        """Forces from outside by frame, [force, moment] in world axes, (*batch, rows, 6): what kernels take under that
        name, as in mechanism.reactions(run.q, run.v, run.tau, wrenches=run.wrenches).
        """
        frames = self.mechanism.frames if self.mechanism is not None else ()
        known = set(self.names)
        return {f: np.stack([self[f"{f}.{c}"] for c in COMPONENTS], axis=-1) for f in frames if f"{f}.fx" in known}

    @property
    def x(self) -> Array:
        """The other state variables (of actuators and controllers), (*batch, rows, nx)."""
        return self.stacked("x")

    @property
    def free(self) -> tuple[Array, ...]:
        """What the mechanism's kernels want beside the state: the values of its free numbers (*batch, rows, np)."""
        names = list(self.mechanism.parameters) if self.mechanism is not None else []
        if not names:
            return ()
        return (np.stack([self[f"parameter.{name}"] for name in names], axis=-1),)

    def has_state(self, kind: str) -> bool:
        """Whether every element of q, of v or of x is stored."""
        return all(name in self._stored for name in self._elements(kind))

    def has(self, kind: str) -> bool:
        """Whether every element of it is stored, or the simulator can work it out."""
        known = {*self._stored, *self._derivable}
        return all(name in known for name in self._elements(kind))

    def _elements(self, kind: str) -> list[str]:
        if kind == "x":
            return list(self.states)
        if self.mechanism is None:
            return [name for name in self._stored if name.endswith(f".{kind}")]
        return [f"{name}.{kind}" for name in self.mechanism.columns[kind != "q"]]

    def stacked(self, kind: str) -> Array:
        """All elements of q, v, x, a or a kind of force, side by side."""
        if kind not in self._arrays:
            known = set(self.names)
            missing = [name for name in self._elements(kind) if name not in known]
            if missing:
                keep = "" if kind in ("q", "v", "x") else " Of a run they are kept by run.including(...) before saving."
                raise InputError(
                    f"{self._called} has no {kind}: the columns {missing[:8]} are not in it. It has {self.columns}."
                    f"{keep}"
                )
            parts = [self[name] for name in self._elements(kind)]
            stacked = np.stack(parts, axis=-1) if parts else np.zeros((*self.t.shape, 0))
            stacked.flags.writeable = False
            self._arrays[kind] = stacked
        return self._arrays[kind]

    def poses(self, frame: str) -> Array:
        """A frame of the mechanism in the world, (*batch, rows, 4, 4)."""
        if self.mechanism is None:
            raise InputError(f'{self._called} has no mechanism, so nobody knows where "{frame}" is.')
        m, key = self.mechanism, f"pose of {frame}"
        m.frame(frame)
        if key not in self._arrays:
            self._arrays[key] = derive.over_rows(lambda q, p=None: m.pose(q, frame, p=p), self.q, *self.free)
        return self._arrays[key]

    @property
    def ground(self) -> DugGround | None:
        """What became of the ground, where the record is of a machine that digs: run.ground.at(t) are its heights."""
        return read_ground(self.provenance["ground"]) if "ground" in self.provenance else None

    # -- looking

    @property
    def final(self) -> Mapping[str, Any]:
        """The last row of each run that was recorded: floats, or arrays of the batch's shape. It knows every column
        that the record knows, and iterates over those that are stored.
        """
        return measure.final(self)

    def at(self, t: Any) -> Mapping[str, Any]:
        """Columns at the time t (or times), on straight lines between the rows; quaternions stay units. It knows every
        column that the record knows, and iterates over those that are stored.
        """
        return measure.at(self, t)

    def energy(self) -> Array:
        """Kinetic and potential energy, J."""
        return self["energy"]

    @property
    def realtime(self) -> Mapping[str, Any] | None:
        """How punctual the loop was, where the record is of a run in real time."""
        return self.provenance.get("realtime")

    def residuals(self) -> dict[str, Any]:
        """How far a run is from what the exact one keeps; floats, or arrays of the batch's shape.

        energy: the largest |E - E(0) - W| over the largest kinetic energy of the run (or, if it never moves, over the
        largest change of potential energy). W is the work of drives, dampers, friction and forces from outside: the
        powers of the rows, integrated along them, so that where there is such work rows must be close enough to tell,
        and a jump of an input or an event that switches shows. A record that does not know its drives any more (saved
        without tau) has no such number. quaternion NAME: how far the quaternion of that joint is from length 1.
        """
        return measure.residuals(self)

    # -- keeping

    def loads(self, axes: str = "world") -> Loads:
        """What passes through every joint and loop, and what acts on the bodies: columns, their largest values with
        the time, and a table. axes: "world", or "body" for each in the axes of the body that it acts on.
        """
        return loads(self, axes)

    def save(self, path: str | Path) -> Path:
        """Writes .parquet, .csv, .npz or .mcap, as the end of the name says; `bellcrank.load_record` reads it back."""
        from bellcrank.record.files import save

        return save(self, path)

    def plot(self, *names: str, path: str | Path | None = None) -> Any:
        """A figure of matplotlib: these columns, or positions, velocities, energies; also written to path if given."""
        return view("record_plot").plot(self, names, path)

    def html(self, lane: int | Sequence[int] = ()) -> str:
        """A page that replays one run of the batch and plots it: the first, unless lane says which, by its place in the
        batch (a number where that has one axis).
        """
        return str(view("record_page").html(self, lane))

    def report(self, path: str | Path, lane: int | Sequence[int] = ()) -> Path:
        """Writes the page of one run (see html): one file that needs nothing else, not even a network."""
        from bellcrank.atomic_file import write_page

        return write_page(path, self.html(lane), "The record is still in memory: try again", ".html", ".htm")

    def animation(self, path: str | Path, frames: int = 60, speed: float = 1.0, lane: int | Sequence[int] = ()) -> Path:
        """Writes a picture that moves, an SVG that any page shows: so many moments of one run, again and again. speed:
        of its time against ours.
        """
        from bellcrank.atomic_file import write_page

        text = str(view("motion").svg(self, lane, frames, speed))
        return write_page(path, text, "The record is still in memory: try again", ".svg")

    def __getstate__(self) -> dict[str, Any]:
        """What goes to another process: what a file would have. Functions that derive columns stay here."""
        kept = {"_stored": dict(self._stored), "provenance": dict(self.provenance), "_derived": None, "_derivable": ()}
        return self.__dict__ | kept | {"_found": {}, "_arrays": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._stored = MappingProxyType(frozen(state["_stored"]))
        self.provenance = MappingProxyType(state["provenance"])

    @property
    def _called(self) -> str:
        of = self.mechanism.name if self.mechanism is not None else self.provenance.get("mechanism", "no mechanism")
        return f"the record of {line(str(of))}"

    def __repr__(self) -> str:
        batch = f"{self.runs} runs of " if self.batch else ""
        return f"<{self._called[4:].capitalize()}: {batch}{len(self)} rows, {len(self.columns)} columns>"

    def _repr_html_(self) -> str:
        return str(view("notebook").record(self))

    def __str__(self) -> str:
        from bellcrank.record.summary import summary

        return summary(self)
