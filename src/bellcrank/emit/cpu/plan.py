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
from bellcrank.graph.columns import Columns

# Latency in cycles, approximately right for today's cores; only the ratios matter.
LATENCY = {
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
WINDOW = 100  # nodes
TILE = 4
MATRIX = 16  # outputs of more elements than this are stored in order and, where they can be, in tiles of eight
WHOLE = 40  # matrices of more elements than this can be stored at once: two and a half vectors of sixteen lanes
_known: WeakKeyDictionary[Graph, dict[int, list[Node]]] = WeakKeyDictionary()  # cost model and printer share orders


def order(graph: Graph, window: int = WINDOW) -> list[Node]:
    """Return all live nodes of `graph` in topological order, scheduled in a `window`; cached, so do not modify it."""
    orders = _known.setdefault(graph, {})
    if window not in orders:
        nodes = _late(graph) if any(isinstance(g, Columns) for g in graph.calls) else graph.nodes
        orders[window] = _ordered(nodes, window)
    return orders[window]


def _late(graph: Graph) -> list[Node]:
    """Order nodes by the first loop or result that needs them.

    Work that a method does for one body after the other, outwards and then inwards, is thus done limb by limb: fewer
    values wait, and they are nearby.
    """
    nodes, (users, _) = graph.nodes, _users(graph.nodes)
    results = {x.serial for array in graph.outputs.values() for x in array.flat if isinstance(x, Node)}
    first = list(range(len(nodes)))  # the first loop or result that needs each node
    for i in range(len(nodes) - 1, -1, -1):
        if users[i] and nodes[i].op != "call":
            first[i] = min([first[u] for u in users[i]] + [i] * (nodes[i].serial in results))
    return [nodes[i] for i in sorted(range(len(nodes)), key=lambda i: (first[i], i))]


def _users(nodes: Sequence[Node]) -> tuple[list[list[int]], list[int]]:
    """Return for each node the indices of its users, and the number of its distinct operands."""
    place = {n.serial: i for i, n in enumerate(nodes)}
    users: list[list[int]] = [[] for _ in nodes]
    missing = [0] * len(nodes)
    for i, n in enumerate(nodes):
        arguments = n.operands
        if len(arguments) > 1 and (len(arguments) > 2 or arguments[0] is arguments[1]):
            arguments = tuple({a.serial: a for a in arguments}.values())
        missing[i] = len(arguments)
        for a in arguments:
            users[place[a.serial]].append(i)
    return users, missing


def _ordered(nodes: Sequence[Node], window: int) -> list[Node]:
    """List scheduling with plain lists and few calls, because every node passes here, some of them three times."""
    total, (users, missing) = len(nodes), _users(nodes)
    urgency = [0.0] * total
    for i in range(total - 1, -1, -1):
        after = 0.0
        for u in users[i]:
            if urgency[u] > after:
                after = urgency[u]
        urgency[i] = LATENCY.get(nodes[i].op, 10.0) + after

    push, pop = heapq.heappush, heapq.heappop
    result: list[Node] = []
    done = bytearray(total)
    ready: list[tuple[float, int]] = []
    first, horizon, limit = 0, 0, min(total, window)
    while first < total:
        while horizon < limit:
            if not missing[horizon]:
                push(ready, (-urgency[horizon], horizon))
            horizon += 1
        i = pop(ready)[1]
        result.append(nodes[i])
        done[i] = 1
        for u in users[i]:
            missing[u] -= 1
            if not missing[u] and u < horizon:
                push(ready, (-urgency[u], u))
        if i == first:
            while first < total and done[first]:
                first += 1
            limit = min(total, first + window)
    return result


@dataclass(frozen=True)
class Tile:
    """Columns [start, start + width) of one array."""

    array: str
    start: int
    width: int

    @property
    def whole(self) -> bool:
        """True for a matrix that is stored at once by row_code.py."""
        return self.width > WHOLE


@dataclass
class Item:
    """A step of straight-line code: the nodes that it defines and uses, and the tile that it moves."""

    kind: str  # load, op, trig, call or store; in emit/cores/streams.py also send and receive
    defines: list[Node] = field(default_factory=list)
    uses: list[Node] = field(default_factory=list)
    tile: Tile | None = None


def tiles(array: str, size: int, widths: Sequence[int] = (TILE,), begin: int = 0) -> list[Tile]:
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
    left = size - start
    if left == 3 and start > begin:
        result.append(Tile(array, size - TILE, TILE))
    elif left:
        result.append(Tile(array, start, left))
    return result


def items(
    graph: Graph, order: Sequence[Node], written: Mapping[str, set[int]] | None = None, whole: bool = False
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
    whole
        True to store matrices at once.
    """
    line = _Line(graph, order, written or {}, whole)
    for group in trig_groups(order):
        needed = ancestors([n.operands[0] for n in group])
        for node in order:
            if node.serial in needed and node.op not in ("sin", "cos"):
                line.emit(node)
        line.add(Item("trig", group, unique([n.operands[0] for n in group])))
    for node in order:
        line.emit(node)
    return [*line.items, *line.unused(), *line.stores.constant()]


class _Line:
    """Items so far, and the nodes that they define and tiles that they load."""

    def __init__(self, graph: Graph, order: Sequence[Node], written: Mapping[str, set[int]], whole: bool) -> None:
        self.items: list[Item] = []
        self.stores = _Stores(graph, written, whole)
        self.done: set[int] = set()
        self.loaded: set[Tile] = set()
        self.tile_of = {
            (name, column): tile
            for name, shape in graph.inputs.items()
            for tile in reversed(tiles(name, math.prod(shape)))
            for column in range(tile.start, tile.start + tile.width)
        }
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
        self.items += self.stores.ready(item.defines)

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


def ahead(sequence: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """Split `sequence` for software pipelining: the first sines and cosines with their operands, and the rest."""
    at = next((i for i, item in enumerate(sequence) if item.kind == "trig"), None)
    if at is None:
        return [], list(sequence)
    needed = {n.serial for item in sequence[at + 1 :] for n in item.uses}
    rest = list(sequence[at + 1 :])
    for item in reversed(sequence[:at]):
        if item.kind == "store" or any(n.serial in needed for n in item.defines):
            needed.update(n.serial for n in item.uses)
            rest.insert(0, item)
    return [item for item in sequence[: at + 1] if item.kind != "store"], rest


class _Stores:
    """Output tiles, released when their last column is known."""

    def __init__(self, graph: Graph, written: Mapping[str, set[int]], whole: bool) -> None:
        self.waiting: dict[int, list[int]] = {}
        self.items: list[Item] = []
        self.missing: list[set[int]] = []
        for name, array in graph.outputs.items():
            flat = list(array.flat)
            widths = (2 * TILE, TILE) if len(flat) > MATRIX else (TILE,)
            size = math.prod(array.shape[-2:])
            rest = runs([k for k in range(len(flat)) if k not in written.get(name, ())])
            cut = [t for begin, end in rest for t in tiles(name, end, widths, begin)]
            matrices = [Tile(name, start, size) for start in range(0, len(flat), size)] if whole else []
            for tile in matrices if size > WHOLE and matrices else cut:
                nodes = [x for x in flat[tile.start : tile.start + tile.width] if isinstance(x, Node)]
                self.items.append(Item("store", uses=nodes, tile=tile))
                self.missing.append({n.serial for n in nodes})
                for n in nodes:
                    self.waiting.setdefault(n.serial, []).append(len(self.items) - 1)

    def ready(self, nodes: Sequence[Node]) -> list[Item]:
        """Return the stores that become possible when `nodes` are known."""
        found = []
        for n in nodes:
            for k in self.waiting.get(n.serial, ()):
                if n.serial in self.missing[k]:
                    self.missing[k].discard(n.serial)
                    if not self.missing[k]:
                        found.append(self.items[k])
        return found

    def constant(self) -> list[Item]:
        """Return the stores of constants."""
        return [item for item in self.items if not item.uses]


def runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """Return the ranges [begin, end) of consecutive numbers in the ascending `places`."""
    found: list[tuple[int, int]] = []
    for k in places:
        if found and found[-1][1] == k:
            found[-1] = found[-1][0], k + 1
        else:
            found.append((k, k + 1))
    return found


def trig_groups(order: Sequence[Node]) -> list[list[Node]]:
    """Group the sines and cosines in `order` by level: those of one level do not depend on each other."""
    level: dict[int, int] = {}
    groups: dict[int, list[Node]] = {}
    for node in order:
        depth = 0
        for a in node.operands:
            if (mine := level.get(a.serial, 0)) > depth:
                depth = mine
        if node.op in ("sin", "cos"):
            groups.setdefault(depth, []).append(node)
            depth += 1
        level[node.serial] = depth
    return [groups[k] for k in sorted(groups)]


def ancestors(nodes: Sequence[Node]) -> set[int]:
    """Return the serial numbers of `nodes` and all their ancestors."""
    found: set[int] = set()
    stack = list(nodes)
    while stack:
        n = stack.pop()
        if n.serial not in found:
            found.add(n.serial)
            stack.extend(n.operands)
    return found


def unique(nodes: Sequence[Node]) -> list[Node]:
    """Return `nodes` without duplicates."""
    return list({n.serial: n for n in nodes}.values())


def chunks(sequence: Sequence[Item], limit: int) -> list[list[Item]]:
    """Slice `sequence` into chunks of about equal length with at most `limit` items."""
    count = max(1, -(-len(sequence) // limit))
    size = max(1, -(-len(sequence) // count))
    return [list(sequence[i : i + size]) for i in range(0, len(sequence), size)] or [[]]
