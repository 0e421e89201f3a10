"""Graph to C99: one .c and one .h that need nothing but libm, allocate nothing and can be read.

    void arm_forward_dynamics(const double *restrict q, const double *restrict v, ..., double *restrict out);

A scalar is called after the step that made it (`IA_boom_3`), and a comment says where a step begins. A large graph is
cut into static functions, because twice the function takes a compiler more than twice as long; what one of them leaves
for a later one lies in an array on the stack.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

import bellcrank
from bellcrank.errors import InputError, unknown
from bellcrank.graph import Graph, Node

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
    "atan2": "atan2{f}({0}, {1})",
    **{name: f"{name}{{f}}({{0}})" for name in ("sqrt", "sin", "cos", "tan", "asin", "acos", "exp", "log", "tanh")},
}
REALS = {"float64": ("double", ""), "float32": ("float", "f")}  # type, suffix of constants and functions
COMPARISONS = ("lt", "le")  # ints in C
TWINS = {"sin": "cos", "cos": "sin"}  # of one angle: written together, so that a compiler may compute them together
LIMIT = 2000  # statements in a function
LONGEST = 40  # characters of a label in a name: C99 tells names apart by their first 63

# Keywords of C and C++, and what libm and the rest of C lay claim to.
WORDS = """alignas alignof and asm auto bitand bitor bool break case catch char class compl concept const constexpr
    continue decltype default delete do double else enum explicit export extern false float for friend goto if inline
    int long mutable namespace new noexcept not nullptr operator or private protected public register requires restrict
    return short signed sizeof static struct switch template this throw true try typedef typeid typename union unsigned
    using virtual void volatile while xor abs assert complex errno exit float gamma infinity isnan j0 j1 jn limits linux
    main math nan pow rand round signal signgam stdio stdlib string time unix y0 y1 yn"""
RESERVED = {*WORDS.split(), *(f + s for row in SPELL.values() for f in re.findall(r"(\w+){f}", row) for s in ("", "f"))}

PART = """#ifdef __GNUC__ /* joined into one function again, the parts would take long to compile */
#define BELLCRANK_PART static __attribute__((noinline)) void
#else
#define BELLCRANK_PART static void
#endif
"""
HEADER = """/* {title}
 *
{table}
 *
 * {total} operations: {count}.
 * Matrices lie row by row. Arguments must not overlap. Inputs are not checked: NaN in, NaN out (but for -ffast-math).
 * Re-entrant and fit for real time: no static data, no allocation, no loops, no calls but libm's. Its stack, libm's
 * aside, stays below {NAME}_STACK_BYTES even where a compiler optimises nothing.
 */
#ifndef {NAME}_H
#define {NAME}_H

{sizes}
#define {NAME}_OPERATIONS {total}
#define {NAME}_STACK_BYTES {stack}

#ifdef __cplusplus
extern "C" void {name}({plain});
#else
void {name}({restrict});
#endif

#endif
"""
Columns = Mapping[str, Sequence[str]]


def source(
    graph: Graph, dtype: str = "float64", name: str | None = None, columns: Columns | None = None, limit: int = LIMIT
) -> dict[str, str]:
    """{file name: text} of a header and a C file. `columns` names the elements of arrays, for the header's comment."""
    if dtype not in REALS:
        raise InputError(unknown("dtype", dtype, REALS))
    text = _Text(graph, dtype, identifier(name or graph.name), limit)
    return {f"{text.name}.h": text.header(columns or {}), f"{text.name}.c": text.code()}


