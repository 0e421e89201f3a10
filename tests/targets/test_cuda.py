"""GPU code without a GPU: schedules and spilling by an interpreter, arithmetic on the CPU, PTX through ptxas."""

from __future__ import annotations

import ctypes
import math
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build import graphs
from bellcrank.emit.cpu.machine_code import Library
from bellcrank.emit.cuda import register_pressure
from bellcrank.emit.cuda.batch_kernel import BatchKernelText
from bellcrank.emit.cuda.device import unavailable_reason
from bellcrank.emit.cuda.occupancy import SHARED_BYTES, TeamPlan, best_plan, team_plan
from bellcrank.emit.cuda.ptx import Arithmetic, ptx
from bellcrank.emit.cuda.run_kernel import RunKernel
from bellcrank.emit.cuda.team import Team, TeamDivision, single_thread_team
from bellcrank.emit.cuda.thread_code import BARRIER, Unit, Units, plan_spills
from bellcrank.emit.llvm.host import compile_text
from bellcrank.emit.llvm.lanes import Writer
from bellcrank.errors import InputError
from bellcrank.graph import Graph, Node, trace
from bellcrank.nodes.ops import OPS
from bellcrank.scalar import (
    acos,
    asin,
    atan2,
    cos,
    exp,
    fabs,
    floor,
    log,
    maximum,
    minimum,
    sin,
    sqrt,
    tan,
    tanh,
    where,
)

Array = np.ndarray[Any, Any]
TREE = "tree(15, branching=3)"


def dynamics(name: str, method: str = "crba") -> Graph:
    return graphs.graph(bc.zoo.load(name), "forward_dynamics", method)


def operations(x: Any) -> dict[str, Any]:
    a, b = x
    return {
        "y": [
            a + b * a, a * b - b, b - a * b, a / b, sqrt(fabs(a)), sin(a) * cos(a), cos(b), tan(a), asin(a / 9.0),
            acos(b / 9.0), atan2(a, b), exp(a), log(fabs(b)), tanh(a), floor(a), minimum(a, b), maximum(a, b),
            where(a < b, a, -b), where(a <= 0.5, 1.0, b), 2.5, a,
        ]
    }  # fmt: skip


# -- schedules


@pytest.mark.parametrize("name", ["puma600", TREE, "chain:9"])
def test_an_order_is_complete_and_arguments_come_first(name: str) -> None:
    units = Units(dynamics(name))
    for sequence in (
        register_pressure.low_pressure_order(units),
        register_pressure.limb_order(units),
        register_pressure.refine_schedule(units.all),
    ):
        assert sorted(u.serial for u in sequence) == sorted(u.serial for u in units.all)
        done: set[int] = set()
        for unit in sequence:
            assert all(n.op == "input" or n.serial in done for n in unit.uses)
            done |= {n.serial for n in unit.defines}


def test_a_tree_needs_fewer_values_limb_by_limb() -> None:
    units = Units(dynamics(TREE))
    assert max(register_pressure.live_counts(register_pressure.low_pressure_order(units))) < 0.8 * max(
        register_pressure.live_counts(units.all)
    )


def test_live_values_by_hand() -> None:
    """Live values by hand for a = x y, b = x - y, c = a b: x, y and a are live after a; a and b after b."""
    g = trace("g", lambda x: {"z": [(x[0] * x[1]) * (x[0] - x[1])]}, {"x": (2,)})
    assert register_pressure.live_counts(Units(g).all) == [3, 2, 0]


