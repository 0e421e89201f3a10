"""Units of FMUs: what each is in base units."""

from __future__ import annotations

import math

import pytest

import bellcrank as bc
from bellcrank.actuators import PID, DCMotor
from bellcrank.emit.c.exported_program import ExportedProgram
from bellcrank.excavators.machines import MACHINES
from bellcrank.exporting.export_content import effort_driven
from bellcrank.exporting.fmi_xml import FmiUnit, FmiVariables, parse_unit, unit_definitions
from bellcrank.sim.system.observed_columns import observable_units

PRESSURE = {"kg": 1, "m": -1, "s": -2}
FORCE = {"kg": 1, "m": 1, "s": -2}


@pytest.mark.parametrize(
    ("text", "factor", "powers"),
    [
        ("N m", 1.0, {"kg": 1, "m": 2, "s": -2}),
        ("rad/s/s", 1.0, {"s": -2, "rad": 1}),
        ("rad/s^2", 1.0, {"s": -2, "rad": 1}),
        ("N/m2", 1.0, PRESSURE),
        ("N/m²", 1.0, PRESSURE),
        ("kg m**-3", 1.0, {"kg": 1, "m": -3}),
        ("1/s", 1.0, {"s": -1}),
        ("1", 1.0, {}),
        ("m/m", 1.0, {}),
        ("mm", 1e-3, {"m": 1}),
        ("m s", 1.0, {"m": 1, "s": 1}),
        ("MPa", 1e6, PRESSURE),
        ("l/min", 1e-3 / 60, {"m": 3, "s": -1}),
        ("psi", 6894.757293168361, PRESSURE),
        ("psi/s", 6894.757293168361, {"kg": 1, "m": -1, "s": -3}),
        ("N m s / (rad A)", 1.0, {"kg": 1, "m": 2, "s": -1, "A": -1, "rad": -1}),
        ("N m s / rad A", 1.0, {"kg": 1, "m": 2, "s": -1, "A": -1, "rad": -1}),
        ("in^3/rad", 0.0254**3, {"m": 3, "rad": -1}),
        ("deg", math.pi / 180, {"rad": 1}),
        ("rpm", math.pi / 30, {"s": -1, "rad": 1}),
        ("degC/s", 1.0, {"s": -1, "K": 1}),
        ("lbf", 4.4482216152605, FORCE),
        ("kN·m", 1e3, {"kg": 1, "m": 2, "s": -2}),
    ],
)
def test_unit_is_parsed_into_powers(text: str, factor: float, powers: dict[str, int]) -> None:
    found = parse_unit(text)
    assert found is not None
    assert found.powers == powers
    assert found.factor == pytest.approx(factor, rel=1e-15)
    assert found.offset == 0.0


def test_degrees_of_temperature_have_an_offset() -> None:
    assert parse_unit("degC") == FmiUnit(1.0, {"K": 1}, 273.15)


@pytest.mark.parametrize(
    "text", ["furlong", "psi^0.5", "m^", "(m", "m)", "()", "", "/", "m2.5", "kkg", "m;s", "2 m", "<m>"]
)
def test_unknown_units_give_none(text: str) -> None:
    assert parse_unit(text) is None


def test_units_of_the_zoo_and_machines_are_known() -> None:
    """Units of the zoo and of the machines are known, including those of free parameters."""
    sizes = {"chain": "chain:3", "tree": "tree:3", "random_tree": "random_tree:6", "rope": "rope:5"}
    systems = [effort_driven(bc.zoo.load(sizes.get(n, n))) for n in bc.zoo.names() if n != "excavator_flexible"]
    systems += [MACHINES[n]().system for n in MACHINES if n != "excavator_flexible"]
    m = bc.zoo.planar3r()
    motors = [DCMotor(m.columns[1][0], k=0.1, R=1.0, L=1e-3, slew=1.0), PID(m.columns[1][1], kp=1.0)]
    systems.append(bc.system(m, motors))
    written = {unit for s in systems for unit in observable_units(s).values()}
    written |= {s.parameters.unit(p) for s in systems for p in s.parameters}
    assert {"psi", "Pa", "N/m2"} <= written
    assert [unit for unit in written if unit and (parse_unit(unit) is None or parse_unit(f"{unit}/s") is None)] == []


def test_definitions() -> None:
    b = bc.Builder("arm")
    b.body("link", mass=bc.parameter("mass", 1.0, "lb"), com=(1, 0, 0), inertia=(1, 1, 1))
    b.joint("hinge", "revolute", "ground", "link", axis=(0, 1, 0), damping=bc.parameter("oil", 0.1, "<drops>"))
    program = bc.Simulator(bc.system(b.build())).self_contained_program()
    found = unit_definitions(FmiVariables(ExportedProgram(program, 1e-3)))
    assert '<Unit name="&lt;drops&gt;"/>' in found
    assert '<BaseUnit kg="1" factor="0.45359237"/>' in found
    assert '<Unit name="rad/s">\n    <BaseUnit s="-1" rad="1"/>' in found
