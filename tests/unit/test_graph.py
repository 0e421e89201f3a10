"""A graph as an object: evaluate, count, span, print, and the labels of its nodes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bellcrank.build import graphs
from bellcrank.dynamics import METHODS, QUANTITIES
from bellcrank.errors import InputError, TraceError
from bellcrank.graph import Graph, Node, trace
from bellcrank.scalar import cos, sin, step, where
from loops import closed
from trees import ALL, random_tree


def little() -> Graph:
    def body(x: Any, t: Any) -> dict[str, Any]:
        step("s", "one")
        s = sin(x[0]) * t
        step("c", "two")
        c = cos(x[1]) - s
        return {"y": [s, c, 3.0], "z": s / c}

    return trace("little", body, {"x": (2,), "t": ()})


@pytest.mark.parametrize("batch", [(), (1,), (7,), (2, 3), (0,), (2, 0, 3)])
def test_evaluate_takes_any_batch_shape(batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, t = rng.uniform(-1, 1, (*batch, 2)), rng.uniform(-1, 1, batch)
    got = little().evaluate(x=x, t=t)
    s = np.sin(x[..., 0]) * t
    c = np.cos(x[..., 1]) - s
    np.testing.assert_allclose(got["y"], np.stack([s, c, np.full(batch, 3.0)], axis=-1), rtol=1e-15)
    np.testing.assert_allclose(got["z"], s / c, rtol=1e-14)
    assert got["y"].shape == (*batch, 3)
    assert got["z"].shape == batch


def test_evaluate_broadcasts_and_keeps_float32() -> None:
    x, t = np.zeros((4, 1, 2), np.float32), np.ones(3, np.float32)
    got = little().evaluate(x=x, t=t)
    assert got["y"].shape == (4, 3, 3)
    assert got["y"].dtype == np.float32
    assert little().evaluate(x=[1, 2], t=3)["y"].dtype == np.float64


def test_evaluate_explains_bad_input() -> None:
    g = little()
    with pytest.raises(InputError, match=r'"t" is missing'):
        g.evaluate(x=[1, 2])
    with pytest.raises(InputError, match=r'"speed".*Known: x, t'):
        g.evaluate(x=[1, 2], t=1.0, speed=3)
    with pytest.raises(InputError, match=r"shape \(3,\)"):
        g.evaluate(x=[1, 2, 3], t=1.0)
    with pytest.raises(InputError, match="shape"):
        g.evaluate(x=1.0, t=1.0)


def test_only_live_nodes_are_in_a_graph() -> None:
    g = trace("dead", lambda x: {"y": x[0] + 1.0, "_": [sin(x[1])][:0]}, {"x": (2,)})
    assert [n.op for n in g.nodes] == ["input", "add"]


def test_arguments_stand_before_users() -> None:
    g = graphs.graph(random_tree(3, ["revolute", "spherical", "helical"]), "forward_dynamics")
    at = {n.serial: i for i, n in enumerate(g.nodes)}
    assert all(at[a.serial] < at[n.serial] for n in g.nodes for a in n.operands)


def test_count() -> None:
    c = little().count()
    assert {k: n for k, n in c.by_kind.items() if n} == {"mul": 1, "sub": 1, "div": 1, "trig": 2}
    assert c.arithmetic == 3
    assert c["trig"] == 2
    assert str(c).split() == ["mul", "add", "sub", "div", "trig", "1", "0", "1", "1", "2"]


def test_span_and_critical_path() -> None:
    g = little()
    # sin (8), times t (1), subtracted (1), divided (4)
    assert g.span() == 14
    assert [n.op for n in g.critical_path()] == ["input", "sin", "mul", "sub", "div"]
    assert g.span({"sin": 0, "cos": 100}) == 105
    assert [n.op for n in g.critical_path({"sin": 0, "cos": 100})] == ["input", "cos", "sub", "div"]
    assert g.span(dict.fromkeys(["sin", "cos", "mul", "sub", "div"], 1)) == 4
    assert trace("constant", lambda x: {"y": 1.0}, {"x": ()}).span() == 0


def test_span_of_a_method_is_bounded_by_its_work() -> None:
    g = graphs.graph(random_tree(3, ["revolute"] * 4), "inverse_dynamics")
    path = g.critical_path()
    assert path[0].op == "input"
    assert all(a in b.operands for a, b in pairwise(path))
    assert len(path) <= g.span() <= sum(n for n in g.count().by_kind.values()) * 20


def test_prints_as_assignments() -> None:
    text = str(little())
    assert text.splitlines()[0] == "little(x[2], t)"
    assert "v3 = sin(x[0])" in text
    assert text.count(" = ") == 5 + 4  # operations and output elements
    assert "# s[one]" in text
    assert "y[2] = 3.0" in text


def test_dot_names_every_edge() -> None:
    g = little()
    text = g.dot()
    assert text.startswith('digraph "little" {')
    assert text.rstrip().endswith("}")
    edges = sum(len(n.operands) for n in g.nodes)
    outputs = sum(isinstance(x, Node) for array in g.outputs.values() for x in array.flat)
    assert text.count(" -> ") == edges + outputs
    assert 'tooltip="s[one]"' in text


def test_json_is_enough_to_rebuild_the_values() -> None:
    g = little()
    data = json.loads(g.json())
    values: dict[int, float] = {}
    given = {"x": [0.3, 0.7], "t": [2.0]}
    by_name = {"sin": np.sin, "cos": np.cos, "mul": np.multiply, "sub": np.subtract, "div": np.divide}
    for node in data["nodes"]:
        if node["op"] == "input":
            name, flat = node["args"]
            values[node["id"]] = given[name][flat]
        else:
            values[node["id"]] = by_name[node["op"]](
                *(values[a["id"]] if isinstance(a, dict) else a for a in node["args"])
            )
    y = [values[v["id"]] if isinstance(v, dict) else v for v in data["outputs"]["y"]["values"]]
    np.testing.assert_allclose(y, g.evaluate(x=[0.3, 0.7], t=2.0)["y"], rtol=1e-15)
    assert data["inputs"] == {"x": [2], "t": []}


def test_selection_needs_no_branch() -> None:
    g = trace("relu", lambda x: {"y": where(x > 0.0, x, 0.1 * x)}, {"x": ()})
    np.testing.assert_allclose(g.evaluate(x=[-1.0, 2.0])["y"], [-0.1, 2.0])


PRINT_EVERYTHING = """
import hashlib
from trees import random_tree
from bellcrank.build import graphs
from bellcrank.emit.cpu.target import Cpu
kinds = ["floating", "revolute", "universal", "planar", "cylindrical", "revolute"]
m = random_tree(5, kinds, [0, 0, 1, 1, 2, 0], passive=True, armature=True)
for name in ("forward_dynamics", "mass_matrix", "momentum"):
    g = graphs.graph(m, name)
    for text in (str(g), g.json(), g.dot(), str(g.jacobian(name, "q")) if name == "momentum" else "", Cpu().source(g)):
        print(name, hashlib.sha256(text.encode()).hexdigest())
