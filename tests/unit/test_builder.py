"""Mechanisms written in Python with the Builder: joints are given in world axes at the zero configuration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bellcrank.dynamics import crba, kinematics, rnea
from bellcrank.errors import ModelError
from bellcrank.formats import Builder, read
from bellcrank.model import Mimic

URDF = """<robot name="two">
  <link name="ground"/>
  <joint name="a" type="revolute"><parent link="ground"/><child link="one"/>
    <origin xyz="0.1 0.2 0.3"/><axis xyz="0 0 1"/></joint>
  <link name="one"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>
    <inertia ixx="0.01" ixy="0.001" ixz="0.002" iyy="0.02" iyz="0.003" izz="0.02"/></inertial></link>
  <joint name="b" type="prismatic"><parent link="one"/><child link="two"/>
    <origin xyz="0.4 0 0.1"/><axis xyz="0 1 0"/></joint>
  <link name="two"><inertial><origin xyz="0 0.1 0"/><mass value="1"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
</robot>"""


def two() -> Builder:
    b = Builder("two")
    b.body("one", mass=2, com=(0.3, 0.2, 0.3), inertia=(0.01, 0.02, 0.02, 0.001, 0.002, 0.003))
    b.body("two", mass=1, com=(0.5, 0.3, 0.4), inertia=(0.01, 0.01, 0.01))
    b.joint("a", "revolute", "ground", "one", point=(0.1, 0.2, 0.3), axis=(0, 0, 1))
    b.joint("b", "prismatic", "one", "two", point=(0.5, 0.2, 0.4), axis=(0, 1, 0))
    return b


def test_builder_and_file_give_equal_mechanisms() -> None:
    one, other = two().build(), read(URDF)
    q, v, a = [0.3, 0.2], [1.0, -0.5], [0.2, 0.7]
    np.testing.assert_allclose(rnea.rigid_forces(one.tree, q, v, a), rnea.rigid_forces(other.tree, q, v, a), atol=1e-14)
    np.testing.assert_allclose(one.bodies[0].com, other.bodies[0].com, atol=1e-15)
    assert one.bodies[0].inertia == other.bodies[0].inertia


def test_the_example_of_the_design() -> None:
    b = Builder("fourbar", gravity=(0, -9.81, 0))
    b.body("crank", mass=1.0, com=(0.5, 0, 0), inertia=(0, 0.0833, 0.0833))
    b.joint("hinge", "revolute", "ground", "crank", point=(0, 0, 0), axis=(0, 0, 1))
    b.frame("tip", "crank", point=(1, 0, 0))
    m = b.build()
    X = np.array([[float(x) for x in row] for row in kinematics.pose(m.tree, [math.pi / 2], "tip")])
    np.testing.assert_allclose(X, [[0, -1, 0, 0], [1, 0, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1]], atol=1e-15)
    assert crba.mass_matrix(m.tree, [0.4])[0][0] == pytest.approx(0.0833 + 0.25)
    assert rnea.rigid_forces(m.tree, [0.0], [0.0], [0.0])[0] == pytest.approx(9.81 * 0.5)


def test_frames_are_given_in_the_world() -> None:
    b = two()
    R = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    b.frame("tool", "two", point=(1, 1, 1), rotation=R)
    b.frame("mark", "ground", point=(1, 2, 3))
    m = b.build()
    X = np.array([[float(x) for x in row] for row in kinematics.pose(m.tree, [0.0, 0.0], "tool")])
    np.testing.assert_allclose(X[:3], np.column_stack([R, [1, 1, 1]]), atol=1e-15)
    assert m.frames["mark"].point == (1, 2, 3)


def test_every_option_of_a_joint() -> None:
    b = two()
    b.body("three", mass=1, com=(1, 0, 0), inertia=np.eye(3))
    forces = {"armature": 0.2, "damping": 0.3, "friction": 0.4, "friction_speed": 0.5, "stiffness": 6, "rest": 0.7}
    limits = {"lower": -1, "upper": 2, "velocity": 3, "effort": 4}
    b.joint("c", "helical", "two", "three", axis=(1, 0, 0), pitch=0.1, mimic=("a", 2, 0.5), **forces, **limits)
    j = b.build().joints[2]
    assert j.pitch == 0.1
    assert {k: getattr(j, k) for k in forces} == forces
    assert {k: getattr(j.limits, k) for k in limits} == limits
    assert j.mimic == Mimic("a", 2, 0.5)


def test_bodies_of_every_sort() -> None:
    b = Builder("sorts")
    b.body("point", mass=1, com=(1, 0, 0))
    b.body("empty")
    b.body("full", mass=1, inertia=[[2, 0.1, 0], [0.1, 2, 0], [0, 0, 2]])
    b.joint("u", "universal", "ground", "empty", axis=(0, 0, 1), second_axis=(1, 0, 0))
    b.joint("s", "spherical", "empty", "full")
    b.joint("f", "fixed", "full", "point", point=(0.5, 0, 0))
    m = b.build()
    assert (m.nq, [x.links for x in m.bodies]) == (6, [("empty",), ("full", "point")])
    np.testing.assert_allclose(m.bodies[1].com, (0.5, 0, 0))
    assert [w.element for w in m.report.warnings] == ['body "empty"']


def test_build_again_after_adding() -> None:
    b = two()
    assert b.build().nq == 2
    b.body("three", mass=1)
    b.joint("c", "floating", "ground", "three")
    assert b.build().nq == 9


BAD: dict[str, tuple[Any, str]] = {
    "no name": (lambda b: b.body(""), "expected a text"),
    "body twice": (lambda b: b.body("one", mass=1), 'body "one" exists already'),
    "body called ground": (lambda b: b.body("ground", mass=1), 'body "ground" exists already'),
    "mass below zero": (lambda b: b.body("x", mass=-1), 'body "x": mass is -1 kg'),
    "mass zero": (lambda b: b.body("x", mass=0), 'body "x": mass is 0 kg; expected a positive mass'),
    "mass beyond all measure": (lambda b: b.body("x", mass=10**400), "finite number below"),
    "mass nan": (lambda b: b.body("x", mass=math.nan), "expected a finite number"),
    "mass a text": (lambda b: b.body("x", mass="1"), "mass is '1'; expected a number"),
    "inertia without mass": (lambda b: b.body("x", inertia=(1, 1, 1)), "but no mass"),
    "two moments": (lambda b: b.body("x", mass=1, inertia=(1, 1)), "inertia has 2 numbers; expected 3 moments"),
    "inertia a number": (lambda b: b.body("x", mass=1, inertia=1.0), "expected 3 moments"),
    "inertia not symmetric": (lambda b: b.body("x", mass=1, inertia=np.tri(3)), "not symmetric"),
    "inertia nan": (lambda b: b.body("x", mass=1, inertia=(1, 1, math.nan)), "finite"),
    "inertia negative": (lambda b: b.body("x", mass=1, inertia=(1, 1, -1)), "positive definite"),
    "triangle": (lambda b: b.body("x", mass=1, inertia=(1, 1, 3)), "triangle inequality"),
    "com of two": (lambda b: b.body("x", mass=1, com=(1, 2)), "com is .*; expected three numbers"),
    "joint twice": (lambda b: b.joint("a", "revolute", "ground", "three"), 'joint "a" exists already'),
    "unknown kind": (lambda b: b.joint("c", "revolut", "ground", "three"), 'Did you mean "revolute"'),
    "unknown parent": (lambda b: b.joint("c", "revolute", "grund", "three"), 'no body "grund". Did you mean "ground"'),
    "unknown child": (lambda b: b.joint("c", "revolute", "ground", "tree"), 'Did you mean "three".*body\\(\\) first'),
    "itself": (lambda b: b.joint("c", "revolute", "three", "three"), "to itself"),
    "zero axis": (lambda b: b.joint("c", "revolute", "ground", "three", axis=(0, 0, 0)), "no direction"),
    "universal": (lambda b: b.joint("c", "universal", "ground", "three"), "need second_axis"),
    "universal, slanted": (
        lambda b: b.joint("c", "universal", "ground", "three", second_axis=(0, 0.6, 0.8)),
        "second_axis perpendicular",
    ),
    "nan in a point": (lambda b: b.joint("c", "revolute", "ground", "three", point=(0, 0, math.nan)), "finite"),
    "negative damping": (lambda b: b.joint("c", "revolute", "ground", "three", damping=-1), "damping is -1"),
    "limits swapped": (lambda b: b.joint("c", "revolute", "ground", "three", lower=1, upper=-1), "above the upper"),
    "limit nan": (lambda b: b.joint("c", "revolute", "ground", "three", lower=math.nan), "lower is nan"),
    "limit a text": (lambda b: b.joint("c", "revolute", "ground", "three", lower="1"), "lower is '1'; expected"),
    "mimic of four": (lambda b: b.joint("c", "revolute", "ground", "three", mimic=("a", 1, 2, 3)), "mimic is"),
    "com a number": (lambda b: b.body("x", com=5), "com is 5; expected three numbers"),
    "com a set": (lambda b: b.body("x", mass=1, com={1, 2, 3}), "com is .*; expected three numbers"),
    "com an array of no axis": (lambda b: b.body("x", mass=1, com=np.array(1.0)), "com is .*; expected three numbers"),
    "inertia an array of no axis": (lambda b: b.body("x", mass=1, inertia=np.array(1.0)), "expected 3 moments"),
    "kind a list": (lambda b: b.joint("c", ["revolute"], "ground", "three"), "no joint type"),
    "parent a list": (lambda b: b.joint("c", "revolute", ["ground"], "three"), "no body"),
    "mimic of nothing": (lambda b: b.joint("c", "revolute", "ground", "three", mimic=()), "mimic is \\(\\); expected"),
    "mimic a number": (lambda b: b.joint("c", "revolute", "ground", "three", mimic=5), "mimic is 5; expected"),
    "mimic of texts": (lambda b: b.joint("c", "revolute", "ground", "three", mimic=Mimic("a", "x")), "mimic is 'x'"),
    "frame on a list": (lambda b: b.frame("f", ["two"]), "no body"),
    "frame with a body's name": (lambda b: b.frame("one", "two"), 'frame "one".*a body has this name'),
    "frame with its body's name": (lambda b: b.frame("one", "one", point=(1, 0, 0)), "a frame of its own name"),
    "frame called ground": (lambda b: b.frame("ground", "two"), "already a frame of its own name. Rename"),
    "frame of huge numbers": (lambda b: b.frame("f", "two", rotation=10**400), "3x3 rotation matrix"),
    "frame of nothing": (lambda b: b.frame("f", "tow"), 'Did you mean "two"'),
    "frame slanted": (lambda b: b.frame("f", "two", rotation=np.ones((3, 3))), "3x3 rotation matrix"),
    "frame mirrored": (lambda b: b.frame("f", "two", rotation=-np.eye(3)), "3x3 rotation matrix"),
    "frame of words": (lambda b: b.frame("f", "two", rotation="up"), "3x3 rotation matrix"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_where_it_stands(case: str) -> None:
    b = two()
    b.body("three", mass=1)
    call, message = BAD[case]
    with pytest.raises(ModelError, match=message):
        call(b)
    b.joint("c", "floating", "ground", "three")  # the error leaves the builder unchanged
    assert b.build().nq == 9


def test_a_body_cannot_take_a_frame_s_name() -> None:
    b = two()
    b.frame("tip", "two")
    with pytest.raises(ModelError, match=r'frame "tip".*a body has this name'):
        b.body("tip", mass=1)


def test_nothing_given_is_dropped_silently() -> None:
    b = two()
    for name in ("three", "four", "five", "six"):
        b.body(name, mass=1, inertia=(1, 1, 1))
    b.joint("c", "planar", "ground", "three", pitch=0.1, second_axis=(1, 0, 0))
    b.joint("d", "fixed", "ground", "four", damping=1, friction=1, stiffness=1, armature=1, mimic="a", upper=1)
    b.joint("e", "helical", "ground", "five")
    b.joint("f", "spherical", "ground", "six", axis=(1, 0, 0))
    b.frame("tip", "three")
    still = ("armature", "damping", "friction", "stiffness", "limits", "mimic")
    welded = 'fixed: "four" is part of "ground" and stays as a frame'
    lines = {(line.level, line.element, line.outcome) for line in b.build().report.lines}
    assert lines > {
        ("warning", 'joint "c"', "pitch 0.1 not used: only helical joints have one, and this is planar"),
        ("warning", 'joint "c"', "second_axis (1, 0, 0) not used: only universal joints have one, and this is planar"),
        ("warning", 'joint "d"', f"{', '.join(still)} not used: a fixed joint does not move"),
        ("note", 'joint "d"', f"{welded}; its 1 kg do not move and are not used"),
        ("note", 'joint "e"', "pitch is 0: it turns without sliding, as a revolute joint"),
        ("warning", 'joint "f"', "axis (1, 0, 0) not used: a spherical joint has none"),
        ("ok", 'frame "tip"', 'on "three"'),
    }  # fmt: skip


def test_a_second_axis_typed_with_few_digits_is_made_perpendicular() -> None:
    b = Builder("cross")
    b.body("x", mass=1, inertia=(1, 1, 1))
    b.joint("u", "universal", "ground", "x", axis=(0.7071, 0, 0.7071), second_axis=(0.7075, 0, -0.7067))
    m = b.build()
    assert m.joints[0].second_axis is not None
    assert abs(np.dot(m.joints[0].axis, m.joints[0].second_axis)) <= np.finfo(float).eps
    assert np.linalg.norm(m.joints[0].second_axis) == pytest.approx(1.0, abs=1e-15)
    assert any("from perpendicular to axis: made perpendicular" in line.outcome for line in m.report.lines)


def test_bodies_without_a_joint() -> None:
    b = two()
    b.body("lost", mass=1)
    with pytest.raises(ModelError, match='body "lost" has no joint'):
        b.build()


def test_a_circle_of_bodies() -> None:
    b = Builder("circle")
    b.body("x", mass=1)
    b.body("y", mass=1)
    b.joint("a", "revolute", "x", "y")
    b.joint("b", "revolute", "y", "x")
    with pytest.raises(ModelError, match='body "x" is not connected'):
        b.build()


def test_massless_bodies_at_the_end_are_warned_about() -> None:
    b = Builder("feather")
    b.body("x")
    b.joint("a", "revolute", "ground", "x")
    assert "massless" in b.build().report.warnings[0].outcome


@pytest.mark.parametrize("gravity", [(0, 0), (0, 0, math.inf), "down"])
def test_gravity(gravity: Any) -> None:
    with pytest.raises(ModelError, match="gravity"):
        Builder("x", gravity=gravity)


def test_mimic_of_an_unknown_joint_raises() -> None:
    b = two()
    b.body("three", mass=1)
    b.joint("c", "revolute", "ground", "three", mimic="aa")
    with pytest.raises(ModelError, match='no moving joint "aa"'):
        b.build()
