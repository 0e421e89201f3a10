"""Straight-line code of one GPU thread: the units of a graph in schedule order, with spills and reloads.

A unit is one instruction or a few: a sum with the product that is fused into it, a sine with its cosine. A node that is
emitted inside another (a fused product, a comparison) has no value of its own and never occupies a register.

Where more values are live than registers can hold, those needed last are spilled to shared memory. The rule is Belady's
(emit/llvm/register_allocation.py). A spilled value has a slot in shared memory, one word for each thread of the block,
and is reloaded before its next use. An input is never spilled: it is dropped, and read again from its array. The same
applies to values of another member of a team, which lie in the mailbox.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from bellcrank.emit.cuda.ptx import Arithmetic
from bellcrank.emit.llvm.lanes import Writer
from bellcrank.emit.llvm.llvm_printer import fused, single_use_products, use_counts
from bellcrank.emit.llvm.register_allocation import RegisterFile
from bellcrank.graph import Graph, Node
from bellcrank.nodes.ops import COMPARISONS

if TYPE_CHECKING:
    from bellcrank.emit.cuda.occupancy import TeamPlan

Place = TypeVar("Place")
MAX_FUSED_SUMS = 4  # sums at most into which one product is fused


@dataclass(frozen=True, eq=False)
class Unit:
    """Nodes that are computed together, and the values that they read."""

    defines: tuple[Node, ...]
    uses: tuple[Node, ...]  # values it reads, inputs among them

    @cached_property
    def serial(self) -> int:
        """Serial number of the first node."""
        return self.defines[0].serial

    @cached_property
    def used_serials(self) -> tuple[int, ...]:
        """Serial numbers of the operands, cached because schedulers read them very often."""
        return tuple([n.serial for n in self.uses])

    @cached_property
    def defined_serials(self) -> tuple[int, ...]:
        """Serial numbers of the defined nodes."""
        return tuple([n.serial for n in self.defines])


BARRIER = Unit((), ())  # all members of a team wait for each other


@dataclass(frozen=True, eq=False)
class Units:
    """All units of a graph, in the order of creation."""

    graph: Graph

    @cached_property
    def use_counts(self) -> Mapping[int, int]:
        """Number of uses of each node; an output counts two more, because it must exist."""
        return use_counts(self.graph)

    @cached_property
    def outputs(self) -> set[int]:
        """Serial numbers of the nodes that are outputs."""
        return {x.serial for array in self.graph.outputs.values() for x in array.flat if isinstance(x, Node)}

    def fused_product(self, node: Node) -> Node | None:
        """Return the argument of the sum `node` that is fused with it to a multiply-add."""
        return self._fused_products.get(node.serial)

    @cached_property
    def _fused_products(self) -> dict[int, Node]:
        """Fused product of each sum.

        First come products with a single use, as on the CPU; then products used only by
        sums that have none yet: repeating the multiplication in each of them costs nothing, and the product itself is
        saved.
        """
        users: dict[int, list[Node]] = {}
        for n in self.graph.nodes:
            for a in {id(a): a for a in n.operands}.values():
                users.setdefault(a.serial, []).append(n)
        product_of = single_use_products(self.graph, self.use_counts)
        for a in reversed(self.graph.nodes):
            product_users = users.get(a.serial, ())
            if (
                a.op != "mul"
                or self.use_counts[a.serial] != len(product_users)
                or not 2 <= len(product_users) <= MAX_FUSED_SUMS
            ):
                continue
            if all(n.op in ("add", "sub") and n.serial not in product_of for n in product_users):
                product_of |= {n.serial: a for n in product_users}
        return product_of

    @cached_property
    def inlined(self) -> set[int]:
        """Nodes that are emitted where they are used."""
        fused = {product.serial for product in self._fused_products.values()}
        return fused | {n.serial for n in self.graph.nodes if n.op in COMPARISONS}

    def read_values(self, node: Node) -> list[Node]:
        """Return the values that `node` reads, looking through nodes that are emitted inside it."""
        values: dict[int, Node] = {}
        stack = list(node.operands)
        while stack:
            a = stack.pop()
            if a.serial in self.inlined:
                stack.extend(a.operands)
            else:
                values[a.serial] = a
        return [values[serial] for serial in sorted(values)]

    @cached_property
    def all(self) -> list[Unit]:
        """All units."""
        angles: dict[int, list[Node]] = {}
        results: dict[int, list[Node]] = {}
        for n in self.graph.nodes:
            if n.op in ("sin", "cos"):
                angles.setdefault(n.operands[0].serial, []).append(n)
            if n.op == "result":
                results.setdefault(n.operands[0].serial, []).append(n)
        units = []
        for n in self.graph.nodes:
            if n.serial in self.inlined or n.op in ("input", "result"):
                continue
            defines = [n]
            if n.op in ("sin", "cos"):
                defines = angles[n.operands[0].serial]
                if defines[0] is not n:
                    continue
            elif n.op == "call":
                defines = [n, *results.get(n.serial, [])]
            units.append(Unit(tuple(defines), tuple(self.read_values(n))))
        return units


class SpillStep(NamedTuple):
    """One action: compute a unit, "spill" a node to a slot, "reload" it from there, or drop a value."""

    action: str
    unit: Unit | None = None
    node: Node | None = None
    slot: int = 0


@dataclass(frozen=True)
class SpillPlan:
    """Spill plan: a sequence of steps, with its slots and register pressure."""

    steps: Sequence[SpillStep]
    slots: int
    max_registers: int  # values in registers at once


def plan_spills(sequence: Sequence[Unit], register_limit: int, rereadable: Collection[int] = ()) -> SpillPlan:
    """Return the spill plan of a sequence of units.

    Parameters
    ----------
    sequence
        Units in schedule order.
    register_limit
        Maximum number of values in registers, apart from what a single unit needs at once.
    rereadable
        Values that can be read again, as inputs can.
    """
    registers = _Registers(sequence, register_limit, rereadable)
    for unit in sequence:
        registers.compute(unit)
    return SpillPlan(registers.steps, registers.slots.count, registers.max_registers)


class _SlotAllocator:
    """Allocator of spill slots in shared memory."""

    def __init__(self) -> None:
        self.slot_of: dict[int, int] = {}
        self.free: list[int] = []
        self.count = 0

    def allocate(self, serial: int) -> int:
        if not self.free:
            self.free.append(self.count)
            self.count += 1
        self.slot_of[serial] = self.free.pop()
        return self.slot_of[serial]

    def release(self, serial: int) -> None:
        if serial in self.slot_of:
            self.free.append(self.slot_of.pop(serial))


class _Registers(RegisterFile):
    """Values in registers, and the steps that led to them."""

    def __init__(self, sequence: Sequence[Unit], register_limit: int, rereadable: Collection[int]) -> None:
        super().__init__([unit.used_serials for unit in sequence], register_limit, int)
        self.rereadable = rereadable
        self.steps: list[SpillStep] = []
        self.slots = _SlotAllocator()
        self.max_registers = 0

    def compute(self, unit: Unit) -> None:
        """Reload operands, release values after their last use, and make room for the results of a unit."""
        resident, needed = self.resident, set(unit.used_serials)
        for serial, n in zip(unit.used_serials, unit.uses, strict=True):
            if serial not in resident:
                self._make_room(1, needed)
                if not self._is_rereadable(n):
                    self.steps.append(SpillStep("reload", None, n, self.slots.slot_of[serial]))
                resident[serial] = n
        for serial in unit.used_serials:
            if self.read(serial):
                del resident[serial]
                needed.discard(serial)
                self.slots.release(serial)
        used_results = [n for n in unit.defines if n.serial in self.uses]
        if len(resident) + len(used_results) > self.limit:
            self._make_room(len(used_results), needed)
        self.steps.append(SpillStep("compute", unit))
        for n in used_results:
            resident[n.serial] = n
        if len(resident) > self.max_registers:
            self.max_registers = len(resident)

    def _make_room(self, wanted: int, keep: Collection[int]) -> None:
        for node in self.evict(wanted, keep):
            serial = node.serial
            if self._is_rereadable(node) or serial in self.slots.slot_of:
                self.steps.append(SpillStep("drop", node=node))
            else:
                self.steps.append(SpillStep("spill", node=node, slot=self.slots.allocate(serial)))

    def _is_rereadable(self, n: Node) -> bool:
        """Return whether a value can be read from its origin, and needs no slot."""
        return n.op == "input" or n.serial in self.rereadable


class ThreadCode:
    """Emitter of straight-line code.

    `read` returns a value that is not computed here, such as an input; `write` receives every value that is computed.
    """

    def __init__(
        self,
        units: Units,
        w: Writer,
        read: Callable[[Node], str],
        write: Callable[[Node, str], None],
        threads: int,
        first_slot: int = 0,
        shared_slots: int | None = None,
    ) -> None:
        """Describe the spill slots: %parked is the thread's slot 0, slots are `threads` values apart.

        Slots of this body begin at `first_slot`; those numbered `shared_slots` or higher lie in local memory instead,
        at %far.
        """
        self.units, self.w, self.read, self.write, self.threads = units, w, read, write, threads
        self.first_slot, self.shared_slots = first_slot, shared_slots
        self.arithmetic = Arithmetic(w)
        self.names: dict[int, str] = {}

    def emit_steps(self, steps: Sequence[SpillStep]) -> None:
        """Emit `steps`: compute, spill, reload or drop values."""
        for step in steps:
            if step.unit is not None:
                self._compute(step.unit)
            elif step.node is not None and step.action == "spill":
                value = self.value(step.node)
                del self.names[step.node.serial]
                self.w.do(f"store volatile {self.w.type} {value}, {self._slot_address(step.slot)}")
            elif step.node is not None and step.action == "reload":
                self.names[step.node.serial] = self.w.let(
                    f"load volatile {self.w.type}, {self._slot_address(step.slot)}", "x"
                )
            elif step.node is not None:
                self.names.pop(step.node.serial, None)

    def _slot_address(self, slot: int) -> str:
        if self.shared_slots is not None and slot >= self.shared_slots:
            return "ptr " + self.w.let(f"getelementptr {self.w.type}, ptr %far, i32 {slot - self.shared_slots}", "p")
        kind = f"[{self.threads} x {self.w.type}]"
        address = self.w.let(f"getelementptr {kind}, ptr addrspace(3) %parked, i32 {self.first_slot + slot}", "p")
        return f"ptr addrspace(3) {address}"

    def value(self, x: Node | float) -> str:
        """Return the operand for `x`, a node or a constant."""
        if not isinstance(x, Node):
            return self.w.constant(x)
        if x.serial in self.units.inlined:
            return self._operation(x)
        if x.serial not in self.names:
            self.names[x.serial] = self.read(x)
        return self.names[x.serial]

    def _compute(self, unit: Unit) -> None:
        if unit is BARRIER:
            self.w.do("call void @llvm.nvvm.barrier0()")
            return
        first = unit.defines[0]
        if first.op == "input":
            self.value(first)
            return
        if first.op in ("sin", "cos"):
            s, c = self.arithmetic.sincos(self.value(first.args[0]))
            for n in unit.defines:
                self.names[n.serial] = s if n.op == "sin" else c
        else:
            self.names[first.serial] = self._operation(first)
        for n in unit.defines:
            self.write(n, self.names[n.serial])

    def _operation(self, node: Node) -> str:
        product = self.units.fused_product(node)
        if product is None:
            return self.arithmetic.op(node.op, *(self.value(a) for a in node.args))
        return fused(node, product, self.value, self.w)


def emit_member(
    plan: TeamPlan,
    member: int,
    units: Units,
    w: Writer,
    read_input: Callable[[Node], str],
    results: Sequence[tuple[Place, Node | float]],
    store: Callable[[Place, str], None],
) -> None:
    """Emit the code of one member of a team for its state.

    Parameters
    ----------
    plan
        Plan of the team.
    member
        Index of the member.
    units
        Units of the graph.
    w
        Writer.
    read_input
        Emits the load of an input.
    results
        Place and value of each result; member 0 also stores those that need no computation.
    store
        Emits the store of a result at its place.
    """
    mailbox, places = plan.team.mailbox, dict[int, list[Place]]()
    for place, x in results:
        if isinstance(x, Node):
            places.setdefault(x.serial, []).append(place)

    def mail(node: Node) -> str:
        row = f"[{plan.states} x {w.type}]"
        return w.let(f"getelementptr {row}, ptr addrspace(3) %parked, i32 {mailbox[node.serial]}", "p")

    def read(node: Node) -> str:
        if node.op == "input":
            return read_input(node)
        return w.let(f"load volatile {w.type}, ptr addrspace(3) {mail(node)}", "x")

    def write(node: Node, value: str) -> None:
        for place in places.get(node.serial, ()):
            store(place, value)
        if node.serial in mailbox:
            w.do(f"store volatile {w.type} {value}, ptr addrspace(3) {mail(node)}")

    first = plan.team.mailbox_rows + sum(plan.shared_slots[:member])
    code = ThreadCode(units, w, read, write, plan.states, first, plan.shared_slots[member])
    code.emit_steps(plan.spill_plans[member].steps)
    for place, x in results if not member else ():
        if not isinstance(x, Node) or x.op == "input":
            store(place, code.value(x))
