"""excavator_flexible: weight, sag and frequencies by statics and finite elements; a run compared with the rigid one."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics import crba
from bellcrank.dynamics.loops import constraint_equations as closure
from bellcrank.errors import ModelError
from bellcrank.excavators.geometry import CYLINDERS, JOINTS, Linkage
from bellcrank.excavators.linkage_mechanism import CARRIED_MASSES, LUGS, steelwork
from bellcrank.excavators.linkage_system import parts, resting
from bellcrank.structures.beam import Beam
from bellcrank.structures.beam_sections import polygonal_beam
from bellcrank.structures.reduction import frequencies

LINKAGE = Linkage.of_zoo()
FUNCTIONS = ("swing", *CYLINDERS)
G = 9.80665
STEEL = bc.Material.steel()


@cache
def bends(below: float = 60.0) -> Any:
    return bc.zoo.excavator_flexible(below)


def posed(m: Any, *degrees: float) -> Any:
    wanted = {n: np.radians(a) - b for n, a, b in zip(FUNCTIONS, (0.0, *degrees), LINKAGE.start, strict=True)}
    return m.assemble(wanted, fixed=list(FUNCTIONS))[0]


def locked(m: Any, q: Any) -> Any:
    """Frequencies (Hz) with swing and cylinders held, by elastic and kinetic energy in the loops' null space."""
    J = np.array(closure.closure_jacobian(m.tree, q.tolist()), float)  # on numbers: there is little to compile it for
    held = np.vstack([J, *(np.eye(m.nv)[m.columns[1].index(j)] for j in JOINTS)])
    _, size, vt = np.linalg.svd(held)
    free = vt[np.sum(size > 1e-9 * size[0]) :].T
    K = np.zeros(m.nv)
    for body in m.tree.flexible:
        K[list(body.v_index)] = body.stiffness
    M = np.array(crba.mass_matrix(m.tree, q.tolist()), float)
    square = np.linalg.eigvals(np.linalg.solve(free.T @ M @ free, free.T @ (K[:, None] * free)))
    return np.sort(np.sqrt(square.real)) / (2 * np.pi)


def test_flexible_linkage_keeps_its_mobility_and_adds_modes() -> None:
    m = bends()
    assert m.loop_analysis.mobility == 4 + 3
    assert sum(b.mass for b in m.bodies) == pytest.approx(sum(b.mass for b in bc.zoo.excavator_linkage().bodies))


def test_the_boom_cylinder_carries_all_weights_beyond_its_pin() -> None:
    """Moments about the boom's pin at rest equal the boom cylinder's force times its lever arm."""
    m = bends()
    q = resting(m)
    bent = [body.nodes[0].joint for body in m.flexible]
    forces = m.inverse_dynamics(q, np.zeros(m.nv), np.zeros(m.nv), actuated=[*JOINTS, *bent])
    force = dict(zip(m.columns[1], forces, strict=True))
    assert max(abs(f) for n, f in force.items() if n.startswith(("boom.pin", "stick.pin"))) < 1e-6
    pin, (foot, eye) = m.pose(q, "boom")[:3, 3], (m.pose(q, f)[:3, 3] for f in ("boom_barrel", "boom_eye.b"))
    # All moments except those of the cab and the boom cylinder, half of which loads either end; mass centres from the
    # derivative of energy.
    e, moments = 1e-6, 0.0
    i = list(m.columns[0]).index("boom")
    near = [np.array(q), np.array(q)]
    near[0][i] += e
    near[1][i] -= e
    moments = (m.potential_energy(near[0]) - m.potential_energy(near[1])) / (2 * e)
    along = (eye - foot) / np.linalg.norm(eye - foot)
    arm = abs((eye - pin)[0] * along[2] - (eye - pin)[2] * along[0])
    cylinder = sum(b.mass for b in m.bodies if b.name in ("boom_barrel", "boom_rod"))
    assert force["boom_cylinder"] == pytest.approx(moments / arm, abs=cylinder * G)  # without its own weight
    assert force["boom_cylinder"] > 10 * cylinder * G


def test_sag_needs_few_modes() -> None:
    """Three modes, or a few more with the static shapes of loads at the lugs, which are exact in statics."""
    sags = []
    for m in (bends(), bends(400.0)):
        q = resting(m)
        at = dict(zip(m.columns[0], q, strict=True))
        told = LINKAGE.arm.forward([at[n] + a for n, a in zip(FUNCTIONS, LINKAGE.start, strict=True)])
        sags.append(told[2] - m.pose(q, "tip")[2, 3])
    assert 1e-3 < sags[1] < 2e-2
    assert sags[0] == pytest.approx(sags[1], rel=0.12)


def test_few_modes_give_frequencies_in_every_pose() -> None:
    poses = {"out": (20.0, -40.0, -20.0), "in": (50.0, -140.0, -60.0)}
    found = {
        name: [locked(bends(below), posed(bends(below), *p))[0] for below in (60.0, 400.0)] for name, p in poses.items()
    }
    assert found["in"][1] > 1.4 * found["out"][1]
    for few, exact in found.values():
        assert exact <= few <= 1.1 * exact  # omitted modes make it stiffer, never softer


