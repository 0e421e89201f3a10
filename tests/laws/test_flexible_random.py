"""Random trees of rigid bodies and bodies that bend: every method that covers them gives the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build import graphs
from bellcrank.dynamics import METHODS, able

KINDS = ("revolute", "prismatic", "universal", "spherical", "cylindrical")
TAKES = {
    "forward_dynamics": ("q", "v", "x"), "mass_matrix": ("q",), "bias": ("q", "v"),
    "inverse_dynamics": ("q", "v", "x"),
}  # fmt: skip


def random_tree(seed: int) -> Any:
    """Five bodies, each the child of any before it; about half of them beams, with others on their nodes."""
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
    ways = [by.name for by in able(quantity, m.tree)]
    results = []
    for way in ways:
        by = METHODS[way]
        results.append(np.array(by.function(quantity)(graphs.tree(m, quantity, by), *given), float))
    assert len(ways) >= (2 if quantity != "inverse_dynamics" else 1)
    for way, found in zip(ways, results, strict=True):
        assert found == pytest.approx(results[0], rel=1e-10, abs=1e-10 * np.abs(results[0]).max()), way
