"""Linear systems (graph/linear_solve.py) in C: nested loops like those of emit/llvm/linear_solve_code.py."""

from __future__ import annotations

from bellcrank.emit.c.routine import FIXED_LOOPS, Declaration, Routine, unique_name
from bellcrank.graph.linear_solve import LinearSystem, LUFactors

ELIMINATION = """for (int {k} = 0; {k} < {n}; ++{k}) {{
    const {real} {r} = {one} / {rows}[{n} * {k} + {k}];
    {reciprocal}[{k}] = {r};
    for (int {i} = {k} + 1; {i} < {n}; ++{i}) {{
        const {real} {f} = {rows}[{n} * {i} + {k}] * {r};
        {rows}[{n} * {i} + {k}] = {f};
        for (int {j} = {k} + 1; {j} < {n}; ++{j})
            {rows}[{n} * {i} + {j}] = {rows}[{n} * {i} + {j}] - {f} * {rows}[{n} * {k} + {j}];
    }}
}}"""

SUBSTITUTION = """for (int {i} = 0; {i} < {n}; ++{i}) {{
    {real} {r} = {b}[{i}];
    for (int {j} = 0; {j} < {i}; ++{j})
        {r} = {r} - {rows}[{n} * {i} + {j}] * {x}[{j}];
    {x}[{i}] = {r};
}}
for (int {i} = {n} - 1; {i} >= 0; --{i}) {{
    {real} {r} = {x}[{i}];
    for (int {j} = {n} - 1; {j} > {i}; --{j})
        {r} = {r} - {rows}[{n} * {i} + {j}] * {x}[{j}];
    {x}[{i}] = {r} * {reciprocal}[{i}];
}}"""

ASSEMBLY = """{real} {unit}[{n}], {column}[{n}];
for (int {j} = 0; {j} < {n}; ++{j})
    {unit}[{j}] = {none};
for (int {j} = 0; {j} < {n}; ++{j}) {{
    {unit}[{j}] = {one};
    {function}({arguments});
    {unit}[{j}] = {none};
    for (int {i} = 0; {i} < {n}; ++{i})
        {rows}[{n} * {i} + {j}] = {column}[{i}];
}}"""


class EliminationText(Routine):
    """Factorisation or substitution as a function with loops."""

    loops = FIXED_LOOPS

    def __init__(self, graph: LinearSystem, d: Declaration) -> None:
        super().__init__(graph, d)
        self.system = graph
        letters = ("i", "j", "k", "r", "f", "unit", "column")
        self.words = {x: unique_name(x, self.used_names) for x in letters} | {**self.inputs, **self.outputs}
        self.words |= {"n": str(graph.n), "real": self.real, "one": self.value(1.0), "none": self.value(0.0)}

    @property
    def stack(self) -> int:
        """Upper bound of stack usage in bytes, including callees except libm."""
        deepest = self.callees[id(self.system.linear_map)].stack if isinstance(self.system, LUFactors) else 0
        return 2 * 8 * self.system.n + 32 * len(self.arrays) + 512 + deepest

    def code(self) -> str:
        """Return the function."""
        texts = [SUBSTITUTION]
        if isinstance(self.system, LUFactors):
            given = {**self.inputs, self.system.along_input: self.words["unit"]}
            arguments = [*(given[x] for x in self.system.linear_map.inputs), self.words["column"]]
            self.words |= {"function": self.callees[id(self.system.linear_map)].name, "arguments": ", ".join(arguments)}
            texts = [ASSEMBLY, ELIMINATION]
        lines = [line for text in texts for line in text.format(**self.words).split("\n")]
        return "\n".join(self.function(f"{self.return_type} {self.name}", self.arrays, lines))
