"""A graph as a piece of a kernel that is jumped to and jumps back: code that is called often exists once.

A GPU's cache holds a few thousand instructions, and a call through memory would cost more than what is called. So all
graphs are blocks of one function. A caller leaves its arguments in variables, says which call it is, and jumps; the
procedure leaves its results and jumps back by that number. LLVM turns the variables into registers (mem2reg), so a
state stays in registers from step to step. Values that a caller needs after a call are such variables, too.

What a call hands over unchanged from memory (parameters of the model, say) is read there by whoever needs it.

Values that wait across a call have registers, or slots in shared memory, or the thread's own (local) memory. The last
is slow and costs nobody else anything: it is for what is rare, because a variable in a register is taken, to LLVM,
wherever the procedure that it waits for runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from bellcrank.emit.cpu.lanes import Writer
from bellcrank.emit.cuda.body import Body
from bellcrank.emit.cuda.few import live, order
from bellcrank.emit.cuda.park import Parking, Step, parked
from bellcrank.emit.cuda.units import Unit, Units
from bellcrank.graph import Graph, Node

Place = tuple[str, int]  # an element of an input


def results(graph: Graph) -> list[Node | float]:
    return [x for array in graph.outputs.values() for x in array.flat]


@dataclass(eq=False)
class Procedure:
    """One graph. `memory`: which of its inputs are read from memory, and what they are called there."""

    graph: Graph
    name: str
    memory: Mapping[Place, Place]
    room: int = 10**6
    first_slot: int = 0
    in_registers: int = 10**6  # variables; the next are in shared memory, those beyond in local memory
    in_shared: int = 10**6
    early: Mapping[int, int] = field(default_factory=dict)  # outputs to write as soon as they are known, by serial
    calls: dict[int, Procedure] = field(default_factory=dict)  # by id of the graph
    returns: list[str] = field(default_factory=list)  # labels that its callers go on from

    @cached_property
    def units(self) -> Units:
        return Units(self.graph)

    @cached_property
    def sequence(self) -> list[Unit]:
        return order(self.units)

    @cached_property
    def parking(self) -> Parking:
        if any(u.defines[0].op == "call" for u in self.sequence):  # what waits across a call is a variable
            return Parking([Step("compute", unit) for unit in self.sequence], 0, max(live(self.sequence), default=0))
        return parked(self.sequence, self.room)

    @cached_property
    def alive(self) -> int:
        """The most values that are alive at once here, parked or not."""
        return max(live(self.sequence), default=0)

    @cached_property
    def across(self) -> int:
        """The most values that wait here while another procedure runs."""
        counts = zip(live(self.sequence), self.sequence, strict=True)
        return max((alive for alive, unit in counts if unit.defines[0].op == "call"), default=0)

    @property
    def variables_kept(self) -> int:
        """Variables for values that are needed after a call."""
        return len(set(self._crossing.values()))

    @property
    def slots(self) -> int:
        """In shared memory: parked values, and variables for which no register is left."""
        return self.parking.slots + min(self.in_shared, max(0, self.variables_kept - self.in_registers))

    # -- text

    def variables(self, w: Writer) -> list[str]:
        """Declarations, for the head of the function."""
        kept = [f"%{self.name}.x{k} = alloca {w.type}" for k in range(self.variables_kept)]
        ins = [f"%{self.name}.a{i} = alloca {w.type}" for i in range(len(self.graph.elements))]
        outs = [f"%{self.name}.r{i} = alloca {w.type}" for i in range(len(results(self.graph)))]
        return [*kept, *ins, *outs, f"%{self.name}.back = alloca i32"]

    def forgotten(self, w: Writer) -> None:
        """Says that nothing in its variables is needed any more: LLVM keeps what some path might read."""
        kept = [f"x{k}" for k in range(min(self.variables_kept, self.in_registers))]
        ins = [f"a{i}" for i in range(len(self.graph.elements))]
        outs = [f"r{i}" for i in range(len(results(self.graph)))]
        for variable in (*kept, *ins, *outs):
            w.do(f"store {w.type} poison, ptr %{self.name}.{variable}")

    @cached_property
    def _crossing(self) -> dict[int, int]:
        """Values that are needed behind a later call, and the variable that each is kept in.

        Variables are used again as soon as they are free. To LLVM, all ways back from a procedure are possible, so a
        value of one call and a value of the next would both take a register as long as the procedure runs.
        """
        defined, last, calls = {}, {}, 0
        for i, unit in enumerate(self.sequence):
            for n in unit.uses:
                last[n.serial] = i, calls
            calls += unit.defines[0].op == "call"
            defined.update({n.serial: calls for n in unit.defines})
        last |= {serial: (len(self.sequence), calls) for serial in self.units.outputs}
        free: list[int] = []
        ending: dict[int, list[int]] = {}
        found: dict[int, int] = {}
        for i, unit in enumerate(self.sequence):
            free += ending.get(i, [])
            for n in unit.defines:
                if n.serial in last and last[n.serial][1] > defined[n.serial]:
                    found[n.serial] = free.pop() if free else len(set(found.values()))
                    ending.setdefault(last[n.serial][0], []).append(found[n.serial])
        return found

    def spelled(
        self,
        w: Writer,
        threads: int,
        memory: Callable[[Writer, Place], str],
        write: Callable[[int, str], None],
        end: str,
    ) -> None:
        """The text, from its label to a jump to `end`; `write` is told of each output, `memory` reads an element."""
        places = {place: i for i, place in enumerate(self.graph.elements)}

        def read(node: Node) -> str:
            if node.op != "input":
                return w.let(f"load {self._variable(w, node, threads)}", "x")
            place: Place = (node.args[0], node.args[1])
            if place in self.memory:
                return memory(w, self.memory[place])
            return w.let(f"load {w.type}, ptr %{self.name}.a{places[place]}", "x")

        def keep(node: Node, value: str) -> None:
            if node.serial in self._crossing:
                kind, place = self._variable(w, node, threads).split(", ")
                w.do(f"store {kind} {value}, {place}")

        body = Body(self.units, w, read, keep, threads, self.first_slot)
        w.do(f"{self.name}:")
        calls = 0
        for step in self.parking.steps:
            if step.unit is not None and step.unit.defines[0].op == "call":
                calls += 1
                self._call(w, body, step.unit, f"{self.name}.{calls}", keep)
            elif step.unit is not None and (old := self._replaced(step.unit)) is not None:
                condition, new, _ = step.unit.defines[0].args
                is_new, value = body.value(condition), body.value(new)
                w.do(f"br i1 {is_new}, label %{self.name}.new{old}, label %{self.name}.kept{old}")
                w.do(f"{self.name}.new{old}:")
                write(old, value)
                w.do(f"br label %{self.name}.kept{old}")
                w.do(f"{self.name}.kept{old}:")
            else:
                body.spelled([step])
                for n in step.unit.defines if step.unit is not None else ():
                    if n.serial in self.early:
                        write(self.early[n.serial], body.value(n))
        outputs = [(i, x) for i, x in enumerate(results(self.graph)) if i not in self.early.values()]
        for _, x in outputs:
            if isinstance(x, Node) and x.op == "input":
                body.value(x)  # read before another output takes its place in memory
        for i, x in outputs:
            write(i, body.value(x))
        w.do(f"br label %{end}")

    def _replaced(self, unit: Unit) -> int | None:
        """Of where(condition, new, old) with the output's own old value: which output. Then old is left where it is."""
        node, k = unit.defines[0], self.early.get(unit.serial)
        if k is None or node.op != "where" or self.units.counted[node.serial] > 2:  # an output, and nothing else
            return None
        old = node.args[2]
        return k if isinstance(old, Node) and old.op == "input" and old.args == ("s", k) else None

    def _variable(self, w: Writer, node: Node, threads: int) -> str:
        """Type and place of the variable of a value."""
        k = self._crossing[node.serial]
        if k < self.in_registers:
            return f"{w.type}, ptr %{self.name}.x{k}"
        if k >= self.in_registers + self.in_shared:
            return f"volatile {w.type}, ptr %{self.name}.x{k}"  # LLVM leaves it in memory
        slot = self.first_slot + self.parking.slots + k - self.in_registers
        at = w.let(f"getelementptr [{threads} x {w.type}], ptr addrspace(3) %parked, i32 {slot}", "p")
        return f"volatile {w.type}, ptr addrspace(3) {at}"

    def _call(self, w: Writer, body: Body, unit: Unit, back: str, keep: Callable[[Node, str], None]) -> None:
        call = unit.defines[0]
        function, *values = call.args
        other = self.calls[id(function)]
        for i, (place, x) in enumerate(zip(function.elements, values, strict=True)):
            if place not in other.memory:
                w.do(f"store {w.type} {body.value(x)}, ptr %{other.name}.a{i}")
        w.do(f"store i32 {len(other.returns)}, ptr %{other.name}.back")
        w.do(f"br label %{other.name}")
        other.returns.append(back)
        w.do(f"{back}:")
        body.names.clear()  # what was known before is known no more: the way here leads through another's code
        for n in unit.defines[1:]:
            value = w.let(f"load {w.type}, ptr %{other.name}.r{n.args[1]}", "x")
            body.names[n.serial] = value
            keep(n, value)

    def returning(self, w: Writer) -> None:
        """The jump back, once all callers are known."""
        w.do(f"{self.name}.end:")
        which = w.let(f"load i32, ptr %{self.name}.back")
        cases = " ".join(f"i32 {k}, label %{label}" for k, label in enumerate(self.returns[1:], 1))
        w.do(f"switch i32 {which}, label %{self.returns[0]} [{cases}]")


