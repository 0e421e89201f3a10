"""4/3 proportional valve with a load-sensing pump and port valves, between the tank and two chambers A and B.

    o = (s less the overlap) / (1 - overlap)                          opening: -1 ... 1, from the spool position s
    o > 0: Q_A = o k_in root(dp),   Q_B = -o k_B root(p_B)            A is filled, B drains to the tank
    o < 0: Q_A =  o k_A root(p_A),  Q_B = -o k_in root(dp)
    dp = min(margin, p_pump - p_load), at least 0                     a load-sensing pump, and a check valve
    root(dp) = dp / (dp^2 + laminar^2)^(1/4)                          sqrt far from 0, linear through it
    Q -= flow max(p - relief, 0) / 3 MPa                              relief valve of each port
    Q += flow max(-p, 0) / 0.03 MPa                                   make-up valve of each port, from the tank

k_in gives the rated `flow` at the pump's margin, which is the largest flow of the function. The pump keeps `margin`
above the load until it reaches `p_pump`; then the flow drops to zero. k_A and k_B give the rated flow at `drops`.
Pressures are relative to the tank's, flows are positive into the chambers.

Source: H. E. Merritt. Hydraulic Control Systems. Wiley, 1967, chapters 3 (orifices, laminar and turbulent) and 5
(four-way spool valves). Load sensing and flow sharing: P. Krus. On load sensing fluid power systems. Dissertation 198,
Linkoeping University, 1988. The smooth root: A. Ellman, R. Piche. A two regime orifice flow formula for numerical
simulation. ASME Journal of Dynamic Systems, Measurement, and Control 121(4), 721-724, 1999 (theirs is a polynomial;
this one has all derivatives).

Differences from the sources: every function has a pump of its own, as strong as the machine's; sharing one pump is left
to the controller (excavators/linkage_control.py shares the flow). Pump dynamics are neglected: the pump is
faster than the spool.
"""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.actuators.actuator import is_known
from bellcrank.errors import InputError
from bellcrank.parameters.validation import check_range
from bellcrank.scalar import Scalar, clip, maximum, minimum, sqrt

RELIEF_RANGE_PA = 3.0e6  # Pa above its setting at which a relief valve passes the rated flow
MAKE_UP_RANGE_PA = 3.0e4  # Pa below the tank's at which a make-up valve passes the rated flow


