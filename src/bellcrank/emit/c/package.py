"""C99 package that compiles by itself: functions of graphs, and of a Program its state, init, step and output.

Functions work on arrays, as c99.py writes them. For a Program there are structs on top, with a named member for each
number; they are copied to arrays and back by memcpy, which compilers optimise away.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from bellcrank.emit.c.c99 import build_routines, routines_code
from bellcrank.emit.c.exported_program import ExportedProgram, Member
from bellcrank.emit.c.package_text import (
    CMAKE,
    EXAMPLE,
    FIXED_STATUS,
    FLAGS,
    FUNCTIONS_ONLY,
    HEADER,
    PROGRAM,
    README,
    STATUS,
    step_statements,
)
from bellcrank.emit.c.routine import (
    MAX_LABEL_LENGTH,
    MAX_NAME_LENGTH,
    REAL_TYPES,
    STATIC_DATA_BY_LOOPS,
    Routine,
    unique_name,
)
from bellcrank.errors import InputError, unknown
from bellcrank.graph import Graph
from bellcrank.quoting import comment, identifier, markdown, source
from bellcrank.version import __version__

STRUCT_NAMES = ("state", "inputs", "parameters", "outputs", "rates")  # structs
LOCAL_ARRAYS = {"s": "state", "u": "inputs", "p": "free_numbers"}  # by struct parameter
FUNCTION_NAMES = ("rest", "init", "start", "step", "output", "rate", "advance")  # functions beside those of graphs


class Package:
    """Files of one C package; `columns` has the names of the elements of arrays, for the comments."""

    def __init__(
        self,
        name: str,
        graphs: Mapping[str, Graph],
        stepper: ExportedProgram | None = None,
        dtype: str = "float64",
        columns: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        if dtype not in REAL_TYPES:
            raise InputError(unknown("dtype", dtype, REAL_TYPES))
        # Identifiers with this prefix must differ within C99's 63 characters.
        self.name = source(name)[:MAX_LABEL_LENGTH]
        self.stepper, self.dtype, self.columns = stepper, dtype, columns or {}
        self.real = REAL_TYPES[dtype][0]
        origin = f"in C99, {self.real}; made by bellcrank {__version__}"
        self.title, self.heading = f"{comment(name)} {origin}", f"{markdown(name)} {origin}"
        used_names = {f"{self.name}_{word}": 0 for word in (*STRUCT_NAMES, *FUNCTION_NAMES)}
        program_graphs = stepper.graphs if stepper is not None else {}
        self.program_functions = {word: f"{self.name}_{word}" for word in program_graphs}
        named = {full: program_graphs[word] for word, full in self.program_functions.items()}
        used_names |= dict.fromkeys(named, 0)
        for word, graph in graphs.items():
            named[unique_name(f"{self.name}_{identifier(word)}"[:MAX_NAME_LENGTH], used_names)] = graph
        self.callees, self.routines = build_routines(named, dtype, used_names)

    @property
    def files(self) -> dict[str, str]:
        """Text of each file, by its name."""
        return {
            f"{self.name}.h": self.header,
            f"{self.name}.c": self.code,
            "CMakeLists.txt": CMAKE.format(name=self.name, flags=FLAGS),
            "README.md": self.readme,
            "main.c": self.example,
        }

    # -- structs

    @property
    def structs(self) -> dict[str, list[Member]]:
        """Members of each struct that is not empty."""
        s = self.stepper
        if s is None:
            return {}
        rates = [Member(m.name, f"{m.unit or 1}/s") for m in s.state[1 : 1 + s.size]]
        members_of_structs = zip(STRUCT_NAMES, (s.state, s.inputs, s.parameters, s.outputs, rates), strict=True)
        return {word: members for word, members in members_of_structs if members}

    def struct(self, word: str, members: Sequence[Member]) -> str:
        """Return the definition of the struct `word` with its `members`."""
        rows = zip(self.members(members), members, strict=True)
        lines = [f"    {self.real} {name}; /* {comment(f'{m.name} [{m.unit or 1}]')} */" for name, m in rows]
        return "\n".join(["typedef struct {", *lines, f"}} {self.name}_{word};\n"])

    def members(self, members: Sequence[Member]) -> list[str]:
        """Return the names of `members` in C: readable, and unique."""
        taken = dict[str, int]()
        return [unique_name(identifier(m.name)[:MAX_LABEL_LENGTH], taken) for m in members]

    def parameter_declarations(self, const: str = "const ", state: str = "") -> str:
        """Return the declarations of the parameters s, u and p, as far as they exist.

        Parameters
        ----------
        const
            Qualifier of u and p.
        state
            Qualifier of s.
        """
        return ", ".join(f"{state if x == 's' else const}{self.name}_{word} *{x}" for x, word in self.parameter_structs)

    @property
    def struct_parameters(self) -> list[str]:
        """Names of the struct parameters that exist."""
        return [x for x, _ in self.parameter_structs]

    def arguments(self, graph: Graph) -> list[str]:
        """Return the arguments of the function of `graph`, by the names of the local arrays."""
        known = {"t": "state", "y": "state + 1", "signs": "status", **LOCAL_ARRAYS}
        return [known[x] for x in graph.inputs]

    @property
    def prototypes(self) -> dict[str, str]:
        """Prototypes of the functions that take structs, by word."""
        if self.stepper is None:
            return {}
        n, seen = self.name, self.parameter_declarations(state="const ")
        return {
            "rest": f"void {n}_rest({', '.join(f'{self.real} *{a}' for a in self.arrays.values())})",
            "advance": f"int {n}_advance({', '.join(f'{self.real} *{a}' for a in self.arrays.values())})".replace(
                f", {self.real}", f", const {self.real}"
            ),
            "init": f"void {n}_init({self.parameter_declarations(const='')})",
            "start": f"void {n}_start({self.parameter_declarations()})",
            "step": f"int {n}_step({self.parameter_declarations()})",
            "output": f"void {n}_output({seen}, {n}_outputs *out)",
            "rate": f"void {n}_rate({seen}, {n}_rates *out)",
        }

    @property
    def arrays(self) -> dict[str, str]:
        """Names of the local arrays that s, u and p are copied to."""
        return {x: LOCAL_ARRAYS[x] for x in self.struct_parameters}

    # -- files

    @property
    def header(self) -> str:
        """Text of the header."""
        bounds = [line for text in self.routines for line in self.bounds(text)]
        plain, restrict = (
            [f"void {t.name}({t.parameters(t.arrays, r)});" for t in self.routines] for r in ("", "restrict ")
        )
        parts = [self.struct(word, members) for word, members in self.structs.items()]
        about = [line for t in self.routines for line in (f" * {t.name}", *t.array_comments(self.columns, 5))]
        return HEADER.format(
            title=self.title, NAME=self.name.upper().rstrip("_"), about="\n".join(about), bounds="\n".join(bounds),
            plain="\n".join(plain), restrict="\n".join(restrict), structs="\n".join(parts),
            calls="\n".join(f"{text};" for text in self.prototypes.values()), loops=self.loops,
            memory=self.memory,
        )  # fmt: skip

    def bounds(self, text: Routine) -> list[str]:
        """Return the macros of operations and stack usage of a function, `text`."""
        operations = sum(text.graph.count().by_kind.values())
        upper = text.name.upper()
        return [f"#define {upper}_OPERATIONS {operations}", f"#define {upper}_STACK_BYTES {text.stack}"]

    @property
    def code(self) -> str:
        """Text of the C file."""
        lines = [f"/* {self.title} */", f'#include "{self.name}.h"\n', "#include <math.h>", "#include <string.h>\n"]
        lines += routines_code([*self.callees, *self.routines])
        return "\n".join([*lines, *(line for part in self.functions() for line in part)])

    def functions(self) -> Iterable[list[str]]:
        """Yield the functions that take structs."""
        s, heads, arrays, name = self.stepper, self.prototypes, self.arrays, self.name
        if s is None:
            return
        for word, members in self.structs.items():  # does not compile if the compiler pads such a struct
            full = f"{name}_{word}"
            size = f"{len(members)} * sizeof({self.real})"
            yield [f"typedef char {full}_is_packed[sizeof({full}) == {size} ? 1 : -1];\n"]
        beginnings = zip(arrays.values(), (s.state, *(x for x in (s.inputs, s.parameters) if x)), strict=True)
        number = self.routines[0].value
        values = [f"{a}[{k}] = {number(m.value)};" for a, members in beginnings for k, m in enumerate(members)]
        declarations = [f"{self.real} {arrays[x]}[{len(self.structs[word])}];" for x, word in self.parameter_structs]
        written = [f"memcpy({x}, {a}, sizeof({a}));" for x, a in arrays.items()]
        read = [*declarations, *(f"memcpy({a}, {x}, sizeof({a}));" for x, a in arrays.items())]
        read += [f"(void){a};" for a in arrays.values()]
        after = f"{self.real} next[{len(s.state)}];"
        back = "memcpy(s, next, sizeof(next));"
        yield self.function(heads["rest"], values)
        suffix = REAL_TYPES[self.dtype][1]
        yield self.function(
            heads["advance"], step_statements(s, self.real, suffix, list(arrays.values()), self.call_on_array)
        )
        rest_call = f"{name}_rest({', '.join(arrays.values())});"
        start_call = f"{name}_start({', '.join(self.struct_parameters)});"
        yield self.function(heads["init"], [*declarations, rest_call, *written, start_call])
        yield self.function(heads["start"], [after, *read, self.call("begin", "next"), back])
        advance_call = f"status = {name}_advance({', '.join(arrays.values())});"
        copy_back = "memcpy(s, state, sizeof(state));"
        yield self.function(heads["step"], ["int status;", *read, advance_call, copy_back, "return status;"])
        for word, array, graph in (("output", "outputs", "observe"), ("rate", "rates", "slope")):
            result_declaration = f"{self.real} made[{len(self.structs[array])}];"
            copy = "memcpy(out, made, sizeof(made));"
            yield self.function(heads[word], [result_declaration, *read, self.call(graph, "made"), copy])

    @property
    def parameter_structs(self) -> list[tuple[str, str]]:
        """Struct parameters, and the struct of each."""
        return [(x, word) for x, word in zip("sup", STRUCT_NAMES, strict=False) if word in self.structs]

    def call(self, word: str, *results: str) -> str:
        """Return the call of a graph of the Program, named `word`, on the array `state`, with its `results`."""
        return self.call_on_array(word, "state", *results)

    def call_on_array(self, word: str, state: str, *results: str) -> str:
        """Return the call of a graph of the Program on a given array.

        Parameters
        ----------
        word
            Name of the graph.
        state
            Name of the state array.
        results
            Names of the result arrays.
        """
        given = [x.replace("state", state) for x in self.arguments(getattr(self.stepper, word))]
        return f"{self.program_functions[word]}({', '.join([*given, *results])});"

    def function(self, head: str, body: Sequence[str]) -> list[str]:
        """Return a function with the given `head` and the statements of its `body`."""
        return [head, "{", *(f"    {line}" for line in body), "}\n"]

    @property
    def readme(self) -> str:
        """Text of README.md."""
        rows = [
            f"* `{t.name}`: {sum(t.graph.count().by_kind.values())} operations, stack below {t.stack} bytes"
            for t in self.routines
        ]
        watched = self.stepper is not None and self.stepper.multi_tick
        status = "\n".join(f"* {k}: {text}" for k, text in sorted(STATUS.items()) if watched or k in FIXED_STATUS)
        program = PROGRAM.format(name=self.name, status=status, step=self.stepper.step) if self.stepper else ""
        return README.format(
            name=self.name,
            title=self.heading,
            flags=FLAGS,
            functions="\n".join(rows),
            program=program,
            loops=self.loops,
            memory=self.memory,
        )

    @property
    def loops(self) -> str:
        """Description of the loops in a step."""
        if self.stepper is None or not self.stepper.multi_tick:
            return self.function_loops
        return "one loop of at most `most` ticks" + (
            f", {self.function_loops}" if self.function_loops != Routine.loops else ""
        )

    @property
    def memory(self) -> str:
        """Description of static data."""
        return STATIC_DATA_BY_LOOPS[self.function_loops]

    @property
    def function_loops(self) -> str:
        """Description of the loops inside functions."""
        return max((text.loops for text in (*self.callees, *self.routines)), key=list(STATIC_DATA_BY_LOOPS).index)

    @property
    def example(self) -> str:
        """Text of main.c."""
        if self.stepper is not None:
            declarations = [f"    {self.name}_{word} {x};" for x, word in self.parameter_structs]
            given, first = ", ".join(f"&{x}" for x in self.struct_parameters), self.members(self.stepper.state)[1]
            return EXAMPLE.format(name=self.name, rooms="\n".join(declarations), given=given, first=first)
        text = self.routines[0]
        shapes = zip(text.arrays, text.shapes, strict=True)
        declarations = [f"    {self.real} {array}[{max(1, math.prod(s))}] = {{0}};" for array, (_, s) in shapes]
        call, result = f"{text.name}({', '.join(text.arrays)});", next(iter(text.outputs.values()))
        return FUNCTIONS_ONLY.format(name=self.name, arrays="\n".join(declarations), call=call, result=result)
