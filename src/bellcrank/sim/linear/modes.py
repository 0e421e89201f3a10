"""Modes of a linearised system: natural frequencies, damping ratios and mode shapes, each of which can be animated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.dynamics.loops.assembly import consistent_velocity
from bellcrank.errors import InputError
from bellcrank.quoting import single_line
from bellcrank.record import Column, Record, state_columns
from bellcrank.sim.linear.operating_point import dependent_mask, displaced_positions, mechanism_at
from bellcrank.text_table import Table

if TYPE_CHECKING:
    from bellcrank.sim.linear.linearisation import Linear

Array = np.ndarray[Any, Any]
# Relative to the fastest eigenvalue: accuracy of a double zero.
ZERO_EIGENVALUE_RATIO = float(np.sqrt(np.finfo(float).eps))
REST_ACCELERATION = 1e-6  # rad/s2 or m/s2: smaller accelerations count as rest
MOST_NAMED_JOINTS = 5  # largest number of joints named in a row of the table
ROUNDING_RATIO = 1e-13  # relative to the fastest eigenvalue: smaller real parts count as no damping
NAMED_AMPLITUDE_RATIO = 0.1  # smallest amplitude that is named, relative to that of the joint that moves most


@dataclass(frozen=True, eq=False)
class Mode:
    """One mode of a linearised system: z(t) = Re(states exp(eigenvalue t)).

    A complex eigenvalue is an oscillation; a real one is a motion that decays or grows.

    Attributes
    ----------
    eigenvalue : complex
        In 1/s, with a non-negative imaginary part.
    shape : ndarray, shape (nv,)
        Complex amplitude (magnitude and phase) of each element of v; the largest is 1.
    states : ndarray, shape (n,)
        The eigenvector, in the coordinates of the linearisation.
    linear : Linear
        The linearisation that the mode belongs to.
    """

    eigenvalue: complex  # 1/s
    shape: Array  # (nv,)
    states: Array  # (n,)
    linear: Linear = field(repr=False)

    @property
    def oscillates(self) -> bool:
        """Return True if the eigenvalue is complex."""
        return self.eigenvalue.imag > 0.0

    @property
    def frequency(self) -> float:
        """Return the undamped natural frequency in Hz; 0 for a mode that does not oscillate."""
        return abs(self.eigenvalue) / (2.0 * np.pi) if self.oscillates else 0.0

    @property
    def damping(self) -> float:
        """Return the damping ratio: negative for growth, 1 for decay without oscillation, NaN for a zero eigenvalue."""
        return 0.0 - self.eigenvalue.real / abs(self.eigenvalue) if self.eigenvalue else np.nan

    @property
    def moves(self) -> dict[str, complex]:
        """Return the complex amplitudes of the joints that move, the largest first.

        Joints that move less than a tenth of the largest amplitude are left out.
        """
        names = self.linear.plant.system.mechanism.columns[1]
        order = np.argsort(-np.abs(self.shape), kind="stable")
        return {names[i]: complex(self.shape[i]) for i in order if abs(self.shape[i]) >= NAMED_AMPLITUDE_RATIO}

    def record(self, amplitude: float = 0.2, periods: float = 3.0, rows: int = 60) -> Record:
        """Return a record of the mechanism moving along the mode, for animation: mode.record().report("mode.html").

        An oscillation is shown without damping; a mode that does not oscillate decays or grows. Loops stay closed.

        Parameters
        ----------
        amplitude : float, default 0.2
            Amplitude of the joint that moves most, rad or m.
        periods : float, default 3.0
            Number of periods, or of time constants if the mode does not oscillate.
        rows : int, default 60
            Rows of the record per period or time constant.

        Returns
        -------
        Record
            Positions, velocities and parameters over time.

        Raises
        ------
        InputError
            If no joint moves in this mode.
        """
        if not np.abs(self.shape).max(initial=0.0):
            raise InputError(f"record: no joint moves in this mode; it is one of {self._joint_text}.")
        rate = 1j * self.eigenvalue.imag if self.oscillates else self.eigenvalue
        period = 2.0 * np.pi / rate.imag if self.oscillates else 1.0 / (abs(rate) or 1.0)
        t = np.linspace(0.0, periods * period, round(periods * rows) + 1)
        growth = t / t[-1] if not rate else np.exp(rate * t - max(0.0, rate.real) * t[-1])
        speed = np.full_like(t, 1.0 / t[-1]) if not rate else rate * growth
        q, v = self._consistent_states(*(amplitude * (x[:, None] * self.shape).real for x in (growth, speed)))
        s = self.linear.plant.system
        m, columns = s.mechanism, state_columns(s.mechanism, t, q=q, v=v)
        for name, x in zip(s.parameters, self.linear.at["p"], strict=True):
            columns[f"parameter.{name}"] = Column(f"parameter.{name}", s.parameters.unit(name), np.full_like(t, x))
        return Record(columns, mechanism=m, provenance={"mechanism": m.name, "mode": str(self)})

    def _consistent_states(self, xi: Array, v: Array) -> tuple[Array, Array]:
        """Return displaced positions and velocities whose dependent coordinates satisfy the loop equations."""
        s, point = self.linear.plant.system, self.linear.at
        free = [i for i, n in enumerate(s.mechanism.columns[1]) if f"{n}.q" in self.linear.states]
        q = displaced_positions(s, point["p"], point["q"], xi, free)
        tree = mechanism_at(s, point["p"]).tree
        return q, consistent_velocity(tree, q, v, free=dependent_mask(s, free)) if tree.loops else v

    @property
    def _joint_text(self) -> str:
        """Return the moving joints as text."""
        if self.moves:
            words = [f"{n} {_amplitude_text(x)}" for n, x in self.moves.items()]
            return ", ".join(words[:MOST_NAMED_JOINTS]) + (", ..." if len(words) > MOST_NAMED_JOINTS else "")
        return self.linear.states[int(np.argmax(np.abs(self.states)))]

    @property
    def row(self) -> tuple[str, ...]:
        """Return the cells of the mode in the table: frequency, damping, time constant, moving joints."""
        real = self.eigenvalue.real
        time = f"{1.0 / abs(real):.4g}" if real else ""
        grows = " grows" if real > 0.0 else ""
        if self.oscillates:
            return f"{self.frequency:.5g}", f"{self.damping:.4g}", f"{time}{grows}", self._joint_text
        return "", "", f"{time}{grows}" if real else "rests anywhere", self._joint_text

    def __str__(self) -> str:
        kind = f"{self.frequency:.4g} Hz, damping {self.damping:.3g}" if self.oscillates else f"{self.row[2]} s"
        return f"{kind}: {single_line(self._joint_text)}"


@dataclass(frozen=True, eq=False)
class Modes(Sequence[Mode]):
    """Modes of a linearised system, the slowest first; prints as a table.

    Attributes
    ----------
    all : tuple of Mode
        The modes, sorted by the magnitude of the eigenvalue.
    linear : Linear
        The linearisation that they belong to.
    """

    all: tuple[Mode, ...]
    linear: Linear

    def __getitem__(self, k: Any) -> Any:
        return self.all[k]

    def __len__(self) -> int:
        return len(self.all)

    @property
    def oscillating(self) -> list[Mode]:
        """Return the modes that oscillate."""
        return [mode for mode in self.all if mode.oscillates]

    @property
    def frequencies(self) -> Array:
        """Return the natural frequencies of the oscillating modes in Hz, in ascending order."""
        return np.array([mode.frequency for mode in self.oscillating])

    @property
    def dampings(self) -> Array:
        """Return the damping ratios of the oscillating modes."""
        return np.array([mode.damping for mode in self.oscillating])

    def __str__(self) -> str:
        rows = [(str(k), *mode.row) for k, mode in enumerate(self.all)]
        head = ("#", "frequency Hz", "damping", "time s", "moves")
        title = f"{single_line(self.linear.plant.system.mechanism.name)}: {len(self.oscillating)} oscillations"
        return str(Table(title, head, rows, (0, 1, 2, 3), self.equilibrium_note))

    @property
    def equilibrium_note(self) -> str:
        """Return a note if the operating point is not an equilibrium, else an empty text."""
        k = (len(self.linear.states) - self.linear.plant.system.nx) // 2
        a = np.abs(self.linear.rate[: 2 * k])
        if not a.max(initial=0.0) > REST_ACCELERATION:
            return ""
        name = single_line(self.linear.states[int(np.argmax(a))])
        return (
            f"The point is not at rest ({name} changes by {self.linear.rate[np.argmax(a)]:.3g} per second), so the "
            "modes depend on the choice of coordinates. bc.equilibrium finds a point of rest."
        )


def modes(linear: Linear) -> Modes:
    """Return the modes of a linearisation at one point.

    Parameters
    ----------
    linear
        Linearisation of the rate, or of a step: then the modes are those of the rate with the same transition matrix.
    """
    values, vectors = np.linalg.eig(linear.A)
    if linear.step is not None:
        values = np.log(values.astype(complex)) / linear.step
    fastest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    mode_list, shapes = [], linear.shapes.astype(complex)
    for value, z in zip(values.astype(complex), vectors.T.astype(complex), strict=True):
        value = 0j if abs(value) <= ZERO_EIGENVALUE_RATIO * fastest else value
        value = complex(value.real, 0.0) if abs(value.imag) <= ZERO_EIGENVALUE_RATIO * abs(value) else complex(value)
        value = complex(0.0, value.imag) if abs(value.real) <= ROUNDING_RATIO * fastest else value
        if value.imag < 0.0:  # the complex conjugate describes the same motion
            continue
        mode_list.append(_mode(linear, value, shapes @ z, z))
    return Modes(tuple(sorted(mode_list, key=lambda mode: abs(mode.eigenvalue))), linear)


def _mode(linear: Linear, value: complex, shape: Array, z: Array) -> Mode:
    largest = int(np.argmax(np.abs(shape))) if len(shape) else 0
    scale = shape[largest] if len(shape) and abs(shape[largest]) > 1e-12 * np.abs(z).max() else 0.0
    if not scale:  # no joint moves
        return Mode(value, np.zeros(len(shape), complex), z / z[np.argmax(np.abs(z))], linear)
    return Mode(value, shape / scale, z / scale, linear)


def _amplitude_text(x: complex) -> str:
    """Format an amplitude, with its phase unless that is within 5 degrees of 0 or 180."""
    phase_deg = np.degrees(np.angle(x))
    if min(abs(phase_deg), 180.0 - abs(phase_deg)) < 5.0:
        return f"{x.real:.2f}"
    return f"{abs(x):.2f} at {phase_deg:.0f} deg"
