"""Invalid or infinite numbers of actuators, forces and elements are refused where a system is made."""

from __future__ import annotations

import math
from array import array
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import forces
from bellcrank.actuators import PD
from bellcrank.errors import InputError
from bellcrank.forces import Block, Cutting, Pad, Post, Together

BAD: tuple[Any, ...] = (
    *(math.nan, math.inf, -math.inf, None, "1", [1.0, 2.0], np.zeros(3), True, 10**400, {}, bytearray(b"1")),
    *(deque([1.0]), array("d", [1.0]), range(3), np.datetime64("2020-01-01"), np.timedelta64(5, "ms"), np.complex64(1)),
)
ELEMENTS = (
    forces.Cable("e", "ground", "link2", 1.0, 10.0),
    forces.Gear("e", ("joint1", "joint2"), 2.0, 10.0),
    forces.Belt("e", ("joint1", "joint2"), 0.1, 0.2, 10.0),
    forces.LinearTyre("e", "ground", "link2", 0.3),
    forces.Worm("e", ("joint1", "joint2"), 0.1, 0.2, 0.01, 10.0),
)
FORCES = (Cutting(0.0, 0.0, 0.0, 1.0, 1.0, 1.0), Pad(), Post(1.0, 0.0, 2.0), forces.Soil())


def numbers(part: Any) -> list[str]:
    return [name for name, kind in type(part).__annotations__.items() if kind == "Scalar"]


@pytest.mark.parametrize("part", ELEMENTS, ids=lambda e: type(e).__name__)
def test_invalid_numbers_of_elements_raise(part: Any) -> None:
    m = bc.zoo.chain(2)
    bc.system(m, elements=[part])
    assert numbers(part)
    for name in numbers(part):
        for bad in BAD:
            with pytest.raises(InputError, match=name):
                bc.system(m, elements=[replace(part, **{name: bad})])


@pytest.mark.parametrize("part", FORCES, ids=lambda e: type(e).__name__)
def test_invalid_numbers_of_forces_raise(part: Any) -> None:
    m = bc.zoo.chain(2)
    for name in numbers(part):
        for bad in BAD:
            with pytest.raises(InputError, match=name):
                bc.system(m, forces={"link2": Together((Pad(), replace(part, **{name: bad})))})


MAGIC = {"FNOMIN": 4e3, "PCX1": 1.6, "PDX1": 1.2, "PKX1": 20.0, "PCY1": 1.3, "PDY1": 1.0, "PKY1": -14.0, "PKY2": 1.6}
REFUSED = {
    "stiffness": lambda: Pad(stiffness=-1.0),
    "bears": lambda: Pad(bears=0.0),
    "slow": lambda: Pad(slow=0.0),
    "radius": lambda: Post(-1.0, 0.0, 2.0),
    "low": lambda: Post(1.0, 3.0, 2.0),
    "soft": lambda: Post(1.0, 0.0, 2.0, soft=0.0),
    "lower": lambda: Block((0.0, 0.0, 0.0), (1.0, -1.0, 1.0)),
    "corner": lambda: Block((0.0, 0.0), (1.0, 1.0, 1.0)),
    "square": lambda: Cutting(0.0, 0.0, 0.0, -1.0, 1.0, 1.0),
    "give": lambda: Cutting(0.0, 0.0, 0.0, 1.0, 1.0, 1.0, give=0.0),
    "cohesion": lambda: forces.Soil(cohesion=-1.0),
    "width": lambda: forces.Soil(width="1"),  # type: ignore[arg-type]
    "parts": lambda: Together(Pad()),  # type: ignore[arg-type]
    "size": lambda: forces.Box((1.0, 2.0)),  # type: ignore[arg-type]
    "size is": lambda: forces.Box(1.0),  # type: ignore[arg-type]
    "Sphere: radius": lambda: forces.Sphere("1"),  # type: ignore[arg-type]
    "Capsule: length": lambda: forces.Capsule(1.0, math.nan),
    "height": lambda: forces.Terrain(0.0),  # type: ignore[arg-type]
    "exponent": lambda: _contact(exponent="2"),
    "exponent is nan": lambda: _contact(exponent=math.nan),
    "up to 10": lambda: _contact(exponent=1e9),
    "friction": lambda: _contact(bristles=100.0, friction=0.0),
    "coefficients": lambda: _tyre(coefficients=[1.0]),
    "no PKY2": lambda: _tyre(coefficients={**MAGIC, "PKY2": None}, without=("PKY2",)),
    "PCX1": lambda: _tyre(coefficients={**MAGIC, "PCX1": "1"}),
    "FNOMIN": lambda: _tyre(coefficients={**MAGIC, "FNOMIN": 0.0}),
    "road": lambda: _tyre(road=0.0),
    "lateral": lambda: forces.LinearTyre("e", "ground", "link2", 0.3, lateral=-1.0),
    "joints": lambda: forces.Gear("e", ([], []), 2.0, 10.0),  # type: ignore[arg-type]
    "function": lambda: forces.Law("e", "ground", "link2", 1.0),  # type: ignore[arg-type]
    "restitution": lambda: forces.damping_of("1", 1.0),  # type: ignore[arg-type]
    "speed": lambda: forces.restitution_of(1.0, -1.0),
}


