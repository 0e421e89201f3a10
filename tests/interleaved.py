"""Model checker for LLVM IR: run the threads of a text in every order, one memory access at a time.

Between two accesses a thread works only on its registers, so only accesses are interleaved. This covers every order
that preemption at any instruction can give (with sequentially consistent memory). The state of a thread between two
accesses, its functions and the registers that it still needs, is stored as one small number; the state that follows
after reading a value is computed once. Waiting times are not modelled: counters, clocks and everything that a text
calls unknown may have any value, and a branch on such a value goes both ways.

Steps are numbered from BASE, and a state is shifted back there when a new step is posted. So the states of an endless
run are finitely many, and the search visits every state that can occur.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

BASE = 1 << 20  # number of the step that was posted last
SHARED = 1 << 40  # address of @shared
UNKNOWN_REGISTERS = ("%count", "%since")
NOTHING = re.compile(r"(tail )?call (void|i32) @(sched_yield|free|llvm\.[\w.]+)\(")
Local = tuple[Any, ...]  # frames, the innermost first: (function, block, index, registers)


class ForbiddenError(AssertionError):
    """A forbidden state was reached; the message lists the steps that lead to it."""


@dataclass
class Function:
    parameters: list[str]
    blocks: dict[str, list[str]]
    live: dict[tuple[str, int], frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Compute which registers are needed from each instruction on."""
        entry: dict[str, frozenset[str]] = dict.fromkeys(self.blocks, frozenset())
        while True:
            before = dict(entry)
            for name, lines in self.blocks.items():
                needed: frozenset[str] = frozenset()
                for target in re.findall(r"label %([\w.]+)", lines[-1]):
                    needed |= entry[target] | _from(self.blocks[target], name)
                for i in reversed(range(len(lines))):
                    result, _, rest = lines[i].rpartition(" = ") if " = " in lines[i] else ("", "", lines[i])
                    needed -= {result}
                    if not rest.startswith("phi"):
                        needed |= set(re.findall(r"%[\w.]+", re.sub(r"label %[\w.]+", "", rest)))
                    self.live[name, i] = needed
                entry[name] = needed
            if entry == before:
                return


def _from(lines: Sequence[str], block: str) -> frozenset[str]:
    """Return the registers that the phis of a block need when it is entered from another block."""
    return frozenset(
        value
        for line in lines
        if " = phi" in line
        for value, source in re.findall(r"\[([^,\]]+), %([\w.]+)\]", line)
        if source == block and value.startswith("%")
    )


def functions(text: str) -> dict[str, Function]:
    """Return the functions of a text by name."""
    text = re.sub(r"getelementptr \(i8, ptr @shared, i64 (\d+)\)", r"@\1", text).replace("@shared", "@0")
    found = {}
    for name, parameters, body in re.findall(r"^define [^@]*@(\w+)\((.*?)\)[^{]*\{\n(.*?)^\}", text, re.M | re.S):
        blocks: dict[str, list[str]] = {"0": []}
        block = "0"
        for line in (line.split(" ;")[0].strip() for line in body.splitlines()):
            if re.fullmatch(r"[\w.]+:", line):
                block = line[:-1]
                blocks[block] = []
            elif line:
                blocks[block].append(line)
        found[name] = Function(re.findall(r"%[\w.]+", parameters), blocks)
    return found


def _value(text: str, registers: Mapping[str, Any]) -> Any:
    text = text.split()[-1]
    if text.startswith("@"):
        return SHARED + int(text[1:])
    return registers[text] if text.startswith("%") else {"true": 1, "false": 0, "null": 0}.get(text) or int(text)


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "icmp eq": lambda a, b: int(a == b),
    "icmp ne": lambda a, b: int(a != b),
    "icmp ugt": lambda a, b: int(a > b),
}


