"""Quantities of a mechanism inside traced functions: model-based controllers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import InputError


def test_gravity_is_held() -> None:
    arm = bc.zoo.puma600()
    q0 = np.array([0.3, -0.7, 0.4, 0.2, 0.5, 0.1])

    def hold(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return arm.gravity_torque(q) - 5.0 * np.asarray(v)

    run = bc.simulate(bc.system(arm, control=hold), seconds=0.5, step=0.001, q0=q0)
    assert np.abs(run.q - q0).max() < 1e-9
    fallen = bc.simulate(arm, seconds=0.5, step=0.001, q0=q0)
    assert np.abs(fallen.q - q0).max() > 0.1


def test_quantities_accept_symbols_in_every_call_form() -> None:
    arm = bc.zoo.excavator()
    q, v, tau = arm.random(2)
    frame = list(arm.frames)[-1]
    push = np.array([100.0, 0.0, -50.0, 0.0, 3.0, 0.0])

    def body(q: Any, v: Any, tau: Any, w: Any) -> dict[str, Any]:
        return {
            "a": arm.forward_dynamics(q, v, tau, wrenches={frame: w}),
            "M": arm.mass_matrix(list(q)),
            "J": arm.jacobian(q, frame=frame),
            "D": arm.forward_dynamics_derivatives(q, v, tau).dv,
            "T": arm.kinetic_energy(q, v),
        }

    f = bc.compile(body, inputs={"q": arm.nq, "v": arm.nv, "tau": arm.nv, "w": 6}, name="f")
    found = f(q, v, tau, push)
    np.testing.assert_allclose(found["a"], arm.forward_dynamics(q, v, tau, wrenches={frame: push}), rtol=1e-12)
    np.testing.assert_allclose(found["M"], arm.mass_matrix(q), rtol=1e-12)
    np.testing.assert_allclose(found["J"], arm.jacobian(q, frame=frame), atol=1e-12)
    np.testing.assert_allclose(found["D"], arm.forward_dynamics_derivatives(q, v, tau).dv, rtol=1e-10, atol=1e-12)
    assert found["T"] == pytest.approx(arm.kinetic_energy(q, v))


def test_derivative_of_a_called_kernel_is_exact() -> None:
    arm = bc.zoo.puma600()
    q, v, tau = arm.random(0)
    f = bc.compile(lambda q, v, tau: 2.0 * arm.forward_dynamics(q, v, tau), inputs={"q": 6, "v": 6, "tau": 6}, name="f")
    want = arm.forward_dynamics_derivatives(q, v, tau)
    for name, D in zip(("q", "v", "tau"), want, strict=True):
        np.testing.assert_allclose(
            f.derivative(name)(q, v, tau), 2.0 * D, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(D).max())
        )


def test_a_wrong_shape_and_out() -> None:
    arm = bc.zoo.puma600()
    with pytest.raises(InputError, match="shape"):
        bc.compile(lambda q: arm.gravity_torque(q), inputs={"q": 5})
    with pytest.raises(InputError, match="out"):
        bc.compile(lambda q: arm.gravity_torque(q, out=np.zeros(6)), inputs={"q": 6})
