"""Critical path of O(log n) algorithms, and measured times on one GPU.

Fijany's arrays give the mass matrix of a chain in O(log n) steps, and Lathrop's give velocities and forces;
Featherstone's divide and conquer (dynamics/dca.py) gives the accelerations. The first table lists the critical path:
the longest chain of dependent operations, a lower bound on any number of processors. The second is measured: one state
of a long chain, on one core by the articulated-body algorithm, and on a GPU by divide and conquer with one thread per
segment (`python -m bench.size_gpu --write`).
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from bellcrank.build.graphs import graph
from bellcrank.papers.results import Result, Row
from bellcrank.text_table import Table
from bellcrank.zoo import chain

JOINT_COUNTS = (8, 16, 32, 64, 128, 256)
MAX_MATRIX_JOINTS = 32  # largest number of joints for which the mass matrix is tabulated
MEASUREMENTS_FILE = Path(__file__).with_name("depth.json")  # written by bench/size_gpu.py


def run() -> Result:
    """Compute the critical paths, and tabulate them with the measured times."""
    paths = {n: {method: critical_path(n, method) for method in ("aba", "dca")} for n in JOINT_COUNTS}
    matrices = {n: f"{mass_matrix_path(n):.0f}" for n in JOINT_COUNTS if n <= MAX_MATRIX_JOINTS}
    rows = [(str(n), *(f"{x:.0f}" for x in paths[n].values()), matrices.get(n, "")) for n in JOINT_COUNTS]
    head = ("joints", "aba", "dca", "mass matrix, vcrb_parallel")
    on_paper = Table("longest path, operations", head, tuple(rows))
    before, last = (paths[b]["dca"] - paths[a]["dca"] for a, b in pairwise(JOINT_COUNTS[-3:]))
    growth = Row("path for twice the joints", "a constant more (O(log n))", last, "operations more", last <= before)
    return Result((growth,), tables=(on_paper, measured_times()))


def critical_path(n: int, method: str) -> float:
    """Return the critical path of forward dynamics of a chain, in operations.

    Parameters
    ----------
    n
        Number of joints.
    method
        Method of forward dynamics, such as "aba".
    """
    return graph(chain(n), "forward_dynamics", method).span()


def mass_matrix_path(n: int) -> float:
    """Return the critical path of the mass matrix of a chain of `n` joints, in operations."""
    return graph(chain(n), "mass_matrix", "vcrb_parallel").span()


def measured_times() -> Table:
    """Tabulate the times measured on a GPU."""
    head = ("joints", "one core", "GPU", "times as fast", "phases", "off by")
    if not MEASUREMENTS_FILE.exists():
        placeholder = ("python -m bench.size_gpu --write", *[""] * (len(head) - 1))
        return Table("one state, measured: not yet on this computer", head, (placeholder,))
    data = json.loads(MEASUREMENTS_FILE.read_text("utf-8"))
    return Table(f"one state, measured: {data['gpu']}", head, tuple(_row(x) for x in data["rows"]))


def _row(x: dict[str, Any]) -> tuple[str, ...]:
    gain = x["one_core_us"] / x["gpu_us"]
    times = f"{x['one_core_us']:.0f} us", f"{x['gpu_us']:.0f} us"
    return f"{x['bodies']:,}", *times, f"{gain:.1f}", str(x["phases"]), f"{x['off']:.0e}"