class Machine:
    """Threads over shared memory.

    unknown: addresses whose content may be anything. ignored: addresses that only count.
    """

    def __init__(self, text: str, unknown: Iterable[int] = (), ignored: Iterable[int] = ()) -> None:
        self.functions = functions(text)
        self.functions.pop("clock", None)  # may return anything
        self.unknown, self.ignored = set(unknown), set(ignored)
        self.locals: list[Local] = []
        self.pending: list[tuple[Any, ...]] = []  # the next access of each thread: (what, address, *values)
        self._numbers: dict[Local, int] = {}
        self._after: dict[tuple[int, Any], tuple[int, ...]] = {}
        self.visited: set[tuple[str, str]] = set()

    def start(self, function: str, arguments: Sequence[int] = ()) -> tuple[int, ...]:
        f = self.functions[function]
        self.visited.add((function, "0"))
        return self._run(((function, "0", 0, dict(zip(f.parameters, arguments, strict=True))),))

    def after(self, local: int, seen: Any) -> tuple[int, ...]:
        """Return the thread after its access has returned a value; several threads where something is unknown."""
        found = self._after.get((local, seen))
        if found is None:
            (function, block, index, kept), *outer = self.locals[local]
            registers = dict(kept)
            line = self.functions[function].blocks[block][index]
            if " = " in line:
                registers[line.split(" = ")[0]] = seen
            found = self._run(((function, block, index + 1, registers), *outer))
            self._after[local, seen] = found
        return found

    def shifted(self, local: int, change: Callable[[int], int]) -> int:
        """Return the same thread with shifted step numbers."""
        frames = tuple(
            (function, block, index, tuple((name, _changed(value, change)) for name, value in registers))
            for function, block, index, registers in self.locals[local]
        )
        return self._number(frames, _moved(self.pending[local], change))

    def _number(self, frames: Local, pending: tuple[Any, ...]) -> int:
        if frames not in self._numbers:
            self._numbers[frames] = len(self.locals)
            self.locals.append(frames)
            self.pending.append(pending)
        return self._numbers[frames]

    def _run(self, frames: Local) -> tuple[int, ...]:
        """Run each branch of the thread until it is about to access memory."""
        found, open_ = [], [frames]
        while open_:
            (function, block, index, registers), *outer = open_.pop()
            line = self.functions[function].blocks[block][index]
            here = (function, block, index, registers)
            access = self._access(line, registers)
            if access is not None:
                live = self.functions[function].live[block, index]
                kept = tuple(sorted((name, value) for name, value in registers.items() if name in live))
                found.append(self._number(((function, block, index, kept), *outer), access))
            else:
                open_.extend(self._local(line, here, tuple(outer)))
        return tuple(found)

    def _access(self, line: str, registers: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """Return (what, address, *values), or None where the line accesses no shared memory."""
        if match := re.match(r"%[\w.]+ = load (?:atomic )?\w+, ptr ([^\s,]+)", line):
            address = _value(match[1], registers)
            return None if address in self.unknown else ("load", address)
        if match := re.match(r"store (?:atomic )?\w+ (\S+), ptr ([^\s,]+)", line):
            return "store", _value(match[2], registers), _value(match[1], registers)
        if match := re.match(r"%[\w.]+ = cmpxchg ptr (\S+), i64 (\S+), i64 (\S+) ", line):
            return "cmpxchg", *(_value(part, registers) for part in match.groups())
        if match := re.match(r"%[\w.]+ = atomicrmw add ptr (\S+), i64 1 ", line):
            assert _value(match[1], registers) in self.ignored
        return None

    def _local(self, line: str, here: Any, outer: Local) -> list[Local]:
        function, block, index, registers = here
        registers = dict(registers)
        result, _, rest = line.rpartition(" = ") if " = " in line else ("", "", line)
        going_on = lambda: [((function, block, index + 1, registers), *outer)]  # noqa: E731
        if rest.startswith("br label"):
            return [self._enter(function, block, rest.split("%")[1], registers, outer)]
        if match := re.match(r"br i1 (\S+), label %(\S+), label %(\S+)", rest):
            condition = _value(match[1], registers)
            targets = [match[2], match[3]] if condition is None else [match[2] if condition else match[3]]
            return [self._enter(function, block, target, registers, outer) for target in targets]
        if rest.startswith("ret"):
            return self._return(rest, registers, outer)
        if NOTHING.match(rest):
            return going_on()
        if match := re.match(r"call void @must\(i1 (\S+)\)", rest):
            if not _value(match[1], registers):
                raise ForbiddenError(f"{function}, {block}: {line}")
            return going_on()
        if match := re.match(r"call \S+ @(\w+)\((.*)\)", rest):
            name, given = match.groups()
            if name in self.functions:
                f = self.functions[name]
                values = [_value(x, registers) for x in given.split(", ") if x]
                live = self.functions[function].live[block, index + 1]
                kept = tuple(sorted((n, v) for n, v in registers.items() if n in live))
                self.visited.add((name, "0"))
                callee = (name, "0", 0, dict(zip(f.parameters, values, strict=True)))
                return [(callee, (function, block, index, kept), *outer)]
            registers[result] = {"malloc": 0}.get(name)  # any other function may return anything
            return going_on()
        registers[result] = self._computed(rest, registers)
        return going_on()

    def _computed(self, rest: str, registers: Mapping[str, Any]) -> Any:
        if rest.startswith(("load", "atomicrmw")):
            return None
        if match := re.match(r"(add|sub|mul|and|or|icmp \w+) \w+ (\S+), (\S+)$", rest):
            a, b = (_value(x, registers) for x in match.groups()[1:])
            return None if a is None or b is None else OPERATIONS[match[1]](a, b)
        if match := re.match(r"extractvalue \{ i64, i1 \} (\S+), 1", rest):
            return _value(match[1], registers)[1]
        if match := re.match(r"select i1 (\S+), \w+ (\S+), \w+ (\S+)", rest):
            condition, a, b = (_value(x, registers) for x in match.groups())
            return None if condition is None else a if condition else b
        if match := re.match(r"(?:ptrtoint|inttoptr|zext) \w+ (\S+) to \w+", rest):
            return _value(match[1], registers)
        if match := re.match(r"getelementptr i8, ptr (\S+), i64 (\S+)", rest):
            return _value(match[1], registers) + _value(match[2], registers)
        raise NotImplementedError(rest)

    def _enter(self, function: str, source: str, block: str, registers: dict[str, Any], outer: Local) -> Local:
        self.visited.add((function, block))
        lines = self.functions[function].blocks[block]
        news, index = {}, 0
        while " = phi" in lines[index]:
            name = lines[index].split(" = ")[0]
            options = {b: v for v, b in re.findall(r"\[([^,\]]+), %([\w.]+)\]", lines[index])}
            news[name] = None if name in UNKNOWN_REGISTERS else _value(options[source], registers)
            index += 1
        return ((function, block, index, registers | news), *outer)

    def _return(self, rest: str, registers: Mapping[str, Any], outer: Local) -> list[Local]:
        (function, block, index, kept), *further = outer
        line = self.functions[function].blocks[block][index]
        found = dict(kept)
        if " = " in line:
            found[line.split(" = ")[0]] = _value(rest[4:], registers)
        return [((function, block, index + 1, found), *further)]


def _changed(value: Any, change: Callable[[int], int]) -> Any:
    if isinstance(value, tuple):
        return tuple(_changed(x, change) for x in value)
    return value if value is None else change(value)


def _moved(pending: tuple[Any, ...], change: Callable[[int], int]) -> tuple[Any, ...]:
    what, address, *values = pending
    return (what, address, *(_changed(value, change) for value in values))


def back(by: int) -> Callable[[int], int]:
    """Return a function that shifts step numbers, and words of four times a step number, back by that many steps."""

    def change(value: int) -> int:
        if abs(value - 4 * BASE) < BASE // 2:
            return value - 4 * by
        return value - by if abs(value - BASE) < BASE // 2 else value

    return change


State = tuple[tuple[Any, ...], tuple[int, ...]]  # threads, memory


class Search:
    """All states that can be reached from some initial ones.

    step: address of the step number. aging: addresses whose content is only compared with the step number, so that all
    values far in the past are equivalent.
    """

    def __init__(self, machine: Machine, cells: Sequence[int], step: int, aging: Iterable[int], limit: int) -> None:
        self.machine, self.limit = machine, limit
        self.place = {address: i for i, address in enumerate(cells)}
        self.step, self.aging = step, [self.place[a] for a in aging]
        self.next: dict[State, list[tuple[int, State]]] = {}
        self._from: dict[State, tuple[int, State] | None] = {}

    def run(self, first: Iterable[State]) -> None:
        waiting = list(first)
        self._from.update(dict.fromkeys(waiting))
        while waiting:
            state = waiting.pop()
            found = self.next[state] = []
            for k in range(len(state[0])):
                try:
                    successors = list(self._moves(state, k))
                except ForbiddenError as error:
                    raise ForbiddenError(f"{error}\n{self._story(state)}") from None
                for new in successors:
                    found.append((k, new))
                    if new not in self._from:
                        self._from[new] = (k, state)
                        waiting.append(new)
            if len(self._from) > self.limit:
                raise AssertionError(f"more than {self.limit} states")

    def _moves(self, state: State, k: int) -> Iterable[State]:
        threads, memory = state
        what, address, *values = self.machine.pending[threads[k]]
        if address not in self.place:
            raise ForbiddenError(f"{what} at {address - SHARED}, where nothing is")
        at = self.place[address]
        seen: Any = memory[at]
        if what == "cmpxchg":
            seen = (seen, int(seen == values[0]))
            values = values[1:] if seen[1] else []
        if what != "load" and values:
            memory = (*memory[:at], values[0], *memory[at + 1 :])
        for new in self.machine.after(threads[k], seen if what != "store" else None):
            result = (*threads[:k], new, *threads[k + 1 :]), memory
            yield self._settled(result) if what == "store" and address == self.step else result

    def first(self, threads: Iterable[int]) -> tuple[Any, ...]:
        """Return threads that have not run yet."""
        return tuple(threads)

    def local(self, thread: Any) -> Any:
        """Return the number of a thread's local state."""
        return thread

    def stored(self, state: State, thread: int, address: int) -> int:
        """Return what a thread would read at an address."""
        return int(state[1][self.place[address]])

    def _settled(self, state: State) -> State:
        threads, memory = state
        by = memory[self.place[self.step]] - BASE
        if not by:
            return state
        change = back(by)
        words = [change(value) for value in memory]
        for i in self.aging:
            if words[i] < BASE - 1:
                words[i] = 0
        return tuple(self.machine.shifted(t, change) for t in threads), tuple(words)

    def _story(self, state: State) -> str:
        """Return the steps that lead to a state."""
        lines: list[str] = []
        while (before := self._from[state]) is not None:
            k, state = before
            pending = self.machine.pending[self.local(state[0][k])]
            function, block, *_ = self.machine.locals[self.local(state[0][k])][0]
            words = [x - 4 * BASE if x > 2 * BASE else x - BASE if x > BASE // 2 else x for x in pending[2:]]
            lines.append(f"  thread {k}, {function} {block}: {pending[0]} {pending[1] - SHARED} {words or ''}")
        return "\n".join(lines[:60][::-1])

    def reaching(self, ends: Callable[[State], bool], may_move: Callable[[State, int], bool]) -> set[State]:
        """Return the states from which an end can be reached if only certain threads move."""
        into: dict[State, list[State]] = {}
        for state, found in self.next.items():
            for k, new in found:
                if may_move(state, k):
                    into.setdefault(new, []).append(state)
        done = {state for state in self.next if ends(state)}
        waiting = list(done)
        while waiting:
            for state in into.get(waiting.pop(), ()):
                if state not in done:
                    done.add(state)
                    waiting.append(state)
        return done


class Buffered(Search):
    """Search with store buffers: other threads see the stores of a thread later.

    Stores become visible in any order, except two stores to one address, and except stores before a release, which
    become visible before it. An exchange waits until all earlier stores are visible. This allows more orders than
    processors that keep stores in order (x86), and all orders that LLVM may make of the stores of a text; loads stay in
    order.
    """

    def _moves(self, state: State, k: int) -> Iterable[State]:
        threads, memory = state
        local, buffer = threads[k]
        what, address, *values = self.machine.pending[local]
        if address not in self.place:
            raise ForbiddenError(f"{what} at {address - SHARED}, where nothing is")
        at = self.place[address]
        for i, (place, value, last) in enumerate(buffer):
            if any(last or place == earlier[0] for earlier in buffer[:i]):
                continue
            seen = (local, (*buffer[:i], *buffer[i + 1 :]))
            result = (*threads[:k], seen, *threads[k + 1 :]), (*memory[:place], value, *memory[place + 1 :])
            yield self._settled(result) if place == self.place[self.step] else result
        if what == "cmpxchg" and buffer:
            return
        if what == "store":
            (function, block, index, _), *_ = self.machine.locals[local]
            last = " release" in self.machine.functions[function].blocks[block][index]
            buffer = (*buffer, (at, values[0], last))
            news, after = self.machine.after(local, None), memory
        else:
            own = [value for place, value, _ in buffer if place == at]
            found: Any = own[-1] if own else memory[at]
            after = memory
            if what == "cmpxchg":
                found = (found, int(found == values[0]))
                after = (*memory[:at], values[1], *memory[at + 1 :]) if found[1] else memory
            news = self.machine.after(local, found)
        for new in news:
            yield (*threads[:k], (new, buffer), *threads[k + 1 :]), after

    def local(self, thread: Any) -> Any:
        return thread[0]

    def stored(self, state: State, thread: int, address: int) -> int:
        own = [value for place, value, _ in state[0][thread][1] if place == self.place[address]]
        return int(own[-1]) if own else super().stored(state, thread, address)

    def _settled(self, state: State) -> State:
        threads, memory = state
        by = memory[self.place[self.step]] - BASE
        if not by:
            return state
        change = back(by)
        _, words = super()._settled(((), memory))
        moved = tuple(
            (self.machine.shifted(local, change), tuple((at, change(value), last) for at, value, last in buffer))
            for local, buffer in threads
        )
        return moved, words

    def first(self, threads: Iterable[int]) -> tuple[Any, ...]:
        return tuple((local, ()) for local in threads)
