"""Functions as a shared library that `casadi.external` loads: each with its sparsity, and `jac_` of it with its own.

CasADi has matrices, column by column, of which only what may be other than zero is there. An argument that is not given
is zero, and a result that is not wanted has no place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.atomic_file import write_whole
from bellcrank.emit.c.c99 import codes, texts
from bellcrank.emit.c.routine import LONGEST_NAME, Routine, fresh
from bellcrank.errors import InputError
from bellcrank.exporting import costs
from bellcrank.exporting.compilers import here, library
from bellcrank.exporting.things import WRITTEN_OUT, Export
from bellcrank.graph import Graph
from bellcrank.graph.inline import inlined, moved
from bellcrank.nodes.node import Node
from bellcrank.nodes.tape import Tape
from bellcrank.quoting import comment, identifier
from bellcrank.version import __version__

Array = np.ndarray[Any, Any]

HEAD = """/* {title} in C99 for casadi.external; made by bellcrank {version} */
#include <math.h>
#include <stddef.h>

#if defined _WIN32
#define SHARED __declspec(dllexport)
#else
#define SHARED __attribute__((visibility("default")))
#endif
"""

FUNCTION = """
static const long long {name}_patterns[] = {{{patterns}}};
static const int {name}_where[] = {{{where}}};
static const char *const {name}_names[] = {{{names}}};
SHARED long long {name}_n_in(void) {{ return {n_in}; }}
SHARED long long {name}_n_out(void) {{ return {n_out}; }}
SHARED const char *{name}_name_in(long long i) {{ return i >= 0 && i < {n_in} ? {name}_names[i] : NULL; }}
SHARED const char *{name}_name_out(long long i) {{ return i >= 0 && i < {n_out} ? {name}_names[i + {n_in}] : NULL; }}
SHARED const long long *{name}_sparsity_in(long long i)
{{
    return i >= 0 && i < {n_in} ? {name}_patterns + {name}_where[i] : NULL;
}}
SHARED const long long *{name}_sparsity_out(long long i)
{{
    return i >= 0 && i < {n_out} ? {name}_patterns + {name}_where[i + {n_in}] : NULL;
}}
SHARED int {name}_work(long long *arguments, long long *results, long long *integers, long long *numbers)
{{
    if (arguments) *arguments = {n_in};
    if (results) *results = {n_out};
    if (integers) *integers = 0;
    if (numbers) *numbers = {room};
    return 0;
}}
SHARED int {name}(const double **arg, double **res, long long *iw, double *w, int mem)
{{
    static const double zero[{most}] = {{0}};
    (void)iw; (void)w; (void)mem; (void)zero;
    {call};
    return 0;
}}
"""

# What FUNCTION and `source` call the parts of a function.
TAILS = ("", "_patterns", "_where", "_names", "_n_in", "_n_out", "_name_in", "_name_out", "_sparsity_in",
         "_sparsity_out", "_work", "_of_arrays")  # fmt: skip


@dataclass(frozen=True, eq=False)
class Function:
    """One function as CasADi sees it. idle: inputs that it has and does not look at, with their sizes."""

    name: str
    graph: Graph  # arrays of at most two axes
    idle: Sequence[tuple[str, tuple[int, int]]] = ()

    @cached_property
    def flat(self) -> Graph:
        """The same with arrays as CasADi has them: column by column, and of results what may be other than zero."""
        tape, given = Tape(), dict[tuple[str, int], Any]()
        for name, shape in self.graph.inputs.items():
            given |= {(name, k): tape.node("input", name, at) for at, k in enumerate(by_column(shape))}
        made, outputs = moved(self.graph, tape, given), dict[str, Array]()
        for name, array in made.items():
            there = [x for x in array.reshape(matrix(array.shape)).T.flat if isinstance(x, Node) or x != 0.0]
            outputs[name] = np.empty(len(there), dtype=object)
            outputs[name][:] = there
        inputs = {name: (math.prod(shape),) for name, shape in self.graph.inputs.items()}
        return Graph(self.name, inputs, outputs, tape)

    @property
    def inputs(self) -> list[tuple[str, tuple[int, int]]]:
        return [*((name, matrix(shape)) for name, shape in self.graph.inputs.items()), *self.idle]

    def text(self, of: Routine) -> str:
        """The functions by which CasADi asks for it."""
        patterns = [dense(*shape) for _, shape in self.inputs]
        patterns += [sparse(array.reshape(matrix(array.shape))) for array in self.graph.outputs.values()]
        where = np.cumsum([0, *map(len, patterns)])[:-1]
        names = [*(name for name, _ in self.inputs), *self.graph.outputs]
        taken = dict[str, int]()
        sizes = [array.size for array in self.flat.outputs.values()]
        starts = np.cumsum([0, *sizes])
        given = [f"arg[{i}] ? arg[{i}] : zero" for i in range(len(self.graph.inputs))]
        wanted = [f"res[{i}] ? res[{i}] : w + {starts[i]}" for i in range(len(sizes))]
        return FUNCTION.format(
            name=self.name, n_in=len(self.inputs), n_out=len(sizes), room=starts[-1],
            patterns=", ".join(str(x) for p in patterns for x in p), where=", ".join(map(str, where)),
            names=", ".join(f'"{fresh(identifier(n), taken)}"' for n in names),
            most=max([1, *(math.prod(s) for s in self.graph.inputs.values())]),
            call=f"{of.name}({', '.join([*given, *wanted])})",
        )  # fmt: skip

    @cached_property
    def jacobian(self) -> Function:
        """d(every output)/d(every input), where matrices count column by column; it is also told the results."""
        g, outputs = self.graph, dict[str, Array]()
        for o, array in g.outputs.items():
            rows = by_column(array.shape)
            for i, shape in g.inputs.items():
                (D,) = g.jacobian(o, i).outputs.values()
                outputs[f"jac_{o}_{i}"] = D.reshape(array.size, math.prod(shape))[rows][:, by_column(shape)]
        idle = [(f"out_{o}", matrix(array.shape)) for o, array in g.outputs.items()]
        return Function(f"jac_{self.name}", Graph(f"jac_{self.name}", g.inputs, outputs, g.tape), idle)


def matrix(shape: Sequence[int]) -> tuple[int, int]:
    """CasADi's shape: a vector is a column."""
    if len(shape) > 2:
        raise InputError(f"an array of shape {tuple(shape)}: CasADi has matrices; give a function whose arrays are.")
    return (*shape, 1, 1)[:2]  # type: ignore[return-value]


