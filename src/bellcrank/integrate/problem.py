"""Interface of integrators: the problem, the step and its result, and sums of states.

An integrator is a pure step over any scalar: y at t + h from y at t. It does not branch on values, so the same code
runs on floats, on arrays of many states, and on graph nodes that record it. Its memory from step to step is a flat list
that the caller keeps. In sums a weight that is the constant 0 costs nothing. Between two steps the state is a
polynomial in s = (time since the step began) / h.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.errors import InputError
from bellcrank.scalar import Scalar, is_zero, where

State = list[Scalar]
Rate = Callable[[Scalar, State], State]


@dataclass(frozen=True)
class LowRankMatrix:
    """A matrix of low rank: left (n, k) times right (k, n)."""

    left: list[State]
    right: list[State]


class MatrixFreeJacobian(ABC):
    """A matrix-free Jacobian df/dy, which only provides the solver that implicit methods need."""

    @abstractmethod
    def implicit(self, g: Scalar) -> Any:
        """Return an object whose `solve` solves (1 - `g` df/dy) x = b."""


Jacobian = Callable[[Scalar, State], tuple[list[State] | LowRankMatrix | MatrixFreeJacobian, State]]


def identity(y: State) -> State:
    """Return `y`."""
    return y


@dataclass(frozen=True)
class Problem:
    """The differential equation dy/dt = f(t, y), with y = [q, v, other states x]."""

    f: Rate
    nq: int
    nv: int
    nx: int
    jacobian: Jacobian | None = None  # (rows of df/dy, df/dt); implicit methods need it
    # (q, displacement) -> q moved, on its manifold; None: addition.
    moved: Callable[[State, State], State] | None = None
    project: Callable[[State], State] = identity  # projects y onto its manifold; every step applies it to its result
    # (q, q1, displacement) -> q1, whose rotations are those of q turned by Cayley's map of the displacement. Their
    # quaternions are not yet of unit length. None: q1 has no rotations.
    rolled: Callable[[State, State, State], State] | None = None
    implicit: Callable[[Any, Scalar], Any] | None = None  # replaces `implicit_solver`

    @property
    def size(self) -> int:
        """Number of states."""
        return self.nq + self.nv + self.nx

    def split(self, y: State) -> tuple[State, State, State]:
        """Return q, v and x of a state, or of a rate, `y`."""
        return y[: self.nq], y[self.nq : self.nq + self.nv], y[self.nq + self.nv :]

    def rate(self, t: Scalar, y: State) -> State:
        """Return f(`t`, `y`); raise an InputError if its length is not that of y."""
        dy = list(self.f(t, y))
        if len(dy) != self.size:
            raise InputError(
                f"f(t, y) of the problem returned {len(dy)} numbers; expected {self.size}, one for each of "
                f"nq={self.nq}, nv={self.nv}, nx={self.nx}. Return the rates of q, then of v, then of x."
            )
        return dy

    def linearised(
        self, t: Scalar, y: State, method: str
    ) -> tuple[list[State] | LowRankMatrix | MatrixFreeJacobian, State]:
        """Return (df/dy, df/dt).

        Parameters
        ----------
        t, y
            The operating point.
        method
            Name of the integrator, for messages.
        """
        if self.jacobian is None:
            raise InputError(
                f'The integrator "{method}" is implicit and needs df/dy, and the problem has no jacobian. '
                "Give Problem(jacobian=...), or take an explicit integrator such as rk4, dopri5 or abm4."
            )
        rows, dt = self.jacobian(t, y)
        if isinstance(rows, LowRankMatrix | MatrixFreeJacobian):
            return rows, list(dt)
        if len(rows) != self.size or any(len(row) != self.size for row in rows) or len(dt) != self.size:
            shape = f"{len(rows)} rows of {sorted({len(row) for row in rows})} and {len(dt)} for df/dt"
            raise InputError(f"The jacobian of the problem has {shape}; expected {self.size} rows of {self.size}.")
        return [list(row) for row in rows], list(dt)


@dataclass(frozen=True)
class Step:
    """Result of one step."""

    y: State  # at t + h
    error: State | None  # local error estimate by component, None where the method has none
    memory: State  # input of the next step
    dense: list[State]  # y(t + s h) for s in [0, 1] as a polynomial: dense[k] multiplies s**k
    rough: State | None = None  # by component, a rough upper bound: the difference of two stages of the step
    power: Scalar | None = None  # power of h with which the error decreases; None: that of the method


def zero_memory(problem: Problem) -> int:
    """Return 0, the size of the memory for any `problem`."""
    return 0


def empty_memory(problem: Problem, t: Scalar, y: State, h: Scalar) -> State:
    """Return an empty memory for any `problem`, `t`, `y` and `h`."""
    return []


def unscaled_memory(problem: Problem, memory: State, ratio: Scalar) -> State:
    """Return `memory`, which for this `problem` does not depend on h, for any `ratio` of step sizes."""
    return memory


@dataclass(frozen=True)
class Integrator:
    """An integration method: its properties and its step function."""

    name: str
    order: int
    adaptive: bool  # gives an error estimate
    stiff: bool  # needs the jacobian
    source: str  # where it was published
    step: Callable[[Problem, Scalar, State, Scalar, State], Step]  # (problem, t, y, h, memory)
    memory: Callable[[Problem], int] = zero_memory  # size of the memory
    begin: Callable[[Problem, Scalar, State, Scalar], State] = empty_memory  # (problem, t, y, h) -> first memory
    # (problem, memory, ratio) -> memory after h became ratio h.
    rescale: Callable[[Problem, State, Scalar], State] = unscaled_memory
    error_power: float = 5.0  # power of h with which the error estimate decreases


def weighted_sum(weights: Sequence[Scalar], states: Sequence[State]) -> State:
    """Return the sum of `weights`[i] `states`[i]."""
    terms = [(w, s) for w, s in zip(weights, states, strict=True) if not is_zero(w)]
    (w, first), *rest = terms
    total = [w * x for x in first]
    for w, state in rest:
        total = [a + w * x for a, x in zip(total, state, strict=True)]
    return total


def plus(a: State, b: State) -> State:
    """Return `a` + `b`."""
    return [x + y for x, y in zip(a, b, strict=True)]


def minus(a: State, b: State) -> State:
    """Return `a` - `b`."""
    return [x - y for x, y in zip(a, b, strict=True)]


def times(k: Scalar, a: State) -> State:
    """Return `k` `a`."""
    return [k * x for x in a]


def select(condition: Scalar, new: Any, old: Any) -> Any:
    """Return `new` where the `condition` holds, else `old`, for numbers or states."""
    if isinstance(new, list):
        return [where(condition, a, b) for a, b in zip(new, old, strict=True)]
    return where(condition, new, old)


def hermite_polynomial(y0: State, hf0: State, y1: State, hf1: State, bump: State | None = None) -> list[State]:
    """Return the cubic Hermite polynomial in s, plus bump s^2 (1 - s)^2, which changes no value or slope at the ends.

    The cubic is off by h^4 y''''/24 s^2 (1 - s)^2 and higher terms, so a bump near h^4 y''''/24 gains an order.

    Parameters
    ----------
    y0, hf0
        Value and slope (h f) at s = 0.
    y1, hf1
        Value and slope (h f) at s = 1.
    bump
        Its coefficient, by component; None for zero.
    """
    rise = minus(y1, y0)
    c2 = [3.0 * d - 2.0 * a - b for d, a, b in zip(rise, hf0, hf1, strict=True)]
    c3 = [a + b - 2.0 * d for d, a, b in zip(rise, hf0, hf1, strict=True)]
    if bump is None:
        return [y0, hf0, c2, c3]
    return [y0, hf0, plus(c2, bump), minus(c3, times(2.0, bump)), bump]


def interpolate(dense: Sequence[State], s: Scalar) -> State:
    """Return y(t + `s` h) from the coefficients `dense`, by Horner's rule."""
    *lower, y = dense
    for c in reversed(lower):
        y = [a + s * x for a, x in zip(c, y, strict=True)]
    return y
