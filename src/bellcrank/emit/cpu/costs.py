"""What a graph will cost on this computer, before it is compiled: a linear model, calibrated here once and remembered.

The time of one state in a batch is a sum over what the graph has: arithmetic, divisions and roots, angles (a sine and
cosine of one angle come together), calls of the C library, values that wait so long that they leave the registers,
numbers read and written, a start, and minima and maxima (which keep NaN, and so are half a dozen instructions). The
weights come from compiling and timing a few artificial graphs; that takes half a second, once for each processor and
version, and is kept in the cache folder beside the object code. docs/counting.md says how well it predicts.

A state that is computed alone, and whose next one waits for it as in a simulation, has weights of its own.
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
from bellcrank.emit.constants import code_fingerprint
from bellcrank.emit.cpu import halves
from bellcrank.emit.cpu.host import Library, compile_text, host
from bellcrank.emit.cpu.plan import order
from bellcrank.emit.target import By
from bellcrank.graph import Graph, Recursion, trace
from bellcrank.nodes.node import Node
from bellcrank.nodes.ops import OPS, PLUMBING
from bellcrank.scalar import cos, maximum, minimum, sin

TINY = 50  # operations, a nanosecond or two: no reason to calibrate a computer
EVEN = 1.05  # predicted times that are as good as equal
ROWS = 512
REPEATS = 25
FARTHEST_USE = 80  # with three times as many registers as any processor has, the compiler still had to put it away


@dataclass(frozen=True)
class Parts:
    """What a graph has: of a Costs, the nanoseconds that one of each takes."""

    arithmetic: float  # mul, add, sub, and what compares and selects
    roots: float  # div, sqrt
    angles: float  # arguments of sine and cosine
    calls: float  # of the C library: exp, log, tan, ...
    recalls: float  # uses of a value that was last touched FARTHEST_USE operations before
    reads: float
    writes: float
    starts: float = 1.0
    extremes: float = 0.0  # minimum, maximum

    def exceeds(self, other: Parts) -> bool:
        """Slower on any computer: whatever things cost within the bounds, what it has more of is never made up for."""
        more = [a - b for a, b in zip(_numbers(self), _numbers(other), strict=True)]
        bounds = zip(more, _numbers(AT_LEAST), _numbers(AT_MOST), strict=True)
        return any(more) and sum(d * (least if d > 0 else most) for d, least, most in bounds) >= 0.0


# What things cost on processors of this century, in operations of arithmetic, with some room on either side.
AT_LEAST = Parts(arithmetic=1, roots=2, angles=10, calls=20, recalls=0.25, reads=0, writes=0.25, starts=0, extremes=1)
AT_MOST = Parts(
    arithmetic=1, roots=40, angles=200, calls=5000, recalls=10, reads=20, writes=40, starts=5000, extremes=20
)


class Costs(Parts):
    """Nanoseconds of each part."""

    def predicted(self, g: Graph) -> float:
        """Seconds of one state on one core: in a large batch, or alone, as these costs were measured."""
        return self.of(parts(g))

    def of(self, found: Parts) -> float:
        """The same of what a graph was found to have."""
        time = sum(w * n for w, n in zip(_numbers(self), _numbers(found), strict=True))
        return 1e-9 * max(time, 0.1)  # a weight may come out as nothing, a call never does


def _numbers(p: Parts) -> list[float]:
    return [getattr(p, f.name) for f in fields(Parts)]


def parts(g: Graph) -> Parts:
    """What the graph has, and what the graphs have that it calls, as often as it does."""
    if isinstance(g, Recursion):
        each = [[n * x for x in _numbers(parts(cell.graph))] for cell, n in zip(g.cells, g.counts, strict=True)]
        return Parts(*(sum(numbers) for numbers in zip(*each, strict=True)))
    called = [node.args[0] for node in g.nodes if node.op == "call"]
    c = Counter(OPS[node.op].kind for node in g.nodes if node.op not in PLUMBING)
    angles = {node.args[0] for node in g.nodes if node.op in ("sin", "cos")}
    sines = sum(node.op in ("sin", "cos") for node in g.nodes)
    used = {node.args for node in g.nodes if node.op == "input"}
    extremes = sum(node.op in ("minimum", "maximum") for node in g.nodes)
    own = Parts(
        arithmetic=c["mul"] + c["add"] + c["sub"] + c["select"] - extremes,
        roots=c["div"] + c["sqrt"],
        angles=len(angles),
        calls=c["trig"] - sines + c["exp"],
        recalls=recalls(g),
        reads=len(used),
        writes=sum(map(math.prod, g.shapes.values())),
        extremes=extremes,
    )
    return Parts(*(sum(numbers) for numbers in zip(*map(_numbers, [own, *map(parts, called)]), strict=True)))


def recalls(g: Graph) -> int:
    touched: dict[int, int] = {}
    total = 0
    for now, node in enumerate(order(g)):
        for a in node.operands:
            total += now - touched[a.serial] > FARTHEST_USE
            touched[a.serial] = now
        touched[node.serial] = now
    return total


# -- calibration


@cache
def costs(dtype: str = "float64", alone: bool = False) -> Costs:
    """This computer's, from the cache or measured now: in a batch, or of single states that wait for each other."""
    kept = store.load(_name(dtype, alone))
    return Costs(**json.loads(kept)) if kept is not None else measured(dtype, alone)


