"""Cells of a recursion over a tree: the computation at one node, shared by all identical bodies.

A Cell is a graph of its own. It takes its elements of the inputs, a row `p` of a table of constants, and values from
its neighbours in the tree; it returns values for its neighbours and its elements of the result. Values between
neighbours travel in channels. The channels follow each other, each over the whole tree: outwards from parents to
children, or inwards.

`loop_fission` applies loop fission: it splits a cell into the bodies of the loops that a processor runs, one for each
channel. Every operation runs in the first loop in which all its operands are known or needed; values that a later loop
uses again are stored. Sines and cosines that do not depend on a neighbour are computed for all cells together, because
that is cheap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bellcrank.graph.graph import Graph, value_array
from bellcrank.nodes.node import Node, Value
from bellcrank.nodes.ops import COMPARISONS
from bellcrank.nodes.tape import PARAMETERS, Tape

RESULT = "y"
ANGLES_CHANNEL = -1  # channel number of the loop that runs before all channels


def channel_input(channel: int, child: int | None = None) -> str:
    """Return the name of the cell input for a `channel`, from the parent, or from a `child`."""
    return f"from{channel}" if child is None else f"from{channel}.{child}"


def channel_output(channel: int) -> str:
    """Return the name of the cell output that goes into a `channel`."""
    return f"to{channel}"


@dataclass(frozen=True, eq=False)
class Cell:
    """The computation at one place of the tree.

    `outwards` is the direction of each channel, `children` the number of children that send values inwards.
    """

    graph: Graph
    outwards: tuple[bool, ...]
    children: int
    on_ground: bool = False

    def sources(self, channel: int) -> list[str]:
        """Return the names of the inputs that arrive through a `channel`."""
        if self.outwards[channel]:
            return [] if self.on_ground else [channel_input(channel)]
        return [channel_input(channel, j) for j in range(self.children)]


class CellOperand(NamedTuple):
    """Location where a loop reads or writes a number.

    kind: "input" (name, element of it), "output" (its element), "table" (column), "kept" (field), "parent" and "child"
    (channel, element, and which child), "handed" (channel, element), "angle", "sine" and "cosine" (of which angle).
    """

    kind: str
    name: str = ""
    element: int = 0
    child: int = 0


@dataclass(frozen=True, eq=False)
class LoopBody:
    """Body of one loop for one cell: reads x from `reads`, computes y, and writes y to `writes`."""

    graph: Graph
    reads: tuple[CellOperand, ...]
    writes: tuple[CellOperand, ...]


@dataclass(frozen=True, eq=False)
class CellLoops:
    """A cell after loop fission.

    `angles` runs before all channels and computes the angles of sines and cosines; `bodies` has one entry per channel.
    """

    angles: LoopBody
    bodies: tuple[LoopBody, ...]
    stored_values: int
    angle_count: int  # number of angles

    def body(self, channel: int) -> LoopBody:
        """Return the loop body of a `channel`, or of ANGLES_CHANNEL."""
        return self.angles if channel == ANGLES_CHANNEL else self.bodies[channel]


def operand_of(node: Node) -> CellOperand:
    """Return the location from which the input `node` of a cell is read."""
    name, element = node.args
    if name == PARAMETERS:
        return CellOperand("table", "", element)
    if not name.startswith("from"):
        return CellOperand("input", name, element)
    channel, _, child = name.removeprefix("from").partition(".")
    return CellOperand("child", channel, element, int(child)) if child else CellOperand("parent", channel, element)


def _arrives(node: Node) -> int:
    """Return the loop in which an input is known: 0, or that of its channel."""
    operand = operand_of(node)
    return int(operand.name) if operand.kind in ("parent", "child") else 0


def loop_fission(cell: Cell, wanted: Sequence[Sequence[bool]]) -> CellLoops:
    """Split a `cell` into one loop body per channel (loop fission).

    Parameters
    ----------
    cell
        The cell.
    wanted
        For each channel, a flag for each of its elements: true if any cell reads it.
    """
    g, loops = cell.graph, len(cell.outwards)
    dependent = _dependent_nodes(g)
    # These sines and cosines can be computed before all loops.
    independent_sines = [n for n in g.nodes if n.op in ("sin", "cos") and n.serial not in dependent]
    angle_index = {a: i for i, a in enumerate(dict.fromkeys(n.operands[0] for n in independent_sines))}
    sine_operands = {
        n.serial: CellOperand("sine" if n.op == "sin" else "cosine", "", angle_index[n.operands[0]])
        for n in independent_sines
    }
    return _LoopFission(g, sine_operands).split(_loop_results(g, loops, wanted), angle_index, loops)


def _dependent_nodes(g: Graph) -> set[int]:
    """Return the serial numbers of all nodes that depend on a neighbour, or on the sine or cosine of another angle.

    The sines of all cells are computed together before the first loop, so no angle may depend on a sine.
    """
    dependent: set[int] = set()
    for n in g.nodes:
        from_neighbour = n.op == "input" and operand_of(n).kind in ("parent", "child")
        if from_neighbour or any(a.serial in dependent or a.op in ("sin", "cos") for a in n.operands):
            dependent.add(n.serial)
    return dependent


def _loop_results(g: Graph, loops: int, wanted: Sequence[Sequence[bool]]) -> list[list[tuple[Value, CellOperand]]]:
    """Return the values that each loop must produce, and where each is written."""
    arrives: dict[int, int] = {}
    for n in g.nodes:
        arrives[n.serial] = _arrives(n) if n.op == "input" else max(arrives[a.serial] for a in n.operands)
    goals: list[list[tuple[Value, CellOperand]]] = []
    for k in range(loops):
        outgoing = g.outputs[channel_output(k)].flat
        goals.append([(x, CellOperand("handed", str(k), e)) for e, x in enumerate(outgoing) if wanted[k][e]])
    for j, x in enumerate(g.outputs[RESULT].flat):
        goals[arrives[x.serial] if isinstance(x, Node) else 0].append((x, CellOperand("output", RESULT, j)))
    return goals


class _LoopFission:
    """Assignment of the nodes of one cell to loops."""

    def __init__(self, g: Graph, given: dict[int, CellOperand]) -> None:
        self.g, self.preset_operands = g, given  # given: nodes whose value is read from a fixed location
        self.stored_slots: dict[int, int] = {}

    def split(self, goals: list[list[tuple[Value, CellOperand]]], angles: dict[Node, int], loops: int) -> CellLoops:
        angle_body = self.loop_body(list(angles), [CellOperand("angle", "", i) for i in angles.values()], {}, 0)
        loop_of = self.assign_loops(goals)
        last_use = self.last_uses(goals, loop_of)
        for n in self.g.nodes:
            if n.serial in loop_of and not self.is_rereadable(n) and loop_of[n.serial] < last_use.get(n.serial, 0):
                self.stored_slots[n.serial] = len(self.stored_slots)
        bodies = []
        for k in range(loops):
            stored_here = [n for n in self.g.nodes if n.serial in self.stored_slots and loop_of[n.serial] == k]
            values = [*stored_here, *(x for x, _ in goals[k])]
            places = [
                *(CellOperand("kept", "", self.stored_slots[n.serial]) for n in stored_here),
                *(p for _, p in goals[k]),
            ]
            bodies.append(self.loop_body(values, places, loop_of, k))
        return CellLoops(angle_body, tuple(bodies), len(self.stored_slots), len(angles))

    def last_uses(self, goals: list[list[tuple[Value, CellOperand]]], loop_of: dict[int, int]) -> dict[int, int]:
        """Return the last loop that uses each node."""
        last_use: dict[int, int] = {}
        for k, results in enumerate(goals):
            last_use |= {x.serial: k for x, _ in results if isinstance(x, Node)}
        for n in self.g.nodes:
            if n.serial in loop_of and n.serial not in self.preset_operands:
                for a in n.operands:
                    last_use[a.serial] = max(last_use.get(a.serial, 0), loop_of[n.serial])
        return last_use

    def is_rereadable(self, n: Node) -> bool:
        """Return true if any loop can read the node again from an input or a table."""
        if n.serial in self.preset_operands:
            return True
        return n.op == "input" and operand_of(n).kind in ("input", "table")

    def assign_loops(self, goals: list[list[tuple[Value, CellOperand]]]) -> dict[int, int]:
        """Assign every needed node to the first loop that uses it."""
        loop_of: dict[int, int] = {}
        for k, results in enumerate(goals):
            for x, _ in results:
                if isinstance(x, Node):
                    loop_of[x.serial] = min(loop_of.get(x.serial, k), k)
        for n in reversed(self.g.nodes):
            if n.serial in loop_of:
                if n.op == "input" and not self.is_rereadable(n):
                    loop_of[n.serial] = _arrives(n)
                if n.serial not in self.preset_operands:
                    for a in n.operands:
                        loop_of[a.serial] = min(loop_of.get(a.serial, loop_of[n.serial]), loop_of[n.serial])
        return loop_of

    def loop_body(
        self, values: Sequence[Value], places: Sequence[CellOperand], loop_of: dict[int, int], k: int
    ) -> LoopBody:
        """Return the graph of one loop, on a tape of its own."""
        tape, reads = Tape(), list[CellOperand]()
        known: dict[int, Any] = {}

        def read(place: CellOperand) -> Node:
            reads.append(place)
            return tape.node("input", "x", len(reads) - 1)

        live = {n.serial for n in values if isinstance(n, Node)}
        for n in reversed(self.g.nodes):  # the ancestors of the values that this loop computes
            if n.serial in live and n.serial not in self.preset_operands and loop_of.get(n.serial, k) == k:
                live.update(a.serial for a in n.operands)
        for n in self.g.nodes:
            if n.serial not in live:
                continue
            if n.serial in self.preset_operands:
                known[n.serial] = read(self.preset_operands[n.serial])
            elif n.serial in self.stored_slots and loop_of.get(n.serial, k) < k:
                place = read(CellOperand("kept", "", self.stored_slots[n.serial]))
                known[n.serial] = tape.node("lt", 0.5, place) if n.op in COMPARISONS else place
            elif n.op == "input":
                known[n.serial] = read(operand_of(n))
            else:
                known[n.serial] = tape.node(n.op, *(known[a.serial] if isinstance(a, Node) else a for a in n.args))
        outputs = value_array([_number(tape, known[x.serial]) if isinstance(x, Node) else x for x in values])
        graph = Graph(f"{self.g.name}.{k}", {"x": (len(reads),)}, {"y": outputs}, tape)
        return LoopBody(graph, tuple(reads), tuple(places))


def _number(tape: Tape, x: Node) -> Node:
    """Return a value as a number: a comparison is stored between loops as 1 or 0."""
    return tape.node("where", x, 1.0, 0.0) if x.op in COMPARISONS else x
