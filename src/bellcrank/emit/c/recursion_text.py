"""Recursion as rolled loops in C: for each channel, a function for every repeated sequence of cells.

It is the counterpart of emit/llvm/recursion_code.py: values passed from a cell to the next are loop variables, values
that others read lie in the workspace, and constants that differ from place to place are in tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.emit.c import sincos_text
from bellcrank.emit.c.routine import FIXED_LOOPS, Declaration, Routine, unique_name
from bellcrank.emit.llvm.recursion_code import MAX_DIRECT_CALLS, WorkspaceLayout
from bellcrank.emit.llvm.scheduling import order
from bellcrank.graph import Node
from bellcrank.graph.cells import RESULT, CellOperand, LoopBody
from bellcrank.graph.recursion import Recursion
from bellcrank.quoting import identifier

Array = np.ndarray[Any, Any]
ANGLES = -1  # number of the loop before all channels


class RolledText(Routine):
    """Recursion as a C function with rolled loops."""

    loops = FIXED_LOOPS

    def __init__(self, graph: Recursion, d: Declaration) -> None:
        super().__init__(graph, d)
        self.r, self.layout, self.workspace = graph, WorkspaceLayout(graph, 1, 1), unique_name("w", self.used_names)
        self.calls_sincos = self.layout.padded_angles >= sincos_text.GROUP_SIZE
        self.loop_names = {x: unique_name(x, self.used_names) for x in ("begin", "count", "i", "turn", "n", "run")}
        self.tables = {
            k: unique_name(f"{self.name}_table", self.used_names, numbered=True) for k in range(len(graph.tables))
        }
        self.indices: dict[str, tuple[str, Array]] = {}  # C name and values of index tables, where no formula exists
        self.patterns = list(dict.fromkeys(run.cells for run in graph.tree.runs))
        self.loops_by_cells = {
            (k, pattern): CellLoop(self, k, pattern, unique_name(f"{self.name}_loop", self.used_names, numbered=True))
            for k in (ANGLES, *range(len(graph.outwards)))
            for pattern in self.patterns
        }
        self.bodies = {key: loop.lines() for key, loop in self.loops_by_cells.items()}

    @property
    def size(self) -> int:
        """Size of the workspace: sines and cosines, values passed on, values kept; behind them angles."""
        return max(1, self.layout.size)

    @property
    def stack(self) -> int:
        """Upper bound of stack usage in bytes, except libm."""
        longest = max(len(lines) for lines in self.bodies.values())
        return (self.size + longest) * 8 + 32 * len(self.arrays) + 1024 + self.sincos_stack

    def index(self, name: str, values: Array) -> str:
        """Return the C name of the index table `name` with its `values`; it is created on first use."""
        if name not in self.indices:
            self.indices[name] = unique_name(f"{self.name}_{identifier(name)}", self.used_names), values
        return self.indices[name][0]

    def code(self) -> str:
        """Return tables, loop functions and the function that calls them."""
        lines = [self.table(self.tables[k], self.real, map(self.value, t.flat)) for k, t in self.used_tables()]
        lines += [self.table(name, "int", map(str, values.tolist())) for name, values in self.indices.values()]
        arrays = [self.workspace, *self.arrays]
        for key, body in self.bodies.items():
            if body:
                numbers = [self.loop_names["begin"], self.loop_names["count"], *self.loops_by_cells[key].rows]
                lines += self.function(f"static void {self.loops_by_cells[key].name}", arrays, body, numbers)
        driver = [f"{self.real} {self.workspace}[{self.size}];"]
        for k in (ANGLES, *range(len(self.r.outwards))):
            driver += self.channel_calls(k)
            if k == ANGLES:
                places = self.size - self.layout.padded_angles, 0, self.layout.padded_angles
                given = (
                    self.sincos_names[0],
                    self.suffix,
                    self.workspace,
                    self.layout.padded_angles,
                    places,
                    self.loop_names["n"],
                )
                driver += sincos_text.sincos_statements(*given)
        runs = [self.table(f"{self.name}_runs", "int", map(str, self.run_table().flat))] if self.uses_run_table else []
        return "\n".join([*runs, *lines, *self.function(f"{self.return_type} {self.name}", self.arrays, driver)])

    def used_tables(self) -> list[tuple[int, Array]]:
        """Return the constant tables that the code reads, with their numbers."""
        text = "\n".join(line for body in self.bodies.values() for line in body)
        return [(k, t) for k, t in enumerate(self.r.tables) if f"{self.tables[k]}[" in text]

    def table(self, name: str, kind: str, values: Any) -> str:
        """Return the definition of a constant array.

        Parameters
        ----------
        name
            Name of the array.
        kind
            C type.
        values
            Texts of the values.
        """
        return f"static const {kind} {name}[] = {{{', '.join(values)}}};\n"

    # -- driver

    @property
    def uses_run_table(self) -> bool:
        """Return whether there are too many runs for one call each."""
        return len(self.r.tree.runs) > MAX_DIRECT_CALLS

    def channel_calls(self, k: int) -> list[str]:
        """Return the calls of all loops of channel `k`, in order."""
        forwards = k == ANGLES or self.r.outwards[k]
        if self.uses_run_table:
            return self.table_driven_calls(k, forwards)
        runs = self.r.tree.runs if forwards else tuple(reversed(self.r.tree.runs))
        loops = [(run, self.loops_by_cells[k, run.cells]) for run in runs if self.bodies[k, run.cells]]
        return [self.loop_call(loop, list(map(str, (run.begin, run.repeats, *run.rows)))) for run, loop in loops]

    def loop_call(self, loop: CellLoop, numbers: Sequence[str]) -> str:
        """Return the call of a `loop` with its leading integers, `numbers`."""
        return f"{loop.name}({', '.join([*numbers, self.workspace, *self.arrays])});"

    def run_table(self) -> Array:
        """Return the table of runs: pattern, first place, repeats, first table rows."""
        most = max(len(p) for p in self.patterns)
        rows = [
            [self.patterns.index(run.cells), run.begin, run.repeats, *run.rows, *[0] * (most - len(run.rows))]
            for run in self.r.tree.runs
        ]
        return np.array(rows)

    def table_driven_calls(self, k: int, forwards: bool) -> list[str]:
        """Return one loop over the table of runs, for channel `k`, in the order given by `forwards`."""
        (count, width), cases = self.run_table().shape, list[str]()
        n, run, runs = self.loop_names["n"], self.loop_names["run"], f"{self.name}_runs"
        for p, pattern in enumerate(self.patterns):
            if self.bodies[k, pattern]:
                given = [f"{run}[{j + 1}]" for j in range(2 + len(pattern))]
                cases += [
                    f"    case {p}:",
                    f"        {self.loop_call(self.loops_by_cells[k, pattern], given)}",
                    "        break;",
                ]
        run_index = n if forwards else f"({count - 1} - {n})"
        head = [
            f"for (int {n} = 0; {n} < {count}; ++{n}) {{",
            f"    const int *{run} = {runs} + {width} * {run_index};",
        ]
        return (
            [*head, f"    switch ({run}[0]) {{", *cases, "    default:", "        break;", "    }", "}"]
            if cases
            else []
        )


class CellLoop:
    """Function for a run of cells in one channel, from `begin`, with a given number of repeats."""

    def __init__(self, routine: RolledText, channel: int, pattern: tuple[int, ...], name: str) -> None:
        self.routine, self.r, self.layout, self.name = routine, routine.r, routine.layout, name
        self.channel, self.pattern = channel, pattern
        self.forwards = channel == ANGLES or self.r.outwards[channel]
        self.carries = channel != ANGLES and self.r.tree.chained
        cuts = [self.r.cell_loops[cell] for cell in pattern]
        self.bodies = [cut.angles if channel == ANGLES else cut.bodies[channel] for cut in cuts]
        self.used_names, self.loop_names = dict.fromkeys(routine.used_names, 0), routine.loop_names
        self.rows = [unique_name("row", self.used_names, numbered=True) for _ in pattern]
        self.passed_values: dict[int, str] = {}  # values that the preceding cell passed on
        self.index_names: dict[str, str] = {}  # names of indices computed in this cell, by their expression

    def lines(self) -> list[str]:
        """Return the statements; none if the run has nothing to compute."""
        if not any(body.writes for body in self.bodies):
            return []
        p, cell_order = len(self.pattern), list(range(len(self.pattern)))
        cell_order = cell_order if self.forwards else cell_order[::-1]
        carried = self.carried_elements(self.bodies[cell_order[0]])
        last = (
            {x.element for x in self.bodies[cell_order[-1]].writes if x.kind == "handed"}
            if self.carries
            else set[int]()
        )
        loop_variables = {e: unique_name("c", self.used_names, numbered=True) for e in sorted({*carried, *last})}
        i, turn, count, begin = (self.loop_names[x] for x in ("i", "turn", "count", "begin"))
        lines = [f"int {i} = {begin if self.forwards else f'{begin} + {p} * ({count} - 1)'};"]
        lines += self.initial_statements(loop_variables, carried)
        self.passed_values, loop_body = dict(loop_variables), list[str]()
        for j in cell_order:
            loop_body += self.cell_statements(j, self.bodies[j])
        loop_body += [
            f"{loop_variables[e]} = {value};" for e, value in self.passed_values.items() if e in loop_variables
        ]
        loop_body.append(f"{i} {'+' if self.forwards else '-'}= {p};")
        lines += [f"for (int {turn} = 0; {turn} < {count}; ++{turn}) {{", *(f"    {x}" for x in loop_body), "}"]
        end = f"({i} - 1)" if self.forwards else f"({i} + {p})"
        return lines + [f"{self.passed_element(end, self.channel, e)} = {loop_variables[e]};" for e in sorted(last)]

    def carried_elements(self, body: LoopBody) -> list[int]:
        """Return the elements of the channel that the first cell, `body`, receives from the preceding one."""
        return sorted({x.element for x in body.reads if self.is_carried(x)})

    def is_carried(self, x: CellOperand) -> bool:
        """Return whether `x` is passed on by the preceding cell in this loop."""
        in_channel = x.kind in ("parent", "child") and int(x.name) == self.channel
        return self.carries and in_channel and (x.kind == "parent" or x.child == 0)

    def initial_statements(self, loop_variables: Mapping[int, str], carried: Sequence[int]) -> list[str]:
        """Return the initialisation of loop variables, from the cell before the run or with zero.

        Parameters
        ----------
        loop_variables
            Loop variables by element.
        carried
            Elements that the first cell reads.
        """
        real, lines, other = self.routine.real, list[str](), unique_name("other", self.used_names)
        if carried and self.forwards:
            lines.append(
                f"const int {other} = {self.routine.index('parent', self.r.tree.parent)}[{self.loop_names['i']}];"
            )
        elif carried:
            children = self.routine.index("child0", self.r.tree.children[:, 0])
            lines.append(f"const int {other} = {children}[{self.loop_names['i']} + {len(self.pattern) - 1}];")
        first = {e: self.passed_element(other, self.channel, e) for e in carried}
        return lines + [f"{real} {c} = {first.get(e, self.routine.value(0.0))};" for e, c in loop_variables.items()]

    # -- one cell

    def cell_statements(self, j: int, body: LoopBody) -> list[str]:
        """Return the statements of cell `j` of the pattern, `body`."""
        routine, place = self.routine, unique_name("place", self.used_names, numbered=True)
        lines, previous_values, routine.names, self.index_names = (
            [f"const int {place} = {self.loop_names['i']} + {j};"],
            self.passed_values,
            {},
            {},
        )
        for n in order(body.graph):
            routine.names[n.serial] = unique_name("t", self.used_names, numbered=True)
            if n.op == "input":
                index_statements, text = self.read_operand(body.reads[n.args[1]], place, j, previous_values)
                lines += [*index_statements, f"const {routine.real} {routine.names[n.serial]} = {text};"]
            else:
                lines.append(routine.statement(n))
        self.passed_values = {}
        for y, x in zip(body.graph.outputs["y"], body.writes, strict=True):
            value = routine.value(y) if isinstance(y, Node) else routine.value(float(y))
            if x.kind == "handed":
                self.passed_values[x.element] = value
            if x.kind != "handed" or not self.carries or self.has_several_children(j):
                lines += self.store_statements(x, place, j, value)
        used = any(re.search(rf"\b{place}\b", line) for line in lines[1:])
        return lines if used else lines[1:]

    def has_several_children(self, j: int) -> bool:
        """Return whether cell `j` has several children, so that its values are also read later."""
        return self.forwards and self.r.cells[self.pattern[j]].children > 1

    def read_operand(
        self, x: CellOperand, place: str, j: int, previous_values: Mapping[int, str]
    ) -> tuple[list[str], str]:
        """Return statements that find an operand, and its expression.

        Parameters
        ----------
        x
            Operand.
        place
            Index of the place.
        j
            Cell of the pattern.
        previous_values
            Values of the preceding cell, by element.
        """
        if self.is_carried(x):
            return [], previous_values[x.element]
        if x.kind == "table":
            lines, row = self.shared_index(self.table_row(j))
            cell = self.pattern[j]
            return lines, f"{self.routine.tables[cell]}[{self.r.tables[cell].shape[1]} * {row} + {x.element}]"
        if x.kind == "kept":
            return [], self.stored_element(place, x.element)
        if x.kind in ("sine", "cosine"):
            lines, k = self.angle_index(x, place, j)
            return (
                lines,
                f"{self.routine.workspace}[{'' if x.kind == 'sine' else f'{self.layout.padded_angles} + '}{k}]",
            )
        if x.kind == "input":
            values = self.r.tree.elements[x.name][:, x.element]
            lines, k = self.place_index(f"{x.name}_{x.element}", values, place, j)
            return lines, f"{self.routine.inputs[x.name]}[{k}]"
        child = x.kind == "child"
        values = self.r.tree.children[:, x.child] if child else self.r.tree.parent
        lines, k = self.shared_index(f"{self.routine.index(f'child{x.child}' if child else 'parent', values)}[{place}]")
        return lines, self.passed_element(k, int(x.name), x.element)

    def store_statements(self, x: CellOperand, place: str, j: int, value: str) -> list[str]:
        """Return the statements that store a result.

        Parameters
        ----------
        x
            Destination.
        place
            Index of the place.
        j
            Cell of the pattern.
        value
            Expression.
        """
        if x.kind == "output":
            values = self.r.tree.elements[RESULT][:, x.element]
            lines, k = self.place_index(f"{RESULT}_{x.element}", values, place, j)
            return [*lines, f"{self.routine.outputs[self.r.output[0]]}[{k}] = {value};"]
        if x.kind == "angle":
            lines, k = self.angle_index(x, place, j)
            return [
                *lines,
                f"{self.routine.workspace}[{self.routine.size - self.layout.padded_angles} + {k}] = {value};",
            ]
        element = (
            self.stored_element(place, x.element)
            if x.kind == "kept"
            else self.passed_element(place, int(x.name), x.element)
        )
        return [f"{element} = {value};"]

    # -- addressing

    def table_row(self, j: int) -> str:
        """Return the row in the table of cell `j`; inward loops begin at the last one of the run."""
        turn, count, each = self.loop_names["turn"], self.loop_names["count"], self.pattern.count(self.pattern[j])
        return f"{self.rows[j]} + {each} * {turn if self.forwards else f'({count} - 1 - {turn})'}"

    def shared_index(self, text: str) -> tuple[list[str], str]:
        """Return the declaration and name of an index, `text`, which is computed once per cell."""
        if text in self.index_names:
            return [], self.index_names[text]
        self.index_names[text] = unique_name("k", self.used_names, numbered=True)
        return [f"const int {self.index_names[text]} = {text};"], self.index_names[text]

    def place_index(self, name: str, values: Array, place: str, j: int) -> tuple[list[str], str]:
        """Return the declaration and name of an index that depends on the place, by a linear formula if there is one.

        Parameters
        ----------
        name
            Name of the index table.
        values
            Index at every place.
        place
            Index of the place.
        j
            Cell of the pattern.
        """
        all_places = np.concatenate([run.places_of_cell(j) for run in self.r.tree.runs if run.cells == self.pattern])
        place_values = values[all_places]
        slope = (
            int((place_values[-1] - place_values[0]) // (all_places[-1] - all_places[0]))
            if all_places[-1] > all_places[0]
            else 1
        )
        offset = place_values - slope * all_places
        if (offset == offset[0]).all():
            return self.shared_index(f"{slope} * {place} + {int(offset[0])}".replace("+ -", "- "))
        return self.shared_index(f"{self.routine.index(name, values)}[{place}]")

    def angle_index(self, x: CellOperand, place: str, j: int) -> tuple[list[str], str]:
        """Return the declaration and name of the index of angle `x` at `place`, for cell `j`."""
        return self.place_index(f"angle_{x.element}", self.layout.angle_of[:, x.element], place, j)

    def passed_element(self, place: str, channel: int, e: int) -> str:
        """Return the workspace element for element `e` of `channel` at `place`."""
        start = self.layout.handed_at - self.layout.padded_angles + self.layout.field_index[channel, e]
        slot = f"{self.routine.index('slot', self.layout.slot)}[{place}]" if self.r.tree.chained else place
        return f"{self.routine.workspace}[{start} + {len(self.layout.field_index)} * {slot}]"

    def stored_element(self, place: str, f: int) -> str:
        """Return the workspace element for the kept value `f` at `place`."""
        start = self.layout.kept_at - self.layout.padded_angles + f
        return f"{self.routine.workspace}[{start} + {self.layout.kept_width} * {place}]"
