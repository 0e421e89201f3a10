"""Inverse dynamics as a controller: open loop, or with feedback (computed torque).

    open loop         tau = ID(q_d, v_d, a_d)                                    Wong 1991 eq 3.44; Saha 2001, section 4
    computed torque   tau = ID(q, v, a_d + kv (v_d - v) + kp (q_d - q))          exact model: e'' + kv e' + kp e = 0

Source: J. Y. S. Luh, M. W. Walker, R. P. C. Paul. Resolved-acceleration control of mechanical manipulators. IEEE
Transactions on Automatic Control 25(3), 468-474, 1980.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bellcrank.argument_errors import explain_methods
from bellcrank.control.trajectory import Vectors
from bellcrank.dynamics import applicable_methods, method
from bellcrank.errors import BellcrankError, InputError
from bellcrank.model import Mechanism, regrouped
from bellcrank.scalar import Scalar

QUANTITY = "inverse_dynamics"
Gains = Scalar | Sequence[Scalar]


@explain_methods("__init__")
@dataclass(frozen=True)
class InverseDynamics:
    """Inverse-dynamics controller with one ideal torque on each coordinate; open loop if all gains are zero.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism without loops, whose joints have one coordinate each.
    trajectory : callable
        trajectory(t) returns (q, v, a), each with one value for each joint.
    kp : Scalar or sequence of Scalar, default 0.0
        Position gain, 1/s^2; one value, or one for each coordinate.
    kv : Scalar or sequence of Scalar, default 0.0
        Velocity gain, 1/s; one value, or one for each coordinate.
    method : str, default "rnea"
        Method of inverse dynamics, or "auto".
    """

    mechanism: Mechanism
    trajectory: Callable[[Scalar], Vectors]
    kp: Gains = 0.0  # 1/s^2; one value, or one for each coordinate
    kv: Gains = 0.0  # 1/s
    method: str = "rnea"

    def __post_init__(self) -> None:
        m = self.mechanism
        if m.nq != m.nv:
            raise InputError(
                f'InverseDynamics: "{m.name}" has nq {m.nq} and nv {m.nv}; expected joints of one coordinate each, '
                "because the position error q_d - q is taken coordinate by coordinate."
            )
        if m.loops:
            raise InputError(
                f'InverseDynamics: "{m.name}" has loops, and this controller drives every joint. Compute forces with '
                "inverse_dynamics(q, v, a, actuated=[...]) instead."
            )
        try:
            n = len(self.trajectory(0.0)[0])
        except BellcrankError:
            raise
        except Exception as error:  # a user-defined function may raise anything
            raise InputError(
                f"InverseDynamics: the trajectory failed at t = 0: {type(error).__name__}: {error}. "
                "Expected a function of t that returns (q, v, a)."
            ) from error
        if n != m.nv:
            raise InputError(
                f'InverseDynamics: the trajectory has {n} joints and "{m.name}" has {m.nv}; expected equal numbers.'
            )
        for name in ("kp", "kv"):
            gains = getattr(self, name)
            if isinstance(gains, Sequence) and len(gains) != m.nv:
                raise InputError(
                    f"InverseDynamics: {name} has {len(gains)} numbers; expected one, or {m.nv}: "
                    f"{', '.join(m.columns[1])}."
                )
        _ = self.torque  # raises if the method does not exist

    @property
    def open_loop(self) -> bool:
        """True if there is no feedback: all gains are zero."""
        return all(isinstance(k, (int, float)) and k == 0 for k in (*self._each(self.kp), *self._each(self.kv)))

    @cached_property
    def torque(self) -> Callable[..., list[Scalar]]:
        """Inverse dynamics as a function of (q, v, a), for any scalars."""
        tree = regrouped(self.mechanism.tree)  # regrouped inertias: equal forces with fewer operations
        solver = applicable_methods(QUANTITY, tree)[0] if self.method == "auto" else method(self.method, QUANTITY, tree)
        function: Any = solver.function(QUANTITY)
        return lambda q, v, a: list(function(tree, q, v, a))

    def _each(self, gains: Gains) -> Sequence[Scalar]:
        return gains if isinstance(gains, Sequence) else [gains] * self.mechanism.nv

    def __call__(self, t: Scalar, q: Any, v: Any, x: Any = (), u: Any = ()) -> list[Scalar]:
        """Return the torques at time `t` for state (`q`, `v`); `x` and `u` are not used."""
        q_d, v_d, a_d = self.trajectory(t)
        if self.open_loop:
            return self.torque(q_d, v_d, a_d)
        n = range(self.mechanism.nv)
        q, v, kp, kv = [q[i] for i in n], [v[i] for i in n], self._each(self.kp), self._each(self.kv)
        return self.torque(q, v, [a_d[i] + kv[i] * (v_d[i] - v[i]) + kp[i] * (q_d[i] - q[i]) for i in n])
