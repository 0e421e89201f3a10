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
from bellcrank.emit.constant_changes import code_fingerprint
from bellcrank.emit.cores.streams import fused_into, source
from bellcrank.emit.cores.thread_team import ThreadTeam, allowed_cpus
from bellcrank.emit.cpu import kernel_module
from bellcrank.emit.cpu.costs import CostParts, recalls, sample
from bellcrank.emit.cpu.machine_code import Library
from bellcrank.emit.llvm.host import compile_text, host
from bellcrank.graph import Graph, trace
from bellcrank.nodes.node import Node
from bellcrank.nodes.ops import OPS
from bellcrank.scheduling import Machine, tasks_from_groups
from bellcrank.scheduling.coarsening import with_call_and_result
from bellcrank.scheduling.machines import complete
from bellcrank.scheduling.partitioning import timed_schedule

REPEATS = 200
PING_PONG_SECONDS = 2.0  # time limit of a ping-pong when other cores are busy
PING_PONG_MESSAGES = 16  # messages of a ping-pong
MANY_WORDS = 40
ASSUMED_MESSAGE_NS = (100.0, 1.0)  # assumed ns of a message and of each further word, if there is only one CPU


@dataclass(frozen=True)
class CoreTimes:
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


def threads_machine(processors: int, dtype: str = "float64") -> Machine:
    """Return this computer's cores as a Machine for schedules, with `processors` processors, for the type `dtype`."""
    p = core_times(dtype)
    by_kind = {"add": p.arithmetic, "sub": p.arithmetic, "mul": p.arithmetic, "select": p.arithmetic, "neg": 0.0,
               "div": p.root, "sqrt": p.root, "trig": p.call, "exp": p.call}  # fmt: skip
    cost = {name: by_kind[op.kind] for name, op in OPS.items()}
    cost |= {"sin": p.angle / 2, "cos": p.angle / 2}
    return Machine(f"threads({processors})", complete(processors), cost, start=p.start, word=p.word, unit="ns")


_measured_times: dict[str, CoreTimes] = {}


def core_times(dtype: str = "float64", again: bool = False) -> CoreTimes:
    """Return the costs for the type `dtype`, from the cache or measured now; `again` forces a measurement."""
    if dtype not in _measured_times or again:
        _measured_times[dtype] = _load_or_measure(dtype, again)
    return _measured_times[dtype]


def _load_or_measure(dtype: str, again: bool) -> CoreTimes:
    h = host()
    name = store.key("pace", dtype, h.cpu, h.features, h.llvm, code_fingerprint()) + ".json"
    cached = None if again else store.load(name)
    if cached is not None:
        return CoreTimes(**json.loads(cached))
    measured = _measure(dtype)
    store.save(name, json.dumps(asdict(measured)).encode())
    return measured


# -- one core


