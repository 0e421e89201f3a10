"""One large chain on a GPU: `python -m bench.size_gpu [bodies ...]`, 10000 and 100000 by default.

Prints, for each, one state's time by aba on one core of this computer, by dca on the GPU (arrays on the GPU, one
launch), and the difference of the results; also for some lengths of the segments that a thread processes. `--write`
puts the figures into the data that `bellcrank papers` shows.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.build.segmented_recursion import segmented_graph
from bellcrank.emit.cuda import device
from bellcrank.emit.cuda.rolled_kernels import WaveEngine
from bellcrank.emit.cuda.waves import wave_text
from bellcrank.papers import fijany

LENGTHS = (16, 32)


def best(call: Callable[[], Any], seconds: float = 1.0) -> float:
    """Return the shortest of many, in seconds."""
    call()
    found, until = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < until:
        start = time.perf_counter()
        call()
        found = min(found, time.perf_counter() - start)
    return float(found)


def on_gpu(m: bc.Mechanism, shortest: int, state: dict[str, Any], expected: Any) -> dict[str, float]:
    """Time one segment length."""
    cp = device.cupy()
    begin = time.perf_counter()
    cut = segmented_graph(
        f"{m.name}.forward_dynamics", m.tree, {name: x.shape for name, x in state.items()}, None, shortest
    )
    assert cut is not None
    made = wave_text(cut)
    engine = WaveEngine(made, {name: len(x) for name, x in state.items()}, len(expected), "float64")
    ready = time.perf_counter() - begin
    for name, x in state.items():
        engine.inputs[name][...] = cp.asarray(x)
    cp.cuda.Device().synchronize()

    def once() -> None:
        engine()
        engine.stream.synchronize()

    seconds = best(once)
    off = float(np.abs(cp.asnumpy(engine.result) - expected).max() / np.abs(expected).max())
    phases = int((made.plan[:, 0] > 0).sum()) + 1
    row = {"segment": shortest, "phases": phases, "us": 1e6 * seconds, "off": off, "ready_s": ready}
    print(f"  segments of {shortest:>3}: {1e6 * seconds:9.1f} us, {phases} phases, {engine.blocks} blocks, off by "
          f"{off:.1e}, first result after {ready:.1f} s, {engine.function.registers} registers, "
          f"{engine.function.local} bytes spilled", flush=True)  # fmt: skip
    return row


def measured(n: int, lengths: Sequence[int]) -> dict[str, Any]:
    m = bc.zoo.load(f"chain:{n}")
    k = bc.kernel(m, "forward_dynamics", method="aba")
    q, v, tau = m.random(0)
    expected = k(q, v, tau)
    one = best(lambda: k(q, v, tau))
    print(f"chain:{n}: {1e6 * one:.1f} us by aba on one core", flush=True)
    rows = [on_gpu(m, x, {"q": q, "v": v, "tau": tau}, expected) for x in lengths]
    fastest = min(rows, key=lambda row: row["us"])
    print(f"  {1e6 * one / fastest['us']:.1f} times as fast as one core, by segments of {fastest['segment']}")
    kept = {key: fastest[key] for key in ("off", "segment", "phases")}
    return {"bodies": n, "one_core_us": 1e6 * one, "gpu_us": fastest["us"], **kept, "all": rows}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bodies", nargs="*", type=int)
    parser.add_argument("--lengths", nargs="*", type=int, default=LENGTHS, help="bodies of a segment, to try")
    parser.add_argument("--write", nargs="?", const=str(fijany.MEASUREMENTS_FILE), help="where the figures go")
    given = parser.parse_args()
    if why := device.unavailable_reason():
        raise SystemExit(why)
    cp = device.cupy()
    name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(name)
    rows = [measured(n, given.lengths) for n in given.bodies or (10_000, 100_000)]
    if given.write:
        Path(given.write).write_text(json.dumps({"gpu": name, "rows": rows}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
