"""What beams look like and what they carry, as data: sections along them, each on a body, each linear in coordinates q.

A beam with modes and a chain of rigid pieces are the same here: where a section stands and turns is its body's motion
and a sum over some coordinates, and so are the loads that pass through it. Nothing of this moves anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.model.parts import Array, Matrix, Triple, matrix, triple

LOADS = ("N", "Vy", "Vz", "T", "My", "Mz")  # what the part beyond a section does to it, in the section's axes
STRESS = "stress"


@dataclass(frozen=True)
class Slice:
    """A section of a beam, across its x. What depends on q has a row for each of `coordinates`, names of columns of q:
    displacement and turn in the body's axes, and the LOADS.

    corners: of the section, (y, z) in metres. fibres: stress at each of them of a unit of N, My and Mz; none where the
    section is known by its stiffness only. round: the corners stand for a circle.
    """

    body: str
    point: Triple
    axes: Matrix  # columns: x along the beam, y and z of the section
    corners: tuple[tuple[float, float], ...]
    fibres: tuple[Triple, ...]
    round: bool
    coordinates: tuple[str, ...]
    shift: tuple[Triple, ...]
    turn: tuple[Triple, ...]
    loads: tuple[tuple[float, ...], ...]

    def seen_from(self, body: str, R: Any, p: Any) -> Slice:
        """The same on another body, in whose frame this one's stands at p with axes R."""
        R, p = np.asarray(R, dtype=float), np.asarray(p, dtype=float)
        return replace(
            self,
            body=body,
            point=triple(p + R @ self.point),
            axes=matrix(R @ self.axes),
            shift=tuple(triple(R @ x) for x in self.shift),
            turn=tuple(triple(R @ x) for x in self.turn),
        )

    def load(self, q: Array) -> Array:
        """(..., 6) from the values of `coordinates`, (..., n)."""
        return np.asarray(q @ np.array(self.loads, dtype=float).reshape(-1, len(LOADS)))

    def stress(self, q: Array) -> Array:
        """The largest stress along the beam of any fibre, of pull and bending, without its sign; in Pa."""
        load = self.load(q)
        N, My, Mz = (load[..., [LOADS.index(x)]] for x in ("N", "My", "Mz"))
        pull, about_y, about_z = (x * np.array(f) for x, f in zip((N, My, Mz), np.transpose(self.fibres), strict=True))
        if self.round:  # the fibre that bends most lies between two corners
            _, y, z = self.fibres[0]
            return np.asarray(np.abs(pull[..., 0]) + np.hypot(y, z) * np.hypot(My, Mz)[..., 0])
        return np.asarray(np.abs(pull + about_y + about_z).max(axis=-1))


@dataclass(frozen=True)
class Skin:
    """A body that is not made of beams: points of it, how each moves with `coordinates` (a row each, in the body's
    axes), and what to draw between them: lines of two points, or faces of three.
    """

    body: str
    points: tuple[Triple, ...]
    coordinates: tuple[str, ...]
    shift: tuple[tuple[Triple, ...], ...]
    cells: tuple[tuple[int, ...], ...]

    def seen_from(self, body: str, R: Any, p: Any) -> Skin:
        """The same on another body, in whose frame this one's stands at p with axes R."""
        R, p = np.asarray(R, dtype=float), np.asarray(p, dtype=float)
        turned = (np.array(self.shift, dtype=float).reshape(len(self.points), -1, 3) @ R.T).tolist()
        points = (p + np.array(self.points, dtype=float).reshape(-1, 3) @ R.T).tolist()
        return replace(
            self,
            body=body,
            points=tuple(map(triple, points)),
            shift=tuple(tuple(map(triple, rows)) for rows in turned),
        )

    def fits(self) -> bool:
        """Whether every point has its rows, and every line and face its points."""
        n = len(self.points)
        rows = {len(self.shift) == n, *(len(x) == len(self.coordinates) for x in self.shift)}
        return rows == {True} and all(len(c) in (2, 3) and all(0 <= i < n for i in c) for c in self.cells)


@dataclass(frozen=True)
class Section:
    """A place along a beam whose loads are columns of a record: BEAM.NAME.My, ..., BEAM.NAME.stress."""

    name: str
    slice: Slice


@dataclass(frozen=True)
class Outline:
    """What bends: the bodies that it is made of; of a beam the slices that draw it, and its named sections; of any
    other structure its skin.
    """

    name: str
    bodies: tuple[str, ...]
    slices: tuple[Slice, ...]
    sections: tuple[Section, ...] = ()
    skin: Skin | None = None

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Of what is drawn first; a body with modes has the same everywhere."""
        return self.skin.coordinates if self.skin is not None else self.slices[0].coordinates

    def seen_from(self, places: Any) -> Outline:
        """places: {body: (the body that it is part of, R, p)}."""
        return replace(
            self,
            slices=tuple(s.seen_from(*places[s.body]) for s in self.slices),
            sections=tuple(replace(x, slice=x.slice.seen_from(*places[x.slice.body])) for x in self.sections),
            skin=self.skin and self.skin.seen_from(*places[self.skin.body]),
        )

    @property
    def columns(self) -> dict[str, tuple[Slice, str]]:
        """Of a record: which slice, and which of its LOADS or STRESS."""
        found: dict[str, tuple[Slice, str]] = {}
        for section in self.sections:
            what = (*LOADS, STRESS) if section.slice.fibres else LOADS
            found |= {f"{self.name}.{section.name}.{x}": (section.slice, x) for x in what}
        return found


def check_outlines(outlines: tuple[Outline, ...], coordinates: tuple[str, ...], bodies: set[str]) -> None:
    """That what they say is there: they come from files, too."""
    for outline in outlines:
        _check_slices(outline, {*coordinates, *bodies})
        _check_skin(outline, {*coordinates, *bodies})


def _check_slices(outline: Outline, known: set[str]) -> None:
    for s in (*outline.slices, *(x.slice for x in outline.sections)):
        lost = [x for x in (*s.coordinates, s.body) if x not in known]
        rows = {len(s.coordinates), len(s.shift), len(s.turn), len(s.loads)}
        if lost or len(rows) > 1 or (s.fibres and len(s.fibres) != len(s.corners)):
            raise ModelError(
                f'outline "{outline.name}": a slice of it names {", ".join(lost) or "rows that do not fit"}; '
                "expected bodies and coordinates of the mechanism, and a row for each of these."
            )


def _check_skin(outline: Outline, known: set[str]) -> None:
    skin = outline.skin
    lost = [] if skin is None else [x for x in (*skin.coordinates, skin.body) if x not in known]
    if lost or (skin is not None and not skin.fits()) or not (skin or outline.slices):
        raise ModelError(
            f'outline "{outline.name}": its skin names {", ".join(lost) or "points or rows that do not fit"}; '
            "expected bodies and coordinates of the mechanism, and a row for each of these at every point."
        )
