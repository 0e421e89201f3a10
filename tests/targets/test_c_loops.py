"""Loops over identical bodies in C: the results of the recursion and of the strips, in code of constant size."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bellcrank import zoo
from bellcrank.build import graphs
from bellcrank.emit.c import c99
from bellcrank.exporting.export_content import effort_driven, named_graph
from bellcrank.graph import Recursion, loop_levels, trace
from bellcrank.graph.loops.recursions import MAX_DIRECT_CALLS
from bellcrank.scalar import cos, sin
from laws.test_elimination import solving
from laws.test_loop_rolling import N, stepped
from laws.test_rolled_classes import MECHANISMS, METHODS, arguments, close, made
from laws.test_rolled_quantities import both
from targets.test_c99 import CC, agree, compiled, macro, needs_cc, run, write
from targets.test_export_c import agree as same_steps

pytestmark = needs_cc


@pytest.mark.parametrize("name", ["alternate", "one body", "mixed", "bush", "floating", "random"])
def test_recursions_agree(name: str, tmp_path: Path) -> None:
    mechanism = MECHANISMS[name]()
    for method, quantity in METHODS[:2]:
        r, given = made(mechanism, method, quantity), arguments(mechanism, quantity)
        found = compiled(r, tmp_path / quantity)(**given)
        close(found[quantity], r.evaluate(**given)[quantity], 1e-12)


@pytest.mark.parametrize(("quantity", "method"), [("poses", "frame_motion"), ("momentum", "kinematics")])
def test_quantities_of_every_body_agree(quantity: str, method: str, tmp_path: Path) -> None:
    """Quantities of every body, and a sum over all of them, agree."""
    mechanism = zoo.tree(15)
    loops, straight = both(mechanism, quantity, method)
    given = arguments(mechanism, quantity)
    close(compiled(loops, tmp_path)(**given)[quantity], straight.evaluate(**given)[quantity], 1e-12)


def test_functions_of_a_long_chain_are_short() -> None:
    """Functions of a long chain are short, also with called loops: a sum over bodies, and a matrix of all of them.

    Their derivatives are not rolled.
    """
    chain = zoo.chain(300)
    for name in ("momentum", "momentum_matrix", "poses"):
        _, graph = named_graph(chain, name)
        assert sum(map(len, c99.source(graph).values())) < 150_000
    assert not named_graph(zoo.chain(60), "d(poses)/d(q)")[1].calls


def test_single_precision(tmp_path: Path) -> None:
    mechanism = zoo.chain(12, twist="general")
    r = made(mechanism, "rnea", "inverse_dynamics")
    given = arguments(mechanism, "inverse_dynamics")
    found = compiled(r, tmp_path, "float32")(**given)
    close(found["inverse_dynamics"], r.evaluate(**given)["inverse_dynamics"], 1e-4)


def test_many_runs_are_gone_through_by_a_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    mechanism = zoo.chain(200, joints=list(rng.choice(["revolute", "prismatic"], 200)))
    r = made(mechanism, "aba", "forward_dynamics")
    assert len(r.tree.runs) > MAX_DIRECT_CALLS
    given = arguments(mechanism, "forward_dynamics")
    close(compiled(r, tmp_path)(**given)["forward_dynamics"], r.evaluate(**given)["forward_dynamics"])


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Roll every graph into strips."""
    for name, value in (("MIN_GRAPH_NODES", 1), ("MIN_LOOP_ELEMENTS", 1), ("MIN_ROLLED_FRACTION", 0.0)):
        monkeypatch.setattr(loop_levels, name, value)


def test_strips_agree(eager: None, tmp_path: Path) -> None:
    graph = trace("step", stepped, {"x": (N,), "h": ()})
    rng = np.random.default_rng(1)
    assert "for (int" in c99.source(graph)["step.c"]
    for k, dtype in enumerate(("float64", "float32")):
        agree(graph, tmp_path / dtype, {"x": rng.normal(size=N) * 3**k, "h": np.array(0.01)}, dtype)


def test_strips_with_angles_and_clashing_names(eager: None, tmp_path: Path) -> None:
    def turned(i: Any, w: Any) -> dict[str, Any]:
        return {"c_1": [sin(a) * cos(b) + 0.5 * k for k, (a, b) in enumerate(zip(i, w, strict=True))]}

    rng = np.random.default_rng(2)
    graph = trace("turned", turned, {"i": (21,), "w": (21,)})
    agree(graph, tmp_path, {"i": rng.normal(size=21), "w": rng.normal(size=21)})


def test_long_chain_has_short_code_and_equals_the_native_run(tmp_path: Path) -> None:
    """A long chain gives short C code, as long as that of a third of the chain except for tables.

    Its steps are those of bc.simulate.
    """
    sizes = {}
    for n in (100, 300):
        graph = graphs.graph(zoo.chain(n), "forward_dynamics", method="aba")
        text = next(t for name, t in c99.source(graph).items() if name.endswith(".c"))
        sizes[n] = len([line for line in text.splitlines() if not line.startswith("static const")])
    assert isinstance(graph, Recursion)
    assert sizes[300] == sizes[100] < 1500
    s = effort_driven(zoo.chain(100))
    same_steps(s, tmp_path, 0.05, dict.fromkeys(s.inputs, 0.1), step=1e-3, integrator="rk4")
    assert len((tmp_path / "chain100.c").read_text()) < 150_000
    assert "loops of fixed length" in (tmp_path / "chain100.h").read_text()


def test_implicit_steps_of_a_long_chain_are_those_here(tmp_path: Path) -> None:
    """Implicit steps of a long chain agree: slopes, elimination and substitution are loops, too.

    The stack has room for the matrix.
    """
    s = effort_driven(zoo.chain(70))
    same_steps(s, tmp_path, 3e-3, dict.fromkeys(s.inputs, 0.1), step=1e-3, integrator="rodas4")
    assert len((tmp_path / "chain70.c").read_text()) < 300_000
    told = re.findall(r"STACK_BYTES (\d+)", (tmp_path / "chain70.h").read_text())
    assert max(map(int, told)) > 8 * 70 * 70


def test_stack_stays_below_the_bound_in_the_header(eager: None, tmp_path: Path) -> None:
    assert CC is not None
    if "gcc" not in Path(CC).name:
        pytest.skip("only gcc writes down the stack of each function")
    step = trace("step", stepped, {"x": (N,), "h": ()})
    chain = made(zoo.chain(40, twist="general"), "aba", "forward_dynamics")
    for graph, deep in ((chain, 1), (step, 2), (solving(40), 3)):
        name = write(tmp_path, c99.source(graph))
        run(tmp_path, CC, "-std=c99", "-O0", "-fstack-usage", "-c", f"{name}.c")
        rows = [line.split("\t") for line in (tmp_path / f"{name}.su").read_text().splitlines()]
        frames = {row[0].rpartition(":")[2]: int(row[1]) for row in rows}
        own = frames.pop(name)
        bound = int(macro(c99.source(graph)[f"{name}.h"], "STACK_BYTES"))
        assert own + sum(sorted(frames.values())[-deep:]) + 16 <= bound < 2 * own + 8192
