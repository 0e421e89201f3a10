"""One thread or a team of threads per state: predicted and measured rates.

If the prediction is right, the product of rate and predicted cost is the same for all rows, up to a factor of dtype.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.build import graphs
from bellcrank.emit.cuda.batch_kernel import BatchKernelText
from bellcrank.emit.cuda.device import DeviceFunction, cupy
from bench.gpu import clock
from bench.gpu.mechanisms import robot

NAMES = ("talos", "tree:15", "tree:31", "tree:63", "tree:127", "chain:32")
MEMBERS = (1, 2, 4, 8)
BYTES = 2**30  # of each array
Case = tuple[str, str, str, int]


def loaded(name: str) -> Any:
    return bc.zoo.load(name) if ":" in name else robot(name)


def made(case: Case) -> dict[str, Any]:
    name, method, dtype, members = case
    s = BatchKernelText(graphs.graph(loaded(name), "forward_dynamics", method), dtype, members=members)
    p = s.plan
    return {"ptx": s.ptx, "threads": p.threads, "shared": s.shared, "states": p.states, "cost": p.cost,
            "registers": p.registers, "balance": p.team.balance, "blocks": p.blocks, "far": p.local_values}  # fmt: skip


def table() -> None:
    cases = [(n, method, d, k) for n in NAMES for d in ("float32", "float64") for method in ("crba", "aba")
             for k in MEMBERS]  # fmt: skip
    head = ("per s", "cost", "product", "balance", "blocks", "registers", "given", "local", "shared", "error")
    print(f"{'forward dynamics':30}" + "".join(f"{h:>10}" for h in head))
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for case, text in zip(cases, pool.map(made, cases), strict=True):
            name, method, dtype, members = case
            label = f"{name} {method} {dtype} {members}"
            try:
                cells = _row(loaded(name), method, dtype, text)
            except Exception as error:
                cells = [f"  {type(error).__name__}: {error}"[:90]]
            print(f"{label:30}" + "".join(f"{c:>10}" for c in cells), flush=True)
            cupy().get_default_memory_pool().free_all_blocks()


def _row(m: Any, method: str, dtype: str, t: dict[str, Any]) -> list[str]:
    cp = cupy()
    f = DeviceFunction(t["ptx"], "many", t["threads"], t["shared"], t["states"])
    count = min(2**21, BYTES // (m.nv * 8))
    random = cp.random.RandomState(1)
    given = [random.uniform(-1.5, 1.5, (n, count)).astype(dtype) for n in (m.nq, m.nv, m.nv)]
    out = cp.empty((m.nv, count), dtype)
    strides = (np.uint32(1), np.uint32(count))
    arguments = [x for a in (*given, out) for x in (a, *strides)]

    def call() -> None:
        f(count, np.int64(count), *arguments)

    took = clock.seconds(call, 5)
    first = [cp.asnumpy(a[:, -1000:].T).astype(float) for a in given]
    want = bc.kernel(m, "forward_dynamics", method=method)(*first)
    got = cp.asnumpy(out[:, -1000:].T)
    error = float((np.abs(got - want).max(axis=1) / np.abs(want).max(axis=1)).max())
    rate = count / took
    return [f"{rate:.3g}", f"{t['cost']:.0f}", f"{rate * t['cost']:.3g}", f"{t['balance']:.2f}", str(t["blocks"]),
            str(t["registers"]), str(f.registers), str(f.local), str(t["shared"]), f"{error:.1e}"]  # fmt: skip
