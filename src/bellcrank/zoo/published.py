"""Mechanisms of the seed papers; data.toml has their numbers, where they are printed and what was assumed."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from importlib.resources import files
from math import hypot, radians
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import InputError, unknown
from bellcrank.formats import Builder, from_saha, from_wong
from bellcrank.model.mechanism import Mechanism
from bellcrank.model.parts import ReportLine, triple
from bellcrank.zoo.families import explain_impossible_mechanism


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(files("bellcrank.zoo").joinpath("data.toml").read_text("utf-8"))


@explain_argument_errors
def data(name: str) -> dict[str, Any]:
    """Return the printed data of a paper's mechanism, with full citations.

    Parameters
    ----------
    name : str
        Name of the mechanism, such as "puma600".

    Returns
    -------
    dict[str, Any]
        Parameters, start, hydraulics, control and tests, as far as the paper has them.

    Raises
    ------
    InputError
        If there is no such mechanism.
    """
    tables = _tables()
    names = [key for key in tables if key != "cite"]
    if name not in names:
        raise InputError(f"zoo: {unknown('paper mechanism', name, names)}")
    table: dict[str, Any] = deepcopy(tables[name])
    table["cite"] = [tables["cite"][key] for key in table["cite"]]
    return table


def puma600() -> Mechanism:
    """PUMA 600, six revolute joints (Wong 1991, after Angeles and Ma 1988).

    Returns
    -------
    Mechanism
        The mechanism.
    """
    return _wong("puma600", data("puma600"))


def torso() -> Mechanism:
    """Human torso with head and two arms, a tree of six revolute joints (Wong 1991).

    Returns
    -------
    Mechanism
        The mechanism.
    """
    table = data("torso")
    inertia: list[Any] = [table["inertia_trunk"], [0.4 * table["mass"][1] * table["radius"][1] ** 2] * 3]
    for i in range(2, 6):
        m, r, length = table["mass"][i], table["radius"][i], table["length"][i]
        along, across = m * r * r / 2, m * (r * r / 4 + length * length / 12)
        inertia.append([across, along, across] if i < 4 else [along, across, across])  # arm B as printed
    table["l"] = {tuple(int(k) for k in key.split("-")): v for key, v in table["l"].items()}
    return _wong("torso", table | {"inertia": inertia})


def excavator() -> Mechanism:
    """Caterpillar 215B excavator: cab, boom, stick, bucket (Wong 1991).

    Its hydraulics and control are in `data("excavator")`.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    return _wong("excavator", data("excavator"))


def stanford() -> Mechanism:
    """Stanford arm, five revolute joints and a prismatic third one (Saha 2001).

    Returns
    -------
    Mechanism
        The mechanism.
    """
    return _saha("stanford", data("stanford"))


def puma_saha() -> Mechanism:
    """PUMA robot (Saha 2001): puma600 in another convention, except for two numbers (see data.toml).

    Returns
    -------
    Mechanism
        The mechanism.
    """
    return _saha("puma_saha", data("puma_saha"))


def planar3r() -> Mechanism:
    """Three equal rods in a vertical plane (Saha 2001, without numbers: 1 m and 1 kg are assumed).

    Returns
    -------
    Mechanism
        The mechanism.
    """
    table = data("planar3r")
    length, mass = table["length"], table["mass"]
    b = Builder("planar3r", gravity=(0.0, -9.81, 0.0))
    moment = mass * length**2 / 12
    for i in range(3):
        b.body(f"link{i + 1}", mass=mass, com=((i + 0.5) * length, 0.0, 0.0), inertia=(0.0, moment, moment))
        parent = f"link{i}" if i else "ground"
        b.joint(f"joint{i + 1}", "revolute", parent, f"link{i + 1}", point=(i * length, 0.0, 0.0))
    return b.build()


