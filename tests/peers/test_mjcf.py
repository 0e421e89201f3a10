"""MuJoCo's models, read through MuJoCo and compared with it: poses, mass matrix, joint forces, and equalities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics import crba, kinematics, rnea
from bellcrank.errors import InputError, ReadError
from bellcrank.model import Loop, Mechanism

mujoco = pytest.importorskip("mujoco")
from mujoco_map import FilePeer, smooth, take_out  # noqa: E402

Array = np.ndarray[Any, Any]

WORLD = """
  <body name="a" pos="0.1 0.2 1" euler="10 20 30">
    <joint name="j1" type="hinge" axis="0 1 0" pos="0 0 .1" ref="10" range="-90 90" limited="true" damping="0.1"/>
    <joint name="j2" type="slide" axis="1 0 0" armature="0.2" stiffness="3" springref="0.1"/>
    <geom type="box" size=".1 .2 .3" pos="0.1 0 0" mass="2"/>
    <site name="s1" pos="1 0 0" euler="0 90 0"/>
    <body name="b" pos="1 0 0" euler="0 0 45">
      <joint name="j3" type="hinge" axis="0 0.6 0.8" pos="0.1 0.1 0"/>
      <geom type="box" size=".1 .1 .3" pos="0 0.2 0.1" mass="1"/>
      <body name="tip" pos="0.3 0 0"><geom size="0.1" mass="0.5"/></body>
    </body>
  </body>
  <body name="c" pos="0 1 0">
    <joint name="j4" type="hinge" axis="1 0 0"/><joint name="j5" type="hinge" axis="0 1 0" pos="0 0 0.2"/>
    <geom size=".1" mass="1" pos="0 0 0.4"/><site name="s2" pos="0 0 0.5"/>
  </body>