def by_column(shape: Sequence[int]) -> list[int]:
    """Places of the elements row by row, in the order column by column."""
    return [int(k) for k in np.arange(math.prod(shape)).reshape(matrix(shape)).T.flat]


def dense(rows: int, columns: int) -> list[int]:
    return [rows, columns, 1]


def sparse(array: Array) -> list[int]:
    """Rows, columns, where each column begins, and the rows of what may be other than zero."""
    columns = [[i for i, x in enumerate(c) if isinstance(x, Node) or x != 0.0] for c in array.T]
    begins = np.cumsum([0, *map(len, columns)])
    return [*array.shape, *(int(x) for x in begins), *(i for c in columns for i in c)]


def companions(word: str) -> list[str]:
    """All other names that come with a function's."""
    return [f"{head}{word}{tail}" for head in ("", "jac_") for tail in TAILS if head or tail]


def functions(found: Export) -> Iterator[Function]:
    """Those that were asked for, and of a machine its rate."""
    graphs = dict(found.graphs)
    if found.stepper is not None:
        graphs = {"rate": found.stepper.slope, **graphs}
    taken = dict[str, int]()
    for name, graph in graphs.items():
        word = fresh(identifier(name)[:LONGEST_NAME], taken)
        while any(other in taken for other in companions(word)):
            word = fresh(word, taken)
        taken |= dict.fromkeys(companions(word), 0)
        work = sum(costs.jacobian(graph, of, graph.inputs) for of in graph.shapes)
        costs.announce(f"export of {graph.name} with its jac_", work, WRITTEN_OUT)
        f = Function(word, inlined(graph) if graph.calls else graph)
        yield f
        yield f.jacobian


def source(found: Export) -> str:
    """All of it in one C file."""
    all_ = list(functions(found))
    taken = {f"{f.name}{tail}": 0 for f in all_ for tail in TAILS}
    called, mine = texts({f"{f.name}_of_arrays": f.flat for f in all_}, "float64", taken, static=True)
    parts = [HEAD.format(title=comment(found.name), version=__version__)]
    parts += codes([*called, *mine])
    return "\n".join([*parts, *(f.text(text) for f, text in zip(all_, mine, strict=True))])


def write_casadi(found: Export, path: Path) -> Path:
    made = library({"functions.c": source(found)}, here())
    return write_whole(path, lambda stream: stream.write(made), "Export")
