"""Search for an equilibrium: unknowns, constraints, and a damped Newton iteration with restarts.

Unknown are the independent joints, the states of actuators and control, and the free inputs. All accelerations and
rates must vanish, and held quantities must keep their values. If the iteration from the guess fails, it is restarted
from points around it: on both sides of kinks at zero, such as a closed valve, and with displaced joints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any

import numpy as np

from bellcrank.dynamics.loops import assemble
from bellcrank.dynamics.loops.assembly import CLOSED
from bellcrank.dynamics.loops.numbers import closed
from bellcrank.errors import InputError, unknown
from bellcrank.model import Mechanism
from bellcrank.sim.arguments import listed
from bellcrank.sim.columns import units
from bellcrank.sim.damped_newton import FAILED, Equations, descended
from bellcrank.sim.dynamics import Dynamics
from bellcrank.sim.linear import prepared
from bellcrank.sim.open_system import forces_in, opened, where_of
from bellcrank.sim.operating_point import Point, displaced, elements, plain, point
from bellcrank.sim.systems import System

Array = np.ndarray[Any, Any]
STRIDE = 0.5  # rad or m: longest displacement of a joint in one iteration
PRESSURE, TINY = 1e5, 1e-12  # Pa: scale of a pressure whose guess is zero; and the smallest value used as a scale
SLIGHT = 1e-3, 1e-6  # negligible effects: on an acceleration, and on the rate of a state of scale 1
SPREAD = (0.03, 0.1, 0.3, 0.3, 1.0, 1.0)  # rad or m: standard deviations of restarts around the guess
MOST_ROUNDS = 400  # iterations after which no further restart is tried
KINK, SIDES = 0.1, 16  # distance of restarts from a kink, and their largest number


@dataclass(frozen=True, eq=False)
class Place:
    """A point with the coordinates chosen there."""

    at: Point
    by: Dynamics
    unknowns: tuple[str, ...]
    equations: tuple[str, ...]
    xi: Array  # displacements of all joints per unit of each unknown, (unknowns, nv)


class Search:
    """Equilibrium search for one plant, guess, and choice of held and free quantities."""

    def __init__(self, plant: Mechanism | System, at: Any, hold: Any, free: Any) -> None:
        given = dict(hold) if isinstance(hold, Mapping) else dict.fromkeys(_names("hold", hold))
        asked = None if free is None else _names("free", free)
        self.plant, said = plant, where_of(plant, at)
        wide = opened(plant, None, forces_in((*said, *given, *(asked or ())))).system
        self._read_hold(wide, given)
        self._read_free(wide, asked)
        moving = tuple(n for n in self.free if n in wide.inputs or n in wide.parameters)
        self.made = prepared(plant, moving, tuple(wide.inputs))
        self.system = self.made.open.system
        m = self.system.mechanism
        joints = [j.name for j in m.own_joints]
        self.joints = [j for j in joints if any(f"{n}.q" in self.hold for n in _columns(m, j, 0))]
        self.held = [n for j in self.joints for n in _columns(m, j, 1)]
        self.known = elements(self.system)
        self.start = self._guess(said)
        self.sizes = self._sizes()
        self.targets = self._targets()

    def _read_hold(self, s: System, given: Mapping[str, Any]) -> None:
        known, seen, groups = elements(s), units(s), _groups(s)
        self.hold = {n: x for name, x in given.items() for n in groups.get(name, [name])}
        fit = [n for n, (kind, _) in known.items() if kind in ("q", "x", "u")]
        fit += [n for n in seen if n not in known]
        for name in self.hold:
            if name not in fit:
                raise InputError(
                    f'hold, of "{s.mechanism.name}": {unknown("element or column", name, [*groups, *fit])} Velocities '
                    "are zero."
                )

    def _read_free(self, s: System, asked: Sequence[str] | None) -> None:
        groups = _groups(s)
        usual = [n for n in s.inputs if n not in self.hold] if set(groups["q"]) & set(self.hold) else []
        self.free = [n for name in (usual if asked is None else asked) for n in groups.get(name, [name])]
        fit = [*s.inputs, *s.parameters, *groups["x"], *groups["q"]]
        for name in self.free:
            if name not in fit:
                raise InputError(f'free, of "{s.mechanism.name}": {unknown("input", name, [*groups, *fit])}')
            if name in self.hold:
                raise InputError(f'"{name}" is in hold and in free; leave one of them out.')

    def _guess(self, given: dict[str, Any]) -> Point:
        """Return the guess with held values inserted, at rest, and with loops closed."""
        s, m = self.system, self.system.mechanism
        given |= {n: x for n, x in self.hold.items() if x is not None and n in self.known}
        given |= {n: 0.0 for n in self.free if n in s.inputs and n not in given and n not in s.defaults}
        guess = point(s, given)
        if guess.shape:
            raise InputError(f"at: there are {guess.shape} points; equilibrium starts from one guess.")
        y = np.array(guess.y)
        y[:, m.nq : m.nq + m.nv] = 0.0
        as_is = plain(s, guess.p[0])
        if np.abs(closed(as_is.tree, y[0, : m.nq]).value).max(initial=0.0) > CLOSED:
            y[0, : m.nq] = assemble(as_is, y[0, : m.nq], fixed=self.joints)[0]
        return replace(guess, y=y)

    def _sizes(self) -> dict[str, float]:
        """Return the scales of all elements except joints, taken from the guess."""
        found, at = {}, self.start.named
        for name, (kind, i) in self.known.items():
            if kind not in ("q", "v"):
                pressure = kind == "x" and self.system.states[i].unit == "Pa"
                found[name] = max(abs(float(at[kind][i])), PRESSURE if pressure else 0.0)
        return {name: x if x > TINY else 1.0 for name, x in found.items()}

    def _targets(self) -> dict[str, float]:
        """Return the values at which columns are held: given ones, else those at the guess."""
        said = {n: x for n, x in self.hold.items() if x is not None}
        names = tuple(n for n in self.hold if n in units(self.system))
        here = self.made.tangents(self._by(self.start), names)(self.start).seen[0]
        return {n: float(x) for n, x in (dict(zip(names, here, strict=True)) | said).items()}

    # -- on the way

    def _by(self, at: Point) -> Dynamics:
        """Return dynamics with independent coordinates that suit the point, the held ones among them if possible."""
        closure = self.made.dynamics.closure
        try:
            return closure.common(at.y, at.p, self.held)
        except InputError:
            return closure.common(at.y, at.p)

    def equations(self, at: Point) -> Equations[Place]:
        """Return the equations to be solved, linearised at the point `at`."""
        s, by = self.system, self._by(at)
        own, k = self.made.tangents(by, ()).names, len(by.independent)
        pinned = [f"{n}.q" for n in self.held if f"{n}.q" in own[:k]]
        loose = [n for n in self.held if f"{n}.q" not in own[:k]]
        elsewhere = set(_groups(s)["x"]) | set(s.inputs)
        watched = tuple(n for n in self.hold if n not in pinned and n not in elsewhere and self._watched(n, loose))
        tangents = self.made.tangents(by, watched)
        found = tangents(at)
        free = [j for j, n in enumerate(own) if not k <= j < 2 * k and n not in pinned and n not in self.hold]
        columns = [*free, *range(len(own), len(own) + len(tangents.inputs))]
        unknowns = (*(own[j] for j in free), *self.made.open.asked)
        missed = found.seen[0] - [self.targets[n] for n in watched]
        slight = [SLIGHT[0]] * k + [SLIGHT[1] * self.sizes[n] for n in own[2 * k :]] + [SLIGHT[1]] * len(watched)
        return Equations(
            Place(at, by, unknowns, (*own[k:], *watched), found.moved[0, columns]),
            np.concatenate([found.rate[0, k:], missed]),
            np.concatenate([found.by[0, columns][:, k:], found.seen_by[0, columns]], axis=1).T,
            np.array([self.sizes.get(n, 1.0) for n in unknowns]),
            np.array(slight),
        )

    def _watched(self, name: str, loose: Sequence[str]) -> bool:
        """Return True if a held quantity needs an equation: a column, or a joint that depends on others."""
        m, element = self.system.mechanism, name.removesuffix(".q")
        if not name.endswith(".q") or element not in m.columns[0]:
            return True
        joint = next(j.name for j in m.own_joints if element in _columns(m, j.name, 0))
        return any(n in loose for n in _columns(m, joint, 1))

    def moved(self, now: Equations[Place], step: Array) -> Equations[Place]:
        """Return the equations at a displaced point.

        Parameters
        ----------
        now
            The present equations.
        step
            Change of the unknowns; it is shortened if a joint would move too far.
        """
        place, m = now.place, self.system.mechanism
        xi = step @ place.xi
        part = min(1.0, STRIDE / max(float(np.abs(xi).max(initial=0.0)), 1e-300))
        at = self._changed(now, part * step)
        y = np.array(at.y)
        y[0, : m.nq] = displaced(self.system, at.p[0], y[0, : m.nq], part * xi, place.by.independent)
        return self.equations(replace(at, y=y))

    def _changed(self, now: Equations[Place], change: Array) -> Point:
        """Return the point with changed states and inputs, clipped to their limits; joints stay."""
        s, m = self.system, self.system.mechanism
        at = {key: np.array(x) for key, x in now.place.at.named.items()}
        for name, x in zip(now.place.unknowns, change, strict=True):
            kind, i = self.known.get(name, ("q", 0))
            if kind != "q":
                at[kind][i] += x
        for i, pair in enumerate(s.limits()):
            if pair is not None and all(isinstance(x, float) for x in pair):
                at["x"][i] = np.clip(at["x"][i], *pair)
        y = np.concatenate([at["q"], np.zeros(m.nv), at["x"]])
        return replace(now.place.at, y=y[None], u=at["u"][None], p=at["p"][None])

    def found(self) -> tuple[Equations[Place], int]:
        """Return the equations with the smallest error, and the number of iterations."""
        best, rounds = descended(self.equations(self.start), self.moved)
        for start in self._others() if best.error > FAILED else ():
            if rounds > MOST_ROUNDS:
                break
            new, more = descended(self.equations(start), self.moved)
            rounds += more
            best = min(best, new, key=lambda found: found.error)
            if best.error <= FAILED:
                break
        return best, rounds

    def _others(self) -> Iterator[Point]:
        """Yield restarts: on all sides of kinks at zero, such as a closed valve; then with displaced joints."""
        here = self.equations(self.start)
        kinks = self._kinks(here)
        for signs in islice(product((1.0, -1.0), repeat=len(kinks)), SIDES if kinks else 0):
            step = np.zeros(len(here.sizes))
            step[kinks] = KINK * np.array(signs)
            yield self._changed(here, step)
        rng = np.random.default_rng(0)
        for far in SPREAD:
            yield self._nudged(far, rng)

    def _kinks(self, here: Equations[Place]) -> list[int]:
        """Return the unknowns, joints excluded, that are zero and at which the derivatives have a kink."""
        found = []
        for j, name in enumerate(here.place.unknowns):
            kind, i = self.known.get(name, ("q", 0))
            if kind == "q" or here.place.at.named[kind][i]:
                continue
            step = np.where(np.arange(len(here.sizes)) == j, KINK, 0.0)
            more, less = (self.equations(self._changed(here, way * step)).slopes[:, j] for way in (1.0, -1.0))
            slopes = np.array([here.slopes[:, j], more, less])
            low, high = slopes.min(axis=0), slopes.max(axis=0)
            if (high - low > np.maximum(0.1 * np.maximum(high, -low), here.slight)).any():
                found.append(j)
        return found

    def _nudged(self, far: float, rng: np.random.Generator) -> Point:
        """Return the guess with random displacements of the joints that are not held."""
        at, s = self.start, self.system
        by = self._by(at)
        m, free = s.mechanism, [i for i in by.independent if s.mechanism.columns[1][i] not in self.held]
        xi = np.zeros(m.nv)
        xi[free] = far * rng.normal(size=len(free))
        y = np.array(at.y)
        y[0, : m.nq] = displaced(s, at.p[0], at.y[0, : m.nq], xi, by.independent)
        return replace(at, y=y)


def _names(what: str, given: Any) -> list[str]:
    names = [given] if isinstance(given, str) else list(listed(what, given, "names"))
    for name in names:
        if not isinstance(name, str):
            raise InputError(f'{what}: {name!r} is not a name; expected names, as in {what}=["elbow.q"].')
    return names


def _groups(s: System) -> dict[str, list[str]]:
    """Return the element names of whole vectors."""
    return {"q": [f"{n}.q" for n in s.mechanism.columns[0]], "x": [z.name for z in s.states], "u": list(s.inputs)}


def _columns(m: Mechanism, joint: str, of: int) -> list[str]:
    """Return the elements of q (0) or of v (1) that belong to a joint."""
    return [n for n in m.columns[of] if n == joint or n.rpartition(".")[0] == joint]
