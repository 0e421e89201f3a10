"""A quadruped of example-robot-data stands and trots on its four feet, as it does in MuJoCo with the same feet."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.actuators import PD
from bellcrank.control import Leg, Trot
from bellcrank.forces import feet
from bellcrank.sim.program import step_check
from bellcrank.sim.system.observed_columns import nominals
from prose import ROOT, blocks

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


def test_quadruped_stands() -> None:
    """Its feet carry its weight, each pair with its share from the balance, and it sinks as in MuJoCo."""
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
    """Position of MuJoCo's trunk after the same two seconds."""
    mujoco, model, data = peer(file, 5e-4)
    joints = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name) for name in stand]
    q, v, x = model.jnt_qposadr[joints], model.jnt_dofadr[joints], np.array(list(stand.values()))
    data.qpos[q] = x
    data.qpos[2] = height
    for _ in range(4000):
        data.qfrc_applied[v] = KP * (x - data.qpos[q]) - KD * data.qvel[v]
        mujoco.mj_step(model, data)
    assert data.ncon == 4
    return data.qpos[2]


def peer(file: Path, step: float) -> tuple[Any, Any, Any]:
    """MuJoCo, its model of the robot with contacts only between feet and a floor, and a state."""
    mujoco = pytest.importorskip("mujoco")
    text = re.sub(r"<visual>.*?</visual>", "", file.read_text("utf-8"), flags=re.DOTALL)
    text = re.sub(
        r"<collision>.*?</collision>", lambda c: c[0] if "sphere" in c[0] else "", text, flags=re.DOTALL
    )  # fmt: skip
    options = '<mujoco><compiler discardvisual="true" fusestatic="true" balanceinertia="true"/></mujoco>'
    spec = mujoco.MjSpec.from_string(re.sub(r"(<robot[^>]*>)", rf"\1{options}", text, count=1))
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[10, 10, 0.1])
    next(b for b in spec.bodies if b.name != "world").add_freejoint()
    spec.option.timestep = step
    model = spec.compile()
    return mujoco, model, mujoco.MjData(model)


# File, feet, stance by joint name, sign of the stance of hind legs, servo gains.
STANCES: dict[str, tuple[str, str, dict[str, float], float, float, float]] = {
    "a1": ("a1_description/urdf/a1.urdf", "_foot", {"hip": 0.0, "thigh": 0.8, "calf": -1.6}, 1.0, 100.0, 3.0),
    "go2": ("go2_description/urdf/go2.urdf", "_foot", {"hip": 0.0, "thigh": 0.8, "calf": -1.6}, 1.0, 80.0, 2.0),
    "anymal": (
        "anymal_b_simple_description/robots/anymal.urdf", "FOOT", {"HAA": 0.0, "HFE": 0.4, "KFE": -0.8},
        -1.0, 200.0, 5.0,
    ),
    "solo": ("solo_description/robots/solo12.urdf", "FOOT", {"HAA": 0.0, "HFE": 0.7, "KFE": -1.4}, -1.0, 10.0, 0.2),
}  # fmt: skip


def let_down(name: str, **contact: float) -> tuple[bc.System, Any]:
    """A quadruped with default contacts at its feet, 5 mm above the floor."""
    assert ROBOTS is not None
    file, foot, stance, hind, kp, kd = STANCES[name]
    m = bc.read(ROBOTS / file, base="floating")
    ends, ground = [f for f in m.frames if f.endswith(foot)], m.ground
    wanted = {}
    for joint in m.columns[0]:
        for part, angle in stance.items():
            if part in joint:
                wanted[joint] = angle * (hind if "H" in joint[:2] else 1.0)
    q0 = m.neutral()
    for joint, angle in wanted.items():
        q0[m.columns[0].index(joint)] = angle
    q0[2] -= min(float(m.pose(q0, f)[2, 3]) for f in ends) - 0.025
    servos = [PD(joint, kp, kd) for joint in wanted]
    return bc.system(m, servos, lambda t, q, v, x, u: wanted, elements=feet(ends, 0.02, ground, **contact)), q0


