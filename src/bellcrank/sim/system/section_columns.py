"""Section loads and stresses of beams over any scalar, as model/outline.py computes them from arrays."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.model import Mechanism
from bellcrank.model.outline import LOAD_NAMES, STRESS_NAME, BeamSlice
from bellcrank.record.derived_columns import sections
from bellcrank.scalar import Scalar, fabs, maximum, sqrt


def section_units(m: Mechanism) -> dict[str, str]:
    """Return the columns of all sections of the mechanism `m`, with their units."""
    return {name: "Pa" if what == STRESS_NAME else _load_unit(what) for name, (_, what) in sections(m).items()}


def _load_unit(what: str) -> str:
    return "N" if what in ("N", "Vy", "Vz") else "N m"


def section_column(m: Mechanism, name: str, q: Sequence[Scalar]) -> Scalar:
    """Return the column `name` of a section of the mechanism `m` at the positions `q`."""
    place, what = sections(m)[name]
    coordinates = [q[m.columns[0].index(x)] for x in place.coordinates]
    if what == STRESS_NAME:
        return _stress(place, *(_load(place, coordinates, x) for x in ("N", "My", "Mz")))
    return _load(place, coordinates, what)


def _load(place: BeamSlice, coordinates: Sequence[Scalar], what: str) -> Scalar:
    total: Scalar = 0.0
    for x, row in zip(coordinates, place.loads, strict=True):
        total = total + x * row[LOAD_NAMES.index(what)]
    return total


def _stress(place: BeamSlice, N: Scalar, My: Scalar, Mz: Scalar) -> Scalar:
    """Return the largest absolute axial stress of any fibre."""
    if place.round:  # the most stressed fibre lies between two corners
        pull, y, z = place.fibres[0]
        return fabs(N * pull) + sqrt((My * My + Mz * Mz) * (y * y + z * z))
    largest: Scalar = 0.0
    for pull, y, z in place.fibres:
        largest = maximum(largest, fabs(N * pull + My * y + Mz * z))
    return largest
