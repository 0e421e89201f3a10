"""Functions as a shared library for `casadi.external`: each with its sparsity patterns, and its Jacobian as `jac_`.

CasADi stores matrices by columns and only their structural nonzeros. The pointer of an argument that is zero is NULL,
and so is that of a result that is not wanted.
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

# Suffixes of the C names that FUNCTION and `source` define for a function.
TAILS = ("", "_patterns", "_where", "_names", "_n_in", "_n_out", "_name_in", "_name_out", "_sparsity_in",
         "_sparsity_out", "_work", "_of_arrays")  # fmt: skip


@dataclass(frozen=True, eq=False)
class Function:
    """One function with CasADi's interface; `idle` lists inputs that it has but does not use, with their shapes."""

    name: str
    graph: Graph  # arrays of at most two axes
    idle: Sequence[tuple[str, tuple[int, int]]] = ()

    @cached_property
    def flat(self) -> Graph:
        """Return the function with arrays in CasADi's layout: by columns, results reduced to structural nonzeros."""
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
        """Names and shapes of all inputs, the unused ones last."""
        return [*((name, matrix(shape)) for name, shape in self.graph.inputs.items()), *self.idle]

    def text(self, of: Routine) -> str:
        """Return the C functions of CasADi's interface; `of` is the routine that they call."""
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
        """Jacobian of every output by every input, matrices by columns; its idle inputs are the function's results."""
        g, outputs = self.graph, dict[str, Array]()
        for o, array in g.outputs.items():
            rows = by_column(array.shape)
            for i, shape in g.inputs.items():
                (D,) = g.jacobian(o, i).outputs.values()
                outputs[f"jac_{o}_{i}"] = D.reshape(array.size, math.prod(shape))[rows][:, by_column(shape)]
        idle = [(f"out_{o}", matrix(array.shape)) for o, array in g.outputs.items()]
        return Function(f"jac_{self.name}", Graph(f"jac_{self.name}", g.inputs, outputs, g.tape), idle)


def matrix(shape: Sequence[int]) -> tuple[int, int]:
    """Return an array's `shape` as that of a matrix; a vector is a column."""
    if len(shape) > 2:
        raise InputError(f"an array of shape {tuple(shape)}: CasADi has matrices only; give a function of matrices.")
    return (*shape, 1, 1)[:2]  # type: ignore[return-value]


def by_column(shape: Sequence[int]) -> list[int]:
    """Return the row-major positions of the elements of an array of this `shape`, in column-major order."""
    return [int(k) for k in np.arange(math.prod(shape)).reshape(matrix(shape)).T.flat]


def dense(rows: int, columns: int) -> list[int]:
    """Return CasADi's pattern of a dense matrix of so many `rows` and `columns`."""
    return [rows, columns, 1]


def sparse(array: Array) -> list[int]:
    """Return CasADi's pattern of `array`: rows, columns, start of each column, row of each structural nonzero."""
    columns = [[i for i, x in enumerate(c) if isinstance(x, Node) or x != 0.0] for c in array.T]
    begins = np.cumsum([0, *map(len, columns)])
    return [*array.shape, *(int(x) for x in begins), *(i for c in columns for i in c)]


def companions(word: str) -> list[str]:
    """Return all other C names that belong to the function called `word`."""
    return [f"{head}{word}{tail}" for head in ("", "jac_") for tail in TAILS if head or tail]


def functions(found: Export) -> Iterator[Function]:
    """Yield the functions of the export `found`, with their Jacobians; for a machine also its rate."""
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
    """Return one C file with all functions of the export `found`."""
    all_ = list(functions(found))
    taken = {f"{f.name}{tail}": 0 for f in all_ for tail in TAILS}
    called, mine = texts({f"{f.name}_of_arrays": f.flat for f in all_}, "float64", taken, static=True)
    parts = [HEAD.format(title=comment(found.name), version=__version__)]
    parts += codes([*called, *mine])
    return "\n".join([*parts, *(f.text(text) for f, text in zip(all_, mine, strict=True))])


def write_casadi(found: Export, path: Path) -> Path:
    """Compile the export `found` for this computer and write the shared library to `path`."""
    made = library({"functions.c": source(found)}, here())
    return write_whole(path, lambda stream: stream.write(made), "Export")
