"""Collision shapes of a robot file: primitives as they are, meshes as the best primitive, what is missing by name."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import ReadError
from bellcrank.forces import Box, Capsule, Cylinder, Sphere
from bellcrank.formats.bounding_primitives import bounding_primitive

HEAVY = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
LINK = f'<link name="{{}}">{HEAVY}{{}}</link>'
SHAPE = '<collision><origin xyz="{}" rpy="{}"/><geometry>{}</geometry></collision>'


def stl(points: Any) -> bytes:
    """Triangles between any three points."""
    rows = [struct.pack("<12fH", 0, 0, 0, *np.ravel(t), 0) for t in np.reshape(points, (-1, 3, 3))]
    return b"\0" * 80 + struct.pack("<I", len(rows)) + b"".join(rows)


def robot(tmp_path: Path, *shapes: str) -> tuple[Path, bc.Mechanism]:
    arm, foot = (
        LINK.format("arm", "".join(shapes)),
        LINK.format("foot", SHAPE.format("0 0 -1", "0 0 0", '<sphere radius="0.1"/>')),
    )
    hinge = '<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/>'
    joints = f'<joint name="j" type="revolute"><parent link="base"/><child link="arm"/>{hinge}</joint>'
    joints += '<joint name="w" type="fixed"><parent link="arm"/><child link="foot"/><origin xyz="0.5 0 0"/></joint>'
    path = tmp_path / "robot.urdf"
    path.write_text(f'<robot name="r"><link name="base"/>{arm}{foot}{joints}</robot>')
    return path, bc.read(path)


def test_primitives(tmp_path: Path) -> None:
    given = ['<box size="1 2 3"/>', '<cylinder radius="0.2" length="0.7"/>', '<sphere radius="0.4"/>']
    path, m = robot(tmp_path, *(SHAPE.format("0.1 0.2 0.3", "1.5707963267948966 0 0", g) for g in given))
    found = bc.collisions(path, m)
    assert list(found.shapes.values()) == [Box((1.0, 2.0, 3.0)), Cylinder(0.2, 0.7), Sphere(0.4), Sphere(0.1)]
    X = found.mechanism.pose([0.0], "arm.collision0")
    np.testing.assert_allclose(X[:3, 3], [0.1, 0.2, 0.3])
    np.testing.assert_allclose(X[:3, :3], [[1, 0, 0], [0, 0, -1], [0, 1, 0]], atol=1e-12)
    np.testing.assert_allclose(
        found.mechanism.pose([0.0], "foot.collision0")[:3, 3], [0.5, 0, -1.0]
    )  # welded to the arm
    assert [c.name for c in found.contacts(only=["foot"], friction=0.5)] == ["foot.collision0"]
    assert len(found.contacts()) == 4
    with pytest.raises(ReadError, match="link with a shape"):
        found.contacts(only=["hand"])


def test_meshes_become_primitives(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    cube = np.array([[x, y, z] for x in (0, 1) for y in (0, 2) for z in (0, 3)], float)
    (tmp_path / "cube.stl").write_bytes(stl(np.concatenate([cube, cube[:1]])))
    (tmp_path / "rod.obj").write_text(
        "".join(f"v {np.cos(a)} {np.sin(a)} {z}\n" for a in np.linspace(0, 6.28, 60) for z in (0, 9))
    )
    (tmp_path / "empty.stl").write_bytes(b"solid\nendsolid\n")
    names = ["cube.stl", "package://some_robot/rod.obj", "none.stl", "empty.stl", "odd.blend"]
    (tmp_path / "odd.blend").write_bytes(b"?")
    path, m = robot(tmp_path, *(SHAPE.format("0 0 0", "0 0 0", f'<mesh filename="{n}" scale="2 2 2"/>') for n in names))
    found = bc.collisions(path, m)
    box, rod, _ = found.shapes.values()
    assert isinstance(box, Box)
    assert isinstance(rod, Cylinder)
    np.testing.assert_allclose(box.size, (2.0, 4.0, 6.0))
    np.testing.assert_allclose([rod.radius, rod.length], (2.0, 18.0), rtol=1e-3)
    np.testing.assert_allclose(found.mechanism.pose([0.0], "arm.collision0")[:3, 3], [1.0, 2.0, 3.0])
    said = str(found.report)
    for words in (
        "cube.stl: taken as a box",
        "none.stl is not there",
        "empty.stl has no points",
        "odd.blend is no mesh",
    ):
        assert words in said
    ball = rng.normal(size=(4000, 3))
    shape, _, _ = bounding_primitive(ball / np.linalg.norm(ball, axis=1, keepdims=True))
    assert isinstance(shape, Sphere)
    long = ball / np.linalg.norm(ball, axis=1, keepdims=True) + np.where(ball[:, :1] > 0, [[3.0, 0, 0]], [[-3.0, 0, 0]])
    shape, turn, _ = bounding_primitive(long)
    assert isinstance(shape, Capsule)
    np.testing.assert_allclose(np.abs(turn[:, 2]), [1, 0, 0])
