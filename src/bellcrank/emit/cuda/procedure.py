"""Procedures inside a kernel: a graph as a code block that is jumped to and jumps back, so that it exists only once.

A GPU's instruction cache holds a few thousand instructions, and a call with arguments in memory would cost more than
the callee. So all graphs are blocks of one function. A caller stores its arguments in variables, sets the number of the
call site, and jumps; the procedure stores its results and jumps back by that number. LLVM promotes the variables to
registers (mem2reg), so a state stays in registers from step to step. Values that a caller needs after a call are such
variables, too.

An argument that is passed on unchanged from memory (parameters of the model, for example) is read there by the callee.

Values that are live across a call are kept in registers, in slots of shared memory, or in the thread's local memory.
Local memory is slow but costs no other code registers: it is for rare code, because LLVM keeps a variable in a register
wherever the procedure runs that it is live across.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from bellcrank.emit.cuda.register_pressure import live_counts, low_pressure_order
from bellcrank.emit.cuda.thread_code import SpillPlan, SpillStep, ThreadCode, Unit, Units, plan_spills
from bellcrank.emit.llvm.lanes import Writer
from bellcrank.graph import Graph, Node

InputElement = tuple[str, int]  # an element of an input


def output_elements(graph: Graph) -> list[Node | float]:
    """Return the elements of all outputs of `graph`."""
    return [x for array in graph.outputs.values() for x in array.flat]


@dataclass(eq=False)
class Procedure:
    """One graph. `memory`: inputs that are read from memory, and their names there."""

    graph: Graph
    name: str
    memory: Mapping[InputElement, InputElement]
    register_limit: int = 10**6
    first_slot: int = 0
    register_variables: int = 10**6  # variables in registers; the next are in shared memory, the rest in local memory
    shared_variables: int = 10**6
    early_stores: Mapping[int, int] = field(
        default_factory=dict
    )  # outputs to write as soon as computed, by serial number
    calls: dict[int, Procedure] = field(default_factory=dict)  # by id of the graph
    returns: list[str] = field(default_factory=list)  # return labels of its callers

    @cached_property
    def units(self) -> Units:
        """Units of the graph."""
        return Units(self.graph)

    @cached_property
    def sequence(self) -> list[Unit]:
        """Units in schedule order."""
        return low_pressure_order(self.units)

    @cached_property
    def spill_plan(self) -> SpillPlan:
        """Spill plan."""
        if any(u.defines[0].op == "call" for u in self.sequence):  # values live across a call are variables
            return SpillPlan(
                [SpillStep("compute", unit) for unit in self.sequence], 0, max(live_counts(self.sequence), default=0)
            )
        return plan_spills(self.sequence, self.register_limit)

    @cached_property
    def max_live(self) -> int:
        """Maximum number of live values here, spilled or not."""
        return max(live_counts(self.sequence), default=0)

    @cached_property
    def max_live_across_calls(self) -> int:
        """Maximum number of values that are live here across a call."""
        counts = zip(live_counts(self.sequence), self.sequence, strict=True)
        return max((alive for alive, unit in counts if unit.defines[0].op == "call"), default=0)

    @property
    def crossing_variables(self) -> int:
        """Number of variables for values that are needed after a call."""
        return len(set(self._crossing.values()))

    @property
    def slots(self) -> int:
        """Slots in shared memory: spilled values, and variables for which no register is left."""
        return self.spill_plan.slots + min(
            self.shared_variables, max(0, self.crossing_variables - self.register_variables)
        )

    # -- text

    def variables(self, w: Writer) -> list[str]:
        """Return the declarations of variables, for the entry of the function, in the type of `w`."""
        crossing = [f"%{self.name}.x{k} = alloca {w.type}" for k in range(self.crossing_variables)]
        ins = [f"%{self.name}.a{i} = alloca {w.type}" for i in range(len(self.graph.elements))]
        outs = [f"%{self.name}.r{i} = alloca {w.type}" for i in range(len(output_elements(self.graph)))]
        return [*crossing, *ins, *outs, f"%{self.name}.back = alloca i32"]

    def emit_poison(self, w: Writer) -> None:
        """Emit, with `w`, stores of poison to the variables: LLVM would otherwise keep what some path might read."""
        crossing = [f"x{k}" for k in range(min(self.crossing_variables, self.register_variables))]
        ins = [f"a{i}" for i in range(len(self.graph.elements))]
        outs = [f"r{i}" for i in range(len(output_elements(self.graph)))]
        for variable in (*crossing, *ins, *outs):
            w.do(f"store {w.type} poison, ptr %{self.name}.{variable}")

    @cached_property
    def _crossing(self) -> dict[int, int]:
        """Values that are needed after a later call, and the variable of each.

        Variables are reused as soon as they are free. To LLVM, all return paths of a procedure are possible, so a value
        of one call and a value of the next would both occupy a register as long as the procedure runs.
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
        variable_of: dict[int, int] = {}
        for i, unit in enumerate(self.sequence):
            free += ending.get(i, [])
            for n in unit.defines:
                if n.serial in last and last[n.serial][1] > defined[n.serial]:
                    variable_of[n.serial] = free.pop() if free else len(set(variable_of.values()))
                    ending.setdefault(last[n.serial][0], []).append(variable_of[n.serial])
        return variable_of

    def emit(
        self,
        w: Writer,
        threads: int,
        memory: Callable[[Writer, InputElement], str],
        write: Callable[[int, str], None],
        end: str,
    ) -> None:
        """Emit the code, from its label to a jump to `end`.

        Parameters
        ----------
        w
            Writer.
        threads
            Threads of a block.
        memory
            Reads an element that lies in memory.
        write
            Receives each output's index and value.
        end
            Label to jump to.
        """
        argument_index = {place: i for i, place in enumerate(self.graph.elements)}

        def read(node: Node) -> str:
            if node.op != "input":
                return w.let(f"load {self._variable(w, node, threads)}", "x")
            place: InputElement = (node.args[0], node.args[1])
            if place in self.memory:
                return memory(w, self.memory[place])
            return w.let(f"load {w.type}, ptr %{self.name}.a{argument_index[place]}", "x")

        def keep(node: Node, value: str) -> None:
            if node.serial in self._crossing:
                kind, place = self._variable(w, node, threads).split(", ")
                w.do(f"store {kind} {value}, {place}")

        body = ThreadCode(self.units, w, read, keep, threads, self.first_slot)
        w.do(f"{self.name}:")
        calls = 0
        for step in self.spill_plan.steps:
            if step.unit is not None and step.unit.defines[0].op == "call":
                calls += 1
                self._call(w, body, step.unit, f"{self.name}.{calls}", keep)
            elif step.unit is not None and (old := self._updated_output(step.unit)) is not None:
                condition, new, _ = step.unit.defines[0].args
                is_new, value = body.value(condition), body.value(new)
                w.do(f"br i1 {is_new}, label %{self.name}.new{old}, label %{self.name}.kept{old}")
                w.do(f"{self.name}.new{old}:")
                write(old, value)
                w.do(f"br label %{self.name}.kept{old}")
                w.do(f"{self.name}.kept{old}:")
            else:
                body.emit_steps([step])
                for n in step.unit.defines if step.unit is not None else ():
                    if n.serial in self.early_stores:
                        write(self.early_stores[n.serial], body.value(n))
        outputs = [(i, x) for i, x in enumerate(output_elements(self.graph)) if i not in self.early_stores.values()]
        for _, x in outputs:
            if isinstance(x, Node) and x.op == "input":
                body.value(x)  # read before another output overwrites it in memory
        for i, x in outputs:
            write(i, body.value(x))
        w.do(f"br label %{end}")

    def _updated_output(self, unit: Unit) -> int | None:
        """Return the output k of a unit where(condition, new, old s[k]); None for other units.

        Then the old value stays where it is, and only a new one is stored.
        """
        node, k = unit.defines[0], self.early_stores.get(unit.serial)
        if k is None or node.op != "where" or self.units.use_counts[node.serial] > 2:  # more than an output
            return None
        old = node.args[2]
        return k if isinstance(old, Node) and old.op == "input" and old.args == ("s", k) else None

    def _variable(self, w: Writer, node: Node, threads: int) -> str:
        """Return the type and address of the variable of a value."""
        k = self._crossing[node.serial]
        if k < self.register_variables:
            return f"{w.type}, ptr %{self.name}.x{k}"
        if k >= self.register_variables + self.shared_variables:
            return f"volatile {w.type}, ptr %{self.name}.x{k}"  # LLVM leaves it in memory
        slot = self.first_slot + self.spill_plan.slots + k - self.register_variables
        address = w.let(f"getelementptr [{threads} x {w.type}], ptr addrspace(3) %parked, i32 {slot}", "p")
        return f"volatile {w.type}, ptr addrspace(3) {address}"

    def _call(self, w: Writer, body: ThreadCode, unit: Unit, back: str, keep: Callable[[Node, str], None]) -> None:
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
        body.names.clear()  # earlier SSA values do not dominate this block: control comes from another procedure
        for n in unit.defines[1:]:
            value = w.let(f"load {w.type}, ptr %{other.name}.r{n.args[1]}", "x")
            body.names[n.serial] = value
            keep(n, value)

    def emit_return(self, w: Writer) -> None:
        """Emit, with `w`, the jump back, once all callers are known."""
        w.do(f"{self.name}.end:")
        return_number = w.let(f"load i32, ptr %{self.name}.back")
        cases = " ".join(f"i32 {k}, label %{label}" for k, label in enumerate(self.returns[1:], 1))
        w.do(f"switch i32 {return_number}, label %{self.returns[0]} [{cases}]")


