"""Values given to free parameters are refused where the Builder refuses the same nominal values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from trees import few


def pendulum(mass: Any, moments: Any = (0.1, 0.1, 0.1), **joint: Any) -> bc.Mechanism:
    b = bc.Builder("pendulum")
    b.body("bob", mass=mass, com=(0, 0, -1), inertia=tuple(moments))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0), **joint)
    return b.build()


def free() -> bc.Mechanism:
    moments = [bc.parameter(f"I{c}", 0.1) for c in "xyz"]
    return pendulum(bc.parameter("mass", 1.0, "kg"), moments, damping=bc.parameter("damping", 0.1))


M = free()
WAYS = {
    "simulate": lambda m, p: bc.simulate(m, 0.01, parameters=p),
    "Simulator": lambda m, p: bc.Simulator(m).run(0.01, parameters=p),
    "kernel": lambda m, p: bc.kernel(m, "forward_dynamics")([0.0], [0.0], [0.0], parameters=p),
    "at": lambda m, p: m.at({name: np.ravel(x)[-1] for name, x in p.items()}),
    "drive": lambda m, p: bc.Drive(m, parameters={name: np.ravel(x)[-1] for name, x in p.items()}),
    "system": lambda m, p: bc.simulate(bc.system(m, control=lambda t, q, v, x, u: [0.0]), 0.01, parameters=p),
}
WRONG = [
    ({"mass": -1.0}, '"bob" the mass -1; expected zero or more'),
    ({"mass": [1.0, 2.0, -3.0]}, '"bob" the mass -3'),
    ({"mass": np.nan}, '"mass" is nan; expected finite'),
    ({"mass": [1.0, np.inf]}, "is inf; expected finite"),
    ({"Ix": -0.2}, "principal moment of inertia -0.2"),
    ({"Ix": [0.1, 0.5]}, "greater than the sum of the other two, by 0.3"),
    ({"damping": -0.5}, '"hinge" the damping -0.5'),
    ({"weight": 1.0}, 'no parameter "weight"'),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("values", "words"), WRONG, ids=[str(k) for k in range(len(WRONG))])
def test_invalid_values_are_rejected(way: str, values: dict[str, Any], words: str) -> None:
    with pytest.raises(bc.InputError) as caught:
        WAYS[way](M, values)
    assert words in str(caught.value).replace('"mass"[1]', '"mass"')


def test_the_run_of_a_batch_is_named() -> None:
    with pytest.raises(bc.InputError, match=r"mass = -3.*\(run 2 of 3\)"):
        bc.simulate(M, 0.01, parameters={"mass": [1.0, 2.0, -3.0]})


moment = st.floats(-0.05, 0.5).filter(lambda x: abs(x) > 1e-4)


@few(60)
@given(st.floats(-1.0, 2.0).filter(lambda x: abs(x) > 1e-3), moment, moment, moment, st.floats(-0.1, 1.0))
def test_the_builder_and_a_run_agree(mass: float, x: float, y: float, z: float, damping: float) -> None:
    """A number is refused as a parameter value exactly where it is refused in the model."""
    values = {"mass": mass, "Ix": x, "Iy": y, "Iz": z, "damping": damping}
    try:
        pendulum(mass, (x, y, z), damping=damping)
        possible = True
    except bc.ModelError:
        possible = False
    try:
        M.parameters.vector(values)
        accepted = True
    except bc.InputError:
        accepted = False
    assert accepted == possible


def test_numbers_that_follow_from_several() -> None:
    """A mass that is a product of two parameters, and an inertia that depends on it, are checked."""
    density, size = bc.parameter("density", 2.0), bc.parameter("size", 1.0)
    m = pendulum(density * size, [0.1 * density * size] * 3)
    bc.simulate(m, 0.01, parameters={"density": [1.0, 3.0]})
    with pytest.raises(bc.InputError, match=r'density = 3, size = -1.*"bob" the mass -3'):
        bc.simulate(m, 0.01, parameters={"density": 3.0, "size": -1.0})


@pytest.mark.parametrize("target", [{}, {"dtype": "float32"}, {"threads": 2}])
def test_arrays_of_values_are_only_checked_to_be_finite(target: Any) -> None:
    """Arrays of values are only checked to be finite.

    They go directly to machine code, and searches pass through unphysical values (docs/parameters.md).
    """
    kernel, at = bc.kernel(M, "mass_matrix", **target), list(M.parameters).index("mass")
    p = M.parameters.nominal
    p[at] = -1.0
    np.testing.assert_allclose(kernel([0.0], p), [[-0.9]], rtol=1e-6)
    for bad in (np.nan, np.inf):
        p[at] = bad
        with pytest.raises(bc.InputError, match='"mass"'):
            kernel([0.0], p)