def cheapest(graphs: Sequence[tuple[By, Graph]], dtype: str = "float64") -> tuple[By, Graph]:
    """Of graphs that compute the same the one that will be fastest on this computer: by predicted time; of those
    within the model's own noise, the one with the fewest operations.

    What is slower than another on any computer is out before it is asked what things cost here.
    """
    has = [parts(g) for _, g in graphs]
    graphs = [pair for pair, mine in zip(graphs, has, strict=True) if not any(mine.exceeds(other) for other in has)]
    fewest = min(graphs, key=lambda pair: pair[1].count().arithmetic)
    if len(graphs) == 1 or max(g.count().arithmetic for _, g in graphs) < TINY:
        return fewest
    times = [costs(dtype).predicted(g) for _, g in graphs]
    even = [pair for pair, t in zip(graphs, times, strict=True) if t <= EVEN * min(times)]
    return min(even, key=lambda pair: pair[1].count().arithmetic)


def measured(dtype: str = "float64", alone: bool = False) -> Costs:
    """Measured now, whatever the cache has, and remembered."""
    costs.cache_clear()
    found = _calibrated(dtype, alone)
    store.save(_name(dtype, alone), json.dumps(asdict(found)).encode())
    return found


def _name(dtype: str, alone: bool) -> str:
    h, kind = host(), "costs alone" if alone else "costs"
    return store.key(kind, dtype, h.cpu, h.features, h.llvm, code_fingerprint()) + ".json"


# Small and large, with much of one thing and little of the others, in the order of Parts.
SAMPLES = (
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


def _calibrated(dtype: str, alone: bool) -> Costs:
    graphs = [sample(Parts(*numbers)) for numbers in SAMPLES]
    timers = [_timer(g, dtype, alone) for g in graphs]
    least = [math.inf] * len(graphs)
    for _ in range(REPEATS):  # in turn, so that a disturbance does not meet one sample alone
        least = [min(t, timer()) for t, timer in zip(least, timers, strict=True)]
    A = np.array([_numbers(parts(g)) for g in graphs])
    return Costs(*_nonnegative(A / np.array(least)[:, None], np.ones(len(graphs))))


def _nonnegative(A: Any, b: Any) -> list[float]:
    """Least squares without negative weights: the most negative one is left out until none is."""
    keep = list(range(A.shape[1]))
    while True:
        x = np.linalg.lstsq(A[:, keep], b, rcond=None)[0]
        if (x >= 0).all():
            break
        keep.pop(int(x.argmin()))
    out = np.zeros(A.shape[1])
    out[keep] = x
    return [float(w) for w in out]


# Computes one state again and again; where its input lies follows from the result before, so that each has to wait.
AGAIN = """define i64 @again(i64 %n, ptr %x, i64 %zero, ptr %y, i64 %unused) {
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


def _timer(g: Graph, dtype: str, alone: bool) -> Callable[[], float]:
    """Nanoseconds of one state, measured once at each call."""
    half = halves.state_half if alone else halves.batch_half  # of what is not measured nothing is compiled
    text = half(g, host().lanes(dtype), dtype)
    library = Library(compile_text(f"{text}\n{AGAIN}" if alone else text))
    rng = np.random.default_rng(0)
    shapes = [*g.inputs.values(), *g.shapes.values()]
    arrays = [rng.uniform(0.5, 1.5, (ROWS, *shape)).astype(dtype) for shape in shapes]
    many = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p, ctypes.c_int64] * len(arrays))
    function = many(library.address("again" if alone else "many"))
    pointers = [x for a in arrays for x in (a.ctypes.data, 0 if alone else a[0].nbytes)]

    def once(keep: Any = (library, arrays)) -> float:
        start = time.perf_counter_ns()
        function(ROWS, *pointers)
        return (time.perf_counter_ns() - start) / ROWS

    return once


def sample(wanted: Parts) -> Graph:
    """A graph with about these parts, whose values are used soon after they are made, as a sweep along bodies does."""
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
        made, reach = 0, len(live) if wanted.recalls else min(len(live), 24)
        while made < wanted.arithmetic:
            i, j, k = (rng.randrange(reach) for _ in range(3))
            live[i], live[j] = live[i] * live[k] + live[j], live[j] * live[k] - live[i]
            live.append(live.pop(0))
            made += 4
        out: list[Any] = [0.0] * int(wanted.writes)
        for i in range(max(len(out), len(live))):  # every value is wanted somewhere
            out[i % len(out)] = out[i % len(out)] + live[i % len(live)] if i < len(live) else live[i % len(live)] * i
        return {"y": out}

    return trace("sample", body, {"x": (int(wanted.reads),)})
