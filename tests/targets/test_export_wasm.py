"""WebAssembly, as Node runs it: the numbers are the kernel's, to rounding."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.emit.wasm import link
from bellcrank.errors import CompileError
from bellcrank.excavators.machines import MACHINES
from targets.test_export_events import HEIGHT, ball, bounces, fallen, sampled_plant
from targets.test_export_fmu import plant

NODE = shutil.which("node")
# Fills the workspace and all arrays with NaN (a module's memory begins as zero), and resets it.
POISON = """const memory = m.code.memory.buffer;
new Float64Array(memory, m.work, Math.floor((memory.byteLength - m.work) / 8)).fill(NaN);
if (m.now) { m.counts.fill(0); m.reset(); }"""
needs_node = pytest.mark.skipif(NODE is None, reason="Node is not installed")


def said(folder: Path, script: str) -> Any:
    """Return the output of a script that finds the loaded module in `m`."""
    assert NODE is not None
    (own,) = folder.glob("*.js")
    text = f'import {{ load }} from "./{own.name}";\nconst m = await load();\n{POISON}\n{script}\n'
    (folder / "script.mjs").write_text(text)
    done = subprocess.run([NODE, "script.mjs"], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def given(values: dict[str, float]) -> str:
    return f"for (const [name, x] of Object.entries({json.dumps(values)})) m.set(name, x);"


def row(names: list[str]) -> str:
    return f"{json.dumps(names)}.map((name) => m.get(name))"


@needs_node
@pytest.mark.parametrize("integrator", ["rk4", "abm4"])
def test_a_machine_takes_the_same_steps(integrator: str, tmp_path: Path) -> None:
    s = plant()
    bc.export(s, tmp_path / "it", to="wasm", step=2e-3, integrator=integrator)
    mine, free = {"push": 1.0, "<want>": -0.4}, {"upper.mass": 3.0}
    native = bc.simulate(s, 1.0, inputs=mine, parameters=free, q0=[0.3, -0.2], step=2e-3, integrator=integrator)
    names = ["a/b.q", "elbow.q", "a/b.v", "elbow.v", "sum", "height", "a/b.a", "elbow.tau"]
    found = said(
        tmp_path / "it",
        f"""{given(mine | free | {"a/b.q": 0.3, "elbow.q": -0.2})}
        m.start();
        const rows = [{row(names)}];
        for (let k = 0; k < 500; k++) {{ if (m.step()) throw new Error("stopped"); rows.push({row(names)}); }}
        console.log(JSON.stringify(rows));""",
    )
    expected = np.column_stack([native[name] for name in names])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@needs_node
@pytest.mark.parametrize("name", [n for n in MACHINES if n.startswith("excavator")])
def test_excavators(name: str, tmp_path: Path) -> None:
    """The levers move a little; 1e-12 of the largest number, as all machines that are exported; and small."""
    s = MACHINES[name]().system
    form = "projected" if s.mechanism.loops else "minimal"
    bc.export(s, tmp_path / "it", to="wasm")
    levers = {n: s.defaults.get(n, 0.0) + 0.3 * (k < 2) for k, n in enumerate(s.inputs)}
    native = bc.simulate(s, 0.1, inputs=levers, form=form)
    joints, states = [f"{n}.q" for n in s.mechanism.columns[0]], [x.name for x in s.states]
    script = f"{given(levers)} if (m.step(100)) throw new Error('stopped'); console.log(JSON.stringify("
    found = said(tmp_path / "it", f"{script}[{row(joints)}, {row(states)}]));")
    for some, got in zip((joints, states), found, strict=True):
        expected = np.array([native[x][-1] for x in some])
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    # Fixed steps are implicit in the eight contacts of the tracks.
    limit = 300_000 if name == "excavator_tracked" else 200_000
    assert sum(p.stat().st_size for p in (tmp_path / "it").glob("*.wasm")) < limit


@needs_node
def test_events_and_samples(tmp_path: Path) -> None:
    bc.export(ball(), tmp_path / "ball", to="wasm", events=bounces(3.005), step=0.01)
    rows, status, t = said(
        tmp_path / "ball",
        f"""m.set("height.q", {HEIGHT}); m.start();
        const rows = [];
        for (let k = 0; k < 300; k++) {{ if (m.step()) throw new Error(m.t); rows.push([m.t, m.get("height.q")]); }}
        console.log(JSON.stringify([rows, m.step(), m.t]));""",
    )
    assert max(abs(q - fallen(t)) for t, q in rows) < 1e-9
    assert (status, round(t, 12)) == (4, 3.005)
    s = sampled_plant()
    bc.export(s, tmp_path / "arm", to="wasm", step=1e-3)
    names = ["hinge.q", "hinge.v", "count", "hinge.held", "target"]
    native = bc.simulate(s, 0.3, inputs={"swing": 0.7}, step=1e-3)
    got = said(tmp_path / "arm", f"""m.set("swing", 0.7); m.step(300); console.log(JSON.stringify({row(names)}));""")
    np.testing.assert_allclose(got, [native[name][-1] for name in names], rtol=0, atol=1e-12)


@needs_node
def test_functions_and_instances(tmp_path: Path) -> None:
    m = bc.zoo.planar3r()
    bc.export(m, tmp_path / "it", to="wasm", functions=["mass_matrix", "d(forward_dynamics)/d(q)"])
    q, v, tau = (x.tolist() for x in m.random(3))
    M, J = said(
        tmp_path / "it",
        f"""const M = m.call("mass_matrix", {q}).mass_matrix;
        const J = Object.values(m.call("dforward_dynamics_dq", {q}, {v}, {tau}))[0];
        console.log(JSON.stringify([[...M], [...J]]));""",
    )
    np.testing.assert_allclose(np.reshape(M, (3, 3)), m.mass_matrix(q), rtol=1e-13)
    expected = bc.kernel(m, "forward_dynamics").derivative("q")(q, v, tau)
    np.testing.assert_allclose(np.reshape(J, (3, 3)), expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
    bc.export(m, tmp_path / "arm", to="wasm")
    first, second, back = said(
        tmp_path / "arm",
        """const other = await load();
        const name = m.names[0];
        m.set(name, 0.5); m.start();
        m.step(10);
        const kept = m.save();
        m.step(10);
        const first = m.get(name);
        m.restore(kept);
        m.step(10);
        console.log(JSON.stringify([other.get(name), first, m.get(name)]));""",
    )
    assert first == 0.0
    assert second == back != 0.5


@needs_node
def test_names_are_text_and_types(tmp_path: Path) -> None:
    b = bc.Builder('evil "</script>*/ ${1}')
    b.body('a"b', mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    b.joint("x`${y}'\\", "revolute", "ground", 'a"b', axis=(0, 1, 0))
    bc.export(b.build(), tmp_path / "it", to="wasm")
    assert "x`${y}'\\.q" in said(tmp_path / "it", "console.log(JSON.stringify(m.names));")
    (types,) = (tmp_path / "it").glob("*.d.ts")
    assert json.dumps("x`${y}'\\.q") + " | " in types.read_text()
    with pytest.raises(AssertionError, match="there is no"):
        said(tmp_path / "it", 'm.get("nothing");')


def test_invalid_object_file_raises() -> None:
    with pytest.raises(CompileError, match="WebAssembly object file"):
        link(b"\x7fELF....", {}, 0)
