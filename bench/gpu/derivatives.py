"""Matrices of large batches with their columns side by side: derivatives of forward dynamics, and mass matrices."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.emit.cuda.device import cupy
from bench.gpu import clock
from bench.gpu.dynamics import CALLS, states
from bench.gpu.mechanisms import robot

# The measured quantities, numbers of states, and minimum rates for float32 and float64.
WORK = [
    ("ur5", "forward_dynamics_derivatives", False, 2**22, (6e9, 3.6e9)),
    ("panda_arm", "forward_dynamics_derivatives", False, 2**22, (2.5e9, 8e8)),
    ("ur5", "mass_matrix", False, 2**23, (1.2e10, 0.0)),
    ("ur5", "mass_matrix", True, 2**23, (0.0, 0.0)),
    ("icub", "mass_matrix", False, 2**19, (3e8, 0.0)),
    ("icub", "mass_matrix", True, 2**19, (0.0, 0.0)),
]
HEAD = ("per s", "must", "TB/s", "TFLOP/s", "of memory", "parts", "registers", "spilled", "made in", "error")


def table() -> None:
    copy = clock.bandwidth()
    print(f"ceiling: copy {copy / 1e12:.2f} TB/s")
    print(f"{'':46}" + "".join(f"{h:>10}" for h in HEAD))
    for name, quantity, packed, count, floors in WORK:
        for dtype, must in zip(("float32", "float64"), floors, strict=True):
            cells = _row(robot(name), quantity, packed, count, dtype, must, copy)
            label = f"{name} {quantity.replace('forward_dynamics', 'fd')}{' packed' if packed else ''} {dtype}"
            print(f"{label:46}" + "".join(f"{c:>10}" for c in cells), flush=True)
            cupy().get_default_memory_pool().free_all_blocks()


def _row(m: Any, quantity: str, packed: bool, count: int, dtype: str, must: float, copy: float) -> list[str]:
    start = time.perf_counter()
    k = bc.kernel(m, quantity, target="cuda", dtype=dtype, packed=packed)
    k.strided  # noqa: B018  # loaded by the driver, which makes machine code of it unless an earlier process has
    made = time.perf_counter() - start
    given = states(m, count, dtype, rows=False)[: len(k.signature.inputs)]
    out = k(*given)
    cpu = bc.kernel(m, quantity, method=k.method, packed=packed)
    want = cpu(*(cupy().asnumpy(x[:200]).astype(float) for x in given)).reshape(200, -1)
    got = cupy().asnumpy(out[:200]).reshape(200, -1)
    error = float((np.abs(got - want).max(axis=1) / np.abs(want).max(axis=1)).max())

    def calls() -> None:
        for _ in range(CALLS):
            k(*given, out=out)

    rate = CALLS * count / clock.seconds(calls)
    moved = (sum(x.shape[1] for x in given) + want.shape[1]) * np.dtype(dtype).itemsize
    work, has = k.graph.count().arithmetic, k.registers
    return [f"{rate:.3g}", f"{must:.3g}" if must else "", f"{moved * rate / 1e12:.2f}", f"{work * rate / 1e12:.1f}",
            f"{moved * rate / copy:.0%}", str(len(k.strided)), str(has["given"]), str(has["local"]), f"{made:.1f} s",
            f"{error:.1e}"]  # fmt: skip
