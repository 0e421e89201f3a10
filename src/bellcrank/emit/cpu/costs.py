"""Cost model of a graph on this computer, applied before it is compiled: linear, calibrated once and cached.

The time of one state in a batch is a sum over the parts of the graph: arithmetic, divisions and roots, angles (sine and
cosine of one angle are computed together), calls of the C library, values that wait so long that they leave the
registers, numbers read and written, a start, and minima and maxima (which propagate NaN, and so take half a dozen
instructions). The weights come from compiling and timing a few artificial graphs; that takes half a second, once for
each processor and version, and is kept in the cache folder beside the object code. docs/counting.md reports how well
the model predicts.

A state that is computed alone, where the next one waits for it as in a simulation, has weights of its own.
"""

from __future__ import annotations

import ctypes
import json
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any

import numpy as np

from bellcrank.emit import cache as store
from bellcrank.emit.constant_changes import code_fingerprint
from bellcrank.emit.cpu import kernel_module
from bellcrank.emit.cpu.machine_code import Library
from bellcrank.emit.llvm.host import compile_text, host
from bellcrank.emit.llvm.scheduling import LATENCY_CYCLES, order
from bellcrank.emit.target import By
from bellcrank.graph import Graph, Recursion, trace
from bellcrank.nodes.node import Node
from bellcrank.nodes.ops import OPS, PLUMBING
from bellcrank.scalar import cos, maximum, minimum, sin

TINY_OPERATIONS = 50  # operations, a nanosecond or two: not worth a calibration
EVEN_TIME_RATIO = 1.05  # ratio of predicted times that count as equal
CALIBRATION_ROWS = 512
CALIBRATION_REPEATS = 25
CHAIN_OPERATIONS = 400  # multiplications of the chain that measures a latency
DEFAULT_LATENCY_CYCLES = 10.0  # of operations without an entry in LATENCY_CYCLES
# Operations; beyond, even three times the registers of any processor did not prevent a spill.
FARTHEST_USE_OPERATIONS = 80


@dataclass(frozen=True)
class CostParts:
    """Number of parts of a graph; in Costs, the nanoseconds that one of each takes."""

    arithmetic: float  # mul, add, sub, comparisons and selects
    roots: float  # div, sqrt
    angles: float  # arguments of sine and cosine
    calls: float  # calls of the C library: exp, log, tan, ...
    recalls: float  # uses of a value that was last touched FARTHEST_USE_OPERATIONS operations before
    reads: float
    writes: float
    starts: float = 1.0
    extremes: float = 0.0  # minimum, maximum

    def exceeds(self, other: CostParts) -> bool:
        """Return True if it is slower than `other` on any computer: for all costs from LOWER_BOUNDS to UPPER_BOUNDS."""
        more = [a - b for a, b in zip(_weights(self), _weights(other), strict=True)]
        bounds = zip(more, _weights(LOWER_BOUNDS), _weights(UPPER_BOUNDS), strict=True)
        return any(more) and sum(d * (least if d > 0 else most) for d, least, most in bounds) >= 0.0


# Bounds of the costs on processors of this century, in units of one arithmetic operation, with some margin.
LOWER_BOUNDS = CostParts(
    arithmetic=1, roots=2, angles=10, calls=20, recalls=0.25, reads=0, writes=0.25, starts=0, extremes=1
)
UPPER_BOUNDS = CostParts(
    arithmetic=1, roots=40, angles=200, calls=5000, recalls=10, reads=20, writes=40, starts=5000, extremes=20
)


class Costs(CostParts):
    """Nanoseconds of each part."""

    def predicted(self, g: Graph) -> float:
        """Return the seconds of one state of graph `g` on one core; in a large batch or alone, as measured."""
        return self.seconds(parts(g))

    def seconds(self, counts: CostParts) -> float:
        """Return the seconds of one state of a graph with the parts `counts`."""
        time = sum(w * n for w, n in zip(_weights(self), _weights(counts), strict=True))
        return 1e-9 * max(time, 0.1)  # all weights may come out as zero, but a call never takes no time


def _weights(p: CostParts) -> list[float]:
    return [getattr(p, f.name) for f in fields(CostParts)]


