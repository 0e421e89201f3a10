"""Variables of an FMU: names, units, value references, and dependencies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from bellcrank.emit.c.exported_program import ExportedProgram, Member
from bellcrank.emit.c.routine import unique_name
from bellcrank.graph import Graph
from bellcrank.graph.inline import inline
from bellcrank.nodes.node import Node


@dataclass(frozen=True)
class FmiVariable:
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
class FmiVariables:
    """All variables of a machine."""

    stepper: ExportedProgram

    @cached_property
    def all(self) -> list[FmiVariable]:
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
        depends = {"rate": self._dependencies(s.slope, "dy"), "output": self._dependencies(s.observe, "out")}
        if groups["indicator"]:
            depends["indicator"] = self._dependencies(s.indicate, "g")
        used_names, variables = dict[str, int](), list[FmiVariable]()
        for kind, members in groups.items():
            for k, m in enumerate(members):
                reference, name = len(variables), unique_name(m.name, used_names)
                dependencies = depends[kind][k] if kind in depends else (reference,) if kind == "state" else ()
                state = k + 1 if kind == "rate" else -1
                nominal = float(s.program.ports.nominals[k]) if kind == "state" else 0.0
                variables.append(FmiVariable(kind, name, m.unit, m.value, reference, dependencies, state, nominal))
        return variables

    def of_kinds(self, *kinds: str) -> list[FmiVariable]:
        """Return the variables of these `kinds`."""
        return [v for v in self.all if v.kind in kinds]

    def _dependencies(self, graph: Graph, output: str) -> list[tuple[int, ...]]:
        """Return, for each element of an output, the references of all states and inputs that it depends on."""
        first = {"y": 1, "u": 1 + 2 * self.stepper.size}
        flat, reference_bits = inline(graph), dict[int, int]()
        for n in flat.nodes:  # a set of references is the bits of an integer
            if n.op == "input":
                name, k = n.args
                reference_bits[n.serial] = 1 << (first[name] + k) if name in first else 0
                continue
            bits = 0
            for a in n.operands:
                bits |= reference_bits[a.serial]
            reference_bits[n.serial] = bits
        return [
            bit_positions(reference_bits[x.serial]) if isinstance(x, Node) else () for x in flat.outputs[output].flat
        ]


def bit_positions(bits: int) -> tuple[int, ...]:
    """Return the positions of the ones in `bits`."""
    return tuple(k for k in range(bits.bit_length()) if bits >> k & 1)