"""


def text(equality: str = "") -> str:
    return f"""<mujoco model="thing"><option gravity="0 1 -9"/><worldbody>{WORLD}</worldbody>
      <equality>{equality}</equality></mujoco>"""


def peer(xml: str, q: Array, v: Array) -> tuple[Any, Any]:
    m = mujoco.MjModel.from_xml_string(xml)
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:] = m.qpos0 + q, v
    mujoco.mj_forward(m, d)
    return m, d


def floats(rows: Any) -> Array:
    return np.array([[float(x) for x in row] for row in rows])


def test_limits_are_vectors() -> None:
    hand = """<mujoco><worldbody><body><freejoint name="free"/><geom size=".1" mass="1"/>
      <body><joint name="a" range="-90 45" limited="true" actuatorfrcrange="-7 7"/><geom size=".1" mass="1"/></body>
      <body><joint name="b" type="slide" actuatorfrcrange="-2 3"/><geom size=".1" mass="1"/></body>
      <body><joint name="c" type="ball"/><geom size=".1" mass="1"/></body></body></worldbody></mujoco>"""
    m = bc.read(hand)
    inf = np.inf
    assert m.columns[1][6:8] == ("a", "b")
    np.testing.assert_allclose(m.limits.lower, [*[-inf] * 7, -np.pi / 2, -inf, *[-inf] * 4])
    np.testing.assert_allclose(m.limits.upper, [*[inf] * 7, np.pi / 4, inf, *[inf] * 4])
    assert m.limits.effort.tolist() == [*[inf] * 6, 7.0, 3.0, *[inf] * 3]
    assert np.isinf(m.limits.velocity).all()
    assert any("actuatorfrcrange -2 3: its effort is 3 either way" in line.outcome for line in m.report.lines)


def test_mechanism_equals_that_of_mujoco() -> None:
    xml = text()
    ours = bc.read(xml)
    assert (ours.name, ours.gravity) == ("thing", (0.0, 1.0, -9.0))
    assert [j.name for j in ours.own_joints] == ["j1", "j2", "j3", "j4", "j5"]
    rng = np.random.default_rng(1)
    for _ in range(3):
        q, v = rng.uniform(-1, 1, (2, 5))
        m, d = peer(xml, q, v)
        M = np.zeros((5, 5))
        mujoco.mj_fullM(m, d, M) if mujoco.__version__ >= "4" else mujoco.mj_fullM(m, M, d.qM)
        np.testing.assert_allclose(floats(crba.mass_matrix(ours.tree, q.tolist())), M, atol=1e-12)
        bias = [float(x) for x in rnea.rigid_forces(ours.tree, q.tolist(), v.tolist(), [0.0] * 5)]
        np.testing.assert_allclose(bias, d.qfrc_bias, atol=1e-11)
        passive = [float(x) for x in kinematics.passive_torque(ours.tree, q.tolist(), v.tolist())]
        np.testing.assert_allclose(passive, d.qfrc_passive, atol=1e-12)
        for name in ("a", "tip"):
            X = floats(kinematics.pose(ours.tree, q.tolist(), name))
            np.testing.assert_allclose(X[:3, :3], d.body(name).xmat.reshape(3, 3), atol=1e-12)


def test_limits_are_from_the_zero_of_the_file() -> None:
    j = bc.read(text()).joints[0]
    assert (j.limits.lower, j.limits.upper) == pytest.approx((np.deg2rad(-100), np.deg2rad(80)))


CLOSED = """<connect name="con" body1="a" body2="c" anchor="0.3 0.1 0.2"/>
  <weld name="wel" body1="tip" body2="c" anchor="0.1 0.2 0.3"/>
  <weld name="sites" site1="s1" site2="s2"/><connect name="points" site1="s1" site2="s2"/>
  <weld name="point" body1="b" body2="c" torquescale="0"/>"""


def test_equalities_are_loops_with_the_same_gap() -> None:
    """MuJoCo's own violation of each equality equals ours at a random configuration."""
    xml = text(CLOSED)
    ours = bc.read(xml)
    assert [(x.name, x.kind) for x in ours.loops] == [
        ("con", "spherical"),
        ("wel", "fixed"),
        ("sites", "fixed"),
        ("points", "spherical"),
        ("point", "spherical"),
    ]
    q = np.random.default_rng(2).uniform(-1, 1, 5)
    _, d = peer(xml, q, np.zeros(5))
    gaps = {i: d.efc_pos[np.array(d.efc_id) == i] for i in range(5)}
    for i, loop in enumerate(ours.loops):
        a, b = (floats(kinematics.pose(ours.tree, q.tolist(), end)) for end in (loop.a, loop.b))
        np.testing.assert_allclose(a[:3, 3] - b[:3, 3], gaps[i][:3], atol=1e-12)
        if loop.kind == "fixed":  # MuJoCo uses the sine of half the angle
            turn = b[:3, :3].T @ a[:3, :3]
            np.testing.assert_allclose(np.sqrt((3 - np.trace(turn)) / 4), np.linalg.norm(gaps[i][3:]), atol=1e-12)


def test_couplings() -> None:
    line = '<joint name="x" joint1="{}" joint2="{}" polycoef="0.1 2 0 0 0"/>'
    assert bc.read(text(line.format("j1", "j3"))).loops == (Loop("x", "gear", "", "", 2.0, 0.1, ("j3", "j1")),)
    assert bc.read(text(line.format("j2", "j3"))).loops == (Loop("x", "rack", "", "", 2.0, 0.1, ("j3", "j2")),)
    assert bc.read(text(line.format("j3", "j2"))).loops == (Loop("x", "rack", "", "", 0.5, -0.05, ("j3", "j2")),)
    with pytest.raises(ReadError, match="polynomial"):
        bc.read(text('<joint name="x" joint1="j1" joint2="j3" polycoef="0 1 1 0 0"/>'))
    held = bc.read(text('<joint name="x" joint1="j3" polycoef="0.2 0 0 0 0"/>'))
    assert "j3" not in [j.name for j in held.joints]
    off = bc.read(text('<joint name="x" joint1="j1" joint2="j3" active="false"/>'))
    assert off.loops == ()
    assert any("not active" in line.outcome for line in off.report.lines)


def test_free_bodies_and_balls() -> None:
    xml = """<mujoco><worldbody><body name="f" pos="1 2 3" euler="0 0 90">
      <freejoint name="root"/><geom size="1" mass="1"/>
      <body name="g" pos="1 0 0"><joint name="ball" type="ball"/><geom size="1" mass="1"/></body>
      </body></worldbody></mujoco>"""
    m: Mechanism = bc.read(xml)
    assert [(j.name, j.kind) for j in m.joints] == [("root", "floating"), ("ball", "spherical")]
    X = floats(kinematics.pose(m.tree, m.neutral().tolist(), "g"))
    np.testing.assert_allclose(X[:3, 3], [1, 3, 3], atol=1e-12)


