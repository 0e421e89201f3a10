"""C11 package of a schedule: one file for each processor, ring buffers between them, and threads to try it.

The files of the processors and of the channels need no operating system: a controller with several cores calls
`processor` on each of them. Rings are written by one processor and read by one, with an acquire and a release; a ring
has room for all words of a state, so that a send never waits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from bellcrank.emit.c.processor_text import ProcessorText
from bellcrank.emit.c.processor_texts import (
    CHANNELS,
    CMAKE,
    EXAMPLE,
    FLAGS,
    HEADER,
    PROGRAM,
    README,
    THREADS,
    THREADS_HEADER,
)
from bellcrank.emit.c.routine import MAX_LABEL_LENGTH, REAL_TYPES, Declaration, unique_name
from bellcrank.errors import InputError, unknown
from bellcrank.graph.inline import inline
from bellcrank.quoting import comment, identifier, markdown, source
from bellcrank.scheduling import Schedule
from bellcrank.scheduling.program_translation import processor_programs
from bellcrank.version import __version__

# Functions and types that begin with the name of the package, and words that the templates use beside the arrays.
FUNCTION_NAMES = ("machine", "channel", "init", "evaluate", "processor", "stop", "send", "receive", "start", "join")
RESERVED_WORDS = (
    *("machine", "state", "stopped", "pause", "done", "channels", "words", "channel", "count", "capacity", "k", "last"),
    *("wait", "run", "connect", "yield", "work", "threads", "place", "argument", "got", "states", "error", "first"),
    *("read_numbers", "print_numbers", "printf", "fprintf", "scanf", "stderr", "main"),
)
MAX_PROCESSORS = 64  # processors with tasks: each has a file and a thread


class ProcessorPackage:
    """Files of the package of one schedule."""

    def __init__(self, schedule: Schedule, name: str = "", dtype: str = "float64") -> None:
        """Translate a schedule.

        Parameters
        ----------
        schedule
            The schedule.
        name
            Name of files and functions; by default that of the graph.
        dtype
            Floating-point type.
        """
        if dtype not in REAL_TYPES:
            raise InputError(unknown("dtype", dtype, REAL_TYPES))
        self.schedule, self.programs, self.dtype = schedule, processor_programs(schedule), dtype
        self._check()
        self.called = name or self.programs.graph.name
        self.name = source(self.called)[:MAX_LABEL_LENGTH]
        self.real, self.suffix = REAL_TYPES[dtype]
        outer = dict.fromkeys((*(f"{self.name}_{word}" for word in FUNCTION_NAMES), *RESERVED_WORDS), 0)
        channel_of = {k: i for i, c in enumerate(self.programs.channels) for k in c.messages}
        self.texts = [
            ProcessorText(self.programs, p, Declaration(dtype, f"{self.name}_program_{k}", {}, dict(outer)), channel_of)
            for k, p in enumerate(self.programs.used)
        ]

    def _check(self) -> None:
        name, used = self.schedule.tasks.name, len(self.programs.used)
        if not used:
            raise InputError(f"export: {name} has no operations to distribute.")
        if used > MAX_PROCESSORS:
            raise InputError(f"export: {used} processors have tasks of {name}; expected at most {MAX_PROCESSORS}.")
        if self.programs.graph.calls:
            raise InputError(f"export: {name} calls other graphs; schedule the graph with {inline.__name__}(graph).")

    @property
    def files(self) -> dict[str, str]:
        """Text of each file, by its name."""
        name = self.name
        programs = {f"{name}_processor_{k}.c": self.program(k) for k in range(len(self.texts))}
        return {
            f"{name}.h": self.header,
            **programs,
            f"{name}_channels.c": self.channels,
            f"{name}_threads.h": THREADS_HEADER.format(**self.words),
            f"{name}_threads.c": THREADS.format(**self.words),
            "CMakeLists.txt": CMAKE.format(**self.words, sources=" ".join(programs)),
            "README.md": self.readme,
            "main.c": self.example,
        }

    @property
    def words(self) -> dict[str, str | int]:
        """Words that the templates share."""
        machine = self.schedule.machine.name
        title = f"{comment(self.called)} on {comment(machine)}, in C11, {self.real}; made by bellcrank {__version__}"
        return {
            "title": title, "name": self.name, "NAME": self.name.upper().rstrip("_"), "real": self.real,
            "count": len(self.texts), "flags": FLAGS,
        }  # fmt: skip

    # -- the header

    @property
    def arrays(self) -> list[tuple[str, bool, int]]:
        """Name, whether it is an input, and size of every array; at least one element."""
        text = self.texts[0]
        shapes = zip(text.arrays, text.shapes, strict=True)
        return [(a, a in text.inputs.values(), max(1, math.prod(shape))) for a, (_, shape) in shapes]

    @property
    def parameters(self) -> str:
        """Declarations of the array parameters."""
        return ", ".join(f"{'const ' * given}{self.real} *{a}" for a, given, _ in self.arrays)

    @property
    def header(self) -> str:
        """Text of the header."""
        NAME, used = self.words["NAME"], dict[str, int]()
        sizes = [f"#define {NAME}_SIZE_{unique_name(a.upper(), used)} {size}" for a, _, size in self.arrays]
        members = [f"    {'const ' * given}{self.real} *{a};" for a, given, _ in self.arrays]
        rows = [f" *   {k:<4}{text}" for k, text in enumerate(self._descriptions())]
        return HEADER.format(
            **self.words, sizes="\n".join(sizes), members="\n".join(members), parameters=self.parameters,
            about="\n".join(self.texts[0].array_comments({}, 3)), processors="\n".join(rows),
            channel_count=max(1, len(self.programs.channels)), words=max(1, sum(self.capacities)),
            prototypes="\n".join(f"{text.head};" for text in self.texts),
        )  # fmt: skip

    def _descriptions(self) -> Iterator[str]:
        s = self.schedule
        for text in self.texts:
            tasks = s.where.count(text.processor)
            sent = sum(m.source == text.processor for m in s.messages)
            received = sum(m.target == text.processor for m in s.messages)
            yield f"processor {text.processor}: {tasks} tasks, {sent} messages sent, {received} received"

    # -- the channels

    @property
    def capacities(self) -> list[int]:
        """Words of the ring of each channel: all that one state sends, rounded up to a power of two."""
        totals = [sum(len(self.programs.values[k]) for k in c.messages) for c in self.programs.channels]
        return [1 << max(0, total - 1).bit_length() for total in totals]

    @property
    def channels(self) -> str:
        """Text of the file with the rings and the hand-over of a state."""
        first = np.cumsum([0, *self.capacities]).tolist()
        place = {p: k for k, p in enumerate(self.programs.used)}
        rows = [
            f"    connect(machine, {i}, {first[i]}, {size}u); /* {place[c.source]} to {place[c.target]} */"
            for i, (c, size) in enumerate(zip(self.programs.channels, self.capacities, strict=True))
        ]
        unused = [] if rows else ["    (void)connect;"]
        cases = [f"    case {k}:\n        {text.name}(machine);\n        break;" for k, text in enumerate(self.texts)]
        posts = [f"    machine->{a} = {a};" for a, _, _ in self.arrays]
        return CHANNELS.format(
            **self.words, rows="\n".join([*rows, *unused]), cases="\n".join(cases), parameters=self.parameters,
            posts="\n".join(posts), zero=f"0.0{self.suffix}",
        )  # fmt: skip

    def program(self, k: int) -> str:
        """Return the text of the file of program `k`."""
        text = self.texts[k]
        return PROGRAM.format(**self.words, k=k, processor=text.processor, code=text.code())

    # -- to try it

    @property
    def example(self) -> str:
        """Text of main.c, which reads states and prints results."""
        arrays, reads, prints = [], [], []
        for a, given, size in self.arrays:
            arrays.append(f"    {self.real} {a}[{size}] = {{0}};")
            if given:
                reads.append(f"        got += read_numbers({a}, {size});")
            else:
                prints.append(f'        print_numbers("{identifier(a)}", {a}, {size});')
        total = sum(size for _, given, size in self.arrays if given)
        return EXAMPLE.format(
            **self.words, arrays="\n".join(arrays), reads="\n".join(reads), prints="\n".join(prints), total=total,
            given=", ".join(a for a, _, _ in self.arrays),
        )  # fmt: skip

    @property
    def readme(self) -> str:
        """Text of README.md."""
        s = self.schedule
        rows = "\n".join(f"* `{self.name}_processor_{k}.c`: {text}" for k, text in enumerate(self._descriptions()))
        title = f"{markdown(self.called)} on {markdown(s.machine.name)}"
        plan = f"{s.makespan:g} {s.machine.unit}"
        return README.format(
            **{**self.words, "title": title}, rows=rows, plan=plan, stack=max(t.stack for t in self.texts)
        )
