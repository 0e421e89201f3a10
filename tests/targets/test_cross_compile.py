"""Machine code for other processors under QEMU: kernels and a run in vector code equal those of this computer.

The bound is that of docs/export.md: 1e-12 of the largest number of its kind. Where both processors have fused
multiply-adds every operation rounds alike, and only libm may differ, by an ulp.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build import graphs
from bellcrank.dynamics.quantities import Request
from bellcrank.emit.cpu import cross_compile, kernel_module, run_loop
from bellcrank.emit.cpu.target import Cpu
from bellcrank.errors import CompileError, InputError
from bellcrank.excavators.machines import MACHINES
from bellcrank.exporting.export_content import export_content
from bellcrank.exporting.webassembly import initial_state

BOUND = 1e-12
WHICH = ["aarch64", "riscv64"]

RUN = """
#include <stdint.h>
#include <stdio.h>
#include <string.h>
int64_t run(int64_t, double *, double *, double *, double *, double *, int64_t, double *, double *, int64_t, int64_t,
            int64_t *, double *);
void begin(double *, double *, double *, double *, double *);
static _Alignas(64) double s[SIZE], spare[SIZE], p[64], u[256], inputs[256], row[SIZE], ws[SLOTS];
static int64_t counts[8];
int main(void)
{
    double *now = spare, *next = s;
    int64_t code;
    size_t got = fread(s, sizeof(s), 1, stdin) + fread(inputs, sizeof(double), INPUTS, stdin);
    got += fread(p, sizeof(double), FREE, stdin);
    if (got != 1 + INPUTS + FREE) return 1;
    memcpy(u, inputs, sizeof(u));
    begin(s, spare, p, u, ws);
    code = run(TICKS, now, next, p, u, inputs, LANE, row, row, 0, 0, counts, ws);
    fwrite(code & 16 ? next : now, sizeof(s), 1, stdout);
    return 0;
}
"""
KERNEL = """
#include <stdint.h>
#include <stdio.h>
int64_t many(int64_t, double *, int64_t, double *, int64_t, double *, int64_t, double *, int64_t);
static double in[3][ROWS * N], out[ROWS * N];
int main(void)
{
    if (fread(in, sizeof(in), 1, stdin) != 1) return 1;
    many(ROWS, in[0], 8 * N, in[1], 8 * N, in[2], 8 * N, out, 8 * N);
    fwrite(out, sizeof(out), 1, stdout);
    return 0;
}
"""


def needs(which: str) -> tuple[str, str]:
    found = [shutil.which(name) for name in (f"{which}-linux-gnu-gcc", f"qemu-{which}")]
    if None in found:
        pytest.skip(f"not installed: gcc-{which}-linux-gnu, qemu-user")
    return str(found[0]), str(found[1])


def ran(which: str, folder: Path, text: str, driver: str, given: bytes, **sizes: int) -> np.ndarray[Any, Any]:
    """Return what the driver, linked with the object code of the text, makes of its input bytes."""
    compiler, emulator = needs(which)
    (folder / "it.o").write_bytes(cross_compile.object_code(text, which))
    (folder / "main.c").write_text(driver)
    defined = [f"-D{name}={x}" for name, x in sizes.items()]
    called = [compiler, "-O1", "-static", *defined, "main.c", "it.o", "-lm", "-o", "it"]
    subprocess.run(called, cwd=folder, check=True, timeout=100)
    done = subprocess.run([emulator, "./it"], cwd=folder, input=given, capture_output=True, timeout=100, check=True)
    return np.frombuffer(done.stdout)


@pytest.mark.parametrize("which", WHICH)
def test_kernels_equal_native_ones(which: str, tmp_path: Path) -> None:
    m = bc.zoo.stanford()
    _, graph = graphs.choose_graph(m, Request("forward_dynamics"), Cpu("float64").choose)
    rows = 7  # whole blocks of lanes, and one row more
    q, v, tau = (np.stack([m.random(seed)[k] for seed in range(rows)]) for k in range(3))
    lanes = cross_compile.PROCESSORS[which].lanes("float64")
    text = kernel_module.source(graph, lanes)
    given = b"".join(x.tobytes() for x in (q, v, tau))
    found = ran(which, tmp_path, text, KERNEL, given, ROWS=rows, N=m.nv).reshape(rows, m.nv)
    expected = m.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize("name", ["excavator", "excavator_linkage"])
def test_whole_runs_equal_native_ones(which: str, name: str, tmp_path: Path) -> None:
    """Whole runs agree: two side by side where there are lanes for them, with different levers."""
    s = MACHINES[name]().system
    form = "projected" if s.mechanism.loops else "minimal"
    stepper = export_content(s, (), "", bc.Solver("rk4", 1e-3, form=form)).stepper
    assert stepper is not None
    lanes, ticks, n = cross_compile.PROCESSORS[which].lanes("float64"), 50, len(s.inputs)
    text, slots = run_loop.source(stepper.program, lanes, lanes)
    begin = np.repeat(np.array(initial_state(stepper))[:, None], lanes, axis=1)
    usual = [s.defaults.get(x, 0.0) for x in s.inputs]
    table = np.array([[x + 0.3 * (j + 1) * (k < 2) for k, x in enumerate(usual)] for j in range(lanes)])
    free = np.repeat(np.array(list(s.parameters.values()), float), lanes)
    given = begin.tobytes() + table.tobytes() + free.tobytes()
    size, room = begin.size, slots * lanes + 64
    sizes = {"SIZE": size, "SLOTS": room, "TICKS": ticks, "INPUTS": table.size, "FREE": free.size, "LANE": 8 * n}
    found = ran(which, tmp_path, text, RUN, given, **sizes).reshape(-1, lanes)
    for j in range(lanes):
        run = bc.simulate(s, ticks * 1e-3, inputs=dict(zip(s.inputs, table[j].tolist(), strict=True)), form=form)
        expected = np.concatenate([run.q[-1], run.v[-1], [run[x.name][-1] for x in s.states]])
        got = found[1 : 1 + len(expected), j]
        nq = s.mechanism.nq
        for some in (slice(0, nq), slice(nq, 2 * nq), slice(2 * nq, None)):
            np.testing.assert_allclose(got[some], expected[some], rtol=0, atol=BOUND * np.abs(expected[some]).max())


def test_missing_targets_raise() -> None:
    with pytest.raises(InputError, match="aarch64"):
        cross_compile.object_code("", "vax")
    with pytest.raises(CompileError, match="LLVM rejected generated code"):
        cross_compile.object_code("nonsense", "aarch64")
    assert cross_compile.object_code("define void @f() {\n ret void\n}", "riscv64")[:4] == b"\x7fELF"
