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
from bellcrank.graph.program import FINISHED, NEVER, RUNNING
from bellcrank.integrate import interpolate
from bellcrank.integrate.problem import hermite
from bellcrank.sim.dynamics import Dynamics

Array = np.ndarray[Any, Any]
PARTS = (0.55, 0.72, 0.73)  # lengths of the three steps in steps; no stage of them lies at the singular end
Step = Callable[[Dynamics, Array], Array]  # runs a state to its end with the graphs of the given dynamics


def _can_cross(dynamics: Dynamics, places: Layout) -> bool:
    """Return True if a run has fixed steps and no memory, inputs or sampled controllers, which need whole steps."""
    memory, s = places.span("memory"), dynamics.system
    return "stride" in places and memory.start == memory.stop and not s.inputs and not s.sampled


def crossed(dynamics: Dynamics, places: Layout, state: Array, p: Array, run: Step) -> tuple[Array, list[Array]] | None:
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
    at, y = places.place, places.span("y")
    if not _can_cross(dynamics, places):
        return None
    n, h, begin, last = (state[at(name)] for name in ("n", "h", "begin", "last"))
    if not dynamics.closure.singular_ahead(state[y], p, float(h)):
        return None
    now, ends = state, []
    for part in PARTS:
        (group,) = dynamics.closure.grouped(now[y][None], p[None])
        step = {"n": 0.0, "begin": now[at("t")], "h": part * h, "last": 1.0, "next": NEVER, "live": 1.0, "due": 0.0}
        now = places.put(now, step | {"status": RUNNING, "bound": np.inf})
        now = run(group.by, now)
        if now[at("status")] != FINISHED:
            return None
        ends.append((float(now[at("t")]), now[y].copy(), group.by))
    between = dynamics.closure.polished(_between(ends[0], ends[1], begin + (n + 1) * h, p), p)
    kept = {name: state[at(name)] for name in ("h", "begin", "last", "next", "stride", "bound")}
    rows = []
    for k, there in ((n + 1, between), (n + 2, ends[-1][1])):
        if k > last:
            break
        now = places.put(now, kept | {"t": begin + k * h, "y": there, "n": k, "status": RUNNING, "live": 1.0})
        if k >= kept["next"] or k >= last:
            rows.append(now[: y.stop].copy())
            kept["next"] += kept["stride"]
    ended = now[at("n")] >= last
    end = {"next": kept["next"], "live": float(not ended), "status": FINISHED if ended else RUNNING, "due": 0.0}
    return places.put(now, end), rows


def _between(one: tuple[float, Array, Dynamics], other: tuple[float, Array, Dynamics], t: float, p: Array) -> Array:
    """Interpolate by the cubic through two states and their rates."""
    (t0, y0, _), (t1, y1, _) = one, other
    slopes = []
    for at, y, by in (one, other):
        given = {"t": np.array(at), "y": y, "p": p}
        slopes.append((t1 - t0) * np.asarray(by.f.evaluate(**{name: given[name] for name in by.f.inputs})["dy"]))
    dense = hermite(list(y0), list(slopes[0]), list(y1), list(slopes[1]), None)
    return np.array(interpolate(dense, (t - t0) / (t1 - t0)), float)
