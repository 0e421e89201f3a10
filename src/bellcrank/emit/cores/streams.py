"""Scheduled graph as LLVM IR: one straight-line instruction stream per processor, for one state.

Each stream is the program of one processor (scheduling/processor_programs.py). Fusion is decided on the whole graph
before it is divided (llvm_printer.py), and a product stays with its sum, so the cores compute exactly what one core
would: results agree to the last bit. Where a schedule separates the two, neither one core nor several fuse them. A
message is a few cache lines in @shared: the
values, and the number of the step, stored last with release; the receiver reads it with acquire (handover.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bellcrank.emit.cores import handover
from bellcrank.emit.cores import handover_worker as shared
from bellcrank.emit.cpu import kernel_module, module_functions
from bellcrank.emit.llvm.llvm_printer import LLVMPrinter
from bellcrank.emit.llvm.scheduling import Item, Tile, ancestors, chunks, input_tiles, items, order, trig_groups, unique
from bellcrank.graph import Graph, Node
from bellcrank.graph.graph import Coverage
from bellcrank.nodes.ops import COMPARISONS
from bellcrank.quoting import comment
from bellcrank.scheduling import Schedule
from bellcrank.scheduling.program_steps import Compute, Send
from bellcrank.scheduling.program_translation import processor_programs

FLAG_OFFSET = 56  # offset of the last word of the first cache line


@dataclass(frozen=True)
class Message:
    """Message: its values, and its place in @shared."""

    nodes: tuple[Node, ...]
    source: int
    target: int
    offset: int

    def value_offset(self, i: int, size: int) -> int:
        """Return the offset of value `i`, of `size` bytes; the flag's word is skipped."""
        return self.offset + (i * size if (i + 1) * size <= FLAG_OFFSET else 64 + i * size - FLAG_OFFSET // size * size)

    def end(self, size: int) -> int:
        """Return the offset of the next message, for values of `size` bytes."""
        last = self.value_offset(len(self.nodes), size)
        return -(-last // shared.LINE_BYTES) * shared.LINE_BYTES


def fused_into(graph: Graph, dtype: str = "float64") -> dict[int, int]:
    """Return the nodes that one instruction computes with their only user: node -> user, for `graph` and `dtype`.

    A product is fused into its sum, and both into a negation of the sum, if they have no other user.
    """
    printer = LLVMPrinter(graph, 1, 1, dtype, [[]])
    user_of = {}
    for node in graph.nodes:
        product = printer.products.get(node.serial)
        if product is not None:
            user_of[product.serial] = node.serial
        elif printer.negates(node):
            total = node.operands[0].serial
            user_of |= {total: node.serial, printer.products[total].serial: node.serial}
    return user_of


def source(
    graph: Graph,
    schedule: Schedule,
    width: int,
    triple: str,
    dtype: str = "float64",
    linger: int = shared.LINGER_NS,
) -> str:
    """Return the module as LLVM IR, without the Python entry; `@one` as in module_functions.py, `@many` row by row.

    Parameters
    ----------
    graph
        Graph of one state.
    schedule
        Assignment of its tasks to processors.
    width
        Lanes of a vector, for sines and cosines.
    triple
        Target triple.
    dtype
        Type of the numbers.
    linger
        ns of idle time before a worker sleeps.
    """
    alone = LLVMPrinter(graph, 1, width, dtype, chunks(items(graph, order(graph)), kernel_module.CHUNK_ITEMS))
    plan = StreamPlan(graph, schedule, alone)
    streams = [
        Stream(graph, width, dtype, chunks(sequence, kernel_module.CHUNK_ITEMS), p, plan)
        for p, sequence in enumerate(plan.sequences)
    ]
    bodies = [stream.function(f"stream_{p}") for p, stream in enumerate(streams)]
    title = f"{comment(f'{graph.name} on {schedule.machine.name}')}: {graph.count().arithmetic} operations, {dtype}"
    arrays = module_functions.array_names(graph)
    workspace = module_functions.workspace_text(streams[0].size, streams[0].w)
    sizes = [stream.size * stream.w.align for stream in streams[1:]]
    return "\n".join(
        [
            *module_functions.module_head(title, width, dtype),
            alone.function("state"),
            module_functions.state_function(graph, alone.size, alone.w, "alone"),
            *bodies,
            handover.definition(arrays, workspace, sizes, plan.size, triple, linger),
        ]
    )


class StreamPlan:
    """Sequence of items for each thread, and all messages: the programs of the processors that have a task."""

    def __init__(self, graph: Graph, schedule: Schedule, printer: LLVMPrinter) -> None:
        self.graph, self.schedule, self.printer = graph, schedule, printer
        self.programs = processor_programs(schedule)
        used = self.programs.used
        idle = [p for p in range(schedule.machine.processors) if p not in used]
        self.threads = sorted([*used, *idle[: max(0, 2 - len(used))]])  # processor of each thread; two or more
        self.position = {node.serial: i for i, node in enumerate(order(graph))}
        self.unfused = self._sums_of_received_products()
        printer.unfuse(self.unfused)
        self.size = shared.messages_start(len(self.threads))
        self.messages = self._plan_messages()
        self.tile = input_tiles(graph)
        self.inputs: dict[Tile, list[Node]] = {}
        for node in graph.nodes:
            if node.op == "input":
                self.inputs.setdefault(self.tile[node.args], []).append(node)
        self.outputs: dict[int, list[Tile]] = {}
        self.constant_outputs: list[Item] = []  # outputs that are constants or inputs
        for name, array in graph.outputs.items():
            for c, x in enumerate(array.flat):
                if isinstance(x, Node) and x.op != "input":
                    self.outputs.setdefault(x.serial, []).append(Tile(name, c, 1))
                else:
                    self.constant_outputs.append(
                        Item("store", uses=[x] if isinstance(x, Node) else [], tile=Tile(name, c, 1))
                    )
        self.loaded: dict[int, set[Tile]] = {p: set() for p in self.threads}
        self.sequences: list[list[Item]] = [self._sequence(p) for p in reversed(self.threads)][::-1]
        self._check(graph)

    def _check(self, graph: Graph) -> None:
        """Raise CompileError if the streams together do not store every element of the outputs."""
        coverage = Coverage(graph.name, graph.shapes)
        for item in (item for sequence in self.sequences for item in sequence):
            if item.kind == "store" and item.tile is not None:
                coverage.note(item.tile.array, range(item.tile.start, item.tile.start + item.tile.width))
        coverage.check()

    def _sums_of_received_products(self) -> set[int]:
        """Return the sums that a processor computes from a product of another one, so that they cannot be fused.

        So are sums whose negation is elsewhere.
        """
        apart: set[int] = set()
        for p in self.threads:
            computed: set[int] = set()
            for step in self.programs.steps[p]:
                if not isinstance(step, Compute):
                    continue
                for n in self._live_nodes(step.task):
                    product = self.printer.products.get(n.serial)
                    if product is not None and product.serial not in computed:
                        apart.add(n.serial)
                    if self.printer.negates(n) and n.operands[0].serial not in computed:
                        apart.add(n.operands[0].serial)
                    computed.add(n.serial)
        return apart

    def _live_nodes(self, task: int) -> list[Node]:
        """Return the nodes of a task on which an output depends: a program may also compute others."""
        return [n for n in self.schedule.tasks[task].nodes if n.serial in self.position]

    # -- messages

    def _plan_messages(self) -> dict[int, Message]:
        """Return the messages by their index in the timetable; those that carry no number are left out.

        In machine code a message carries only what its receiver uses: the timetable counts the values of a task that
        any other uses. Inputs lie in memory, and operands of a comparison are sent in place of its result.
        """
        needed: dict[int, set[int]] = {p: set() for p in self.threads}
        for task in self.schedule.tasks:
            operands = (a for n in self._live_nodes(task.index) for a in n.operands)
            needed[self.schedule.where[task.index]].update(x.serial for a in operands for x in self._sent_values(a))
        sent: dict[int, dict[int, Node]] = {}
        before = -1
        while (count := sum(map(len, sent.values()))) > before:  # what is passed on is needed, too
            before = count
            for k, m in enumerate(self.schedule.messages):
                values = (x for value in self.programs.values[k] for x in self._sent_values(value))
                sent[k] = {x.serial: x for x in values if x.serial in needed.get(m.target, ())}
                needed[m.source] |= sent[k].keys()
        messages = {}
        for k, values_by_serial in sent.items():
            if values_by_serial:
                m = self.schedule.messages[k]
                nodes = tuple(values_by_serial[serial] for serial in sorted(values_by_serial))
                messages[k] = Message(nodes, m.source, m.target, self.size)
                self.size = messages[k].end(self.printer.w.bytes)
        return messages

    def _sent_values(self, node: Node) -> Iterable[Node]:
        if node.op == "input":
            return []
        if node.op not in COMPARISONS:
            return [node]
        return [x for a in node.operands for x in self._sent_values(a)]

    # -- items of one processor

    def _sequence(self, p: int) -> list[Item]:
        result: list[Item] = []
        available: set[int] = set()
        is_caller = p == self.threads[0]
        if is_caller:
            for item in self.constant_outputs:
                self._load(p, item.uses, result)
                result.append(item)
        for step in self.programs.steps[p]:
            if isinstance(step, Compute):
                nodes = [n for n in self._live_nodes(step.task) if n.serial not in available]
                self._task(p, sorted(nodes, key=lambda n: self.position[n.serial]), result)
                available.update(n.serial for n in nodes)
            elif step.message in self.messages and self.programs.has_end_to_end_steps(step):
                parcel, tile = self.messages[step.message], Tile("", step.message, p)
                if isinstance(step, Send):
                    result.append(Item("send", uses=list(parcel.nodes), tile=tile))
                else:
                    result.append(Item("receive", [n for n in parcel.nodes if n.serial not in available], tile=tile))
                    available.update(n.serial for n in parcel.nodes)
        if is_caller:  # unused inputs are still checked for NaN
            for tile in dict.fromkeys(self.tile.values()):
                if not any(tile in loaded for loaded in self.loaded.values()):
                    result.append(Item("load", self.inputs.get(tile, []), tile=tile))
        return result

    def _task(self, p: int, nodes: Sequence[Node], result: list[Item]) -> None:
        done: set[int] = set()

        def finish(computed: Sequence[Node]) -> None:
            for n in computed:
                done.add(n.serial)
                if self.programs.home[n.serial][1] == p:
                    result.extend(Item("store", uses=[n], tile=tile) for tile in self.outputs.get(n.serial, ()))

        def emit(node: Node) -> None:
            if node.serial not in done:
                self._load(p, self.printer.reads(Item("op", uses=list(node.operands))), result)
                result.append(Item("op", [node], list(node.operands)))
                finish([node])

        for group in trig_groups(nodes):
            angles = unique([n.operands[0] for n in group])
            needed = ancestors(angles)
            for node in nodes:
                if node.serial in needed and node.op not in ("sin", "cos"):
                    emit(node)
            self._load(p, self.printer.reads(Item("op", uses=angles)), result)
            result.append(Item("trig", group, angles))
            finish(group)
        for node in nodes:
            emit(node)

    def _load(self, p: int, nodes: Iterable[Node], result: list[Item]) -> None:
        for node in nodes:
            if node.op == "input" and self.tile[node.args] not in self.loaded[p]:
                tile = self.tile[node.args]
                self.loaded[p].add(tile)
                result.append(Item("load", self.inputs[tile], tile=tile))


class Stream(LLVMPrinter):
    """Instructions of one processor."""

    def __init__(
        self, graph: Graph, trig_width: int, dtype: str, pieces: Sequence[Sequence[Item]], me: int, plan: StreamPlan
    ) -> None:
        super().__init__(graph, 1, trig_width, dtype, pieces)
        self.unfuse(plan.unfused)
        self.me, self.messages = me, plan.messages

    def check(self) -> None:
        """Do nothing: a stream stores a part of the outputs, and the plan of all streams is checked."""

    def parameters(self) -> str:
        """Return the parameters of the function."""
        return super().parameters() + ", i64 %step"

    def emit_item(self, item: Item) -> None:
        """Emit an `item`, which may also send values to another stream or receive them."""
        if item.kind not in ("send", "receive") or item.tile is None:
            super().emit_item(item)
            return
        parcel, w = self.messages[item.tile.start], self.w
        flag = f"getelementptr (i8, ptr @shared, i64 {parcel.offset + FLAG_OFFSET})"
        address_of = {
            n.serial: f"getelementptr (i8, ptr @shared, i64 {parcel.value_offset(i, w.bytes)})"
            for i, n in enumerate(parcel.nodes)
        }
        if item.kind == "send":
            for n in parcel.nodes:
                w.store(self.value(n), address_of[n.serial])
            w.do(handover.send_instruction(flag))
        else:
            w.do(handover.await_instruction(flag, self.me))
            for n in item.defines:
                self.value_names[n.serial] = w.load(address_of[n.serial])
