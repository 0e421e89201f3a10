"""Coefficients of explicit Runge-Kutta methods; tests/laws verify the order conditions.

k_i = f(t + c_i h, y + h sum_j a_ij k_j),   y1 = y + h sum b_i k_i,   error = h sum (b_i - b*_i) k_i
"""

from __future__ import annotations

from dataclasses import dataclass

Coefficients = tuple[float, ...]


@dataclass(frozen=True)
class Tableau:
    """Butcher tableau of an explicit method, with embedded weights and dense output."""

    a: tuple[Coefficients, ...]  # row i has i numbers
    b: Coefficients
    c: Coefficients
    embedded: Coefficients | None = None  # b* of the embedded method for the error estimate
    bump: Coefficients | None = None  # with h k_i and, last, h f(y1): s^2 (1 - s)^2 of the dense output (problem.py)

    @property
    def first_same_as_last(self) -> bool:
        """True if the last stage is f at the result, and so the first stage of the next step."""
        return self.b == (*self.a[-1], 0.0)


KUTTA = Tableau(
    a=((), (1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0)),
    b=(1 / 6, 1 / 3, 1 / 3, 1 / 6),
    c=(0.0, 1 / 2, 1 / 2, 1.0),
)

# The result is of fourth order, for which Fehlberg minimised the error; the fifth-order result only estimates it. The
# bump is our own: among all with a dense output of order 4 (the sixth weight is free), the one with the least maximal
# error of order 5.
FEHLBERG = Tableau(
    a=(
        (),
        (1 / 4,),
        (3 / 32, 9 / 32),
        (1932 / 2197, -7200 / 2197, 7296 / 2197),
        (439 / 216, -8.0, 3680 / 513, -845 / 4104),
        (-8 / 27, 2.0, -3544 / 2565, 1859 / 4104, -11 / 40),
    ),
    b=(25 / 216, 0.0, 1408 / 2565, 2197 / 4104, -1 / 5, 0.0),
    c=(0.0, 1 / 4, 3 / 8, 12 / 13, 1.0, 1 / 2),
    embedded=(16 / 135, 0.0, 6656 / 12825, 28561 / 56430, -9 / 50, 2 / 55),
    bump=(-263 / 288, 0.0, 3424 / 855, -24167 / 5472, 53 / 40, -5 / 2, 5 / 2),
)

# The result is of fifth order. The bump gives Shampine's interpolant of order 4.
DORMAND_PRINCE = Tableau(
    a=(
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    b=(35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0),
    c=(0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
    embedded=(5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40),
    bump=(
        -12715105075 / 11282082432,
        0.0,
        87487479700 / 32700410799,
        -10690763975 / 1880347072,
        701980252875 / 199316789632,
        -1453857185 / 822651844,
        69997945 / 29380423,
    ),
)
