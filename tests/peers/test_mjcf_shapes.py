"""bc.collisions of MuJoCo's files: every geom has a line, and each shape has the pose of MuJoCo's geom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from robot_files import mjcf_files, short

import bellcrank as bc
from bellcrank.errors import ReadError
from bellcrank.forces import Box, Capsule, Cylinder, Plane, Sphere, Terrain

mujoco = pytest.importorskip("mujoco")
Array = np.ndarray[Any, Any]

SCENE = """<mujoco><asset><hfield name="hills" nrow="3" ncol="4" size="2 1 0.5 0.1"
    elevation="0 1 2 3 4 5 6 7 8 9 10 11"/>
  <mesh name="wedge" vertex="0 0 0  0.4 0 0  0 0.2 0  0 0 0.6  0.4 0 0.6  0 0.2 0.6"/></asset><worldbody>
  <geom name="floor" type="plane" size="1 1 1" pos="0 0 -0.5" euler="0 10 0"/>
  <geom name="hills" type="hfield" hfield="hills" pos="5 0 0"/>
  <body name="a" pos="0 0 1" euler="10 20 30"><joint name="j" axis="0 1 0" pos="0.1 0 0.2"/>
    <joint name="k" axis="1 0 0" pos="0 0.3 0"/>
    <geom name="ball" size="0.1" pos="0.1 0.2 0.3" mass="1"/>
    <geom name="rod" type="capsule" size="0.05" fromto="0 0 0 0.3 0.4 0"/>
    <geom name="drum" type="cylinder" size="0.1 0.3" euler="0 90 0"/>
    <geom name="egg" type="ellipsoid" size="0.1 0.2 0.3" pos="0.2 0 0"/>
    <geom name="picture" size="0.5" contype="0" conaffinity="0"/>
    <body name="welded" pos="0.2 0 0" euler="30 0 0">
      <geom name="crate" type="box" size="0.1 0.2 0.3" pos="0 0.1 0"/></body>
    <body name="b" pos="0.5 0 0"><joint name="l" type="ball" pos="0 0 0.1"/>
      <geom name="wedge" type="mesh" mesh="wedge" pos="0.1 0 0" euler="0 0 40" mass="1"/></body></body>
  </worldbody></mujoco>"""
SHAPES = {
    "floor": Plane(),
    "ball": Sphere(0.1),
    "rod": Capsule(0.05, 0.5),
    "drum": Cylinder(0.1, 0.6),
    "crate": Box((0.2, 0.4, 0.6)),
}


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    path = tmp_path / "scene.xml"
    path.write_text(SCENE)
    return path


def lines(found: Any) -> dict[str, str]:
    return {line.element.removeprefix('geom "').removesuffix('"'): line.outcome for line in found.report.lines}


def test_shape_poses_equal_those_of_mujoco(scene: Path) -> None:
    m = bc.read(scene)
    found = bc.collisions(scene, m)
    told = lines(found)
    frames = {name: outcome.rpartition("frame ")[2] for name, outcome in told.items() if "frame " in outcome}
    assert {name: found.shapes[frames[name]] for name in SHAPES} == SHAPES
    assert set(frames) == {*SHAPES, "hills", "egg", "wedge"}
    q = m.random(5)[0]
    model = mujoco.MjModel.from_xml_path(str(scene))
    data = mujoco.MjData(model)
    data.qpos[:] = [*q[:2], q[5], *q[2:5]]
    mujoco.mj_forward(model, data)
    for name in (*SHAPES, "hills"):
        X, geom = found.mechanism.pose(q, frames[name]), data.geom(name)
        np.testing.assert_allclose(X[:3, 3], geom.xpos, atol=1e-12)
        if name != "ball":
            np.testing.assert_allclose(X[:3, :3], geom.xmat.reshape(3, 3), atol=1e-12)
    X, geom = found.mechanism.pose(q, frames["wedge"]), data.geom("wedge")
    points = model.mesh_vert @ geom.xmat.reshape(3, 3).T + geom.xpos  # in world axes
    shape = found.shapes[frames["wedge"]]
    assert isinstance(shape, Box)
    inside = (points - X[:3, 3]) @ X[:3, :3]
    np.testing.assert_allclose(np.abs(inside).max(axis=0), np.array(shape.size) / 2, atol=1e-6)


def test_height_fields_have_mujocos_heights(scene: Path) -> None:
    found = bc.collisions(scene, bc.read(scene))
    field = found.shapes[lines(found)["hills"].rpartition("frame ")[2]]
    assert isinstance(field, Terrain)
    model = mujoco.MjModel.from_xml_path(str(scene))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    for x in np.linspace(-2, 2, 4) * (1 - 1e-9):
        for y in np.linspace(-1, 1, 3) * (1 - 1e-9):
            assert float(field.height(x, y)) == pytest.approx(ray_down(model, data, 5 + x, y), abs=1e-6)


def ray_down(model: Any, data: Any, x: float, y: float) -> float:
    """Return the height at which a vertical ray from above hits something."""
    start, hit = np.array([x, y, 9.0]), np.full(1, -1, np.int32)
    distance = mujoco.mj_ray(model, data, start, np.array([0, 0, -1.0]), None, 1, -1, hit)
    assert model.geom(int(hit[0])).name == "hills"
    return 9.0 - float(distance if np.isscalar(distance) else distance[0])


def test_omitted_shapes_are_reported(scene: Path) -> None:
    told = lines(bc.collisions(scene, bc.read(scene)))
    assert told["picture"] == "touches nothing (contype and conaffinity are 0): left out"
    assert told["egg"].startswith("ellipsoid: taken as a ")


def test_contacts_are_with_the_floors_of_the_file(scene: Path) -> None:
    found = bc.collisions(scene, bc.read(scene))
    contacts = found.contacts(only=["a", "b"])
    assert {c.a for c in contacts} == {"world.collision0", "world.collision1"}
    assert len(contacts) == 2 * 5
    assert {c.a for c in found.contacts(floor=Plane())} == {"world"}


def test_a_ball_rests_on_the_floor_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "ball.xml"
    path.write_text("""<mujoco><worldbody><geom type="plane" size="1 1 1" pos="0 0 0.5"/><body pos="0 0 0.65">
      <freejoint/><geom size="0.1" mass="1"/></body></worldbody></mujoco>""")
    found = bc.collisions(path, bc.read(path))
    plant = bc.system(found.mechanism, elements=found.contacts(stiffness=1e4))
    run = bc.simulate(plant, 2.0, step=1e-3, every=0.1)
    assert run["body1.z"][-1] == pytest.approx(0.6 - 9.81 / 1e4, abs=1e-4)


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.xml"
    path.write_text("<sdf/>")
    with pytest.raises(ReadError, match="root element is <sdf>"):
        bc.collisions(path, bc.zoo.chain(1))


@pytest.mark.parametrize("path", mjcf_files(), ids=short)
def test_every_geom_has_a_line(path: Path) -> None:
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError:
        return  # test_mjcf_files.py
    found = bc.collisions(path, bc.read(path))
    told = [line for line in found.report.lines if line.element.startswith('geom "')]
    assert len(told) == model.ngeom
    assert len(found.shapes) == sum("left out" not in line.outcome for line in told)
