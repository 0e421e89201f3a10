"""Common parts of generated C functions: arrays, unique names, numbers, operator spellings, and a header."""

from __future__ import annotations

import re
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bellcrank.emit.c import sincos_text
from bellcrank.emit.c.sincos_text import FOUR_ANGLE_LOOP
from bellcrank.graph import Graph, Node
from bellcrank.nodes.ops import COMPARISONS
from bellcrank.quoting import comment, identifier
from bellcrank.version import __version__

# Template of each operation; {0}, {1}, {2} are the arguments, {f} the suffix of libm's functions.
OPERATION_TEMPLATES = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "where": "{0} ? {1} : {2}",
    "minimum": "({0} < {1} || isnan({0})) ? {0} : {1}",  # propagates a NaN on either side, unlike fmin
    "maximum": "({0} > {1} || isnan({0})) ? {0} : {1}",
    "abs": "fabs{f}({0})",
    "floor": "floor{f}({0})",
    "atan2": "atan2{f}({0}, {1})",
    **{name: f"{name}{{f}}({{0}})" for name in ("sqrt", "sin", "cos", "tan", "asin", "acos", "exp", "log", "tanh")},
}
REAL_TYPES = {"float64": ("double", ""), "float32": ("float", "f")}  # type, suffix of constants and functions
TWINS = {"sin": "cos", "cos": "sin"}  # written together for one angle, so that a compiler may compute them together
MAX_LABEL_LENGTH = 40  # characters of a label in an identifier; C99 guarantees 63 significant ones
MAX_NAME_LENGTH = 100  # characters of the function and its files; file systems allow 255

FIXED_LOOPS = "loops of fixed length"
STATIC_DATA_BY_LOOPS = {
    "no loops": "no static data",
    FOUR_ANGLE_LOOP: "no static data",
    FIXED_LOOPS: "no static data except constants",
}  # by kind of loops

