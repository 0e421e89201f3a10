"""Force elements of large mechanisms in rolled loops equal the straight-line code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.build import policy
from bellcrank.dynamics import crba
from bellcrank.forces import (
    Between,
    Bushing,
    Cable,
    Contact,
    Coupling,
    Element,
    EndStop,
    Gear,
    JointSpring,
    Law,
    NonlinearSpring,
    Plane,
    Sphere,
    curve,
    damping_of,
)
from bellcrank.graph import Recursion
from bellcrank.model import Mechanism
from bellcrank.sim.program import step_limits
from bellcrank.sim.run.simulator import Simulator
from trees import close, few, random_tree, trees

PROGRESSIVE = curve([(-0.5, -900.0), (-0.1, -50.0), (0.0, 0.0), (0.1, 60.0), (0.5, 400.0)])


def pull(t: Any, pose: Any, velocity: Any) -> tuple[list[Any], list[Any]]:
    return [pose[0, 3] * t, -velocity[1], pose[2, 1]], [velocity[3], pose[2, 0], -velocity[5]]


def wave(t: Any, pose: Any, velocity: Any) -> tuple[list[Any], list[Any]]:
    """A sine of a sine: the outer angle is available later than all joint angles."""
    return [bc.sin(pose[0, 3] + bc.cos(pose[1, 3])), 0.0, 0.0], [0.0, bc.cos(2.0 * bc.sin(pose[2, 3])), 0.0]


def between(a: str, b: str, k: int) -> list[Between]:
    """One element of each sort, with individual parameters."""
    x = 1.0 + 0.1 * k
    return [
        Bushing(f"rubber{k}", a, b, (90.0 * x, 80.0, 70.0, 3.0, 2.0 * x, 1.0), (1.0, 2.0, 3.0, 0.1, 0.2, 0.3)),
        Cable(f"rope{k}", a, b, length=0.1 * x, stiffness=50.0 * x, damping=2.0),
        NonlinearSpring(f"spring{k}", a, b, PROGRESSIVE, None, 0.6 * x),
        Contact(f"balls{k}", a, b, Sphere(0.5 * x), Sphere(0.7), stiffness=100.0 * x, bristles=30.0),
        Contact(f"plane{k}", a, b, Plane(), Sphere(2.0 * x), stiffness=100.0),
        Law(f"law{k}", a, b, pull),
        Law(f"wave{k}", a, b, wave),
    ]


def everything(m: Mechanism, ends: list[tuple[str, str]]) -> list[Element]:
    found: list[Element] = [e for k, (a, b) in enumerate(ends) for e in between(a, b, k)]
    single = [name for name in m.columns[1] if name in m.columns[0]]
    for k, name in enumerate(single):
        found.append(EndStop(f"stop{k}", (name,), -0.2 - 0.1 * k, 0.3, 400.0, damping_of(0.4, 0.8)))
        found.append(JointSpring(f"twist{k}", (name,), PROGRESSIVE, rest=0.05 * k))
        if k:
            found.append(Gear(f"gear{k}", (single[k - 1], name), 1.5 + k, 30.0, 0.1, 0.5))
    return found


def remembering(t: Any, q: Any, v: Any, x: Any, u: Any) -> tuple[dict[str, Any], list[Any]]:
    """A control without forces whose own state follows those of the elements."""
    return {}, [1.0 - x["memory"]]


def results(m: Mechanism, elements: list[Element]) -> tuple[Any, Any, Any]:
    """Return dy/dt, the outputs of the elements, and the graph of dy/dt."""
    s = bc.system(m, elements=elements, control=remembering, states={"memory": 0.3})
    by = Simulator(s, "rk4").dynamics
    q, v, _ = m.random(5)
    y = np.concatenate([q, v, 0.01 * np.arange(1.0, 1.0 + s.nx)])
    given = {"p": s.parameters.nominal} if s.parameters else {}
    shown = by.outputs.evaluate(t=0.7, y=y, **given)
    return by.f.evaluate(t=0.7, y=y, **given)["dy"], np.concatenate([shown["acts"], shown["element"]]), by.f


def looped(patch: pytest.MonkeyPatch, few: int = 1) -> None:
    patch.setattr(policy, "MIN_PASS_BODIES", 1)
    patch.setattr(policy, "MIN_BODIES_PER_CLASS", 0)
    patch.setattr(policy, "MIN_KIND_ELEMENTS", few)


@few(3)
@given(trees(max_bodies=4), st.integers(1, 4), st.integers(1, 3), st.randoms(use_true_random=False))
def test_passes_agree_with_written_out_elements(m: Mechanism, few: int, slots: int, random: Any) -> None:
    """Elements act between any frames, including the ground's, in loops and singly, several on one body."""
    body = {name: f.body for name, f in m.frames.items()}
    pairs = [(a, b) for a in m.frames for b in m.frames if body[a] != body[b]]
    ends = random.sample(pairs, min(4, len(pairs)))
    want = results(m, everything(m, ends))
    with pytest.MonkeyPatch.context() as patch:
        looped(patch, few)
        patch.setattr(policy, "MAX_BODY_WRENCHES", slots)
        found = results(m, everything(m, ends))
    close(found[0], want[0], 1e-10)
    close(found[1], want[1], 1e-10)