@explain_impossible_mechanism
def slider_fourbar(closed: bool = True, forces: bool = False) -> Mechanism:
    """Four-bar loop on a slide (Nikravesh et al. 1989).

    Joint R5 closes the loop; q = 0 is the printed configuration.

    Parameters
    ----------
    closed : bool, default True
        False gives the tree that is left when R5 is cut; its frames "P1" and "P4" coincide where the loop would close.
    forces : bool, default False
        Add "several force elements", as in the paper's experiment of section 7: two springs with dampers, one along the
        slide and one across the loop, with assumed numbers.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    table = data("slider_fourbar")
    axis, slide = ([x / hypot(*table[name]) for x in table[name]] for name in ("axis", "slide"))
    b = Builder("slider_fourbar")
    ends = {"slide": ("R2", "R5"), "crank": ("R2", "R3"), "coupler": ("R3", "R4"), "rocker": ("R4", "R5")}
    for mass, (name, (start, end)) in zip(table["mass"], ends.items(), strict=True):
        p, q, r2 = np.array(table[start], dtype=float), np.array(table[end], dtype=float), table["radius"] ** 2
        across = mass * (r2 / 4 + (q - p) @ (q - p) / 12)  # moments of inertia of a cylinder
        e = (q - p) / np.linalg.norm(q - p)
        inertia = across * np.eye(3) + (mass * r2 / 2 - across) * np.outer(e, e)
        b.body(name, mass=mass, com=triple((p + q) / 2), inertia=inertia)
    b.joint("T1", "prismatic", "ground", "slide", axis=slide)
    b.joint("R2", "revolute", "slide", "crank", point=table["R2"], axis=axis)
    b.joint("R3", "revolute", "crank", "coupler", point=table["R3"], axis=axis)
    b.joint("R4", "revolute", "coupler", "rocker", point=table["R4"], axis=axis)
    b.frame("P1", "slide", point=table["R5"])
    b.frame("P4", "rocker", point=table["R5"])
    if closed:
        b.close("R5", "revolute", "slide", "rocker", point=table["R5"], axis=axis)
    if forces:
        anchor = [-x for x in slide]
        along, across = (
            {k: table[name][k] for k in ("stiffness", "length", "damping")} for name in ("along", "across")
        )
        b.spring("along", "ground", "slide", point_a=anchor, point_b=(0, 0, 0), **along)
        b.spring("across", "slide", "coupler", point_a=table["R2"], point_b=table["R4"], **across)
    return b.build()


def add_rod(
    b: Builder, name: str, p: Any, q: Any, mass: float | None = None, radius: float = 0.0, density: float = 1.0
) -> None:
    """Add a uniform rod to a mechanism.

    Parameters
    ----------
    b
        Builder of the mechanism.
    name
        Name of the rod.
    p, q
        Positions of its ends, m.
    mass
        Mass, kg.
    radius
        Radius, m.
    density
        Mass of a metre, kg/m, if no mass is given.
    """
    p, q = np.asarray(p, float), np.asarray(q, float)
    length = float(np.linalg.norm(q - p))
    m = density * length if mass is None else mass
    e = (q - p) / length
    along, across = m * radius**2 / 2, m * (radius**2 / 4 + length**2 / 12)
    b.body(name, mass=m, com=(p + q) / 2, inertia=across * np.eye(3) + (along - across) * np.outer(e, e))


def _wong(name: str, table: Mapping[str, Any]) -> Mechanism:
    return from_wong(name, **_given(table, "mass", "k", "l", "inertia", "source", "parent", "names"))


def _saha(name: str, table: Mapping[str, Any]) -> Mechanism:
    return from_saha(name, **_given(table, "joints", "a", "b", "mass", "r", "inertia", "source"))


def _given(table: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return some columns of a table, its twists, and its sources and note for the head of the report."""
    lines = [ReportLine("source", text) for text in table["cite"]]
    lines += [ReportLine("table", table["note"], "note")] if "note" in table else []
    columns = {name: table[name] for name in names if name in table}
    return columns | {"alpha": [radians(x) for x in table["alpha_deg"]], "lines": lines}
