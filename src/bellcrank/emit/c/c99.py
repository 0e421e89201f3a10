"""Graph to C99: one .c and one .h that need nothing but libm, allocate nothing and can be read.

    void arm_forward_dynamics(const double *restrict q, const double *restrict v, ..., double *restrict out);

A scalar is called after the step that made it (`IA_boom_3`). A large graph is cut into static functions, because twice
the function takes a compiler more than twice as long; what one leaves for a later one lies in an array on the stack.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from bellcrank.errors import InputError, unknown
from bellcrank.graph import Graph, Node
from bellcrank.nodes.ops import COMPARISONS
from bellcrank.quoting import comment, identifier
from bellcrank.version import __version__

# Spelling of each operation; {0}, {1}, {2} are the arguments, {f} the suffix of libm's functions.
SPELL = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "where": "{0} ? {1} : {2}",
    "minimum": "({0} < {1} || isnan({0})) ? {0} : {1}",  # a NaN on either side stays one, which fmin would hide
    "maximum": "({0} > {1} || isnan({0})) ? {0} : {1}",
    "abs": "fabs{f}({0})",
    "floor": "floor{f}({0})",
    "atan2": "atan2{f}({0}, {1})",
    **{name: f"{name}{{f}}({{0}})" for name in ("sqrt", "sin", "cos", "tan", "asin", "acos", "exp", "log", "tanh")},
}
REALS = {"float64": ("double", ""), "float32": ("float", "f")}  # type, suffix of constants and functions
TWINS = {"sin": "cos", "cos": "sin"}  # of one angle: written together, so that a compiler may compute them together
MOST_STATEMENTS = 2000  # of a function
LONGEST_LABEL = 40  # characters of it in a name, of which C99 promises 63
LONGEST_NAME = 100  # of the function and its files: file systems take no more than 255

HEADER = """/* {title}
 *
{table}
 *
 * {total} operations: {count}. Do not edit: make it anew.
 * Matrices lie row by row. Arguments must not overlap. Inputs are not checked: NaN in, NaN out (but for -ffast-math).
 * Re-entrant and fit for real time: no static data, no allocation, no loops, no calls but libm's. Its stack, libm's
 * aside, stays below {NAME}_STACK_BYTES even where a compiler optimises nothing. */
#ifndef {NAME}_H
#define {NAME}_H\n
{sizes}
#define {NAME}_OPERATIONS {total}
#define {NAME}_STACK_BYTES {stack}\n
#ifdef __cplusplus
extern "C" void {name}({plain});
#else
void {name}({restrict});
#endif\n
#endif
"""


def source(
    graph: Graph, dtype: str = "float64", name: str | None = None, columns: Mapping[str, Sequence[str]] | None = None
) -> dict[str, str]:
    """{file name: text} of a header and a C file. `columns` names the elements of arrays, for the header's comment."""
    if dtype not in REALS:
        raise InputError(unknown("dtype", dtype, REALS))
    text = _Text(graph, dtype, identifier(name or graph.name)[:LONGEST_NAME])
    return {f"{text.name}.h": text.header(columns or {}), f"{text.name}.c": text.code()}


def fresh(word: str, taken: dict[str, int], numbered: bool = False) -> str:
    """The word if no one has it, or the word with its next number."""
    name = word
    while numbered or name in taken:
        taken[word] = taken.get(word, 0) + 1
        name, numbered = f"{word}_{taken[word]}", False
    taken[name] = 0
    return name


