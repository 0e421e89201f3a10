"""Breakdown of the time of a whole call, a million runs of 100 steps: python -m bench.gpu call

Every part has the time spent in it, without the parts that it calls. "rest" is Python between them: checks, and all
that is not measured separately. The first call of a Simulator traces, makes PTX and has the driver assemble it; the
second reuses all that; the third also reuses the memory of a deleted record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import bellcrank as bc
from bellcrank.emit.cuda import device, run_kernel
from bellcrank.emit.cuda.device import cupy
from bellcrank.graph import Layout
from bellcrank.sim.run import gpu_runs, simulator

RUNS, SECONDS = 1_000_000, 0.1
PARTS = ("trace", "text", "ptx", "driver", "start", "kernel", "fetch", "record", "rest")
SUMMARY = ["max(*.v)", "rms(*.v)", "t_max(energy)"]


class Watch:
    """Seconds of each part, minus those of its inner parts."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self._inner = [0.0]

    def timed(self, part: str, function: Callable[..., Any], *given: Any, **named: Any) -> Any:
        began = time.perf_counter()
        self._inner.append(0.0)
        try:
            return function(*given, **named)
        finally:
            cupy().cuda.get_current_stream().synchronize()  # otherwise a part would be charged for the one before it
            took = time.perf_counter() - began
            self.seconds[part] += took - self._inner.pop()
            self._inner[-1] += took

    @contextmanager
    def over(self, part: str, owner: Any, name: str) -> Iterator[None]:
        """Time a function that is looked up in `owner` under that name."""
        function = vars(owner)[name]
        setattr(owner, name, lambda *given, **named: self.timed(part, function, *given, **named))
        try:
            yield
        finally:
            setattr(owner, name, function)


def _call(work: Callable[[], Any]) -> tuple[Watch, float]:
    watch = Watch()
    places = (
        ("trace", simulator.Simulator, "program"), ("text", run_kernel.RunKernel.__dict__["text"], "func"),
        ("ptx", run_kernel, "ptx"), ("driver", device.DeviceFunction, "__init__"), ("start", Layout, "array"),
        ("kernel", gpu_runs.GpuProgram, "finish"), ("fetch", gpu_runs, "_fetch"), ("record", simulator, "recorded"),
    )  # fmt: skip

    def nested(left: tuple[Any, ...]) -> Any:
        if not left:
            return watch.timed("rest", work)
        with watch.over(*left[0]):
            return nested(left[1:])

    began = time.perf_counter()
    nested(places)
    return watch, time.perf_counter() - began


def table() -> None:
    """Print the table of docs/gpu.md."""
    m = bc.zoo.puma600()
    starts = m.random(0, (RUNS,))[0]
    cupy().zeros(1).sum().item()  # the context of the GPU is made once, at the first use
    print(f"{'puma600, 1e6 runs, ms':40}" + "".join(f"{h:>8}" for h in ("whole", *PARTS)))
    for name, dtype, how, asked in (
        ("one start", "float64", {"batch": RUNS}, ()), ("one start", "float32", {"batch": RUNS}, ()),
        ("starts", "float64", {"q0": starts}, ()), ("summary", "float64", {"batch": RUNS}, SUMMARY),
    ):  # fmt: skip
        sim = bc.Simulator(m, summary=asked)
        for call in ("first", "second", "third"):
            given: dict[str, Any] = {"target": "cuda", "dtype": dtype, "keep": "final", **how}
            watch, whole = _call(lambda sim=sim, given=given: sim.run(SECONDS, **given))  # type: ignore[misc]
            cells = (whole, *watch.seconds.values())
            print(f"{f'{name} {dtype}, {call} call':40}" + "".join(f"{1e3 * c:8.1f}" for c in cells), flush=True)
    began = time.perf_counter()
    bc.simulate(m, SECONDS, batch=RUNS, target="cuda", keep="final")
    print(f"bc.simulate as a whole, again: {1e3 * (time.perf_counter() - began):.1f} ms")
