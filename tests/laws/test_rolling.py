"""Rolling, cams, gliding and prescribed motions: against closed forms, in every form of the loop equations."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import BellcrankError, InputError, ModelError
from bellcrank.nodes.tape import Tape
from bellcrank.record import description

FORMS = ["minimal", "projected"]
r, g = 0.1, 9.81


def ball(on: str = "ground", gravity: Any = (0, 0, -g)) -> bc.Mechanism:
    b = bc.Builder("ball", gravity=gravity)
    b.body("ball", mass=1.0, com=(0, 0, r), inertia=(0.4 * r * r,) * 3)
    b.joint("free", "floating", "ground", "ball", point=(0, 0, r))
    b.rolling("roll", "ball", r, (0, 0, r))
    return b.build()


def test_a_thrown_ball_keeps_five_sevenths() -> None:
    """The impulse of the rolling constraint removes exactly 2/7 of the speed, as sliding friction does in the end."""
    m = ball()
    event = bc.Event(
        "touch", lambda t, q, v, x, u: t - 0.01, "switch", 1, lambda t, q, v, x, u: {"v": {m.columns[1][0]: 2.0}}
    )
    run = bc.simulate(m, 0.02, m.neutral(), np.zeros(6), step=1e-3, events=[event])
    assert abs(run["ball.speed"][-1] - 2.0 * 5 / 7) < 1e-12


@pytest.mark.parametrize("form", FORMS)
def test_a_ball_on_a_slope(form: str) -> None:
    """5/7 g sin(angle), for any radius."""
    m = ball(gravity=(g * math.sin(0.3), 0, -g * math.cos(0.3)))
    run = bc.simulate(m, 1.0, m.neutral(), np.zeros(6), step=1e-3, form=form)
    np.testing.assert_allclose(run["ball.x"], 5 / 14 * g * math.sin(0.3) * run.t**2, atol=1e-11)
    assert run.residuals()["energy"] < 1e-8
    assert run.provenance["loops open by at most"] < 1e-12


def test_a_ball_on_a_turning_plate() -> None:
    """It moves in circles at 2/7 of the plate's speed; the plate has a prescribed motion and carries the plane."""
    b = bc.Builder("plate")
    b.body("plate", mass=5.0, inertia=(1.0, 1.0, 1.0))
    b.joint("turn", "revolute", "ground", "plate")
    b.body("ball", mass=1.0, com=(0.5, 0, r), inertia=(0.4 * r * r,) * 3)
    b.joint("free", "floating", "ground", "ball", point=(0.5, 0, r))
    b.rolling("roll", "ball", r, (0.5, 0, r), on="plate")
    m = b.build()
    speed = 2.0
    q0, v0 = m.assemble(m.neutral(), {"turn": speed}, fixed=["turn"])
    v0 = np.array(v0)
    v0[1:] = 0.0
    v0[2], v0[4] = 0.3, 0.0  # some velocity along y; the ball rotates so that it does not slip
    v0[4] = (speed * 0.5 - 0.3) / r
    q0, v0 = m.assemble(q0, v0)
    s = bc.system(m, motions={"turn": lambda t: speed * t})
    run = bc.simulate(s, 4.0, q0, v0, step=1e-3)
    x, y = run["ball.x"], run["ball.y"]
    dx, dy = np.gradient(x, run.t, edge_order=2), np.gradient(y, run.t, edge_order=2)
    turned = np.unwrap(np.arctan2(dy, dx))
    assert abs((turned[-2] - turned[1]) / (run.t[-2] - run.t[1]) / speed - 2 / 7) < 1e-5


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("tilt", "precession"), [(1.2, 2.0), (0.5, 9.0), (1.5, -0.5)])
def test_a_coin_rolls_in_a_circle(form: str, tilt: float, precession: float) -> None:
    """(C + m r^2) w3 O sin + m g r cos = A O^2 sin cos: the axle stays at the angle `tilt` from upright."""
    m_, A, C = 1.0, r * r / 4, r * r / 2
    O, s, c = precession, math.sin(tilt), math.cos(tilt)
    w3 = (A * O * O * s * c - m_ * g * r * c) / ((C + m_ * r * r) * O * s)
    b = bc.Builder("coin")
    b.body("coin", mass=m_, com=(0, 0, r), inertia=(A, C, A))
    b.joint("free", "floating", "ground", "coin", point=(0, 0, r))
    b.rolling("roll", "coin", r, (0, 0, r), axle=(0, 1, 0))
    coin = b.build()
    lean = tilt - math.pi / 2
    q0 = np.array([0, 0, r * s - r, math.sin(lean / 2), 0, 0, math.cos(lean / 2)])
    v0 = np.array([-r * w3, 0, 0, 0, -w3, O * s])
    run = bc.simulate(coin, 3.0, q0, v0, step=1e-3, form=form)
    np.testing.assert_allclose(run["coin.z"], r * s, atol=1e-8)
    centre = np.array([0.0, -r * w3 / O])
    radius = np.hypot(run["coin.x"] - centre[0], run["coin.y"] - centre[1])
    np.testing.assert_allclose(radius, abs(r * w3 / O), atol=1e-8)
    way = np.unwrap(np.arctan2(run["coin.y"] - centre[1], run["coin.x"] - centre[0]))
    np.testing.assert_allclose(way - way[0], O * run.t, atol=1e-8)


