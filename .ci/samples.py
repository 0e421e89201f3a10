"""Numbers of kernels and runs into a file, or two such files compared: see .ci/aarch64 and .ci/python."""

from __future__ import annotations

import platform
import sys

import llvmlite
import numpy as np

import bellcrank as bc
from bellcrank.emit.llvm.host import host

WITHIN = {"mass matrix, float32": 1e-6}  # of the largest entry; everything else 1e-12


def numbers() -> dict[str, object]:
    arm, loop = bc.zoo.puma600(), bc.zoo.four_bar()
    q, v, tau = arm.random(seed=0, batch=37)
    k = bc.kernel(arm, "forward_dynamics", method="aba")
    single = bc.kernel(arm, "mass_matrix", method="crba", dtype="float32")
    return {
        "forward dynamics, a batch": k(q, v, tau),
        "forward dynamics, state by state": np.array([k(*state) for state in zip(q, v, tau)]),
        "mass matrix, float32": single(q.astype(np.float32)),
        "four-bar": bc.kernel(loop, "mass_matrix", method="crba")(loop.assemble(loop.neutral())[0]),
        "a run": bc.simulate(bc.zoo.chain(2), seconds=0.2, q0=[0.5, 1.0], method="crba").q,
    }


def main(file: str, other: str = "") -> None:
    if not other:
        np.savez(file, **numbers())  # type: ignore[arg-type]
        gil = "" if getattr(sys, "_is_gil_enabled", lambda: True)() else " without a global lock"
        print(f"Python {platform.python_version()}{gil}, numpy {np.__version__}, llvmlite {llvmlite.__version__}")
        print(f"{platform.machine()}, {host().cpu}, {host().lanes('float64')} lanes: wrote {file}")
        return
    a, b = np.load(file), np.load(other)
    apart = {name: float(abs(a[name] - b[name]).max() / abs(b[name]).max()) for name in a.files}
    for name, x in apart.items():
        print(f"{name}: {x:.1g}")
    if far := [name for name, x in apart.items() if x > WITHIN.get(name, 1e-12)]:
        sys.exit(f"too far apart: {', '.join(far)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