def test_free_numbers_and_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Element parameters may be free, also inside functions; and machine code steps as straight-line code does."""
    runs = []
    for _ in range(2):
        m = bc.zoo.chain(3, twist="general").free("link2.mass", "joint3.point.x")
        k, hidden = bc.parameter("k", 40.0), bc.parameter("k0", 2.0)
        free = [replace(e, stiffness=k * 2.0) for e in between("link1", "link3", 0) if isinstance(e, Cable)]
        law = Law("mine", "ground", "link2", lambda t, X, V, k=hidden: ([-k * V[0], 0.0, X[0, 3]], [0.0, 0.0, 0.0]))
        ball = Contact("balls1", "link1", "link3", Sphere(0.3), Sphere(0.5), 1e3, 0.01, bristles=3.0)
        more = [e for e in between("link1", "link3", 2) if not isinstance(e, Contact)]
        plant = bc.system(m, elements=[*free, law, ball, *more], parameters=[hidden])
        given = {"link2.mass": 1.5, "k": 55.0, "k0": 3.0}
        # Steps that resolve the contact: those of large mechanisms are never implicit in it.
        runs.append(bc.simulate(plant, seconds=0.02, step=5e-3, q0=m.random(0)[0], parameters=given))
        looped(monkeypatch)
    close(runs[1].q, runs[0].q, 1e-10)
    for name in ("rope0.fy", "rope0.energy", "mine.fx", "balls1.loss", "balls1.bristlex"):
        close(runs[1][name], runs[0][name], 1e-10)


def test_implicit_steps_of_closed_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jacobians of the minimal form also pass through calls."""
    runs = []
    for _ in range(2):
        m = bc.zoo.four_bar()
        twist = [JointSpring(f"twist{k}", (name,), PROGRESSIVE) for k, name in enumerate(m.columns[1])]
        plant = bc.system(m, elements=twist)
        start = m.assemble(m.neutral(), np.ones(m.nv))
        how = {"q0": start[0], "v0": start[1], "integrator": "rodas4", "form": "minimal"}
        runs.append(bc.simulate(plant, 0.02, step=2e-3, **how))
        looped(monkeypatch)
    close(runs[1].q, runs[0].q, 1e-10)
    close(runs[1].v, runs[0].v, 1e-10)


def snake(n: int) -> Mechanism:
    """A chain with force elements between its bodies only, so that momentum is conserved."""
    b = bc.Builder("snake", gravity=(0, 0, 0))
    for i in range(n):
        b.body(f"l{i}", mass=1.0 + 0.01 * i, com=(0.1, 0, 0), inertia=(0.01, 0.02, 0.025))
        if i == 0:
            b.joint("free", "floating", "ground", "l0")
        else:
            b.joint(f"j{i}", "revolute", f"l{i - 1}", f"l{i}", axis=(0, i % 2, 1 - i % 2), point=(0.2, 0, 0))
    return b.build()


