"""Flexible boom and stick of excavator_linkage: crooked box beams that bend in their plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bellcrank.structures.matrices import flexible
from bellcrank.structures.modes import Moments
from bellcrank.structures.polygonal_beams import PolygonalBeam, polygonal_beam
from bellcrank.structures.section import Material, Section

IN_PLANE = (0, 2, 4)  # translations along x and z, and the rotation about y
SUPPORTS = {"pin": (0, 1, 2, 3, 5), "rod": (2,)}  # the body turns about its pin and is held by its cylinder
FIXED_INTERFACE_MODES = 4  # fixed-interface modes before the selection by frequency


def steelwork(given: Mapping[str, Any], lugs: Mapping[str, int], carried: Mapping[str, float], below: float) -> Moments:
    """Return the flexible body of a boom or stick.

    Its density is scaled so that the plates have the given mass.

    Parameters
    ----------
    given
        Boom or stick of data("excavator_linkage").
    lugs
        Corner of each attachment point.
    carried
        Mass at attachment points, kg.
    below
        Highest frequency of the modes that are kept, Hz.
    """
    steel = Material.steel()
    bare = _frame(given, steel)
    mass = float(bare.M[1::6, 1::6].sum())
    frame = _frame(given, replace(steel, density=steel.density * given["mass"] / mass))
    places = {name: frame.corners[corner] for name, corner in lugs.items()}
    body = flexible(
        *(frame.K, frame.M, frame.nodes, places),
        modes=FIXED_INTERFACE_MODES, below=below, directions=IN_PLANE, supports=SUPPORTS, loads=carried,
    )  # fmt: skip
    return replace(body, pieces=frame.pieces)


def _frame(given: Mapping[str, Any], material: Material) -> PolygonalBeam:
    corners = np.array([[x, 0.0, z] for x, z in given["corners"]])
    arc_lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(corners, axis=0), axis=1))])
    width, wall = given["plates"]
    return polygonal_beam(
        corners,
        lambda s: Section.box(width, float(np.interp(s * arc_lengths[-1], arc_lengths, given["heights"])), wall),
        material,
    )
