"""Forward dynamics of large batches, with contiguous columns and with contiguous rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.emit.cuda.device import cupy
from bench.gpu import clock
from bench.gpu.mechanisms import robot

CALLS = 8  # in sequence in one measurement, so that Python finishes a call before the GPU does
STATES = {"ur5": 2**24, "panda_arm": 2**24, "panda": 2**24, "talos": 2**22}
MUST = {
    "float32": {"ur5": 3.1e10, "panda_arm": 2.0e10, "panda": 2.0e10, "talos": 2.2e9},
    "float64": {"ur5": 1.8e10, "panda_arm": 1.15e10, "panda": 1.15e10, "talos": 7e8},
}
HEAD = ("per s", "must", "TB/s", "TFLOP/s", "roofline", "registers", "predicted", "spilled", "shared", "error")


def states(m: Any, count: int, dtype: str, rows: bool) -> list[Any]:
    """Return random q, v, tau of so many states."""
    random = cupy().random.RandomState(1)
    made = [random.uniform(-1.5, 1.5, (count, n) if rows else (n, count)).astype(dtype) for n in (m.nq, m.nv, m.nv)]
    return made if rows else [x.T for x in made]


def table() -> None:
    peak = {dtype: clock.arithmetic(dtype) for dtype in MUST}
    copy = clock.bandwidth()
    print(
        f"ceilings: copy {copy / 1e12:.2f} TB/s, " + ", ".join(f"{d} {x / 1e12:.1f} TFLOP/s" for d, x in peak.items())
    )
    print(f"{'forward dynamics':26}" + "".join(f"{h:>10}" for h in HEAD))
    for dtype, floors in MUST.items():
        for name, must in floors.items():
            m = robot(name)
            k = bc.kernel(m, "forward_dynamics", target="cuda", dtype=dtype)
            for rows in (False, True):
                cells = _row(m, k, STATES[name], dtype, rows, peak[dtype], copy)
                cells.insert(1, "" if rows else f"{must:.3g}")
                label = f"{name} {dtype} {'rows' if rows else 'columns'}"
                print(f"{label:26}" + "".join(f"{c:>10}" for c in cells), flush=True)
                cupy().get_default_memory_pool().free_all_blocks()


def _row(m: Any, k: Any, count: int, dtype: str, rows: bool, peak: float, copy: float) -> list[str]:
    given = states(m, count, dtype, rows)
    out = k(*given)
    want = bc.kernel(m, "forward_dynamics", method=k.method)(*(cupy().asnumpy(x[:1000]).astype(float) for x in given))
    got = cupy().asnumpy(out[:1000])
    error = float((np.abs(got - want).max(axis=1) / np.abs(want).max(axis=1)).max())

    def calls() -> None:
        for _ in range(CALLS):
            k(*given, out=out)

    rate = CALLS * count / clock.seconds(calls)
    moved, work = (m.nq + 3 * m.nv) * np.dtype(dtype).itemsize, k.graph.count().arithmetic
    (f,) = k.tiled if rows and "tiled" in k.texts else k.strided
    share = rate / min(peak / work, copy / moved)
    return [f"{rate:.3g}", f"{moved * rate / 1e12:.2f}", f"{work * rate / 1e12:.1f}", f"{share:.0%}", str(f.registers),
            str(k.texts["strided"][0]["registers"]), str(f.local), str(f.shared), f"{error:.1e}"]  # fmt: skip