def procedures(roots: Mapping[str, tuple[Graph, Mapping[Place, Place]]]) -> list[Procedure]:
    """Graphs by name, each with its inputs that are in memory, and before them all that they call.

    An input of a callee lies in memory if every call says so.
    """
    called = list({id(g): g for root, _ in roots.values() for g in root.calls}.values())  # callees first
    given: dict[int, dict[Place, Place | None]] = {}
    known: dict[int, Mapping[Place, Place]] = {id(root): memory for root, memory in roots.values()}
    for g in (*(root for root, _ in roots.values()), *reversed(called)):
        mine = known.setdefault(id(g), _agreed(given.get(id(g), {})))
        for node in g.nodes:
            if node.op == "call":
                function, *values = node.args
                seen = given.setdefault(id(function), {})
                for place, x in zip(function.elements, values, strict=True):
                    source = mine.get((x.args[0], x.args[1])) if isinstance(x, Node) and x.op == "input" else None
                    seen[place] = source if seen.get(place, source) == source else None
    made: dict[int, Procedure] = {}
    for k, g in enumerate(called):
        made[id(g)] = Procedure(g, f"f{k}", known[id(g)], calls=dict(made))
    return [*made.values(), *(Procedure(g, name, memory, calls=dict(made)) for name, (g, memory) in roots.items())]


def _agreed(given: Mapping[Place, Place | None]) -> dict[Place, Place]:
    return {place: source for place, source in given.items() if source is not None}
