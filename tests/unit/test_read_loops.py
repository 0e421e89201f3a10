"""Closed loops in URDF files and in YAML beside them, in the formats of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bellcrank.dynamics import kinematics
from bellcrank.errors import ModelError, ReadError
from bellcrank.formats import read
from bellcrank.model import Loop, Mechanism

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'


def bar(name: str, parent: str, xyz: str, kind: str = "continuous") -> str:
    return f"""<link name="{name}">{INERTIAL}</link>
      <joint name="{name}_joint" type="{kind}"><parent link="{parent}"/><child link="{name}"/>
        <origin xyz="{xyz}"/><axis xyz="0 1 0"/></joint>"""


def robot(*more: str) -> str:
    """Return a square of bars of 1 m in the xz plane, open between coupler and rocker, with a tip on the coupler."""
    tip = """<link name="tip"/><joint name="tip_joint" type="fixed"><parent link="coupler"/><child link="tip"/>
      <origin xyz="1 0 0"/></joint>"""
    parts = [bar("crank", "base", "0 0 0"), bar("coupler", "crank", "0 0 1"), bar("rocker", "base", "1 0 0"), tip]
    return f'<robot name="fourbar"><link name="base"/>{"".join(parts)}{"".join(more)}</robot>'


def pose(m: Mechanism, frame: str) -> np.ndarray[Any, Any]:
    return np.array([[float(x) for x in row] for row in kinematics.pose(m.tree, [0.0] * m.nq, frame)])


def said(m: Mechanism, element: str) -> list[str]:
    return [line.outcome for line in m.report.lines if line.element == element]


LOOP_JOINT = """<loop_joint name="end" type="continuous"><link1 link="coupler" xyz="1 0 0" rpy="0 0 0"/>
  <link2 link="rocker" xyz="0 0 1"/><axis xyz="0 1 0"/></loop_joint>"""
LOOP = """<loop name="end" type="revolute"><predecessor link="coupler"><origin xyz="1 0 0"/></predecessor>
  <successor link="rocker"><origin xyz="0 0 1"/></successor><axis xyz="0 1 0"/></loop>"""


GEARS = '<predecessor link="crank"/><successor link="rocker"/><ratio value="6"/>'


@pytest.mark.parametrize("text", [LOOP_JOINT, LOOP, LOOP.replace("loop", "constraint")])
def test_loop_in_three_notations(text: str) -> None:
    m = read(robot(text))
    assert m.loops == (Loop("end", "revolute", "end.a", "end.b"),)
    for end in ("end.a", "end.b"):
        np.testing.assert_allclose(pose(m, end)[:3, 3], [1, 0, 1], atol=1e-15)
        np.testing.assert_allclose(pose(m, end)[:3, 2], [0, 1, 0], atol=1e-15)
    np.testing.assert_allclose(pose(m, "end.a"), pose(m, "end.b"), atol=1e-15)
    assert any("closes a loop, revolute: 5 equations" in text for line in m.report.lines for text in [line.outcome])
    assert [w.outcome for w in m.report.warnings] == []


def test_turned_frames_and_link1_twice_as_in_the_manual() -> None:
    text = LOOP_JOINT.replace("continuous", "spherical").replace("link2", "link1").replace('<axis xyz="0 1 0"/>', "")
    m = read(robot(text.replace('rpy="0 0 0"', 'rpy="0 0 1.5707963267948966"')))
    assert m.loops[0].kind == "spherical"
    np.testing.assert_allclose(pose(m, "end.a")[:3, :3], [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15)


def test_points_that_meet() -> None:
    text = LOOP.replace("loop", "constraint").replace('"revolute"', '"position"').replace('<axis xyz="0 1 0"/>', "")
    assert read(robot(text)).loops[0].kind == "spherical"


@pytest.mark.parametrize(
    "text",
    [
        f'<coupling name="c">{GEARS}</coupling>',
        f'<constraint name="c" type="rolling">{GEARS}</constraint>',
        f'<constraint name="c">{GEARS}</constraint>',
    ],
)
def test_couplings(text: str) -> None:
    assert read(robot(text)).loops == (Loop("c", "gear", value=6.0, joints=("crank_joint", "rocker_joint")),)


def test_a_coupling_is_between_the_joints_that_move_the_links_against_each_other() -> None:
    more = bar("rotor", "crank", "0 0 1") + bar("slider", "crank", "0 0 0", "prismatic")
    text = '<coupling name="c"><predecessor link="tip"/><successor link="rotor"/><ratio value="-2"/></coupling>'
    assert read(robot(more, text)).loops[0].joints == ("coupler_joint", "rotor_joint")
    rack = text.replace("rotor", "slider")
    assert read(robot(more, rack)).loops[0] == Loop("c", "rack", value=-2.0, joints=("coupler_joint", "slider_joint"))
    back = rack.replace("tip", "x").replace("slider", "tip").replace('"x"', '"slider"')
    assert read(robot(more, back)).loops[0] == Loop("c", "rack", value=-0.5, joints=("coupler_joint", "slider_joint"))
    far = text.replace("rotor", "rocker")
    with pytest.raises(ReadError, match=r'"tip" moves .* by 2 joints \("coupler_joint", "crank_joint"\)'):
        read(robot(more, far))


BAD = {
    "type": (LOOP_JOINT.replace("continuous", "hinge"), "type of loop"),
    "link": (LOOP_JOINT.replace('"rocker"', '"rockr"'), 'Did you mean "rocker"'),
    "one end": (LOOP_JOINT.replace("link2", "link3"), "expected <link1> and <link2>"),
    "successor": (LOOP.replace("successor", "follower"), "expected <predecessor> and <successor>"),
    "twice": (LOOP + LOOP_JOINT, "the name is taken"),
    "no name": (LOOP.replace('name="end"', ""), '"name" is missing'),
    "axis": (LOOP.replace("0 1 0", "0 0 0"), "has no direction"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_loops(case: str) -> None:
    text, message = BAD[case]
    with pytest.raises(ReadError, match=message):
        read(robot(text))


def test_a_loop_on_one_rigid_body() -> None:
    with pytest.raises(ModelError, match="one rigid body"):
        read(robot(LOOP.replace('"rocker"', '"tip"')))


# -- YAML

YAML = """
closed_loop:
  [
    ["tip", "rocker_end"],
  ]
