"""Appearance and section loads of beams as data: sections along them, each on a body, each linear in coordinates q.

A beam with modes and a chain of rigid pieces have the same description: the position and rotation of a section are the
motion of its body plus a sum over some coordinates, and so are the loads through it. It has no effect on the motion.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.model.parts import Array, Matrix, Triple, matrix, triple

LOAD_NAMES = ("N", "Vy", "Vz", "T", "My", "Mz")  # loads of the part beyond a section on it, in the section's axes
STRESS_NAME = "stress"


@dataclass(frozen=True)
class BeamSlice:
    """A section of a beam, across its x axis.

    shift, turn (in the body's axes) and loads have a row for each of `coordinates`, which are names of columns of q.
    corners: of the section, (y, z) in metres. fibres: stress at each of them for a unit of N, My and Mz; empty where
    only the section's stiffness is known. round: the corners approximate a circle.
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

    def seen_from(self, body: str, R: Any, p: Any) -> BeamSlice:
        """Return the same section on another body.

        Parameters
        ----------
        body : str
            The other body.
        R : array_like, shape (3, 3)
            Axes of this body's frame in the other one's.
        p : array_like, shape (3,)
            Origin of this body's frame in the other one's, m.

        Returns
        -------
        BeamSlice
            The section on the other body.
        """
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
        """Return the section loads LOAD_NAMES.

        Parameters
        ----------
        q : ndarray, shape (..., n)
            Values of `coordinates`.

        Returns
        -------
        ndarray, shape (..., 6)
            N and N m, in the section's axes.
        """
        return np.asarray(q @ np.array(self.loads, dtype=float).reshape(-1, len(LOAD_NAMES)))

    def stress(self, q: Array) -> Array:
        """Return the largest magnitude of the axial stress over the fibres, from normal force and bending.

        Parameters
        ----------
        q : ndarray, shape (..., n)
            Values of `coordinates`.

        Returns
        -------
        ndarray, shape (...)
            Pa.
        """
        load = self.load(q)
        N, My, Mz = (load[..., [LOAD_NAMES.index(x)]] for x in ("N", "My", "Mz"))
        pull, about_y, about_z = (x * np.array(f) for x, f in zip((N, My, Mz), np.transpose(self.fibres), strict=True))
        if self.round:  # the fibre with the largest stress lies between two corners
            _, y, z = self.fibres[0]
            return np.asarray(np.abs(pull[..., 0]) + np.hypot(y, z) * np.hypot(My, Mz)[..., 0])
        return np.asarray(np.abs(pull + about_y + about_z).max(axis=-1))


@dataclass(frozen=True)
class Skin:
    """Surface of a flexible structure that is not made of beams.

    points of the body, their displacements for each of `coordinates` (a row each, in the body's axes), and cells to
    draw between them: lines of two points, or faces of three.
    """

    body: str
    points: tuple[Triple, ...]
    coordinates: tuple[str, ...]
    shift: tuple[tuple[Triple, ...], ...]
    cells: tuple[tuple[int, ...], ...]

    def seen_from(self, body: str, R: Any, p: Any) -> Skin:
        """Return the same skin on another body.

        Parameters
        ----------
        body : str
            The other body.
        R : array_like, shape (3, 3)
            Axes of this body's frame in the other one's.
        p : array_like, shape (3,)
            Origin of this body's frame in the other one's, m.

        Returns
        -------
        Skin
            The skin on the other body.
        """
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
        """Return whether every point has its rows, and every line and face its points.

        Returns
        -------
        bool
            False for inconsistent data.
        """
        n = len(self.points)
        rows = {len(self.shift) == n, *(len(x) == len(self.coordinates) for x in self.shift)}
        return rows == {True} and all(len(c) in (2, 3) and all(0 <= i < n for i in c) for c in self.cells)


@dataclass(frozen=True)
class NamedSection:
    """A named place along a beam whose loads are columns of a record: BEAM.NAME.My, ..., BEAM.NAME.stress."""

    name: str
    slice: BeamSlice


@dataclass(frozen=True)
class Outline:
    """Appearance of a flexible structure: its bodies, and the slices and sections of a beam or the skin otherwise."""

    name: str
    bodies: tuple[str, ...]
    slices: tuple[BeamSlice, ...]
    sections: tuple[NamedSection, ...] = ()
    skin: Skin | None = None

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Coordinates of the skin or of the first slice; all slices of a body with modes have the same ones."""
        return self.skin.coordinates if self.skin is not None else self.slices[0].coordinates

    def seen_from(self, places: Any) -> Outline:
        """Return the same outline on merged bodies.

        Parameters
        ----------
        places : mapping
            {body: (the body that it is part of, R, p)}.

        Returns
        -------
        Outline
            The outline on those bodies.
        """
        return replace(
            self,
            slices=tuple(s.seen_from(*places[s.body]) for s in self.slices),
            sections=tuple(replace(x, slice=x.slice.seen_from(*places[x.slice.body])) for x in self.sections),
            skin=self.skin and self.skin.seen_from(*places[self.skin.body]),
        )

    @property
    def columns(self) -> dict[str, tuple[BeamSlice, str]]:
        """Columns of a record: {name: (slice, one of its LOAD_NAMES or STRESS_NAME)}."""
        columns: dict[str, tuple[BeamSlice, str]] = {}
        for section in self.sections:
            what = (*LOAD_NAMES, STRESS_NAME) if section.slice.fibres else LOAD_NAMES
            columns |= {f"{self.name}.{section.name}.{x}": (section.slice, x) for x in what}
        return columns


def check_outlines(outlines: tuple[Outline, ...], coordinates: tuple[str, ...], bodies: set[str]) -> None:
    """Raise a ModelError unless everything that outlines refer to exists; they may come from files.

    Parameters
    ----------
    outlines
        The outlines.
    coordinates
        Names of the columns of q.
    bodies
        Names of the bodies and of the ground.
    """
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