"""


def test_text_is_equal_in_every_process() -> None:
    """Two processes with different hash seeds print the same graph.

    The text depends on no id() and no order of a set.
    """
    here = Path(__file__).resolve().parent.parent
    path = os.pathsep.join([str(here), *sys.path])

    def run(seed: str) -> str:
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path}
        done = subprocess.run(
            [sys.executable, "-c", PRINT_EVERYTHING], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    first = run("1")
    assert len(first.splitlines()) == 15
    assert first == run("2")


def test_tracing_twice_gives_the_same_text() -> None:
    """Tracing twice gives the same text: the first trace leaves no state behind."""
    m = random_tree(1, ["revolute", "prismatic"])
    for name in ("bias", "mass_matrix", "rate"):
        first = graphs.graph(m, name)
        assert graphs.graph(m, name).json() == first.json()


EVERY = random_tree(2, [*ALL, "revolute"], [0, 1, 2, 1, 2, 3, 4, 5, 0], armature=True, passive=True)


LOOPED, _ = closed(EVERY, 1, ["revolute", "distance", "gear", "planar"])
SOLVED = [(q, m.name) for q in QUANTITIES for m in METHODS.values() if q in m.solves]


@pytest.mark.parametrize(("quantity", "method"), SOLVED)
def test_every_node_of_a_method_has_a_label(quantity: str, method: str) -> None:
    option = {"frame": {"frame": "f3"}, "frames": {"wrenches": ("f3",)}, "": {}}[QUANTITIES[quantity].option]
    m = LOOPED if method == "closure" else EVERY
    g = graphs.graph(m, quantity, method, **option)
    unnamed = [n for n in g.nodes if n.op != "input" and not n.label]
    assert not unnamed
    names = {n.label.partition("[")[2].rstrip("]") for n in g.nodes if "[" in n.label}
    assert names <= {b.name for b in m.bodies} | set(m.frames) | {"ground"} | {loop.name for loop in m.loops}


def test_labels_speak_of_bodies_and_of_the_letters_of_the_papers() -> None:
    m = random_tree(2, ["revolute"] * 3)
    labels = {n.label for n in graphs.graph(m, "forward_dynamics", "aba").nodes}
    assert {"IA[b1]", "pA[b0]", "u[b2]", "a[b2]"} <= labels
    labels = {n.label for n in graphs.graph(m, "forward_dynamics", "crba").nodes}
    assert {"Ic[b0]", "F[b1]", "L[b2]", "a[b0]"} <= labels


def test_non_numbers_are_not_evaluated() -> None:
    g = trace("g", lambda x: {"y": [x[0] * 2.0 + x[1]]}, {"x": (2,)})
    for wrong in ([1.0, None], [1j, 2.0], ["a", "b"], [object(), 1.0], {"x": 1.0}):
        with pytest.raises(InputError, match=r'g: input "x" is .*expected real numbers'):
            g.evaluate(x=wrong)
    assert g.evaluate(x=np.array([1, 2], dtype=object))["y"] == [4.0]
    assert g.evaluate(x=[True, False])["y"] == [2.0]


def test_symbols_of_another_trace_are_no_results() -> None:
    kept: list[Any] = []
    g = trace("g", lambda x: {"y": [kept.append(x) or x[0]]}, {"x": (2,)})
    with pytest.raises(TraceError, match=r'h: output "y": scalars of two traces'):
        trace("h", lambda x: {"y": [x[0], kept[0][1]]}, {"x": (2,)})
    with pytest.raises(TraceError, match="cannot become a float"):
        g.evaluate(x=kept[0])


def test_a_graph_is_called_by_its_name() -> None:
    """An error message names a graph instead of printing its thousand nodes."""
    g = graphs.graph(EVERY, "forward_dynamics")
    assert repr(g).startswith("<Graph tree2.forward_dynamics(q[")
    assert len(repr(g)) < 200
    with pytest.raises(InputError, match="expected a Mechanism, got <Graph") as caught:
        graphs.graph(g, "bias")  # type: ignore[arg-type]
    assert len(str(caught.value)) < 300
