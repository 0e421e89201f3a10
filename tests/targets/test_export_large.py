"""FMUs of large mechanisms: alike bodies are loops in their derivatives, too, and these are what differences say."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.exporting.export_content import jacobian_operations
from bellcrank.graph import Recursion, autodiff
from targets.test_c99 import needs_cc

fmpy = pytest.importorskip("fmpy", reason="FMPy is not installed")
BODIES = 100


@needs_cc
def test_chain_has_small_code_and_native_derivatives(tmp_path: Path) -> None:
    from targets.test_export_fmu import instance, set_

    m = bc.zoo.chain(BODIES)
    path = bc.export(m, tmp_path / "it.fmu", to="fmu3")
    with zipfile.ZipFile(path) as archive:
        assert max(f.file_size for f in archive.filelist if f.filename.startswith("binaries/")) < 400_000
        assert archive.getinfo(f"sources/{m.name}.c").file_size < 1_000_000
    q, v, tau = m.random(4)
    states = [f"{n}.{x}" for x, columns in zip("qv", m.columns, strict=True) for n in columns]
    with instance(path, "ModelExchange") as (made, at):
        knowns = [*(at[x] for x in states), *(at[f"{n}.effort"] for n in m.columns[1])]
        unknowns = [at[f"der({x})"] for x in states]
        set_(made, knowns, [*q, *v, *tau])
        draw = np.random.default_rng(5)
        d, w = draw.normal(size=len(knowns)), draw.normal(size=len(unknowns))
        got = np.array(made.getDirectionalDerivative(unknowns, knowns, d.tolist()))
        back = np.array(made.getAdjointDerivative(unknowns, knowns, w.tolist(), len(knowns)))
    dq, dv, dtau = d.reshape(3, BODIES)
    after, before = (m.forward_dynamics(q + h * dq, v + h * dv, tau + h * dtau) for h in (1e-6, -1e-6))
    expected = np.concatenate([dv, (after - before) / 2e-6])
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6 * np.abs(expected).max())
    assert abs(back @ d - w @ got) < 1e-11 * np.abs(w * got).sum()


def test_a_tangent_keeps_its_calls() -> None:
    m = bc.zoo.chain(BODIES)
    rate = bc.Simulator(m).program().ports.rate
    made = autodiff.tangent(rate, ["y"])
    assert any(isinstance(g, Recursion) for g in made.calls)
    assert len(made.nodes) < 20 * BODIES
    draw = np.random.default_rng(6)
    y, d = draw.normal(size=(2, 2 * BODIES))
    point = {"t": 0.0, "y": y, "u": np.zeros(rate.inputs.get("u", (0,)))}
    point = {x: point[x] for x in rate.inputs}
    written = rate.jvp(["y"]).evaluate(**point, d_y=d)["d_dy"]
    found = made.evaluate(**point, d_y=d)["d_dy"]
    np.testing.assert_allclose(found, written, rtol=0, atol=1e-11 * np.abs(written).max())


@pytest.mark.parametrize(
    ("to", "functions"), [("c", ["d(forward_dynamics)/d(q)"]), ("casadi", ["forward_dynamics"]), ("casadi", [])]
)
def test_long_compilation_warns_in_advance(to: str, functions: list[str], tmp_path: Path) -> None:
    with pytest.raises(RuntimeWarning, match=r"some \d+ minutes to compile.* take fewer bodies, or .*directional"):
        bc.export(bc.zoo.chain(BODIES), tmp_path / "it", to=to, functions=functions)
    assert not (tmp_path / "it").exists()


def test_the_forecast_is_about_right() -> None:
    for name in ("puma600", "chain:12", "tree:15"):
        g = bc.kernel(bc.zoo.load(name), "forward_dynamics").graph
        made = g.jacobian("forward_dynamics", "q").count().arithmetic
        assert 1 / 3 < jacobian_operations(g, "forward_dynamics", ["q"]) / made < 3, name
