"""Random trees and loops of rigid and flexible bodies: all applicable methods and all loop forms agree."""

from __future__ import annotations

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
from loops import closed

KINDS = ("revolute", "prismatic", "universal", "spherical", "cylindrical")
TAKES = {
    "forward_dynamics": ("q", "v", "x"), "mass_matrix": ("q",), "bias": ("q", "v"),
    "inverse_dynamics": ("q", "v", "x"),
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


@pytest.mark.parametrize("quantity", TAKES)
@pytest.mark.parametrize("seed", range(4))
def test_every_method_gives_the_same(seed: int, quantity: str) -> None:
    m = random_tree(seed)
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
    assert {"aba", "crba", "denoc", "joint_coordinates"} <= {by.name for by in ways}
    for by in ways:
        a = LoopLayer(by, found.rank).forward_dynamics(graphs.quantity_tree(m, "forward_dynamics", by), *given)
        assert np.array(a, float) == pytest.approx(wanted, rel=1e-10, abs=size), by.name
    part = constrained_dynamics.CoordinatePartition(found.rank, tuple(choose_pivots(C)))
    a = constrained_dynamics.minimal(m.tree, rnea.inverse_dynamics, crba.mass_matrix, part, *given)
    assert np.array(a, float) == pytest.approx(wanted, rel=1e-10, abs=size)
