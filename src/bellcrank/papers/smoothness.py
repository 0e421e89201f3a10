"""Smoothness of accelerations by method (Saha 2001, section 1).

"The O(n) algorithms, however, calculate the joint accelerations that are smooth functions of time [19]. As a result,
numerical integration is faster". No method of this package branches on a value, so that all accelerations are smooth
but for rounding. Here both are measured: the rounding noise, and the steps that an integrator needs.

The noise is measured on a short line through the state space along eq 18. Positions, velocities and forces are exact in
float32 and float64 there, so that only the operations of a method round. The sixth differences of a smooth function on
so short a line vanish, and those of independent errors have the mean square C(12, 6) = 924.

Each operation is rounded once, without fused multiplications, in numpy: numbers do not depend on the processor, except
for sines and cosines. They are shown in units of the rounding error of the largest acceleration, with one digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, pi

import numpy as np

from bellcrank.build import graphs
from bellcrank.dynamics import applicable_methods
from bellcrank.model import Mechanism
from bellcrank.papers import Result, Row
from bellcrank.papers.open_loop import Array, desired_motion
from bellcrank.papers.saha import STANFORD_END, STANFORD_START, ArmExperiment
from bellcrank.sim.run.simulator import Simulator
from bellcrank.text_table import Table
from bellcrank.zoo import puma_saha, stanford

LINEAR_METHODS = ("aba", "dca", "featherstone", "denoc", "joint_coordinates_recursive", "absolute")  # work O(n)
DIFFERENCE_ORDER = 6
POINTS, LINE_TIME = 1024, 4.0  # points of the line, and its time on the path in s
STATE_BITS, STEP_BITS, FORCE_BITS = 18, 21, 14  # binary places of the state, of its steps, and of forces
STEP_TIME = 2.0**-12  # s, between two points
TOLERANCES = (1e-6, 1e-12)
FALL_SECONDS = 2.0


def rounded(x: Array, bits: int) -> Array:
    """Return `x` rounded to `bits` binary places."""
    return np.round(np.asarray(x) * 2.0**bits) / 2.0**bits


def exact_line(arm: ArmExperiment) -> tuple[Array, Array, Array]:
    """Return positions, velocities and forces on a line along the path of `arm`, exact in float32 and float64."""
    q, v, a = (x[0] for x in desired_motion(arm.path, np.array([LINE_TIME])))
    k = np.arange(POINTS)[:, None]
    line = rounded(q, STATE_BITS) + k * rounded(v * STEP_TIME, STEP_BITS)
    speed = rounded(v, STATE_BITS) + k * rounded(a * STEP_TIME, STEP_BITS)
    force = np.broadcast_to(rounded(arm.mechanism.inverse_dynamics(q, v, a), FORCE_BITS), line.shape)
    for x in (line, speed, force):
        assert np.array_equal(x.astype(np.float32), x), "float32 has all these numbers"
    return line, speed, force


def rounding_noise(mechanism: Mechanism, method: str, states: Sequence[Array], dtype: type[np.floating]) -> float:
    """Return the noise of the accelerations of one method on a line of states.

    Parameters
    ----------
    mechanism
        The mechanism.
    method
        Name of the method.
    states
        Positions, velocities and forces, (points, n) each.
    dtype
        Floating-point type in which it computes.

    Returns
    -------
    float
        Root mean square of the noisiest joint, in units of the rounding error of the largest acceleration.
    """
    graph = graphs.graph(mechanism, "forward_dynamics", method)
    elements = [np.asarray(x[:, k], dtype) for x in states for k in range(x.shape[1])]
    a = np.array(graph.flat(elements)).T
    assert a.dtype == dtype, "every operation is in this type"
    differences = np.diff(a.astype(float), DIFFERENCE_ORDER, axis=0)
    noise = np.sqrt((differences**2).mean(axis=0) / comb(2 * DIFFERENCE_ORDER, DIFFERENCE_ORDER))
    return float(noise.max() / (np.finfo(dtype).eps * np.abs(a).max()))


def steps(mechanism: Mechanism, method: str, tolerance: float, start: Sequence[float]) -> int:
    """Return the adaptive steps of dopri5 in free fall.

    Parameters
    ----------
    mechanism
        The mechanism.
    method
        Name of the method.
    tolerance
        Error tolerance of a step.
    start
        Initial coordinates.
    """
    run = Simulator(mechanism, "dopri5", method=method).run(FALL_SECONDS, q0=list(start), tolerance=tolerance)
    return int(run.provenance["steps"])


def run() -> Result:
    """Measure noise and steps of every method, for the Stanford arm and the PUMA robot."""
    arms = {
        "Stanford arm": ArmExperiment(stanford(), STANFORD_START, STANFORD_END),
        "PUMA robot": ArmExperiment(puma_saha(), (0.0,) * 6, (pi,) * 6),
    }
    tables, rows = [], list[Row]()
    for name, arm in arms.items():
        states, noise, taken = exact_line(arm), dict[str, list[float]](), dict[str, list[int]]()
        m = arm.mechanism
        for by in applicable_methods("forward_dynamics", m.tree):
            noise[by.name] = [rounding_noise(m, by.name, states, dtype) for dtype in (np.float64, np.float32)]
            taken[by.name] = [steps(m, by.name, tolerance, arm.start) for tolerance in TOLERANCES]
        tables.append(_table(name, m, noise, taken))
        rows += _rows(name, noise, taken)
    return Result(tuple(rows), tables=tuple(tables))


def _rows(name: str, noise: dict[str, list[float]], taken: dict[str, list[int]]) -> list[Row]:
    linear, others = (
        [x[0] for by, x in noise.items() if (by in LINEAR_METHODS) is is_linear] for is_linear in (True, False)
    )
    fewest, most = (choose(x[0] for x in taken.values()) for choose in (min, max))
    return [
        Row(f"{name}: least noise of an O(n) method, over that of others", "", _one_digit(min(linear) / min(others))),
        Row(f"{name}: most noise of an O(n) method, over that of others", "", _one_digit(max(linear) / max(others))),
        Row(f"{name}: fewest steps of a method, over most", "faster", f"{fewest / most:g}", agrees=fewest < most),
    ]


def _table(name: str, m: Mechanism, noise: dict[str, list[float]], taken: dict[str, list[int]]) -> Table:
    lines = []
    for by in sorted(noise, key=lambda by: by not in LINEAR_METHODS):
        work = "O(n)" if by in LINEAR_METHODS else "O(n^3)"
        operations = graphs.graph(m, "forward_dynamics", by).count().arithmetic
        lines.append((by, work, f"{operations:,}", *map(_one_digit, noise[by]), *map(str, taken[by])))
    head = ("method", "work", "operations", "float64", "float32", *(f"steps, {x:g}" for x in TOLERANCES))
    title = f"{name}: rounding noise of the accelerations in units of the last place, and steps of dopri5"
    return Table(title, head, lines, right=range(2, 7))


def _one_digit(x: float) -> str:
    return f"{float(f'{x:.0e}'):g}"
