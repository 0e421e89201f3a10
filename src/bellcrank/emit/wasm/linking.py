"""An object file of LLVM for WebAssembly, made a module that a browser loads.

One object file is nearly one already: LLVM writes the numbers of functions and the addresses of data as if nothing else
were linked to it. What it wants from a linker are the memory and the pointer to the stack; they are imports of it, and
are made here. Functions that it has not (sin, tanh) stay imports, from "env"; JavaScript's Math has all of them.

    0 .. data .. stack .. heap      the stack grows downwards, the heap is for whoever calls
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bellcrank.errors import CompileError

MAGIC = b"\0asm\1\0\0\0"
CUSTOM, TYPE, IMPORT, FUNCTION, MEMORY, GLOBAL, EXPORT, DATA_COUNT, CODE, DATA = 0, 1, 2, 3, 5, 6, 7, 12, 10, 11
STACK = 1 << 18  # bytes
PAGE = 1 << 16
I32, I32_CONST, END = 0x7F, 0x41, 0x0B
IS_UNDEFINED, HAS_NAME = 0x10, 0x40  # flags of a symbol
SYMBOLS = 8  # the part of "linking" that has them


@dataclass(frozen=True)
class Module:
    code: bytes
    heap: int  # where it begins
    imports: tuple[str, ...]  # functions that whoever loads it must give


class Reader:
    """Numbers and names, one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def unsigned(self) -> int:
        value, shift = 0, 0
        while True:
            x = self.byte()
            value |= (x & 0x7F) << shift
            if x < 0x80:
                return value
            shift += 7

    def bytes(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def name(self) -> str:
        return self.bytes(self.unsigned()).decode()

    @property
    def more(self) -> bool:
        return self.at < len(self.data)


def unsigned(x: int) -> bytes:
    out = bytearray()
    while x >= 0x80:
        out.append(x & 0x7F | 0x80)
        x >>= 7
    return bytes([*out, x])


def signed(x: int) -> bytes:
    """Of a number that is not negative: its highest bit must not look like a sign."""
    out = bytearray()
    while x >= 0x40:
        out.append(x & 0x7F | 0x80)
        x >>= 7
    return bytes([*out, x])


def listed(items: Sequence[bytes]) -> bytes:
    return unsigned(len(items)) + b"".join(items)


def named(name: str) -> bytes:
    return unsigned(len(name.encode())) + name.encode()


def linked(object_code: bytes, exports: Mapping[str, str], heap: int) -> Module:
    """Functions by the names that they are to have, and a memory with so many bytes of heap."""
    sections, symbols = _sections(object_code)
    imports = _imports(sections.get(IMPORT, b"\0"))
    known = _functions(symbols)
    first = (_end_of_data(sections.get(DATA, b"\0")) + STACK + 63) // 64 * 64
    pages = math.ceil((first + heap) / PAGE)
    made = {
        TYPE: sections[TYPE],
        IMPORT: listed([named("env") + named(name) + b"\0" + unsigned(kind) for name, kind in imports]),
        FUNCTION: sections[FUNCTION],
        MEMORY: listed([b"\0" + unsigned(pages)]),
        GLOBAL: listed([bytes([I32, 1, I32_CONST]) + signed(first) + bytes([END])]),
        EXPORT: listed(
            [named("memory") + b"\2\0", *(named(name) + b"\0" + unsigned(known[of]) for name, of in exports.items())]
        ),
        DATA_COUNT: sections.get(DATA_COUNT, b""),
        CODE: sections[CODE],
        DATA: sections.get(DATA, b""),
    }
    parts = [bytes([kind]) + unsigned(len(body)) + body for kind, body in made.items() if body]
    return Module(MAGIC + b"".join(parts), first, tuple(name for name, _ in imports))


def _sections(code: bytes) -> tuple[dict[int, bytes], bytes]:
    """The sections by their kind, and what "linking" says."""
    if code[:8] != MAGIC:
        raise CompileError("LLVM made no object file of WebAssembly; this is a bug of bellcrank.")
    reader, found, linking = Reader(code[8:]), dict[int, bytes](), b""
    while reader.more:
        kind = reader.byte()
        body = reader.bytes(reader.unsigned())
        if kind != CUSTOM:
            found[kind] = body
        elif (inside := Reader(body)).name() == "linking":
            linking = body[inside.at :]
    return found, linking


def _imports(body: bytes) -> list[tuple[str, int]]:
    """Functions, and the numbers of their types. The memory and the pointer to the stack are left out."""
    reader, found = Reader(body), list[tuple[str, int]]()
    for _ in range(reader.unsigned()):
        reader.name()
        name, kind = reader.name(), reader.byte()
        if kind == 0:
            found.append((name, reader.unsigned()))
        elif kind == 2:  # a memory: its least and, by its flag, its largest size
            for _ in range(1 + (reader.byte() & 1)):
                reader.unsigned()
        elif kind == 3 and name == "__stack_pointer":
            reader.bytes(2)
        else:
            raise CompileError(f'the object file wants "{name}" from a linker; this is a bug of bellcrank.')
    return found


def _functions(linking: bytes) -> dict[str, int]:
    """Functions that the file has, and their numbers."""
    reader, found = Reader(linking), dict[str, int]()
    reader.unsigned()  # the version
    while reader.more:
        kind = reader.byte()
        part = Reader(reader.bytes(reader.unsigned()))
        for _ in range(part.unsigned() if kind == SYMBOLS else 0):
            what, flags = part.byte(), part.unsigned()
            if what == 1:  # data
                part.name()
                for _ in range(0 if flags & IS_UNDEFINED else 3):
                    part.unsigned()
                continue
            index = part.unsigned()
            if what != 3 and (not flags & IS_UNDEFINED or flags & HAS_NAME):
                name = part.name()
                if what == 0 and not flags & IS_UNDEFINED:
                    found[name] = index
    return found


def _end_of_data(body: bytes) -> int:
    reader, end = Reader(body), 0
    for _ in range(reader.unsigned()):
        if reader.unsigned() != 0 or reader.byte() != I32_CONST:
            raise CompileError("the object file has data that is not in its place; this is a bug of bellcrank.")
        at = reader.unsigned()  # below 2^27: LLVM pads it to five bytes, and so no sign is in it
        reader.byte()
        size = reader.unsigned()
        reader.bytes(size)
        end = max(end, at + size)
    return end
