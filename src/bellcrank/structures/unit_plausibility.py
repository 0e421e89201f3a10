"""Plausibility checks of units: warnings about values that no real material or machine has.

Implausible values are not refused: they can be computed, and may be intended. Every bound lies outside of everything
real, so that a warning nearly always means a mistake in units (MPa for Pa, g/cm^3 for kg/m^3, millimetres for metres).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import ModelError, warn

if TYPE_CHECKING:
    from bellcrank.structures.beam import Beam
    from bellcrank.structures.section import Profile

Array = np.ndarray[Any, Any]
# m/s, sqrt(E / density): soft rubber has 20, rubber 100, steel 5200, beryllium 13000, diamond 18000.
SLOWEST_WAVE, FASTEST_WAVE = 15.0, 30_000.0
MIN_WAVE, MAX_WAVE = 1e-9, 1e12  # m/s; outside of these the computation fails
MAX_MASS_PER_LENGTH = 1e6  # kg/m; the largest ships with all they carry
MAX_DEPTH_RATIO = 10.0  # depth of a section over the length of the beam
MIN_FREQUENCY = 1e-3  # Hz; the longest bridges have fifty times as much
# Mass over the box around a solid body, kg/m^3: osmium, and a thousandth of air. Mass over the cube of its length: a
# wire whose diameter is a ten-millionth of its length.
MAX_DENSITY, MIN_DENSITY, MIN_MASS_PER_CUBE = 23_000.0, 1e-3, 1e-10


def warn_implausible_beam(beam: Beam) -> None:
    """Warn if a material, a section or a length of `beam` is implausible; raise an error if nothing can be computed."""
    for p in (beam.profile(0.0), beam.profile(1.0)):
        if _warn_wave_speed(p) or _warn_section(p, beam.length):
            return  # one warning is enough


def _warn_wave_speed(p: Profile) -> bool:
    speed = math.sqrt(p.EA) / math.sqrt(p.rhoA)  # separate roots: the ratio may overflow
    if SLOWEST_WAVE <= speed <= FASTEST_WAVE:
        return False
    text = (
        f"beam: sound would run through it at {speed:.3g} m/s, the root of E / density (EA / rhoA); real materials "
        f"have {SLOWEST_WAVE:g} (rubber) to {FASTEST_WAVE:g} m/s, and steel 5200"
    )
    if not MIN_WAVE < speed < MAX_WAVE:
        raise ModelError(f"{text}. Nothing can be computed with that: check the units of both, Pa and kg/m^3.")
    maybe = "is E in MPa or GPa? 210 GPa are 2.1e11 Pa." if speed < SLOWEST_WAVE else "is density in g/cm^3 or tonnes?"
    warn(f"{text}. Expected Pa and kg/m^3: {maybe}")
    return True


def _warn_section(p: Profile, length: float) -> bool:
    depth = math.sqrt(12.0 * max(p.EIy / p.EA, p.EIz / p.EA))  # of a rectangle with the same radius of gyration
    what = ""
    if p.rhoA > MAX_MASS_PER_LENGTH:
        what = f"a metre of it weighs {p.rhoA:.3g} kg, more than a metre of the largest ship"
    elif depth > MAX_DEPTH_RATIO * length:
        what = f"it is about {depth:.3g} m deep and {length:.3g} m long, which is no beam"
    if what:
        warn(f"beam: {what}. Expected metres, for the section as for the length: is one of them in millimetres?")
    return bool(what)


def warn_implausible_frequency(omega: Array, size: float) -> None:
    """Warn if the lowest frequency of `omega` (rad/s) is implausibly low for a structure of that `size` in metres."""
    lowest = float(np.min(omega)) / (2 * math.pi)
    if lowest < MIN_FREQUENCY:
        warn(
            f"the lowest frequency of this structure of {size:.3g} m is {lowest:.3g} Hz, a period of "
            f"{1 / lowest / 3600:.3g} hours: it would not carry itself. Expected metres, Pa or N/m, and kg: is its "
            "length in millimetres, or its stiffness in other units?"
        )


def warn_implausible_mass(mass: float, places: Array, solid: bool) -> None:
    """Warn if the `mass` (kg) is implausible for nodes at `places`; `solid` if the nodes fill the body."""
    sides = np.ptp(places, axis=0)
    size, volume = float(np.linalg.norm(sides)), float(np.prod(sides))
    spelled = " x ".join(f"{x:.3g}" for x in sides)
    why = ""
    if solid and volume > 0.0 and mass > MAX_DENSITY * volume:
        why = "denser than any material"
    elif (solid and mass < MIN_DENSITY * volume) or mass < MIN_MASS_PER_CUBE * size**3:
        why = "emptier than a thousandth of air, or a wire that cannot be seen"
    if why:
        warn(
            f"flexible: {mass:.3g} kg with nodes in a box of {spelled} m: {why}. Expected kg, N/m and metres: many "
            "programs have tonnes, N/mm and millimetres. Nodes times 1e-3, K and M times 1e3 would correct that (rows "
            "and columns of rotations once more by 1e-3 each)."
        )
