"""Graph to C99: one .c and one .h that need only libm, allocate nothing and are readable.

    void arm_forward_dynamics(const double *restrict q, const double *restrict v, ..., double *restrict out);

A scalar is named after the step that computes it (`IA_boom_3`). A large graph is split into static functions, because
compile time grows faster than linearly with the size of a function; values that cross function boundaries lie in an
array on the stack. A graph that is called becomes one static function; package.py puts several graphs into one file.
Where there are many identical parts (docs/size.md), they are rolled loops with tables of constants: rolled_text.py,
strip_text.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from bellcrank import quoting
from bellcrank.emit.c import turns
from bellcrank.emit.c.elimination_text import EliminationText
from bellcrank.emit.c.rolled_text import RolledText
from bellcrank.emit.c.routine import (
    LONGEST_LABEL,
    LONGEST_NAME,
    MEMORY,
    REALS,
    SPELL,
    TWINS,
    Declaration,
    Routine,
    fresh,
)
from bellcrank.emit.c.strip_text import StripText
from bellcrank.errors import InputError, unknown
from bellcrank.graph import Graph, Node, Recursion
from bellcrank.graph.elimination import Loops
from bellcrank.graph.strip_parts import stripped
from bellcrank.nodes.ops import COMPARISONS
from bellcrank.quoting import comment, identifier

__all__ = ["SPELL", "Text", "source", "texts"]
MOST_STATEMENTS = 2000  # statements of one function


def source(
    graph: Graph, dtype: str = "float64", name: str | None = None, columns: Mapping[str, Sequence[str]] | None = None
) -> dict[str, str]:
    """Return {file name: text} of a header and a C file.

    Parameters
    ----------
    graph
        Graph to export.
    dtype
        "float64" or "float32".
    name
        Name of the function and its files; by default that of the graph.
    columns
        Names of the elements of arrays, for the header's comment.
    """
    if dtype not in REALS:
        raise InputError(unknown("dtype", dtype, REALS))
    word = quoting.source(name or graph.name)[:LONGEST_NAME]
    called, (text,) = texts({word: graph}, dtype)
    code = [f"/* {text.title} */", f'#include "{word}.h"\n', "#include <math.h>\n", *codes([*called, text])]
    return {f"{word}.h": text.header(columns or {}), f"{word}.c": "\n".join(code)}


def codes(routines: Sequence[Routine]) -> list[str]:
    """Return the C code of all `routines`, preceded by their shared functions."""
    turning = next((t for t in routines if t.turns), None)
    shared = [turns.function(*turning.turning, turning.dtype)] if turning is not None else []
    return [*shared, *(t.code() for t in routines)]


def texts(
    graphs: Mapping[str, Graph], dtype: str, taken: Mapping[str, int] | None = None, static: bool = False
) -> tuple[list[Routine], ...]:
    """Return the functions that the graphs call, callees first, and the functions of the graphs themselves.

    Parameters
    ----------
    graphs
        Graphs by function name.
    dtype
        Type of the numbers.
    taken
        Other names in the file.
    static
        Make the graphs' own functions static, too.
    """
    for recursion in (g for g in graphs.values() if isinstance(g, Recursion)):
        recursion.check_whole()
    public, names = {id(g): name for name, g in graphs.items()}, dict(taken or {}) | dict.fromkeys(graphs, 0)
    inner = {id(g): g for graph in graphs.values() for g in graph.functions}
    words = {key: public.get(key) or fresh(identifier(g.name)[:LONGEST_NAME], names) for key, g in inner.items()}
    known, turning = dict[int, Routine](), (fresh("turned", names), fresh("turned_far", names))
    for key, g in inner.items():
        known[key] = routine(g, Declaration(dtype, words[key], known, names, static or key not in public, turning))
    mine = []
    for name, g in graphs.items():
        own = Declaration(dtype, name, known, names, static, turning)
        mine.append(known[id(g)] if words.get(id(g)) == name else routine(g, own))
    return [text for key, text in known.items() if key not in public], mine


def routine(graph: Graph, d: Declaration) -> Routine:
    """Return the C function of `graph`, declared as `d`: rolled loops over identical parts, or straight lines."""
    if isinstance(graph, Recursion):
        return RolledText(graph, d)
    if isinstance(graph, Loops):
        return EliminationText(graph, d)
    if (made := stripped(graph)) is not None:
        return StripText(graph, d, made)
    return Text(graph, d)


def pieces(nodes: Sequence[Node], count: int, tied: Set[int]) -> list[Sequence[Node]]:
    """Return `nodes` in `count` nearly equal pieces.

    Results of a call stay with their call, and a node in `tied` stays with the node before.
    """
    ends = [len(nodes) * k // count for k in range(count + 1)]
    for k, end in enumerate(ends):
        while end < len(nodes) and (nodes[end].op == "result" or nodes[end].serial in tied):
            end += 1
        ends[k] = end
    return [nodes[a:b] for a, b in pairwise(ends)]


class Turned:
    """Sines and cosines that are computed together."""

    def __init__(self, nodes: Sequence[Node], taken: dict[str, int]) -> None:
        self.nodes, self.angles = nodes, list({n.args[0].serial: n.args[0] for n in nodes}.values())
        self.size = -(-len(self.angles) // turns.FOUR) * turns.FOUR
        self.arrays = {x: fresh(x, taken, numbered=True) for x in ("sin", "cos")}

    def place(self, n: Node) -> str:
        """Return the array element that holds the sine or cosine `n`."""
        return f"{self.arrays[n.op]}[{self.angles.index(n.args[0])}]"

    def call(self, text: Text) -> list[str]:
        """Return the statements that compute them, in the function `text`."""
        sine, cosine = self.arrays.values()
        # pad with the last angle: gcc would load a constant 0 from memory
        angles = [*self.angles, *[self.angles[-1]] * (self.size - len(self.angles))]
        values = [text.value(x) for x in angles]
        rooms = [f"{text.real} {name}[{self.size}];" for name in self.arrays.values()]
        fours = range(0, self.size, turns.FOUR)
        calls = [(", ".join(values[k : k + turns.FOUR]), f" + {k}" if k else "") for k in fours]
        return [*rooms, *(f"{text.turning[0]}({given}, {sine}{at}, {cosine}{at});" for given, at in calls)]


class Text(Routine):
    """One graph as a function of straight-line code."""

    def __init__(self, graph: Graph, d: Declaration) -> None:
        super().__init__(graph, d)
        twins = {(n.op, n.args): n for n in graph.nodes if n.op in TWINS}
        pairs = ((n, twins.get((TWINS.get(n.op, ""), n.args))) for n in graph.nodes if n.op != "input")
        every = list({n.serial: n for pair in pairs for n in pair if n is not None}.values())
        taken, self.workspace = self.taken, fresh("w", self.taken)
        nodes, groups = turns.gathered(every)
        self.turned = {group[0].serial: Turned(group, taken) for group in groups}
        self.place_of = {n.serial: turn.place(n) for turn in self.turned.values() for n in turn.nodes}
        self.turns = bool(groups)
        self.cut(nodes, max(1, -(-len(nodes) // MOST_STATEMENTS)))
        self.functions = [fresh(f"{self.name}_part", taken, numbered=True) for _ in self.parts]
        self.calls = {n.serial: self.arrays_of(n, taken) for n in nodes if n.op == "call"}
        self.names |= {n.serial: f"{self.inputs[n.args[0]]}[{n.args[1]}]" for n in graph.nodes if n.op == "input"}
        for n in nodes:
            word = f"{n.op} {self.names[n.args[0].serial]}" if n.op in TWINS else n.label
            self.names[n.serial] = fresh(identifier(word)[:LONGEST_LABEL], taken, numbered=n.op not in TWINS)

        least = turns.LOOP if groups else Routine.loops
        called = {self.known[id(g)].loops for g in graph.calls} | {least}
        self.loops = max(called, key=list(MEMORY).index)

    def arrays_of(self, call: Node, taken: dict[str, int]) -> list[tuple[str, list[Any]]]:
        """Return name and elements of every array of a called function; result arrays have no elements.

        An input of this graph that is passed on unchanged is not copied.

        Parameters
        ----------
        call
            Call node.
        taken
            Names in use.
        """
        function, *values = call.args
        word, at, found = fresh(identifier(function.name)[:LONGEST_LABEL], taken, numbered=True), 0, []
        for key, shape in function.inputs.items():
            mine, at = values[at : at + math.prod(shape)], at + math.prod(shape)
            whole = next((x for x in self.graph.inputs if mine and mine == self.elements(x)), None)
            name = fresh(f"{word}_{identifier(key)}", taken) if whole is None else self.inputs[whole]
            found.append((name, mine or [0.0] if whole is None else []))
        return found + [(fresh(f"{word}_{identifier(key)}", taken), []) for key in function.shapes]

    def elements(self, name: str) -> list[Node]:
        """Return the nodes of the input `name`."""
        return list(self.graph.tape.inputs(name, self.graph.inputs[name]).flat)

    def cut(self, nodes: Sequence[Node], count: int) -> None:
        """Split `nodes` into `count` equal parts, and allocate workspace slots for values that later parts read."""
        self.parts = pieces(nodes, count, self.place_of.keys() - self.turned.keys())
        self.home = {n.serial: k for k, part in enumerate(self.parts) for n in part}
        reads = [{a.serial: a for n in part if n.op != "result" for a in n.operands} for part in self.parts]
        self.loads = [[a for s, a in read.items() if self.home.get(s, k) < k] for k, read in enumerate(reads)]
        last = {a.serial: k for k, load in enumerate(self.loads) for a in load}
        free, self.slots = list(range(len(last)))[::-1], dict[int, int]()
        for k, part in enumerate(self.parts):
            self.slots |= {n.serial: free.pop() for n in part if n.serial in last}
            free += [self.slots[a.serial] for a in self.loads[k] if last[a.serial] == k]  # free for later parts
        self.room = len(set(self.slots.values()))

    def code(self) -> str:
        """Return one function, or the parts and a function that calls them in sequence."""
        lines, main = list[str](), self.body(0)
        if len(self.parts) > 1:
            arrays, main = [*self.arrays, self.workspace], [f"{self.real} {self.workspace}[{max(1, self.room)}];"]
            for k, name in enumerate(self.functions):
                lines += self.function(f"static void {name}", arrays, self.body(k))
                main += [f"{name}({', '.join(arrays)});"]
        return "\n".join([*lines, *self.function(f"{self.kind} {self.name}", self.arrays, main)])

    def body(self, k: int) -> list[str]:
        """Return the statements of part `k` under their headings; a result is written by the part that computes it."""
        part, loads, last = self.parts[k], self.loads[k], len(self.parts) - 1
        place = {serial: f"{self.workspace}[{slot}]" for serial, slot in self.slots.items()}
        rows = [("from parts before", self.loaded(n, place[n.serial])) for n in loads]
        rows += [(n.label or "no label", text) for n in part for text in self.statements(n)]
        rows += [("for parts after", f"{place[n.serial]} = {self.value(n)};") for n in part if n.serial in place]
        results = ((self.outputs[key], i, x) for key, a in self.graph.outputs.items() for i, x in enumerate(a.flat))
        mine = (r for r in results if self.home.get(getattr(r[2], "serial", -1), last) == k)
        rows += [("results", f"{p}[{i}] = {self.value(x)};") for p, i, x in mine]
        groups = groupby(rows, key=lambda row: row[0])
        return [line for head, group in groups for line in (f"/* {comment(head)} */", *(text for _, text in group))]

    def loaded(self, n: Node, place: str) -> str:
        """Return the declaration of `n`, loaded from `place`; a comparison is an int."""
        if n.op in COMPARISONS:
            return f"const int {self.names[n.serial]} = {place} > {self.value(0.5)};"
        return f"const {self.real} {self.names[n.serial]} = {place};"

    def statements(self, n: Node) -> list[str]:
        """Return the statements of node `n`."""
        if n.op == "call":
            return self.called(n)
        if n.op == "result":
            call, flat = n.args
            array, i = self.result(call, flat)
            return [f"const {self.real} {self.names[n.serial]} = {array}[{i}];"]
        if n.serial in self.place_of:
            first = self.turned[n.serial].call(self) if n.serial in self.turned else []
            return [*first, f"const {self.real} {self.names[n.serial]} = {self.place_of[n.serial]};"]
        return [self.statement(n)]

    def called(self, n: Node) -> list[str]:
        """Return the call `n` of another graph, with its argument and result arrays."""
        function, arrays = n.args[0], self.calls[n.serial]
        given, rooms = arrays[: len(function.inputs)], arrays[len(function.inputs) :]
        lines = [
            f"const {self.real} {name}[{len(mine)}] = {{{', '.join(map(self.value, mine))}}};"
            for name, mine in given
            if mine
        ]
        nothing = f" = {{{self.value(0.0)}}}" if function.only else ""
        lines += [
            f"{self.real} {name}[{max(1, math.prod(shape))}]{nothing};"
            for (name, _), shape in zip(rooms, function.shapes.values(), strict=True)
        ]
        call = f"{self.known[id(function)].name}({', '.join(name for name, _ in arrays)});"
        if function.only:
            sign = self.value(n.args[1 + function.elements.index((function.only, 0))])
            return [*lines, f"if ({sign} > {self.value(0.0)}) {{", f"    {call}", "}"]
        return [*lines, call]

    def result(self, call: Node, flat: int) -> tuple[str, int]:
        """Return the array, and the index in it, of element `flat` of the results of `call`."""
        function = call.args[0]
        rooms = self.calls[call.serial][len(function.inputs) :]
        for (name, _), shape in zip(rooms, function.shapes.values(), strict=True):
            if flat < math.prod(shape):
                return name, flat
            flat -= math.prod(shape)
        raise IndexError(flat)

    @property
    def stack(self) -> int:
        """Upper bound of stack usage in bytes, including callees except libm."""
        longest = max(map(self._room_of_part, range(len(self.parts))))
        deepest = max(
            (self.known[id(n.args[0])].stack for part in self.parts for n in part if n.op == "call"), default=0
        )
        own = (self.room + longest) * np.dtype(self.dtype).itemsize + 16 * len(self.arrays) + 256
        return own + max(deepest, self.turning_room)

    def _room_of_part(self, k: int) -> int:
        """Return the maximum number of values that part k has at once: all its variables, and all inputs that it reads.

        An optimiser may read every input before it writes the first result; then they are spilled to the stack.
        """
        part, last = self.parts[k], len(self.parts) - 1
        results = [x for a in self.graph.outputs.values() for x in a.flat if isinstance(x, Node)]
        mine = [x for x in results if self.home.get(x.serial, last) == k]
        read = {a.serial for n in part for a in n.operands if a.op == "input"}
        read |= {x.serial for x in mine if x.op == "input"}
        return len(self.loads[k]) + len(read) + sum(map(self.room_of, part))

    def room_of(self, n: Node) -> int:
        """Return the number of values that the statements of node `n` put on the stack."""
        if n.serial in self.turned:
            return 1 + 2 * self.turned[n.serial].size
        if n.op != "call":
            return 1
        given, results = (len(mine) for _, mine in self.calls[n.serial]), n.args[0].shapes.values()
        return int(1 + sum(given) + sum(max(1, math.prod(shape)) for shape in results))
