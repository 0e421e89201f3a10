"""Variables of an FMU: names, units, value references, and dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bellcrank.emit.c.routine import fresh
from bellcrank.emit.c.stepper import Member, Stepper
from bellcrank.graph import Graph
from bellcrank.graph.inline import inlined
from bellcrank.nodes.node import Node


@dataclass(frozen=True)
class Variable:
    """One scalar variable."""

    kind: str  # time, state, rate, input, parameter, output, indicator
    name: str
    unit: str
    start: float
    reference: int
    depends: tuple[int, ...] = ()  # references of states and inputs
    state: int = -1  # value reference of its state, for a rate
    nominal: float = 0.0  # nominal value, for a state


@dataclass(frozen=True, eq=False)
class Variables:
    """All variables of a machine."""

    stepper: Stepper

    @cached_property
    def all(self) -> list[Variable]:
        """All variables in the order of their references.

        The order is: time, states, rates, inputs, parameters, outputs, event indicators (sources/instance.h).
        """
        s = self.stepper
        states = s.state[1 : 1 + s.size]
        rates = [Member(f"der({m.name})", f"{m.unit or 1}/s") for m in states]
        groups = {
            "time": [Member("time", "s")], "state": states, "rate": rates, "input": s.inputs,
            "parameter": s.parameters, "output": s.outputs,
            "indicator": [Member(f"event({e.name})", "") for e in s.program.ports.events],
        }  # fmt: skip
        depends = {"rate": self._depends(s.slope, "dy"), "output": self._depends(s.observe, "out")}
        if groups["indicator"]:
            depends["indicator"] = self._depends(s.indicate, "g")
        taken, found = dict[str, int](), list[Variable]()
        for kind, members in groups.items():
            for k, m in enumerate(members):
                at, name = len(found), fresh(m.name, taken)
                on = depends[kind][k] if kind in depends else (at,) if kind == "state" else ()
                state = k + 1 if kind == "rate" else -1
                usual = float(s.program.ports.nominals[k]) if kind == "state" else 0.0
                found.append(Variable(kind, name, m.unit, m.value, at, on, state, usual))
        return found

    def of(self, *kinds: str) -> list[Variable]:
        """Return the variables of these `kinds`."""
        return [v for v in self.all if v.kind in kinds]

    def _depends(self, graph: Graph, of: str) -> list[tuple[int, ...]]:
        """Return, for each element of an output, the references of all states and inputs that it depends on."""
        first = {"y": 1, "u": 1 + 2 * self.stepper.size}
        flat, known = inlined(graph), dict[int, int]()
        for n in flat.nodes:  # a set of references is the bits of an integer
            if n.op == "input":
                name, k = n.args
                known[n.serial] = 1 << (first[name] + k) if name in first else 0
                continue
            bits = 0
            for a in n.operands:
                bits |= known[a.serial]
            known[n.serial] = bits
        return [ones(known[x.serial]) if isinstance(x, Node) else () for x in flat.outputs[of].flat]


def ones(bits: int) -> tuple[int, ...]:
    """Return the positions of the ones in `bits`."""
    return tuple(k for k in range(bits.bit_length()) if bits >> k & 1)


def units(variables: Sequence[Variable]) -> list[str]:
    """Return the units of `variables`, sorted."""
    return sorted({v.unit for v in variables if v.unit})
