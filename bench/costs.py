"""Accuracy of predicted times: `python -m bench.costs`.

Forward and inverse dynamics, mass matrix and bias of mechanisms of 1 to 31 joints, by the methods for practical use:
predicted first, then measured on one core.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.progress import track

import bellcrank as bc
from bellcrank import zoo
from bellcrank.cli import timing
from bellcrank.text_table import table

PAPERS = ("pendulum", "planar3r", "excavator", "stanford", "puma600", "torso")
WORK = (
    ("forward_dynamics", "crba"), ("forward_dynamics", "aba"), ("forward_dynamics", "denoc"),
    ("inverse_dynamics", "rnea"), ("mass_matrix", "crba"), ("bias", "rnea"),
)  # fmt: skip


def main() -> None:
    machines = [zoo.load(name) for name in PAPERS]
    machines += [zoo.chain(n, twist="general") for n in (3, 5, 8, 12, 16)]
    machines += [zoo.chain(20), zoo.tree(31), zoo.chain(30)]
    rows, off = [], []
    jobs = [(m, quantity, method) for m in machines for quantity, method in WORK]
    for m, quantity, method in track(jobs, "measuring", console=Console(stderr=True), transient=True):
        k = bc.kernel(m, quantity, method=method)
        measured, predicted = timing.batch_time(m, k), k.predicted
        off.append(predicted / measured - 1.0)
        rows.append((m.name, quantity, method, f"{measured * 1e9:.1f}", f"{predicted * 1e9:.1f}", f"{off[-1]:+.0%}"))
    print(table(("mechanism", "quantity", "method", "measured ns", "predicted ns", "off"), rows, right=(3, 4, 5)))
    far = np.abs(off)
    print(f"\n{len(off)} kernels: {(far <= 0.1).sum()} within 10 %, {(far <= 0.2).sum()} within 20 %; ", end="")
    print(f"from {min(off):+.0%} to {max(off):+.0%}")


if __name__ == "__main__":
    main()
