"""Crossing of a singular configuration on which a fixed step ends.

The loop equations have a rank deficiency in that configuration, so that a step that ends on it fails, while steps that
end on both sides do not notice it. Two steps are therefore replaced by three of other lengths, and the row between the
two is interpolated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bellcrank.graph import Layout
from bellcrank.graph.program import FINISHED, NEVER_TIME, RUNNING
from bellcrank.integrate import interpolate
from bellcrank.integrate.problem import hermite_polynomial
from bellcrank.sim.program.system_graphs import Dynamics

Array = np.ndarray[Any, Any]
STEP_LENGTHS = (0.55, 0.72, 0.73)  # lengths of the three steps in steps; no stage of them lies at the singular end
Step = Callable[[Dynamics, Array], Array]  # runs a state to its end with the graphs of the given dynamics


def _can_cross(dynamics: Dynamics, places: Layout) -> bool:
    """Return True if a run has fixed steps and no memory, inputs or sampled controllers, which need whole steps."""
    memory, s = places.span("memory"), dynamics.system
    return "stride" in places and memory.start == memory.stop and not s.inputs and not s.sampled


def cross_singularity(
    dynamics: Dynamics, places: Layout, state: Array, p: Array, run: Step
) -> tuple[Array, list[Array]] | None:
    """Return the state behind the singular configuration and the rows due on the way, or None if it cannot be crossed.

    Parameters
    ----------
    dynamics
        The dynamics.
    places
        Layout of the state of the program.
    state
        State of the program whose next step fails.
    p
        Free parameters.
    run
        Function that runs a state to its end.
    """
    index, y = places.place, places.span("y")
    if not _can_cross(dynamics, places):
        return None
    n, h, begin, last = (state[index(name)] for name in ("n", "h", "begin", "last"))
    if not dynamics.closure.singular_ahead(state[y], p, float(h)):
        return None
    crossing_state, ends = state, []
    for part in STEP_LENGTHS:
        (group,) = dynamics.closure.grouped(crossing_state[y][None], p[None])
        step = {
            "n": 0.0,
            "begin": crossing_state[index("t")],
            "h": part * h,
            "last": 1.0,
            "next": NEVER_TIME,
            "live": 1.0,
            "due": 0.0,
        }
        crossing_state = places.with_fields(crossing_state, step | {"status": RUNNING, "bound": np.inf})
        crossing_state = run(group.dynamics, crossing_state)
        if crossing_state[index("status")] != FINISHED:
            return None
        ends.append((float(crossing_state[index("t")]), crossing_state[y].copy(), group.dynamics))
    between = dynamics.closure.polished(_interpolated(ends[0], ends[1], begin + (n + 1) * h, p), p)
    run_fields = {name: state[index(name)] for name in ("h", "begin", "last", "next", "stride", "bound")}
    rows = []
    for k, row_state in ((n + 1, between), (n + 2, ends[-1][1])):
        if k > last:
            break
        crossing_state = places.with_fields(
            crossing_state, run_fields | {"t": begin + k * h, "y": row_state, "n": k, "status": RUNNING, "live": 1.0}
        )
        if k >= run_fields["next"] or k >= last:
            rows.append(crossing_state[: y.stop].copy())
            run_fields["next"] += run_fields["stride"]
    ended = crossing_state[index("n")] >= last
    end = {"next": run_fields["next"], "live": float(not ended), "status": FINISHED if ended else RUNNING, "due": 0.0}
    return places.with_fields(crossing_state, end), rows


def _interpolated(
    one: tuple[float, Array, Dynamics], other: tuple[float, Array, Dynamics], t: float, p: Array
) -> Array:
    """Interpolate by the cubic through two states and their rates."""
    (t0, y0, _), (t1, y1, _) = one, other
    slopes = []
    for time, y, dynamics in (one, other):
        values = {"t": np.array(time), "y": y, "p": p}
        slopes.append(
            (t1 - t0) * np.asarray(dynamics.f.evaluate(**{name: values[name] for name in dynamics.f.inputs})["dy"])
        )
    dense = hermite_polynomial(list(y0), list(slopes[0]), list(y1), list(slopes[1]), None)
    return np.array(interpolate(dense, (t - t0) / (t1 - t0)), float)
