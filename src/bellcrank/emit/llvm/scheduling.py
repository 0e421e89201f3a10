"""Instruction scheduling of a graph: the order of its nodes, and the items of straight-line code.

The items are loads, operations, sines and cosines, and stores. The order of creation is a good start: a method sweeps
body by body, so live ranges are short and registers suffice. Within a window of this order, the node that heads the
longest dependent path goes first, so that a processor which looks a few hundred instructions ahead always finds
something to do. A wider window gains nothing more and causes spills.

Inputs and outputs move in tiles of a few columns, because a batch is transposed between rows of states and lanes of
one quantity. All sines and cosines that can be computed together are one item: a vector of them costs as much as one.
The list is then cut into chunks that become functions of their own, so that compile time grows linearly with the graph
and not quadratically. The sines and cosines of a block of states can be separated, to be computed during the block
before.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from bellcrank.graph import Graph, Node

# Latency in cycles, approximately right for today's cores; only the ratios matter.
LATENCY_CYCLES = {
    "add": 3.0,
    "sub": 3.0,
    "mul": 3.5,
    "div": 15.0,
    "sqrt": 20.0,
    "neg": 0.0,
    "sin": 60.0,
    "cos": 60.0,
    "input": 5.0,
    "call": 500.0,
    "result": 5.0,
}
WINDOW_NODES = 100  # nodes
TILE_COLUMNS = 4
MATRIX_ELEMENTS = 16  # outputs of more elements than this are stored in order and, where they can be, in tiles of eight
# Matrices of more elements than this can be stored at once: two and a half vectors of sixteen lanes.
WHOLE_STORE_ELEMENTS = 40
# Cost model and printer share orders.
_cached_orders: WeakKeyDictionary[Graph, dict[tuple[int, bool], list[Node]]] = WeakKeyDictionary()


def order(graph: Graph, window: int = WINDOW_NODES, late: bool = False) -> list[Node]:
    """Return all live nodes of `graph` in topological order, scheduled in a `window`; cached, so do not modify it.

    If `late`, nodes are first ordered by the first call or result that needs them.
    """
    orders = _cached_orders.setdefault(graph, {})
    if (window, late) not in orders:
        orders[window, late] = _list_schedule(_delay_nodes(graph) if late else graph.nodes, window)
    return orders[window, late]


def _delay_nodes(graph: Graph) -> list[Node]:
    """Order nodes by the first loop or result that needs them.

    Work that a method does for one body after the other, outwards and then inwards, is thus done branch by branch:
    fewer values wait, and they are nearby.
    """
    nodes, (users, _) = graph.nodes, _users_and_counts(graph.nodes)
    results = {x.serial for array in graph.outputs.values() for x in array.flat if isinstance(x, Node)}
    first_use = list(range(len(nodes)))  # the first loop or result that needs each node
    for i in range(len(nodes) - 1, -1, -1):
        if users[i] and nodes[i].op != "call":
            first_use[i] = min([first_use[u] for u in users[i]] + [i] * (nodes[i].serial in results))
    return [nodes[i] for i in sorted(range(len(nodes)), key=lambda i: (first_use[i], i))]


def _users_and_counts(nodes: Sequence[Node]) -> tuple[list[list[int]], list[int]]:
    """Return for each node the indices of its users, and the number of its distinct operands."""
    position = {n.serial: i for i, n in enumerate(nodes)}
    users: list[list[int]] = [[] for _ in nodes]
    operand_counts = [0] * len(nodes)
    for i, n in enumerate(nodes):
        arguments = n.operands
        if len(arguments) > 1 and (len(arguments) > 2 or arguments[0] is arguments[1]):
            arguments = tuple({a.serial: a for a in arguments}.values())
        operand_counts[i] = len(arguments)
        for a in arguments:
            users[position[a.serial]].append(i)
    return users, operand_counts


def _list_schedule(nodes: Sequence[Node], window: int) -> list[Node]:
    """List scheduling with plain lists and few calls, because every node passes here, some of them three times."""
    total, (users, operand_counts) = len(nodes), _users_and_counts(nodes)
    critical_path_cycles = [0.0] * total
    for i in range(total - 1, -1, -1):
        longest_after = 0.0
        for u in users[i]:
            if critical_path_cycles[u] > longest_after:
                longest_after = critical_path_cycles[u]
        critical_path_cycles[i] = LATENCY_CYCLES.get(nodes[i].op, 10.0) + longest_after

    push, pop = heapq.heappush, heapq.heappop
    result: list[Node] = []
    is_done = bytearray(total)
    ready: list[tuple[float, int]] = []
    first_pending, horizon, limit = 0, 0, min(total, window)
    while first_pending < total:
        while horizon < limit:
            if not operand_counts[horizon]:
                push(ready, (-critical_path_cycles[horizon], horizon))
            horizon += 1
        i = pop(ready)[1]
        result.append(nodes[i])
        is_done[i] = 1
        for u in users[i]:
            operand_counts[u] -= 1
            if not operand_counts[u] and u < horizon:
                push(ready, (-critical_path_cycles[u], u))
        if i == first_pending:
            while first_pending < total and is_done[first_pending]:
                first_pending += 1
            limit = min(total, first_pending + window)
    return result


@dataclass(frozen=True)
class Tile:
    """Columns [start, start + width) of one array."""

    array: str
    start: int
    width: int

    @property
    def is_matrix(self) -> bool:
        """True for a matrix that is stored at once by transpose_store.py."""
        return self.width > WHOLE_STORE_ELEMENTS


@dataclass
class Item:
    """A step of straight-line code: the nodes that it defines and uses, and the tile that it moves."""

    kind: str  # load, op, trig, call or store; in emit/cores/streams.py also send and receive
    defines: list[Node] = field(default_factory=list)
    uses: list[Node] = field(default_factory=list)
    tile: Tile | None = None


def tiles(array: str, size: int, widths: Sequence[int] = (TILE_COLUMNS,), begin: int = 0) -> list[Tile]:
    """Divide an array into tiles of `widths` (fours by default) and a rest; a rest of three overlaps its neighbour.

    Parameters
    ----------
    array
        Name of the array.
    size
        End of the range to cover.
    widths
        Widths of tiles, widest first.
    begin
        Start of the range to cover.
    """
    result, start = [], begin
    for width in widths:
        while start + width <= size:
            result.append(Tile(array, start, width))
            start += width
    rest_width = size - start
    if rest_width == 3 and start > begin:
        result.append(Tile(array, size - TILE_COLUMNS, TILE_COLUMNS))
    elif rest_width:
        result.append(Tile(array, start, rest_width))
    return result


def input_tiles(graph: Graph) -> dict[tuple[str, int], Tile]:
    """Return the tile of each element of the inputs of `graph`."""
    return {
        (name, column): tile
        for name, shape in graph.inputs.items()
        for tile in reversed(tiles(name, math.prod(shape)))
        for column in range(tile.start, tile.start + tile.width)
    }


def items(
    graph: Graph, order: Sequence[Node], written: Mapping[str, set[int]] | None = None, whole_matrices: bool = False
) -> list[Item]:
    """Return the items of all nodes in an executable order; loads are as late and stores as early as possible.

    Parameters
    ----------
    graph
        The graph.
    order
        Its nodes, scheduled.
    written
        Elements of outputs that called functions store.
    whole_matrices
        True to store matrices at once.
    """
    builder = _ItemBuilder(graph, order, written or {}, whole_matrices)
    for group in trig_groups(order):
        needed = ancestors([n.operands[0] for n in group])
        for node in order:
            if node.serial in needed and node.op not in ("sin", "cos"):
                builder.emit(node)
        builder.add(Item("trig", group, unique([n.operands[0] for n in group])))
    for node in order:
        builder.emit(node)
    return [*builder.items, *builder.unused(), *builder.store_items.constant()]


class _ItemBuilder:
    """Items so far, and the nodes that they define and tiles that they load."""

    def __init__(
        self, graph: Graph, order: Sequence[Node], written: Mapping[str, set[int]], whole_matrices: bool
    ) -> None:
        self.items: list[Item] = []
        self.store_items = _StoreItems(graph, written, whole_matrices)
        self.done: set[int] = set()
        self.loaded: set[Tile] = set()
        self.tile_of = input_tiles(graph)
        self.inputs: dict[Tile, list[Node]] = {}
        self.results: dict[int, list[Node]] = {}
        for n in order:
            if n.op == "input":
                self.inputs.setdefault(self.tile_of[n.args], []).append(n)
            elif n.op == "result":
                self.results.setdefault(n.args[0].serial, []).append(n)

    def add(self, item: Item) -> None:
        """Append `item`, and the stores that it makes possible."""
        self.items.append(item)
        self.done.update(n.serial for n in item.defines)
        self.items += self.store_items.ready(item.defines)

    def emit(self, node: Node) -> None:
        """Append `node` unless it is done, after the inputs that it needs."""
        if node.serial in self.done:
            return
        for a in (node, *node.operands):
            if a.op == "input" and a.serial not in self.done:
                self._load(a)
        if node.op == "call":
            self.add(Item("call", [node, *self.results[node.serial]], list(node.operands)))
        elif node.op != "input":
            self.add(Item("op", [node], list(node.operands)))

    def _load(self, node: Node) -> None:
        tile = self.tile_of[node.args]
        if tile not in self.loaded:
            self.loaded.add(tile)
            self.add(Item("load", defines=self.inputs[tile], tile=tile))

    def unused(self) -> list[Item]:
        """Return loads of unused tiles, which are still checked for NaN."""
        return [Item("load", tile=tile) for tile in dict.fromkeys(self.tile_of.values()) if tile not in self.loaded]


def split_trig(sequence: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """Split `sequence` for software pipelining: the first sines and cosines with their operands, and the rest."""
    trig_index = next((i for i, item in enumerate(sequence) if item.kind == "trig"), None)
    if trig_index is None:
        return [], list(sequence)
    needed = {n.serial for item in sequence[trig_index + 1 :] for n in item.uses}
    remaining = list(sequence[trig_index + 1 :])
    for item in reversed(sequence[:trig_index]):
        if item.kind == "store" or any(n.serial in needed for n in item.defines):
            needed.update(n.serial for n in item.uses)
            remaining.insert(0, item)
    return [item for item in sequence[: trig_index + 1] if item.kind != "store"], remaining


class _StoreItems:
    """Output tiles, released when their last column is known."""

    def __init__(self, graph: Graph, written: Mapping[str, set[int]], whole_matrices: bool) -> None:
        self.stores_of_node: dict[int, list[int]] = {}
        self.items: list[Item] = []
        self.missing_columns: list[set[int]] = []
        for name, array in graph.outputs.items():
            flat = list(array.flat)
            widths = (2 * TILE_COLUMNS, TILE_COLUMNS) if len(flat) > MATRIX_ELEMENTS else (TILE_COLUMNS,)
            size = math.prod(array.shape[-2:])
            free_ranges = consecutive_ranges([k for k in range(len(flat)) if k not in written.get(name, ())])
            column_tiles = [t for begin, end in free_ranges for t in tiles(name, end, widths, begin)]
            matrices = [Tile(name, start, size) for start in range(0, len(flat), size)] if whole_matrices else []
            for tile in matrices if size > WHOLE_STORE_ELEMENTS and matrices else column_tiles:
                nodes = [x for x in flat[tile.start : tile.start + tile.width] if isinstance(x, Node)]
                self.items.append(Item("store", uses=nodes, tile=tile))
                self.missing_columns.append({n.serial for n in nodes})
                for n in nodes:
                    self.stores_of_node.setdefault(n.serial, []).append(len(self.items) - 1)

    def ready(self, nodes: Sequence[Node]) -> list[Item]:
        """Return the stores that become possible when `nodes` are known."""
        stores = []
        for n in nodes:
            for k in self.stores_of_node.get(n.serial, ()):
                if n.serial in self.missing_columns[k]:
                    self.missing_columns[k].discard(n.serial)
                    if not self.missing_columns[k]:
                        stores.append(self.items[k])
        return stores

    def constant(self) -> list[Item]:
        """Return the stores of constants."""
        return [item for item in self.items if not item.uses]


def consecutive_ranges(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return the ranges [begin, end) of consecutive numbers in the ascending `numbers`."""
    ranges: list[tuple[int, int]] = []
    for k in numbers:
        if ranges and ranges[-1][1] == k:
            ranges[-1] = ranges[-1][0], k + 1
        else:
            ranges.append((k, k + 1))
    return ranges