def parts(g: Graph) -> CostParts:
    """Return the parts of graph `g`, including the graphs that it calls, as often as it calls them."""
    if isinstance(g, Recursion):
        each = [[n * x for x in _weights(parts(cell.graph))] for cell, n in zip(g.cells, g.counts, strict=True)]
        return CostParts(*(sum(numbers) for numbers in zip(*each, strict=True)))
    called = [node.args[0] for node in g.nodes if node.op == "call"]
    c = Counter(OPS[node.op].kind for node in g.nodes if node.op not in PLUMBING)
    angles = {node.args[0] for node in g.nodes if node.op in ("sin", "cos")}
    sines = sum(node.op in ("sin", "cos") for node in g.nodes)
    used = {node.args for node in g.nodes if node.op == "input"}
    extremes = sum(node.op in ("minimum", "maximum") for node in g.nodes)
    own_parts = CostParts(
        arithmetic=c["mul"] + c["add"] + c["sub"] + c["select"] - extremes,
        roots=c["div"] + c["sqrt"],
        angles=len(angles),
        calls=c["trig"] - sines + c["exp"],
        recalls=recalls(g),
        reads=len(used),
        writes=sum(map(math.prod, g.shapes.values())),
        extremes=extremes,
    )
    return CostParts(*(sum(numbers) for numbers in zip(*map(_weights, [own_parts, *map(parts, called)]), strict=True)))


def recalls(g: Graph) -> int:
    """Return the number of uses in graph `g` of a value that was last touched long before."""
    last_touch: dict[int, int] = {}
    total = 0
    for position, node in enumerate(order(g)):
        for a in node.operands:
            total += position - last_touch[a.serial] > FARTHEST_USE_OPERATIONS
            last_touch[a.serial] = position
        last_touch[node.serial] = position
    return total


# -- calibration


@cache
def costs(dtype: str = "float64", single_state: bool = False) -> Costs:
    """Return the costs of this computer, cached or measured now.

    Parameters
    ----------
    dtype
        Floating-point type.
    single_state
        True for single states that wait for each other; False for states in a batch.
    """
    cached = store.load(_name(dtype, single_state))
    return Costs(**json.loads(cached)) if cached is not None else measure_costs(dtype, single_state)


def critical_path_seconds(g: Graph) -> float:
    """Return the seconds of the critical path of graph `g`, from the latencies of its operations."""
    latency = {name: LATENCY_CYCLES.get(name, DEFAULT_LATENCY_CYCLES) for name in OPS}
    return 1e-9 * cycle_nanoseconds() * g.span(latency)


@cache
def cycle_nanoseconds() -> float:
    """Return the nanoseconds of a cycle of LATENCY_CYCLES on this computer, cached or measured now."""
    name = _name("float64", True, "cycle")
    if (cached := store.load(name)) is not None:
        return float(json.loads(cached))

    def body(x: Sequence[Node]) -> Mapping[str, Any]:
        y: Any = x[0]
        for _ in range(CHAIN_OPERATIONS):
            y = y * x[1]
        return {"y": [y]}

    timer = _timer(trace("chain", body, {"x": (2,)}), "float64", single_state=True)
    measured = min(timer() for _ in range(CALIBRATION_REPEATS)) / (CHAIN_OPERATIONS * LATENCY_CYCLES["mul"])
    store.save(name, json.dumps(measured).encode())
    return measured


def cheapest(graphs: Sequence[tuple[By, Graph]], dtype: str = "float64") -> tuple[By, Graph]:
    """Return the pair of `graphs` that will be fastest on this computer, by predicted time for `dtype`.

    All graphs compute the same result. Among those within the accuracy of the model, the one with the fewest operations
    is chosen. Graphs that are slower than another on any computer are removed before any calibration.
    """
    graph_parts = [parts(g) for _, g in graphs]
    graphs = [
        pair
        for pair, own_parts in zip(graphs, graph_parts, strict=True)
        if not any(own_parts.exceeds(other) for other in graph_parts)
    ]
    fewest = min(graphs, key=lambda pair: pair[1].count().arithmetic)
    if len(graphs) == 1 or max(g.count().arithmetic for _, g in graphs) < TINY_OPERATIONS:
        return fewest
    times = [costs(dtype).predicted(g) for _, g in graphs]
    even = [pair for pair, t in zip(graphs, times, strict=True) if t <= EVEN_TIME_RATIO * min(times)]
    return min(even, key=lambda pair: pair[1].count().arithmetic)


def measure_costs(dtype: str = "float64", single_state: bool = False) -> Costs:
    """Return the costs measured now, for `dtype` and a `single_state` or a batch, and save them in the cache."""
    costs.cache_clear()
    costs_now = _calibrate(dtype, single_state)
    store.save(_name(dtype, single_state), json.dumps(asdict(costs_now)).encode())
    return costs_now


def _name(dtype: str, single_state: bool, what: str = "costs") -> str:
    h, kind = host(), f"{what} alone" if single_state else what
    return store.key(kind, dtype, h.cpu, h.features, h.llvm, code_fingerprint()) + ".json"


# Small and large graphs, with much of one part and little of the others, in the order of CostParts.
CALIBRATION_SAMPLES = (
    (20, 0, 0, 0, 0, 4, 2),
    (300, 0, 0, 0, 0, 12, 6),
    (1500, 0, 0, 0, 0, 30, 12),
    (1500, 0, 0, 0, 1000, 90, 12),
    (100, 16, 0, 0, 0, 12, 6),
    (100, 0, 12, 0, 0, 12, 6),
    (60, 0, 0, 4, 0, 12, 6),
    (100, 0, 0, 0, 0, 60, 6),
    (100, 0, 0, 0, 0, 12, 60),
    (100, 0, 0, 0, 0, 12, 6, 1, 120),
)


