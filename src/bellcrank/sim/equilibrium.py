"""bc.equilibrium: where a system rests, in numbers and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.misfits import explained
from bellcrank.model import Mechanism
from bellcrank.parameters.table import nominal
from bellcrank.quoting import line
from bellcrank.sim.damped_newton import FAILED, Equations
from bellcrank.sim.motions import wanted
from bellcrank.sim.rest_search import Place, Search
from bellcrank.sim.systems import System
from bellcrank.text import Table

Array = np.ndarray[Any, Any]
LOOSE = 1e-3  # of an unknown: more than this is undetermined


class EquilibriumError(InputError):
    """Nothing rests near the guess; `nearest` is the best that was found."""

    def __init__(self, text: str, nearest: Equilibrium) -> None:
        super().__init__(text)
        self.nearest = nearest


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """Where a system rests: bc.linearize(plant, at=found), bc.simulate(plant, q0=found.q, x0=found.x, ...)."""

    plant: Mechanism | System = field(repr=False)
    system: System = field(repr=False)  # the same with all inputs that were given or solved for
    q: Array
    x: Array
    inputs: dict[str, float]
    parameters: dict[str, float]
    t: float
    held: dict[str, float]  # what was to be held, and its value there
    solved: tuple[str, ...]  # what was solved for
    undetermined: tuple[str, ...]  # of these, what nothing determines: it stays near the guess
    failures: tuple[str, ...]  # what does not rest, or could not be held, in words
    rounds: int

    @property
    def v(self) -> Array:
        """Velocities, all zero: it rests."""
        return np.zeros(self.system.mechanism.nv)

    @property
    def at(self) -> dict[str, Any]:
        """As `at` of bc.linearize takes it."""
        x = {z.name: float(value) for z, value in zip(self.system.states, self.x, strict=True)}
        return {"q": self.q, **x, **self.inputs, **self.parameters, "t": self.t}

    @property
    def rows(self) -> list[tuple[str, float, str]]:
        """Every element: its name, its value, and what became of it."""
        m = self.system.mechanism
        values = {f"{n}.q": x for n, x in zip(m.columns[0], self.q, strict=True)}
        values |= {z.name: x for z, x in zip(self.system.states, self.x, strict=True)}
        values |= self.inputs | {n: self.parameters[n] for n in self.solved if n in self.parameters} | self.held
        words = dict.fromkeys(self.solved, "solved") | dict.fromkeys(self.held, "held")
        words |= dict.fromkeys(self.undetermined, "solved, of many")
        return [(name, float(x), words.get(name, "")) for name, x in values.items()]

    def __str__(self) -> str:
        rows = [(name, f"{x:.6g}", word) for name, x, word in self.rows]
        title = f"{line(self.system.mechanism.name)}: {'does not rest' if self.failures else 'rests'}"
        title += f", after {self.rounds} rounds"
        return str(Table(title, ("element", "value", ""), rows, (1,), "\n".join(map(line, self.failures))))


@explained
def equilibrium(
    plant: Mechanism | System, at: Any = None, hold: Any = (), free: Sequence[str] | str | None = None
) -> Equilibrium:
    """Where the plant rests, the nearest to a guess that is found.

        bc.equilibrium(arm)                                              # hanging, or on its springs
        bc.equilibrium(arm, at={"elbow.q": 0.5}, hold="q")               # the torques that hold it there
        bc.equilibrium(plant, hold={"tip.z": 0.3}, free=["boom.command"])

    at: the guess, as in bc.linearize; loops need not be closed in it. hold: what stays, by name: elements ("elbow.q"),
    whole vectors ("q", "x", "u"), or any column of a record ("tip.z"); a list holds what the guess has, a mapping says
    values. free: inputs, forces ("boom.tau") and free numbers that are solved for as well; unless told none, and where
    positions are held all inputs that are not. All other positions and states are solved for, velocities are zero. What
    nothing determines stays near the guess. A EquilibriumError says what could not be brought to rest, or held, and has
    the nearest that was found. What rests may be unstable: bc.linearize(plant, at=...).modes() tells.
    """
    search = Search(plant, at, hold, free)
    found = _told(search, *search.found())
    if found.failures:
        raise EquilibriumError(
            f'"{found.system.mechanism.name}" could not be brought to rest near the guess:\n  '
            + "\n  ".join(found.failures)
            + "\nGive another guess (at=...), hold less, or let inputs be solved for: free=[...]. Inputs: "
            f"{', '.join(found.system.inputs) or 'none'}. The error's .nearest is the best that was found.",
            found,
        )
    return found


def _told(search: Search, best: Equations[Place], rounds: int) -> Equilibrium:
    s, place = search.system, best.place
    at, loose = place.at.named, best.loose
    seen = {n: at[kind][i] for n, (kind, i) in search.known.items() if n in search.hold}
    return Equilibrium(
        search.plant,
        s,
        at["q"],
        at["x"],
        dict(zip(s.inputs, at["u"].tolist(), strict=True)),
        dict(zip(s.parameters, at["p"].tolist(), strict=True)),
        float(at["t"]),
        {n: float(seen.get(n, search.targets.get(n, np.nan))) for n in search.hold},
        place.unknowns,
        tuple(n for n, x in zip(place.unknowns, loose, strict=True) if x > LOOSE),
        tuple(_failures(search, best)),
        rounds,
    )


def _failures(search: Search, best: Equations[Place]) -> list[str]:
    """What does not rest, or is not held, in words."""
    said = _moving(search.system, float(best.place.at.named["t"]))
    for i, name in enumerate(best.place.equations):
        if abs(best.scaled[i]) <= FAILED:
            continue
        value, idle = best.values[i], not (best.scales[i] > best.slight[i])
        if name in search.targets and i >= len(best.place.equations) - len(search.targets) and name in search.hold:
            text = f"{name} is {search.targets[name] + value:.6g}, and was to be held at {search.targets[name]:.6g}"
        else:
            text = f"{name} changes by {value:.6g} a second"
        said.append(text + ("; nothing that is solved for acts on it" if idle else ""))
    return said


def _moving(s: System, t: float) -> list[str]:
    """Return a line for each prescribed motion that has a speed or an acceleration at the time t."""
    lines = []
    for name, motion in s.motions.items():
        place = wanted(name, motion, t)
        speed, acceleration = nominal(place.d), nominal(place.c)
        if speed or acceleration:
            lines.append(f'the motion of "{name}" goes on: speed {speed:.6g}, acceleration {acceleration:.6g}')
    return lines
