"""Closed loops: regressor of the driven joints, completion of a measured motion, and branches of a mechanism.

The loops allow the velocities v = G u; constraint forces have no power along G. With the regressor Y of the tree and
the columns E of the driven joints, G^T E tau = G^T Y x, so tau = (G^T E)^-1 G^T Y x is linear in the same numbers.

On a branch, all joints are functions of the driven ones, for many samples at once:

    driven joints x  ->  q on the loops,  v = G x',  a = G x'' + loop bias;  G is the identity on the driven joints

Each sample is reached by continuation along a straight line from the middle of the branch, so that all samples are
assembled alike as long as no singular configuration lies between. There is none within `regular_box` of the middle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors, generator
from bellcrank.errors import InputError, check_known
from bellcrank.identify.regressors import Array, Number, regressor
from bellcrank.model import Mechanism
from bellcrank.scalar import float_array

CLOSURE_TOLERANCE = 1e-10  # m or rad
MAX_STRIDE = 0.1  # rad or m, largest step of a driven joint in the continuation
FINAL_ITERATIONS = 12  # Newton iterations at the end of the continuation; TRACKING_ITERATIONS in each step
TRACKING_ITERATIONS = 3
MIN_SINGULAR_SHARE = 0.2  # share of the middle's least singular value: limit of the distance to a dead centre
CORNER_SAMPLES, INTERIOR_SAMPLES = 64, 64  # sample configurations of a box
BISECTIONS = 7
# rad or m, half-widths for a joint without limits and for one that starts at its limit.
MAX_HALF_WIDTH, MIN_HALF_WIDTH = 2.0, 1e-2


def actuated_regressor(
    m: Mechanism, q: Any, v: Any, a: Any, numbers: Sequence[Number], actuated: Sequence[str] = ()
) -> Array:
    """Return the regressor of the driven joints, (samples, driven, numbers); for a tree, of all joints.

    Parameters
    ----------
    m
        Mechanism.
    q, v, a
        Motion, (samples, n) each.
    numbers
        Columns of the regressor.
    actuated
        Driven joints.
    """
    Y = regressor(m, q, v, a, numbers)
    if not m.loops:
        if actuated:
            return Y[:, [velocity_index(m, name) for name in actuated]]
        return Y
    driven = [velocity_index(m, name) for name in require_driven(m, actuated)]
    G = loop_null_space(m, np.atleast_2d(np.asarray(q, float)))
    check_driven_count(m, G, actuated)
    T = np.swapaxes(G, 1, 2)
    return np.linalg.solve(T[:, :, driven], T @ Y)


def loop_null_space(m: Mechanism, q: Array) -> Array:
    """Return G (samples, nv, freedoms), an orthonormal basis of velocities that keep the loops of `m` closed at `q`."""
    analysis = m.loop_analysis  # gives the rank and the scales of rows and columns
    _, s, Vt = np.linalg.svd(analysis.scales.scaled(np.asarray(m.closure_jacobian(q))))
    rank = analysis.rank.rank
    if rank and (s[:, rank - 1] < analysis.cut).any():
        raise InputError(f'some states of "{m.name}" are singular: its loops have more freedoms there.')
    allowed = np.swapaxes(Vt[:, rank:], 1, 2) * analysis.scales.columns[:, None]
    return np.asarray(np.linalg.qr(allowed)[0])


@explain_argument_errors
def completed(m: Mechanism, moved: Mapping[str, Any], guess: Any = None) -> tuple[Array, Array, Array]:
    """Return the motion of all joints from that of some, with closed loops.

    Parameters
    ----------
    m : Mechanism
        Mechanism with loops.
    moved : mapping of str to (q, v, a)
        Measured joints, as many as there are freedoms: {"crank": (q, v, a)}, arrays over the samples.
    guess : array_like, optional
        Configuration near the first sample; the neutral one by default.

    Returns
    -------
    tuple[ndarray, ndarray, ndarray]
        q, v and a of all joints, (samples, n) each.

    Raises
    ------
    InputError
        If the arguments do not fit, or the loops do not close.
    """
    names = list(moved)
    measured_indices = [velocity_index(m, n) for n in names]
    try:
        motions = np.array([[float_array(x) for x in moved[n]] for n in names])  # (names, 3, samples)
    except (TypeError, ValueError, OverflowError):
        motions = np.zeros(0)
    if motions.ndim != 3 or motions.shape[1] != 3:
        raise InputError(f"expected (q, v, a) of each of {', '.join(names) or 'some joints'}, of the same length.")
    samples = motions.shape[2]
    others = [k for k in range(m.nv) if k not in measured_indices]
    q = np.empty((samples, m.nq))
    first = np.asarray(guess if guess is not None else m.neutral(), float)
    if first.shape != (m.nq,):
        raise InputError(f"guess has the shape {first.shape}; expected ({m.nq},), a q of {m.name}.")
    begin = dict(zip(m.columns[0], first, strict=True))
    configuration = np.asarray(
        m.assemble({**begin, **{n: motions[i, 0, 0] for i, n in enumerate(names)}}, fixed=names)[0]
    )
    for k in range(samples):
        configuration = configuration.copy()
        configuration[measured_indices] = motions[:, 0, k]
        q[k] = configuration = _close_sample(m, configuration, others)
    C = np.asarray(m.closure_jacobian(q))
    v, a = np.zeros((samples, m.nv)), np.zeros((samples, m.nv))
    v[:, measured_indices], a[:, measured_indices] = motions[:, 1].T, motions[:, 2].T
    v[:, others] = _pseudo_solve(C[:, :, others], -np.einsum("sij,sj->si", C, v))
    drift = np.asarray(m.closure_bias(q, v))
    a[:, others] = _pseudo_solve(C[:, :, others], -np.einsum("sij,sj->si", C, a) - drift)
    return q, v, a


def _close_sample(m: Mechanism, q: Array, others: Sequence[int]) -> Array:
    size = m.loop_analysis.scales.rows
    for _ in range(30):
        closure_error = np.asarray(m.closure(q)) * size
        if np.abs(closure_error).max(initial=0.0) < 1e-12:
            return q
        C = np.asarray(m.closure_jacobian(q))[:, others] * size[:, None]
        q = q.copy()
        q[list(others)] -= np.linalg.lstsq(C, closure_error, rcond=None)[0]
    raise InputError(f'the loops of "{m.name}" do not close at {q.round(4).tolist()}; check the measured joints.')


def _pseudo_solve(C: Array, b: Array) -> Array:
    return np.asarray(np.einsum("sij,sj->si", np.linalg.pinv(C, rcond=1e-10), b))


def check_driven_count(m: Mechanism, G: Array, actuated: Sequence[str]) -> None:
    """Raise an InputError unless there are as many driven joints as freedoms.

    Parameters
    ----------
    m
        Mechanism.
    G
        Basis of the allowed velocities.
    actuated
        Driven joints.
    """
    if G.shape[2] != len(actuated):
        raise InputError(
            f'"{m.name}" has {G.shape[2]} degrees of freedom, but {len(actuated)} driven joints are given '
            f"({', '.join(actuated)}); expected equal numbers."
        )


def require_driven(m: Mechanism, actuated: Sequence[str]) -> Sequence[str]:
    """Return the driven joints `actuated`, or raise an InputError if mechanism `m` has loops and there are none."""
    if not actuated:
        raise InputError(f'"{m.name}" has closed loops; name the driven joints: actuated=[...].')
    return actuated


def velocity_index(m: Mechanism, name: str) -> int:
    """Return the index of the joint `name` among the velocities of `m`."""
    check_known("joint", name, m.columns[1], f'"{m.name}"')
    return m.columns[1].index(name)


class Branch:
    """Branch of a mechanism around the configuration that is assembled from a guess.

    Parameters
    ----------
    m
        Mechanism with loops.
    driven
        Driven joints, with one coordinate each.
    guess
        Guess of the configuration; the zero configuration by default.
    """

    def __init__(self, m: Mechanism, driven: Sequence[str], guess: Any = None) -> None:
        self.m, self.driven = m, [velocity_index(m, name) for name in require_driven(m, driven)]
        if not set(driven) <= set(m.columns[0]):
            raise InputError(f"{', '.join(driven)}: expected driven joints with one coordinate each.")
        self.coordinates = [m.columns[0].index(name) for name in driven]
        self.others = [k for k in range(m.nv) if k not in self.driven]
        self.q0 = np.asarray(m.assemble(guess)[0])
        check_driven_count(m, loop_null_space(m, self.q0[None]), driven)
        self.middle_singular_value = float(self._least_singular_values(self.q0[None])[0])
        if self.middle_singular_value < 1e-6:
            raise InputError(
                f'"{m.name}": {", ".join(driven)} do not determine the other joints in the configuration that is '
                f"assembled from the guess; give another guess: at=..., or other driven joints."
            )

    @property
    def middle(self) -> Array:
        """Positions of the driven joints in the middle of the branch."""
        return self.q0[self.coordinates]

    def configurations(self, x: Array) -> tuple[Array, Array]:
        """Return q (samples, nq) with the driven joints at `x` (samples, driven), and a mask of closed samples."""
        offset = x - self.middle
        steps = max(1, int(np.ceil(np.abs(offset).max(initial=0.0) / MAX_STRIDE)))
        q = np.repeat(self.q0[None], len(x), axis=0)
        dv = np.zeros((len(x), self.m.nv))
        dv[:, self.driven] = offset / steps
        for _ in range(steps):
            C = np.asarray(self.m.closure_jacobian(q))
            dv[:, self.others] = self._solve_others(C, -(C[:, :, self.driven] @ dv[:, self.driven, None])[..., 0])
            q = self._close_loops(np.asarray(self.m.integrate(q, dv)), TRACKING_ITERATIONS)
        q = self._close_loops(q, FINAL_ITERATIONS)
        closure_error = np.abs(np.asarray(self.m.closure(q))).max(axis=1, initial=0.0)
        return q, np.isfinite(closure_error) & (closure_error < CLOSURE_TOLERANCE) & (
            np.abs(q[:, self.coordinates] - x).max(axis=1) < CLOSURE_TOLERANCE
        )

    def motion(self, x: Array, dx: Array, ddx: Array) -> tuple[Array, Array, Array, Array]:
        """Return q, v, a (samples, n each) and G (samples, nv, driven).

        Parameters
        ----------
        x, dx, ddx
            Positions, velocities and accelerations of the driven joints, (samples, driven).
        """
        q, is_closed = self.configurations(x)
        if not is_closed.all():
            raise InputError(
                f'the loops of "{self.m.name}" do not close with the driven joints at '
                f"{x[~is_closed][0].round(4).tolist()}."
            )
        C = np.asarray(self.m.closure_jacobian(q))
        G = np.zeros((len(x), self.m.nv, len(self.driven)))
        G[:, self.driven] = np.eye(len(self.driven))
        G[:, self.others] = self._solve_others(C, -C[:, :, self.driven])
        v = (G @ dx[..., None])[..., 0]
        a = (G @ ddx[..., None])[..., 0]
        a[:, self.others] += self._solve_others(C, -np.asarray(self.m.closure_bias(q, v)))
        return q, v, a, G

    def move_towards(self, x: Array) -> None:
        """Move the middle towards `x` as far as the branch reaches."""
        reachable_share = self._largest_share(lambda share: self._fits(self.middle + share * (x - self.middle)[None]))
        q, _ = self.configurations(self.middle + reachable_share * (x - self.middle)[None])
        self.q0 = q[0]
        self.middle_singular_value = float(self._least_singular_values(q)[0])

    def regular_box(self, max_half_widths: Array, seed: int = 0) -> Array:
        """Return the half-widths of a box around the middle on which the branch is regular.

        Parameters
        ----------
        max_half_widths
            Largest half-width of each driven joint.
        seed
            Seed of the sample points in the box.
        """
        half_widths = np.array([self._half_width(k, max_half_widths) for k in range(len(max_half_widths))])
        rng = generator(seed)
        signs = np.array(list(product((-1.0, 1.0), repeat=len(half_widths))) if 2 ** len(half_widths) <= CORNER_SAMPLES
                         else rng.choice([-1.0, 1.0], (CORNER_SAMPLES, len(half_widths))))  # fmt: skip
        box_points = np.concatenate([signs, rng.uniform(-1.0, 1.0, (INTERIOR_SAMPLES, len(half_widths)))])
        share = self._largest_share(lambda share: self._fits(self.middle + share * half_widths * box_points))
        self.box_samples = self.middle + share * half_widths * box_points
        return np.asarray(share * half_widths)

    def limited_speeds(self, max_speeds: Array) -> Array:
        """Return `max_speeds` scaled so that no other joint exceeds its speed limit within the room."""
        zero = np.zeros_like(self.box_samples)
        G = np.abs(self.motion(self.box_samples, zero, zero)[3])
        limits = np.asarray(self.m.limits.velocity)
        with np.errstate(divide="ignore"):
            share = (limits / np.maximum(G @ max_speeds, 1e-300)).min(initial=1.0)
        return np.asarray(min(1.0, float(share)) * max_speeds)

    def random_states(self, samples: int, seed: int) -> tuple[Array, Array, Array]:
        """Return random q, v and a on the branch; `samples` states from `seed`."""
        rng = generator(seed)
        limits, coordinates = self.m.limits, self.coordinates
        half_widths = np.minimum(
            np.minimum(limits.upper[coordinates] - self.middle, self.middle - limits.lower[coordinates]), MAX_HALF_WIDTH
        )
        x = self.middle + rng.uniform(-1.0, 1.0, (samples, len(coordinates))) * self.regular_box(
            np.maximum(half_widths, MIN_HALF_WIDTH)
        )
        return self.motion(x, 3.0 * rng.normal(size=x.shape), 9.0 * rng.normal(size=x.shape))[:3]

    def _half_width(self, k: int, max_half_widths: Array) -> float:
        end_points = np.zeros((2, len(max_half_widths)))
        end_points[0, k], end_points[1, k] = -max_half_widths[k], max_half_widths[k]
        return self._largest_share(lambda share: self._fits(self.middle + share * end_points)) * float(
            max_half_widths[k]
        )

    def _largest_share(self, fits: Any) -> float:
        """Return the largest share that fits, to about one percent, by bisection."""
        if fits(1.0):
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(BISECTIONS):
            share = (low + high) / 2
            low, high = (share, high) if fits(share) else (low, share)
        return low

    def _fits(self, x: Array) -> bool:
        """Return whether these samples close, far from singular, with all joints within their limits."""
        q, is_closed = self.configurations(x)
        if (
            not is_closed.all()
            or (self._least_singular_values(q) < MIN_SINGULAR_SHARE * self.middle_singular_value).any()
        ):
            return False
        limits = self.m.limits
        other_coordinates = [k for k in range(self.m.nq) if k not in self.coordinates]
        return bool(
            (q[:, other_coordinates] >= limits.lower[other_coordinates]).all()
            and (q[:, other_coordinates] <= limits.upper[other_coordinates]).all()
        )

    def _least_singular_values(self, q: Array) -> Array:
        C = np.asarray(self.m.closure_jacobian(q))[:, :, self.others]
        if C.shape[1] < C.shape[2]:
            return np.zeros(len(q))
        return np.asarray(np.linalg.svd(C, compute_uv=False)[:, -1])

    def _close_loops(self, q: Array, rounds: int) -> Array:
        """Close the loops by Newton's method in the other joints."""
        for _ in range(rounds):
            closure_error = np.asarray(self.m.closure(q))
            if np.abs(closure_error).max(initial=0.0) < CLOSURE_TOLERANCE / 100:
                break
            dv = np.zeros((len(q), self.m.nv))
            dv[:, self.others] = self._solve_others(np.asarray(self.m.closure_jacobian(q)), -closure_error)
            longest = np.abs(dv).max(axis=1, keepdims=True)
            q = np.asarray(self.m.integrate(q, dv * np.minimum(1.0, 0.5 / np.maximum(longest, 1e-300))))
        return q

    def _solve_others(self, C: Array, b: Array) -> Array:
        """Solve least squares for the other joints by normal equations with one refinement step."""
        A = C[:, :, self.others]
        T = np.swapaxes(A, 1, 2)
        N = T @ A + 1e-14 * np.eye(len(self.others))
        wide = b if b.ndim == 3 else b[..., None]
        x = np.linalg.solve(N, T @ wide)
        x = x + np.linalg.solve(N, T @ (wide - A @ x))
        return np.asarray(x if b.ndim == 3 else x[..., 0])


def random_states(
    m: Mechanism, samples: int, seed: int, actuated: Sequence[str] = (), guess: Any = None
) -> tuple[Array, ...]:
    """Return random q, v and a; for closed loops on the branch assembled from a guess.

    Parameters
    ----------
    m
        Mechanism.
    samples
        Number of states.
    seed
        Seed.
    actuated
        Driven joints of closed loops.
    guess
        Guess of a configuration on the branch.
    """
    if m.loops:
        return Branch(m, actuated, guess).random_states(samples, seed)
    q, v, a = m.random(seed, samples)
    scale = generator(seed).uniform(0.5, 3.0, (samples, 1))
    return q, 2.0 * v * scale, 4.0 * a * scale