def _calibrate(dtype: str, single_state: bool) -> Costs:
    graphs = [sample(CostParts(*numbers)) for numbers in CALIBRATION_SAMPLES]
    timers = [_timer(g, dtype, single_state) for g in graphs]
    least = [math.inf] * len(graphs)
    for _ in range(CALIBRATION_REPEATS):  # in turn, so that a disturbance does not affect only one sample
        least = [min(t, timer()) for t, timer in zip(least, timers, strict=True)]
    A = np.array([_weights(parts(g)) for g in graphs])
    return Costs(*_nonnegative_least_squares(A / np.array(least)[:, None], np.ones(len(graphs))))


def _nonnegative_least_squares(A: Any, b: Any) -> list[float]:
    """Solve least squares with nonnegative weights, by removing the most negative one until none is left."""
    keep = list(range(A.shape[1]))
    while True:
        x = np.linalg.lstsq(A[:, keep], b, rcond=None)[0]
        if (x >= 0).all():
            break
        keep.pop(int(x.argmin()))
    out = np.zeros(A.shape[1])
    out[keep] = x
    return [float(w) for w in out]


# Computes one state again and again; the address of its input depends on the previous result, so that each has to wait.
AGAIN_FUNCTION = """define i64 @again(i64 %n, ptr %x, i64 %zero, ptr %y, i64 %unused) {
  br label %next
next:
  %i = phi i64 [0, %0], [%j, %next]
  %from = phi ptr [%x, %0], [%then, %next]
  %status = call i64 @one(ptr %from, ptr %y)
  %seen = load i64, ptr %y, align 4
  %offset = and i64 %seen, %zero
  %then = getelementptr i8, ptr %x, i64 %offset
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %next, label %done
done:
  ret i64 0
}"""


def _timer(g: Graph, dtype: str, single_state: bool) -> Callable[[], float]:
    """Return a function that measures the nanoseconds of one state, once at each call."""
    # Only the measured half is compiled.
    half = kernel_module.scalar_module if single_state else kernel_module.batch_module
    text = half(g, host().lanes(dtype), dtype)
    library = Library(compile_text(f"{text}\n{AGAIN_FUNCTION}" if single_state else text))
    rng = np.random.default_rng(0)
    shapes = [*g.inputs.values(), *g.shapes.values()]
    arrays = [rng.uniform(0.5, 1.5, (CALIBRATION_ROWS, *shape)).astype(dtype) for shape in shapes]
    many = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p, ctypes.c_int64] * len(arrays))
    function = many(library.address("again" if single_state else "many"))
    pointers = [x for a in arrays for x in (a.ctypes.data, 0 if single_state else a[0].nbytes)]

    def once(keep: Any = (library, arrays)) -> float:
        start = time.perf_counter_ns()
        function(CALIBRATION_ROWS, *pointers)
        return (time.perf_counter_ns() - start) / CALIBRATION_ROWS

    return once


def sample(wanted: CostParts) -> Graph:
    """Return a graph with about the parts `wanted`, whose values are used soon, as in a sweep over bodies."""
    rng = random.Random(1)

    def body(x: Sequence[Node]) -> Mapping[str, Any]:
        live: list[Any] = list(x)
        for i in range(int(wanted.angles)):
            live[i] = sin(live[i]) + cos(live[i])
        for i in range(int(wanted.roots)):
            live[i % len(live)] = live[(i + 1) % len(live)] / live[i % len(live)]
        for i in range(int(wanted.calls)):
            live[i] = live[i].tanh()
        for i in range(int(wanted.extremes)):
            j, k = i % len(live), (i + 1) % len(live)
            live[j] = maximum(live[j], live[k]) if i % 2 else minimum(live[j] * live[k], live[j])
        operations, reach = 0, len(live) if wanted.recalls else min(len(live), 24)
        while operations < wanted.arithmetic:
            i, j, k = (rng.randrange(reach) for _ in range(3))
            live[i], live[j] = live[i] * live[k] + live[j], live[j] * live[k] - live[i]
            live.append(live.pop(0))
            operations += 4
        outputs: list[Any] = [0.0] * int(wanted.writes)
        for i in range(max(len(outputs), len(live))):  # every value must be used
            outputs[i % len(outputs)] = (
                outputs[i % len(outputs)] + live[i % len(live)] if i < len(live) else live[i % len(live)] * i
            )
        return {"y": outputs}

    return trace("sample", body, {"x": (int(wanted.reads),)})