def test_bad_models() -> None:
    with pytest.raises(ReadError, match="MuJoCo cannot compile it"):
        bc.read('<mujoco><worldbody><body><joint type="twist"/></body></worldbody></mujoco>')
    with pytest.raises(InputError, match="defines its free bodies itself"):
        bc.read(text(), base="floating")


TREE = """<body name="a" {body}><freejoint name="free"/><geom size="0.1" mass="1" pos="0.1 0.2 0"/>
  <body name="b" pos="0 0 0.5" {body}><joint name="hinge" axis="0 1 0" damping="0.3" stiffness="2" springref="20"
    frictionloss="0.4" range="-90 90"/><geom type="box" size="0.1 0.2 0.3" mass="2"/>
    <body name="c" pos="0.4 0 0" {body}><joint name="slide" type="slide" axis="1 0 0" armature="0.2" damping="0.5"/>
      <geom type="box" size="0.3 0.1 0.2" mass="0.7" pos="0 0.1 0"/></body></body></body>"""
MODELS = {
    "nothing": "",
    "gravity": '<flag gravity="disable"/>',
    "spring": '<flag spring="disable"/>',
    "damper": '<flag damper="disable"/>',
    "spring and damper": '<flag spring="disable" damper="disable"/>',
    "constraint": '<flag constraint="disable"/>',
    "frictionloss": '<flag frictionloss="disable"/>',
}


@pytest.mark.parametrize("body", ["", 'gravcomp="1"', 'gravcomp="0.3"'])
@pytest.mark.parametrize("flags", MODELS)
def test_flags_and_gravity_compensation(flags: str, body: str) -> None:
    xml = f"<mujoco><option>{MODELS[flags]}</option><worldbody>{TREE.format(body=body)}</worldbody></mujoco>"
    m = bc.read(xml)
    assert_equal(m, xml)
    dry = m.joints[1].friction
    assert dry == (0.0 if flags in ("constraint", "frictionloss") else 0.4)
    assert not [line for line in m.report.warnings if "gravcomp" in line.element + line.outcome]


def assert_equal(m: Mechanism, xml: str) -> None:
    """Check that smooth accelerations equal MuJoCo's."""
    model = mujoco.MjModel.from_xml_string(xml)
    assert take_out(model, m.report) == []
    m = smooth(m)
    q, v, tau = m.random(4)
    expected = FilePeer(model, m, q, v).accelerations(tau)
    np.testing.assert_allclose(m.forward_dynamics(q, v, tau), expected, rtol=1e-9, atol=1e-9)


def test_gravity_of_the_call_goes_before_the_flag_and_is_compensated() -> None:
    text = '<mujoco><option><flag gravity="disable"/></option><worldbody>{}</worldbody></mujoco>'
    assert bc.read(text.format(TREE.format(body=""))).gravity == (0.0, 0.0, 0.0)
    assert bc.read(text.format(TREE.format(body="")), gravity=(0, 0, -2)).gravity == (0.0, 0.0, -2.0)
    half = bc.read(text.format(TREE.format(body='gravcomp="0.5"')), gravity=(0, 0, -2))
    assert half.gravity == (0.0, 0.0, -1.0)


def test_armature_of_a_free_joint_is_an_inertia() -> None:
    xml = """<mujoco><worldbody><body euler="10 20 30"><joint type="free" name="free" armature="0.7" damping="0.2"/>
      <geom type="box" size="0.1 0.2 0.3" mass="1" pos="0.1 0.2 0.3"/><body pos="0 0 0.4">
      <joint name="ball" type="ball" armature="0.3" damping="0.1"/><geom type="box" size="0.1 0.3 0.1" mass="1"/></body>
      </body></worldbody></mujoco>"""
    assert_equal(bc.read(xml), xml)