class _Text:
    def __init__(self, graph: Graph, dtype: str, name: str) -> None:
        self.graph, self.dtype, self.name, (self.real, self.suffix) = graph, dtype, name, REALS[dtype]
        self.title = f"{comment(graph.name)} in C99, {self.real}; made by bellcrank {__version__}"
        twins = {(n.op, n.args): n for n in graph.nodes if n.op in TWINS}
        pairs = ((n, twins.get((TWINS.get(n.op, ""), n.args))) for n in graph.nodes if n.op != "input")
        nodes = list({n.serial: n for pair in pairs for n in pair if n is not None}.values())
        taken = {name: 0}
        self.inputs = {key: fresh(identifier(key), taken) for key in graph.inputs}
        words = ["out"] if len(graph.outputs) == 1 else map(identifier, graph.outputs)
        self.outputs = {key: fresh(word, taken) for key, word in zip(graph.outputs, words, strict=True)}
        self.arrays, self.workspace = [*self.inputs.values(), *self.outputs.values()], fresh("w", taken)
        self.cut(nodes, max(1, -(-len(nodes) // MOST_STATEMENTS)))
        self.functions = [fresh(f"{name}_part", taken, numbered=True) for _ in self.parts]
        self.names = {n.serial: f"{self.inputs[n.args[0]]}[{n.args[1]}]" for n in graph.nodes if n.op == "input"}
        for n in nodes:
            word = f"{n.op} {self.names[n.args[0].serial]}" if n.op in TWINS else n.label
            self.names[n.serial] = fresh(identifier(word)[:LONGEST_LABEL], taken, numbered=n.op not in TWINS)

    def cut(self, nodes: Sequence[Node], count: int) -> None:
        """Equal parts, what each reads of those before it, and places in the workspace for that."""
        self.parts = [nodes[len(nodes) * k // count : len(nodes) * (k + 1) // count] for k in range(count)]
        self.home = {n.serial: k for k, part in enumerate(self.parts) for n in part}
        reads = [{a.serial: a for n in part for a in n.operands} for part in self.parts]
        self.loads = [[a for s, a in read.items() if self.home.get(s, k) < k] for k, read in enumerate(reads)]
        last = {a.serial: k for k, load in enumerate(self.loads) for a in load}
        free, self.slots = list(range(len(last)))[::-1], dict[int, int]()
        for k, part in enumerate(self.parts):
            self.slots |= {n.serial: free.pop() for n in part if n.serial in last}
            free += [self.slots[a.serial] for a in self.loads[k] if last[a.serial] == k]  # for the parts after this one
        self.room = len(set(self.slots.values()))

    def code(self) -> str:
        """The C file: one function, or the parts and a function that calls them in turn."""
        lines, main = [f"/* {self.title} */", f'#include "{self.name}.h"\n', "#include <math.h>\n"], self.body(0)
        if len(self.parts) > 1:
            arrays, main = [*self.arrays, self.workspace], [f"{self.real} {self.workspace}[{max(1, self.room)}];"]
            for k, name in enumerate(self.functions):
                lines += self.function(f"static void {name}", arrays, self.body(k))
                main += [f"{name}({', '.join(arrays)});"]
        return "\n".join([*lines, *self.function(f"void {self.name}", self.arrays, main)])

    def function(self, head: str, arrays: Sequence[str], body: Sequence[str]) -> list[str]:
        words = set(re.findall(r"\w+", re.sub(r"/\*.*?\*/", "", " ".join(body))))
        idle = [f"(void){p};" for p in arrays if p not in words]
        return [f"{head}({self.parameters(arrays)})", "{", *(f"    {line}" for line in (*idle, *body)), "}\n"]

    def parameters(self, arrays: Sequence[str], restrict: str = "restrict ") -> str:
        kinds = ("const " * (p in self.inputs.values()) + self.real for p in arrays)
        return ", ".join(f"{kind} *{restrict}{p}" for kind, p in zip(kinds, arrays, strict=True)) or "void"

    def body(self, k: int) -> list[str]:
        """Statements of part k under their headings. A result is written by the part that computes it."""
        part, loads, names, last = self.parts[k], self.loads[k], self.names, len(self.parts) - 1
        place = {serial: f"{self.workspace}[{slot}]" for serial, slot in self.slots.items()}
        rows = [("from parts before", f"const {self.real} {names[n.serial]} = {place[n.serial]};") for n in loads]
        rows += [(n.label or "no label", self.statement(n)) for n in part]
        rows += [("for parts after", f"{place[n.serial]} = {self.value(n)};") for n in part if n.serial in place]
        results = ((self.outputs[key], i, x) for key, a in self.graph.outputs.items() for i, x in enumerate(a.flat))
        mine = (r for r in results if self.home.get(getattr(r[2], "serial", -1), last) == k)
        rows += [("results", f"{p}[{i}] = {self.value(x)};") for p, i, x in mine]
        groups = groupby(rows, key=lambda row: row[0])
        return [line for head, group in groups for line in (f"/* {comment(head)} */", *(text for _, text in group))]

    def statement(self, n: Node) -> str:
        arguments = [self.value(a, condition=n.op == "where" and i == 0) for i, a in enumerate(n.args)]
        kind = "int" if n.op in COMPARISONS else self.real
        return f"const {kind} {self.names[n.serial]} = {SPELL[n.op].format(*arguments, f=self.suffix)};"

    def value(self, x: Node | float, condition: bool = False) -> str:
        """A name (a comparison among numbers is 0 or 1), or the shortest text that reads back as the same number."""
        if isinstance(x, Node):
            return f"({self.real})" * (x.op in COMPARISONS and not condition) + self.names[x.serial]
        with np.errstate(over="ignore"):
            text = str(np.dtype(self.dtype).type(x))
        return {"nan": "NAN", "inf": "INFINITY", "-inf": "-INFINITY"}.get(text, text + self.suffix)

    def header(self, columns: Mapping[str, Sequence[str]]) -> str:
        NAME, count = self.name.upper().rstrip("_"), self.graph.count().by_kind
        taken, table, sizes = dict[str, int](), list[str](), list[str]()
        shapes = [*self.graph.inputs.items(), *((key, a.shape) for key, a in self.graph.outputs.items())]
        for p, (key, shape) in zip(self.arrays, shapes, strict=True):
            text = f"{p + str(list(shape) or [1]):<12}{key}: {', '.join(columns.get(key, ()))}".rstrip(": ")
            table += textwrap.wrap(comment(text), 116, initial_indent=" *   ", subsequent_indent=" *" + 18 * " ")
            sizes += [f"#define {NAME}_SIZE_{fresh(p.upper(), taken)} {int(np.prod(shape))}"]
        longest = max(len(load) + len(part) for load, part in zip(self.loads, self.parts, strict=True))
        return HEADER.format(
            title=self.title, table="\n".join(table), NAME=NAME, name=self.name, sizes="\n".join(sizes),
            count=", ".join(f"{n} {kind}" for kind, n in count.items() if n) or "none", total=sum(count.values()),
            stack=(self.room + longest) * np.dtype(self.dtype).itemsize + 16 * len(self.arrays) + 256,
            plain=self.parameters(self.arrays, ""), restrict=self.parameters(self.arrays),
        )  # fmt: skip