HEADER = """/* {title}
 *
{table}
 *
 * {total} operations: {count}.
 * Generated file. Do not edit; generate it again.
 * Matrices are stored by rows. Arguments must not overlap.
 * Inputs are not checked; a NaN input gives NaN outputs (not with -ffast-math).
 * Re-entrant and suitable for real time: {memory}, no allocation, {loops}, no calls except to libm.
 * Stack, without that of libm: less than {NAME}_STACK_BYTES, even without optimisation. */
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


def unique_name(word: str, used_names: dict[str, int], numbered: bool = False) -> str:
    """Return `word` if it is not in `used_names`, or with the next number; with `numbered` always the latter."""
    name = word
    while numbered or name in used_names:
        used_names[word] = used_names.get(word, 0) + 1
        name, numbered = f"{word}_{used_names[word]}", False
    used_names[name] = 0
    return name


@dataclass(frozen=True)
class Declaration:
    """Properties of a function that do not depend on its graph."""

    dtype: str
    name: str
    callees: Mapping[int, Routine]  # functions that it may call
    outer_names: Mapping[str, int]  # names that no variable may shadow
    static: bool = False
    sincos_names: tuple[str, str] = ("turned", "turned_far")  # functions of sines and cosines: normal and large angles


class Routine(ABC):
    """One graph as a C function."""

    loops = "no loops"

    def __init__(self, graph: Graph, d: Declaration) -> None:
        # Names of the sine/cosine functions; True if they are called.
        self.sincos_names, self.calls_sincos = d.sincos_names, False
        self.graph, self.dtype, self.name, (self.real, self.suffix) = graph, d.dtype, d.name, REAL_TYPES[d.dtype]
        self.callees, self.return_type = d.callees, "static void" if d.static else "void"
        self.title = f"{comment(graph.name)} in C99, {self.real}; made by bellcrank {__version__}"
        self.used_names = {**d.outer_names, d.name: 0}
        self.names = dict[int, str]()
        self.inputs = {key: unique_name(identifier(key), self.used_names) for key in graph.inputs}
        words = ["out"] if len(graph.shapes) == 1 else map(identifier, graph.shapes)
        self.outputs = {key: unique_name(word, self.used_names) for key, word in zip(graph.shapes, words, strict=True)}
        self.arrays = [*self.inputs.values(), *self.outputs.values()]

    @abstractmethod
    def code(self) -> str:
        """Return the C code, with the functions that it is divided into."""

    @property
    @abstractmethod
    def stack(self) -> int:
        """Upper bound of stack usage in bytes, including callees except libm."""

    @property
    def sincos_stack(self) -> int:
        """Stack bytes of the function of sines and cosines, where it is called."""
        return (
            sincos_text.STACK_NUMBERS * np.dtype(self.dtype).itemsize + sincos_text.STACK_BYTES
            if self.calls_sincos
            else 0
        )

    def statement(self, n: Node) -> str:
        """Return the operation `n` as the declaration of a constant."""
        arguments = [self.value(a, condition=n.op == "where" and i == 0) for i, a in enumerate(n.args)]
        kind = "int" if n.op in COMPARISONS else self.real
        return f"const {kind} {self.names[n.serial]} = {OPERATION_TEMPLATES[n.op].format(*arguments, f=self.suffix)};"

    def function(self, head: str, arrays: Sequence[str], body: Sequence[str], numbers: Sequence[str] = ()) -> list[str]:
        """Return a C function.

        Parameters
        ----------
        head
            Return type and name.
        arrays
            Names of the array parameters.
        body
            Statements.
        numbers
            Names of int parameters, which precede the arrays.
        """
        words = set(re.findall(r"\w+", re.sub(r"/\*.*?\*/", "", " ".join(body))))
        idle = [f"(void){p};" for p in (*numbers, *arrays) if p not in words]
        given = ", ".join([*(f"int {p}" for p in numbers), self.parameters(arrays)])
        return [f"{head}({given})", "{", *(f"    {line}" for line in (*idle, *body)), "}\n"]

    def parameters(self, arrays: Sequence[str], restrict: str = "restrict ") -> str:
        """Return the declarations of the parameters `arrays`, qualified by `restrict`."""
        kinds = ("const " * (p in self.inputs.values()) + self.real for p in arrays)
        return ", ".join(f"{kind} *{restrict}{p}" for kind, p in zip(kinds, arrays, strict=True)) or "void"

    def value(self, x: Node | float, condition: bool = False) -> str:
        """Return the expression of `x`: a name, or the shortest literal that reads back as the same number.

        A comparison used as a number is cast from int; a number used as a `condition` is compared with 0.
        """
        if isinstance(x, Node):
            if condition and x.op not in COMPARISONS:
                return f"({self.names[x.serial]} != 0.0{self.suffix})"
            return f"({self.real})" * (x.op in COMPARISONS and not condition) + self.names[x.serial]
        with np.errstate(over="ignore"):
            text = str(np.dtype(self.dtype).type(x))
        return {"nan": "NAN", "inf": "INFINITY", "-inf": "-INFINITY"}.get(text, text + self.suffix)

    @property
    def shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Name and shape of every input and output."""
        return [*self.graph.inputs.items(), *self.graph.shapes.items()]

    def array_comments(self, columns: Mapping[str, Sequence[str]], indent: int) -> list[str]:
        """Return the lines of a comment on the arrays, indented by `indent`; `columns` has names of their elements."""
        lines, margin = list[str](), " *" + indent * " "
        for p, (key, shape) in zip(self.arrays, self.shapes, strict=True):
            text = f"{p + str(list(shape) or [1]):<12}{key}: {', '.join(columns.get(key, ()))}".rstrip(": ")
            lines += textwrap.wrap(comment(text), 116, initial_indent=margin, subsequent_indent=margin + 15 * " ")
        return lines

    def header(self, columns: Mapping[str, Sequence[str]]) -> str:
        """Return the header file; `columns` has the names of the elements of arrays."""
        NAME, count = self.name.upper().rstrip("_"), self.graph.count().by_kind
        used_names, sizes, table = dict[str, int](), list[str](), "\n".join(self.array_comments(columns, 3))
        for p, (_, shape) in zip(self.arrays, self.shapes, strict=True):
            sizes += [f"#define {NAME}_SIZE_{unique_name(p.upper(), used_names)} {int(np.prod(shape))}"]
        return HEADER.format(
            title=self.title, table=table, NAME=NAME, name=self.name, sizes="\n".join(sizes),
            count=", ".join(f"{n} {kind}" for kind, n in count.items() if n) or "none", total=sum(count.values()),
            stack=self.stack, memory=STATIC_DATA_BY_LOOPS[self.loops], loops=self.loops,
            plain=self.parameters(self.arrays, ""), restrict=self.parameters(self.arrays),
        )  # fmt: skip
