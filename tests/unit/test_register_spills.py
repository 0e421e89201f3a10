"""Spilling in straight-line code: live values never exceed the registers, and none is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.emit.cpu import kernel_module
from bellcrank.emit.llvm.llvm_printer import LLVMPrinter
from bellcrank.emit.llvm.register_allocation import TEMPORARY_REGISTERS, spills
from bellcrank.emit.llvm.scheduling import items, order
from bellcrank.graph import Graph, trace


def crossed(n: int) -> Graph:
    """Return all products of two vectors after sums that need all of both: 2 n values are live until the end."""

    def body(x: Any, y: Any) -> dict[str, Any]:
        a, b = [p * p + 1.0 for p in x], [p * p - 1.0 for p in y]
        total = sum(a) * sum(b)
        return {"z": [[p * q + total for q in b] for p in a]}

    return trace("crossed", body, {"x": (n,), "y": (n,)})


@pytest.mark.parametrize("registers", [6, 16, 32])
def test_live_values_never_exceed_registers(registers: int) -> None:
    graph = crossed(12)
    sequence = items(graph, order(graph))
    printer = LLVMPrinter(graph, 1, 1, "float64", [sequence])
    leave = spills(sequence, printer.reads, printer.inline, registers)
    last = {n.serial: t for t, item in enumerate(sequence) for n in printer.reads(item)}
    here: set[int] = set()
    parked: set[int] = set()
    loads = 0
    for t, (item, gone) in enumerate(zip(sequence, leave, strict=True)):
        if item.kind == "op" and printer.inline(item.defines[0]):
            assert not gone
            continue
        needed = {n.serial for n in printer.reads(item) if not printer.inline(n)}
        assert needed <= here | parked | {n.serial for n in item.defines}
        loads += len(needed - here)
        here |= needed | {n.serial for n in item.defines}
        parked |= {n.serial for n in gone}
        here = {s for s in here - {n.serial for n in gone} if last.get(s, -1) > t}
        assert len(here) <= registers - TEMPORARY_REGISTERS
    assert loads >= (100 if registers < 16 else 1)


def test_results_do_not_depend_on_the_register_count(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, rng = crossed(7), np.random.default_rng(0)
    x, y = rng.normal(size=(2, 9, 7))
    exact = graph.evaluate(x=x, y=y)["z"]
    for registers in (0, 5, 16):
        monkeypatch.setattr(kernel_module, "_allocated_registers", lambda graph, n=registers: n)
        f = bc.compile(graph)
        np.testing.assert_allclose(f(x, y), exact, rtol=1e-12)
        np.testing.assert_array_equal([f(a, b) for a, b in zip(x, y, strict=True)], f(x, y))
