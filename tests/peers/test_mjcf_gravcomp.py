"""Gravity compensation of MuJoCo's files, passive and through actuators: equal accelerations, or a warning.

MuJoCo adds the compensation of a joint with `actuatorgravcomp` to the forces of its actuators: it acts only if the
model has an actuator and actuation is enabled, and `actuatorfrcrange` limits it.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics import aba
from bellcrank.formats import mjcf

mujoco = pytest.importorskip("mujoco")
from mujoco_map import FilePeer, take_out  # noqa: E402

Array = np.ndarray[Any, Any]
FLAGS = ("actuation", "gravity", "spring", "damper")
SHARES = ("0", "0", "1", "0.5", "-0.5")
TRIALS = 300


def tree(rng: random.Random, shares: list[str], actuated: list[bool], limits: list[str]) -> str:
    """Return nested and neighbouring bodies on joints of any kind, none of which is balanced by chance."""
    text, open_bodies = "", 0
    for k, (share, through, limit) in enumerate(zip(shares, actuated, limits, strict=True)):
        while open_bodies and rng.random() < 0.3:
            text, open_bodies = text + "</body>", open_bodies - 1
        pos = " ".join(f"{rng.uniform(-1, 1):.3f}" for _ in range(3))
        axis = " ".join(f"{rng.uniform(0.2, 1):.3f}" for _ in range(3))
        kind = rng.choice(("hinge", "hinge", "slide", "ball") if open_bodies or k else ("hinge", "slide", "free"))
        given = f'name="j{k}" type="{kind}" actuatorgravcomp="{str(through).lower()}"'
        if kind in ("hinge", "slide"):
            given += f' axis="{axis}" {limit}'
        text += f'<body name="b{k}" pos="{pos}" gravcomp="{share}"><joint {given}/>'
        text += f'<geom type="box" size=".1 .2 .3" pos="{pos}" mass="{rng.uniform(0.5, 2):.3f}"/>'
        if rng.random() < 0.3:  # welded: it moves with its parent, and has its own share
            text += f'<body pos="{axis}" gravcomp="{share}"><geom size=".1" mass="0.3"/></body>'
        open_bodies += 1
    return text + "</body>" * open_bodies


def model_text(seed: int) -> tuple[str, bool]:
    """Return a random model, and whether limits of actuator forces may act."""
    rng = random.Random(seed)
    n = rng.randint(1, 4)
    same, through = rng.choice(SHARES), rng.choice((True, False))
    shares = [same] * n if rng.random() < 0.6 else [rng.choice(SHARES) for _ in range(n)]
    actuated = [through] * n if rng.random() < 0.6 else [rng.random() < 0.5 for _ in range(n)]
    limited = rng.random() < 0.2
    limits = ['actuatorfrcrange="-1 1"' if limited and rng.random() < 0.5 else "" for _ in range(n)]
    flags = " ".join(f'{flag}="disable"' for flag in FLAGS if rng.random() < 0.15)
    world = '<body name="still" pos="0 0 5" gravcomp="1"><geom size=".1"/></body>' if rng.random() < 0.2 else ""
    motor = f'<actuator><motor joint="j{rng.randrange(n)}" group="2"/></actuator>' if rng.random() < 0.6 else ""
    group = 'actuatorgroupdisable="2"' if rng.random() < 0.3 else ""
    gravity = 'gravity="0 0 0"' if rng.random() < 0.1 else 'gravity="1 2 -9"'
    bodies = tree(rng, shares, actuated, limits)
    text = f'<mujoco><option {gravity} {group}><flag {flags} contact="disable"/></option>'
    return f"{text}<worldbody>{world}{bodies}</worldbody>{motor}</mujoco>", any(limits)


def error(m: bc.Mechanism, text: str, seed: int, warned_parts: bool) -> float:
    """Return the largest error of an acceleration, with or without the parts of MuJoCo's model that a warning names."""
    model = mujoco.MjModel.from_xml_string(text)
    if not warned_parts:
        assert take_out(model, m.report) == []
    q, v, tau = m.random(seed)
    found = np.array(aba.forward_dynamics(m.tree, q.tolist(), v.tolist(), [0.0] * m.nv), float)  # needs no compiler
    return float(np.abs(found - FilePeer(model, m, q, v, actuation=True).accelerations(0.0 * tau)).max())


