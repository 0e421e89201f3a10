"""Families of linkages with any number of parts, mixed sizes and masses, and a known mobility.

A linkage is a list of `Pin`s (hinges, slides and rollers between named bodies), so that any joints that are not needed
to hold the tree together may be cut. Planar families lie in the xz plane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.model import Mechanism
from overconstrained import Hinge, bennett, sarrus
from trees import rotation

Array = np.ndarray[Any, Any]
Y = np.array([0.0, 1.0, 0.0])
X = np.array([1.0, 0.0, 0.0])
SMALLEST, LARGEST = 1e-4, 1e3  # metres: seven orders of magnitude in one mechanism
LIGHTEST, HEAVIEST = 1e-6, 1e6  # kilograms


@dataclass(frozen=True)
class Pin:
    """A joint between two bodies; a roller is a point of `other` on a line of `one`, and is always cut."""

    name: str
    one: str
    other: str
    point: Array
    axis: Array
    kind: str = "revolute"  # or "prismatic", or "roller"
    line: Array | None = None  # for rollers: a point of the line


@dataclass(frozen=True)
class Linkage:
    name: str
    pins: tuple[Pin, ...]
    mobility: int

    @property
    def bodies(self) -> list[str]:
        return list(dict.fromkeys(b for p in self.pins for b in (p.one, p.other) if b != "ground"))

    def sizes(self) -> dict[str, float]:
        """Return the size of each body: the largest distance between its joints."""
        places: dict[str, list[Array]] = {}
        for p in self.pins:
            for body in (p.one, p.other):
                places.setdefault(body, []).append(p.point)
        return {b: max(float(np.linalg.norm(x - y)) for x in at for y in at) for b, at in places.items()}

    def moved(self, by: Array, scale: float, prefix: str, base: str) -> Linkage:
        """Return the linkage scaled by `scale`, on `base` instead of the ground, with a prefix before other names."""

        def name(body: str) -> str:
            return base if body == "ground" else prefix + body

        pins = tuple(
            replace(
                p,
                name=prefix + p.name,
                one=name(p.one),
                other=name(p.other),
                point=by + scale * p.point,
                line=None if p.line is None else by + scale * p.line,
            )
            for p in self.pins
        )
        return replace(self, pins=pins)

    def built(
        self,
        seed: int = 0,
        masses: Mapping[str, float] | Callable[[str], float] | None = None,
        gravity: bool = True,
        shuffled: bool = False,
    ) -> Mechanism:
        """Return the mechanism.

        shuffled: cut random joints that leave a tree; otherwise cut the joints that are listed last.
        """
        rng = np.random.default_rng(seed)
        sizes, places = self.sizes(), {}
        for p in self.pins:
            for body in (p.one, p.other):
                places.setdefault(body, []).append(p.point)
        b = bc.Builder(self.name, gravity=(0.3, 0.1, -9.5) if gravity else (0, 0, 0))
        for body in self.bodies:
            mass = float(rng.uniform(0.5, 2.0))
            if masses is not None:
                mass = masses(body) if callable(masses) else masses[body]
            com = np.mean(places[body], axis=0)
            b.body(body, mass=mass, com=com, inertia=[0.1 * mass * (sizes[body] or 1.0) ** 2] * 3)
        order = list(rng.permutation(len(self.pins))) if shuffled else list(range(len(self.pins)))
        kept = _tree([self.pins[k] for k in order])
        for p, one, other in kept:
            b.joint(p.name, p.kind, one, other, point=p.point, axis=p.axis)
        names = {p.name for p, _, _ in kept}
        for p in self.pins:
            if p.kind == "roller":
                b.close(p.name, "point_on_line", p.one, p.other, point_a=p.line, axis=p.axis, point_b=p.point)
            elif p.name not in names:
                b.close(p.name, p.kind, p.one, p.other, point=p.point, axis=p.axis)
        return b.build()


def _tree(pins: Sequence[Pin]) -> list[tuple[Pin, str, str]]:
    """Return joints that reach every body from the ground, each with the carrying body and the carried one."""
    reached, found = {"ground"}, list[tuple[Pin, str, str]]()
    more = True
    while more:
        more = False
        for p in pins:
            if p.kind != "roller" and (p.one in reached) != (p.other in reached):
                ends = (p.one, p.other) if p.one in reached else (p.other, p.one)
                found.append((p, *ends))
                reached.update(ends)
                more = True
                break
    return found


# -- planar


def lift(stages: int, length: float = 2.0, angle: float = 0.3, rollers: bool = True) -> Linkage:
    """Return a scissor lift with a table on it: one degree of freedom for any number of stages."""
    wide, high = length * np.cos(angle), length * np.sin(angle)

    def at(x: float, z: float) -> Array:
        return np.array([x * wide, 0.0, z * high])

    pins = [Pin("foot", "ground", "rise0", at(0, 0), -Y)]
    for i in range(stages):
        pins.append(Pin(f"middle{i}", f"rise{i}", f"fall{i}", at(0.5, i + 0.5), -Y))
        if i + 1 < stages:
            pins.append(Pin(f"left{i}", f"fall{i}", f"rise{i + 1}", at(0, i + 1), -Y))
            pins.append(Pin(f"right{i}", f"rise{i}", f"fall{i + 1}", at(1, i + 1), -Y))
    top = stages - 1
    pins.append(Pin("top", f"fall{top}", "table", at(0, stages), -Y))
    if rollers:
        pins.append(Pin("lower", "ground", "fall0", at(1, 0), X, "roller", at(0, 0)))
        pins.append(Pin("upper", "table", f"rise{top}", at(1, stages), X, "roller", at(0, stages)))
    else:
        pins += [Pin("slide", "ground", "shoe", at(1, 0), X, "prismatic"), Pin("heel", "shoe", "fall0", at(1, 0), -Y)]
        pins += [
            Pin("rail", "table", "runner", at(1, stages), X, "prismatic"),
            Pin("tip", "runner", f"rise{top}", at(1, stages), -Y),
        ]
    return Linkage(f"lift{stages}", tuple(pins), 1)


def ring(bars: int, size: float = 1.0, seed: int = 0) -> Linkage:
    """Return a polygon of bars with hinges between them; one bar is fixed."""
    rng = np.random.default_rng(seed)
    angles = 2 * np.pi * (np.arange(bars) + rng.uniform(-0.2, 0.2, bars)) / bars
    points = size * rng.uniform(0.8, 1.2, bars)[:, None] * np.stack([np.cos(angles), 0 * angles, np.sin(angles)], 1)
    names = ["ground", *(f"bar{i}" for i in range(1, bars)), "ground"]
    pins = tuple(Pin(f"R{i}", names[i], names[i + 1], points[i], Y) for i in range(bars))
    return Linkage(f"ring{bars}", pins, bars - 3)


def ladder(rungs: int, size: float = 1.0, seed: int = 0) -> Linkage:
    """Return a bar on parallel cranks: one degree of freedom, and all cranks but two are redundant."""
    rng = np.random.default_rng(seed)
    arm = size * np.array([0.3, 0.0, 0.8])
    pins = []
    for i in range(rungs):
        foot = size * np.array([i + rng.uniform(-0.2, 0.2), 0.0, rng.uniform(-0.3, 0.3)])
        pins += [Pin(f"A{i}", "ground", f"crank{i}", foot, Y), Pin(f"B{i}", f"crank{i}", "bar", foot + arm, Y)]
    return Linkage(f"ladder{rungs}", tuple(pins), 1)


def four_bar(size: float = 1.0, seed: int = 0) -> Linkage:
    rng = np.random.default_rng(seed)
    at = size * (np.array([[0.0, 0, 0], [0.1, 0, 0.9], [1.4, 0, 1.2], [1.2, 0, 0]]))
    at[:, [0, 2]] += 0.1 * size * rng.uniform(-1, 1, (4, 2))
    names = ["ground", "crank", "coupler", "rocker", "ground"]
    return Linkage("four_bar", tuple(Pin(f"R{i}", names[i], names[i + 1], at[i], Y) for i in range(4)), 1)


# -- spatial and over-constrained


def _hinged(name: str, hinges: Sequence[Hinge]) -> Linkage:
    return Linkage(
        name, tuple(Pin(h.name, h.one, h.other, np.array(h.point, float), np.array(h.axis, float)) for h in hinges), 1
    )


def bennett_ring(size: float = 1.0, seed: int = 0) -> Linkage:
    return _hinged("bennett", bennett(seed)).moved(np.zeros(3), size, "", "ground")


def sarrus_lift(size: float = 1.0, seed: int = 0) -> Linkage:
    return _hinged("sarrus", sarrus(seed)).moved(np.zeros(3), size, "", "ground")


def bricard_ring(size: float = 1.0, seed: int = 0) -> Linkage:
    """Return six equal bars with hinges at right angles (R.

    Bricard, 1927): trihedral, in the symmetric configuration.
    """
    points = size * np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1], [0, 0, 1]], float)
    axes = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]], float)
    names = ["ground", *(f"bar{i}" for i in range(1, 6)), "ground"]
    R = rotation(np.random.default_rng(seed))
    pins = tuple(Pin(f"R{i}", names[i], names[i + 1], R @ points[i], R @ axes[i]) for i in range(6))
    return Linkage("bricard", pins, 1)


# -- several linkages in one mechanism

UNITS: dict[str, Callable[[float, int], Linkage]] = {
    "four_bar": four_bar,
    "ring": lambda size, seed: ring(5, size, seed),
    "ladder": lambda size, seed: ladder(3, size, seed),
    "lift": lambda size, seed: lift(3, 2.0 * size, rollers=bool(seed % 2)),
    "bennett": bennett_ring,
    "bricard": bricard_ring,
    "sarrus": sarrus_lift,
}


def tower(units: Sequence[str], sizes: Sequence[float], seed: int = 0) -> Linkage:
    """Return a tower of linkages, each of which stands on the last body in the list of the one below."""
    pins, mobility, base, at = list[Pin](), 0, "ground", np.zeros(3)
    for k, (unit, size) in enumerate(zip(units, sizes, strict=True)):
        one = UNITS[unit](size, seed + k).moved(at, 1.0, f"u{k}_", base)
        pins += one.pins
        mobility += one.mobility
        last = [p for p in one.pins if base not in (p.one, p.other)][-1]
        base, at = last.other, last.point
    return Linkage("tower", tuple(pins), mobility)


def row(units: Sequence[str], sizes: Sequence[float], seed: int = 0) -> Linkage:
    """Return linkages side by side on the ground."""
    made = [
        UNITS[u](s, seed + k).moved(np.zeros(3), 1.0, f"u{k}_", "ground") for k, (u, s) in enumerate(zip(units, sizes))
    ]
    return Linkage("row", tuple(p for x in made for p in x.pins), sum(x.mobility for x in made))
