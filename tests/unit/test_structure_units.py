"""Implausible units of structures give a warning with a reason and a remedy; real structures give none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.structures.beam import Beam

STEEL, BOX = bc.Material.steel(), bc.Section.box(0.2, 0.3, 0.008)


def boom(length: float = 8.0, section: Any = BOX, E: float = 2.1e11, density: float = 7850.0, **more: Any) -> Any:
    b = bc.Builder("crane")
    return b.beam("boom", length=length, section=section, material=bc.Material(E, 0.3, density), modes=1, **more)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"E": 2.1e5}, r"5\.17 m/s.*E in MPa or GPa"),
        ({"E": 210.0, "length": 0.5}, r"E in MPa or GPa\? 210 GPa are 2\.1e11 Pa"),
        ({"density": 7.85}, "1.64e[+]05 m/s.*is density in g/cm"),
        ({"E": 2.1e5, "density": 7.85e-9}, "density in g/cm"),
        ({"section": bc.Section.box(200, 300, 8)}, "kg, more than .* largest ship.*millimetres"),
        ({"length": 8000.0, "section": bc.Section.box(200, 300, 8)}, "largest ship"),
        ({"length": 0.5, "section": bc.Section.rectangle(10, 5)}, "m deep and 0.5 m long.*millimetres"),
    ],
)
def test_beams(given: dict[str, Any], said: str, large: bool) -> None:
    with pytest.warns(RuntimeWarning, match=said):
        boom(**given, large=large)


def test_a_length_in_millimetres() -> None:
    with pytest.warns(RuntimeWarning, match=r"8e\+03 m is .*hours.*length in millimetres"):
        boom(length=8000.0)


@pytest.mark.parametrize("given", [{"density": 1e-300}, {"E": 1e-300}, {"E": 1e300}])
def test_structures_of_extreme_size_raise(given: dict[str, Any]) -> None:
    """Structures of extreme size are checked without overflow; numpy's warnings are errors here."""
    with pytest.raises(bc.ModelError, match=r"Nothing can be computed.*Pa and kg/m\^3"):
        boom(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"E": 1e6, "density": 1100.0, "length": 0.3, "section": bc.Section.circle(0.02)},  # soft rubber
        {"E": 1.05e12, "density": 3500.0, "length": 1e-3, "section": bc.Section.rectangle(1e-4, 5e-5)},  # diamond
        {"E": 1e10, "density": 500.0, "length": 20.0, "section": bc.Section.rectangle(0.2, 1.2)},  # timber
        {"length": 400.0, "section": bc.Section.box(60.0, 30.0, 0.1)},  # a ship
        {"length": 300.0, "section": bc.Section.tube(6.0, 0.05)},  # a mast
        {"length": 0.1, "section": bc.Section.circle(0.3)},  # a disc
    ],
)
def test_real_structures_are_accepted(given: dict[str, Any]) -> None:
    boom(**given)


def bricks(scale: float = 1.0, mass: float = 1.0) -> tuple[Any, Any, Any]:
    """Return a cube on springs, 1 m wide and of 800 kg, in other units."""
    places = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    K = np.zeros((24, 24))
    for i in range(8):
        for j in range(i):
            along = (places[i] - places[j]) / np.linalg.norm(places[i] - places[j])
            b = np.zeros(24)
            b[3 * i : 3 * i + 3], b[3 * j : 3 * j + 3] = along, -along
            K += 1e7 * np.outer(b, b)
    return mass * K, mass * 100.0 * np.eye(24), scale * places


def cube(*given: Any) -> Any:
    K, M, places = bricks(*given)
    return bc.flexible(K, M, places, {"foot": [0, 1, 2, 3]}, modes=2)


def test_solids_in_millimetres_and_tonnes() -> None:
    """A solid in millimetres and tonnes gives a warning.

    Its frequencies are right in such units, so they reveal nothing.
    """
    right = cube()
    with pytest.warns(RuntimeWarning, match="0.8 kg with nodes in a box of 1e[+]03 x 1e[+]03.*tonnes, N/mm"):
        wrong = cube(1e3, 1e-3)
    assert np.allclose(wrong.reduction.hertz, right.reduction.hertz)
    with pytest.warns(RuntimeWarning, match="denser than any material"):
        cube(0.1, 1.0)


def test_a_frame_in_millimetres_and_tonnes() -> None:
    """A beam frame in millimetres and tonnes gives a warning: its thickness is unknown, but it cannot be a wire."""
    bar = Beam(2.0, bc.Section.circle(0.05), STEEL, 6)
    K, M = bar.matrices
    # in N/mm and tonnes the effect of a rotation is in millimetres
    turns = np.where(np.arange(len(K)) % 6 < 3, 1.0, 1e3)
    K, M = 1e-3 * K * np.outer(turns, turns), 1e-3 * M * np.outer(turns, turns)
    with pytest.warns(RuntimeWarning, match=r"a wire that cannot be seen"):
        bc.flexible(K, M, 1e3 * bar.nodes, {"foot": 0, "end": 6}, modes=2)