def test_a_run_of_many_keeps_momentum_and_energy() -> None:
    m = snake(70)
    ends = [(f"l{i}", f"l{i + 3}") for i in range(67)]
    elements = [Bushing(f"e{i}", a, b, (9.0 + i,) * 3 + (0.0,) * 3, (0.2,) * 6) for i, (a, b) in enumerate(ends)]
    run = bc.simulate(bc.system(m, elements=elements), 0.05, m.neutral(), 0.1 * m.random(1)[1], step=5e-4)
    P = m.momentum(run.q, run.v)
    assert np.abs(P[:, :3] - P[:1, :3]).max() < 1e-9 * np.abs(P).max()
    about = P[:, 3:] + np.cross(m.com(run.q), P[:, :3])
    assert np.abs(about - about[:1]).max() < 1e-9 * np.abs(about).max()
    assert run.residuals()["energy"] < 1e-6


def test_a_thousand_are_one_loop() -> None:
    m = bc.zoo.chain(200)
    elements = [Cable(f"c{i}", f"link{i}", f"link{i + 2}", 0.5 + 1e-3 * i, 50.0 + i, 0.1) for i in range(1, 199)]
    f = Simulator(bc.system(m, elements=elements), "rk4").dynamics.f
    assert all(isinstance(g, Recursion) for g in f.calls)
    (loop,) = (g for g in f.calls if g.name.endswith(".elements"))
    assert isinstance(loop, Recursion)
    assert loop.counts == [198]
    assert f.count().arithmetic == sum(g.count().arithmetic for g in f.calls)


class Magnet(Between):
    """An element with a number that is not a field."""

    def __init__(self, name: str, a: str, b: str, strength: float) -> None:
        super().__init__(name, a, b)
        object.__setattr__(self, "strength", strength)

    def __call__(self, t: Any, pose: Any, velocity: Any, x: Any) -> Any:
        return [self.strength, 0.0, 0.0], [0.0, 0.0, 0.0], []  # type: ignore[attr-defined]


class Named(Between):
    """An element whose name determines its force."""

    def __call__(self, t: Any, pose: Any, velocity: Any, x: Any) -> Any:
        return [float(self.name.removeprefix("e")), 0.0, 0.0], [0.0, 0.0, 0.0], []


class Jointed(Coupling):
    def __call__(self, t: Any, q: Any, v: Any, x: Any) -> Any:
        return [float(self.joints[0].removeprefix("joint")) - 1.0], []


@pytest.mark.parametrize("kind", ["magnet", "named", "jointed"])
def test_elements_of_a_custom_class_are_evaluated_separately(kind: str) -> None:
    """Each of six elements of a user's class is evaluated separately, because it may depend on anything."""
    made: dict[str, Any] = {
        "magnet": lambda i: Magnet(f"e{i}", "ground", f"link{i + 1}", float(i)),
        "named": lambda i: Named(f"e{i}", "ground", f"link{i + 1}"),
        "jointed": lambda i: Jointed(f"e{i}", (f"joint{i + 1}",)),
    }
    run = bc.simulate(bc.system(bc.zoo.chain(70), elements=[made[kind](i) for i in range(6)]), 1e-4, step=1e-4)
    columns = [f"e{i}.joint{i + 1}" if kind == "jointed" else f"e{i}.fx" for i in range(6)]
    assert [float(run[name][0]) for name in columns] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


@few(10)
@given(trees(max_bodies=7))
@example(random_tree(0, ["revolute", "revolute"], []))
def test_element_frequencies_agree_without_the_mass_matrix(m: Mechanism) -> None:
    body = {name: f.body for name, f in m.frames.items()}
    pairs = [(a, b) for a in m.frames for b in m.frames if body[a] != body[b]][:6]
    q, _, _ = m.random(2)
    M = np.array(crba.mass_matrix(m.tree, q.tolist()), float)
    if m.tree.coupled or np.linalg.cond(M) > 1e6:
        return
    elements = everything(m, pairs)
    close(
        step_limits._frequencies_by_bodies(m.tree, m, elements, q),
        step_limits._frequencies_by_matrix(m.tree, m, elements, q),
        1e-8,
    )
