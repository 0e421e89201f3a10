"""Reading of one small URDF file that contains one of every element."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bellcrank.dynamics import crba, kinematics, rnea
from bellcrank.errors import InputError
from bellcrank.formats import read
from bellcrank.model import Mechanism

ARM = Path(__file__).parent / "data/arm.urdf"
TEXT = ARM.read_text()
Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def arm() -> Mechanism:
    return read(ARM)


def numbers(rows: Sequence[Any]) -> Array:
    return np.array([[float(x) for x in row] for row in rows])


def said(m: Mechanism, element: str) -> list[str]:
    return [line.outcome for line in m.report.lines if line.element == element]


def test_bodies_and_joints(arm: Mechanism) -> None:
    assert arm.name == "arm"
    assert arm.ground == "base"
    assert [(j.name, j.kind, j.parent, j.child) for j in arm.joints] == [
        ("turn", "revolute", "base", "column"),
        ("lift", "revolute", "column", "upper"),
        ("reach", "prismatic", "upper", "fore"),
        ("left", "revolute", "fore", "left_finger"),
        ("right", "revolute", "fore", "right_finger"),
    ]
    assert (arm.nq, arm.nv) == (4, 4)
    assert [b.mass for b in arm.bodies] == [3, 2, 1.5, 0.1, 0.1]
    assert arm.bodies[2].links == ("fore", "palm")


def test_forces_limits_and_couplings(arm: Mechanism) -> None:
    turn, lift, _, _, right = arm.joints
    assert (turn.damping, turn.friction) == (0.5, 0.1)
    assert (turn.limits.lower, turn.limits.upper) == (-math.inf, math.inf)  # continuous
    assert (turn.limits.velocity, turn.limits.effort) == (2, 50)
    assert (lift.limits.lower, lift.limits.upper) == (-1.5, 2.5)
    assert lift.axis == (1, 0, 0)  # URDF's default
    assert right.mimic is not None
    assert (right.mimic.joint, right.mimic.multiplier, right.mimic.offset) == ("left", -0.5, 0.1)


def test_every_link_is_a_frame(arm: Mechanism) -> None:
    assert set(arm.frames) == {"base", "column", "upper", "fore", "palm", "left_finger", "right_finger", "tool"}
    assert arm.frames["tool"].body == "left_finger"
    assert arm.frames["tool"].point == (0, 0, 0.06)
    palm = arm.frames["palm"]
    assert palm.body == "fore"
    np.testing.assert_allclose(palm.rotation[0], (math.cos(0.7), -math.sin(0.7), 0))


def test_lumping_keeps_mass_first_moment_and_inertia(arm: Mechanism) -> None:
    body, R = arm.bodies[2], np.asarray(arm.frames["palm"].rotation)
    palm = np.array([0, 0, 0.1]) + R @ [0, 0.01, 0.02]
    com = 0.5 * palm / 1.5
    np.testing.assert_allclose(body.com, com, atol=1e-15)
    about_fore = (
        np.diag([0.01, 0.01, 0.005])
        + R @ np.eye(3) @ R.T * 0.001
        + 0.5 * (palm @ palm * np.eye(3) - np.outer(palm, palm))
    )
    moved = about_fore - 1.5 * (com @ com * np.eye(3) - np.outer(com, com))
    np.testing.assert_allclose(body.inertia, moved, atol=1e-15)


def test_right_angles_are_exact_and_reported(arm: Mechanism) -> None:
    assert arm.joints[1].rotation == ((1, 0, 0), (0, 0, 1), (0, -1, 0))
    assert arm.bodies[0].inertia == ((0.04, 0, 0), (0, 0.03, 0), (0, 0, 0.02))  # turned by 90 degrees: x and y swap
    assert said(arm, '<origin> of joint "lift"') == ["rpy: -1.570796325 rad taken as -pi/2"]
    (rough,) = said(arm, '<origin> of joint "reach"')
    assert "1.57 rad is 8e-04 from pi/2 and is kept as typed" in rough
    assert arm.joints[2].rotation[0][0] == math.cos(1.57)


def test_right_angles_can_be_widened_or_switched_off() -> None:
    assert read(ARM, right_angles=1e-3).joints[2].rotation == ((0, 0, 1), (0, 1, 0), (-1, 0, 0))
    assert read(ARM, right_angles=0).joints[1].rotation[1][1] == math.cos(1.570796325)


def test_the_report_names_every_element(arm: Mechanism) -> None:
    """The report has a line for each element that another parser finds below the robot, a link or a joint."""
    lines = [f"{line.element} {line.outcome}" for line in arm.report.lines]
    root = ET.fromstring(TEXT.replace("sensor:", "sensor_"))
    for e in root:
        name = e.get("name") or e.get("reference")
        if e.tag in ("link", "joint"):
            assert any(f'{e.tag} "{name}"' in line for line in lines), name
            used = {"link": ("inertial",), "joint": ("parent", "child", "origin", "axis", "limit", "dynamics", "mimic")}
            if e.get("type") == "fixed":
                used["joint"] = ("parent", "child", "origin")
            for child in e:
                if child.tag not in used[e.tag]:
                    assert any(f"<{child.tag}>" in line and f'"{name}"' in line for line in lines), (name, child.tag)
        elif e.tag == "material":
            assert any("2 <material>" in line for line in lines)
        else:
            tag = e.tag.replace("sensor_", "sensor:")
            assert any((f'{tag} "{name}"' if name else f"<{tag}>") in line for line in lines), tag


def test_report_states_the_outcome_of_elements(arm: Mechanism) -> None:
    assert said(arm, '2 <visual>, <collision> of link "base"') == ["not used: shapes do not change the motion"]
    assert said(arm, 'sensor:camera "eye"') == ["not used: not an element of URDF"]
    assert said(arm, 'robot "arm"') == ['attribute version="1.0": not used']
    assert said(arm, 'link "tool"') == ["no <inertial>: massless"]
    assert said(arm, 'link "base"') == [
        "5 kg: not used, for it is part of the ground and does not move",
        "the ground",
    ]
    assert said(arm, '<axis> of joint "mount"') == ["not used: a fixed joint has none"]
    assert "lower and upper not used: a continuous joint has none" in said(arm, '<limit> of joint "turn"')
    assert [line.element for line in arm.report.warnings] == ['sensor:camera "eye"']


def test_links_welded_to_the_ground_do_not_move() -> None:
    """Links welded to the ground do not move, and the report does not list their mass.

    With a floating base they move.
    """
    weld = '<joint name="weld" type="fixed"><parent link="world"/><child link="base"/></joint></robot>'
    text = TEXT.replace("</robot>", '<link name="world"/>' + weld)
    assert said(read(text), 'link "base"') == ["5 kg: not used, for it is part of the ground and does not move"]
    assert "its 5 kg do not move and are not used" in said(read(text), 'joint "weld"')[-1]
    assert said(read(text, base="floating"), 'link "base"') == ["5 kg: kept"]


@pytest.mark.parametrize(
    "tag", ["robot", "link", "inertial", "mass", "inertia", "origin", "joint", "parent", "axis", "limit", "mimic"]
)
def test_unknown_attribute_is_reported(tag: str) -> None:
    m = read(TEXT.replace(f"<{tag} ", f'<{tag} odd="7" ', 1).replace(f"<{tag}>", f'<{tag} odd="7">', 1))
    assert [line.level for line in m.report.lines if 'attribute odd="7": not used' in line.outcome] == ["note"]


def test_misspelt_elements_are_warned_about() -> None:
    m = read(TEXT.replace("inertial>", "intertial>", 4))
    assert any("did you mean <inertial>?" in line.outcome for line in m.report.warnings)


def test_stray_text_is_reported() -> None:
    m = read(TEXT.replace('<link name="tool"/>', '<link name="tool">what is this</link>'))
    assert said(m, 'link "tool"')[1] == 'text "what is this" between the elements: not used'


def test_floating_base() -> None:
    m = read(ARM, base="floating")
    assert (m.nq, m.nv, m.ground) == (11, 10, "universe")
    assert (m.joints[0].name, m.joints[0].kind, m.joints[0].child) == ("root_joint", "floating", "base")
    assert m.bodies[0].mass == 5


def test_names_of_the_base_give_way() -> None:
    m = read(TEXT.replace('"base"', '"universe"').replace('"turn"', '"root_joint"'), base="floating")
    assert (m.ground, m.joints[0].name) == ("universe_", "root_joint_")


def test_gravity_is_the_callers() -> None:
    assert read(ARM, gravity=(0, 0, -1.62)).gravity == (0, 0, -1.62)


def test_text_instead_of_a_file(arm: Mechanism) -> None:
    m = read("\n  " + TEXT)
    assert m.report.source == "URDF text"
    assert m.fingerprint == arm.fingerprint


@pytest.mark.parametrize(("kind", "nq"), [("floating", 7), ("planar", 3), ("spherical", 4), ("ball", 4)])
def test_other_joint_types(kind: str, nq: int) -> None:
    m = read(TEXT.replace('name="lift" type="revolute"', f'name="lift" type="{kind}"'))
    assert m.nq == 3 + nq
    assert m.joints[1].kind == {"ball": "spherical"}.get(kind, kind)


def test_limits_that_cannot_be_meant() -> None:
    m = read(TEXT.replace('lower="-1.5" upper="2.5"', 'lower="1" upper="-1"'))
    assert m.joints[1].limits.upper == math.inf
    assert "lower 1 is above upper -1" in said(m, '<limit> of joint "lift"')[0]
    m = read(TEXT.replace('lower="-1.5" upper="2.5"', 'lower="0" upper="0"'))
    assert m.report.warnings[-1].outcome == "limits allow no motion: lower = upper = 0"
    m = read(TEXT.replace('lower="-1.5" upper="2.5"', ""))
    assert m.joints[1].limits.lower == -math.inf
    m = read(TEXT.replace('lower="-1.5" ', ""))
    assert m.joints[1].limits.lower == 0


def test_joint_on_a_nearly_vertical_axis_keeps_its_position() -> None:
    """A joint on a nearly vertical axis keeps its position to all digits.

    The internal ground frame is along gravity, which here is almost parallel to the axis.
    """
    tilt = 6.3e-6
    text = TEXT.replace('<origin xyz="0 0 0.3"/>', f'<origin xyz="0 0 0.3" rpy="{tilt} 0 0"/>')
    m = read(text, right_angles=0)
    pose = numbers(kinematics.pose(m.tree, [0.4, 0, 0, 0], "column"))
    c, s = math.cos(0.4), math.sin(0.4)
    ct, st = math.cos(tilt), math.sin(tilt)
    np.testing.assert_allclose(pose[:3, :3], [[c, -s, 0], [ct * s, ct * c, -st], [st * s, st * c, ct]], atol=1e-14)


def test_locked_joints_are_the_whole_arm_held_there(arm: Mechanism) -> None:
    """Locking joints gives the whole arm held there: M without their rows and columns, and the same gravity torques."""
    reduced = read(ARM, lock={"lift": 0.3, "reach": 0.2})
    assert [j.name for j in reduced.own_joints] == ["turn", "left"]
    whole, less = [0.5, 0.3, 0.2, -0.7], [0.5, -0.7]
    keep = np.ix_([0, 3], [0, 3])
    np.testing.assert_allclose(
        numbers(crba.mass_matrix(reduced.tree, less)), numbers(crba.mass_matrix(arm.tree, whole))[keep], atol=1e-14
    )
    v, a = [0.1, -0.2], [0.3, 0.4]
    full = rnea.rigid_forces(arm.tree, whole, [0.1, 0, 0, -0.2], [0.3, 0, 0, 0.4])
    np.testing.assert_allclose(rnea.rigid_forces(reduced.tree, less, v, a), [full[0], full[3]], atol=1e-13)
    assert "locked at 0.3, as asked" in said(reduced, 'joint "lift"')


def test_mimics_are_locked_with_their_master() -> None:
    m = read(ARM, lock={"left": 0.4})
    assert [j.name for j in m.joints] == ["turn", "lift", "reach"]
    assert 'locked at -0.1: it mimics "left"' in said(m, 'joint "right"')
    R = np.asarray(m.frames["right_finger"].rotation)
    assert R[1, 2] != 0


def test_locking_by_name_holds_the_zero_configuration(arm: Mechanism) -> None:
    assert [j.name for j in read(ARM, lock=["turn", "right"]).joints] == ["lift", "reach", "left"]
    assert read(ARM, base="floating", lock="root_joint").nq == arm.nq
    warned = read(ARM, lock={"lift": 3}).report.warnings
    assert any("outside its limits" in line.outcome for line in warned)


@pytest.mark.parametrize(
    ("lock", "expected"),
    [
        (["lfit"], 'There is no joint "lfit". Did you mean "lift"?'),
        ({"lift": math.nan}, "expected a finite number"),
        ({"lift": "up"}, "expected a finite number"),
        ({"lift": 10**400}, "expected a finite number"),
        ({"root_joint": 1.0}, "can only be held at its zero configuration"),
    ],
)
def test_locks_that_make_no_sense(lock: Any, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        read(ARM, base="floating", lock=lock)
