"""At an equilibrium nothing accelerates, held coordinates stay, and impossible requests raise an error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.actuators import PD
from bellcrank.excavators.linkage_system import parts
from bellcrank.forces import Contact, Plane, Sphere
from trees import close, few, trees


def pendulum() -> bc.Mechanism:
    b = bc.Builder("pendulum")
    b.body("bob", mass=2.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0))
    b.frame("end", "bob", point=(0, 0, -0.5))
    return b.build()


@pytest.mark.parametrize("start", [0.3, -1.4, np.pi / 2])
def test_a_pendulum_hangs(start: float) -> None:
    """The search also succeeds from the angle of the largest torque, where the slope is zero."""
    rest = bc.equilibrium(pendulum(), at={"hinge.q": start})
    close(rest.q, [0.0], 1e-9)
    assert rest.solved == ("hinge.q",)
    assert not rest.failures
    assert "rests" in str(rest)


def test_pendulum_stands_upright() -> None:
    rest = bc.equilibrium(pendulum(), at={"hinge.q": 3.0})
    close(rest.q, [np.pi], 1e-9)
    grows = [mode for mode in bc.linearize(pendulum(), at=rest).modes() if mode.eigenvalue.real > 0.0]
    assert len(grows) == 1


@few(5)
@given(trees(passive=True, max_bodies=4), st.integers(0, 99))
def test_torques_that_hold_a_tree_are_those_of_inverse_dynamics(m: bc.Mechanism, seed: int) -> None:
    q = m.random(seed)[0]
    rest = bc.equilibrium(m, at=q, hold="q")
    still = np.zeros(m.nv)
    close([rest.inputs[f"{n}.tau"] for n in m.columns[1]], m.inverse_dynamics(q, still, still), 1e-8)
    close(rest.q, q, 1e-15)
    assert np.abs(bc.linearize(m, at=rest).rate).max() < 1e-7


def test_a_linkage_rests_where_its_energy_is_least() -> None:
    m = bc.zoo.four_bar()
    rest = bc.equilibrium(m)
    around = [m.assemble({"A": rest.q[0] + d}, fixed=["A"])[0] for d in (-1e-3, 0.0, 1e-3)]
    below, here, above = (float(m.potential_energy(q)) for q in around)
    assert here < min(below, above)
    assert abs(above - below) < 1e-6 * (above + below - 2 * here) / 1e-3
    by_A, by_D = (bc.linearize(m, at=rest, independent=[n]).modes().frequencies for n in ("A", "D"))
    close(by_A, by_D, 1e-9)
    assert len(by_A) == 1


def test_any_joint_of_a_linkage_can_be_held_by_any_torque() -> None:
    m = bc.zoo.four_bar()
    for held in m.columns[0]:
        for free in m.columns[1]:
            rest = bc.equilibrium(m, hold={f"{held}.q": 0.1}, free=[f"{free}.tau"])
            close(rest.q[m.columns[0].index(held)], 0.1, 1e-9)
            tau = [rest.inputs[f"{n}.tau"] for n in m.columns[1]]
            close(m.forward_dynamics(rest.q, [0.0] * 3, tau), np.zeros(3), 1e-7)
            assert sum(x != 0.0 for x in tau) == 1


def test_ball_joint_hangs() -> None:
    """A ball joint has three displacements although its quaternion has four coordinates."""
    b = bc.Builder("bell")
    b.body("bell", mass=2.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    b.joint("ball", "spherical", "ground", "bell")
    m = b.build()
    start = np.array([0.3, -0.2, 0.1, 0.0])
    start[3] = np.sqrt(1.0 - start @ start)
    rest = bc.equilibrium(m, at=start)
    close(m.com(rest.q), [0.0, 0.0, -0.5], 1e-9)
    assert rest.solved == ("ball.0.q", "ball.1.q", "ball.2.q")
    held = bc.equilibrium(m, at=start, hold="q")
    close(m.forward_dynamics(start, [0.0] * 3, list(held.inputs.values())), np.zeros(3), 1e-9)


@pytest.mark.long
def test_legs_hold_a_platform() -> None:
    """The forces of six legs with ball and universal joints are those of inverse dynamics."""
    m = bc.zoo.stewart()
    q, still = bc.zoo.start(m)[0], np.zeros(m.nv)
    legs = [n for n in m.columns[1] if n.startswith("P")]
    rest = bc.equilibrium(m, at=q, hold="q", free=[f"{n}.tau" for n in legs])
    expected = m.inverse_dynamics(q, still, still, actuated=legs)
    close([rest.inputs[f"{n}.tau"] for n in m.columns[1]], expected, 1e-8)


def test_columns_of_a_record_can_be_held() -> None:
    rest = bc.equilibrium(pendulum(), at={"hinge.q": 0.5}, hold={"end.z": -0.25}, free=["hinge.tau"])
    close(rest.q, [np.pi / 3], 1e-9)
    close(rest.inputs["hinge.tau"], 2.0 * 9.81 * 0.5 * np.sin(np.pi / 3), 1e-8)


def test_free_numbers_can_be_solved_for() -> None:
    """Find the stiffness that holds a pendulum at 0.4 rad."""
    b = bc.Builder("sprung")
    b.body("bob", mass=2.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0), stiffness=bc.parameter("k", 30.0), rest=1.0)
    rest = bc.equilibrium(b.build(), at={"hinge.q": 0.4}, hold=["hinge.q"], free=["k"])
    close(rest.parameters["k"], 9.81 * np.sin(0.4) / 0.6, 1e-9)


def test_a_servo_rests_below_its_target() -> None:
    plant = bc.system(pendulum(), [PD("hinge", 30.0, 2.0)], lambda t, q, v, x, u: [u["target"]], inputs=["target"])
    rest = bc.equilibrium(plant, at={"target": 0.7})
    close(30.0 * (0.7 - rest.q[0]), 9.81 * np.sin(rest.q[0]), 1e-9)
    asked = bc.equilibrium(plant, hold={"hinge.q": 0.7})
    close(asked.inputs["target"], 0.7 + 9.81 * np.sin(0.7) / 30.0, 1e-9)
    run = bc.simulate(plant, 10.0, q0=asked.q, inputs=asked.inputs)
    close(run.q[-1], asked.q, 1e-9)


def test_the_hydraulic_excavator_rests_on_its_oil() -> None:
    """The closed valves overlap and leak: to hold the arm each must open slightly."""
    given = {key: x for key, x in parts().items() if key not in ("control", "inputs")}
    plant = bc.system(**given)
    rest = bc.equilibrium(plant, hold="q")
    lin = bc.linearize(plant, at=rest)
    assert np.abs(lin.rate[:8]).max() < 1e-6
    assert np.abs(lin.rate[8:]).max() < 1.0  # Pa/s, compared with ten million
    overlap = given["actuators"][1].valve.overlap
    assert overlap < rest.inputs["boom_cylinder.command"] < overlap + 1e-3
    command = list(rest.inputs.values())
    run = bc.simulate(bc.system(**given, control=lambda t, q, v, x, u: command), 1.0, x0=rest.x, step=1e-3)
    assert np.abs(run.q[-1]).max() < 1e-9


def test_impossible_equilibrium_raises() -> None:
    with pytest.raises(
        bc.EquilibriumError, match=r"hinge.v changes by -13\.\d+ a second; none of the unknowns"
    ) as error:
        bc.equilibrium(pendulum(), hold={"hinge.q": 1.0}, free=[])
    assert error.value.nearest.q[0] == 1.0
    assert "does not rest" in str(error.value.nearest)
    with pytest.raises(bc.EquilibriumError, match=r"end.z is .*, but was to be held at -0.9"):
        bc.equilibrium(pendulum(), hold={"end.z": -0.9}, free=["hinge.tau"])


def test_undetermined_coordinate_keeps_its_value() -> None:
    b = bc.Builder("turntable")
    b.body("table", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
    b.joint("turn", "revolute", "ground", "table", axis=(0, 0, 1))
    rest = bc.equilibrium(b.build(), at={"turn.q": 0.3})
    assert rest.q[0] == 0.3
    assert rest.undetermined == ("turn.q",)
    assert "of many" in str(rest)


def test_an_equilibrium_is_a_guess_for_another_plant() -> None:
    """Without its control a plant has forces as inputs; with it, the control sets them."""
    m = pendulum()
    rest = bc.equilibrium(m, at={"hinge.q": 0.5}, hold="q")
    lin = bc.linearize(m, at=rest)
    closed = bc.system(m, control=lin.feedback([[20.0, 3.0]]))
    close(bc.equilibrium(closed, at=rest).q, [0.5], 1e-9)
    heavier = replace(m, bodies=tuple(replace(b, mass=2 * b.mass) for b in m.bodies))
    close(bc.equilibrium(heavier, at=rest, hold="q").inputs["hinge.tau"], 2 * rest.inputs["hinge.tau"], 1e-9)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"hold": "hing.q"}, 'no element or column "hing.q".*hinge.q'),
        ({"hold": ["hinge.v"]}, "Velocities are zero"),
        ({"hold": [3]}, "3 is not a name"),
        ({"hold": 3}, "hold is 3; expected a list of names"),
        ({"free": ["hinge.taus"]}, 'no input "hinge.taus"'),
        ({"hold": ["hinge.tau"], "free": ["hinge.tau"]}, "is in hold and in free"),
        ({"at": {"q": [[0.1], [0.2]]}}, "from one guess"),
        ({"at": {"elbow.q": 0.1}}, 'no element "elbow.q"'),
    ],
)
def test_bad_input(arguments: dict[str, object], match: str) -> None:
    with pytest.raises(bc.InputError, match=match):
        bc.equilibrium(pendulum(), **arguments)


def test_moving_prescribed_motion_is_no_equilibrium() -> None:
    """A moving prescription is refused, a constant one accepted.

    In a search for rest, constraint stabilisation would balance the moving one at a position beside it.
    """
    m = pendulum()
    joint = m.columns[1][0]
    with pytest.raises(bc.EquilibriumError, match=r"goes on: speed 0\.5, acceleration 0\.2"):
        bc.equilibrium(bc.system(m, motions={joint: lambda t: 0.3 + 0.5 * t + 0.1 * t * t}))
    found = bc.equilibrium(bc.system(m, motions={joint: lambda t: 0.3}))
    assert abs(found.q[0] - 0.3) < 1e-9


@pytest.mark.filterwarnings("ignore:.*it cannot move")
@few(3)
@given(
    st.lists(st.sampled_from(["revolute", "prismatic", "cylindrical", "spherical", "floating"]), min_size=1, max_size=2)
)
def test_mechanism_without_freedom_rests_where_it_is(kinds: list[str]) -> None:
    """The point itself is the equilibrium if nothing can change; this once ended in an IndexError."""
    b = bc.Builder("locked")
    for i, kind in enumerate(kinds):
        axis = {"axis": (0.3, 0.5 - i, 1.0)} if kind in ("revolute", "prismatic", "cylindrical") else {}
        b.body(f"link{i}", mass=1.0, com=(i, 0.5, 0.0), inertia=(0.1, 0.1, 0.1))
        b.joint(f"joint{i}", kind, f"link{i - 1}" if i else "ground", f"link{i}", point=(i, 0.2, 0.0), **axis)
    b.close("weld", "fixed", "ground", f"link{len(kinds) - 1}", point=(2.0, 1.0, 0.0))
    m = b.build()
    assume(m.loop_analysis.mobility == 0)
    rest = bc.equilibrium(m)
    close(rest.q, m.assemble()[0], 1e-12)
    assert not rest.failures
    assert not rest.solved
    assert bc.linearize(m, inputs=[]).B.shape == (0, 0)


def test_stiff_contact_does_not_excuse_an_acceleration() -> None:
    """A ball on a smooth slope never rests, however stiff the slope is; residuals were measured by its stiffness."""
    b = bc.Builder("slope", gravity=(4.0, 0.0, -9.0))
    b.body("cart", mass=0.1, inertia=(1.0, 1.0, 1.0))
    b.body("ball", mass=1.0, inertia=(1.0, 1.0, 1.0))
    b.joint("up", "prismatic", "ground", "cart", axis=(1, 0, 1))
    b.joint("back", "prismatic", "cart", "ball", axis=(-1, 0, 1))
    m = b.build()
    touch = Contact("touch", "ground", "ball", Plane(), Sphere(0.1), stiffness=1e9, friction=0.0)
    with pytest.raises(bc.EquilibriumError, match="changes by"):
        bc.equilibrium(bc.system(m, elements=[touch]), at={"up.q": np.sqrt(0.02)})