@pytest.mark.filterwarnings("ignore:.*(bounce off less|is not resolved):RuntimeWarning")
@pytest.mark.parametrize("law", ["Coulomb", "bristles"])
@pytest.mark.parametrize("integrator", ["euler", "rk4"])
@pytest.mark.parametrize("name", STANCES)
def test_quadruped_comes_to_rest_at_the_default_step(name: str, integrator: str, law: str) -> None:
    """Within 1 mm/s and with its weight on its feet: at the default step, or at the step that the warning proposes."""
    plant, q0 = let_down(name, **({"bristles": 5e3} if law == "bristles" else {}))
    # At 1 ms, euler leaves a few per cent of the initial impact unresolved.
    solver = bc.Solver(integrator=integrator, resolve=0.05 if integrator == "euler" else 0.01)
    run = bc.simulate(plant, 4.0, q0, solver=solver, every=0.01)
    if run.stops[0].reason == "not resolved":
        (step,) = re.findall(r"Take a step of (\S+) s or less", run.stops[0].message)
        run = bc.simulate(plant, 4.0, q0, solver=solver, every=0.01, step=float(step))
    weight = 9.81 * sum(float(b.mass) for b in plant.mechanism.bodies)
    late = run.t > 3.0
    carried = sum(run[f"{e.name}.fz"][late] for e in plant.elements)
    assert run.stops[0].reason == "end"
    assert np.abs(carried / weight - 1.0).max() < 5e-3
    place = run.q[late, :3]
    assert np.linalg.norm(place[-1] - place[0]) < 1e-3 * (run.t[late][-1] - run.t[late][0])


@pytest.mark.filterwarnings("ignore:.*bounce off less:RuntimeWarning")
def test_a_converged_run_is_resolved_whenever_it_lands() -> None:
    """Half the step changes every coordinate by less than half a per cent, so the run ends as resolved.

    This holds for any step at the landing.
    """
    plant, q0 = let_down("a1")
    start = np.tile(q0, (24, 1))
    start[:, 2] += np.linspace(-3e-3, 4e-3, 24)
    runs = [bc.simulate(plant, 1.0, start, integrator="euler", step=h, every=1e-3) for h in (1e-4, 5e-5)]
    long, short = (np.concatenate([run.q, run.v], axis=-1) for run in runs)
    way = np.abs(np.diff(short, axis=1)).sum(axis=1) + step_check.STILL_SHARE * nominals(plant)
    assert (np.abs(long - short).max(axis=1) / way).max() < 5e-3
    assert {stop.reason for run in runs for stop in run.stops} == {"end"}


@pytest.fixture(scope="module")
def trotting(tmp_path_factory: Any) -> dict[str, Any]:
    """The robot of the documentation page."""
    assert ROBOTS is not None
    scope: dict[str, Any] = {"file": ROBOTS / "a1_description/urdf/a1.urdf"}
    (code,) = blocks(ROOT / "docs/machines/walker.md", "py")
    exec(code.replace("a1.html", str(tmp_path_factory.mktemp("page") / "a1.html")), scope)
    return scope