type: ["{kind}"]   # as Gepetto's files have it
name_mot: ['crank_joint']
joint_name: [coupler_joint]
joint_type: [{joint}]
"""
END = """<link name="rocker_end"/><joint name="rocker_end_joint" type="fixed"><parent link="rocker"/>
  <child link="rocker_end"/><origin xyz="0 0 1"/></joint>"""


def files(folder: Path, kind: str = "3d", joint: str = "SPHERICAL", name: str = "robot.yaml") -> Path:
    (folder / "robot.urdf").write_text(robot(END))
    (folder / name).write_text(YAML.format(kind=kind, joint=joint))
    return folder / "robot.urdf"


def test_a_yaml_file_beside_it(tmp_path: Path) -> None:
    m = read(files(tmp_path))
    assert m.loops == (Loop("tip:rocker_end", "spherical", "tip:rocker_end.a", "tip:rocker_end.b"),)
    assert (m.frames["tip:rocker_end.a"].body, m.frames["tip:rocker_end.b"].body) == ("coupler", "rocker")
    np.testing.assert_allclose(pose(m, "rocker_end")[:3, 3], [1, 0, 1])
    assert {j.name: j.kind for j in m.joints}["coupler_joint"] == "spherical"
    assert any("spherical by" in text for text in said(m, 'joint "coupler_joint"'))
    assert said(m, "name_mot") == ["not used: which joints have motors (crank_joint)"]
    assert read(tmp_path / "robot.urdf", loops=False).loops == ()


def test_yaml_file_in_another_folder_and_6d(tmp_path: Path) -> None:
    path = files(tmp_path, "6D", "UJOINT_ZY", "loops.yaml")
    assert read(path).loops == ()
    m = read(path, loops=tmp_path / "loops.yaml")
    assert m.loops[0].kind == "fixed"
    j = next(j for j in m.joints if j.name == "coupler_joint")
    assert (j.kind, j.axis, j.second_axis) == ("universal", (0, 0, 1), (0, 1, 0))


def test_text_with_a_yaml_file(tmp_path: Path) -> None:
    path = files(tmp_path)
    assert read(path.read_text(), loops=tmp_path / "robot.yaml").loops == read(path).loops != ()
    assert read(path.read_text()).loops == ()


def test_yaml_that_is_about_something_else(tmp_path: Path) -> None:
    path = files(tmp_path)
    (tmp_path / "robot.yaml").write_text("controllers: {gains: [1, 2]}")
    assert read(path).loops == ()


BAD_YAML = {
    "no pairs": ("closed_loop: [[a]]", "expected pairs"),
    "link": ("closed_loop: [[tip, rockr]]", 'no link "rockr"'),
    "type": ("closed_loop: [[tip, rocker_end]]\ntype: [5d]", "type of closed_loop"),
    "types": ("closed_loop: [[tip, rocker_end]]\ntype: [6d, 6d]", "1 pairs and type 2"),
    "joint": ("closed_loop: []\njoint_name: [x]\njoint_type: [FIXED]", 'no joint "x"'),
    "joint type": ("closed_loop: []\njoint_name: [crank_joint]\njoint_type: [CARDANIC]", "joint_type"),
    "broken": ("closed_loop: [[tip", "not YAML"),
    "a list": ("[closed_loop]", "expected keys"),
}


@pytest.mark.parametrize("case", BAD_YAML)
def test_bad_yaml(case: str, tmp_path: Path) -> None:
    path = files(tmp_path)
    text, message = BAD_YAML[case]
    (tmp_path / "robot.yaml").write_text(text)
    with pytest.raises(ReadError, match=message):
        read(path)
