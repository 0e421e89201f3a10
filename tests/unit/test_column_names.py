"""Every column of a record holds the quantity that its name gives: states, outputs and joints are not mixed up."""

from __future__ import annotations

from typing import Any

import pytest

import bellcrank as bc


def pendulum() -> bc.Mechanism:
    b = bc.Builder("pendulum")
    b.body("rod", mass=1.0, com=(0.0, 0.0, -0.5), inertia=(0.1, 0.1, 0.1))
    b.joint("j", "revolute", "ground", "rod", axis=(0.0, 1.0, 0.0))
    return b.build()


def still(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
    return [0.0], [0.0]


TAKEN = ["t", "run", "j.q", "j.v", "j.a", "j.tau", "j.command"]


@pytest.mark.parametrize("name", TAKEN)
def test_states_and_outputs(name: str) -> None:
    m = pendulum()
    sampled = bc.Sampled(lambda t, q, v, x, u: [0.0], 0.01, outputs={name: 0.0})
    made: list[dict[str, Any]] = [
        {"control": still, "states": {name: 0.0}},
        {"control": lambda t, q, v, x, u: [0.0], "sampled": [sampled]},
        {"outputs": {name: lambda t, q, v, x, u: q[0]}},
    ]
    for parts in made:
        with pytest.raises(bc.InputError, match=f'"{name}" has the name of a column that every record has'):
            bc.system(m, **parts)


@pytest.mark.parametrize("name", ["", 5, None, b"x", "a\nb"])
def test_invalid_column_names_raise(name: Any) -> None:
    m = pendulum()
    made: list[Any] = [
        lambda: bc.system(m, control=still, states={name: 0.0}),
        lambda: bc.system(m, outputs={name: lambda t, q, v, x, u: q[0]}),
        lambda: bc.system(m, control=bc.Sampled(still, 0.01, states={name: 0.0})),
        lambda: bc.system(m, sampled=[bc.Sampled(lambda *_: [0.0], 0.01, outputs={name: 0.0})]),
    ]
    if name != "":  # inputs have no columns
        made.append(lambda: bc.system(m, control=lambda t, q, v, x, u: [u[0]], inputs=[name]))
    for make in made:
        with pytest.raises(bc.InputError, match="name"):
            make()


@pytest.mark.parametrize(
    ("one", "kind", "other"),
    [("base", "floating", "base.x"), ("base", "floating", "base.0"), ("ball", "spherical", "ball.qw"),
     ("slide", "planar", "slide.1"), ("rod", "cylindrical", "rod.angle")],
)  # fmt: skip
def test_elements_of_joints(one: str, kind: str, other: str) -> None:
    b = bc.Builder("pair")
    for body in ("a", "b"):
        b.body(body, mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint(one, kind, "ground", "a")
    b.joint(other, "revolute", "a", "b")
    with pytest.raises(bc.ModelError, match=f'element named "{other}"'):
        b.build()


def test_excessive_delays_raise() -> None:
    for delay in (1e9, 1e12):
        with pytest.raises(bc.InputError, match="delayed at once; expected at most 10000"):
            bc.Sampled(lambda *_: [0.0], 1e-3, delay=delay)
    with pytest.raises(bc.InputError, match="states is 5; expected a list"):
        bc.system(pendulum(), states=5)  # type: ignore[arg-type]