@pytest.mark.parametrize("room", [10**6, 40, 20, 12])
def test_parked_values_come_back(room: int) -> None:
    """An interpreter with a limited number of registers and spill slots computes the result of the graph."""
    g = dynamics(TREE)
    m = bc.zoo.load(TREE)
    values = dict(zip(("q", "v", "tau"), m.random(1), strict=True))
    units = Units(g)
    parking = plan_spills(register_pressure.low_pressure_order(units), room)
    assert (parking.slots == 0) == (room == 10**6)
    assert parking.max_registers <= max(room, 3) or room == 10**6
    registers: dict[int, float] = {}
    memory: dict[int, float] = {}
    outputs: dict[int, float] = {}

    def value(x: Any) -> Any:
        if not isinstance(x, Node):
            return x
        if x.op == "input":
            return values[x.args[0]][x.args[1]]
        if x.serial in units.inlined:
            return OPS[x.op].value(*(value(a) for a in x.args))
        return registers[x.serial]

    for step in parking.steps:
        if step.unit is not None:
            for n in step.unit.defines:
                registers[n.serial] = outputs[n.serial] = OPS[n.op].value(*(value(a) for a in n.args))
        elif step.node is not None and step.action == "spill":
            memory[step.slot] = registers.pop(step.node.serial)
        elif step.node is not None and step.action == "reload":
            registers[step.node.serial] = memory[step.slot]
        elif step.node is not None:
            registers.pop(step.node.serial, None)
    got = [outputs[x.serial] for x in g.outputs["forward_dynamics"]]
    np.testing.assert_allclose(got, g.evaluate(**values)["forward_dynamics"], rtol=1e-13)


@pytest.mark.parametrize("name", ["puma600", TREE, "tree:63"])
@pytest.mark.parametrize("words", [1, 2])
def test_a_plan_stays_within_the_multiprocessor(name: str, words: int) -> None:
    units = Units(dynamics(name, "aba"))
    found = best_plan(units, words)
    assert found.fits
    assert found.registers <= 255
    assert found.registers * found.blocks * found.threads <= 65536 + found.threads * 8 * found.blocks
    assert (found.shared_rows * found.states * 4 * words + 1024) * found.blocks <= SHARED_BYTES
    one = single_thread_team(register_pressure.low_pressure_order(units), 300)
    assert TeamPlan(one, words, 128, 2).registers >= TeamPlan(one, words, 128, 8).registers
    assert found.cost <= team_plan(one, words, 128).cost


# -- teams


@pytest.mark.parametrize("members", [2, 4, 8])
@pytest.mark.parametrize(("name", "method"), [("tree:31", "aba"), (TREE, "crba"), ("chain:9", "aba")])
def test_team_computes_the_same_as_one_thread(name: str, method: str, members: int) -> None:
    """A team computes the same as one thread, in both orders of its members.

    Members run one after the other between barriers, first to last and last to first. If one read what another writes
    in the same phase, or wrote a row of the mailbox too early, the two would differ.
    """
    g, m = dynamics(name, method), bc.zoo.load(name)
    values = dict(zip(("q", "v", "tau"), m.random(2), strict=True))
    units = Units(g)
    want = g.evaluate(**values)["forward_dynamics"]
    for team in TeamDivision(units, register_pressure.low_pressure_order(units)).teams(members, 300):
        made = sorted(u.serial for stream in team.streams for u in stream if u.defines and u.defines[0].op != "input")
        assert made == sorted(u.serial for u in units.all)
        assert len(team) == members
        for backwards in (False, True):
            np.testing.assert_allclose(played(g, units, team, values, backwards), want, rtol=1e-12)


def played(g: Graph, units: Units, team: Team, values: dict[str, Array], backwards: bool) -> list[float]:
    phases: list[list[list[Unit]]] = []
    for stream in team.streams:
        phases.append([[]])
        for unit in stream:
            if unit is BARRIER:
                phases[-1].append([])
            else:
                phases[-1][-1].append(unit)
    mailbox: dict[int, float] = {}
    own: list[dict[int, float]] = [{} for _ in team.streams]

    def value(member: int, x: Any) -> Any:
        if not isinstance(x, Node):
            return x
        if x.op == "input":
            return values[x.args[0]][x.args[1]]
        if x.serial in units.inlined:
            return OPS[x.op].value(*(value(member, a) for a in x.args))
        return own[member][x.serial] if x.serial in own[member] else mailbox[team.mailbox[x.serial]]

    for at_once in zip(*phases, strict=True):
        order = list(enumerate(at_once))
        for member, phase in reversed(order) if backwards else order:
            for unit in phase:
                for n in unit.defines:
                    if n.op != "input":
                        own[member][n.serial] = OPS[n.op].value(*(value(member, a) for a in n.args))
                        if n.serial in team.mailbox:
                            mailbox[team.mailbox[n.serial]] = own[member][n.serial]
    everything = {serial: x for mine in own for serial, x in mine.items()}
    return [everything[x.serial] for x in g.outputs["forward_dynamics"]]


