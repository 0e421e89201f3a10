"""A quadruped of example-robot-data on its four feet: it stands, and MuJoCo's with the same feet stands as it does."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.actuators import PD

FOLDERS = [Path(p) / "cmeel.prefix/share/example-robot-data/robots" for p in sys.path]
ROBOTS = next((folder for folder in FOLDERS if folder.is_dir()), None)
pytestmark = pytest.mark.skipif(ROBOTS is None, reason="example-robot-data is not installed")
POSE = {"hip": 0.0, "thigh": 0.8, "calf": -1.6}
KP, KD = 80.0, 2.0


def standing() -> tuple[bc.System, Any, dict[str, float], Path]:
    assert ROBOTS is not None
    file = ROBOTS / "a1_description/urdf/a1.urdf"
    found = bc.collisions(file, bc.read(file, base="floating"))
    m = found.mechanism
    stand = {n: POSE[n.split("_")[1]] for n in m.columns[0] if n.endswith("_joint")}
    feet = [name for name in m.frames if name.endswith("_foot")]
    q0 = m.neutral()
    for name, x in stand.items():
        q0[m.columns[0].index(name)] = x
    q0[2] -= min(float(m.pose(q0, name)[2, 3]) for name in feet) - 0.02
    elements = found.contacts(only=feet, stiffness=2e4, damping=1.0, friction=0.8)
    assert len(elements) == 4
    return bc.system(m, [PD(n, KP, KD) for n in stand], lambda t, q, v, x, u: stand, elements=elements), q0, stand, file


def test_it_stands() -> None:
    """Its feet carry its weight, each pair as much as balance asks for, and it sinks as MuJoCo's does."""
    plant, q0, stand, file = standing()
    m = plant.mechanism
    run = bc.simulate(plant, 2.0, q0, step=5e-4, every=0.01)
    weight = sum(b.mass for b in m.bodies) * 9.81
    carried = sum(run[f"{e.name}.fz"][-1] for e in plant.elements)
    assert abs(carried / weight - 1) < 5e-3
    trunk = m.bodies[0].name
    assert 0.26 < run[f"{trunk}.z"][-1] < 0.3
    assert run[f"{trunk}.speed"][-1] < 1e-2
    assert abs(float(theirs(file, stand, float(q0[2]))) - run[f"{trunk}.z"][-1]) < 3e-3


def theirs(file: Path, stand: dict[str, float], height: float) -> Any:
    """Where MuJoCo's trunk is after the same two seconds."""
    mujoco = pytest.importorskip("mujoco")
    text = re.sub(r"<visual>.*?</visual>", "", file.read_text("utf-8"), flags=re.DOTALL)
    text = re.sub(
        r"<collision>.*?</collision>", lambda c: c[0] if "sphere" in c[0] else "", text, flags=re.DOTALL
    )  # fmt: skip
    options = '<mujoco><compiler discardvisual="true" fusestatic="true" balanceinertia="true"/></mujoco>'
    spec = mujoco.MjSpec.from_string(re.sub(r"(<robot[^>]*>)", rf"\1{options}", text, count=1))
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[10, 10, 0.1])
    next(b for b in spec.bodies if b.name != "world").add_freejoint()
    spec.option.timestep = 5e-4
    model = spec.compile()
    data = mujoco.MjData(model)
    joints = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name) for name in stand]
    q, v, x = model.jnt_qposadr[joints], model.jnt_dofadr[joints], np.array(list(stand.values()))
    data.qpos[q] = x
    data.qpos[2] = height
    for _ in range(4000):
        data.qfrc_applied[v] = KP * (x - data.qpos[q]) - KD * data.qvel[v]
        mujoco.mj_step(model, data)
    assert data.ncon == 4
    return data.qpos[2]
