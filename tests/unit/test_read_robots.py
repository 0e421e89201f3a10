"""The 77 robot files of the PyPI package example-robot-data: each loads, or is refused with a clear reason."""

from __future__ import annotations

import math
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bellcrank.dynamics import crba, kinematics, rnea
from bellcrank.errors import BellcrankError
from bellcrank.formats import read
from bellcrank.model.joints import KINDS

FOLDERS = [Path(p) / "cmeel.prefix/share/example-robot-data/robots" for p in sys.path]
ROBOTS = next((folder for folder in FOLDERS if folder.is_dir()), None)
pytestmark = pytest.mark.skipif(ROBOTS is None, reason="example-robot-data is not installed")

# Messages of check="error" for some of them; by default they load with a warning.
QUESTIONABLE = {
    "alex_psyonic_hands": "triangle inequality",
    "allegro_left_hand": "triangle inequality",
    "allegro_right_hand": "triangle inequality",
    "anymal_c_simple_description/urdf/anymal": "triangle inequality",
    "hyq_no_sensors": "triangle inequality",
    "pr2": "triangle inequality",
    "romeo": "mass is 0 kg; expected a positive mass",
    "romeo_laas_small": "triangle inequality",
    "romeo_small": "triangle inequality",
    "tiago": "expected none below zero",
    "tiago_dual": "expected none below zero",
    "tiago_no_hand": "expected none below zero",
}
# A dummy root link with all six numbers 1e-6: it matters only where the root may move.
FLOATING = dict.fromkeys(
    ("anymal-kinova", "anymal_b_simple_description/robots/anymal", "b1", "b1-z1", "go1"), "triangle"
)
# Pinocchio cannot read these either.
HOPELESS = {
    "falcon": 'line 180: joint "top_propeller_joint": There is no link "Z_propeller".',
    "ur3": "has no <link>",
}


def files() -> list[Path]:
    return sorted(ROBOTS.rglob("*.urdf")) if ROBOTS is not None else []


def listed(path: Path, table: dict[str, str]) -> str | None:
    return next((why for name, why in table.items() if str(path.with_suffix("")).endswith("/" + name)), None)


def outcome(path: Path, **options: Any) -> str:
    try:
        read(path, **options)
    except BellcrankError as error:
        return str(error) if str(error).startswith(str(path)) else f"the file is not named in: {error}"
    return ""


def test_number_of_robot_files_is_as_expected() -> None:
    assert len(files()) == 77


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_each_file_loads_or_raises(base: str) -> None:
    for path in files():
        hopeless = listed(path, HOPELESS)
        found = outcome(path, base=base)
        assert (hopeless or "") in found, (path, found)
        assert bool(found) == (hopeless is not None), (path, found)
        why = hopeless or listed(path, QUESTIONABLE | (FLOATING if base == "floating" else {}))
        strict = outcome(path, base=base, check="error")
        assert (why or "") in strict, (path, strict)
        assert bool(strict) == (why is not None), (path, strict)
        if why is not None and hopeless is None:
            warnings = [f"{line.element} {line.outcome}" for line in read(path, base=base).report.warnings]
            assert sum("inertia" in w or "triangle" in w for w in warnings) <= 2, warnings  # one for all of them
            assert any(
                "triangle inequality" in w or "physically impossible" in w or "massless" in w for w in warnings
            ), (path, warnings)


def test_the_report_of_each_file_names_every_element() -> None:
    """The report of each file has a line for every element that a plain XML parser finds."""
    for path in files():
        if listed(path, HOPELESS) is not None:
            continue
        lines = [line.element for line in read(path).report.lines]
        text = path.read_text(errors="replace")
        try:
            root = ET.fromstring(text)
        except ET.ParseError:  # an undeclared namespace, which bellcrank's reader accepts
            root = ET.fromstring(text.replace(":", "_"))
        for e in root:
            name = e.get("name") or e.get("reference")
            if e.tag in ("link", "joint"):
                assert any(f'{e.tag} "{name}"' in line for line in lines), (path, name)
                for tag in {child.tag for child in e} & {
                    "visual",
                    "collision",
                    "gazebo",
                    "safety_controller",
                    "contact",
                }:
                    assert any(f"<{tag}>" in line and f'"{name}"' in line for line in lines), (path, name, tag)
            elif e.tag in ("transmission", "gazebo") and name:
                assert f'{e.tag} "{name}"' in lines, (path, name)


# Several robots against Pinocchio: arms, hands (couplings), legs, bases that are almost but not quite level.
PEERS = [
    "ur_description/urdf/ur5_robot.urdf",
    "panda_description/urdf/panda.urdf",
    "so_arm_description/urdf/so100.urdf",
    "bravo7_description/urdf/bravo7_gripper.urdf",
    "allegro_hand_description/urdf/allegro_right_hand.urdf",
    "solo_description/robots/solo12.urdf",
    "talos_data/robots/talos_reduced.urdf",
    "kinova_description/robots/kinova.urdf",
]


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("file", PEERS)
def test_same_mechanics_as_pinocchio(file: str, base: str) -> None:
    pin = pytest.importorskip("pinocchio")
    assert ROBOTS is not None
    path = str(ROBOTS / file)
    m = read(path, base=base, right_angles=0)
    free = [pin.JointModelFreeFlyer()] if base == "floating" else []
    model = pin.buildModelFromUrdf(path, *free, mimic=True)
    data = model.createData()
    q, v, a = m.random(1)
    theirs_q, order, at = pin.neutral(model), [], 0
    for j in m.own_joints:
        joint, nq = model.joints[model.getJointId(j.name)], KINDS[j.kind].nq
        continuous = joint.nq == 2 and nq == 1  # they are stored as cosine and sine
        theirs_q[joint.idx_q : joint.idx_q + joint.nq] = (
            [math.cos(q[at]), math.sin(q[at])] if continuous else q[at : at + nq]
        )
        order += range(joint.idx_v, joint.idx_v + joint.nv)
        at += nq
    theirs_v, theirs_a = np.zeros(model.nv), np.zeros(model.nv)
    theirs_v[order], theirs_a[order] = v, a

    M = np.triu(pin.crba(model, data, theirs_q))
    M = (M + np.triu(M, 1).T)[np.ix_(order, order)]
    ours = np.array(crba.mass_matrix(m.tree, q.tolist()), dtype=float)
    np.testing.assert_allclose(ours, M, atol=1e-11 * np.abs(M).max(), rtol=0)
    tau = pin.rnea(model, data, theirs_q, theirs_v, theirs_a)[order]
    found = rnea.rigid_forces(m.tree, q.tolist(), v.tolist(), a.tolist())
    np.testing.assert_allclose(np.array(found, dtype=float), tau, atol=1e-11 * np.abs(tau).max(), rtol=0)
    pin.framesForwardKinematics(model, data, theirs_q)
    for frame in list(m.frames)[1::7]:
        X = np.array([[float(x) for x in row] for row in kinematics.pose(m.tree, q.tolist(), frame)])
        theirs = data.oMf[model.getFrameId(frame, pin.FrameType.BODY)].homogeneous
        np.testing.assert_allclose(X, theirs, atol=1e-12)
