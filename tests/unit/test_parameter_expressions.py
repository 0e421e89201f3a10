"""Free parameters: expressions, their table, names in a mechanism, calls, and errors."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.graph import trace
from bellcrank.model.parts import Joint
from bellcrank.parameters import Free, Parameters, has_free, nominal
from bellcrank.scalar import is_zero, maximum, minimum, sin, sqrt, where

m, x = bc.parameter("m", 2.0, "kg"), bc.parameter("x", 0.0)


def test_folding() -> None:
    """Terms that cancel are not written, so that a zero mass is not the denominator of its own centre of mass."""
    h = x * m
    assert h / m is x
    assert m - m == 0.0
    assert (3.0 + h) - h == 3.0
    back = -h
    assert -back is h
    assert (m / x) * x is m
    assert (1.0 * m is m, 0.0 * m, m + 0.0 is m, m / m) == (True, 0.0, True, 1.0)


def test_decisions_are_those_of_a_number_that_may_change() -> None:
    assert not is_zero(x)
    assert x != 0.0
    assert bool(x)
    with pytest.raises(bc.TraceError, match=r"branches on a comparison of free parameters \(m\)"):
        bool(m > 1.0)
    with pytest.raises(bc.TraceError, match="cannot become a float"):
        float(m)


def test_one_interpreter() -> None:
    """Nominal values, arrays and nodes come from the same evaluator."""
    y = where(m < 3.0, sin(x) + sqrt(m), maximum(m, 4.0)) + minimum(x, -1.0) * np.float64(2.0) - abs(x)
    assert nominal(y) == pytest.approx(np.sqrt(2.0) - 2.0)
    g = trace("y", lambda q: {"y": [q + y, y]}, {"q": ()}, ["m", "x"])
    assert g.inputs == {"q": (), "p": (2,)}
    p = np.array([[2.0, 0.0], [5.0, 0.3]])
    expected = [np.sqrt(2.0) - 2.0, 5.0 - 2.0 - 0.3]
    np.testing.assert_allclose(g.evaluate(q=1.0, p=p)["y"][:, 1], expected)
    np.testing.assert_allclose(g.evaluate(q=1.0, p=p)["y"][:, 0], 1.0 + np.array(expected))


def test_graph_needs_its_parameters() -> None:
    with pytest.raises(bc.TraceError, match=r'free parameter "m" was combined with a traced scalar.*Known: x'):
        trace("y", lambda q: {"y": q * m}, {"q": ()}, ["x"])


def test_arrays() -> None:
    a = np.array([1.0, m, 0.0], dtype=object)
    assert (np.eye(3) @ a)[1] is m
    assert nominal(np.array([1.0, 2.0]) * m).tolist() == [2.0, 4.0]
    assert nominal(m * np.array([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert has_free(a)
    assert not has_free(np.eye(3), (1.0, "m"))


def test_pickle_and_digest() -> None:
    y = m * x + 1.0
    assert isinstance(y, Free)
    assert pickle.loads(pickle.dumps(y)) is y
    assert (bc.parameter("m", 2.0, "kg") * x + 1.0).digest == y.digest
    assert (bc.parameter("m", 2.5, "kg") * x + 1.0).digest != y.digest
    assert f"{m:.3g}" == "m = 2"


@pytest.mark.parametrize("given", [("", 1.0), (3, 1.0), ("m", "1"), ("m", np.nan), ("m", True), ("m", 1.0, 3)])
def test_bad_parameters(given: tuple[object, ...]) -> None:
    with pytest.raises(bc.InputError, match="expected"):
        bc.parameter(*given)  # type: ignore[arg-type]


def test_one_name_means_one_thing() -> None:
    b = bc.Builder("twice")
    b.body("arm", mass=bc.parameter("m", 1.0), com=(0, 0, bc.parameter("m", 2.0)), inertia=(1, 1, 1))
    b.joint("hinge", "revolute", "ground", "arm", axis=(0, 1, 0))
    with pytest.raises(bc.ModelError, match='parameter "m" is 1  in one place and 2  in another'):
        b.build()


def test_parameter_without_effect_is_reported() -> None:
    b = bc.Builder("welded")
    b.body("base", mass=bc.parameter("m", 1.0))
    b.joint("weld", "fixed", "ground", "base")
    b.body("arm", mass=1.0, com=(0, 0, 1), inertia=(1, 1, 1))
    b.joint("hinge", "revolute", "base", "arm", axis=(0, 1, 0))
    made = b.build()
    assert not made.parameters
    assert [line.element for line in made.report.warnings] == ['parameter "m"']


def test_names_of_numbers() -> None:
    arm = bc.zoo.excavator()
    free = arm.free("boom.mass", "boom.com", "gravity.z", "stick.damping")
    assert list(free.parameters) == [
        "boom.com.x",
        "boom.com.y",
        "boom.com.z",
        "boom.mass",
        "gravity.z",
        "stick.damping",
    ]
    assert free.parameters["boom.mass"] == arm.bodies[1].mass
    assert (free.parameters.unit("boom.mass"), free.parameters.unit("gravity.z")) == ("kg", "m/s^2")
    assert "boom.mass = 1830" in str(free)
    assert free.at().fingerprint == arm.fingerprint
    assert free.at({"boom.mass": 1900.0}).bodies[1].mass == 1900.0
    with pytest.raises(bc.InputError, match=r'no number "boom.mas". Did you mean "boom.mass"\? Known: gravity.x'):
        arm.free("boom.mas")
    with pytest.raises(bc.InputError, match=r'"boom.mass" already depends on a parameter'):
        free.free("boom.mass")
    with pytest.raises(bc.InputError, match='give body "boom" the mass -1; expected zero or more'):
        free.at({"boom.mass": -1.0})
    with pytest.raises(bc.InputError, match="takes one value for each parameter"):
        free.at({"boom.mass": [1.0, 2.0]})  # type: ignore[dict-item]


def test_fingerprint_and_pickle() -> None:
    arm = bc.zoo.excavator()
    free = arm.free("boom.mass")
    assert free.fingerprint != arm.fingerprint
    assert free.fingerprint == arm.free("boom.mass").fingerprint != arm.free("stick.mass").fingerprint
    again = pickle.loads(pickle.dumps(free))
    assert again.fingerprint == free.fingerprint
    assert dict(again.parameters) == {"boom.mass": 1830.0}


def test_calls() -> None:
    arm = bc.zoo.excavator()
    free = arm.free("boom.mass", "stick.mass")
    q, v, tau = arm.random(1, batch=3)
    k = bc.kernel(free, "forward_dynamics")
    assert k.signature.inputs["p"] == (2,)
    plain = k(q, v, tau)
    np.testing.assert_array_equal(k(q, v, tau, parameters={}), plain)
    np.testing.assert_array_equal(k(q, v, tau, [1830.0, 688.0]), plain)
    np.testing.assert_array_equal(free.forward_dynamics(q, v, tau, parameters={"boom.mass": 1830.0}), plain)
    p = np.tile([1900.0, 688.0], (3, 1))
    other = k(q, v, tau, p)
    assert np.abs(other - plain).max() > 1e-6
    np.testing.assert_array_equal(k(q, v, tau, parameters={"boom.mass": p[:, 0]}), other)
    np.testing.assert_array_equal(k(q[0], v[0], tau[0], parameters={"boom.mass": [1900, 1900]})[1], k(q, v, tau, p)[0])
    wrenches = {"bucket": [0.0, 0.0, -10.0, 0.0, 0.0, 0.0]}
    heavy = free.forward_dynamics(q, v, tau, wrenches=wrenches, parameters={"boom.mass": 1900.0})
    np.testing.assert_allclose(
        heavy, free.at({"boom.mass": 1900.0}).forward_dynamics(q, v, tau, wrenches=wrenches), rtol=1e-9
    )
    assert free.pose(q, "bucket", parameters={"boom.mass": 1.0}).shape == (3, 4, 4)
    assert pickle.loads(pickle.dumps(k)).signature == k.signature


def test_bad_calls() -> None:
    free = bc.zoo.excavator().free("boom.mass", "stick.mass")
    q, v, tau = free.random(1, batch=3)
    f = free.forward_dynamics
    with pytest.raises(bc.InputError, match=r'no parameter "boom". Did you mean "boom.mass"\? Known: boom.mass, stick'):
        f(q, v, tau, parameters={"boom": 1.0})
    with pytest.raises(bc.InputError, match=r"parameters is 3; expected a mapping"):
        f(q, v, tau, parameters=3)
    with pytest.raises(bc.InputError, match=r"is 'heavy'; expected a number"):
        f(q, v, tau, parameters={"boom.mass": "heavy"})
    with pytest.raises(bc.InputError, match="do not broadcast"):
        f(q, v, tau, parameters={"boom.mass": [1.0, 2.0], "stick.mass": [1.0, 2.0, 3.0]})
    with pytest.raises(bc.InputError, match="leading axes do not broadcast"):
        f(q, v, tau, parameters={"boom.mass": [1.0, 2.0]})
    with pytest.raises(bc.InputError, match=r'parameter "boom.mass" is nan'):
        f(q, v, tau, parameters={"boom.mass": np.nan})
    with pytest.raises(bc.InputError, match='give "p" or "parameters", not both'):
        f(q, v, tau, [1.0, 2.0], parameters={"boom.mass": 1.0})
    with pytest.raises(bc.InputError, match="no free parameters"):
        free.at().forward_dynamics(q, v, tau, parameters={"boom.mass": 1.0})


def test_methods_that_divide_by_a_free_number_decline() -> None:
    free = bc.zoo.excavator().free("boom.armature")
    with pytest.raises(bc.InputError, match=r'"absolute" cannot compute .* free armatures are not supported'):
        bc.kernel(free, "forward_dynamics", method="absolute")


def test_an_axis_needs_another_element() -> None:
    with pytest.raises(bc.ModelError, match="cannot change its direction"):
        _ = bc.zoo.excavator().free("boom.axis.z").tree


def test_builder_checks_nominal_values() -> None:
    b = bc.Builder("bad")
    with pytest.raises(bc.ModelError, match="mass is -1 kg"):
        b.body("arm", mass=bc.parameter("m", -1.0))
    b.body("arm", mass=bc.parameter("m", 0.0), inertia=(1, 1, 1))
    with pytest.raises(bc.ModelError, match="damping is -2"):
        b.joint("hinge", "revolute", "ground", "arm", damping=bc.parameter("d", -2.0))
    b.joint("hinge", "revolute", "ground", "arm", lower=bc.parameter("low", -1.0), upper=1.0)
    assert isinstance(b.build().joints[0], Joint)
    assert Parameters(b.build().joints) == {"low": -1.0}


def test_printed_equations_take_p() -> None:
    """The printed Python code runs and gives M of the mechanism with other parameter values."""
    free = bc.zoo.load("chain(2)").free("link2.mass")
    text = bc.equations(free, "python")
    assert "p: 1 link2.mass" in text
    names: dict[str, Any] = {}
    exec(text, names)
    q = np.array([0.3, -0.8])
    for mass in (1.0, 2.5):
        np.testing.assert_allclose(names["M"](q, [mass]), free.at({"link2.mass": mass}).mass_matrix(q), rtol=1e-10)
