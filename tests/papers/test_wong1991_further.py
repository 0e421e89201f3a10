"""Wong 1991, section 6.4: joints of any kind, closed chains, actuators and friction on the mesh, and its bus."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.dynamics import crba
from bellcrank.dynamics.loops.constraint_equations import closure_jacobian
from bellcrank.errors import InputError
from bellcrank.excavators import spool_control
from bellcrank.model import Mechanism
from bellcrank.papers.wong import Mesh, mesh
from bellcrank.papers.wong.closed_mesh import independent_coordinates
from bellcrank.scheduling.machines import KINDS
from trees import close, few, gripper, random_tree, trees

LOOPS = ("four_bar", "slider_fourbar", "n_four_bar:2", "ring:6", "bricard", "andrews", "double_wishbone")
T800_LINKS = 4


def reference(m: Mechanism, q: Any, v: Any, tau: Any) -> Any:
    """Return the accelerations of a tree by composite bodies, without a compiler."""
    return np.array(crba.forward_dynamics(m.tree, list(q), list(v), list(tau)), dtype=float)


def closed_state(m: Mechanism, seed: int) -> Any:
    """Return positions and velocities that close the loops, and any forces."""
    rng = np.random.default_rng(seed)
    q, _ = m.assemble()
    C = np.array([[float(x) for x in row] for row in closure_jacobian(m.tree, q.tolist())])
    _, sizes, directions = np.linalg.svd(C)
    allowed = directions[(sizes > 1e-9 * sizes[0]).sum() :]
    return q, allowed.T @ rng.normal(size=len(allowed)), rng.normal(size=m.nv)


def links_of(m: Mesh) -> list[int]:
    """Return the number of links of each processor, without the bus."""
    t = m.topology
    return [len([j for j in others if (i, j) not in t.shared]) for i, others in enumerate(t.neighbours)]


@few(8)
@given(trees(max_bodies=4, armature=True, passive=True), st.booleans(), st.booleans(), st.integers(0, 99))
def test_any_joints_in_a_tree(m: Mechanism, balanced: bool, passed: bool, seed: int) -> None:
    """Table 6.1 and more: helical and planar joints, rotors, springs, damping and friction."""
    q, v, tau = m.random(seed)
    found = mesh(m, balanced=balanced, passed=passed)
    close(found.graph.evaluate(q=q, v=v, tau=tau)["a"], reference(m, q, v, tau))
    assert len(found.index) == m.nv * (m.nv + 3) // 2  # m (m + 1)/2 + m
    assert max(links_of(found)) <= T800_LINKS


@pytest.mark.parametrize(("kind", "zeros"), [("prismatic", ("c", "P", "rho")), ("revolute", ("t",))])
def test_values_that_table_6_1_does_not_have_do_not_exist(kind: str, zeros: tuple[str, ...]) -> None:
    m = random_tree(3, [kind, kind])
    assert not any(value.startswith(f"{zero}[") for value in mesh(m).atoms for zero in zeros)


@few(6)
@given(st.integers(0, 10**6), st.lists(st.sampled_from(["revolute", "prismatic", "helical"]), min_size=2, max_size=5))
def test_mimic_joints_have_a_constant_g(seed: int, kinds: list[str]) -> None:
    m = random_tree(seed, kinds, coupled=True, armature=True, passive=True)
    q, v, tau = m.random(seed)
    close(mesh(m).graph.evaluate(q=q, v=v, tau=tau)["a"], reference(m, q, v, tau))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LOOPS)
def test_closed_chains(name: str) -> None:
    m = bc.zoo.load(name)
    found, (q, v, tau) = mesh(m), closed_state(m, 1)
    close(found.graph.evaluate(q=q, v=v, tau=tau)["a"], m.forward_dynamics(q, v, tau), 1e-12)
    n = len(independent_coordinates(m)[0])
    assert {r for r, _ in found.index} == set(range(n + 1))  # no rows for dependent coordinates
    assert max(links_of(found)) <= T800_LINKS
    for kind in KINDS:
        s = found.schedule(kind)
        s.check()
        assert s.bound <= s.makespan


def test_springs_between_bodies_come_from_the_host() -> None:
    b = bc.Builder("sprung")
    for name, parent in (("a", "ground"), ("b", "a"), ("c", "a")):
        b.body(name, mass=1.0, com=(0.2, 0, 0.1), inertia=(0.1, 0.2, 0.2))
        b.joint(f"j{name}", "revolute", parent, name, point=(0.4, 0, 0), axis=(0, 1, 0))
    b.spring("s", "b", "c", (0.7, 0, 0), (0.5, 0, 0.3), stiffness=30.0, damping=2.0, length=0.1)
    m = b.build()
    q, v, tau = m.random(4)
    found = mesh(m)
    close(found.graph.evaluate(q=q, v=v, tau=tau)["a"], reference(m, q, v, tau))
    assert found.atoms["spring[2]"].cpu == (0, 0)
    assert not np.allclose(m.passive_torque(q, v), 0.0)


@pytest.mark.parametrize("own_row", [False, True])
def test_hydraulics_of_the_excavator(own_row: bool) -> None:
    plant = bc.system(bc.zoo.excavator(), spool_control.hydraulics())
    rng = np.random.default_rng(5)
    (q, v), x, u = rng.normal(size=(2, 4)), rng.uniform(50, 900, 8), rng.normal(size=4) * 0.05
    found = mesh(plant, actuator_row=own_row)
    got = found.graph.evaluate(q=q, v=v, x=x, command=u, t=0.0)
    tau, rates = plant.forces(0.0, [*q, *v, *x], list(u))
    close(got["a"], reference(plant.mechanism, q, v, tau))
    close(got["dx"], np.array(rates, dtype=float))
    assert {found.atoms[f"act[{k}]"].cpu[0] for k in (1, 2, 3, 4)} == {-1 if own_row else 0}
    assert max(links_of(found)) <= T800_LINKS
    for kind in KINDS:
        found.schedule(kind).check()


def test_own_row_hides_the_hydraulics() -> None:
    plant, alone = bc.system(bc.zoo.excavator(), spool_control.hydraulics()), mesh(bc.zoo.excavator()).schedule()
    shared, own = (mesh(plant, actuator_row=row).schedule() for row in (False, True))
    assert own.makespan == alone.makespan < shared.makespan


def test_actuators_of_a_closed_chain() -> None:
    m = bc.zoo.four_bar()
    joint = m.columns[1][0]
    plant = bc.system(m, [bc.actuators.SpringDamper(joint, 3.0, 0.5)])
    q, v, _ = closed_state(m, 3)
    tau, _ = plant.forces(0.0, [*q, *v], [])
    for own_row in (False, True):
        a = mesh(plant, actuator_row=own_row).graph.evaluate(q=q, v=v, t=0.0)["a"]
        close(a, m.forward_dynamics(q, v, np.array(tau, dtype=float)), 1e-12)


def test_friction_row() -> None:
    m = gripper()
    q, v, tau = m.random(2)
    found = mesh(m, actuator_row=True)
    assert {found.atoms[f"friction[{k}]"].cpu for k in (1, 2)} == {(-1, 1), (-1, 2)}
    close(found.graph.evaluate(q=q, v=v, tau=tau)["a"], reference(m, q, v, tau))


@pytest.mark.parametrize("kind", KINDS)
def test_bus_carries_one_message_at_a_time(kind: str) -> None:
    """The torso's branches share the bus: without it, a transputer of row 0 would need a fifth link."""
    found = mesh(bc.zoo.torso())
    assert max(links_of(found)) <= T800_LINKS
    assert found.topology.shared
    s = found.schedule(kind)
    s.check()
    hops = [
        hop for m in s.messages for hop in m.hops if hop.channel in found.topology.shared and hop.finish > hop.start
    ]
    hops.sort(key=lambda hop: hop.start)
    assert len({hop.channel for hop in hops}) > 1 or kind == "hidden" or kind == "ideal"
    assert all(a.finish <= b.start + 1e-9 for a, b in pairwise(hops))
    cycles = [found.arrivals[v, to] for (v, to), by in found.message_routes.items()
              if (found.index[by], found.index[to]) in found.topology.shared]  # fmt: skip
    assert len(cycles) == len(set(cycles))


def test_refusals() -> None:
    with pytest.raises(InputError, match="flexible"):
        mesh(bc.zoo.excavator_flexible())
    with pytest.raises(InputError, match="has control"):
        mesh(bc.system(bc.zoo.pendulum(), control=lambda t, q, v: [0.0]))
    with pytest.raises(InputError, match="one program"):
        mesh(bc.zoo.four_bar(), passed=False)
