"""Code that leaves an element of an output unwritten is rejected by every emitter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build import graphs
from bellcrank.emit.c import c99
from bellcrank.emit.cpu import kernel_module, module_functions, recursion_module
from bellcrank.emit.cuda.batch_kernel import BatchKernelText
from bellcrank.emit.llvm.scheduling import Item, _StoreItems
from bellcrank.errors import CompileError
from bellcrank.graph import loop_levels, loop_rolling, trace
from bellcrank.graph.cells import LoopBody
from bellcrank.graph.graph import Coverage
from bellcrank.scalar import sin
from bellcrank.sim.system import external_forces
from laws.test_loop_rolling import N, stepped

SHAPES = {"a": (2, 3), "b": ()}


def test_missing_elements_are_named() -> None:
    coverage = Coverage("f", SHAPES)
    coverage.note("a", range(0, 4))
    coverage.note("a", [5])
    with pytest.raises(CompileError, match=r'f: the generated code does not store 1 of 6 elements of "a" \(4\)'):
        coverage.check()
    coverage.note("a", np.array([4]))
    with pytest.raises(CompileError, match='1 of 1 elements of "b"'):
        coverage.check()
    coverage.note("b", range(0, 1))
    coverage.check()


@pytest.mark.parametrize(("output", "elements"), [("a", range(4, 7)), ("a", [6]), ("a", np.array([-1])), ("c", [0])])
def test_nothing_is_stored_outside(output: str, elements: Any) -> None:
    with pytest.raises(CompileError, match=r"stores outside of"):
        Coverage("f", SHAPES).note(output, elements)


def small() -> Any:
    return trace("small", lambda x: {"y": [sin(x[0]) * x[1], x[0], 2.0], "z": x[1] * x[1]}, {"x": (2,)})


def large() -> Any:
    return graphs.graph(bc.zoo.chain(65), "forward_dynamics", method="aba")


def test_straight_line_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scalar code, vector code and GPU threads are checked."""
    kernel_module.source(small(), 8), BatchKernelText(small()).text  # the complete graph is accepted
    results = BatchKernelText._results
    with monkeypatch.context() as patch:
        patch.setattr(_StoreItems, "ready", lambda self, nodes: list[Item]())
        with pytest.raises(CompileError, match='elements of "y"'):
            kernel_module.source(small(), 8)
    calls = []

    def fewer(self: BatchKernelText) -> Any:
        """Return all results, of which one is not stored."""
        calls.append(0)
        return list(results(self))[: -1 if len(calls) == 1 else None]

    monkeypatch.setattr(BatchKernelText, "_results", fewer)
    with pytest.raises(CompileError, match='elements of "results"'):
        BatchKernelText(small()).text  # noqa: B018


def test_incomplete_loops_over_identical_bodies_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops over identical bodies that omit an element are rejected in every language."""
    recursion_module.source(large(), 8, "float64")
    whole = LoopBody.__init__

    def fewer(self: LoopBody, graph: Any, reads: Any, writes: Any) -> None:
        whole(self, graph, reads, tuple(x for x in writes if x.kind != "output"))

    monkeypatch.setattr(LoopBody, "__init__", fewer)
    for source in (lambda r: recursion_module.source(r, 8, "float64"), c99.source):
        with pytest.raises(CompileError, match='65 of 65 elements of "forward_dynamics"'):
            source(large())


def test_incomplete_loops_over_identical_elements_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = trace("step", stepped, {"x": (N,), "h": ()})
    for name, value in (("MIN_GRAPH_NODES", 1), ("MIN_LOOP_ELEMENTS", 1), ("MIN_ROLLED_FRACTION", 0.0)):
        monkeypatch.setattr(loop_levels, name, value)
    loop_rolling.roll(graph)
    monkeypatch.setattr(loop_rolling._LoopBuilder, "statements", _shorter(loop_rolling._LoopBuilder.statements))
    with pytest.raises(CompileError, match="the generated code does not store"):
        loop_rolling.roll(graph)


def _shorter(statements: Callable[..., Any]) -> Callable[..., Any]:
    def made(self: Any) -> Any:
        loop, *stores = statements(self)
        block, *further = loop.body
        return replace(loop, body=(replace(block, writes=block.writes[:-1]), *further)), *stores

    return made


def test_rows_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every output of a batch is transposed back to rows; once only the last of several was."""
    outputs = module_functions.output_sizes

    def one_more(graph: Any) -> dict[str, int]:
        return outputs(graph) | {"out_other": 3}

    monkeypatch.setattr(module_functions, "output_sizes", one_more)
    with pytest.raises(CompileError, match='3 of 3 elements of "out_other"'):
        recursion_module._block_function(large(), recursion_module._loop_code(large(), 8, 8, "float64", "lanes"))


def test_values_without_a_slot_are_not_read() -> None:
    """Frames on the ground have no slot in a recursion: it may be called, but is no kernel by itself."""
    m = bc.zoo.chain(3)
    frames = external_forces.outward_graph(m, ["link2", "ground"])
    assert not frames.stored.all()
    with pytest.raises(CompileError, match='18 of 36 elements of "frames"'):
        recursion_module.source(frames, 8, "float64")

    def read(element: int) -> Any:
        def body(q: Any, v: Any) -> dict[str, Any]:
            return {"y": [frames.call(q=q, v=v)["frames"][element]]}

        return trace("reading", body, {"q": (3,), "v": (3,)})

    stored, left_out = np.flatnonzero(frames.stored)[0], np.flatnonzero(~frames.stored)[0]
    recursion_module.source(read(stored), 8, "float64")
    with pytest.raises(CompileError, match=f"reading: it reads element {left_out} of chain3.frames"):
        recursion_module.source(read(left_out), 8, "float64")