def identifier(text: str) -> str:
    """The nearest word that C and C++ take as a name: "3R arm.bias" is x3R_arm_bias."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    word = re.sub("[^0-9A-Za-z]+", "_", plain).strip("_")
    word = word if word[:1].isalpha() else f"x{word}"
    return f"{word}_" if word.lower() in RESERVED else word


def fresh(word: str, taken: dict[str, int], numbered: bool = False) -> str:
    """The word if no one has it, or the word with its next number."""
    name = word
    while numbered or name in taken:
        taken[word] = taken.get(word, 0) + 1
        name, numbered = f"{word}_{taken[word]}", False
    taken[name] = 0
    return name


def comment(text: str) -> str:
    """Any text, harmless between /* and */."""
    return text.encode("unicode_escape").decode().replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")


class _Text:
    def __init__(self, graph: Graph, dtype: str, name: str, limit: int) -> None:
        self.graph, self.dtype, self.name = graph, dtype, name
        self.real, self.suffix = REALS[dtype]
        self.title = f"{comment(graph.name)} in C99, {self.real}; made by bellcrank {bellcrank.__version__}, do not edit."
        taken = {name: 0}
        self.inputs = {key: fresh(identifier(key), taken) for key in graph.inputs}
        self.outputs = {key: fresh(identifier(key) if len(graph.outputs) > 1 else "out", taken) for key in graph.outputs}
        self.arrays = [*self.inputs.values(), *self.outputs.values()]
        self.workspace = fresh("w", taken)
        self.names = {n.serial: f"{self.inputs[n.args[0]]}[{n.args[1]}]" for n in graph.nodes if n.op == "input"}
        twins = {(n.op, n.args): n for n in graph.nodes if n.op in TWINS}
        pairs = ((n, twins.get((TWINS.get(n.op, ""), n.args))) for n in graph.nodes if n.op != "input")
        nodes = list({n.serial: n for pair in pairs for n in pair if n is not None}.values())
        for n in nodes:
            word = f"{n.op} {self.names[n.args[0].serial]}" if n.op in TWINS else n.label
            self.names[n.serial] = fresh(identifier(word)[:LONGEST], taken, numbered=n.op not in TWINS)
        self.cut(nodes, limit)
        self.functions = [fresh(f"{name}_part", taken, numbered=True) for _ in self.parts]

    def cut(self, nodes: Sequence[Node], limit: int) -> None:
        """Equal parts of at most `limit` statements, and places in the workspace for what a later part reads."""
        count = max(1, -(-len(nodes) // limit))
        self.parts = [nodes[len(nodes) * k // count : len(nodes) * (k + 1) // count] for k in range(count)]
        self.home = {n.serial: k for k, part in enumerate(self.parts) for n in part}
        last = {a.serial: k for k, part in enumerate(self.parts) for n in part for a in n.operands}
        self.slots: dict[int, int] = {}
        free, dying = list(range(len(nodes)))[::-1], [list[int]() for _ in range(count + 1)]
        for k, part in enumerate(self.parts):
            free += dying[k]  # read for the last time one part ago
            for serial in (n.serial for n in part if last.get(n.serial, k) > k):
                self.slots[serial] = free.pop()
                dying[last[serial] + 1].append(self.slots[serial])
        self.room = max(self.slots.values(), default=-1) + 1

    def loads(self, k: int) -> list[Node]:
        """What part k reads of the parts before."""
        return list({a.serial: a for n in self.parts[k] for a in n.operands if self.home.get(a.serial, k) < k}.values())

    def code(self) -> str:
        """The C file: one function, or the parts and a function that calls them in turn."""
        lines = [f"/* {self.title} */", f'#include "{self.name}.h"', "", "#include <math.h>", ""]
        main = self.body(0)
        if len(self.parts) > 1:
            lines, main = [*lines, PART], [f"    {self.real} {self.workspace}[{self.room}];"] if self.room else []
            for k, name in enumerate(self.functions):
                used = self.mentioned(self.body(k))
                lines += [f"BELLCRANK_PART {name}({self.parameters(used)})", "{", *self.body(k), "}", ""]
                main += [f"    {name}({', '.join(used)});"]
        idle = [f"    (void){p};" for p in self.arrays if p not in self.mentioned(main)]
        return "\n".join([*lines, f"void {self.name}({self.parameters(self.arrays)})", "{", *idle, *main, "}", ""])

    def body(self, k: int) -> list[str]:
        def local(n: Node, text: str) -> str:
            return f"const {'int' if n.op in COMPARISONS else self.real} {self.names[n.serial]} = {text};"

        w, part, last, label = self.workspace, self.parts[k], len(self.parts) - 1, None
        kept = [n for n in part if n.serial in self.slots]
        results = [(key, i, x) for key, a in self.graph.outputs.items() for i, x in enumerate(a.flat)]
        lines = ["/* from the parts before */"] if k and self.loads(k) else []
        lines += [local(n, f"{w}[{self.slots[n.serial]}]" + " > 0" * (n.op in COMPARISONS)) for n in self.loads(k)]
        for n in part:
            lines += [f"/* {comment(n.label)} */"] * (n.label != label)
            label = n.label
            arguments = [self.value(a, condition=n.op == "where" and i == 0) for i, a in enumerate(n.args)]
            lines.append(local(n, SPELL[n.op].format(*arguments, f=self.suffix)))
        lines += ["/* for the parts after */"] if kept else []
        ...
