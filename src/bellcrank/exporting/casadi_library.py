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

from bellcrank.emit.c.c99 import build_routines, routines_code
from bellcrank.emit.c.routine import MAX_NAME_LENGTH, Routine, unique_name
from bellcrank.errors import InputError
from bellcrank.exporting.compilers import compile_library, host_platform
from bellcrank.exporting.export_content import JACOBIAN_REMEDY, Export, announce_cost, jacobian_operations
from bellcrank.files import write_atomically
from bellcrank.graph import Graph
from bellcrank.graph.inline import copy_to_tape, inline
from bellcrank.nodes.node import Node
from bellcrank.nodes.tape import Tape
from bellcrank.quoting import comment, identifier
from bellcrank.version import __version__

Array = np.ndarray[Any, Any]

SOURCE_HEAD = """/* {title} in C99 for casadi.external; made by bellcrank {version} */
#include <math.h>
#include <stddef.h>

#if defined _WIN32
#define SHARED __declspec(dllexport)
#else
#define SHARED __attribute__((visibility("default")))
#endif
"""

FUNCTION_TEMPLATE = """
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

# Suffixes of the C names that FUNCTION_TEMPLATE and `casadi_source` define for a function.
NAME_SUFFIXES = ("", "_patterns", "_where", "_names", "_n_in", "_n_out", "_name_in", "_name_out", "_sparsity_in",
         "_sparsity_out", "_work", "_of_arrays")  # fmt: skip


@dataclass(frozen=True, eq=False)
class CasadiFunction:
    """One function with CasADi's interface; `unused_inputs` lists inputs that it does not use, with their shapes."""

    name: str
    graph: Graph  # arrays of at most two axes
    unused_inputs: Sequence[tuple[str, tuple[int, int]]] = ()

    @cached_property
    def flat_graph(self) -> Graph:
        """Return the function with arrays in CasADi's layout: by columns, results reduced to structural nonzeros."""
        tape, elements = Tape(), dict[tuple[str, int], Any]()
        for name, shape in self.graph.inputs.items():
            order = column_major_order(shape)
            elements |= {(name, k): tape.node("input", name, position) for position, k in enumerate(order)}
        results, outputs = copy_to_tape(self.graph, tape, elements), dict[str, Array]()
        for name, array in results.items():
            nonzeros = list(filter(is_structural, array.reshape(matrix_shape(array.shape)).T.flat))
            outputs[name] = np.empty(len(nonzeros), dtype=object)
            outputs[name][:] = nonzeros
        inputs = {name: (math.prod(shape),) for name, shape in self.graph.inputs.items()}
        return Graph(self.name, inputs, outputs, tape)

    @property
    def inputs(self) -> list[tuple[str, tuple[int, int]]]:
        """Names and shapes of all inputs, the unused ones last."""
        return [*((name, matrix_shape(shape)) for name, shape in self.graph.inputs.items()), *self.unused_inputs]

    def interface_code(self, routine: Routine) -> str:
        """Return the C functions of CasADi's interface; `routine` is the routine that they call."""
        patterns = [[*shape, 1] for _, shape in self.inputs]  # dense
        patterns += [sparse_pattern(array.reshape(matrix_shape(array.shape))) for array in self.graph.outputs.values()]
        offsets = np.cumsum([0, *map(len, patterns)])[:-1]
        names = [*(name for name, _ in self.inputs), *self.graph.outputs]
        used_names = dict[str, int]()
        sizes = [array.size for array in self.flat_graph.outputs.values()]
        starts = np.cumsum([0, *sizes])
        input_pointers = [f"arg[{i}] ? arg[{i}] : zero" for i in range(len(self.graph.inputs))]
        result_pointers = [f"res[{i}] ? res[{i}] : w + {starts[i]}" for i in range(len(sizes))]
        return FUNCTION_TEMPLATE.format(
            name=self.name, n_in=len(self.inputs), n_out=len(sizes), room=starts[-1],
            patterns=", ".join(str(x) for p in patterns for x in p), where=", ".join(map(str, offsets)),
            names=", ".join(f'"{unique_name(identifier(n), used_names)}"' for n in names),
            most=max([1, *(math.prod(s) for s in self.graph.inputs.values())]),
            call=f"{routine.name}({', '.join([*input_pointers, *result_pointers])})",
        )  # fmt: skip

    @cached_property
    def jacobian(self) -> CasadiFunction:
        """Jacobian of every output by every input, matrices by columns; its idle inputs are the function's results."""
        g, outputs = self.graph, dict[str, Array]()
        for o, array in g.outputs.items():
            rows = column_major_order(array.shape)
            for i, shape in g.inputs.items():
                (D,) = g.jacobian(o, i).outputs.values()
                outputs[f"jac_{o}_{i}"] = D.reshape(array.size, math.prod(shape))[rows][:, column_major_order(shape)]
        idle = [(f"out_{o}", matrix_shape(array.shape)) for o, array in g.outputs.items()]
        return CasadiFunction(f"jac_{self.name}", Graph(f"jac_{self.name}", g.inputs, outputs, g.tape), idle)