@pytest.mark.parametrize("form", [*FORMS, "lagrange"])
def test_a_sleigh_turns_in_a_circle(form: str) -> None:
    """With the centre of mass above the blade, speed and rotation rate are constant."""
    b = bc.Builder("sleigh", gravity=(0, 0, 0))
    b.body("sleigh", mass=2.0, inertia=(0.2, 0.2, 0.3))
    b.joint("flat", "planar", "ground", "sleigh")
    b.knife_edge("blade", "sleigh", (0, 0, 0), along=(1, 0, 0))
    m = b.build()
    run = bc.simulate(m, 3.0, [0, 0, 0], [1.5, 0, 0.7], step=1e-3, form=form)
    R = 1.5 / 0.7
    np.testing.assert_allclose(run["sleigh.x"], R * np.sin(0.7 * run.t), atol=1e-8)
    np.testing.assert_allclose(run["sleigh.y"], R * (1 - np.cos(0.7 * run.t)), atol=1e-8)
    with pytest.raises(InputError, match="no common set of independent coordinates"):
        bc.linearize(m, at={"q": np.zeros(3)})


def pair(*kinds: str) -> bc.Builder:
    b = bc.Builder("pair", gravity=(0, 0, -g))
    for k, kind in enumerate(kinds):
        b.body(f"b{k}", mass=1.0 + k, com=(k, 0, 0), inertia=(0.1 * (1 + k),) * 3)
        b.joint(f"j{k}", kind, "ground", f"b{k}", point=(k, 0, 0), axis=(0, 0, 1))
    return b


def test_cam_follower_follows_the_lift_law() -> None:
    """Cycloidal lift: position, velocity and acceleration of the follower, and power in = power out."""
    b = pair("revolute", "prismatic")

    def lift(a: Any) -> Any:
        return 0.02 * (1.0 - bc.cos(a)) + 0.005 * bc.sin(2.0 * a)

    b.cam("cam", ("j0", "j1"), lift)
    m = b.build()
    for angle in np.linspace(-4.0, 7.0, 12):
        q, v = m.assemble({"j0": angle}, {"j0": 3.0}, fixed=["j0"])
        want = 0.02 * (1 - math.cos(angle)) + 0.005 * math.sin(2 * angle)
        assert abs(q[1] - want) < 1e-12
        assert abs(v[1] - 3.0 * (0.02 * math.sin(angle) + 0.01 * math.cos(2 * angle))) < 1e-10
    q, v = m.assemble({"j0": 0.0}, {"j0": 8.0}, fixed=["j0"])
    run = bc.simulate(m, 1.0, q, v, step=5e-4)
    assert run.residuals()["energy"] < 1e-9
    slope = 0.02 * np.sin(run.q[:, 0]) + 0.01 * np.cos(2 * run.q[:, 0])
    curve = 0.02 * np.cos(run.q[:, 0]) - 0.02 * np.sin(2 * run.q[:, 0])
    np.testing.assert_allclose(run.a[:, 1], slope * run.a[:, 0] + curve * run.v[:, 0] ** 2, atol=1e-10)


