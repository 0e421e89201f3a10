"""Exported machines and functions compute the same values as the package."""

from __future__ import annotations

import ctypes
import json
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from crossing.systems import SECONDS, STEP, World

Array = np.ndarray[Any, Any]
TOLERANCE = 1e-10  # relative to the largest number of a run


def settings(w: World) -> dict[str, Any]:
    """Return the settings of an export; closed loops use the projected form unless the case has another one."""
    how = {k: x for k, x in w.how.items() if k != "form"} | {"step": STEP}
    if w.mechanism.loops:
        form = w.how.get("form", "auto")
        how["form"] = "projected" if form == "auto" else form
    return how


def reference(w: World) -> Array:
    """Return the states of the native run, row by row."""
    how = settings(w)
    run = bc.simulate(w.system, SECONDS, every=STEP, events=w.events, **w.begin, **how)
    return np.column_stack([run.q, run.v, *(run[z.name] for z in w.system.states)])


def export(w: World, path: Path, to: str) -> Path:
    """Export the system; its state of rest may be no possible start, of which an export warns, since it is replaced."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s)export: .*begins in the state of rest")
        return bc.export(w.system, path, to=to, events=w.events, **settings(w))


def close(found: Array, w: World, expected: Array) -> None:
    """Compare the last state, with wider tolerances for adaptive steps and for chosen independent coordinates."""
    chosen = w.one("steps") == "chosen"
    tolerance = 1e-6 if chosen else 1e-7 if settings(w).get("form") == "minimal" else TOLERANCE
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected[-1], rtol=0, atol=tolerance * scale)


def in_c(w: World, folder: Path) -> None:
    """Compile the C package and run its steps."""
    export(w, folder / "c", "c")
    (source,) = (p for p in (folder / "c").glob("*.c") if p.name != "main.c")
    library = folder / "it.so"
    done = subprocess.run(
        ["cc", "-std=c99", "-O0", "-fPIC", "-shared", "-w", str(source), "-o", str(library), "-lm"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    code, name, expected = ctypes.CDLL(str(library)), w.mechanism.name, reference(w)
    size = expected.shape[1]
    s = np.zeros(60 * size + 400)
    u = np.array([w.system.defaults[n] for n in w.system.inputs])
    p = w.system.parameters.nominal
    given = [ctypes.c_void_p(x.ctypes.data) for x in (s, u, p) if len(x)]
    code[f"{name}_init"](*given)
    s[1 : 1 + size] = expected[0]
    for array, x in ((u, [w.system.defaults[n] for n in w.system.inputs]), (p, w.system.parameters.nominal)):
        array[:] = x
    code[f"{name}_start"](*given)
    for _ in range(len(expected) - 1):
        status = code[f"{name}_step"](*given)
        assert status in ((0, 4) if w.of("event") else (0,))
    close(s[1 : 1 + size], w, expected)


def names(w: World) -> list[str]:
    """Return the names of the elements of a state."""
    q, v = w.mechanism.columns
    return [*(f"{n}.q" for n in q), *(f"{n}.v" for n in v), *(z.name for z in w.system.states)]


def in_fmu(version: int) -> Callable[[World, Path], None]:
    def agree(w: World, folder: Path) -> None:
        """Simulate the FMU with FMPy and compare the result."""
        fmpy = pytest.importorskip("fmpy", reason="FMPy is not installed")
        expected, columns = reference(w), names(w)
        path = export(w, folder / "it.fmu", f"fmu{version}")
        start = dict(zip(columns, map(float, expected[0]), strict=True))
        found = fmpy.simulate_fmu(
            str(path), stop_time=SECONDS, output_interval=STEP, step_size=STEP, start_values=start, output=columns,
            fmi_type="CoSimulation",
        )  # fmt: skip
        close(np.array([found[name][-1] for name in columns]), w, expected)

    return agree


def in_wasm(w: World, folder: Path) -> None:
    """Run the WebAssembly module with Node."""
    if which("node") is None:
        pytest.skip("Node is not installed")
    expected, columns = reference(w), names(w)
    export(w, folder / "wasm", "wasm")
    (own,) = (folder / "wasm").glob("*.js")
    start = json.dumps(dict(zip(columns, map(float, expected[0]), strict=True)))
    script = f"""import {{ load }} from "./{own.name}";
const m = await load();
for (const [name, x] of Object.entries({start})) m.set(name, x);
m.start();
for (let k = 0; k < {len(expected) - 1}; k++) m.step();
console.log(JSON.stringify({json.dumps(columns)}.map((name) => m.get(name))));"""
    (folder / "wasm" / "script.mjs").write_text(script)
    done = subprocess.run(["node", "script.mjs"], cwd=folder / "wasm", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    close(np.array(json.loads(done.stdout), float), w, expected)


def in_casadi(w: World, folder: Path) -> None:
    """Call the exported forward dynamics and its derivative."""
    casadi = pytest.importorskip("casadi", reason="CasADi is not installed")
    m, (q, v) = w.mechanism, w.start
    tau = np.linspace(-1.0, 1.0, m.nv)
    path = bc.export(m, folder / "it.so", to="casadi", functions=["forward_dynamics"])
    f = casadi.external("forward_dynamics", str(path))
    given = [q, v, tau, m.parameters.nominal] if m.parameters else [q, v, tau]
    a = m.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(np.array(f(*given)).ravel(), a, rtol=0, atol=1e-10 * max(1.0, np.abs(a).max()))
    x = casadi.MX.sym("x", m.nv)
    J = casadi.Function("J", [x], [casadi.jacobian(f(*given[:2], x, *given[3:]), x)])
    slope = [(m.forward_dynamics(q, v, tau + e) - m.forward_dynamics(q, v, tau - e)) / 2.0 for e in np.eye(m.nv)]
    np.testing.assert_allclose(np.array(J(tau)), np.array(slope).T, rtol=0, atol=1e-9 * max(1.0, np.abs(slope).max()))


AGREE: dict[str, Callable[[World, Path], None]] = {
    "c": in_c,
    "fmu2": in_fmu(2),
    "fmu3": in_fmu(3),
    "wasm": in_wasm,
    "casadi": in_casadi,
}