def test_modes_for_supports_equal_those_of_the_supported_structure() -> None:
    """With all shapes kept, the body is the same; the lowest alone are the modes of the supported, loaded structure."""
    c = polygonal_beam([(0, 0, 0), (1.0, 0, 0.3), (2.0, 0, 0)], lambda s: bc.Section.box(0.1, 0.15, 0.01), STEEL, 0.25)
    at = {"pin": 0, "rod": c.corners[1], "end": c.corners[2]}
    ways = {"supports": {"pin": (0, 1, 2, 3, 5), "rod": (2,)}, "loads": {"end": 300.0}}
    M = c.M.copy()
    rows = 6 * at["end"] + np.arange(3)
    M[rows, rows] += 300.0
    held = [0, 1, 2, 3, 5, 6 * at["rod"] + 2, *(6 * n + d for n in range(1, len(c.nodes)) for d in (1, 3, 5))]
    exact = frequencies(c.K, M, held)[0] / (2 * np.pi)
    structure = bc.flexible(c.K, c.M, c.nodes, at, modes=6, below=1.2 * exact, directions=(0, 2, 4), **ways)
    assert len(structure.omega) == 1
    b = bc.Builder("hinged")
    b.flexible("bar", structure)
    b.joint("hinge", "revolute", "ground", "bar", axis=(0, 1, 0))
    b.body("load", mass=300.0, com=(2, 0, 0), inertia=(1e-9, 1e-9, 1e-9))
    b.joint("on", "fixed", "bar.end", "load", point=(2, 0, 0))
    m = b.build()
    # held at the rod's z: the hinge rotates back by what the mode lifts there
    q, e = m.neutral(), 1e-6
    lift = [
        (m.pose(q + e * row, "bar.rod")[2, 3] - m.pose(q - e * row, "bar.rod")[2, 3]) / (2 * e) for row in np.eye(2)
    ]
    free = np.array([-lift[1] / lift[0], 1.0])
    K = m.tree.flexible[0].stiffness[0]
    assert np.sqrt(K / (free @ m.mass_matrix(q) @ free)) / (2 * np.pi) == pytest.approx(exact, rel=2e-4)


def test_invalid_supports_raise() -> None:
    c = polygonal_beam([(0, 0, 0), (1, 0, 0)], lambda s: bc.Section.circle(0.05), STEEL)
    for ways, text in (
        ({"supports": {"a": (0, 1, 2)}}, "hold 3 displacements"),
        ({"supports": {"a": (0, 1, 2, 3), "b": (1, 0)}}, "six that prevent every rigid motion"),
        ({"supports": {"c": (0,)}}, 'no interface "c"'),
        ({"loads": {"b": -1.0}}, "expected kilograms"),
        ({"directions": (0, 7)}, "expected some of 0 to 5"),
    ):
        with pytest.raises(ModelError, match=text):
            bc.flexible(c.K, c.M, c.nodes, {"a": 0, "b": c.corners[1]}, **ways)
    with pytest.raises(ModelError, match="coincide"):
        polygonal_beam([(0, 0, 0), (0, 0, 0)], lambda s: bc.Section.circle(0.05), STEEL)


def test_a_straight_crooked_beam_is_a_beam() -> None:
    whole = Beam(2.0, bc.Section.circle(0.05), STEEL, 8)
    cut = polygonal_beam(
        [(0, 0, 0), (0, 0.5, 0), (0, 2.0, 0)], lambda s: bc.Section.circle(0.05), STEEL, 0.25, side=(1, 0, 0)
    )
    assert frequencies(*whole.matrices, range(6))[:6] == pytest.approx(
        frequencies(cut.K, cut.M, range(6))[:6], rel=1e-9
    )


def test_plate_masses_equal_the_given_ones() -> None:
    for name in LUGS:
        given = LINKAGE.given[name]
        found = steelwork(given, LUGS[name], CARRIED_MASSES[name], 60.0)
        assert found.mass == pytest.approx(given["mass"], rel=1e-12)
        assert np.abs(found.com[[0, 2]] - given["com"]).max() < 0.1


def test_flexible_excavator_digs_as_the_rigid_one() -> None:
    """Two seconds of the autopilot: equal angles, a sag of millimetres, and two integrators that agree on it."""
    inputs = {"autopilot": 1.0}
    rigid = bc.simulate(bc.system(**parts()), 2.0, step=5e-4, every=0.05, inputs=inputs, form="projected")
    m = bends()
    run = bc.simulate(
        bc.system(**parts(m)), 2.0, q0=resting(m), step=2.5e-4, every=0.05, inputs=inputs, form="projected"
    )
    for name in FUNCTIONS:
        assert np.abs(run[f"{name}.q"] - rigid[f"{name}.q"]).max() < 0.02
    bent = run.q[:, [i for i, n in enumerate(m.columns[0]) if n.startswith(("boom.pin", "stick.pin"))]]
    assert 1e-4 < np.ptp(bent, axis=0).max() < 0.02
    assert run.provenance["loops open by at most"] < 1e-12
