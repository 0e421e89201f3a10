"""Numbers of actuators, forces and elements: what is no number, or has no end, is refused where a system is made."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import forces
from bellcrank.actuators import PD
from bellcrank.errors import InputError
from bellcrank.forces import Block, Cutting, Pad, Post, Together

BAD: tuple[Any, ...] = (math.nan, math.inf, -math.inf, None, "1", [1.0, 2.0], np.zeros(3), True, 10**400, {})
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
def test_of_elements(part: Any) -> None:
    m = bc.zoo.chain(2)
    bc.system(m, elements=[part])
    assert numbers(part)
    for name in numbers(part):
        for bad in BAD:
            with pytest.raises(InputError, match=name):
                bc.system(m, elements=[replace(part, **{name: bad})])


@pytest.mark.parametrize("part", FORCES, ids=lambda e: type(e).__name__)
def test_of_forces(part: Any) -> None:
    m = bc.zoo.chain(2)
    for name in numbers(part):
        for bad in BAD:
            with pytest.raises(InputError, match=name):
                bc.system(m, forces={"link2": Together((Pad(), replace(part, **{name: bad})))})


def test_what_may_have_no_end_and_what_is_left_free() -> None:
    m = bc.zoo.chain(2)
    bc.system(m, elements=[forces.EndStop("e", ("joint1",), upper=math.inf, lower=-1.0, stiffness=1.0)])
    bc.system(m, forces={"link2": Pad(bc.parameter("height", 0.0))})
    with pytest.raises(InputError, match="lower"):
        bc.system(m, forces={"link2": Block((0.0, math.nan, 0.0), (1.0, 1.0, 1.0))})
    with pytest.raises(InputError, match="expected a name"):
        bc.system(m, elements=[forces.Cable(None, "ground", "link2", 1.0, 10.0)])  # type: ignore[arg-type]


def test_of_actuators_and_of_other_people_s_forces() -> None:
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
