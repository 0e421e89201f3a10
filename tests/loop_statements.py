"""Interpreter of loops (graph/loops/statements.py), one turn after the other: what every target must do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bellcrank.graph import Graph
from bellcrank.graph.loops.statements import (
    Block,
    Call,
    Element,
    Index,
    Invoke,
    Lookup,
    Loop,
    LoopProgram,
    SinCos,
    Statement,
    Variable,
)


def evaluated(graph: Graph, program: LoopProgram, once: bool = False, **given: Any) -> dict[str, Any]:
    """Run the loops of a graph in numpy; with `once`, check that nothing is written twice."""
    return _Interpreter(graph, program, once, given).outputs()


class _Interpreter:
    def __init__(self, graph: Graph, program: LoopProgram, once: bool, given: dict[str, Any]) -> None:
        self.graph, self.program, self.once = graph, program, once
        self.arrays: dict[Any, Any] = {("in", k): np.ravel(np.asarray(given[k], float)) for k in graph.inputs}
        self.arrays |= {("out", k): np.full(math.prod(shape), np.nan) for k, shape in graph.shapes.items()}
        self.arrays |= {name: np.full(size, np.nan) for name, size in program.memory.items()}
        self.arrays |= {("table", k): np.ravel(x) for k, x in program.constants.items()}
        self.values: dict[Variable, Any] = {}

    def outputs(self) -> dict[str, Any]:
        self.run(self.program.body)
        return {k: self.arrays["out", k].reshape(shape) for k, shape in self.graph.shapes.items()}

    def integer(self, index: Index) -> int:
        total = index.constant
        for factor, x in index.terms:
            value = self.program.tables[x.table].flat[self.integer(x.at)] if isinstance(x, Lookup) else self.values[x]
            total += factor * int(value)
        return total

    def read(self, x: float | Element | Variable) -> float:
        if isinstance(x, float):
            return x
        if isinstance(x, Variable):
            return float(self.values[x])
        place = self.integer(x.at)
        assert 0 <= place < len(self.arrays[x.array])
        return float(self.arrays[x.array][place])

    def write(self, x: Element | Variable, value: float) -> None:
        if isinstance(x, Variable):
            self.values[x] = value
            return
        place = self.integer(x.at)
        assert 0 <= place < len(self.arrays[x.array])
        assert not self.once or np.isnan(self.arrays[x.array][place]), "written twice"
        self.arrays[x.array][place] = value

    def slice(self, x: Element, size: int) -> Any:
        return self.arrays[x.array][self.integer(x.at) :][:size]

    def run(self, body: Sequence[Statement]) -> None:
        for s in body:
            if isinstance(s, Block):
                y = s.graph.evaluate(x=np.array([self.read(x) for x in s.reads], float))["y"]
                for k, to in s.writes:
                    self.write(to, y[k])
            elif isinstance(s, Loop):
                self.turns(s)
            elif isinstance(s, SinCos):
                angles = self.slice(s.angles, s.angle_count)
                for function, to in ((np.sin, s.sines), (np.cos, s.cosines)):
                    self.slice(to, s.angle_count)[:] = function(angles)
            elif isinstance(s, Call):
                shapes = {**s.graph.inputs, **{f"out {k}": shape for k, shape in s.graph.shapes.items()}}
                arrays = [self.slice(x, math.prod(n)) for x, n in zip(s.arrays, shapes.values(), strict=True)]
                given = zip(s.graph.inputs.items(), arrays, strict=False)
                results = s.graph.evaluate(**{k: array.reshape(shape) for (k, shape), array in given})
                for array, result in zip(arrays[len(s.graph.inputs) :], results.values(), strict=True):
                    array[:] = np.ravel(result)
            elif isinstance(s, Invoke):
                numbers = [self.integer(x) for x in s.numbers]
                self.values |= dict(zip(s.procedure.parameters, numbers, strict=True))
                self.run(s.procedure.body)
            elif (case := s.cases.get(self.integer(s.selector))) is not None:
                self.run([case])

    def turns(self, loop: Loop) -> None:
        count = self.integer(loop.count)
        assert count > 0 or (loop.may_be_empty and not count)
        carried = [self.read(c.first) for c in loop.carried]
        counters = [self.integer(c.start) for c in loop.counters]
        for turn in range(count):
            self.values |= {c.variable: first + turn * c.step for c, first in zip(loop.counters, counters, strict=True)}
            self.values |= {c.variable: x for c, x in zip(loop.carried, carried, strict=True)}
            self.run(loop.body)
            carried = [float(self.values[c.last]) for c in loop.carried]
        self.values |= {c.variable: x for c, x in zip(loop.carried, carried, strict=True)}