def test_members_have_fewer_values_each() -> None:
    units = Units(dynamics("tree:63", "aba"))
    sequence = register_pressure.low_pressure_order(units)
    (first, *_) = TeamDivision(units, sequence).teams(4, 300)
    assert max(max(register_pressure.live_counts(stream)) for stream in first.streams) < 0.5 * max(
        register_pressure.live_counts(sequence)
    )
    assert 0.0 < first.balance <= 1.0


def test_an_arm_has_one_thread_and_a_large_tree_a_team() -> None:
    assert len(BatchKernelText(dynamics("puma600"), "float64").plan.team) == 1
    assert len(BatchKernelText(dynamics("tree:63", "aba"), "float64").plan.team) > 1


# -- arithmetic on the CPU; an approximate reciprocal with few digits replaces the GPU's


def scalar_function(spelled: Callable[[Arithmetic], str], dtype: str) -> Callable[..., Array]:
    w = Writer(1, dtype)
    result = spelled(Arithmetic(w))
    lines = "".join(f"  {line}\n" for line in w.lines)
    t = w.type
    text = f"""define {t} @f({t} %a, {t} %b) {{
{lines}  ret {t} {result}
}}
define double @rcp(double %x) {{
  %r = fdiv double 1.0, %x
  %i = bitcast double %r to i64
  %cut = and i64 %i, {-(1 << 32)}
  %c = bitcast i64 %cut to double
  ret double %c
}}
define float @quotient(float %x, float %y) {{
  %q = fdiv float %x, %y
  ret float %q
}}
@writable = global i64 0"""
    text = re.sub(r"@llvm\.nvvm\.rcp\.approx\.ftz\.d\b", "@rcp", text)
    text = re.sub(r"@llvm\.nvvm\.div\.full\b", "@quotient", text)
    library = Library(compile_text(text))
    kind = ctypes.c_double if dtype == "float64" else ctypes.c_float
    call = ctypes.CFUNCTYPE(kind, kind, kind)(library.address("f"))

    def function(a: Array, b: Array) -> Array:
        _ = library
        return np.array([call(float(x), float(y)) for x, y in zip(a, b, strict=True)], dtype)

    return function


def ulps(got: Array, exact: Array) -> float:
    """Return the largest error, in units of the last place of the exact value."""
    with np.errstate(all="ignore"):
        return float(
            np.max(np.abs(got.astype(float) - exact) / np.spacing(np.abs(exact.astype(got.dtype))).astype(float))
        )


UNARY = ["tan", "asin", "acos", "exp", "log", "tanh"]
REFERENCE: dict[str, Any] = {
    "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "exp": np.exp, "log": np.log, "tanh": np.tanh
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sine_and_cosine(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-7, 7, 3000), rng.uniform(-1e4, 1e4, 3000), rng.uniform(-1e-3, 1e-3, 500)])
    x = np.concatenate([x, np.arange(-8, 9) * np.pi / 2]).astype(dtype)
    for which, exact in ((0, np.sin), (1, np.cos)):
        f = scalar_function(lambda a, which=which: a.sincos("%a")[which], dtype)
        got, want = f(x, x), exact(x.astype(np.longdouble)).astype(float)
        assert ulps(got, want) < 2.0
    f = scalar_function(lambda a: a.sincos("%a")[0], dtype)
    assert np.isnan(f(np.array([np.inf, np.nan]), np.zeros(2))).all()


