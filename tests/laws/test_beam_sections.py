"""Loads, stresses and outlines at named sections of beams, against statics and against the node positions."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics import kinematics, rnea
from bellcrank.model.outline import LOAD_NAMES
from bellcrank.record import Record, state_columns
from bellcrank.view.scene import flexible_shapes, largest_stress, poses

STEEL = bc.Material.steel()
L, F = 2.0, np.array([300.0, -200.0, 500.0])
SHAPES = {
    "taper": (bc.Section.box(0.08, 0.12, 0.006), bc.Section.box(0.05, 0.06, 0.006)),
    "tube": bc.Section.tube(0.1, 0.01),
    "general": bc.Section.general(4e-3, 2e-6, 3e-6, 4e-6),
}
PLACES = {"root": 0.0, "middle": 0.5, "odd": 0.65}


def cantilever(section: Any, large: bool = False, gravity: float = 0.0, **more: Any) -> Any:
    b = bc.Builder("cantilever", gravity=(0, 0, gravity))
    given = {"elements": 10, "modes": 0, "sections": PLACES} | ({"large": True, "elements": 24} if large else {}) | more
    b.beam("boom", length=L, section=section, material=STEEL, axis=(0, 0.6, 0.8), side=(1, 0, 0), **given)
    b.joint("clamp", "fixed", "ground", "boom")
    return b.build()


def record(m: Any, q: Any) -> Record:
    return Record(state_columns(m, [0.0], q=np.atleast_2d(q)), mechanism=m)


AXES = np.column_stack([[0, 0.6, 0.8], [1, 0, 0], np.cross([0, 0.6, 0.8], [1, 0, 0])])


def carried(s: float) -> Any:
    """Section load at s from a force F at the end, in the beam's axes."""
    return np.concatenate([F, np.cross([L * (1 - s), 0, 0], F)])


def moved(m: Any) -> Any:
    """Coordinate displacement caused by the force at the end."""
    J = kinematics.jacobian(m.tree, m.neutral().tolist(), "boom.end", "aligned")
    return np.array(J[:3], float).T @ (AXES @ F)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_force_at_the_end_passes_through_all_sections(shape: str) -> None:
    m = cantilever(SHAPES[shape])
    (body,) = m.tree.flexible
    q = moved(m) / body.stiffness
    run = record(m, q)
    for name, s in PLACES.items():
        found = [run[f"boom.{name}.{x}"][0] for x in LOAD_NAMES]
        assert found == pytest.approx(carried(s), rel=1e-9, abs=1e-9 * np.abs(F).max())
    if shape == "general":
        assert "boom.root.stress" not in run
        return
    given = SHAPES[shape][0] if shape == "taper" else SHAPES[shape]
    n, (N, _, _, _, My, Mz) = given.numbers, carried(0.0)
    wanted = abs(N) / n.area + abs(My) * 0.06 / n.Iy + abs(Mz) * 0.04 / n.Iz
    if shape == "tube":
        wanted = abs(N) / n.area + math.hypot(My, Mz) * 0.05 / n.Iy
    assert run["boom.root.stress"] == pytest.approx([wanted], rel=1e-9)
    assert run.column("boom.root.stress").unit == "Pa"
    assert largest_stress(m, q[None]) >= 0.99 * wanted


def test_a_chain_carries_the_same() -> None:
    motions = ("stretch", "shear_y", "shear_z", "bend_y", "bend_z")
    m = cantilever(SHAPES["taper"], large=True, motions=motions)
    run = record(m, moved(m) / np.array([j.stiffness for j in m.joints]))
    for name, s in PLACES.items():
        found = [run[f"boom.{name}.{x}"][0] for x in LOAD_NAMES]
        assert found == pytest.approx(carried(s), rel=1e-9, abs=1e-9 * np.abs(F).max())


@pytest.mark.parametrize(("modes", "off"), [(3, 0.05), (12, 0.012)])
def test_weight_needs_modes(modes: int, off: float) -> None:
    """Loads between the nodes are represented only by the retained modes."""
    m = cantilever(bc.Section.rectangle(0.05, 0.08), gravity=-9.81, modes=modes, motions=("bend_y", "stretch"))
    (body,) = m.tree.flexible
    q = -np.array(rnea.gravity_torque(m.tree, m.neutral().tolist()), float) / body.stiffness
    found = record(m, q)["boom.root.My"][0]
    assert abs(found) == pytest.approx(7850 * 0.05 * 0.08 * 9.81 * 0.6 * L**2 / 2, rel=off)


def test_sections_are_stored_and_change_no_motion(tmp_path: Path) -> None:
    m = cantilever(SHAPES["tube"])
    assert m.fingerprint == cantilever(SHAPES["tube"], sections=None).fingerprint
    run = record(m, m.random(0)[0])
    run.save(tmp_path / "run.npz")
    back = bc.load_record(tmp_path / "run.npz")
    assert back["boom.middle.Mz"] == pytest.approx(run["boom.middle.Mz"], rel=0)
    assert pickle.loads(pickle.dumps(m)).outlines == m.outlines


@pytest.mark.parametrize("name", ["slanted", "excavator_flexible"])
def test_outlines_pass_through_the_nodes(name: str) -> None:
    m = cantilever(SHAPES["taper"], modes=2) if name == "slanted" else bc.zoo.load(name)
    q = m.neutral()
    for body in m.tree.flexible:
        q[list(body.q_index)] = 1e-5
    assert m.outlines
    places = np.vstack([_places(m, outline, q) for outline in m.outlines])
    for body in m.flexible:
        for node in body.nodes:
            at = poses(m, q[None])[0, [b.name for b in m.bodies].index(node.joint), :3]
            assert np.linalg.norm(places - at, axis=1).min() < 1e-8


def _places(m: Any, outline: Any, q: Any) -> Any:
    at = {b.name: x for b, x in zip(m.bodies, poses(m, q[None])[0], strict=True)} | {m.ground: np.eye(7)[6]}
    found = []
    for s in outline.slices:
        p, u, w = np.split(at[s.body], [3, 6])
        x = np.array(s.point) + q[[m.columns[0].index(c) for c in s.coordinates]] @ np.array(s.shift)
        found.append(p + x + 2 * np.cross(u, np.cross(u, x) + w * x))
    return np.array(found)


def test_pages_receive_outlines_and_nodes() -> None:
    m = cantilever(SHAPES["tube"], modes=1)
    told = flexible_shapes(m)
    assert told["bent"] == list(range(m.nq))
    (beam,) = told["beams"]
    first = beam["slices"][0]
    assert first["body"] == -1  # clamped to the ground
    assert len(first["stress"]) == m.nq
    assert len(first["stress"][0]) == len(first["corners"]) == 12
    assert [node["body"] for node in told["nodes"]] == [0]


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        (5, "sections is 5"),
        ({"weld": 1.5}, 'section "weld" is at 1.5'),
        ({"": 0.5}, "empty name"),
        ({"a\n": 0.5}, "section"),
        ({"end": 0.5}, 'a node is called "end"'),
        ({"weld": "x"}, "weld"),
    ],
)
def test_sections_that_cannot_be(sections: Any, words: str) -> None:
    with pytest.raises(bc.ModelError, match=words):
        cantilever(SHAPES["tube"], sections=sections)
