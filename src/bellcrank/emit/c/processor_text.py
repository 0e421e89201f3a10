"""The program of one processor of a schedule as C: straight-line code between receives and sends.

    void arm_program_3(arm_machine *machine);

Every value that the processor computes or receives is a constant of the function, named after the step of the method. A
message is an array of exactly the words of the timetable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from bellcrank.emit.c.routine import MAX_LABEL_LENGTH, Declaration, Routine, unique_name
from bellcrank.graph import Node
from bellcrank.nodes.ops import COMPARISONS
from bellcrank.quoting import comment, identifier
from bellcrank.scheduling.processor_programs import ProcessorPrograms
from bellcrank.scheduling.program_steps import Compute, Receive, Send, Step


class ProcessorText(Routine):
    """The function of one processor."""

    def __init__(
        self, programs: ProcessorPrograms, processor: int, d: Declaration, channels: Mapping[int, int]
    ) -> None:
        """Prepare to print the program of a processor.

        Parameters
        ----------
        programs
            The programs of all processors.
        processor
            The processor.
        d
            Name and type of the function, and names that it must not use.
        channels
            Channel of each message.
        """
        super().__init__(programs.graph, d)
        self.programs, self.processor, self.channels = programs, processor, channels
        self.is_first = processor == programs.used[0]
        self.machine = "machine"  # the package reserves this word
        owned = programs.owned_inputs
        for name, shape in programs.graph.inputs.items():
            for x in programs.graph.tape.inputs(name, shape).flat:
                if owned.get(x.serial, processor) == processor:
                    self.names[x.serial] = f"{self.inputs[name]}[{x.args[1]}]"
        self.stored = {
            x.serial
            for array in programs.graph.outputs.values()
            for x in array.flat
            if isinstance(x, Node) and x.op != "input" and programs.home[x.serial][1] == processor
        }
        self.used = self._used_values()
        self.steps = [step for step in programs.steps[processor] if programs.has_end_to_end_steps(step)]

    def _used_values(self) -> set[int]:
        """Return the values that this processor uses, sends or stores: it computes no others."""
        used = set(self.stored)
        for step in reversed(self.programs.steps[self.processor]):
            if isinstance(step, Send):
                used.update(x.serial for x in self.programs.values[step.message])
            elif isinstance(step, Compute):
                for n in reversed(self.programs.schedule.tasks[step.task].nodes):
                    if n.serial in used:
                        used.update(a.serial for a in n.operands)
        return used

    @property
    def head(self) -> str:
        """Prototype of the function."""
        return f"{self.return_type} {self.name}({self.outer_name}_machine *{self.machine})"

    @property
    def outer_name(self) -> str:
        """Prefix of all names of the package."""
        return self.name.rpartition("_program_")[0]

    def code(self) -> str:
        """Return the function."""
        body = [line for step in self.steps for line in self._step(step)]
        body += self._outputs()
        words = {word for line in body if not line.startswith("/*") for word in re.findall(r"\w+", line)}
        given = self.inputs.values()
        pointers = [
            f"{'const ' if a in given else ''}{self.real} *const {a} = {self.machine}->{a};"
            for a in self.arrays
            if a in words
        ]
        unused = [] if any(self.machine in line for line in (*pointers, *body)) else [f"(void){self.machine};"]
        return "\n".join([self.head, "{", *(f"    {line}" for line in (*pointers, *unused, *body)), "}\n"])

    def _step(self, step: Step) -> Iterator[str]:
        if isinstance(step, Compute):
            yield from self._compute(step.task)
            return
        message = self.programs.schedule.messages[step.message]
        values = self.programs.values[step.message]
        if not values:
            return
        task = self.programs.schedule.tasks[message.task].name
        channel = f"&{self.machine}->channels[{self.channels[step.message]}]"
        if isinstance(step, Send):
            words = unique_name("sent", self.used_names, numbered=True)
            yield f"/* send {comment(task)} to {message.target} */"
            yield f"const {self.real} {words}[{len(values)}] = {{{', '.join(map(self.value, values))}}};"
            yield f"{self.outer_name}_send({self.machine}, {channel}, {words}, {len(values)});"
        else:
            yield from self._receive(step, values, channel, f"/* receive {comment(task)} from {message.source} */")

    def _receive(self, step: Receive, values: tuple[Node, ...], channel: str, title: str) -> Iterator[str]:
        words = unique_name("got", self.used_names, numbered=True)
        yield title
        yield f"{self.real} {words}[{len(values)}];"
        yield f"{self.outer_name}_receive({self.machine}, {channel}, {words}, {len(values)});"
        for k, x in enumerate(values):
            if x.serial in self.used and x.serial not in self.names:
                kind, condition = ("int", f" > {self.value(0.5)}") if x.op in COMPARISONS else (self.real, "")
                yield f"const {kind} {self._new_name(x)} = {words}[{k}]{condition};"

    def _compute(self, task: int) -> Iterator[str]:
        nodes = [n for n in self.programs.schedule.tasks[task].nodes if n.serial in self.used]
        fresh = [n for n in nodes if n.serial not in self.names]
        if fresh:
            yield f"/* {comment(self.programs.schedule.tasks[task].name)} */"
        for n in fresh:
            self._new_name(n)
            yield self.statement(n)

    def _new_name(self, n: Node) -> str:
        word = identifier(n.label or n.op)[:MAX_LABEL_LENGTH]
        self.names[n.serial] = unique_name(word, self.used_names, numbered=True)
        return self.names[n.serial]

    def _outputs(self) -> list[str]:
        """Return the stores of the outputs that this processor computes; the first one stores numbers and inputs."""
        return [
            f"{self.outputs[name]}[{i}] = {self.value(x)};"
            for name, array in self.graph.outputs.items()
            for i, x in enumerate(array.flat)
            if self._stores(x)
        ]

    def _stores(self, x: Node | float) -> bool:
        if not isinstance(x, Node):
            return self.is_first
        if x.op == "input":
            return self.processor == self.programs.owned_inputs.get(x.serial, self.programs.used[0])
        return x.serial in self.stored

    @property
    def stack(self) -> int:
        """Upper bound of stack usage in bytes: every value and every message has a place of its own."""
        words = sum(len(self.programs.values[s.message]) for s in self.steps if not isinstance(s, Compute))
        return (len(self.used) + words) * np.dtype(self.dtype).itemsize + 16 * len(self.arrays) + 256
