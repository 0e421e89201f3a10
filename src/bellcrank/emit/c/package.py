"""C99 package that compiles by itself: functions of graphs, and of a Program its state, init, step and output.

Functions work on arrays, as c99.py writes them. For a Program there are structs on top, with a named member for each
number; they are copied to arrays and back by memcpy, which compilers optimise away.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from bellcrank.emit.c.advance import advanced
from bellcrank.emit.c.c99 import codes, texts
from bellcrank.emit.c.package_texts import (
    CMAKE,
    EXAMPLE,
    FIXED_STATUS,
    FLAGS,
    FUNCTIONS_ONLY,
    HEADER,
    PROGRAM,
    README,
    STATUS,
)
from bellcrank.emit.c.routine import LONGEST_LABEL, LONGEST_NAME, MEMORY, REALS, Routine, fresh
from bellcrank.emit.c.stepper import Member, Stepper
from bellcrank.errors import InputError, unknown
from bellcrank.graph import Graph
from bellcrank.quoting import comment, identifier, markdown, source
from bellcrank.version import __version__

WORDS = ("state", "inputs", "parameters", "outputs", "rates")  # structs
CALLS = ("rest", "init", "start", "step", "output", "rate", "advance")  # functions beside those of graphs


class Package:
    """Files of one C package; `columns` has the names of the elements of arrays, for the comments."""

    def __init__(
        self,
        name: str,
        graphs: Mapping[str, Graph],
        stepper: Stepper | None = None,
        dtype: str = "float64",
        columns: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        if dtype not in REALS:
            raise InputError(unknown("dtype", dtype, REALS))
        self.name, self.stepper, self.dtype, self.columns = (
            source(name)[:LONGEST_LABEL],  # identifiers with this prefix must differ within C99's 63 characters
            stepper,
            dtype,
            columns or {},
        )
        self.real = REALS[dtype][0]
        made = f"in C99, {self.real}; made by bellcrank {__version__}"
        self.title, self.heading = f"{comment(name)} {made}", f"{markdown(name)} {made}"
        taken = {f"{self.name}_{word}": 0 for word in (*WORDS, *CALLS)}
        own = stepper.graphs if stepper is not None else {}
        self.machine = {word: f"{self.name}_{word}" for word in own}
        named = {full: own[word] for word, full in self.machine.items()}
        taken |= dict.fromkeys(named, 0)
        for word, graph in graphs.items():
            named[fresh(f"{self.name}_{identifier(word)}"[:LONGEST_NAME], taken)] = graph
        self.called, self.texts = texts(named, dtype, taken)

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
        found = {"state": s.state, "inputs": s.inputs, "parameters": s.parameters, "outputs": s.outputs, "rates": rates}
        return {word: members for word, members in found.items() if members}

    def struct(self, word: str, members: Sequence[Member]) -> str:
        """Return the definition of the struct `word` with its `members`."""
        rows = zip(self.members(members), members, strict=True)
        lines = [f"    {self.real} {name}; /* {comment(f'{m.name} [{m.unit or 1}]')} */" for name, m in rows]
        return "\n".join(["typedef struct {", *lines, f"}} {self.name}_{word};\n"])

    def members(self, members: Sequence[Member]) -> list[str]:
        """Return the names of `members` in C: readable, and unique."""
        taken = dict[str, int]()
        return [fresh(identifier(m.name)[:LONGEST_LABEL], taken) for m in members]

    def given(self, const: str = "const ", state: str = "") -> str:
        """Return the declarations of the parameters s, u and p, as far as they exist.

        Parameters
        ----------
        const
            Qualifier of u and p.
        state
            Qualifier of s.
        """
        kinds = {
            "s": f"{state}{self.name}_state",
            "u": f"{const}{self.name}_inputs",
            "p": f"{const}{self.name}_parameters",
        }
        return ", ".join(f"{kind} *{x}" for x, kind in kinds.items() if x in self.handed)

    @property
    def handed(self) -> list[str]:
        """Names of the struct parameters that exist."""
        return ["s", *(x for x, word in (("u", "inputs"), ("p", "parameters")) if word in self.structs)]

    def arguments(self, graph: Graph) -> list[str]:
        """Return the arguments of the function of `graph`, by the names of the local arrays."""
        known = {"t": "state", "y": "state + 1", "s": "state", "u": "inputs", "p": "free_numbers", "signs": "status"}
        return [known[x] for x in graph.inputs]

    @property
    def prototypes(self) -> dict[str, str]:
        """Prototypes of the functions that take structs, by word."""
        if self.stepper is None:
            return {}
        n, seen = self.name, self.given(state="const ")
        return {
            "rest": f"void {n}_rest({', '.join(f'{self.real} *{a}' for a in self.arrays.values())})",
            "advance": f"int {n}_advance({', '.join(f'{self.real} *{a}' for a in self.arrays.values())})".replace(
                f", {self.real}", f", const {self.real}"
            ),
            "init": f"void {n}_init({self.given(const='')})",
            "start": f"void {n}_start({self.given()})",
            "step": f"int {n}_step({self.given()})",
            "output": f"void {n}_output({seen}, {n}_outputs *out)",
            "rate": f"void {n}_rate({seen}, {n}_rates *out)",
        }

    @property
    def arrays(self) -> dict[str, str]:
        """Names of the local arrays that s, u and p are copied to."""
        return {x: {"s": "state", "u": "inputs", "p": "free_numbers"}[x] for x in self.handed}

    # -- files

    @property
    def header(self) -> str:
        """Text of the header."""
        bounds = [line for text in self.texts for line in self.bounds(text)]
        plain, restrict = (
            [f"void {t.name}({t.parameters(t.arrays, r)});" for t in self.texts] for r in ("", "restrict ")
        )
        parts = [self.struct(word, members) for word, members in self.structs.items()]
        about = [line for text in self.texts for line in self.about(text)]
        return HEADER.format(
            title=self.title, NAME=self.name.upper().rstrip("_"), about="\n".join(about), bounds="\n".join(bounds),
            plain="\n".join(plain), restrict="\n".join(restrict), structs="\n".join(parts),
            calls="\n".join(f"{text};" for text in self.prototypes.values()), loops=self.loops,
            memory=self.memory,
        )  # fmt: skip

    def about(self, text: Routine) -> list[str]:
        """Return the comment on a function, `text`, and its arrays."""
        lines = [f" * {text.name}"]
        shapes = [*text.graph.inputs.items(), *text.graph.shapes.items()]
        for p, (key, shape) in zip(text.arrays, shapes, strict=True):
            line = f"{p + str(list(shape) or [1]):<12}{key}: {', '.join(self.columns.get(key, ()))}".rstrip(": ")
            lines += textwrap.wrap(comment(line), 116, initial_indent=" *     ", subsequent_indent=" *" + 20 * " ")
        return lines

    def bounds(self, text: Routine) -> list[str]:
        """Return the macros of operations and stack usage of a function, `text`."""
        operations = sum(text.graph.count().by_kind.values())
        upper = text.name.upper()
        return [f"#define {upper}_OPERATIONS {operations}", f"#define {upper}_STACK_BYTES {text.stack}"]

    @property
    def code(self) -> str:
        """Text of the C file."""
        lines = [f"/* {self.title} */", f'#include "{self.name}.h"\n', "#include <math.h>", "#include <string.h>\n"]
        lines += codes([*self.called, *self.texts])
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
        number = self.texts[0].value
        values = [f"{a}[{k}] = {number(m.value)};" for a, members in beginnings for k, m in enumerate(members)]
        rooms = [f"{self.real} {arrays[x]}[{len(self.structs[word])}];" for x, word in self.words]
        written = [f"memcpy({x}, {a}, sizeof({a}));" for x, a in arrays.items()]
        read = [*rooms, *(f"memcpy({a}, {x}, sizeof({a}));" for x, a in arrays.items())]
        read += [f"(void){a};" for a in arrays.values()]
        after = f"{self.real} next[{len(s.state)}];"
        back = "memcpy(s, next, sizeof(next));"
        yield self.function(heads["rest"], values)
        suffix = REALS[self.dtype][1]
        yield self.function(heads["advance"], advanced(s, self.real, suffix, list(arrays.values()), self.called_on))
        rest, start = f"{name}_rest({', '.join(arrays.values())});", f"{name}_start({', '.join(self.handed)});"
        yield self.function(heads["init"], [*rooms, rest, *written, start])
        yield self.function(heads["start"], [after, *read, self.call("begin", "next"), back])
        taken = f"status = {name}_advance({', '.join(arrays.values())});"
        kept = "memcpy(s, state, sizeof(state));"
        yield self.function(heads["step"], ["int status;", *read, taken, kept, "return status;"])
        for word, array, graph in (("output", "outputs", "observe"), ("rate", "rates", "slope")):
            made = f"{self.real} made[{len(self.structs[array])}];"
            copy = "memcpy(out, made, sizeof(made));"
            yield self.function(heads[word], [made, *read, self.call(graph, "made"), copy])

    @property
    def words(self) -> list[tuple[str, str]]:
        """Struct parameters, and the struct of each."""
        return [(x, {"s": "state", "u": "inputs", "p": "parameters"}[x]) for x in self.handed]

    def call(self, word: str, *results: str) -> str:
        """Return the call of a graph of the Program, named `word`, on the array `state`, with its `results`."""
        return self.called_on(word, "state", *results)

    def called_on(self, word: str, state: str, *results: str) -> str:
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
        return f"{self.machine[word]}({', '.join([*given, *results])});"

    def function(self, head: str, body: Sequence[str]) -> list[str]:
        """Return a function with the given `head` and the statements of its `body`."""
        return [head, "{", *(f"    {line}" for line in body), "}\n"]

    @property
    def readme(self) -> str:
        """Text of README.md."""
        rows = [
            f"* `{t.name}`: {sum(t.graph.count().by_kind.values())} operations, stack below {t.stack} bytes"
            for t in self.texts
        ]
        watched = self.stepper is not None and self.stepper.watched
        status = "; ".join(f"{k} {text}" for k, text in STATUS.items() if watched or k in FIXED_STATUS)
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
        if self.stepper is None or not self.stepper.watched:
            return self.inside
        return "one loop of at most `most` ticks" + (f", {self.inside}" if self.inside != Routine.loops else "")

    @property
    def memory(self) -> str:
        """Description of static data."""
        return MEMORY[self.inside]

    @property
    def inside(self) -> str:
        """Description of the loops inside functions."""
        return max((text.loops for text in (*self.called, *self.texts)), key=list(MEMORY).index)

    @property
    def example(self) -> str:
        """Text of main.c."""
        if self.stepper is not None:
            rooms = [f"    {self.name}_{word} {x};" for x, word in self.words]
            given, first = ", ".join(f"&{x}" for x in self.handed), self.members(self.stepper.state)[1]
            return EXAMPLE.format(name=self.name, rooms="\n".join(rooms), given=given, first=first)
        text = self.texts[0]
        shapes = [*text.graph.inputs.values(), *text.graph.shapes.values()]
        sizes = zip(text.arrays, map(math.prod, shapes), strict=True)
        rooms = [f"    {self.real} {array}[{max(1, size)}] = {{0}};" for array, size in sizes]
        call, result = f"{text.name}({', '.join(text.arrays)});", next(iter(text.outputs.values()))
        return FUNCTIONS_ONLY.format(name=self.name, arrays="\n".join(rooms), call=call, result=result)