@pytest.mark.parametrize("start", range(0, TRIALS, 20))
def test_random_compensation_is_equal_or_warned_of(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning also means that the motion differs, except warnings of limits, which may not be reached."""

    def compiled_here(text: str, source: str) -> tuple[Any, list[str]]:  # a process for each takes most of the time
        return mujoco.MjModel.from_xml_string(text), []

    monkeypatch.setattr(mjcf, "compile_model", compiled_here)
    outcomes = []
    for seed in range(start, start + 20):
        text, limited = model_text(seed)
        m = bc.read(text)
        warned = bool(m.report.warnings)
        whole = error(m, text, seed, warned_parts=True)
        outcomes.append(warned)
        if warned:
            assert error(m, text, seed, warned_parts=False) <= 1e-8, text
            assert whole > 1e-8 or limited, text
        else:
            assert whole <= 1e-8, text
    assert 0 < sum(outcomes) < len(outcomes)


ARM = """<body name="a" gravcomp="1"><joint name="h1" axis="0 1 0" {h1}/>
  <geom type="capsule" size=".02" fromto="0 0 0 .3 0 -1" mass="1"/><body name="b" pos=".3 0 -1" gravcomp="1">
  <joint name="h2" axis="0 1 0" {h2}/><geom type="capsule" size=".02" fromto="0 0 0 .5 0 -.2" mass="2"/>
  </body></body>"""
THROUGH = 'actuatorgravcomp="true"'
MOTOR = '<actuator><motor joint="h2"/></actuator>'
NO_ACTUATION = '<flag actuation="disable"/>'


def arm(h1: str = "", h2: str = "", option: str = "", after: str = "") -> bc.Mechanism:
    return bc.read(
        f"<mujoco><option>{option}</option><worldbody>{ARM.format(h1=h1, h2=h2)}</worldbody>{after}</mujoco>"
    )


@pytest.mark.parametrize(("option", "after"), [("", ""), (NO_ACTUATION, MOTOR)], ids=["no actuator", "no actuation"])
def test_compensation_without_actuators_acts_on_other_joints_only(option: str, after: str) -> None:
    for h1, h2 in ((THROUGH, ""), ("", THROUGH)):
        m = arm(h1, h2, option, after)
        (line,) = m.report.warnings
        assert line.element == '2 bodies: "a", "b"'
        assert "gravcomp 1, 1: not used" in line.outcome
        assert "actuatorgravcomp" in line.outcome
        assert m.gravity == (0.0, 0.0, -9.81)
    m = arm(THROUGH, THROUGH, option, after)
    assert m.report.warnings == ()
    assert m.gravity == (0.0, 0.0, -9.81)
    assert any("acts on no joint" in line.outcome for line in m.report.lines)


def test_compensation_through_actuators_acts_if_there_is_one_anywhere() -> None:
    m = arm(THROUGH, "", "", MOTOR)
    assert m.report.warnings == ()
    assert m.gravity == (0.0, 0.0, 0.0)
    m = arm(THROUGH + ' actuatorfrcrange="-1 1"', "", "", MOTOR)
    (line,) = m.report.warnings
    assert line.element == 'joint "h1"'
    assert "limited by actuatorfrcrange in MuJoCo" in line.outcome


def test_gravity_of_the_call_decides_whether_compensation_is_missing() -> None:
    text = '<mujoco><option><flag gravity="disable"/></option><worldbody>{}</worldbody></mujoco>'
    text = text.format(ARM.format(h1="", h2="").replace('gravcomp="1"', 'gravcomp="0.5"', 1))
    assert bc.read(text).report.warnings == ()
    assert len(bc.read(text, gravity=(0, 0, -2)).report.warnings) == 1
    without_flag = text.replace('gravity="disable"', "")
    assert len(bc.read(without_flag).report.warnings) == 1
    assert bc.read(without_flag, gravity=(0, 0, 0)).report.warnings == ()


def test_negative_compensation_alone_does_not_act() -> None:
    text = f"<mujoco><worldbody>{ARM.format(h1='', h2='')}</worldbody></mujoco>".replace('"1">', '"-1">')
    m = bc.read(text)
    assert m.report.warnings == ()
    assert m.gravity == (0.0, 0.0, -9.81)
    assert any("no body has a positive one" in line.outcome for line in m.report.lines)
