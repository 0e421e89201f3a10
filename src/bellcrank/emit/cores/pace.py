"""Calibration of the machine threads(p): costs of operations and messages on this computer, measured once and cached.

The costs of emit/cpu/costs.py are for batches, where lanes share every instruction. Here one state is computed by
scalar code; its rate comes from a graph so large that the start-up does not matter. The cost of a message comes from
two threads that pass a value back and forth, in the same code that kernels use (streams.py).
"""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bellcrank.emit import cache as store
from bellcrank.emit.constants import code_fingerprint
from bellcrank.emit.cores.crew import Crew, allowed
from bellcrank.emit.cores.streams import source, stays
from bellcrank.emit.cpu import llvm
from bellcrank.emit.cpu.costs import Parts, recalls, sample
from bellcrank.emit.cpu.host import Library, compile_text, host
from bellcrank.graph import Graph, trace
from bellcrank.nodes.node import Node
from bellcrank.nodes.ops import OPS
from bellcrank.scheduling import Machine, grouped
from bellcrank.scheduling.coarse import framed
from bellcrank.scheduling.divide import timed
from bellcrank.scheduling.machines import complete

REPEATS = 200
SECONDS = 2.0  # time limit of a ping-pong when other cores are busy
THROWS = 16  # messages of a ping-pong
MANY_WORDS = 40
GUESS = (100.0, 1.0)  # assumed ns of a message and of each further word, if there is only one CPU


@dataclass(frozen=True)
class Pace:
    """Nanoseconds on one core, in a stream of scalar instructions; for messages, from send to use."""

    arithmetic: float
    root: float
    angle: float  # sine and cosine together
    call: float  # a function of the C library
    start: float
    word: float
    latency: float  # from an addition or multiplication to the use of its result
    dense: float  # arithmetic with all values in registers
    recall: float  # a value that must be loaded from memory


def threads(processors: int, dtype: str = "float64") -> Machine:
    """Return this computer's cores as a Machine for schedules, with so many `processors`, for the type `dtype`."""
    p = pace(dtype)
    by_kind = {"add": p.arithmetic, "sub": p.arithmetic, "mul": p.arithmetic, "select": p.arithmetic, "neg": 0.0,
               "div": p.root, "sqrt": p.root, "trig": p.call, "exp": p.call}  # fmt: skip
    cost = {name: by_kind[op.kind] for name, op in OPS.items()}
    cost |= {"sin": p.angle / 2, "cos": p.angle / 2}
    return Machine(f"threads({processors})", complete(processors), cost, start=p.start, word=p.word, unit="ns")


_known: dict[str, Pace] = {}


def pace(dtype: str = "float64", again: bool = False) -> Pace:
    """Return the costs for the type `dtype`, from the cache or measured now; `again` forces a measurement."""
    if dtype not in _known or again:
        _known[dtype] = _remembered(dtype, again)
    return _known[dtype]


def _remembered(dtype: str, again: bool) -> Pace:
    h = host()
    name = store.key("pace", dtype, h.cpu, h.features, h.llvm, code_fingerprint()) + ".json"
    kept = None if again else store.load(name)
    if kept is not None:
        return Pace(**json.loads(kept))
    measured = _measured(dtype)
    store.save(name, json.dumps(asdict(measured)).encode())
    return measured


# -- one core


def _measured(dtype: str) -> Pace:
    none = dict.fromkeys(("arithmetic", "roots", "angles", "calls", "recalls"), 0)

    def ns(**wanted: int) -> float:
        return _least(_alone(sample(Parts(**(none | {"reads": 30, "writes": 12} | wanted))), dtype))

    sizes = [sweeps(bodies) for bodies in (10, 110)]
    few, many = (_least(_alone(g, dtype)) for g in sizes)
    base = ns(arithmetic=200)
    dense = (ns(arithmetic=6600) - ns(arithmetic=600)) / 6000
    return Pace(
        round((many - few) / (sizes[1].count().arithmetic - sizes[0].count().arithmetic), 4),
        round(max(ns(arithmetic=200, roots=25) - base, 0.0) / 25, 3),
        round(max(ns(arithmetic=200, angles=24) - base, 0.0) / 24, 3),
        round(max(ns(arithmetic=200, calls=4) - base, 0.0) / 4, 2),
        *_message(dtype),
        round(_latency(dtype), 3),
        round(dense, 4),
        round(
            max(many / sizes[1].count().arithmetic - dense, 0.0) * sizes[1].count().arithmetic / recalls(sizes[1]), 4
        ),
    )


def _latency(dtype: str) -> float:
    """Measure a long recursion in which each step depends on the one before."""

    def body(x: Sequence[Node]) -> Mapping[str, Any]:
        y: Any = x[0]
        for k in range(400):
            y = y * x[1] if k % 2 else y + x[2]
        return {"y": [y]}

    g = trace("recursion", body, {"x": (3,)})
    return _least(_alone(g, dtype)) / (len([n for n in g.nodes if n.op != "input"]) - len(stays(g, dtype)))