def test_passive_effects_of_actuators_are_read() -> None:
    driven = """<actuator><motor joint="hinge" gear="3" armature="0.2" damping="0.5"/>
      <position joint="slide" gear="2" kp="0" armature="0.1"/><motor jointinparent="slide" gear="3" armature="0.25"/>
      </actuator>"""
    xml = f"<mujoco><worldbody>{TREE.format(body='')}</worldbody>{driven}</mujoco>"
    m = bc.read(xml)
    assert_equal(m, xml)
    assert m.joints[1].armature == pytest.approx(1.8)
    assert m.joints[1].damping == pytest.approx(0.3 + 4.5)
    assert m.joints[2].armature == pytest.approx(0.2 + 0.4 + 2.25)


def test_passive_effects_on_ball_and_free_joints_are_read() -> None:
    more = '<body pos="0 1 0"><joint name="ball" type="ball"/><geom type="box" size=".1 .2 .3" mass="1"/></body>'
    driven = """<actuator><motor joint="ball" gear="2 3 4" armature="0.2" damping="0.5"/>
      <motor joint="free" gear="3 0 0" armature="0.1" damping="0.2"/></actuator>"""
    xml = f"<mujoco><worldbody>{TREE.format(body='')}{more}</worldbody>{driven}</mujoco>"
    m = bc.read(xml)
    assert m.joints[-1].armature == pytest.approx(0.8)
    assert_equal(m, xml)


def test_passive_effects_on_tendons_warn() -> None:
    driven = """<tendon><fixed name="t"><joint joint="hinge" coef="1"/><joint joint="slide" coef="2"/></fixed></tendon>
      <actuator><motor name="m2" tendon="t" armature="0.3"/><motor name="m3" tendon="t" damping="0.3"/></actuator>"""
    m = bc.read(f"<mujoco><worldbody>{TREE.format(body='')}</worldbody>{driven}</mujoco>")
    warned = {line.element: line.outcome for line in m.report.warnings}
    assert 'of actuator "m2", armature and damping of actuator "m3" not used' in warned['tendon "t"']


def test_uneven_gravity_compensation_is_warned_of() -> None:
    tree = TREE.format(body="").replace('pos="0.4 0 0"', 'gravcomp="1" pos="0.4 0 0"')
    m = bc.read(f"<mujoco><worldbody>{tree}</worldbody></mujoco>")
    assert m.gravity == (0.0, 0.0, -9.81)
    (line,) = (x for x in m.report.warnings if "gravcomp" in x.outcome)
    assert line.element == 'body "c"'


def test_names_never_collide() -> None:
    """Unnamed elements, and names that MuJoCo lets a joint, a body, a site and an equality share."""
    part = '<body name="{}"><joint {} axis="0 1 0"/><geom size=".1" mass="1"/></body>'
    unnamed = (
        '<body><joint axis="0 1 0"/><joint axis="1 0 0"/><geom size=".1" mass="1"/><site name="body3.joint3"/></body>'
    )
    xml = f"""<mujoco><worldbody>{part.format("body2", 'name="joint1"')}{part.format("x", "")}{unnamed}
      {part.format("e", 'name="e"')}<site name="x"/><site name="e"/></worldbody>
      <equality><joint name="e" joint1="e"/><connect body1="x" body2="e" anchor="0 0 0"/>
      <weld name="x" body1="x" body2="body2"/></equality></mujoco>"""
    m = bc.read(xml)
    assert [j.name for j in m.own_joints] == ["joint1", "joint1_", "joint2", "joint3"]
    assert [b.name for b in m.bodies] == ["body2", "x", "body3.joint2", "body3"]
    assert {"x_", "e_", "body3.joint3", "equality1.a", "x.a"} <= set(m.frames)
    notes = [line.element for line in m.report.lines if line.outcome.startswith("the name is taken")]
    assert notes == ['equality "e"', 'site "x"', 'site "e"']


def test_sites_are_frames() -> None:
    xml = text()
    m, q = bc.read(xml), np.array([0.3, -0.2, 0.5, 0.1, 0.7])
    _, d = peer(xml, q, np.zeros(5))
    for name in ("s1", "s2"):
        X = m.pose(q, name)
        np.testing.assert_allclose(X[:3, :3], d.site(name).xmat.reshape(3, 3), atol=1e-12)
        np.testing.assert_allclose(X[:3, 3], d.site(name).xpos, atol=1e-12)
