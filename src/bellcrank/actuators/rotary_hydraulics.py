"""Rotary hydraulic actuator of Wong (1991): hydraulic motor and gear behind a four-way spool valve.

The states are the pressures of both lines.

    s = opening v, less the dead band d, within +-limit                                            fig 5.3
    s > 0: Q_in = k_f s sqrt(P_s - p_in),  Q_out = k_f s sqrt(p_out - P_e)
    else : Q_in = k_f s sqrt(p_in - P_e),  Q_out = k_f s sqrt(P_s - p_out)                         5.2
    tau = (p_in - p_out) D_m G / 8 - beta_m v                                                      5.3
    dp_in/dt = (Q_in - v D_m G) beta_v,  dp_out/dt = (v D_m G - Q_out) beta_v                      5.4

Units as printed: pressures psi, spool cm, D_m in^3/rad, Q in^3/s, beta_v psi/in^3; the factor 8 converts lbf in to N m
(8.85 would be exact). The command is the spool's voltage v of eq 5.5. The spool travel per volt is drawn in fig 5.3
but not given in the text: `opening` is 1 cm/V by default.

Source: D. Wong. Parallel implementation of multibody dynamics for real-time simulation. PhD thesis, University of
British Columbia, 1991, section 5.4.2 and table 5.2. Laminar flow: H. E. Merritt, Hydraulic Control Systems, Wiley 1967.

Differences from the paper: it clips the pressures to [P_e, P_s] after every time step. Here the right-hand side does
so, for every integrator: flows and torque use the clipped pressures, and a pressure at its bound does not move
outwards. With `limits()` a fixed-step run can also clip as printed. `laminar` (psi, 0 as printed) makes the flow
proportional to a pressure drop below it, for integrators that need a derivative: the root's slope is infinite at 0,
where the run starts. With a `stop_stiffness` the joint has mechanical stops, which the paper does not need: its bucket
meets no obstacle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bellcrank.actuators.actuator import Actuator, ForceAndRates, StateVariable, bounded_rate, end_stop_force, is_known
from bellcrank.errors import InputError
from bellcrank.parameters import nominal
from bellcrank.parameters.validation import one_number
from bellcrank.scalar import Scalar, clip, sqrt, where


@dataclass(frozen=True)
class RotaryHydraulics(Actuator):
    """Rotary hydraulic actuator of Wong (1991), in the paper's units: psi, cubic inches, centimetres of spool.

    Parameters
    ----------
    joint : str
        Joint coordinate on which the actuator acts: an entry of `mechanism.columns[1]`.
    P_s : Scalar
        Supply pressure, psi.
    G : Scalar
        Gear ratio.
    beta_m : Scalar
        Viscous friction, N m s/rad.
    P_e : Scalar, default 0.0
        Drain pressure, psi, below `P_s`.
    k_f : Scalar, default 26.0
        Flow coefficient, in^3/s/(cm psi^0.5).
    D_m : Scalar, default 0.7
        Motor displacement, in^3/rad.
    beta_v : Scalar, default 1000.0
        Stiffness of the oil volume, psi/in^3.
    opening : Scalar, default 1.0
        Spool travel per volt, cm/V.
    deadband : Scalar, default 0.005
        Dead band of the spool, cm.
    limit : Scalar, default 0.05
        Largest spool opening, cm.
    laminar : Scalar, default 0.0
        Pressure drop below which the flow is linear, psi; 0 as printed.
    p_in, p_out : float, optional
        Pressures at the start, psi; the drain's by default.
    low, high : Scalar, default 0.0
        Joint angles at which the stops begin, rad.
    stop_stiffness : Scalar, default 0.0
        Stiffness of the stops, N m/rad; 0 means no stops.
    stop_damping : Scalar, default 1.0
        Hunt-Crossley damping of the stops, s/rad.
    """

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
    p_in: float | None = None  # psi, at the start; None: drain pressure
    p_out: float | None = None
    low: Scalar = 0.0  # rad, start of the stops
    high: Scalar = 0.0
    stop_stiffness: Scalar = 0.0  # N m / rad; 0: no stops
    stop_damping: Scalar = 1.0  # s / rad

    command_unit: ClassVar[str] = "V"

    def __post_init__(self) -> None:
        self._check("P_s", "G", "k_f", "D_m", "beta_v", "opening", above_zero=True)
        self._check("beta_m", "deadband", "limit", "laminar", "stop_stiffness", "stop_damping")
        if is_known(self.P_e) and is_known(self.P_s) and not self.P_e < self.P_s:
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
        below = is_known(self.P_e) and p < self.P_e
        above = is_known(self.P_s) and p > self.P_s
        if below or above:
            raise InputError(
                f'RotaryHydraulics on "{self.joint}": {name} is {p!r} psi at the start; expected a pressure '
                f"between the drain's P_e = {self.P_e!r} (the default) and the supply's P_s = {self.P_s!r}."
            )

    @property
    def states(self) -> tuple[StateVariable, ...]:
        """Pressures of both lines."""
        drain = nominal(self.P_e)
        starts = {"p_in": self.p_in, "p_out": self.p_out}
        p_in, p_out = (StateVariable(name, "psi", drain if p is None else p, self.P_s) for name, p in starts.items())
        return p_in, p_out

    def limits(self) -> tuple[tuple[Scalar, Scalar] | None, ...]:
        """Return the bounds (P_e, P_s) of both pressures, psi."""
        return (self.P_e, self.P_s), (self.P_e, self.P_s)

    def spool(self, command: Scalar) -> Scalar:
        """Return the valve opening in cm for `command` (V): 0 within the dead band, clipped to the limit."""
        s = self.opening * command
        return clip(s - clip(s, -self.deadband, self.deadband), -self.limit, self.limit)

    def flows(self, s: Scalar, p_in: Scalar, p_out: Scalar) -> tuple[Scalar, Scalar]:
        """Return the flows through the valve.

        Parameters
        ----------
        s : Scalar
            Spool opening, cm.
        p_in, p_out : Scalar
            Line pressures, psi.

        Returns
        -------
        tuple[Scalar, Scalar]
            Q_in and Q_out, in^3/s.
        """
        is_positive = s > 0.0
        Q_in = self.k_f * s * self.root(where(is_positive, self.P_s - p_in, p_in - self.P_e))
        Q_out = self.k_f * s * self.root(where(is_positive, p_out - self.P_e, self.P_s - p_out))
        return Q_in, Q_out  # 5.2

    def root(self, drop: Scalar) -> Scalar:
        """Return the square root of the pressure drop `drop` (psi), linear below `laminar`."""
        return sqrt(drop) if is_known(self.laminar) and self.laminar == 0 else drop / sqrt(drop + self.laminar)

    def __call__(self, t: Scalar, q: Scalar, v: Scalar, x: Sequence[Scalar], command: Scalar) -> ForceAndRates:
        """Return the force on the coordinate and the state rates; see `Actuator.__call__`."""
        p_in, p_out = (clip(p, self.P_e, self.P_s) for p in x)
        Q_in, Q_out = self.flows(self.spool(command), p_in, p_out)
        tau = (p_in - p_out) * (self.D_m / 8.0 * self.G) - self.beta_m * v  # 5.3
        if not is_known(self.stop_stiffness) or self.stop_stiffness > 0:
            tau = tau + end_stop_force(q, v, self.low, self.high, self.stop_stiffness, self.stop_damping)
        swept_flow = v * (self.D_m * self.G)
        rates = (Q_in - swept_flow) * self.beta_v, (swept_flow - Q_out) * self.beta_v  # 5.4
        return tau, [bounded_rate(p, rate, self.P_e, self.P_s) for p, rate in zip(x, rates, strict=True)]