def trig_groups(order: Sequence[Node]) -> list[list[Node]]:
    """Group the sines and cosines in `order` by level: those of one level do not depend on each other."""
    level: dict[int, int] = {}
    groups: dict[int, list[Node]] = {}
    for node in order:
        depth = 0
        for a in node.operands:
            if (operand_level := level.get(a.serial, 0)) > depth:
                depth = operand_level
        if node.op in ("sin", "cos"):
            groups.setdefault(depth, []).append(node)
            depth += 1
        level[node.serial] = depth
    return [groups[k] for k in sorted(groups)]


def ancestors(nodes: Sequence[Node]) -> set[int]:
    """Return the serial numbers of `nodes` and all their ancestors."""
    serials: set[int] = set()
    stack = list(nodes)
    while stack:
        n = stack.pop()
        if n.serial not in serials:
            serials.add(n.serial)
            stack.extend(n.operands)
    return serials


def unique(nodes: Sequence[Node]) -> list[Node]:
    """Return `nodes` without duplicates."""
    return list({n.serial: n for n in nodes}.values())


def chunks(sequence: Sequence[Item], limit: int) -> list[list[Item]]:
    """Slice `sequence` into chunks of about equal length with at most `limit` items."""
    count = max(1, -(-len(sequence) // limit))
    size = max(1, -(-len(sequence) // count))
    return [list(sequence[i : i + size]) for i in range(0, len(sequence), size)] or [[]]