def test_a_differential_and_a_planet() -> None:
    b = pair("revolute", "revolute", "revolute")
    b.combination("differential", ("j0", "j1", "j2"), (1.0, 1.0, -2.0), offset=0.1)
    m = b.build()
    q, v = m.assemble({"j0": 0.4, "j2": 0.3}, {"j0": 1.0, "j2": 2.0}, fixed=["j0", "j2"])
    assert abs(q[1] - 0.3) < 1e-12
    assert abs(v[1] - 3.0) < 1e-12
    run = bc.simulate(m, 0.2, q, v, step=1e-3)
    np.testing.assert_allclose(run.q @ [1, 1, -2], 0.1, atol=1e-12)


def test_a_point_on_a_sphere_is_a_pendulum() -> None:
    """A free mass constrained to a sphere moves like a rod on a spherical joint."""
    b = bc.Builder("bead")
    b.body("x")
    b.body("y")
    b.body("bead", mass=1.0)
    for k, (name, below) in enumerate((("x", "ground"), ("y", "x"), ("bead", "y"))):
        b.joint(f"s{name}", "prismatic", below, name, axis=np.eye(3)[k], point=(0, 0, -1))
    b.on_surface("bowl", "bead", (0, 0, -1), lambda x, y, z: (x * x + y * y + z * z - 1.0) / 2.0)
    m = b.build()
    rod = bc.zoo.rod_pendulum()
    q, v = m.assemble({"sx": 0.6, "sy": 0.1}, {"sx": 0.2, "sy": 0.9}, fixed=["sx", "sy"])
    run = bc.simulate(m, 1.0, q, v, step=1e-3)
    p = np.stack([run["bead.x"], run["bead.y"], run["bead.z"]], axis=-1)
    np.testing.assert_allclose(np.linalg.norm(p, axis=1), 1.0, atol=1e-12)
    assert run.residuals()["energy"] < 1e-9
    L = p[:, 0] * run.v[:, 1] - p[:, 1] * run.v[:, 0]
    np.testing.assert_allclose(L, L[0], atol=1e-8)
    assert rod.nv == 3


def test_a_bead_on_a_wire() -> None:
    """A parabola y = x^2 in a rotating frame, with conservation of energy."""
    b = bc.Builder("wire")
    b.body("x")
    b.body("bead", mass=0.5)
    b.joint("sx", "prismatic", "ground", "x", axis=(1, 0, 0))
    b.joint("sz", "prismatic", "x", "bead", axis=(0, 0, 1))
    b.on_curve("wire", "bead", (0, 0, 0), (lambda x, y, z: z - x * x, lambda x, y, z: y))
    m = b.build()
    q, v = m.assemble({"sx": 0.5}, fixed=["sx"])
    run = bc.simulate(m, 2.0, q, v, step=1e-3)
    np.testing.assert_allclose(run.q[:, 1], run.q[:, 0] ** 2, atol=1e-12)
    assert run.residuals()["energy"] < 1e-9


