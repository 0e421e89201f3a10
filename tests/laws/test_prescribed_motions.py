"""Prescribed motions that nothing can impose are refused, and a run that does not follow its motions warns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.errors import InputError
from bellcrank.integrate import INTEGRATORS
from bellcrank.sim.system.prescribed_motions import (
    MIN_FREE_SHARE,
    START_TOLERANCE,
    free_shares,
    integration_error,
    lost_motion,
)
from trees import few

HELD_TEXT = "determine its velocity, so no force can impose another one"


def parallel_slider() -> bc.Mechanism:
    """Return a slider held twice: by a rail, and by a fixed closure that leaves it no freedom."""
    build = bc.Builder("held")
    for k, name in enumerate(("a", "b")):
        build.body(name, mass=1.0 + k, inertia=(0.1, 0.1, 0.1), com=(0.1, 0.0, 0.0))
    build.joint("slide", "prismatic", "ground", "a", axis=(1.0, 0.0, 0.0))
    build.joint("turn", "revolute", "ground", "b", point=(0.0, 1.0, 0.0), axis=(0.0, 0.0, 1.0))
    build.close("weld", "fixed", "ground", "a", point=(0.0, 0.0, 0.0))
    return build.build()


def test_coordinate_fixed_by_loops_cannot_be_prescribed() -> None:
    m = parallel_slider()
    assert m.loop_analysis.mobility == 1
    with pytest.raises(InputError, match=rf'motion of "slide": at the start the closed loops of "held" {HELD_TEXT}'):
        bc.simulate(bc.system(m, motions={"slide": lambda t: 0.1 * t * t}), 0.01)
    run = bc.simulate(bc.system(m, motions={"turn": lambda t: 0.1 * t * t}), 0.1)
    np.testing.assert_allclose(run["turn.q"], 0.1 * run.t**2, atol=1e-9)


def test_redundant_motions_raise() -> None:
    m = bc.zoo.four_bar()
    assert m.loop_analysis.mobility == 1
    first, second = list(m.columns[1])[:2]
    q0, v0 = m.assemble(m.neutral())
    still = {name: float(q0[m.columns[0].index(name)]) for name in (first, second)}
    motions: dict[str, Any] = {name: lambda t, x=x: x + 0.0 * t for name, x in still.items()}
    with pytest.raises(InputError, match=rf'motion of "{second}".* and the other motions of .* {HELD_TEXT}'):
        bc.simulate(bc.system(m, motions=motions), 0.01, q0=q0, v0=v0)
    bc.simulate(bc.system(m, motions={first: motions[first]}), 0.01, q0=q0, v0=v0)


def test_more_motions_than_driving_joints_raise() -> None:
    """The position of a frame moved by two joints is prescribed together with one of these joints."""
    m = bc.zoo.planar3r()
    motions = dict.fromkeys(("link3.x", "link3.y", "joint3", "joint1"), float)
    shares = dict(free_shares(m, motions, np.array([0.4, 0.3, 0.2, 0.0, 0.0, 0.0])))
    assert shares["joint3"] == pytest.approx(1.0)
    assert shares["link3.y"] > 0.1
    assert shares["joint1"] < MIN_FREE_SHARE


def test_inexact_motion_is_named() -> None:
    m = bc.zoo.pendulum()
    (name,) = m.columns[1]
    t, motions = np.array([0.0, 2.0]), {name: lambda t: 0.5 * t}
    assert lost_motion(m, motions, t, np.array([[0.0], [1.0]]), INTEGRATORS["rk4"], 1e-3) == ""
    assert lost_motion(m, motions, t, np.array([[0.0], [1.009]]), INTEGRATORS["rk4"], 1e-3) == ""
    expected = f'motion of "{name}" was not followed: at 2 s it is 1, the run is at 0.9'
    assert lost_motion(m, motions, t, np.array([[0.0], [0.9]]), INTEGRATORS["rk4"], 1e-3) == expected
    assert lost_motion(m, motions, t, np.array([[0.0], [np.nan]]), INTEGRATORS["rk4"], 1e-3) != ""


def test_runs_that_follow_do_not_warn() -> None:
    """pytest turns a warning into an error."""
    m = bc.zoo.slider_fourbar()
    name = m.columns[1][0]
    q0, v0 = m.assemble(m.neutral())
    at = float(q0[0])
    s = bc.system(m, motions={name: lambda t: at + 0.2 * bc.sin(t) ** 2})
    run = bc.simulate(s, 0.5, q0=q0, v0=v0, step=1e-3, batch=3)
    np.testing.assert_allclose(run.q[:, -1, 0], at + 0.2 * np.sin(0.5) ** 2, atol=1e-6)


@few(6)
@given(st.sampled_from(["euler", "midpoint", "rk4"]), st.floats(0.1, 1.0), st.floats(0.5, 4.0), st.integers(1, 3))
def test_error_of_the_integrator_alone_does_not_warn(method: str, size: float, rate: float, bodies: int) -> None:
    """A motion that ends near its begin has hardly a way, and the error of euler exceeded the share of it."""
    m = bc.zoo.chain(bodies)
    name = m.columns[1][-1]
    s = bc.system(m, motions={name: lambda t: size * bc.sin(rate * t)})
    end = round(2.0 * np.pi / rate, 3)
    run = bc.simulate(s, end, v0={name: size * rate}, integrator=method, step=1e-3)  # pytest raises warnings
    assert abs(run[f"{name}.q"][-1] - size * np.sin(rate * end)) < 1e-3


@pytest.mark.parametrize("method", ["euler", "rk4", "midpoint", "rodas4", "abm4"])
def test_larger_error_than_that_of_the_integrator_is_named(method: str) -> None:
    m = bc.zoo.pendulum()
    (name,) = m.columns[1]
    t, motions = np.array([0.0, np.pi]), {name: lambda t: 0.5 * bc.sin(2.0 * t)}
    error = integration_error(name, motions[name], INTEGRATORS[method], np.pi, 1e-3)
    assert error < 1e-4
    for factor, followed in ((0.9, True), (10.0, False)):
        q = np.array([[0.0], [factor * max(error, START_TOLERANCE)]])
        assert (lost_motion(m, motions, t, q, INTEGRATORS[method], 1e-3) == "") == followed
