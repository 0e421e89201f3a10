"""Recursion as rolled loops in C: for each channel, a function for every repeated sequence of cells.

It is the counterpart of emit/cpu/rolled_code.py: values passed from a cell to the next are loop variables, values that
others read lie in the workspace, and constants that differ from place to place are in tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.emit.c import turns
from bellcrank.emit.c.routine import LOOPS, Declaration, Routine, fresh
from bellcrank.emit.cpu.plan import order
from bellcrank.emit.cpu.rolled_code import MOST_CALLS, Workspace
from bellcrank.graph import Node
from bellcrank.graph.cells import RESULT, Body, Place
from bellcrank.graph.recursion import Recursion
from bellcrank.quoting import identifier

Array = np.ndarray[Any, Any]
ANGLES = -1  # number of the loop before all channels


class RolledText(Routine):
    """Recursion as a C function with rolled loops."""

    loops = LOOPS

    def __init__(self, graph: Recursion, d: Declaration) -> None:
        super().__init__(graph, d)
        self.r, self.at, self.workspace = graph, Workspace(graph, 1, 1), fresh("w", self.taken)
        self.turns = self.at.room >= turns.FOUR
        self.own = {x: fresh(x, self.taken) for x in ("begin", "count", "i", "turn", "n", "run")}
        self.tables = {k: fresh(f"{self.name}_table", self.taken, numbered=True) for k in range(len(graph.tables))}
        self.indices: dict[str, tuple[str, Array]] = {}  # C name and values of index tables, where no formula exists
        self.patterns = list(dict.fromkeys(run.cells for run in graph.tree.runs))
        self.made = {
            (k, pattern): CellLoop(self, k, pattern, fresh(f"{self.name}_loop", self.taken, numbered=True))
            for k in (ANGLES, *range(len(graph.outwards)))
            for pattern in self.patterns
        }
        self.bodies = {key: loop.lines() for key, loop in self.made.items()}

    @property
    def size(self) -> int:
        """Size of the workspace: sines and cosines, values passed on, values kept; behind them angles."""
        return max(1, self.at.size)

    @property
    def stack(self) -> int:
        """Upper bound of stack usage in bytes, except libm."""
        longest = max(len(lines) for lines in self.bodies.values())
        return (self.size + longest) * 8 + 32 * len(self.arrays) + 1024 + self.turning_room

    def index(self, name: str, values: Array) -> str:
        """Return the C name of the index table `name` with its `values`; it is created on first use."""
        if name not in self.indices:
            self.indices[name] = fresh(f"{self.name}_{identifier(name)}", self.taken), values
        return self.indices[name][0]

    def code(self) -> str:
        """Return tables, loop functions and the function that calls them."""
        lines = [self.table(self.tables[k], self.real, map(self.value, t.flat)) for k, t in self.used()]
        lines += [self.table(name, "int", map(str, values.tolist())) for name, values in self.indices.values()]
        arrays = [self.workspace, *self.arrays]
        for key, body in self.bodies.items():
            if body:
                numbers = [self.own["begin"], self.own["count"], *self.made[key].rows]
                lines += self.function(f"static void {self.made[key].name}", arrays, body, numbers)
        driver = [f"{self.real} {self.workspace}[{self.size}];"]
        for k in (ANGLES, *range(len(self.r.outwards))):
            driver += self.gone_through(k)
            if k == ANGLES:
                places = self.size - self.at.room, 0, self.at.room
                given = self.turning[0], self.suffix, self.workspace, self.at.room, places, self.own["n"]
                driver += turns.statements(*given)
        runs = [self.table(f"{self.name}_runs", "int", map(str, self.run_table().flat))] if self.many else []
        return "\n".join([*runs, *lines, *self.function(f"{self.kind} {self.name}", self.arrays, driver)])

    def used(self) -> list[tuple[int, Array]]:
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
    def many(self) -> bool:
        """Return whether there are too many runs for one call each."""
        return len(self.r.tree.runs) > MOST_CALLS

    def gone_through(self, k: int) -> list[str]:
        """Return the calls of all loops of channel `k`, in order."""
        forwards = k == ANGLES or self.r.outwards[k]
        if self.many:
            return self.by_table(k, forwards)
        runs = self.r.tree.runs if forwards else tuple(reversed(self.r.tree.runs))
        found = [(run, self.made[k, run.cells]) for run in runs if self.bodies[k, run.cells]]
        return [self.called(loop, list(map(str, (run.begin, run.repeats, *run.rows)))) for run, loop in found]

    def called(self, loop: CellLoop, numbers: Sequence[str]) -> str:
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

    def by_table(self, k: int, forwards: bool) -> list[str]:
        """Return one loop over the table of runs, for channel `k`, in the order given by `forwards`."""
        (count, width), cases = self.run_table().shape, list[str]()
        n, run, runs = self.own["n"], self.own["run"], f"{self.name}_runs"
        for p, pattern in enumerate(self.patterns):
            if self.bodies[k, pattern]:
                given = [f"{run}[{j + 1}]" for j in range(2 + len(pattern))]
                cases += [f"    case {p}:", f"        {self.called(self.made[k, pattern], given)}", "        break;"]
        at = n if forwards else f"({count - 1} - {n})"
        head = [f"for (int {n} = 0; {n} < {count}; ++{n}) {{", f"    const int *{run} = {runs} + {width} * {at};"]
        return (
            [*head, f"    switch ({run}[0]) {{", *cases, "    default:", "        break;", "    }", "}"]
            if cases
            else []
        )


class CellLoop:
    """Function for a run of cells in one channel, from `begin`, so many times."""

    def __init__(self, whole: RolledText, channel: int, pattern: tuple[int, ...], name: str) -> None:
        self.whole, self.r, self.at, self.name = whole, whole.r, whole.at, name
        self.channel, self.pattern = channel, pattern
        self.forwards = channel == ANGLES or self.r.outwards[channel]
        self.carries = channel != ANGLES and self.r.tree.chained
        cuts = [self.r.cuts[cell] for cell in pattern]
        self.bodies = [cut.angles if channel == ANGLES else cut.bodies[channel] for cut in cuts]
        self.taken, self.own = dict.fromkeys(whole.taken, 0), whole.own
        self.rows = [fresh("row", self.taken, numbered=True) for _ in pattern]
        self.given: dict[int, str] = {}  # values that the preceding cell passed on
        self.numbers: dict[str, str] = {}  # names of indices computed in this cell, by their expression

    def lines(self) -> list[str]:
        """Return the statements; none if the run has nothing to compute."""
        if not any(body.writes for body in self.bodies):
            return []
        p, ways = len(self.pattern), list(range(len(self.pattern)))
        ways = ways if self.forwards else ways[::-1]
        carried = self.carried(self.bodies[ways[0]])
        last = {x.element for x in self.bodies[ways[-1]].writes if x.kind == "handed"} if self.carries else set[int]()
        goes = {e: fresh("c", self.taken, numbered=True) for e in sorted({*carried, *last})}
        i, turn, count, begin = (self.own[x] for x in ("i", "turn", "count", "begin"))
        lines = [f"int {i} = {begin if self.forwards else f'{begin} + {p} * ({count} - 1)'};"]
        lines += self.begun(goes, carried)
        self.given, inside = dict(goes), list[str]()
        for j in ways:
            inside += self.cell(j, self.bodies[j])
        inside += [f"{goes[e]} = {value};" for e, value in self.given.items() if e in goes]
        inside.append(f"{i} {'+' if self.forwards else '-'}= {p};")
        lines += [f"for (int {turn} = 0; {turn} < {count}; ++{turn}) {{", *(f"    {x}" for x in inside), "}"]
        end = f"({i} - 1)" if self.forwards else f"({i} + {p})"
        return lines + [f"{self.handed(end, self.channel, e)} = {goes[e]};" for e in sorted(last)]

    def carried(self, body: Body) -> list[int]:
        """Return the elements of the channel that the first cell, `body`, receives from the preceding one."""
        return sorted({x.element for x in body.reads if self.comes(x)})

    def comes(self, x: Place) -> bool:
        """Return whether `x` is passed on by the preceding cell in this loop."""
        mine = x.kind in ("parent", "child") and int(x.name) == self.channel
        return self.carries and mine and (x.kind == "parent" or x.child == 0)

    def begun(self, goes: Mapping[int, str], carried: Sequence[int]) -> list[str]:
        """Return the initialisation of loop variables, from the cell before the run or with zero.

        Parameters
        ----------
        goes
            Loop variables by element.
        carried
            Elements that the first cell reads.
        """
        real, lines, other = self.whole.real, list[str](), fresh("other", self.taken)
        if carried and self.forwards:
            lines.append(f"const int {other} = {self.whole.index('parent', self.r.tree.parent)}[{self.own['i']}];")
        elif carried:
            children = self.whole.index("child0", self.r.tree.children[:, 0])
            lines.append(f"const int {other} = {children}[{self.own['i']} + {len(self.pattern) - 1}];")
        first = {e: self.handed(other, self.channel, e) for e in carried}
        return lines + [f"{real} {c} = {first.get(e, self.whole.value(0.0))};" for e, c in goes.items()]

    # -- one cell

    def cell(self, j: int, body: Body) -> list[str]:
        """Return the statements of cell `j` of the pattern, `body`."""
        whole, place = self.whole, fresh("place", self.taken, numbered=True)
        lines, before, whole.names, self.numbers = [f"const int {place} = {self.own['i']} + {j};"], self.given, {}, {}
        for n in order(body.graph):
            whole.names[n.serial] = fresh("t", self.taken, numbered=True)
            if n.op == "input":
                made, text = self.read(body.reads[n.args[1]], place, j, before)
                lines += [*made, f"const {whole.real} {whole.names[n.serial]} = {text};"]
            else:
                lines.append(whole.statement(n))
        self.given = {}
        for y, x in zip(body.graph.outputs["y"], body.writes, strict=True):
            value = whole.value(y) if isinstance(y, Node) else whole.value(float(y))
            if x.kind == "handed":
                self.given[x.element] = value
            if x.kind != "handed" or not self.carries or self.shared(j):
                lines += self.written(x, place, j, value)
        used = any(re.search(rf"\b{place}\b", line) for line in lines[1:])
        return lines if used else lines[1:]

    def shared(self, j: int) -> bool:
        """Return whether cell `j` has several children, so that its values are also read later."""
        return self.forwards and self.r.cells[self.pattern[j]].children > 1

    def read(self, x: Place, place: str, j: int, before: Mapping[int, str]) -> tuple[list[str], str]:
        """Return statements that find an operand, and its expression.

        Parameters
        ----------
        x
            Operand.
        place
            Index of the place.
        j
            Cell of the pattern.
        before
            Values of the preceding cell, by element.
        """
        if self.comes(x):
            return [], before[x.element]
        if x.kind == "table":
            lines, row = self.number(self.row(j))
            cell = self.pattern[j]
            return lines, f"{self.whole.tables[cell]}[{self.r.tables[cell].shape[1]} * {row} + {x.element}]"
        if x.kind == "kept":
            return [], self.kept(place, x.element)
        if x.kind in ("sine", "cosine"):
            lines, k = self.angle(x, place, j)
            return lines, f"{self.whole.workspace}[{'' if x.kind == 'sine' else f'{self.at.room} + '}{k}]"
        if x.kind == "input":
            values = self.r.tree.elements[x.name][:, x.element]
            lines, k = self.element(f"{x.name}_{x.element}", values, place, j)
            return lines, f"{self.whole.inputs[x.name]}[{k}]"
        child = x.kind == "child"
        values = self.r.tree.children[:, x.child] if child else self.r.tree.parent
        lines, k = self.number(f"{self.whole.index(f'child{x.child}' if child else 'parent', values)}[{place}]")
        return lines, self.handed(k, int(x.name), x.element)

    def written(self, x: Place, place: str, j: int, value: str) -> list[str]:
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
            lines, k = self.element(f"{RESULT}_{x.element}", values, place, j)
            return [*lines, f"{self.whole.outputs[self.r.output[0]]}[{k}] = {value};"]
        if x.kind == "angle":
            lines, k = self.angle(x, place, j)
            return [*lines, f"{self.whole.workspace}[{self.whole.size - self.at.room} + {k}] = {value};"]
        at = self.kept(place, x.element) if x.kind == "kept" else self.handed(place, int(x.name), x.element)
        return [f"{at} = {value};"]

    # -- addressing

    def row(self, j: int) -> str:
        """Return the row in the table of cell `j`; inward loops begin at the last one of the run."""
        turn, count, each = self.own["turn"], self.own["count"], self.pattern.count(self.pattern[j])
        return f"{self.rows[j]} + {each} * {turn if self.forwards else f'({count} - 1 - {turn})'}"

    def number(self, text: str) -> tuple[list[str], str]:
        """Return the declaration and name of an index, `text`, which is computed once per cell."""
        if text in self.numbers:
            return [], self.numbers[text]
        self.numbers[text] = fresh("k", self.taken, numbered=True)
        return [f"const int {self.numbers[text]} = {text};"], self.numbers[text]

    def element(self, name: str, values: Array, place: str, j: int) -> tuple[list[str], str]:
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
        at = np.concatenate([run.at(j) for run in self.r.tree.runs if run.cells == self.pattern])
        mine = values[at]
        slope = int((mine[-1] - mine[0]) // (at[-1] - at[0])) if at[-1] > at[0] else 1
        offset = mine - slope * at
        if (offset == offset[0]).all():
            return self.number(f"{slope} * {place} + {int(offset[0])}".replace("+ -", "- "))
        return self.number(f"{self.whole.index(name, values)}[{place}]")

    def angle(self, x: Place, place: str, j: int) -> tuple[list[str], str]:
        """Return the declaration and name of the index of angle `x` at `place`, for cell `j`."""
        return self.element(f"angle_{x.element}", self.at.angle_of[:, x.element], place, j)

    def handed(self, place: str, channel: int, e: int) -> str:
        """Return the workspace element for element `e` of `channel` at `place`."""
        start = self.at.handed_at - self.at.room + self.at.field[channel, e]
        slot = f"{self.whole.index('slot', self.at.slot)}[{place}]" if self.r.tree.chained else place
        return f"{self.whole.workspace}[{start} + {len(self.at.field)} * {slot}]"

    def kept(self, place: str, f: int) -> str:
        """Return the workspace element for the kept value `f` at `place`."""
        return f"{self.whole.workspace}[{self.at.kept_at - self.at.room + f} + {self.at.kept} * {place}]"
