"""Every quantity of every mechanism, by every method, on every target and array layout, equals the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.build import graphs
from bellcrank.dynamics import applicable_methods
from bellcrank.dynamics.quantities import QUANTITIES, Request
from cores import cheap
from crossing.laws import same
from crossing.schedules import follows
from crossing.systems import World
from crossing.thresholds import SEGMENTED

Array = np.ndarray[Any, Any]
ROWS = 3
TOLERANCE = {"float64": 1e-9, "float32": 2e-3}


def answerable(w: World, quantity: str) -> list[str]:
    """Return "auto" and the methods of a case that compute a quantity of its mechanism."""
    known = [m.name for m in applicable_methods(quantity, w.mechanism.tree)]
    if QUANTITIES[quantity].driven and w.mechanism.loops and not driven(w):
        return []
    asked = (*w.of("method"), *(("dca",) if w.one("path") == SEGMENTED else ()))
    return ["auto", *dict.fromkeys(m for m in asked if m in known)] if known else []


def inputs(w: World, quantity: str) -> dict[str, Array]:
    """Return a batch of states; states of a mechanism with loops are closed."""
    m, (q, v) = w.mechanism, w.start
    rng = np.random.default_rng(w.seed)
    q1 = m.integrate(q, 0.05 * rng.normal(size=m.nv))
    known = {"q": q, "v": v, "a": rng.normal(size=m.nv), "tau": rng.normal(size=m.nv), "dv": 0.1 * v, "q0": q, "q1": q1}
    scale = {"v": (1.0, 0.5, -0.7), "dv": (1.0, 0.5, -0.7)}
    return {x: np.array([k * known[x] for k in scale.get(x, (1.0,) * ROWS)]) for x in QUANTITIES[quantity].inputs}


def driven(w: World) -> tuple[str, ...]:
    """Return joints whose coordinates determine the motion; none if no set of whole joints does."""
    m, free = w.mechanism, bc.Simulator(w.mechanism, form="minimal").dynamics.independent
    names = dict.fromkeys(m.columns[1][k].partition(".")[0] for k in free)
    found = tuple(n for n in names if sum(c.partition(".")[0] == n for c in m.columns[1]) == 1)
    return found if len(found) == len(free) else ()


def actuated(w: World, quantity: str) -> tuple[str, ...]:
    """Return the driven joints if a quantity of a mechanism with loops needs them."""
    return driven(w) if QUANTITIES[quantity].driven and w.mechanism.loops else ()


def request(w: World, quantity: str, method: str) -> Request:
    """Return the arguments of a quantity, with the frame "tool" where a frame is needed."""
    frame = "tool" if QUANTITIES[quantity].option == "frame" else ""
    return Request(quantity, method, frame, actuated=actuated(w, quantity))


def expected(w: World, quantity: str, at: dict[str, Array]) -> Array:
    """Return the values of straight-line code of the first applicable method, evaluated by numpy."""
    m = w.mechanism
    by = next(x for x in applicable_methods(quantity, m.tree) if x.name != "dca")
    graph = graphs.trace_quantity(m, request(w, quantity, by.name), by)
    given = {**at, "p": np.tile(m.parameters.nominal, (ROWS, 1))} if m.parameters else at
    return np.asarray(graph.evaluate(**given)[quantity])


LAYOUTS: dict[str, Callable[[Array], Any]] = {
    "rows": lambda x: x,
    "one": lambda x: x[0],
    "fortran": np.asfortranarray,
    "strided": lambda x: np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)[::2, ::3],
    "broadcast": lambda x: x[None],
    "lists": lambda x: x.tolist(),
}


def check(w: World, quantity: str) -> set[tuple[str, str]]:
    """Compare a quantity by all methods of the case; return the methods that were compared."""
    done, row = set(), QUANTITIES[quantity]
    at = inputs(w, quantity)
    methods = answerable(w, quantity)
    want = expected(w, quantity, at) if methods else np.zeros(0)
    for method in methods:
        shared = {"machine": cheap(2)} if w.one("use") == "cores" else {"threads": int(w.one("threads") or 1)}
        kernel = bc.kernel(
            w.mechanism, quantity, method, dtype=w.one("dtype") or "float64",
            frame="tool" if row.option == "frame" else "", actuated=actuated(w, quantity), **shared,
        )  # fmt: skip
        if w.one("use") == "schedule":
            first = {x: at[x][0] for x in row.inputs} | {"p": w.mechanism.parameters.nominal}
            made = follows(kernel.graph, {x: first[x] for x in kernel.graph.inputs}, w.seed)
            same(made[quantity], want[0], TOLERANCE["float64"], f"{quantity} by {method}, scheduled")
        layout = w.one("layout") or "rows"
        found = np.asarray(kernel(*(LAYOUTS[layout](at[x]) for x in row.inputs)))
        wanted = want[0] if layout == "one" else want[None] if layout == "broadcast" else want
        same(found, wanted, TOLERANCE[w.one("dtype") or "float64"], f"{quantity} by {method}")
        done.add((quantity, method))
    return done
