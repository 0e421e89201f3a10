"""A mechanism with a free parameter at some value equals the mechanism built with that value.

This holds by every method, in every quantity, from any nominal value, and for first derivatives.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.build import graphs
from bellcrank.dynamics import QUANTITIES, applicable_methods, singular_mass
from bellcrank.dynamics.quantities import Request
from bellcrank.errors import InputError, ModelError
from bellcrank.model import Mechanism, mechanism_of
from bellcrank.parameters import Parameters
from trees import ALL, HOLONOMIC, SINGLE, close, few, random_tree, trees

Array = np.ndarray[Any, Any]

# A kind of number: its location, and values that it may have.
ORDINARY = (0.0, 0.35, -0.6, 1.0)
POSITIVE = (0.0, 0.4, 1.0, 2.5)
NUMBERS: dict[str, tuple[float, ...]] = {
    "b.mass": POSITIVE,
    "b.com.x": ORDINARY,
    "b.com.z": ORDINARY,
    "b.inertia.xx": (1.0, 1.4),
    "b.inertia.yz": (0.0, 0.05, -0.02),
    "j.point.x": ORDINARY,
    "j.point.y": ORDINARY,
    "j.point.z": ORDINARY,
    "j.axis.x": (0.0, 0.3, -0.8),
    "j.axis.z": (0.0, 0.3, -0.8),
    "j.armature": POSITIVE,
    "j.damping": POSITIVE,
    "j.friction": POSITIVE,
    "j.friction_speed": (0.1, 1.0),
    "j.stiffness": POSITIVE,
    "j.rest": ORDINARY,
    "f.point.x": ORDINARY,
    "gravity.x": (0.0, 1.0, -9.81),
    "gravity.z": (0.0, 1.0, -9.81),
}


def changed(m: Mechanism, name: str, value: float) -> Mechanism:
    """The mechanism rebuilt with another number."""
    part, _, rest = name.partition(".")
    where = "xyz".find(rest[-1])

    def put(old: Any) -> Any:
        return tuple(value if k == where else x for k, x in enumerate(old))

    bodies, joints, frames, gravity = list(m.bodies), list(m.joints), list(m.frames.values()), m.gravity
    number = int(part[1:]) if part != "gravity" else -1
    field = rest.split(".")[0]
    if part == "gravity":
        gravity = put(gravity)
    elif part[0] == "b" and field == "inertia":
        i, k = ("xyz".index(c) for c in rest[-2:])
        I = np.array(m.bodies[number].inertia)
        I[i, k] = I[k, i] = value
        bodies[number] = replace(bodies[number], inertia=tuple(map(tuple, I.tolist())))
    else:
        parts: list[Any] = {"b": bodies, "j": joints, "f": frames}[part[0]]
        at = next(i for i, x in enumerate(parts) if x.name == part)
        old = getattr(parts[at], field)
        if field == "mimic":
            new: Any = replace(old, **{rest.split(".")[1]: value})
        else:
            new = put(old) if isinstance(old, tuple) else value
        if field == "axis":
            new = tuple((np.array(new) / np.linalg.norm(new)).tolist())
        parts[at] = replace(parts[at], **{field: new})
    bodies = [b if b.mass else replace(b, declared=False) for b in bodies]  # a massless one would be refused
    own = [f for f in frames if f.name not in ("ground", *(b.name for b in bodies))]
    return mechanism_of(m.name, bodies, joints, own, gravity=gravity, checks="warn")


def everything(m: Mechanism, p: dict[str, float], seed: int) -> dict[tuple[str, str], Array]:
    """Every quantity by every method: evaluated on plain numbers, and by its graph on free ones."""
    q, v, tau = m.random(seed)
    free = np.array([p.get(name, x) for name, x in m.parameters.items()])  # unchecked: arithmetic holds for any number
    given = {"q": q, "v": v, "tau": tau, "a": tau, "dv": v, "q0": q, "q1": m.random(seed + 1)[0], "p": free}
    out: dict[tuple[str, str], Array] = {}
    for name, row in QUANTITIES.items():
        if name == "multipliers":  # its axes depend on the numbers, which has no effect elsewhere
            continue
        frame = f"f{len(m.bodies) - 1}" if row.option == "frame" else ""
        for method in applicable_methods(name, m.tree):
            if name not in method.solves:  # by tangents of the quantity that it does solve
                continue
            if m.parameters:
                g = graphs.trace_quantity(m, Request(name, method.name, frame), method)
                out[name, method.name] = g.evaluate(**{key: given[key] for key in g.inputs})[name]
                continue
            inputs = [given[key].tolist() for key in row.inputs]
            form = graphs.quantity_tree(m, name, method)
            found = method.function(name)(form, *inputs, **({"frame": frame} if frame else {}))
            out[name, method.name] = np.array(found, dtype=float)
    return out


def agree(free: Mechanism, p: dict[str, float], plain: Mechanism, seed: int, tolerance: float = 1e-10) -> None:
    assert free.parameters
    assert not plain.parameters
    ours, theirs = everything(free, p, seed), everything(plain, {}, seed)
    common = ours.keys() & theirs.keys()
    assert {name for name, _ in common} >= {"forward_dynamics", "inverse_dynamics", "mass_matrix", "pose", "reactions"}
    for key in sorted(common):
        try:
            close(ours[key], theirs[key], tolerance)
        except AssertionError as error:
            raise AssertionError(f"{key}: {error}") from None


@pytest.mark.parametrize("kind", NUMBERS)
@few(3)
@given(data=st.data(), seed=st.integers(0, 1000))
def test_a_free_number_at_a_value_is_that_number(kind: str, data: st.DataObject, seed: int) -> None:
    """From every nominal value, also zeros and the right angles that a quarter of the trees have."""
    kinds = [k for k in ALL if "axis" not in kind or k not in ("spherical", "floating", "universal")]
    m = data.draw(trees(kinds, max_bodies=3, armature=True, passive=True, coupled=True))
    i = data.draw(st.integers(0, len(m.bodies) - 1))
    name = kind if kind.startswith("gravity") else f"{kind[0]}{i}{kind[1:]}"
    nominal, value = data.draw(st.sampled_from(NUMBERS[kind])), data.draw(st.sampled_from(NUMBERS[kind]))
    assume("axis" not in kind or np.linalg.norm([x for x, c in zip(m.joints[i].axis, "xyz") if c != kind[-1]]) > 0.1)
    value = 0.7 if kind == "b.mass" and not value else value  # a body must have a mass
    m = changed(m, name, nominal)
    agree(m.free(name), {name: value}, changed(m, name, value), seed)


@pytest.mark.parametrize("name", ["multiplier", "offset"])
@pytest.mark.parametrize("nominal", [0.0, 1.0, -0.7])
def test_couplings(name: str, nominal: float) -> None:
    m = random_tree(5, SINGLE, coupled=True, armature=True, passive=True)
    joint = next(j for j in m.joints if j.mimic is not None)
    m = changed(m, f"{joint.name}.mimic.{name}", nominal)
    free = m.free(f"{joint.name}.mimic.{name}")
    agree(free, {f"{joint.name}.mimic.{name}": 1.3}, changed(m, f"{joint.name}.mimic.{name}", 1.3), 3)


@pytest.mark.parametrize("nominal", [0.0, 0.2])
def test_pitch(nominal: float) -> None:
    m = changed(random_tree(8, ("revolute", "helical", "revolute")), "j1.pitch", nominal)
    agree(m.free("j1.pitch"), {"j1.pitch": -0.15}, changed(m, "j1.pitch", -0.15), 1)


@pytest.mark.parametrize(("nominal", "value"), [(0.0, 0.7), (0.7, 0.0), (0.4, -0.3)])
def test_planes_that_turn(nominal: float, value: float) -> None:
    """x and y of a planar joint depend on the axis at the given value, not at the nominal one."""
    m = random_tree(8, ("planar", "revolute"))
    first = replace(m.joints[0], axis=(1.0, 0.0, nominal))
    m = replace(m, joints=(first, *m.joints[1:]))
    name = f"{first.name}.axis.z"
    agree(m.free(name), {name: value}, changed(m, name, value), 1)


def test_second_axes() -> None:
    m = random_tree(11, ("revolute", "universal"))
    value = m.joints[1].second_axis[1] + 0.3  # type: ignore[index]
    free = m.free("j1.second_axis.y")
    agree(free, {"j1.second_axis.y": value}, free.at({"j1.second_axis.y": value}), 1)


def table(**given: Any) -> Mechanism:
    """A Denavit-Hartenberg arm; every number of the second row may be free."""
    row = {"d": 0.1, "a": 0.4, "alpha": 90.0, "theta": 0.0, "mass": 2.0, "com": (0.1, 0.0, 0.05)} | given
    first = {"alpha": 0.0, "d": 0.3, "mass": 4.0, "inertia": (0.1, 0.2, 0.3)}
    last = {"joint": "P", "alpha": -90.0, "mass": 1.0, "com": (0.0, 0.1, 0.2), "inertia": (0.1, 0.1, 0.1), "name": "f2"}
    rows = [first, {**row, "inertia": (0.1, 0.2, 0.15)}, last]
    return bc.from_dh("arm", rows, "classic", degrees=True)


@pytest.mark.parametrize("name", ["theta", "alpha", "a", "d", "mass"])
@pytest.mark.parametrize("nominal", [0.0, 1.0, 0.3])
def test_tables(name: str, nominal: float) -> None:
    """A nominal right angle is not folded as a right angle."""
    scale = 90.0 if name in ("theta", "alpha") else 1.0
    free = table(**{name: bc.parameter("x", scale * nominal)})
    for value in (scale, 0.19 * scale, -2.0 * scale if name != "mass" else 2.0):
        agree(free, {"x": value}, table(**{name: value}), 2)


def rod(m: Any, length: Any, payload: Any) -> Mechanism:
    """Numbers computed from parameters, and a weld."""
    b = bc.Builder("rods", gravity=(0, 0, -9.81))
    b.body("upper", mass=2.0, com=(0.2, 0, 0), inertia=(0.01, 0.05, 0.05))
    b.joint("shoulder", "revolute", "ground", "upper", axis=(0, 1, 0))
    b.body("rod", mass=m, com=(0.4 + 0.5 * length, 0, 0), inertia=(0.01, m * length**2 / 12, m * length**2 / 12))
    b.joint("elbow", "revolute", "upper", "rod", point=(0.4, 0, 0), axis=(0, 1, 0))
    b.body("load", mass=payload, com=(0.4 + length, 0, 0.1), inertia=(0.02, 0.02, 0.02))
    b.joint("grip", "fixed", "rod", "load", point=(0.4 + length, 0, 0))
    b.frame("f1", "load", point=(0.4 + length, 0, 0.2))
    return b.build()


@pytest.mark.parametrize("length", [0.5, 0.9])
@pytest.mark.parametrize("payload", [1e-3, 3.0])
def test_expressions_of_parameters_agree_with_numbers(length: float, payload: float) -> None:
    free = rod(bc.parameter("m", 1.5, "kg"), bc.parameter("length", 0.5, "m"), bc.parameter("payload", 0.0, "kg"))
    assert dict(free.parameters) == {"length": 0.5, "m": 1.5, "payload": 0.0}
    agree(free, {"length": length, "payload": payload}, rod(1.5, length, payload), 4)


@few(5)
@given(m=trees(HOLONOMIC, max_bodies=4, passive=True), seed=st.integers(0, 100))
def test_kernels_sweep_without_compiling(m: Mechanism, seed: int) -> None:
    free = m.free("b0.mass", "b0.com", "j0.damping", "gravity.z")
    q, v, tau = m.random(seed, batch=5)
    close(free.forward_dynamics(q, v, tau), m.forward_dynamics(q, v, tau), 1e-10)
    masses, kernel = np.linspace(0.5, 2.0, 5), free.forward_dynamics
    swept = free.forward_dynamics(q, v, tau, parameters={"b0.mass": masses, "gravity.z": -1.62})
    assert free.forward_dynamics is kernel
    for i, mass in enumerate(masses):
        one = changed(changed(m, "b0.mass", float(mass)), "gravity.z", -1.62)
        x = graphs.graph(one, "forward_dynamics", "crba").evaluate(q=q[i], v=v[i], tau=tau[i])
        close(swept[i], x["forward_dynamics"], 1e-10)


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics", "potential_energy"])
def test_derivatives_by_parameters(kind: str, quantity: str) -> None:
    """d/dp of the graph equals differences of rebuilt mechanisms, for nominal values away from kinks and limits."""
    m = random_tree(21, ("revolute", "prismatic", "spherical"), passive=True, armature=True)
    name = kind if kind.startswith("gravity") else f"{kind[0]}0{kind[1:]}"
    m = changed(changed(m, "j0.axis.y", 0.5), "j0.axis.x", 0.4) if "axis" in kind else m
    m = changed(m, name, NUMBERS[kind][1])
    free, h = m.free(name), 1e-4
    q, v, tau = m.random(3)
    values = {"q": q, "v": v, "tau": tau, "a": tau}
    g = graphs.graph(free, quantity, "crba" if quantity == "forward_dynamics" else "auto").jacobian(quantity, "p")
    slope = g.evaluate(**{key: values[key] for key in g.inputs if key != "p"}, p=free.parameters.nominal)
    x0 = free.parameters[name]

    def there(x: float) -> Array:
        plain = graphs.graph(changed(m, name, x), quantity)
        return plain.evaluate(**{key: values[key] for key in plain.inputs})[quantity]

    difference = (8 * (there(x0 + h) - there(x0 - h)) - (there(x0 + 2 * h) - there(x0 - 2 * h))) / (12 * h)
    close(slope[f"d{quantity}_dp"][..., 0], difference, 1e-8)


def test_parameter_reaches_only_dependent_quantities() -> None:
    m = bc.zoo.puma600()
    free = m.free("link6.mass")
    for name in ("pose", "jacobian"):
        g = graphs.graph(free, name, frame="link3")
        assert not any(node.op == "input" and node.args[0] == "p" for node in g.nodes)
        assert g.count() == graphs.graph(m, name, frame="link3").count()
    few_more = graphs.graph(free, "inverse_dynamics").count().arithmetic
    assert few_more < 1.2 * graphs.graph(m, "inverse_dynamics").count().arithmetic
    assert graphs.graph(m.free("gravity.z"), "bias").count().arithmetic == graphs.graph(m, "bias").count().arithmetic
    assert Parameters(free.tree.links[0].inertia, free.tree.links[4].inertia) == {}


@few(4)
@given(st.integers(1, 3), st.integers(0, 2), st.booleans(), st.integers(0, 2))
def test_values_that_make_the_mass_matrix_singular_are_refused(bodies: int, place: int, armed: bool, run: int) -> None:
    """A run is refused if and only if its mass matrix is singular; only the nominal values were once checked."""
    b = bc.Builder("thin")
    for i in range(bodies):
        size = bc.parameter("size", 1.0) if i == place % bodies else 1.0
        joint = {"armature": 0.1} if armed else {}
        b.body(f"link{i}", mass=size, com=(0.1, 0.0, 0.0), inertia=(size, size, size))
        b.joint(f"joint{i}", "revolute", f"link{i - 1}" if i else "ground", f"link{i}", axis=(0, 0, 1), **joint)
    m = b.build()
    s, sizes = bc.system(m), np.array([1.0, 1e-6, 0.5])
    assert s.parameters.vector({"size": sizes}).shape == (3, 1)
    sizes[run] = 0.0
    try:
        singular_mass.check_mass_matrix(m.at({"size": 0.0}))
    except ModelError:
        with pytest.raises(InputError, match=r"simulate: with the parameters size = 0: .*the mass matrix is singular"):
            bc.simulate(s, 0.01, parameters={"size": sizes})
        with pytest.raises(InputError, match="the mass matrix is singular"):
            m.forward_dynamics(*m.random(0), parameters={"size": 0.0})
        assert np.isfinite(m.inverse_dynamics(*m.random(0), parameters={"size": 0.0})).all()
    else:
        assert armed
        assert s.parameters.vector({"size": sizes}).shape == (3, 1)
