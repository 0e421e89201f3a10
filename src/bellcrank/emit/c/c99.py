"""Graph to C99: one .c and one .h that need only libm, allocate nothing and are readable.

    void arm_forward_dynamics(const double *restrict q, const double *restrict v, ..., double *restrict out);

A scalar is named after the step that computes it (`IA_boom_3`). A large graph is split into static functions, because
compile time grows faster than linearly with the size of a function; values that cross function boundaries lie in an
array on the stack. A graph that is called becomes one static function; package.py puts several graphs into one file.
Where there are many identical parts (docs/size.md), they are rolled loops with tables of constants: loop_text.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from bellcrank import quoting
from bellcrank.emit.c import sincos_text
from bellcrank.emit.c.loop_text import LoopText
from bellcrank.emit.c.routine import (
    MAX_LABEL_LENGTH,
    MAX_NAME_LENGTH,
    OPERATION_TEMPLATES,
    REAL_TYPES,
    STATIC_DATA_BY_LOOPS,
    TWINS,
    Declaration,
    Routine,
    unique_name,
)
from bellcrank.errors import InputError, unknown
from bellcrank.graph import Graph, Node
from bellcrank.nodes.ops import COMPARISONS
from bellcrank.quoting import comment, identifier

__all__ = ["OPERATION_TEMPLATES", "StraightLineText", "build_routines", "source"]
MAX_STATEMENTS = 2000  # statements of one function


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
    if dtype not in REAL_TYPES:
        raise InputError(unknown("dtype", dtype, REAL_TYPES))
    word = quoting.source(name or graph.name)[:MAX_NAME_LENGTH]
    called, (text,) = build_routines({word: graph}, dtype)
    code = [f"/* {text.title} */", f'#include "{word}.h"\n', "#include <math.h>\n", *routines_code([*called, text])]
    return {f"{word}.h": text.header(columns or {}), f"{word}.c": "\n".join(code)}


def routines_code(routines: Sequence[Routine]) -> list[str]:
    """Return the C code of all `routines`, preceded by their shared functions."""
    turning = next((t for t in routines if t.calls_sincos), None)
    shared = [sincos_text.sincos_functions(*turning.sincos_names, turning.dtype)] if turning is not None else []
    return [*shared, *(t.code() for t in routines)]


def build_routines(
    graphs: Mapping[str, Graph], dtype: str, used_names: Mapping[str, int] | None = None, static: bool = False
) -> tuple[list[Routine], ...]:
    """Return the functions that the graphs call, callees first, and the functions of the graphs themselves.

    Parameters
    ----------
    graphs
        Graphs by function name.
    dtype
        Type of the numbers.
    used_names
        Other names in the file.
    static
        Make the graphs' own functions static, too.
    """
    for graph in graphs.values():
        graph.check_whole()
    public, names = {id(g): name for name, g in graphs.items()}, dict(used_names or {}) | dict.fromkeys(graphs, 0)
    inner = {id(g): g for graph in graphs.values() for g in graph.functions}
    function_names = {
        key: public.get(key) or unique_name(identifier(g.name)[:MAX_NAME_LENGTH], names) for key, g in inner.items()
    }
    callees, turning = dict[int, Routine](), (unique_name("turned", names), unique_name("turned_far", names))
    for key, g in inner.items():
        callees[key] = routine(
            g, Declaration(dtype, function_names[key], callees, names, static or key not in public, turning)
        )
    graph_routines = []
    for name, g in graphs.items():
        declaration = Declaration(dtype, name, callees, names, static, turning)
        graph_routines.append(callees[id(g)] if function_names.get(id(g)) == name else routine(g, declaration))
    return [text for key, text in callees.items() if key not in public], graph_routines


def routine(graph: Graph, d: Declaration) -> Routine:
    """Return the C function of `graph`, declared as `d`: rolled loops over identical parts, or straight lines."""
    loops = graph.loops()
    return StraightLineText(graph, d) if loops is None else LoopText(graph, d, loops)


def split_nodes(nodes: Sequence[Node], count: int, tied: Set[int]) -> list[Sequence[Node]]:
    """Return `nodes` in `count` nearly equal pieces.

    Results of a call stay with their call, and a node in `tied` stays with the node before.
    """
    ends = [len(nodes) * k // count for k in range(count + 1)]
    for k, end in enumerate(ends):
        while end < len(nodes) and (nodes[end].op == "result" or nodes[end].serial in tied):
            end += 1
        ends[k] = end
    return [nodes[a:b] for a, b in pairwise(ends)]


class SinCosGroup:
    """Sines and cosines that are computed together."""

    def __init__(self, nodes: Sequence[Node], used_names: dict[str, int]) -> None:
        self.nodes, self.angles = nodes, list({n.args[0].serial: n.args[0] for n in nodes}.values())
        self.size = -(-len(self.angles) // sincos_text.GROUP_SIZE) * sincos_text.GROUP_SIZE
        self.arrays = {x: unique_name(x, used_names, numbered=True) for x in ("sin", "cos")}

    def element_of(self, n: Node) -> str:
        """Return the array element that holds the sine or cosine `n`."""
        return f"{self.arrays[n.op]}[{self.angles.index(n.args[0])}]"

    def call(self, text: StraightLineText) -> list[str]:
        """Return the statements that compute them, in the function `text`."""
        sine, cosine = self.arrays.values()
        # pad with the last angle: gcc would load a constant 0 from memory
        angles = [*self.angles, *[self.angles[-1]] * (self.size - len(self.angles))]
        values = [text.value(x) for x in angles]
        declarations = [f"{text.real} {name}[{self.size}];" for name in self.arrays.values()]
        fours = range(0, self.size, sincos_text.GROUP_SIZE)
        calls = [(", ".join(values[k : k + sincos_text.GROUP_SIZE]), f" + {k}" if k else "") for k in fours]
        return [
            *declarations,
            *(f"{text.sincos_names[0]}({given}, {sine}{offset}, {cosine}{offset});" for given, offset in calls),
        ]


class StraightLineText(Routine):
    """One graph as a function of straight-line code."""

    def __init__(self, graph: Graph, d: Declaration) -> None:
        super().__init__(graph, d)
        twins = {(n.op, n.args): n for n in graph.nodes if n.op in TWINS}
        pairs = ((n, twins.get((TWINS.get(n.op, ""), n.args))) for n in graph.nodes if n.op != "input")
        every = list({n.serial: n for pair in pairs for n in pair if n is not None}.values())
        used_names, self.workspace = self.used_names, unique_name("w", self.used_names)
        nodes, groups = sincos_text.group_angles(every)
        self.sincos_groups = {group[0].serial: SinCosGroup(group, used_names) for group in groups}
        self.element_of = {n.serial: turn.element_of(n) for turn in self.sincos_groups.values() for n in turn.nodes}
        self.calls_sincos = bool(groups)
        self.split_into_parts(nodes, max(1, -(-len(nodes) // MAX_STATEMENTS)))
        self.functions = [unique_name(f"{self.name}_part", used_names, numbered=True) for _ in self.parts]
        self.calls = {n.serial: self.arrays_of(n, used_names) for n in nodes if n.op == "call"}
        self.names |= {n.serial: f"{self.inputs[n.args[0]]}[{n.args[1]}]" for n in graph.nodes if n.op == "input"}
        for n in nodes:
            word = f"{n.op} {self.names[n.args[0].serial]}" if n.op in TWINS else n.label
            self.names[n.serial] = unique_name(
                identifier(word)[:MAX_LABEL_LENGTH], used_names, numbered=n.op not in TWINS
            )

        least = sincos_text.FOUR_ANGLE_LOOP if groups else Routine.loops
        called = {self.callees[id(g)].loops for g in graph.calls} | {least}
        self.loops = max(called, key=list(STATIC_DATA_BY_LOOPS).index)

    def arrays_of(self, call: Node, used_names: dict[str, int]) -> list[tuple[str, list[Any]]]:
        """Return name and elements of every array of a called function; result arrays have no elements.

        An input of this graph that is passed on unchanged is not copied.

        Parameters
        ----------
        call
            Call node.
        used_names
            Names in use.
        """
        function, *values = call.args
        word = unique_name(identifier(function.name)[:MAX_LABEL_LENGTH], used_names, numbered=True)
        offset, arrays = 0, []
        for key, shape in function.inputs.items():
            elements, offset = values[offset : offset + math.prod(shape)], offset + math.prod(shape)
            same_input = next((x for x in self.graph.inputs if elements and elements == self.elements(x)), None)
            name = (
                unique_name(f"{word}_{identifier(key)}", used_names) if same_input is None else self.inputs[same_input]
            )
            arrays.append((name, elements or [0.0] if same_input is None else []))
        return arrays + [(unique_name(f"{word}_{identifier(key)}", used_names), []) for key in function.shapes]

    def elements(self, name: str) -> list[Node]:
        """Return the nodes of the input `name`."""
        return list(self.graph.tape.inputs(name, self.graph.inputs[name]).flat)

    def split_into_parts(self, nodes: Sequence[Node], count: int) -> None:
        """Split `nodes` into `count` equal parts, and allocate workspace slots for values that later parts read."""
        self.parts = split_nodes(nodes, count, self.element_of.keys() - self.sincos_groups.keys())
        self.part_of = {n.serial: k for k, part in enumerate(self.parts) for n in part}
        reads = [{a.serial: a for n in part if n.op != "result" for a in n.operands} for part in self.parts]
        self.loads = [[a for s, a in read.items() if self.part_of.get(s, k) < k] for k, read in enumerate(reads)]
        last = {a.serial: k for k, load in enumerate(self.loads) for a in load}
        free, self.slots = list(range(len(last)))[::-1], dict[int, int]()
        for k, part in enumerate(self.parts):
            self.slots |= {n.serial: free.pop() for n in part if n.serial in last}
            free += [self.slots[a.serial] for a in self.loads[k] if last[a.serial] == k]  # free for later parts
        self.slot_count = len(set(self.slots.values()))

    def code(self) -> str:
        """Return one function, or the parts and a function that calls them in sequence."""
        lines, main = list[str](), self.body(0)
        if len(self.parts) > 1:
            arrays, main = [*self.arrays, self.workspace], [f"{self.real} {self.workspace}[{max(1, self.slot_count)}];"]
            for k, name in enumerate(self.functions):
                lines += self.function(f"static void {name}", arrays, self.body(k))
                main += [f"{name}({', '.join(arrays)});"]
        return "\n".join([*lines, *self.function(f"{self.return_type} {self.name}", self.arrays, main)])

    def body(self, k: int) -> list[str]:
        """Return the statements of part `k` under their headings; a result is written by the part that computes it."""
        part, loads, last = self.parts[k], self.loads[k], len(self.parts) - 1
        place = {serial: f"{self.workspace}[{slot}]" for serial, slot in self.slots.items()}
        rows = [("from parts before", self.load_statement(n, place[n.serial])) for n in loads]
        rows += [(n.label or "no label", text) for n in part for text in self.statements(n)]
        rows += [("for parts after", f"{place[n.serial]} = {self.value(n)};") for n in part if n.serial in place]
        results = ((self.outputs[key], i, x) for key, a in self.graph.outputs.items() for i, x in enumerate(a.flat))
        part_results = (r for r in results if self.part_of.get(getattr(r[2], "serial", -1), last) == k)
        rows += [("results", f"{p}[{i}] = {self.value(x)};") for p, i, x in part_results]
        groups = groupby(rows, key=lambda row: row[0])
        return [line for head, group in groups for line in (f"/* {comment(head)} */", *(text for _, text in group))]

    def load_statement(self, n: Node, place: str) -> str:
        """Return the declaration of `n`, loaded from `place`; a comparison is an int."""
        if n.op in COMPARISONS:
            return f"const int {self.names[n.serial]} = {place} > {self.value(0.5)};"
        return f"const {self.real} {self.names[n.serial]} = {place};"

    def statements(self, n: Node) -> list[str]:
        """Return the statements of node `n`."""
        if n.op == "call":
            return self.call_statements(n)
        if n.op == "result":
            call, flat = n.args
            array, i = self.result_element(call, flat)
            return [f"const {self.real} {self.names[n.serial]} = {array}[{i}];"]
        if n.serial in self.element_of:
            first = self.sincos_groups[n.serial].call(self) if n.serial in self.sincos_groups else []
            return [*first, f"const {self.real} {self.names[n.serial]} = {self.element_of[n.serial]};"]
        return [self.statement(n)]

    def call_statements(self, n: Node) -> list[str]:
        """Return the call `n` of another graph, with its argument and result arrays."""
        function, arrays = n.args[0], self.calls[n.serial]
        argument_arrays, result_arrays = arrays[: len(function.inputs)], arrays[len(function.inputs) :]
        lines = [
            f"const {self.real} {name}[{len(elements)}] = {{{', '.join(map(self.value, elements))}}};"
            for name, elements in argument_arrays
            if elements
        ]
        nothing = f" = {{{self.value(0.0)}}}" if function.only else ""
        lines += [
            f"{self.real} {name}[{max(1, math.prod(shape))}]{nothing};"
            for (name, _), shape in zip(result_arrays, function.shapes.values(), strict=True)
        ]
        call = f"{self.callees[id(function)].name}({', '.join(name for name, _ in arrays)});"
        if function.only:
            sign = self.value(n.args[1 + function.elements.index((function.only, 0))])
            return [*lines, f"if ({sign} > {self.value(0.0)}) {{", f"    {call}", "}"]
        return [*lines, call]

    def result_element(self, call: Node, flat: int) -> tuple[str, int]:
        """Return the array, and the index in it, of element `flat` of the results of `call`."""
        function = call.args[0]
        result_arrays = self.calls[call.serial][len(function.inputs) :]
        for (name, _), shape in zip(result_arrays, function.shapes.values(), strict=True):
            if flat < math.prod(shape):
                return name, flat
            flat -= math.prod(shape)
        raise IndexError(flat)

    @property
    def stack(self) -> int:
        """Upper bound of stack usage in bytes, including callees except libm."""
        longest = max(map(self._part_stack_values, range(len(self.parts))))
        deepest = max(
            (self.callees[id(n.args[0])].stack for part in self.parts for n in part if n.op == "call"), default=0
        )
        frame_bytes = (self.slot_count + longest) * np.dtype(self.dtype).itemsize + 16 * len(self.arrays) + 256
        return frame_bytes + max(deepest, self.sincos_stack)

    def _part_stack_values(self, k: int) -> int:
        """Return the maximum number of values that part k has at once: all its variables, and all inputs that it reads.

        An optimiser may read every input before it writes the first result; then they are spilled to the stack.
        """
        part, last = self.parts[k], len(self.parts) - 1
        results = [x for a in self.graph.outputs.values() for x in a.flat if isinstance(x, Node)]
        part_results = [x for x in results if self.part_of.get(x.serial, last) == k]
        read = {a.serial for n in part for a in n.operands if a.op == "input"}
        read |= {x.serial for x in part_results if x.op == "input"}
        return len(self.loads[k]) + len(read) + sum(map(self.stack_values, part))

    def stack_values(self, n: Node) -> int:
        """Return the number of values that the statements of node `n` put on the stack."""
        if n.serial in self.sincos_groups:
            return 1 + 2 * self.sincos_groups[n.serial].size
        if n.op != "call":
            return 1
        given, results = (len(elements) for _, elements in self.calls[n.serial]), n.args[0].shapes.values()
        return int(1 + sum(given) + sum(max(1, math.prod(shape)) for shape in results))