def matrix_shape(shape: Sequence[int]) -> tuple[int, int]:
    """Return an array's `shape` as that of a matrix; a vector is a column."""
    if len(shape) > 2:
        raise InputError(f"an array of shape {tuple(shape)}: CasADi has matrices only; give a function of matrices.")
    return (*shape, 1, 1)[:2]  # type: ignore[return-value]


def column_major_order(shape: Sequence[int]) -> list[int]:
    """Return the row-major positions of the elements of an array of this `shape`, in column-major order."""
    return [int(k) for k in np.arange(math.prod(shape)).reshape(matrix_shape(shape)).T.flat]


def is_structural(x: Any) -> bool:
    """Return whether the element `x` of a result is a structural nonzero."""
    return isinstance(x, Node) or x != 0.0


def sparse_pattern(array: Array) -> list[int]:
    """Return CasADi's pattern of `array`: rows, columns, start of each column, row of each structural nonzero."""
    columns = [[i for i, x in enumerate(c) if is_structural(x)] for c in array.T]
    begins = np.cumsum([0, *map(len, columns)])
    return [*array.shape, *(int(x) for x in begins), *(i for c in columns for i in c)]


def companion_names(word: str) -> list[str]:
    """Return all other C names that belong to the function called `word`."""
    return [f"{head}{word}{tail}" for head in ("", "jac_") for tail in NAME_SUFFIXES if head or tail]


def casadi_functions(content: Export) -> Iterator[CasadiFunction]:
    """Yield the functions of the export `content`, with their Jacobians; for a machine also its rate."""
    graphs = dict(content.graphs)
    if content.stepper is not None:
        graphs = {"rate": content.stepper.slope, **graphs}
    used_names = dict[str, int]()
    for name, graph in graphs.items():
        word = unique_name(identifier(name)[:MAX_NAME_LENGTH], used_names)
        while any(other in used_names for other in companion_names(word)):
            word = unique_name(word, used_names)
        used_names |= dict.fromkeys(companion_names(word), 0)
        work = sum(jacobian_operations(graph, output, graph.inputs) for output in graph.shapes)
        announce_cost(f"export of {graph.name} with its jac_", work, JACOBIAN_REMEDY)
        f = CasadiFunction(word, inline(graph) if graph.calls else graph)
        yield f
        yield f.jacobian


def casadi_source(content: Export) -> str:
    """Return one C file with all functions of the export `content`."""
    all_ = list(casadi_functions(content))
    used_names = {f"{f.name}{tail}": 0 for f in all_ for tail in NAME_SUFFIXES}
    called, texts = build_routines(
        {f"{f.name}_of_arrays": f.flat_graph for f in all_}, "float64", used_names, static=True
    )
    parts = [SOURCE_HEAD.format(title=comment(content.name), version=__version__)]
    parts += routines_code([*called, *texts])
    return "\n".join([*parts, *(f.interface_code(text) for f, text in zip(all_, texts, strict=True))])


def write_casadi(content: Export, path: Path) -> Path:
    """Compile the export `content` for this computer and write the shared library to `path`."""
    data = compile_library({"functions.c": casadi_source(content)}, host_platform())
    return write_atomically(path, lambda stream: stream.write(data), "Export")