def sweeps(bodies: int) -> Graph:
    """Return arithmetic typical of the methods, for two branches of so many `bodies` each.

    Vectors propagate outwards along rotated frames, matrices and vectors propagate inwards, and results of the outward
    sweep stay in memory until the inward sweep.
    """

    def turned(c: Any, s: Any, x: Sequence[Any]) -> list[Any]:
        return [c * x[0] - s * x[1], s * x[0] + c * x[1], x[2]]

    def columns(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
        return [list(column) for column in zip(*rows, strict=True)]

    def body(x: Sequence[Node]) -> Mapping[str, Any]:
        w = [[x[0], x[1], x[2]], [x[3], x[4], x[5]]]
        out, kept = [], []
        for i in range(bodies):
            c, s, rate = x[3 * i], x[3 * i + 1], x[3 * i + 2]
            t = turned(c, s, w[i % 2])
            w[i % 2] = [t[1], t[2] + rate, t[0] - rate * t[1]]
            kept.append((i % 2, c, s, w[i % 2]))
        one = [[x[0], x[1], x[2]], [x[1], x[2], x[0]], [x[2], x[0], x[1]]]
        matrix: list[Any] = [one, one]
        for k, c, s, v in reversed(kept):
            half = columns([turned(c, s, row) for row in matrix[k]])
            rows = columns([turned(c, s, row) for row in half])
            force = [row[0] * v[0] + row[1] * v[1] + row[2] * v[2] for row in rows]
            matrix[k] = [[a - force[i] * v[j] for j, a in enumerate(row)] for i, row in enumerate(rows)]
            out.append(force[0] * v[1] - force[1] * v[2])
        return {"y": out}

    return trace("sweeps", body, {"x": (3 * bodies,)})


REPEAT = """define void @repeat(i64 %n, ptr %x, ptr %y) {
  br label %next
next:
  %i = phi i64 [0, %0], [%j, %next]
  %status = call i64 @one(ptr %x, ptr %y)
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %next, label %done
done:
  ret void
}"""
STATES = 50


def _alone(g: Graph, dtype: str) -> Callable[[], float]:
    return _timer(Library(compile_text(llvm.source(g, host().lanes(dtype), dtype) + "\n" + REPEAT)), g, dtype)


def _timer(library: Library, g: Graph, dtype: str) -> Callable[[], float]:
    shapes = [*g.inputs.values(), *(array.shape for array in g.outputs.values())]
    arrays = [np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(dtype) for shape in shapes]
    repeat = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(library.address("repeat"))
    pointers = [a.ctypes.data for a in arrays]

    def once(keep: Any = (library, arrays)) -> float:
        start = time.perf_counter_ns()
        repeat(STATES, *pointers)
        return (time.perf_counter_ns() - start) / STATES

    return once


def _least(timer: Callable[[], float]) -> float:
    return min(timer() for _ in range(REPEATS))


# -- two cores


def _message(dtype: str) -> tuple[float, float]:
    """Return the fixed cost of a message, and the cost of each word after the first."""
    if len(allowed()) < 2:
        return GUESS
    one, many = (ping_pong(words, dtype) for words in (1, MANY_WORDS))
    return round(one, 1), round(max(many - one, 0.0) / (MANY_WORDS - 1), 3)


def ping_pong(words: int, dtype: str = "float64") -> float:
    """Return the ns of one message of so many `words`, for the type `dtype`."""

    def body(x: Sequence[Node]) -> Mapping[str, Any]:
        y: list[Any] = list(x)
        for k in range(THROWS):
            y = [a * 0.5 + (k + 1.0) for a in y]
        return {"y": y}

    g = trace("ping-pong", body, {"x": (words,)})
    nodes = [n for n in g.nodes if n.op != "input"]
    size = len(nodes) // THROWS
    groups = [nodes[i * size : (i + 1) * size] for i in range(THROWS)]
    tasks, where = framed(grouped(g.name, "throws", groups), [k % 2 for k in range(THROWS)])
    schedule = timed(tasks, where, Machine("two", complete(2)))
    library = Library(compile_text(source(g, schedule, host().lanes(dtype), host().triple, dtype) + "\n" + REPEAT))
    crew = Crew(library, 2)
    timer = _timer(library, g, dtype)
    try:
        least, good, until = float("inf"), 0, time.perf_counter() + SECONDS
        while good < REPEATS and time.perf_counter() < until:
            crew.wake()
            before, ns = crew.counts, timer()
            if crew.counts[0] - before[0] == STATES:
                least, good = min(least, ns), good + 1
    finally:
        crew.stop()
    return least / THROWS if good else GUESS[0]
