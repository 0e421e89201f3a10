"""Loops do not depend on their size and place: assembly, velocities, natural sizes, and equations far away."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics.loops.assembly import follow_branch
from bellcrank.dynamics.loops.constraint_values import evaluate_constraints, natural_scales
from bellcrank.errors import InputError
from bellcrank.model import Mechanism

SIZES = [1e-6, 1.0, 1e6]  # m
FAR = 2.0**24  # m


def slider_cranks(*sizes: float) -> Mechanism:
    """Return slider-cranks side by side, each with a crank of its size and a rod of three times that."""
    b = bc.Builder("slider_cranks")
    for i, L in enumerate(sizes):
        points = {f"crank{i}": 0.0, f"rod{i}": L, f"slider{i}": 4.0 * L}
        for body, x in points.items():
            b.body(body, mass=1.0, com=(x, 0, 0), inertia=(L * L,) * 3)
        pin = {"axis": (0, 1, 0)}
        b.joint(f"crank{i}", "revolute", "ground", f"crank{i}", point=(0, 0, 0), **pin)
        b.joint(f"rod{i}", "revolute", f"crank{i}", f"rod{i}", point=(L, 0, 0), **pin)
        b.joint(f"slide{i}", "prismatic", "ground", f"slider{i}", axis=(1, 0, 0))
        b.close(f"eye{i}", "revolute", f"rod{i}", f"slider{i}", point=(4.0 * L, 0, 0), **pin)
    return b.build()


def closed(crank: float, size: float) -> dict[str, float]:
    """Return the coordinates in closed form: both pins of the rod are on their circle and line."""
    rod = np.arcsin(-np.sin(crank) / 3.0)
    return {"crank0": crank, "rod0": rod - crank, "slide0": size * (np.cos(crank) + 3.0 * np.cos(rod) - 4.0)}


def speeds(crank: float, size: float) -> dict[str, float]:
    """Return the velocities for a crank at 1 rad/s."""
    e = 1e-5
    ahead, behind = closed(crank + e, size), closed(crank - e, size)
    return {name: (ahead[name] - behind[name]) / (2.0 * e) for name in ahead}


def start(size: float) -> tuple[Mechanism, Any]:
    m = slider_cranks(size)
    return m, m.assemble(closed(0.5, size), fixed=["crank0"])[0]


@pytest.mark.parametrize("size", SIZES)
def test_slide_is_followed_at_any_size(size: float) -> None:
    """A large move of the slide is followed along its branch to the closed form."""
    m, q = start(size)
    wanted = closed(1.9, size)
    q[m.columns[0].index("slide0")] = wanted["slide0"]
    free = np.array([name != "slide0" for name in m.columns[1]])
    found = follow_branch(m.tree, q, free)
    assert found is not None
    for name, x in wanted.items():
        unit = size if name == "slide0" else 1.0
        assert found[m.columns[0].index(name)] == pytest.approx(x, abs=1e-8 * unit), name


@pytest.mark.parametrize("size", SIZES)
def test_fixed_velocities_are_judged_by_the_size_of_their_loop(size: float) -> None:
    m, q = start(size)
    v = speeds(0.5, size)
    _, found = m.assemble(q, {n: v[n] for n in ("crank0", "slide0")}, fixed=["crank0", "slide0"])
    assert found[m.columns[1].index("rod0")] == pytest.approx(v["rod0"], rel=1e-6)
    with pytest.raises(InputError, match="do not allow the velocities of crank0, slide0"):
        m.assemble(q, {"crank0": 1.0, "slide0": 1.01 * v["slide0"]}, fixed=["crank0", "slide0"])


def test_natural_sizes_of_a_loop_do_not_depend_on_other_loops() -> None:
    """Equations and coordinates of a small loop have the same natural sizes beside a large one as alone."""

    def scales(m: Mechanism) -> Any:
        return natural_scales(m.tree, evaluate_constraints(m.tree, m.neutral()).C)

    together, alone = scales(slider_cranks(*SIZES)), [scales(slider_cranks(L)) for L in SIZES]
    np.testing.assert_allclose(together.columns, np.concatenate([one.columns for one in alone]))
    np.testing.assert_allclose(together.rows, np.concatenate([one.rows for one in alone]))
    slides = [k for k, name in enumerate(slider_cranks(*SIZES).columns[1]) if name.startswith("slide")]
    np.testing.assert_allclose(together.columns[slides] / SIZES, together.columns[slides[1]])


@pytest.mark.parametrize("base", ["ground", "carrier"])
def test_equations_far_from_the_origin_lose_no_digits(base: str) -> None:
    """Lengths and the far place are dyadic, so that the far mechanism has exactly the shape of the near one."""

    def bars(x: float, first: float) -> Mechanism:
        b = bc.Builder("bars")
        b.body("carrier", mass=1.0, com=(first, 0, 0), inertia=(1, 1, 1))
        b.joint("carrier", "revolute", "ground", "carrier", point=(first, 0, 0), axis=(0, 1, 0))
        for i, name in enumerate("ab"):
            b.body(name, mass=1.0, com=(x + i + 1.0, 0, 0), inertia=(1, 1, 1))
            b.joint(name, "revolute", "ab"[i - 1] if i else base, name, point=(x + i + 0.5, 0, 0), axis=(0, i, 1 - i))
        b.close("tie", "distance", base, "b", point_a=(x, 0.25, 0.5), point_b=(x + 2.0, 0.5, 0))
        b.close("pin", "spherical", base, "b", point=(x + 1.25, 0.25, 0.5))
        return b.build()

    near = evaluate_constraints(bars(0.0, 0.0).tree, np.full(3, 0.3))
    for first in (0.0, FAR):
        far = evaluate_constraints(bars(FAR, first).tree, np.full(3, 0.3))
        np.testing.assert_allclose(far.value, near.value, rtol=0.0, atol=1e-14)
        np.testing.assert_allclose(far.C, near.C, rtol=0.0, atol=1e-14)
