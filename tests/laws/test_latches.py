"""Joints that close and open during a run: momentum, energy, equality with welds, lanes, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics import kinematics
from bellcrank.errors import InputError
from bellcrank.forces import BearingFriction, Latch

Array = np.ndarray[Any, Any]


def at_time(t0: float, then: Any, name: str = "now") -> bc.Event:
    return bc.Event(name, lambda t, q, v, x, u: t - t0, "switch", 1, then)


# -- closed forms


def carts(**how: Any) -> bc.System:
    b = bc.Builder("carts", gravity=(0, 0, 0))
    for name, m in (("one", 2.0), ("two", 3.0)):
        b.body(name, mass=m, inertia=(0.1, 0.1, 0.1))
        b.joint(name, "prismatic", "ground", name, axis=(1, 0, 0))
    return bc.system(b.build(), elements=[Latch("grip", "one", "two", **how)])


MEET = bc.Event("meet", lambda t, q, v, x, u: q["one"] - q["two"] + 0.1, "switch", 1, bc.attach("grip"))


def test_carts_meet_keep_momentum_and_lose_energy() -> None:
    run = bc.simulate(
        carts(), 0.5, [-0.5, 0.0], [2.0, -1.0], step=1e-2, events=[MEET, at_time(0.4, bc.release("grip"), "off")]
    )
    times = [e["time"] for e in run.provenance["events"]]
    assert np.allclose(times, [0.4 / 3.0, 0.4], atol=1e-12)
    held = (run.t > times[0] + 1e-9) & (run.t < 0.4 - 1e-9)
    common = (2.0 * 2.0 - 3.0) / 5.0
    for name in ("one", "two"):
        assert np.allclose(run[f"{name}.v"][held], common, atol=1e-13)
        assert np.allclose(run[f"{name}.v"][run.t > 0.4], common, atol=1e-13)  # opening changes no velocity
    energy = run["kinetic_energy"]
    assert energy[0] - energy[-1] == pytest.approx(0.5 * (6.0 / 5.0) * 3.0**2, rel=1e-12)
    assert run["grip.active"][held].min() == 1.0
    assert run["grip.active"][-1] == 0.0
    assert np.allclose((run["two.q"] - run["one.q"])[held], 0.1, atol=1e-12)


def flying(weld: tuple[Array, Array] | None = None) -> bc.Mechanism:
    """Two free bodies, or with a weld one, the second at this orientation and place in the first."""
    b = bc.Builder("flying", gravity=(0.3, -0.2, -9.0))
    b.body("a", mass=1.0, com=(0.05, 0, 0.1), inertia=(0.02, 0.03, 0.04))
    b.joint("free_a", "floating", "ground", "a")
    if weld is None:
        b.body("b", mass=2.0, com=(0, 0.1, 0), inertia=(0.05, 0.03, 0.06))
        b.joint("free_b", "floating", "ground", "b")
        return b.build()
    R, p = weld
    b.body("b", mass=2.0, com=p + R @ [0, 0.1, 0], inertia=R @ np.diag([0.05, 0.03, 0.06]) @ R.T)
    b.joint("weld", "fixed", "a", "b", point=p)
    return b.build()


def momentum(m: bc.Mechanism, q: Array, v: Array) -> Array:
    """Return linear and angular momentum about the origin of the world, body by body."""
    total = np.zeros(6)
    for body in m.bodies:
        X = np.array(kinematics.pose(m.tree, q.tolist(), body.name), float)
        V = np.array(kinematics.velocity(m.tree, q.tolist(), v.tolist(), body.name), float)
        R, c = X[:3, :3], X[:3, :3] @ np.array(body.com)
        p = body.mass * (V[:3] + np.cross(V[3:], c))
        total[:3] += p
        total[3:] += np.cross(X[:3, 3] + c, p) + R @ np.array(body.inertia) @ R.T @ V[3:]
    return total


def test_free_bodies_join_with_their_momentum_and_move_as_one() -> None:
    rng = np.random.default_rng(1)
    m = flying()
    q = m.integrate(m.neutral(), rng.normal(size=12))
    v = rng.normal(size=12)
    s = bc.system(m, elements=[Latch("grip", "a", "b")])
    run = bc.simulate(s, 0.5, q, v, step=1e-3, events=[at_time(0.2, bc.attach())])
    event = np.array(run.provenance["events"][0]["y"])
    q1, v1 = event[: m.nq], event[m.nq : m.nq + m.nv]
    first = int(np.flatnonzero(run["grip.active"] > 0.5)[0])  # the row after the step in which it closed
    X_a, X_b = (np.array(kinematics.pose(m.tree, q1.tolist(), x), float) for x in "ab")
    X = np.linalg.inv(X_a) @ X_b
    one = flying((X[:3, :3], X[:3, 3]))
    M, (_, C) = np.asarray(m.mass_matrix(q1)), weld_rows(m, q1)
    expected = v1 - np.linalg.solve(M, C.T @ np.linalg.solve(C @ np.linalg.solve(M, C.T), C @ v1))
    assert np.allclose(momentum(m, q1, expected), momentum(m, q1, v1), rtol=1e-12)
    welded = bc.simulate(one, 0.3, q1[:7], expected[:6], step=1e-3)
    assert np.allclose(run.t[first:], 0.2 + welded.t[-len(run.t[first:]) :], atol=1e-12)
    assert np.allclose(run.q[first:, :7], welded.q[-len(run.t[first:]) :], atol=1e-9)
    lost = 0.5 * v1 @ M @ v1 - 0.5 * expected @ M @ expected
    assert lost == pytest.approx(0.5 * (v1 - expected) @ M @ (v1 - expected), rel=1e-10)  # theorem of Carnot
    assert lost > 0.05


def weld_rows(m: bc.Mechanism, q: Array) -> tuple[Array, Array]:
    """Return the Jacobian of the relative motion of b and a, from velocities of unit vectors."""
    columns = []
    X_a, X_b = (np.array(kinematics.pose(m.tree, q.tolist(), x), float) for x in "ab")
    for e in np.eye(m.nv):
        V_a, V_b = (np.array(kinematics.velocity(m.tree, q.tolist(), e.tolist(), x), float) for x in "ab")
        d = X_b[:3, 3] - X_a[:3, 3]
        columns.append([*(V_b[:3] - V_a[:3] - np.cross(V_a[3:], d)), *(V_b[3:] - V_a[3:])])
    return X_a, np.array(columns).T


def test_pinned_plate_keeps_its_angular_momentum_about_the_pin() -> None:
    """A plate on a plane is caught at a corner: the other rows of the hinge are redundant."""
    b = bc.Builder("plate")
    b.body("plate", mass=2.0, com=(0.3, 0.1, 0), inertia=(0.1, 0.1, 0.2))
    b.joint("plane", "planar", "ground", "plate")
    b.frame("pin", "ground", point=(0.2, 0.0, 0.0))
    s = bc.system(b.build(), elements=[Latch("catch", "pin", "plate", "revolute")])
    v = np.array([0.4, -0.3, 1.5])
    run = bc.simulate(s, 0.4, [0.2, 0.0, 0.0], v, step=1e-3, events=[at_time(0.1, bc.attach("catch"))])
    y = np.array(run.provenance["events"][0]["y"])
    w = y[5]  # the plate is free until then
    c = np.array([0.3, 0.1])
    R = np.array([[np.cos(y[2]), -np.sin(y[2])], [np.sin(y[2]), np.cos(y[2])]])
    u = R @ y[3:5] + w * np.array([-(R @ c)[1], (R @ c)[0]])
    about_pin = 2.0 * ((R @ c)[0] * u[1] - (R @ c)[1] * u[0]) + 0.2 * w
    after = about_pin / (0.2 + 2.0 * c @ c)
    late = run.t > 0.1 + 1e-9
    assert np.allclose(run.v[late, :2], 0.0, atol=1e-12)
    assert np.allclose(run.v[late, 2], after, rtol=1e-11)
    assert np.allclose(run["catch.mz"][late], 0.0, atol=1e-9)  # the hinge turns freely


# -- a gripper


def arm(part: str = "") -> bc.Builder:
    b = bc.Builder("arm")
    b.body("upper", mass=3.0, com=(0.25, 0, 0), inertia=(0.01, 0.1, 0.1))
    b.body("lower", mass=2.0, com=(0.75, 0, 0), inertia=(0.01, 0.08, 0.08))
    b.joint("shoulder", "revolute", "ground", "upper", axis=(0, 1, 0))
    b.joint("elbow", "revolute", "upper", "lower", point=(0.5, 0, 0), axis=(0, 1, 0))
    b.frame("hand", "lower", point=(1.0, 0, 0))
    if part:
        b.body("part", mass=1.5, com=(1.1, 0, 0), inertia=(0.02, 0.03, 0.04))
        b.joint("part", part, "ground" if part == "floating" else "lower", "part", point=(1.0, 0, 0))
    return b


def test_gripper_that_carries_a_part_is_the_mechanism_with_a_weld() -> None:
    s = bc.system(arm("floating").build(), elements=[Latch("grip", "hand", "part", closed=True)])
    q0 = [0.0, 0.0, *s.mechanism.neutral()[2:]]
    v0 = np.zeros(s.mechanism.nv)
    run = bc.simulate(s, 0.5, q0, v0, step=1e-3, every=0.05)
    welded = bc.simulate(arm("fixed").build(), 0.5, [0.0, 0.0], [0.0, 0.0], step=1e-3, every=0.05)
    assert np.allclose(run.q[:, :2], welded.q, atol=1e-9)
    assert np.allclose(run.v[:, :2], welded.v, atol=1e-8)
    assert np.abs(run.q[-1, :2]).max() > 0.5
    assert run.residuals()["energy"] < 1e-8
    load = np.linalg.norm(run.loads().wrench("grip")[0, :3])
    assert load == pytest.approx(np.hypot(run["grip.fx"][0], run["grip.fz"][0]), rel=1e-9)


@pytest.mark.parametrize("form", ["minimal", "projected"])
def test_closed_loop_that_takes_a_part_moves_as_with_a_weld(form: str) -> None:
    def crank(part: str) -> bc.Mechanism:
        b = bc.Builder("fourbar", gravity=(4.0, 0, -9.81))
        for name, c in (("one", (0, 0, 0.5)), ("two", (0.6, 0, 1.05)), ("three", (1.2, 0, 0.5))):
            b.body(name, mass=1.0, com=c, inertia=(0.1, 0.1, 0.1))
        points = {"A": (0, 0, 0), "B": (0, 0, 1), "C": (1.2, 0, 1.1), "D": (1.2, 0, 0)}
        chain = ("ground", "one", "two", "three", "ground")
        for (name, point), parent, child in zip(points.items(), chain, chain[1:], strict=False):
            b.joint(name, "revolute", parent, child, point=point, axis=(0, 1, 0))
        b.frame("hook", "two", point=(0.6, 0, 1.05))
        b.body("part", mass=2.0, com=(0.6, 0, 0.9), inertia=(0.1, 0.1, 0.1))
        b.joint("part", part, "two" if part == "fixed" else "ground", "part", point=(0.6, 0, 1.05))
        return b.build()

    free, welded = crank("floating"), crank("fixed")
    s = bc.system(free, elements=[Latch("grip", "hook", "part", closed=True)])
    q, v = free.neutral(), np.zeros(free.nv)
    run = bc.simulate(s, 0.4, q, v, step=1e-3, every=0.1, form=form)
    other = bc.simulate(welded, 0.4, welded.neutral(), np.zeros(welded.nv), step=1e-3, every=0.1)
    assert np.abs(other["A.q"][-1]) > 0.05
    assert np.allclose(run["A.q"], other["A.q"], atol=1e-8)
    assert run.provenance["loops open by at most"] < 1e-10


# -- every way to run it


def test_open_latch_changes_nothing() -> None:
    m = arm("floating").build()
    q, v = m.neutral(), np.linspace(-1.0, 1.0, m.nv)
    latched, plain = (
        bc.simulate(bc.system(m, elements=e), 0.1, q, v, step=1e-3) for e in ([Latch("grip", "hand", "part")], [])
    )
    assert np.allclose(latched.q, plain.q, rtol=1e-14, atol=1e-14)
    assert np.allclose(latched.v, plain.v, rtol=1e-14, atol=1e-13)


def test_each_lane_switches_at_its_own_time() -> None:
    starts = np.array([[-0.5, 0.0], [-0.9, 0.1], [-0.3, 0.0], [-5.0, 0.0], [-0.41, 0.0]])
    speeds = np.array([2.0, -1.0])
    sim = bc.Simulator(carts(), solver=bc.Solver("rk4", step=1e-2), events=[MEET])
    batch = sim.run(0.5, starts, np.broadcast_to(speeds, (5, 2)))
    for k, q in enumerate(starts):
        alone = sim.run(0.5, q, speeds)
        assert np.array_equal(batch.q[k], alone.q)
        assert np.array_equal(batch["grip.active"][k], alone["grip.active"])
    assert len({e["time"] for e in batch.provenance["events"]}) == 4  # the fourth pair never meets
    assert batch["grip.active"][:, -1].tolist() == [1.0, 1.0, 1.0, 0.0, 1.0]


def test_stepper_holds_a_closed_latch_as_a_run_does() -> None:
    s = bc.system(arm("floating").build(), elements=[Latch("grip", "hand", "part", closed=True)])
    y = np.concatenate([s.mechanism.neutral(), np.zeros(s.mechanism.nv), [z.initial for z in s.states]])
    env = bc.stepper(s, every=0.01, step=1e-3, outputs=["shoulder.q", "elbow.q", "grip.active"])
    env.reset(start=y)
    for _ in range(10):
        row = env.step()
    run = bc.simulate(s, 0.1, step=1e-3)
    assert np.allclose(row, [run["shoulder.q"][-1], run["elbow.q"][-1], 1.0], rtol=1e-12)


def test_latch_loads_bearings() -> None:
    """The weight of a part that a latch carries also loads the pin."""

    def hanging(part: str, elements: list[Any]) -> bc.System:
        return bc.system(arm(part).build(), elements=[*elements, BearingFriction("pin", "shoulder", 0.2, radius=0.05)])

    runs = [
        bc.simulate(s, 0.05, v0=v0, step=1e-3)
        for s, v0 in (
            (hanging("floating", [Latch("grip", "hand", "part", closed=True)]), {"shoulder": 0.0}),
            (hanging("fixed", []), {"shoulder": 0.0}),
        )
    ]
    loads = [run["pin.load"] for run in runs]
    assert np.allclose(*loads, rtol=1e-7)
    assert np.allclose(runs[0]["shoulder.a"], runs[1]["shoulder.a"], rtol=1e-6)


# -- what is refused


def test_latch_that_is_closed_apart_is_refused() -> None:
    with pytest.raises(InputError, match=r'latch "grip" is closed at the start, but its frames are 0\.5 apart'):
        bc.simulate(carts(closed=True, kind="spherical"), 0.1, [-0.5, 0.0], step=1e-2)
    with pytest.raises(InputError, match="move apart with 3"):
        bc.simulate(carts(closed=True), 0.1, [0.0, 0.0], [2.0, -1.0], step=1e-2)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Latch("x", "one", "two", "helical"), "kind of joint"),
        (lambda: bc.system(carts().mechanism, elements=[Latch("x", "one", "nowhere")]), "nowhere"),
        (lambda: bc.system(carts().mechanism, elements=[Latch("x", "one", "one")]), "on one body"),
        (lambda: bc.simulate(carts(), 0.1, step=1e-2, events=[at_time(0.05, bc.attach("hand"))]), "hand"),
        (
            lambda: bc.simulate(carts().mechanism, 0.1, step=1e-2, events=[at_time(0.05, bc.release())]),
            "the system has no latch",
        ),
    ],
)
def test_wrong_latch_is_refused(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


def test_latch_that_a_motion_pulls_open_is_reported() -> None:
    """Both ends are prescribed: no force of the latch can hold them together."""
    moving = {"one": lambda t: 0.3 * t, "two": lambda t: 0.5 - 0.2 * t}
    s = bc.system(carts().mechanism, elements=[Latch("grip", "one", "two", "spherical")], motions=moving)
    with pytest.warns(RuntimeWarning) as told:
        bc.simulate(s, 0.5, [0.0, 0.5], [0.3, -0.2], step=1e-3, events=[at_time(0.1, bc.attach())])
    assert any('latch "grip" is closed, but its frames are' in str(x.message) for x in told)


def test_equilibrium_leaves_a_latch_as_it_is() -> None:
    """Two masses on springs hang together if they are joined, else each on its own spring."""
    b = bc.Builder("springs")
    for name, m in (("one", 2.0), ("two", 3.0)):
        b.body(name, mass=m, inertia=(0.1, 0.1, 0.1))
        b.joint(name, "prismatic", "ground", name, axis=(0, 0, 1), stiffness=100.0)
    plain = b.build()
    for closed, expected in ((False, [-0.1962, -0.2943]), (True, [-0.24525, -0.24525])):
        rest = bc.equilibrium(bc.system(plain, elements=[Latch("grip", "one", "two", closed=closed)]))
        assert np.allclose(rest.q, expected, atol=1e-12)
        assert np.allclose(rest.x, [float(closed), 0, 0, 0, 1, 0, 0, 0, 1, 0], atol=1e-12)


# -- commands


def commanded() -> bc.System:
    """The two carts, coupled while an input is positive."""
    m = carts().mechanism
    return bc.system(m, inputs={"grip": 0.0}, elements=[
        Latch("grip", "one", "two", command=lambda t, q, v, x, u: u["grip"])
    ])  # fmt: skip


@pytest.mark.parametrize("integrator", ["rk4", "abm4"])
def test_commands_switch_runs_lanes_and_steppers_at_the_same_steps(integrator: str) -> None:
    """Three lanes close their latches after 0.1 s, never, and at once, and open them after 0.3 s."""
    s = commanded()
    table = np.array([[0.0, 1, 1, 0], [0.0, 0, 0, 0], [1.0, 1, 1, 0]])
    q, v = np.array([-0.5, 0.0]), np.array([2.0, -1.0])
    run = bc.simulate(
        s, 0.4, np.tile(q, (3, 1)), np.tile(v, (3, 1)), inputs={"grip": table}, input_step=0.1, step=1e-2,
        integrator=integrator,
    )  # fmt: skip
    common = (2.0 * 2.0 - 3.0) / 5.0
    for k, first in enumerate((0.1, np.inf, 0.0)):
        after = run.t > first + 1e-9
        assert np.allclose(run.v[k, after.reshape(-1)[: run.v.shape[1]]], common, atol=1e-12)
        assert np.allclose(run.v[k, ~after.reshape(-1)[: run.v.shape[1]]], v, atol=1e-12)
        assert run["grip.active"][k, -1] == 0.0
    env = bc.stepper(s, batch=3, every=0.1, step=1e-2, integrator=integrator)
    x = [z.initial for z in s.states]
    env.reset(start=np.tile([*q, *v, *x], (3, 1)))
    for column in table.T:
        env.step(column[:, None])
    y = np.asarray(env.state).reshape(3, -1)
    assert np.array_equal(y[:, :2], run.q[:, -1])
    assert np.array_equal(y[:, 2:4], run.v[:, -1])


def test_commands_that_importers_or_gradients_cannot_follow_are_refused(tmp_path: Any) -> None:
    with pytest.raises(InputError, match="steps of an FMU may be those of its importer"):
        bc.export(commanded(), tmp_path / "it.fmu", to="fmu3", step=1e-2)
    with pytest.raises(InputError, match="such a run has no gradient"):
        bc.Adjoint(commanded(), final="one.q")
    with pytest.raises(InputError, match="sensitivities do not support the command"):
        bc.simulate(commanded(), 0.1, step=1e-2, inputs={"grip": 1.0}, sensitivities=["one.v"])
