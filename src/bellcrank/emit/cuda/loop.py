"""Simulation kernel: one thread per run from tick to tick, its state in registers.

    run(i64 n, i64 ticks, ptr s, ptr p, ptr inputs, i64 per_run, i64 per_element, ptr rows, i64 capacity, ptr counts)

The program and the flags in its state are those of graph/program.py. In all arrays the run is the fastest index:
s (size, n), p (np, n), rows (capacity, row, n), counts (n), one row when it is due. The input table (lines, nu) of a
run begins per_run elements after that of the previous run, with its elements per_element apart, so that all runs can
share one table. With ticks = START, states are only completed.

State elements that a tick passes on unchanged (the step size, the end time) are not kept in registers: they are read
again where they are used. Elements that a tick only writes for others (the polynomial of a step) are stored in memory
and read there. `observe`, `locate` and `renew` are rare, and must not cost a tick registers: they read and write the
state in memory; the register part of it is stored before them and reloaded after them. A thread whose rows are full, or
that has stopped, waits for the others; the caller empties the rows and starts the kernel again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bellcrank.emit.cuda.choice import FILE, OWN_VALUES, REGISTERS, SHARED
from bellcrank.emit.cuda.looptext import LoopText, begins, kept
from bellcrank.emit.cuda.procedure import Place, Procedure, procedures, results
from bellcrank.emit.cuda.ptx import ptx
from bellcrank.graph import Graph, Node, Program

THREADS = 128


@dataclass(frozen=True, eq=False)
class Loop:
    """Simulation kernel of a program, with its register and shared-memory budget."""

    program: Program
    dtype: str = "float64"
    blocks: int = 0  # resident blocks of a multiprocessor; 0: as many as the predicted registers allow
    threads: int = THREADS
    workspace = 0  # elements of a run in a workspace

    @property
    def words(self) -> int:
        """32-bit words of a value."""
        return 2 if self.dtype == "float64" else 1

    @cached_property
    def unchanged(self) -> set[int]:
        """State elements that a tick passes on unchanged."""
        return kept(self.program.tick)

    @cached_property
    def held(self) -> set[int]:
        """State elements that a tick changes but does not read, in a program where other graphs read them."""
        program, flat = self.program, results(self.program.tick)
        if not self.rare.keys() & {"observe", "locate"}:
            return set()
        users: dict[int, set[int]] = {}
        for node in program.tick.nodes:
            for a in node.operands:
                if a.op == "input" and a.args[0] == "s":
                    users.setdefault(a.args[1], set()).add(node.serial)
        plain = {x.args[1] for x in flat if isinstance(x, Node) and x.op == "input" and x.args[0] == "s"}
        own = [{x.serial} if isinstance(x, Node) else set() for x in flat]
        needed = plain | self.unchanged | {program.live, program.due, *self.signs.values()}
        return {k for k in range(program.size) if k not in needed and users.get(k, set()) <= own[k]}

    @property
    def signs(self) -> dict[str, int]:
        """State indices of the flags that not every program has."""
        p = self.program
        found = {"hit": p.hit} if p.locate else {}
        found |= {"fresh": p.fresh} if p.renew else {}
        return found | ({"input": p.input} if p.nu else {})

    @cached_property
    def changing(self) -> list[int]:
        """State elements in registers."""
        return [k for k in range(self.program.size) if k not in self.unchanged and k not in self.held]

    @cached_property
    def rare(self) -> dict[str, Graph]:
        """Graphs that are called between ticks, or before the first."""
        graphs = {name: g for name, g in self.program.graphs.items() if name != "tick"}
        return graphs if self.begins else {name: g for name, g in graphs.items() if name != "start"}

    @cached_property
    def begins(self) -> bool:
        """Return whether the state must be completed before the first tick."""
        return begins(self.program)

    @cached_property
    def procedures(self) -> list[Procedure]:
        """Procedures in order: callees before their callers, rare graphs, the tick."""
        tick = self.program.tick
        memory: dict[Place, Place] = {place: place for place in tick.elements if place[0] != "s"}
        memory |= {("s", k): ("s", k) for k in (*self.unchanged, *self.held)}
        roots = {name: (g, {place: place for place in g.elements}) for name, g in self.rare.items()}
        made = procedures({**roots, "tick": (tick, memory)})
        mine = {id(g) for g in tick.calls}
        callees, top = [p for p in made if id(p.graph) in mine], made[-1]
        for p in made:
            if p.name in self.rare:
                p.in_registers = p.in_shared = 0
        top.early = self._early(top)
        self._share_registers(top, callees)
        self._share_slots(top, callees)
        return made

    def _share_registers(self, top: Procedure, callees: Sequence[Procedure]) -> None:
        """Divide the registers between values live across calls in the tick and the callees' own values."""
        inner = max((p.alive + p.across for p in callees), default=0)
        excess = max(0, top.across + inner - self.capacity)
        moved = min(top.variables_kept, excess)  # variables have the longest live ranges, so they are spilled first
        top.in_registers = top.variables_kept - moved
        for p in callees:
            if excess > moved:
                p.room = max(16, self.capacity - (top.across - moved) - OWN_VALUES)
            while p.slots * self.threads * 4 * self.words > SHARED // 3 and p.room < p.alive:
                p.room += 8  # at least two blocks should fit: the assembler spills the rest
                del p.parking

    def _share_slots(self, top: Procedure, callees: Sequence[Procedure]) -> None:
        """Assign slots of shared memory to the callees; the tick has the remaining ones."""
        leaves = [p for p in callees if not p.across]
        slot = max((p.slots for p in leaves), default=0)  # leaf procedures are never active together, and share slots
        for p in callees:
            if p not in leaves:
                p.first_slot, slot = slot, slot + p.slots
        top.first_slot, top.in_shared = slot, max(0, self.room - slot)

    def _early(self, tick: Procedure) -> dict[int, int]:
        """Return held outputs that can be stored as soon as they are computed: the old value is no longer read."""
        last = {n.args: i for i, unit in enumerate(tick.sequence) for n in unit.uses if n.op == "input"}
        at = {n.serial: i for i, unit in enumerate(tick.sequence) for n in unit.defines}
        flat = results(tick.graph)
        found: dict[int, int] = {}
        for k in self.held:
            x = flat[k]
            if isinstance(x, Node) and x.serial in at and last.get(("s", k), -1) <= at[x.serial]:
                found.setdefault(x.serial, k)
        return found

    @property
    def capacity(self) -> int:
        """Values that fit into the registers of a thread."""
        limit = FILE // (self.threads * self.blocks) // 8 * 8 if self.blocks else REGISTERS
        return min(REGISTERS, limit) // self.words - OWN_VALUES

    @property
    def room(self) -> int:
        """Values of a thread that fit into shared memory.

        Adaptive steps have many outputs, and two blocks should fit: the other values lie in local memory.
        """
        blocks = self.blocks or (2 if self.held else 1)
        return (SHARED // blocks - 1024) // (self.threads * 4 * self.words)

    @property
    def most(self) -> int:
        """Maximum number of values in registers."""
        top, mine = self.procedures[-1], {id(g) for g in self.program.tick.calls}
        callees = [p for p in self.procedures if id(p.graph) in mine]
        waiting = top.across - max(0, top.variables_kept - top.in_registers)
        return max([top.alive, *(waiting + p.parking.most for p in callees)])

    @property
    def registers(self) -> int:
        """Predicted registers of a thread."""
        return min(REGISTERS, (self.most + OWN_VALUES) * self.words)

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block."""
        slots = max(p.first_slot + p.slots for p in self.procedures)
        return slots * self.threads * 4 * self.words

    @property
    def resident(self) -> int:
        """Resident blocks of a multiprocessor."""
        by_registers = FILE // (self.threads * -(-self.registers // 8) * 8)
        return self.blocks or max(1, min(by_registers, SHARED // (self.shared + 1024)))

    @cached_property
    def text(self) -> str:
        """The whole kernel as LLVM IR."""
        return LoopText(self).module

    @cached_property
    def ptx(self) -> str:
        """The kernel as PTX."""
        return ptx(self.text, promote=True)