def procedures(roots: Mapping[str, tuple[Graph, Mapping[InputElement, InputElement]]]) -> list[Procedure]:
    """Return the procedures of all callees, callees first, followed by those of `roots`.

    An input of a callee lies in memory if it does at every call.

    Parameters
    ----------
    roots
        Graphs by name, each with its inputs that are in memory.
    """
    called = list({id(g): g for root, _ in roots.values() for g in root.calls}.values())  # callees first
    argument_sources: dict[int, dict[InputElement, InputElement | None]] = {}
    memory_inputs: dict[int, Mapping[InputElement, InputElement]] = {
        id(root): memory for root, memory in roots.values()
    }
    for g in (*(root for root, _ in roots.values()), *reversed(called)):
        own_memory_inputs = memory_inputs.setdefault(id(g), _agreed_sources(argument_sources.get(id(g), {})))
        for node in g.nodes:
            if node.op == "call":
                function, *values = node.args
                seen = argument_sources.setdefault(id(function), {})
                for place, x in zip(function.elements, values, strict=True):
                    source = (
                        own_memory_inputs.get((x.args[0], x.args[1]))
                        if isinstance(x, Node) and x.op == "input"
                        else None
                    )
                    seen[place] = source if seen.get(place, source) == source else None
    callees: dict[int, Procedure] = {}
    for k, g in enumerate(called):
        callees[id(g)] = Procedure(g, f"f{k}", memory_inputs[id(g)], calls=dict(callees))
    return [
        *callees.values(),
        *(Procedure(g, name, memory, calls=dict(callees)) for name, (g, memory) in roots.items()),
    ]


def _agreed_sources(sources: Mapping[InputElement, InputElement | None]) -> dict[InputElement, InputElement]:
    return {place: source for place, source in sources.items() if source is not None}
