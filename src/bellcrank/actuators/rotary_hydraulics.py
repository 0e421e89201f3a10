"""Wong's rotary hydraulics: a hydraulic motor and gear behind a four-way spool valve, a pressure in each line.

    s = opening v, less the dead band d, within +-limit                                            fig 5.3
    s > 0: Q_in = k_f s sqrt(P_s - p_in),  Q_out = k_f s sqrt(p_out - P_e)
    else : Q_in = k_f s sqrt(p_in - P_e),  Q_out = k_f s sqrt(P_s - p_out)                         5.2
    tau = (p_in - p_out) D_m G / 8 - beta_m v                                                      5.3
    dp_in/dt = (Q_in - v D_m G) beta_v,  dp_out/dt = (v D_m G - Q_out) beta_v                      5.4

Units as printed: pressures psi, spool cm, D_m in^3/rad, Q in^3/s, beta_v psi/in^3; 8 turns in lbf into N m (8.85 would
be exact). The command is the spool's voltage v of eq 5.5. How far a volt opens the spool is drawn in fig 5.3 and not
said in the text: `opening` is 1 cm/V unless given.

Source: D. Wong. Parallel implementation of multibody dynamics for real-time simulation. PhD thesis, University of
British Columbia, 1991, section 5.4.2 and table 5.2. Laminar flow: H. E. Merritt, Hydraulic Control Systems, Wiley 1967.

Departs: the paper puts the pressures back into [P_e, P_s] after every time step. Here the right-hand side does it, for
every integrator: flows and torque see the clipped pressures, and a pressure at its bound does not move outwards.
`limits()` lets a fixed-step run do as printed besides. `laminar` (psi, 0 as printed) makes the flow proportional to a
pressure drop below it, for integrators that need a derivative: that of a root is infinite at 0, where the run starts.
With a `stop_stiffness` the joint has mechanical stops, which the paper does not need: its bucket meets nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bellcrank.actuators.actuator import Actuator, StateVariable, end_stops, held, known
from bellcrank.errors import InputError
from bellcrank.parameters import nominal
from bellcrank.parameters.part_numbers import one_number
from bellcrank.scalar import Scalar, clip, sqrt, where


@dataclass(frozen=True)
class RotaryHydraulics(Actuator):
    """Wong's rotary actuator of 1991, in the units of the paper: psi, cubic inches, centimetres of spool."""

    P_s: Scalar  # psi, supply
    G: Scalar  # gear ratio
    beta_m: Scalar  # N m s / rad
    P_e: Scalar = 0.0  # psi, drain
    k_f: Scalar = 26.0  # in^3/s / (cm psi^0.5)
    D_m: Scalar = 0.7  # in^3/rad
    beta_v: Scalar = 1000.0  # psi / in^3
    opening: Scalar = 1.0  # cm / V
    deadband: Scalar = 0.005  # cm
    limit: Scalar = 0.05  # cm
    laminar: Scalar = 0.0  # psi
    p_in: float | None = None  # psi, at the start; None: the drain's
    p_out: float | None = None
    low: Scalar = 0.0  # rad, where the stops begin
    high: Scalar = 0.0
    stop_stiffness: Scalar = 0.0  # N m / rad; 0: there are none
    stop_damping: Scalar = 1.0  # s / rad

    command_unit: ClassVar[str] = "V"

    def __post_init__(self) -> None:
        self._check("P_s", "G", "k_f", "D_m", "beta_v", "opening", above_zero=True)
        self._check("beta_m", "deadband", "limit", "laminar", "stop_stiffness", "stop_damping")
        if known(self.P_e) and known(self.P_s) and not self.P_e < self.P_s:
            raise InputError(
                f'RotaryHydraulics on "{self.joint}": the drain P_e is {self.P_e!r} psi and the supply P_s '
                f"{self.P_s!r} psi; expected P_e < P_s."
            )
        for name in ("p_in", "p_out"):
            self._check_start(name, getattr(self, name))

    def _check_start(self, name: str, p: float | None) -> None:
        if p is None:
            return
        p = one_number(f'RotaryHydraulics on "{self.joint}"', name, p)
        below = known(self.P_e) and p < self.P_e
        above = known(self.P_s) and p > self.P_s
        if below or above:
            raise InputError(
                f'RotaryHydraulics on "{self.joint}": {name} is {p!r} psi at the start; expected one between P_e = '
                f"{self.P_e!r}, the drain's, which it is where nothing is given, and P_s = {self.P_s!r}, the supply's."
            )

    @property
    def states(self) -> tuple[StateVariable, ...]:
        drain = nominal(self.P_e)
        starts = {"p_in": self.p_in, "p_out": self.p_out}
        p_in, p_out = (StateVariable(name, "psi", drain if p is None else p, self.P_s) for name, p in starts.items())
        return p_in, p_out

    def limits(self) -> tuple[tuple[Scalar, Scalar] | None, ...]:
        return (self.P_e, self.P_s), (self.P_e, self.P_s)

    def spool(self, command: Scalar) -> Scalar:
        """How far the valve is open, cm: not at all within the deadband, and no further than the limit."""
        s = self.opening * command
        return clip(s - clip(s, -self.deadband, self.deadband), -self.limit, self.limit)

    def flows(self, s: Scalar, p_in: Scalar, p_out: Scalar) -> tuple[Scalar, Scalar]:
        """(Q_in, Q_out) through the valve at opening s."""
        opens = s > 0.0
        Q_in = self.k_f * s * self.root(where(opens, self.P_s - p_in, p_in - self.P_e))
        Q_out = self.k_f * s * self.root(where(opens, p_out - self.P_e, self.P_s - p_out))
        return Q_in, Q_out  # 5.2

    def root(self, drop: Scalar) -> Scalar:
        """The root of a pressure drop with its sign."""
        return sqrt(drop) if known(self.laminar) and self.laminar == 0 else drop / sqrt(drop + self.laminar)

    def __call__(
        self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar
    ) -> tuple[Scalar, list[Scalar]]:
        p_in, p_out = (clip(p, self.P_e, self.P_s) for p in x)
        Q_in, Q_out = self.flows(self.spool(command), p_in, p_out)
        tau = (p_in - p_out) * (self.D_m / 8.0 * self.G) - self.beta_m * v  # 5.3
        if not known(self.stop_stiffness) or self.stop_stiffness > 0:
            tau = tau + end_stops(q, v, self.low, self.high, self.stop_stiffness, self.stop_damping)
        swept = v * (self.D_m * self.G)
        rates = (Q_in - swept) * self.beta_v, (swept - Q_out) * self.beta_v  # 5.4
        return tau, [held(p, rate, self.P_e, self.P_s) for p, rate in zip(x, rates, strict=True)]
