"""Random trees and loops of rigid and flexible bodies: all applicable methods and all loop forms agree."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build import graphs
from bellcrank.dynamics import METHODS, applicable_methods, crba, rnea
from bellcrank.dynamics.loops import constrained_dynamics
from bellcrank.dynamics.loops.constraint_equations import loop_equations
from bellcrank.dynamics.loops.coordinate_partitioning import choose_pivots
from bellcrank.dynamics.loops.loop_layer import LoopLayer
from bellcrank.structures.beam import Beam
from bellcrank.structures.reduction import frequencies
from loops import closed

KINDS = ("revolute", "prismatic", "universal", "spherical", "cylindrical")
TAKES = {
    "forward_dynamics": ("q", "v", "x"), "mass_matrix": ("q",), "bias": ("q", "v"),
    "inverse_dynamics": ("q", "v", "x"), "reactions": ("q", "v", "x"),
}  # fmt: skip


def random_tree(seed: int) -> Any:
    """Five bodies, each the child of any earlier one; about half are beams, with other bodies on their nodes."""
    rng = np.random.default_rng(seed)
    b = bc.Builder(f"random{seed}")
    places = [("ground", np.zeros(3))]
    for i in range(5):
        parent, at = places[rng.integers(len(places))]
        name = f"b{i}"
        axis, second = np.linalg.qr(rng.normal(size=(3, 3)))[0][:, :2].T
        if i == 1 or rng.random() < 0.4:
            along = rng.normal(size=3)
            along = along / np.linalg.norm(along)
            height = float(rng.uniform(0.02, 0.05))
            b.beam(
                name, length=1.0, section=bc.Section.rectangle(0.03, height), material=bc.Material.aluminium(),
                start=at, axis=along, side=np.cross(along, rng.normal(size=3)), elements=4, modes=0, below=600.0,
                nodes={"half": 0.5, "end": 1.0},
            )  # fmt: skip
            places += [(f"{name}.half", at + 0.5 * along), (f"{name}.end", at + along)]
        else:
            b.body(name, float(rng.uniform(0.5, 3)), at + 0.2 * rng.normal(size=3), rng.uniform(0.02, 0.03, 3))
            places.append((name, at + 0.3 * rng.normal(size=3)))
        kind = "floating" if i == 0 and seed % 2 else str(rng.choice(KINDS))
        axes: dict[str, Any] = {} if kind in ("floating", "spherical") else {"axis": axis}
        b.joint(
            f"j{i}", kind, parent, name, point=at, **axes | ({"second_axis": second} if kind == "universal" else {})
        )
    return b.build()


def beams_on_beams(joint: str) -> Any:
    """Two beams on a hub, or on the ground, and a third that only stretches, in three modes, on the end of the first.

    The third has a `joint`, or is welded to the node ("fixed") and so shares its link.
    """
    b = bc.Builder("beams")
    if joint != "ground":
        b.body("hub", 1.0, (0.1, 0, 0), (0.1, 0.2, 0.15))
        b.joint("ball", "spherical", "ground", "hub")
    section, hub = bc.Section.rectangle(0.03, 0.02), "ground" if joint == "ground" else "hub"
    beam: dict[str, Any] = {"length": 1.0, "section": section, "material": bc.Material.aluminium(), "elements": 4}
    b.beam("x", axis=(1, 0, 0), modes=1, **beam)
    b.beam("y", axis=(0, 1, 0), side=(0, 0, 1), modes=1, **beam)
    nodes = {"half": 0.5, "end": 1.0}
    b.beam("z", start=(1, 0, 0), axis=(0, 0, 1), motions=("stretch",), nodes=nodes, modes=1, **beam)
    b.joint("x", "fixed", hub, "x")
    b.joint("y", "fixed", hub, "y")
    axis: dict[str, Any] = {"axis": (1, 0, 0)} if joint == "revolute" else {}
    b.joint("z", "revolute" if axis else "fixed", "x.end", "z", point=(1, 0, 0), **axis)
    b.body("tip", 1.0, (1, 0, 1.1), (0.01, 0.02, 0.015))
    b.joint("hinge", "revolute", "z.end", "tip", axis=(0, 1, 0), point=(1, 0, 1), armature=0.02, damping=0.1)
    return b.build()


MECHANISMS = {
    **{f"random{seed}": partial(random_tree, seed) for seed in range(4)},
    **{f"beams {joint}": partial(beams_on_beams, joint) for joint in ("ground", "fixed", "revolute")},
}


@pytest.mark.parametrize("quantity", TAKES)
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_method_gives_the_same(name: str, quantity: str) -> None:
    m, seed = MECHANISMS[name](), 3
    assert m.flexible
    q, v, x = m.random(seed)
    for body in m.tree.flexible:
        q[list(body.q_index)] *= 10
    given = [{"q": q, "v": v, "x": x}[k].tolist() for k in TAKES[quantity]]
    ways = [by.name for by in applicable_methods(quantity, m.tree)]
    results = []
    for way in ways:
        by = METHODS[way]
        results.append(np.array(by.function(quantity)(graphs.quantity_tree(m, quantity, by), *given), float))
    assert len(ways) >= (2 if quantity != "inverse_dynamics" else 1)
    assert quantity != "forward_dynamics" or {"joint_coordinates_recursive", "absolute"} <= set(ways)
    for way, found in zip(ways, results, strict=True):
        assert found == pytest.approx(results[0], rel=1e-10, abs=1e-10 * np.abs(results[0]).max()), way


@pytest.mark.parametrize(
    ("seed", "kinds"), [(0, ["spherical"]), (1, ["revolute", "distance"]), (2, ["distance", "distance"])]
)
def test_loops_are_the_same_by_every_method_and_in_every_form(seed: int, kinds: list[str]) -> None:
    """Compare with M a = Q + C^T lam, C a = gamma, solved as one system."""
    m, q = closed(random_tree(seed), seed, kinds)
    nv, found = m.nv, m.loop_analysis
    rng = np.random.default_rng(seed)
    tau = rng.uniform(-1, 1, nv)
    still = found.rank.select(loop_equations(m.tree, q, [0.0] * nv))
    C = np.array([[e.row.get(k, 0.0) for k in range(nv)] for e in still], float)
    v = (np.eye(nv) - np.linalg.pinv(C) @ C) @ rng.uniform(-1, 1, nv)
    gamma = np.array([-e.bias for e in found.rank.select(loop_equations(m.tree, q, v.tolist()))], float)
    M = np.array(crba.mass_matrix(m.tree, q), float)
    needed = np.array(rnea.inverse_dynamics(m.tree, q, v.tolist(), [0.0] * nv), float)
    n = len(C)
    wanted = np.linalg.solve(np.block([[M, C.T], [C, np.zeros((n, n))]]), np.concatenate([tau - needed, gamma]))[:nv]
    given = (q, v.tolist(), tau.tolist())
    size = 1e-10 * np.abs(wanted).max()
    ways = [METHODS[by.name] for by in applicable_methods("forward_dynamics", m.tree)]
    nikravesh = {"joint_coordinates", "joint_coordinates_recursive", "absolute"}
    assert {"aba", "crba", "denoc"} | nikravesh <= {by.name for by in ways}
    for by in ways:
        a = LoopLayer(by, found.rank).forward_dynamics(graphs.quantity_tree(m, "forward_dynamics", by), *given)
        assert np.array(a, float) == pytest.approx(wanted, rel=1e-10, abs=size), by.name
    part = constrained_dynamics.CoordinatePartition(found.rank, tuple(choose_pivots(C)))
    a = constrained_dynamics.minimal(m.tree, rnea.inverse_dynamics, crba.mass_matrix, part, *given)
    assert np.array(a, float) == pytest.approx(wanted, rel=1e-10, abs=size)


def nodal_cantilever(elements: int) -> Any:
    """A cantilever in its plane with a node at the end of every element, and without further modes."""
    b = bc.Builder("nodal", gravity=(0, 0, 0))
    nodes = {f"n{i}": i / elements for i in range(1, elements + 1)}
    b.beam(
        "bar", length=2.0, section=bc.Section.rectangle(0.03, 0.02), material=bc.Material.steel(), theory="euler",
        elements=elements, nodes=nodes, modes=0, motions=("bend_y",),
    )  # fmt: skip
    b.joint("clamp", "fixed", "ground", "bar")
    return b.build()


@pytest.mark.parametrize("method", ["crba", "joint_coordinates_recursive", "absolute"])
def test_nodal_coordinates_bend_as_a_cantilever(method: str) -> None:
    """With a node at the end of every element, the coordinates are the displacements of the nodes in another basis.

    A load at the end bends the cantilever exactly as in closed form, and all frequencies are those of the elements.
    """
    elements, L, EI, rhoA = 4, 2.0, 210e9 * 0.03 * 0.02**3 / 12, 7850 * 0.03 * 0.02
    m = nodal_cantilever(elements)
    assert m.nv == 2 * elements  # w and a rotation of each node
    load = np.array([[0.0, 0.0, 10.0, 0.0, 0.0, 0.0]])
    by, still = METHODS[method], [0.0] * m.nv

    def acceleration(q: Any) -> Any:
        """Return the acceleration at rest, with the load at the end."""
        return np.array(
            by.function("forward_dynamics")(m.tree, list(q), still, still, ["bar.n4"], load.tolist()), float
        )

    pushed = acceleration(still)
    slope = np.array([acceleration(row) - pushed for row in np.eye(m.nv)]).T
    q = np.linalg.solve(slope, -pushed)
    x = np.linspace(0, L, elements + 1)[1:]
    w = [m.pose(q, frame=f"bar.n{i}")[2, 3] for i in range(1, elements + 1)]
    assert w == pytest.approx(load[0, 2] * x**2 * (3 * L - x) / (6 * EI), rel=1e-9)

    beam = Beam(L, bc.Section.rectangle(0.03, 0.02), bc.Material.steel(), elements, "euler")
    in_plane = [6 * i + d for i in range(elements + 1) for d in (2, 4)]
    K, M = (A[np.ix_(in_plane, in_plane)] for A in beam.matrices)
    omega = np.sqrt(np.sort(np.linalg.eigvals(-slope).real))
    assert omega == pytest.approx(np.sort(frequencies(K, M, [0, 1])), rel=1e-8)
    beta = np.array([1.87510407, 4.69409113])
    closed = beta**2 * np.sqrt(EI / (rhoA * L**4))
    # Cubic elements of length h with consistent mass are too stiff by this part, to the first order.
    assert omega[:2] / closed - 1 == pytest.approx((beta / elements) ** 4 / 1440, rel=0.12)