def test_large_angles() -> None:
    x = np.random.default_rng(1).uniform(1e5, 1e12, 2000)
    f = scalar_function(lambda a: a.sincos("%a")[1], "float64")
    np.testing.assert_allclose(f(x, x), np.cos(x), atol=3e-16, rtol=0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_division(dtype: str) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=3000), rng.normal(size=3000) * 10.0 ** rng.integers(-20, 20, 3000)
    a, b = a.astype(dtype), b.astype(dtype)
    f = scalar_function(lambda t: t.op("div", "%a", "%b"), dtype)
    assert ulps(f(a, b), a.astype(np.longdouble).astype(float) / b) <= 1.0
    with np.errstate(all="ignore"):
        odd = np.array([0.0, -0.0, np.inf, 1e300 if dtype == "float64" else 1e30, 1.0]).astype(dtype)
        np.testing.assert_array_equal(f(np.ones(5), odd)[:3], (1.0 / odd)[:3])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", UNARY)
def test_rare_functions(name: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    inside = name in ("asin", "acos")
    x = rng.uniform(-1, 1, 2000) if inside else rng.normal(size=2000) * 10.0 ** rng.integers(-6, 2, 2000)
    x = np.abs(x) if name == "log" else x
    x = x[np.abs(x) < (80 if dtype == "float32" else 700)].astype(dtype)
    f = scalar_function(lambda a: a.op(name, "%a"), dtype)
    want = REFERENCE[name](x.astype(np.longdouble)).astype(float)
    tolerance = 4e-16 if dtype == "float64" else 2e-7
    np.testing.assert_allclose(f(x, x).astype(float), want, rtol=8 * tolerance, atol=2 * tolerance * (name == "acos"))


def test_ends_of_rare_functions() -> None:
    ends = np.array([0.0, np.inf, -np.inf, 1.0, -1.0, 5e-324, 1e308])
    with np.errstate(all="ignore"):
        for name in UNARY[2:]:
            f = scalar_function(lambda a, name=name: a.op(name, "%a"), "float64")
            np.testing.assert_allclose(f(ends, ends), REFERENCE[name](ends), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_arctangent_in_all_octants(dtype: str) -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.normal(size=2000) * 10.0 ** rng.integers(-3, 3, 2000) for _ in range(2))
    a = np.concatenate([a, [0.0, -0.0, 0.0, -0.0, 1.0, -1.0, 1.0, np.inf, np.inf]]).astype(dtype)
    b = np.concatenate([b, [1.0, 1.0, -1.0, -1.0, 0.0, 0.0, 1.0, np.inf, -np.inf]]).astype(dtype)
    f = scalar_function(lambda t: t.op("atan2", "%a", "%b"), dtype)
    np.testing.assert_allclose(f(a, b), np.arctan2(a, b), rtol=4e-15 if dtype == "float64" else 2e-6)


# -- PTX


def assembled(text: str, folder: Path) -> tuple[int, int]:
    """Return the registers of a thread and the spilled bytes, by CUDA's own assembler."""
    tool = shutil.which("ptxas")
    if tool is None:
        pytest.skip("there is no ptxas to assemble with")
    (folder / "k.ptx").write_text(text)
    command = [tool, "-v", "-arch=sm_90", str(folder / "k.ptx"), "-o", str(folder / "k.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    said = done.stderr + done.stdout
    registers, spilled = re.search(r"Used (\d+) registers", said), re.search(r"(\d+) bytes spill stores", said)
    assert registers is not None
    assert spilled is not None
    return int(registers[1]), int(spilled[1])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("tiled", [False, True])
def test_every_operation_assembles(dtype: str, tiled: bool, tmp_path: Path) -> None:
    text = BatchKernelText(trace("all", operations, {"x": (2,)}), dtype, tiled).ptx
    assert ".entry many" in text
    assembled(text, tmp_path)


@pytest.mark.parametrize(("dtype", "words"), [("float64", 2), ("float32", 1)])
def test_registers_are_predicted(dtype: str, words: int, tmp_path: Path) -> None:
    """The assembler needs about as many registers as predicted, and spills nothing."""
    made = BatchKernelText(dynamics("puma600"), dtype)
    given, spilled = assembled(made.ptx, tmp_path)
    assert spilled == 0
    assert given <= made.plan.registers + 16 * words
    assert given >= made.max_live * words * 0.8


def test_few_registers_park(tmp_path: Path) -> None:
    made = BatchKernelText(dynamics(TREE), "float64", blocks=4)
    given, spilled = assembled(made.ptx, tmp_path)
    assert made.shared > 0
    assert given <= 128
    assert spilled < 200


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_team_assembles(dtype: str, tmp_path: Path) -> None:
    """Values of a team that exceed shared memory are in local memory; the assembler spills nothing more."""
    made = BatchKernelText(dynamics("tree:63", "aba"), dtype)
    given, spilled = assembled(made.ptx, tmp_path)
    assert len(made.plan.team) > 1
    assert given <= made.plan.register_limit
    assert spilled < 64
    assert ("st.local" in made.ptx) == (made.plan.local_values > 0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_simulation_assembles(dtype: str, tmp_path: Path) -> None:
    simulator = bc.Simulator(bc.zoo.puma600())
    made = RunKernel(simulator.program(checks=False), dtype)
    text = made.ptx
    assert ".entry run" in text
    # the divisions of the rate exist once, not once per stage
    assert text.count("rcp.approx") + text.count("div.full") <= 8
    _, spilled = assembled(text, tmp_path)
    assert spilled < 600


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_summary_assembles(dtype: str, tmp_path: Path) -> None:
    """Summaries assemble: extremes and integrals need a few more registers, and rows without a request need none."""
    simulator = bc.Simulator(bc.zoo.puma600(), summary=["max(*.v)", "rms(joint2.a)", "t_max(energy)"])
    made = RunKernel(simulator.program(rows=False, checks=False), dtype)
    _, spilled = assembled(made.ptx, tmp_path)
    assert spilled < 600


def test_bad_text_is_our_bug() -> None:
    with pytest.raises(bc.CompileError, match="bug in bellcrank"):
        ptx("define void @f() { ret double }")


# -- without a GPU


@pytest.mark.skipif(not unavailable_reason(), reason="there is a GPU")
def test_without_a_gpu_one_line_and_the_cpu() -> None:
    m = bc.zoo.puma600()
    with pytest.warns(
        RuntimeWarning, match=r'target="cuda" needs .* The CPU computes forward_dynamics instead'
    ) as said:
        k = bc.kernel(m, "forward_dynamics", target="cuda")
    assert len(said) == 1
    q, v, tau = m.random(0)
    np.testing.assert_array_equal(k(q, v, tau), m.forward_dynamics(q, v, tau))
    with pytest.warns(RuntimeWarning, match="The CPU runs it instead"):
        run = bc.simulate(m, 0.01, target="cuda", batch=3)
    assert run.q.shape == (3, 11, 6)


def test_incompatible_options_raise() -> None:
    m = bc.zoo.puma600()
    with pytest.raises(InputError, match="threads= and machine= apply to the CPU only"):
        bc.kernel(m, "forward_dynamics", target="cuda", threads=2)
    with pytest.raises(InputError, match="no target"):
        bc.simulate(m, 0.01, target="gpu")
    with pytest.raises(InputError, match="no keep"):
        bc.simulate(m, 0.01, keep="some")
    with pytest.raises(InputError, match="float32"):
        bc.simulate(m, 0.01, dtype="float32")
    with pytest.raises(InputError, match="batch is 0"):
        bc.simulate(m, 0.01, batch=0)


def test_the_final_row_alone() -> None:
    m = bc.zoo.puma600()
    all_rows = bc.simulate(m, 0.05, step=0.01)
    last = bc.simulate(m, 0.05, step=0.01, keep="final")
    np.testing.assert_array_equal(last.q, all_rows.q[-1:])
    assert last.t[-1] == pytest.approx(0.05)
    assert math.isclose(float(last.t[0]), 0.05)


def test_the_command_line_prints_ptx() -> None:
    from typer.testing import CliRunner

    from bellcrank.cli import app

    done = CliRunner().invoke(app, ["emit", "puma600", "--target", "cuda", "--dtype", "float32"])
    assert done.exit_code == 0
    assert ".entry many" in done.stdout