def _measure(dtype: str) -> CoreTimes:
    none = dict.fromkeys(("arithmetic", "roots", "angles", "calls", "recalls"), 0)

    def ns(**wanted: int) -> float:
        return _least(_single_core_timer(sample(CostParts(**(none | {"reads": 30, "writes": 12} | wanted))), dtype))

    sizes = [sweeps(bodies) for bodies in (10, 110)]
    few, many = (_least(_single_core_timer(g, dtype)) for g in sizes)
    base = ns(arithmetic=200)
    dense = (ns(arithmetic=6600) - ns(arithmetic=600)) / 6000
    return CoreTimes(
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
    return _least(_single_core_timer(g, dtype)) / (
        len([n for n in g.nodes if n.op != "input"]) - len(fused_into(g, dtype))
    )


def sweeps(bodies: int) -> Graph:
    """Return arithmetic typical of the methods, for two branches of `bodies` bodies each.

    Vectors propagate outwards along rotated frames, matrices and vectors propagate inwards, and results of the outward
    sweep stay in memory until the inward sweep.
    """

    def turned(c: Any, s: Any, x: Sequence[Any]) -> list[Any]:
        return [c * x[0] - s * x[1], s * x[0] + c * x[1], x[2]]

    def columns(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
        return [list(column) for column in zip(*rows, strict=True)]

    def body(x: Sequence[Node]) -> Mapping[str, Any]:
        w = [[x[0], x[1], x[2]], [x[3], x[4], x[5]]]
        out, outward_results = [], []
        for i in range(bodies):
            c, s, rate = x[3 * i], x[3 * i + 1], x[3 * i + 2]
            t = turned(c, s, w[i % 2])
            w[i % 2] = [t[1], t[2] + rate, t[0] - rate * t[1]]
            outward_results.append((i % 2, c, s, w[i % 2]))
        one = [[x[0], x[1], x[2]], [x[1], x[2], x[0]], [x[2], x[0], x[1]]]
        matrix: list[Any] = [one, one]
        for k, c, s, v in reversed(outward_results):
            half = columns([turned(c, s, row) for row in matrix[k]])
            rows = columns([turned(c, s, row) for row in half])
            force = [row[0] * v[0] + row[1] * v[1] + row[2] * v[2] for row in rows]
            matrix[k] = [[a - force[i] * v[j] for j, a in enumerate(row)] for i, row in enumerate(rows)]
            out.append(force[0] * v[1] - force[1] * v[2])
        return {"y": out}

    return trace("sweeps", body, {"x": (3 * bodies,)})


REPEAT_FUNCTION = """define void @repeat(i64 %n, ptr %x, ptr %y) {
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
STATES_PER_MEASUREMENT = 50


def _single_core_timer(g: Graph, dtype: str) -> Callable[[], float]:
    return _timer(
        Library(compile_text(kernel_module.source(g, host().lanes(dtype), dtype) + "\n" + REPEAT_FUNCTION)), g, dtype
    )


def _timer(library: Library, g: Graph, dtype: str) -> Callable[[], float]:
    shapes = [*g.inputs.values(), *(array.shape for array in g.outputs.values())]
    arrays = [np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(dtype) for shape in shapes]
    repeat = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(library.address("repeat"))
    pointers = [a.ctypes.data for a in arrays]

    def once(keep: Any = (library, arrays)) -> float:
        start = time.perf_counter_ns()
        repeat(STATES_PER_MEASUREMENT, *pointers)
        return (time.perf_counter_ns() - start) / STATES_PER_MEASUREMENT

    return once


def _least(timer: Callable[[], float]) -> float:
    return min(timer() for _ in range(REPEATS))


# -- two cores


def _message(dtype: str) -> tuple[float, float]:
    """Return the fixed cost of a message, and the cost of each word after the first."""
    if len(allowed_cpus()) < 2:
        return ASSUMED_MESSAGE_NS
    one, many = (ping_pong(words, dtype) for words in (1, MANY_WORDS))
    return round(one, 1), round(max(many - one, 0.0) / (MANY_WORDS - 1), 3)


def ping_pong(words: int, dtype: str = "float64") -> float:
    """Return the ns of one message of `words` words, for the type `dtype`."""

    def body(x: Sequence[Node]) -> Mapping[str, Any]:
        y: list[Any] = list(x)
        for k in range(PING_PONG_MESSAGES):
            y = [a * 0.5 + (k + 1.0) for a in y]
        return {"y": y}

    g = trace("ping-pong", body, {"x": (words,)})
    nodes = [n for n in g.nodes if n.op != "input"]
    size = len(nodes) // PING_PONG_MESSAGES
    groups = [nodes[i * size : (i + 1) * size] for i in range(PING_PONG_MESSAGES)]
    tasks, where = with_call_and_result(
        tasks_from_groups(g.name, "throws", groups, graph=g), [k % 2 for k in range(PING_PONG_MESSAGES)]
    )
    schedule = timed_schedule(tasks, where, Machine("two", complete(2)))
    library = Library(
        compile_text(source(g, schedule, host().lanes(dtype), host().triple, dtype) + "\n" + REPEAT_FUNCTION)
    )
    team = ThreadTeam(library, 2)
    timer = _timer(library, g, dtype)
    try:
        least, valid_runs, until = float("inf"), 0, time.perf_counter() + PING_PONG_SECONDS
        while valid_runs < REPEATS and time.perf_counter() < until:
            team.wake()
            earlier_counts, ns = team.counts, timer()
            if team.counts[0] - earlier_counts[0] == STATES_PER_MEASUREMENT:
                least, valid_runs = min(least, ns), valid_runs + 1
    finally:
        team.stop()
    return least / PING_PONG_MESSAGES if valid_runs else ASSUMED_MESSAGE_NS[0]