def test_quadruped_trots(trotting: dict[str, Any]) -> None:
    """It moves forward, straight and upright; diagonal pairs of feet take turns to carry the weight and are lifted."""
    run, gait, plant = trotting["run"], trotting["gait"], trotting["plant"]
    late = run.t >= 2.0
    x, y, z = (run[f"base.{c}"][late] for c in "xyz")
    assert 0.25 < (x[-1] - x[0]) / 2.0 < 0.5
    assert np.abs(y).max() < 0.1
    assert z.min() > 0.25
    assert np.abs(run.q[late, 3:6]).max() < 0.2
    push = {e.name.partition("_")[0]: run[f"{e.name}.fz"][late] for e in plant.elements}
    weight = 9.81 * sum(b.mass for b in plant.mechanism.bodies)
    assert abs(sum(f.mean() for f in push.values()) / weight - 1) < 0.03  # over whole strides
    down = {name: f > 0.0 for name, f in push.items()}
    for one, other in (("FR", "RL"), ("FL", "RR")):
        assert (down[one] == down[other]).mean() > 0.7
    assert (down["FR"] & down["FL"]).mean() < 0.2
    for name in gait.legs:
        foot = run[f"{name}_foot.collision0.z"][late]
        assert foot.max() > 0.02 + 0.5 * gait.lift
        assert foot.min() > 0.01  # its radius, and its penetration into the floor at 200 N


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_default_step_trots_as_in_short_ones(trotting: dict[str, Any], integrator: str) -> None:
    plant, gait = trotting["plant"], trotting["gait"]
    start = gait.stance | {"root_joint.z": 0.29}
    short, long = (
        bc.simulate(plant, 3.0, start, step=h, every=1.0, integrator=integrator)["base.x"][-1] for h in (1e-4, 1e-3)
    )
    assert abs(long / short - 1.0) < 0.03


def test_mujocos_trots_by_the_same_targets(trotting: dict[str, Any]) -> None:
    """MuJoCo with its own contact model moves as far, as straight and as high."""
    run, gait = trotting["run"], trotting["gait"]
    step = 1e-3
    mujoco, model, data = peer(trotting["file"], step)
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC  # like Coulomb friction
    joints = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name) for name in gait.joints]
    q, v = model.jnt_qposadr[joints], model.jnt_dofadr[joints]
    data.qpos[q], data.qpos[2] = list(gait.stance.values()), 0.29
    targets = np.stack([run[f"{joint}.held"] for joint in gait.joints], axis=-1)
    feet = []
    for k in range(4000):
        wanted = targets[min(k // 5 + 1, len(targets) - 1)]
        data.qfrc_applied[v] = np.clip(100.0 * (wanted - data.qpos[q]) - 3.0 * data.qvel[v], -33.5, 33.5)
        mujoco.mj_step(model, data)
        feet.append(data.ncon)
    ours = sum((run[f"{e.name}.fz"][run.t >= 2.0] > 0.0).mean() for e in trotting["plant"].elements)
    assert abs(np.mean(feet[2000:]) - ours) < 0.25
    assert abs(data.qpos[0] / run["base.x"][-1] - 1.0) < 0.2
    assert abs(data.qpos[1]) < 0.25  # its heading is not controlled
    assert data.qpos[2] > 0.25


def test_many_trot_in_lanes(trotting: dict[str, Any]) -> None:
    """Each lane equals the single run, from its own height."""
    plant, run = trotting["plant"], trotting["run"]
    q0 = np.tile(run.q[0], (8, 1))
    q0[:, 2] += np.linspace(0.0, 0.01, 8)
    many = bc.simulate(plant, 0.8, q0, step=5e-4, every=0.1)
    alone = bc.simulate(plant, 0.8, q0[5], step=5e-4, every=0.1)
    np.testing.assert_allclose(many.q[5], alone.q, atol=1e-9)
    assert np.ptp(many.q[:, -1, 2]) > 1e-5


def test_notebooks_draw_a_quadruped_without_meshes(trotting: dict[str, Any]) -> None:
    """A static picture has bars and boxes in place of the file's meshes."""
    assert trotting["robot"]._repr_html_().count("<polygon") > 10


def test_a_gait_that_cannot_be() -> None:
    legs = {"one": Leg("a", "b", "c", 0.1, True)}
    with pytest.raises(bc.InputError, match=r"below 0\.392 m"):
        Trot(legs, "base", 0.2, 0.4)
    with pytest.raises(bc.InputError, match="too slow"):
        Trot(legs, "base", 0.2, 0.3, every=0.3)