def test_couplings_of_shafts() -> None:
    """Cardan joint, Oldham coupling, Geneva wheel: angles in closed form."""
    beta = 0.6
    b = bc.Builder("cardan")
    for k, axis in enumerate(((1, 0, 0), (math.cos(beta), math.sin(beta), 0))):
        b.body(f"shaft{k}", mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(f"s{k}", "revolute", "ground", f"shaft{k}", axis=axis)
    b.close(
        "cross",
        "universal",
        "shaft0",
        "shaft1",
        point=(0, 0, 0),
        axis=(0, 0, 1),
        second_axis=(-math.sin(beta), math.cos(beta), 0),
    )
    m = b.build()
    for angle in np.linspace(-1.4, 1.4, 8):
        q, _ = m.assemble({"s0": angle}, fixed=["s0"])
        assert abs(math.tan(q[1]) - math.tan(angle) * math.cos(beta)) < 1e-10

    e = 0.03
    b = bc.Builder("oldham")
    for k in (0, 1):
        b.body(f"shaft{k}", mass=1.0, com=(k * e, 0, 0), inertia=(0.1, 0.1, 0.1))
        b.joint(f"s{k}", "revolute", "ground", f"shaft{k}", point=(k * e, 0, 0))
    b.body("disc", mass=0.2, inertia=(0.01, 0.01, 0.01))
    b.joint("slot", "prismatic", "shaft0", "disc", axis=(1, 0, 0))
    b.close("key", "prismatic", "disc", "shaft1", point=(e, 0, 0), axis=(0, 1, 0))
    m = b.build()
    for angle in np.linspace(-2.0, 2.0, 9):
        q, _ = m.assemble({"s0": angle}, fixed=["s0"])
        at = dict(zip(m.columns[0], q, strict=True))
        assert abs(at["s1"] - angle) < 1e-10
        assert abs(at["slot"] - (e * math.cos(angle) - e)) < 1e-10

    R, d = 0.05, 0.05 * math.sqrt(2.0)
    b = bc.Builder("geneva")
    b.body("driver", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.body("wheel", mass=1.0, com=(d, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("driver", "revolute", "ground", "driver")
    b.joint("wheel", "revolute", "ground", "wheel", point=(d, 0, 0))
    b.close("pin", "point_on_line", "wheel", "driver", point_a=(d, 0, 0), axis=(-1, 0, 0), point_b=(R, 0, 0))
    m = b.build()
    for angle in np.linspace(-0.75, 0.75, 7):  # while the pin is in the slot
        q, _ = m.assemble({"driver": angle}, fixed=["driver"])
        assert abs(q[1] + math.atan2(R * math.sin(angle), d - R * math.cos(angle))) < 1e-10


@pytest.mark.parametrize("form", [*FORMS, "lagrange"])
def test_a_prescribed_crank(form: str) -> None:
    """The crank follows its motion; the drive's force equals that of inverse dynamics and does all the work."""
    m = bc.zoo.four_bar()
    crank = m.columns[1][0]

    def motion(t: Any) -> Any:
        return 1.0 + 4.0 * t + 0.3 * bc.sin(5.0 * t)

    s = bc.system(m, motions={crank: motion})
    q0, v0 = m.assemble({crank: 1.0}, {crank: 5.5}, fixed=[crank])
    run = bc.simulate(s, 0.5, q0, v0, step=5e-4, form=form)
    np.testing.assert_allclose(run[f"{crank}.q"], 1.0 + 4.0 * run.t + 0.3 * np.sin(5.0 * run.t), atol=1e-9)
    np.testing.assert_allclose(run[f"{crank}.a"], -7.5 * np.sin(5.0 * run.t), atol=1e-6)
    needed = m.inverse_dynamics(run.q[::100], run.v[::100], run.a[::100], actuated=[crank])[:, 0]
    np.testing.assert_allclose(run[f"{crank}.drive"][::100], needed, rtol=1e-8, atol=1e-8)
    assert run.residuals()["energy"] < 1e-6


def test_a_prescribed_place() -> None:
    """The tip of an arm moves along a line; the arm's other joint follows from the geometry."""
    arm = bc.zoo.planar3r()
    tip = arm.bodies[-1].name
    at, v = np.array([0.3, -0.5, 0.8]), np.zeros(3)
    x0 = float(arm.pose(at, tip)[0, 3])
    s = bc.system(arm, motions={f"{tip}.x": lambda t: x0 + 0.2 * t * t})
    run = bc.simulate(s, 0.5, at, v, step=5e-4)
    np.testing.assert_allclose(run[f"{tip}.x"], x0 + 0.2 * run.t**2, atol=1e-9)
    assert run.residuals()["energy"] < 1e-5
    lanes = bc.simulate(s, 0.1, np.tile(at, (4, 1)), v, step=5e-4)
    np.testing.assert_allclose(lanes.q[3], run.q[: lanes.q.shape[1]], atol=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ball().free("roll.value"), "roll"),
        (lambda: pair("revolute").rolling("x", "b0", 0.0, (0, 0, 0)), "above zero"),
        (lambda: pair("revolute").rolling("x", "b0", 1.0, (0, 0, 0), on="b0"), "cannot touch itself"),
        (lambda: pair("revolute", "prismatic").cam("c", ("j0", "j1"), lambda a: 0.1 * a), "does not close"),
        (
            lambda: pair("revolute", "prismatic").cam("c", ("j0", "j1"), bc.sqrt),
            "the lift is not a number at -3.142 rad",
        ),
        (lambda: pair("revolute", "prismatic").cam("c", ("j0", "j1"), lambda a: 1.0 / a), "not a number at 0 rad"),
        (lambda: pair("revolute", "prismatic").cam("c", ("j0", "j1"), bc.sin, turn=-np.inf), "turn is -inf"),
        (lambda: pair("revolute", "prismatic").cam("c", ("j0", "j1"), bc.sin, turn=np.nan), "turn is nan"),
        (lambda: pair("revolute", "prismatic").cam("c", ("j0", "j1"), bc.sin, turn=0.0), "an angle above zero"),
        (lambda: pair("revolute", "prismatic").cam("c", ("j0",), lambda a: a), "cam, follower"),
        (lambda: pair("revolute", "prismatic").cam("c", np.ones((2, 2)), lambda a: a), "expected names of joints"),
        (lambda: pair("revolute", "prismatic").cam("c", ("j0", "j1"), 3.0), "is not a function"),
        (lambda: pair("revolute", "prismatic").cam("c", ("j0", "j1"), math.sin), "failed on symbols"),
        (lambda: built("combination", ("j0", "j7"), (1.0, 1.0)), "moving joint"),
        (lambda: built("combination", ("j0", "j1"), (1.0, 0.0)), "none zero"),
        (lambda: bc.system(ball(), motions={"x": lambda t: t}), "joint or place"),
        (lambda: bc.system(bc.zoo.pendulum(), motions={bc.zoo.pendulum().columns[1][0]: 3.0}), "function of t"),
        (lambda: started(), "not on the motion"),
        (
            lambda: bc.simulate(bc.system(bc.zoo.planar3r(), motions={"link3.z": lambda t: 0.0 * t}), 0.1),
            "no joint moves",
        ),
    ],
)
def test_bad_input(make: Any, words: str) -> None:
    with pytest.raises((InputError, ModelError), match=words):
        make()


@pytest.mark.parametrize(
    ("law", "words"),
    [
        (lambda a: 1 / 0, "ZeroDivisionError"),
        (lambda a: {}["x"], "KeyError"),
        (lambda a: a.nope, "AttributeError"),
        (lambda a: None, "returned None; expected one finite number"),
        (lambda a: float("inf"), "returned inf"),
        (lambda a: 0.1 * bc.sin(Tape().node("input", "y", 0)), "symbol of another trace"),
    ],
)
def test_invalid_laws_are_named(law: Any, words: str) -> None:
    b = bc.Builder("cam", gravity=(0, 0, 0))
    for name, kind in (("wheel", "revolute"), ("slide", "prismatic")):
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(name, kind, "ground", name, axis=(0, 0, 1))
    with pytest.raises(ModelError, match=words):
        b.cam("lift", ("slide", "wheel"), law)


class Remembering:
    """A law that stores the first t of its calls."""

    seen: Any = None

    def __call__(self, t: Any) -> Any:
        self.seen = t if self.seen is None else self.seen
        return 0.3 + self.seen


@pytest.mark.parametrize(
    ("motion", "words"),
    [
        (Remembering(), "scalars of two traces were combined"),
        (lambda t: None, 'motion of "hinge" returned nothing'),
        (lambda t: math.nan, 'motion of "hinge" returned nan'),
        (lambda t: 1 / 0, "while it was traced"),
    ],
)
def test_failing_motions_are_named(motion: Any, words: str) -> None:
    b = bc.Builder("led")
    b.body("arm", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "arm", axis=(0, 1, 0))
    m = b.build()
    with pytest.raises(BellcrankError, match=words):
        bc.simulate(bc.system(m, motions={"hinge": motion}), 0.5, q0=[0.3], v0=[1.0])


def test_parts_with_functions_are_stored_and_compared() -> None:
    """Parts with functions are also stored, compared and hashed like any part, and read back to the same numbers."""
    b = pair("revolute", "prismatic", "revolute")
    b.cam("cam", ("j0", "j1"), lambda a: bc.where(bc.sin(a) > 0.0, 0.01 * bc.sin(a) ** 2, 0.0))
    b.combination("sum", ("j0", "j2"), (1.0, -3.0))
    b.on_surface("bowl", "b1", (1, 0, 0), lambda x, y, z: z - x * x)
    m = b.build()
    assert pickle.loads(pickle.dumps(m)).fingerprint == m.fingerprint
    again = description.read_mechanism(json.loads(json.dumps(description.to_plain(m))))
    assert again.fingerprint == m.fingerprint
    assert "cam" in str(m)
    with pytest.raises(ModelError, match="by Builder"):
        b.close("other", "cam")


def built(verb: str, *given: Any) -> bc.Mechanism:
    b = pair("revolute", "revolute")
    getattr(b, verb)("x", *given)
    return b.build()


def started() -> Any:
    m = bc.zoo.pendulum()
    return bc.simulate(bc.system(m, motions={m.columns[1][0]: lambda t: 1.0 + t}), 0.1, step=1e-3)
