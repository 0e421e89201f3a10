"""bc.equilibrium: static equilibrium of a system, and its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import InputError
from bellcrank.model import Mechanism
from bellcrank.parameters.parameter_table import nominal
from bellcrank.quoting import single_line
from bellcrank.sim.linear.equilibrium_search import FAILED_RESIDUAL, Equations, RestSearch, SearchPoint
from bellcrank.sim.system.prescribed_motions import prescribed_jet
from bellcrank.sim.system.systems import System
from bellcrank.text_table import Table

Array = np.ndarray[Any, Any]
UNDETERMINED_SHARE = 1e-3  # share of an unknown in the null space above which it counts as undetermined


class EquilibriumError(InputError):
    """No equilibrium was found near the guess.

    Parameters
    ----------
    text : str
        The message.
    nearest : Equilibrium
        The best state that was reached.
    """

    def __init__(self, text: str, nearest: Equilibrium) -> None:
        super().__init__(text)
        self.nearest = nearest


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """Equilibrium of a system, for bc.linearize(plant, at=found) or bc.simulate(plant, q0=found.q, x0=found.x, ...).

    Parameters
    ----------
    plant : Mechanism or System
        The plant.
    system : System
        The plant with all inputs that were given or solved for.
    q : ndarray, shape (nq,)
        Joint positions, rad or m.
    x : ndarray, shape (nx,)
        Further states.
    inputs : dict of str to float
        Values of the inputs.
    parameters : dict of str to float
        Values of the free parameters.
    t : float
        Time, s.
    held : dict of str to float
        Quantities that were to be held, and their values.
    solved : tuple of str
        Names of the unknowns.
    undetermined : tuple of str
        Unknowns that no equation determines: they stay near the guess.
    failures : tuple of str
        A sentence for each quantity that is not at rest, or could not be held.
    rounds : int
        Number of iterations.
    """

    plant: Mechanism | System = field(repr=False)
    system: System = field(repr=False)
    q: Array
    x: Array
    inputs: dict[str, float]
    parameters: dict[str, float]
    t: float
    held: dict[str, float]
    solved: tuple[str, ...]
    undetermined: tuple[str, ...]
    failures: tuple[str, ...]
    rounds: int

    @property
    def v(self) -> Array:
        """Velocities, all zero."""
        return np.zeros(self.system.mechanism.nv)

    @property
    def at(self) -> dict[str, Any]:
        """The point in the form that `at` of bc.linearize accepts."""
        x = {z.name: float(value) for z, value in zip(self.system.states, self.x, strict=True)}
        return {"q": self.q, **x, **self.inputs, **self.parameters, "t": self.t}

    @property
    def rows(self) -> list[tuple[str, float, str]]:
        """Every element: its name, its value, and whether it was held or solved for."""
        m = self.system.mechanism
        values = {f"{n}.q": x for n, x in zip(m.columns[0], self.q, strict=True)}
        values |= {z.name: x for z, x in zip(self.system.states, self.x, strict=True)}
        values |= self.inputs | {n: self.parameters[n] for n in self.solved if n in self.parameters} | self.held
        words = dict.fromkeys(self.solved, "solved") | dict.fromkeys(self.held, "held")
        words |= dict.fromkeys(self.undetermined, "solved, of many")
        return [(name, float(x), words.get(name, "")) for name, x in values.items()]

    def __str__(self) -> str:
        rows = [(name, f"{x:.6g}", word) for name, x, word in self.rows]
        title = f"{single_line(self.system.mechanism.name)}: {'does not rest' if self.failures else 'rests'}"
        title += f", after {self.rounds} rounds"
        return str(Table(title, ("element", "value", ""), rows, (1,), "\n".join(map(single_line, self.failures))))


@explain_argument_errors
def equilibrium(
    plant: Mechanism | System, at: Any = None, hold: Any = (), free: Sequence[str] | str | None = None
) -> Equilibrium:
    """Return the equilibrium of a plant that is found from a guess.

        bc.equilibrium(arm)                                              # hanging, or on its springs
        bc.equilibrium(arm, at={"elbow.q": 0.5}, hold="q")               # the torques that hold it there
        bc.equilibrium(plant, hold={"tip.z": 0.3}, free=["boom.command"])

    Velocities are zero. All positions and states that are not held are solved for. Unknowns that no equation determines
    stay near the guess. An equilibrium may be unstable: bc.linearize(plant, at=...).modes() shows that.

    Parameters
    ----------
    plant : Mechanism or System
        The plant.
    at : mapping or Equilibrium, optional
        The guess, as in `bellcrank.linearize`; loops need not be closed in it.
    hold : str, sequence of str, or mapping, optional
        Quantities that are held, by name: elements ("elbow.q"), whole vectors ("q", "x", "u"), or any column of a
        record ("tip.z"). A list holds the values of the guess, a mapping gives values.
    free : str or sequence of str, optional
        Inputs, forces ("boom.tau") and free parameters that are solved for as well. The default is none; where
        positions are held, it is all inputs that are not held.

    Returns
    -------
    Equilibrium
        The state, the inputs and the parameters; prints as a table.

    Raises
    ------
    EquilibriumError
        If no equilibrium is found or a quantity cannot be held; its `nearest` is the best state that was reached.
    """
    search = RestSearch(plant, at, hold, free)
    result = _equilibrium(search, *search.solve())
    if result.failures:
        raise EquilibriumError(
            f'"{result.system.mechanism.name}" could not be brought to rest near the guess:\n  '
            + "\n  ".join(result.failures)
            + "\nGive another guess (at=...), hold fewer quantities, or solve for inputs: free=[...]. Inputs: "
            f"{', '.join(result.system.inputs) or 'none'}. The error's .nearest is the best state that was found.",
            result,
        )
    return result


def _equilibrium(search: RestSearch, best: Equations[SearchPoint], rounds: int) -> Equilibrium:
    s, place = search.system, best.place
    point_values, loose = place.point.vectors, best.undetermined_shares
    held_values = {n: point_values[kind][i] for n, (kind, i) in search.places.items() if n in search.hold}
    inputs, parameters = (
        dict(zip(names, point_values[key].tolist(), strict=True))
        for names, key in ((s.inputs, "u"), (s.parameters, "p"))
    )
    point = point_values["q"], point_values["x"], inputs, parameters, float(point_values["t"])
    held = {n: float(held_values.get(n, search.targets.get(n, np.nan))) for n in search.hold}
    undetermined = tuple(n for n, x in zip(place.unknowns, loose, strict=True) if x > UNDETERMINED_SHARE)
    failures = tuple(_failures(search, best))
    return Equilibrium(search.plant, s, *point, held, place.unknowns, undetermined, failures, rounds)


def _failures(search: RestSearch, best: Equations[SearchPoint]) -> list[str]:
    """Return a sentence for each quantity that is not at rest, or is not held."""
    sentences = _prescribed_motions(search.system, float(best.place.point.vectors["t"]))
    for i, name in enumerate(best.place.equations):
        if abs(best.scaled[i]) <= FAILED_RESIDUAL:
            continue
        value, idle = best.values[i], not (best.scales[i] > best.least_scales[i])
        if name in search.targets and i >= len(best.place.equations) - len(search.targets) and name in search.hold:
            text = f"{name} is {search.targets[name] + value:.6g}, but was to be held at {search.targets[name]:.6g}"
        else:
            text = f"{name} changes by {value:.6g} a second"
        sentences.append(text + ("; none of the unknowns acts on it" if idle else ""))
    return sentences


def _prescribed_motions(s: System, t: float) -> list[str]:
    """Return a line for each prescribed motion that has a speed or an acceleration at the time t."""
    lines = []
    for name, motion in s.motions.items():
        place = prescribed_jet(name, motion, t)
        speed, acceleration = nominal(place.d), nominal(place.c)
        if speed or acceleration:
            lines.append(f'the motion of "{name}" goes on: speed {speed:.6g}, acceleration {acceleration:.6g}')
    return lines
