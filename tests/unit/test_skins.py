"""Drawings of flexible bodies from matrices, files and meshes: lines and faces that move as the body bends."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import ModelError
from bellcrank.record.description import read_mechanism, to_plain
from bellcrank.structures.beam import Beam
from bellcrank.structures.skin import MAX_DRAWN_NODES, neighbour_lines, surface_triangles
from bellcrank.view.mechanism_picture import STEEL, svg
from bellcrank.view.scene import poses, scene

BAR = Beam(1.0, bc.Section.circle(0.02), bc.Material.steel(), elements=8)


def structure() -> Any:
    return bc.flexible(*BAR.matrices, BAR.nodes, {"eye": 0, "pin": 8}, modes=2, below=2000.0)


def hinged(body: Any, **placed: Any) -> Any:
    b = bc.Builder("hinged")
    b.flexible("rod", body, **placed)
    b.joint("swing", "revolute", "ground", "rod", axis=(0, 1, 0))
    b.body("load", mass=2.0, com=(1, 0, 0), inertia=(1, 1, 1))
    b.joint("straps", "fixed", "rod.pin", "load", point=(1, 0, 0))
    return b.build()


def bricks(nx: int = 3, ny: int = 2) -> Any:
    """Return nodes of bricks in a plane, and which of them share one."""
    grid = np.array([(x, 0.7 * y, 0.0) for x in range(nx + 1) for y in range(ny + 1)])
    steps = np.abs(grid[:, None] - grid[None])
    return grid, np.nonzero((steps[..., 0] < 1.1) & (steps[..., 1] < 0.8))


def test_lines_are_the_edges_of_bricks_and_no_diagonals() -> None:
    grid, joined = bricks()
    found = neighbour_lines(grid, joined)
    assert len(found) == 3 * 3 + 4 * 2
    assert np.linalg.norm(grid[found[:, 0]] - grid[found[:, 1]], axis=1).max() == pytest.approx(1.0)


def test_lines_without_a_matrix_reach_every_node() -> None:
    grid = np.random.default_rng(3).normal(size=(40, 3))
    reached = {0}
    lines = [set(x) for x in neighbour_lines(grid).tolist()]
    for _ in range(40):
        reached |= {i for line in lines if line & reached for i in line}
    assert len(reached) == 40


def test_nodes_that_do_not_push_each_other_are_not_joined() -> None:
    """Nodes without stiffness between them are not joined: two plates that lie on each other."""
    grid, (a, b) = bricks()
    n = len(grid)
    both = np.vstack([grid, grid + np.array([0, 0, 0.01])])
    found = neighbour_lines(both, (np.concatenate([a, a + n]), np.concatenate([b, b + n])))
    assert np.all((found[:, 0] < n) == (found[:, 1] < n))


def test_many_nodes_become_few() -> None:
    grid, joined = bricks(60, 20)
    found = neighbour_lines(grid, joined)
    assert len(np.unique(found)) <= MAX_DRAWN_NODES
    assert np.ptp(grid[np.unique(found)], axis=0)[:2] == pytest.approx(np.ptp(grid, axis=0)[:2], rel=0.1)


def test_a_surface_with_fewer_nodes_has_no_faces_of_two_corners() -> None:
    grid, _ = bricks(60, 20)
    cells = np.array([(21 * x + y, 21 * x + y + 1, 21 * x + y + 22) for x in range(60) for y in range(20)])
    found = surface_triangles(grid, cells)
    assert len(np.unique(found)) <= MAX_DRAWN_NODES
    assert all(len(set(face)) == 3 for face in found.tolist())


@pytest.mark.parametrize("source", ["matrices", "sid", "fem"])
def test_end_of_the_skin_is_at_its_node(tmp_path: Path, source: str) -> None:
    body, path = structure(), tmp_path / "body"
    if source == "sid":
        bc.write_sid(path, body)
        body = bc.read_sid(path, {"eye": 1, "pin": 2})
    if source == "fem":
        bc.write_fem(path, body)
        body = bc.read_fem(path, {"eye": 1, "pin": 9})
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    m = hinged(body) if source != "fem" else hinged(body, rotation=turn)
    skin = m.outlines[0].skin
    assert len(skin.cells) == (1 if source == "sid" else 8)
    q = np.array([0.3, *(0.01 * (k + 1) for k in range(m.nq - 1))])
    n = q[[m.columns[0].index(x) for x in skin.coordinates]]
    at = np.array(skin.points) + np.einsum("pki,k->pi", np.array(skin.shift), n)
    X = m.pose(q, frame="rod")
    away = at @ X[:3, :3].T + X[:3, 3] - m.pose(q, frame="rod.pin")[:3, 3]
    assert np.linalg.norm(away, axis=1).min() < 1e-9


def test_scene_and_file_have_the_skin() -> None:
    m = hinged(structure())
    found = scene(m, m.neutral()[None])
    assert [len(s["cells"]) for s in found["skins"]] == [8]
    assert found["nodes"], "what stands on it goes with it"
    assert not any(s["kind"] == "bar" and found["bodies"][s["body"]] == "rod" for s in found["shapes"])
    assert len(poses(m, m.neutral()[None])[0]) == len(found["bodies"])
    assert read_mechanism(to_plain(m)).fingerprint == m.fingerprint


@pytest.mark.parametrize(
    "change",
    [{"cells": ((0, 99),)}, {"cells": ((0, 1, 2, 3),)}, {"shift": ()}, {"coordinates": ("x",)}, {"body": "y"}],
)
def test_skins_that_cannot_be(change: Any) -> None:
    m = hinged(structure())
    outline = m.outlines[0]
    with pytest.raises(ModelError, match="its skin names"):
        replace(m, outlines=(replace(outline, skin=replace(outline.skin, **change)),))


def test_pictures_show_bending() -> None:
    """Pictures draw a line between adjacent nodes or sections of a beam, and the lines move."""
    b = bc.Builder("both")
    b.flexible("rod", structure())
    b.joint("swing", "revolute", "ground", "rod", axis=(0, 1, 0))
    b.beam("boom", length=2.0, section=bc.Section.circle(0.05), material=bc.Material.steel(), elements=6, modes=1)
    b.joint("luff", "revolute", "ground", "boom", axis=(0, 1, 0))
    m = b.build()
    q = m.neutral()
    straight = svg(m, q)
    assert straight.count(STEEL) == 8 + 6
    q[[m.columns[0].index("rod.eye.mode1"), m.columns[0].index("boom.end.mode1")]] = 0.1
    both = [set(re.findall(f"<polygon.*{STEEL}.*/>", x)) for x in (straight, svg(m, q))]
    assert len(both[1] - both[0]) > 8