@dataclass(frozen=True)
class ProportionalValve:
    """4/3 valve with overlap and spool lag, fed by a load-sensing pump; flow goes with the root of the pressure drop.

    Parameters
    ----------
    flow : Scalar
        Rated flow of the open valve, m^3/s.
    p_pump : Scalar
        Largest pump pressure, Pa.
    relief : Scalar
        Setting of the relief valves of both ports, Pa.
    drops : tuple of 2 Scalar, default (2e6, 2e6)
        Pressure drops over the return edges of A and B at the rated flow, Pa.
    margin : Scalar, default 2e6
        Pressure margin of the pump above the load, Pa.
    overlap : Scalar, default 0.05
        Spool overlap as a share of the stroke, from 0 to less than 1.
    lag : Scalar, default 0.03
        Time constant of the spool, s.
    laminar : Scalar, default 5e5
        Pressure drop below which the flow is about linear, Pa.
    """

    flow: Scalar  # m3/s, fully open
    p_pump: Scalar  # Pa
    relief: Scalar  # Pa, both ports
    drops: tuple[Scalar, Scalar] = (2.0e6, 2.0e6)  # Pa, over the return edges of A and B at the rated flow
    margin: Scalar = 2.0e6  # Pa
    overlap: Scalar = 0.05
    lag: Scalar = 0.03  # s, of the spool
    laminar: Scalar = 5.0e5  # Pa

    def __post_init__(self) -> None:
        positive = ("flow", "p_pump", "relief", "margin", "lag", "laminar")
        check_range(self, "ProportionalValve", positive, above_zero=True)
        check_range(self, "ProportionalValve", ("overlap",))
        if is_known(self.overlap) and not 0 <= self.overlap < 1:
            raise InputError(f"ProportionalValve: overlap is {self.overlap!r}; expected 0 or more, and less than 1.")
        if not isinstance(self.drops, tuple | list) or len(self.drops) != 2:
            raise InputError(f"ProportionalValve: drops is {self.drops!r}; expected two pressures, of A and of B.")

    def __str__(self) -> str:
        shown = (f"{x:g}" if is_known(x) else str(x) for x in (self.flow, self.p_pump))
        return " m3/s and ".join(shown) + " Pa"

    def moved(self, s: Scalar, command: Scalar) -> Scalar:
        """Return the rate ds/dt of the spool, a first-order lag.

        Parameters
        ----------
        s : Scalar
            Spool position, -1 to 1.
        command : Scalar
            Commanded position, clipped to -1 and 1.

        Returns
        -------
        Scalar
            Rate, 1/s.
        """
        return (clip(command, -1.0, 1.0) - s) * (1.0 / self.lag)

    def opening(self, s: Scalar) -> Scalar:
        """Return the opening, -1 to 1, beyond the overlap at the spool position `s`."""
        return (s - clip(s, -self.overlap, self.overlap)) / (1.0 - self.overlap)

    def command(self, opening: Scalar) -> Scalar:
        """Return the spool position for an opening.

        Within a hundredth of closed, the spool crosses the overlap smoothly.

        Parameters
        ----------
        opening : Scalar
            Wanted opening, -1 to 1.

        Returns
        -------
        Scalar
            Spool position, -1 to 1.
        """
        return opening * (1.0 - self.overlap) + clip(opening * 100.0, -1.0, 1.0) * self.overlap

    def root(self, drop: Scalar) -> Scalar:
        """Return the signed square root of the pressure drop `drop` (Pa), smooth at zero, sqrt(Pa)."""
        return drop / sqrt(sqrt(drop * drop + self.laminar * self.laminar))

    def supplied(self, p: Scalar) -> Scalar:
        """Return the flow through the open inlet into a chamber at pressure `p` (Pa), m^3/s."""
        drop = maximum(minimum(self.margin, self.p_pump - p), 0.0)
        return self.flow / self.root(self.margin) * self.root(drop)

    def returned(self, p: Scalar, drop: Scalar) -> Scalar:
        """Return the flow through an open return edge to the tank.

        Parameters
        ----------
        p : Scalar
            Chamber pressure, Pa.
        drop : Scalar
            Pressure drop at the rated flow, Pa.

        Returns
        -------
        Scalar
            Flow, m^3/s.
        """
        return self.flow / self.root(drop) * self.root(p)

    def ports(self, p: Scalar) -> Scalar:
        """Return the flow into a chamber at pressure `p` (Pa) through its relief and make-up valves, m^3/s."""
        overpressure, underpressure = maximum(p - self.relief, 0.0), maximum(-p, 0.0)
        return underpressure * (self.flow / MAKE_UP_RANGE_PA) - overpressure * (self.flow / RELIEF_RANGE_PA)

    def flows(self, s: Scalar, p_A: Scalar, p_B: Scalar) -> tuple[Scalar, Scalar]:
        """Return the flows into both chambers.

        Parameters
        ----------
        s : Scalar
            Spool position, -1 to 1.
        p_A, p_B : Scalar
            Chamber pressures, Pa above the tank's.

        Returns
        -------
        tuple[Scalar, Scalar]
            Q_A and Q_B into the chambers, m^3/s.
        """
        o = self.opening(s)
        fill, drain = maximum(o, 0.0), maximum(-o, 0.0)
        Q_A = fill * self.supplied(p_A) - drain * self.returned(p_A, self.drops[0]) + self.ports(p_A)
        Q_B = drain * self.supplied(p_B) - fill * self.returned(p_B, self.drops[1]) + self.ports(p_B)
        return Q_A, Q_B