def _contact(**numbers: Any) -> Any:
    return forces.Contact("e", "ground", "link2", forces.Plane(), forces.Sphere(0.1), **numbers)


def _tyre(without: tuple[str, ...] = (), coefficients: Any = MAGIC, **numbers: Any) -> Any:
    if without:
        coefficients = {name: x for name, x in coefficients.items() if name not in without}
    return forces.MagicTyre("e", "ground", "link2", 0.3, coefficients=coefficients, **numbers)


@pytest.mark.parametrize("said", REFUSED)
def test_invalid_part_is_rejected_when_created(said: str) -> None:
    _contact(), _tyre()
    with pytest.raises(InputError, match=said):
        REFUSED[said]()


def test_infinite_and_free_numbers_of_parts() -> None:
    m = bc.zoo.chain(2)
    bc.system(m, elements=[forces.EndStop("e", ("joint1",), upper=math.inf, lower=-1.0, stiffness=1.0)])
    bc.system(m, forces={"link2": Pad(bc.parameter("height", 0.0))})
    with pytest.raises(InputError, match="lower"):
        bc.system(m, forces={"link2": Block((0.0, math.nan, 0.0), (1.0, 1.0, 1.0))})
    with pytest.raises(InputError, match="expected a name"):
        bc.system(m, elements=[forces.Cable(None, "ground", "link2", 1.0, 10.0)])  # type: ignore[arg-type]


def test_invalid_numbers_of_actuators_and_custom_forces_raise() -> None:
    m = bc.zoo.chain(2)
    with pytest.raises(InputError, match="expected a number"):
        bc.system(m, actuators=[PD("joint1", "10", 1.0)])  # type: ignore[arg-type]

    @dataclass(frozen=True)
    class Wind:
        speed: float

        def __call__(self, t: Any, pose: Any, velocity: Any) -> Any:
            return [self.speed, 0.0, 0.0], [0.0, 0.0, 0.0]

    bc.system(m, forces={"link2": Wind(3.0)})
    with pytest.raises(InputError, match="speed is nan"):
        bc.system(m, forces={"link2": Wind(math.nan)})


@pytest.mark.parametrize("runs", [1, 5, 400])
def test_parameter_values_of_a_run_are_checked(runs: int) -> None:
    """Parameter values of a run are refused where the part would be refused; in a batch the message names the run."""
    k = bc.parameter("k", 10.0)
    spring = forces.Cable("e", "ground", "link2", 1.0, 2.0 * k + 1.0)
    pad = Pad(bc.parameter("height", -5.0), bears=bc.parameter("bears", 1e4))
    s = bc.system(
        bc.zoo.chain(2), elements=[spring], forces={"link2": Together((pad,))}, actuators=[PD("joint1", k, 1.0)]
    )
    good = np.linspace(1.0, 9.0, runs)
    s.parameters.vector({"k": good, "height": -good})
    for name, bad in (("k", -0.25), ("k", -2.0), ("bears", 0.0)):
        given = good.copy()
        given[runs // 2] = bad
        with pytest.raises(InputError, match=f"{name} = {bad:g}.*") as said:
            s.parameters.vector({name: given}, "simulate")
        assert f"run {runs // 2} of" in str(said.value) or runs == 1
    with pytest.raises(InputError, match="simulate: the parameters k = -2"):
        bc.simulate(s, 0.01, parameters={"k": -2.0}, inputs={})


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int8, np.uint8, np.longdouble])
@pytest.mark.parametrize("part", [*ELEMENTS, PD("joint1", 90.0, 10.0)], ids=lambda e: type(e).__name__)
def test_numbers_of_numpy_are_computed_with_as_those_of_python(part: Any, kind: Any) -> None:
    """Numpy numbers are converted to Python floats before any arithmetic.

    A product of float16 is rounded to 11 bits, and one of int8 wraps around: 100 * 2 was -56.
    """
    own = {name: getattr(part, name) for name in numbers(part)}
    given = {name: kind(max(1.0, min(100.0, 100.0 * x))) for name, x in own.items() if 0.0 < x < math.inf}
    rows = []
    for numbers_of in (lambda x: x, lambda x: x.item() if kind is not np.longdouble else float(x)):
        own = replace(part, **{name: numbers_of(x) for name, x in given.items()})
        s = bc.system(bc.zoo.chain(2), **{"actuators" if isinstance(part, PD) else "elements": [own]})
        fed = dict.fromkeys(s.inputs, 0.5)
        found = bc.simulate(s, 1e-3, q0=[0.3, 0.2], v0=[1.0, 2.0], step=1e-5, inputs=fed)
        rows.append(np.array([found[name] for name in found.columns]))
    np.testing.assert_array_equal(*rows)
