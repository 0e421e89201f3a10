"""Minimal linker: turns one LLVM object file for WebAssembly into a module that a browser loads.

One object file is nearly a module already: LLVM numbers functions and places data as if no other file were linked. It
only needs the memory and the stack pointer, which it imports and which are defined here. Functions that it lacks (sin,
tanh) remain imports, from "env"; JavaScript's Math has all of them.

    0 .. data .. stack .. heap      the stack grows downwards, the heap belongs to the caller
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
SYMBOLS = 8  # kind of the symbol table in "linking"


@dataclass(frozen=True)
class Module:
    """Linked module."""

    code: bytes
    heap: int  # address of the heap
    imports: tuple[str, ...]  # functions that the loader must provide


class Reader:
    """Sequential reader of numbers and names."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        """Return the next byte."""
        self.at += 1
        return self.data[self.at - 1]

    def unsigned(self) -> int:
        """Return the next unsigned LEB128 number."""
        value, shift = 0, 0
        while True:
            x = self.byte()
            value |= (x & 0x7F) << shift
            if x < 0x80:
                return value
            shift += 7

    def bytes(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        self.at += size
        return self.data[self.at - size : self.at]

    def name(self) -> str:
        """Return the next name."""
        return self.bytes(self.unsigned()).decode()

    @property
    def more(self) -> bool:
        """Return whether any bytes are left."""
        return self.at < len(self.data)


def unsigned(x: int) -> bytes:
    """Return `x` as unsigned LEB128."""
    out = bytearray()
    while x >= 0x80:
        out.append(x & 0x7F | 0x80)
        x >>= 7
    return bytes([*out, x])


def signed(x: int) -> bytes:
    """Return the non-negative `x` as signed LEB128: the highest bit of the last byte is the sign."""
    out = bytearray()
    while x >= 0x40:
        out.append(x & 0x7F | 0x80)
        x >>= 7
    return bytes([*out, x])


def listed(items: Sequence[bytes]) -> bytes:
    """Return a vector of `items`, preceded by their number."""
    return unsigned(len(items)) + b"".join(items)


def named(name: str) -> bytes:
    """Return `name`, preceded by its length."""
    return unsigned(len(name.encode())) + name.encode()


def linked(object_code: bytes, exports: Mapping[str, str], heap: int) -> Module:
    """Return the linked module.

    Parameters
    ----------
    object_code
        Object file.
    exports
        Functions of the object file by exported name.
    heap
        Bytes of the heap.
    """
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
    """Return the sections by kind, and the contents of the custom section "linking"."""
    if code[:8] != MAGIC:
        raise CompileError("LLVM did not produce a WebAssembly object file; this is a bug in bellcrank.")
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
    """Return functions with the indices of their types, without the memory and the stack pointer."""
    reader, found = Reader(body), list[tuple[str, int]]()
    for _ in range(reader.unsigned()):
        reader.name()
        name, kind = reader.name(), reader.byte()
        if kind == 0:
            found.append((name, reader.unsigned()))
        elif kind == 2:  # a memory: its minimum size and, depending on its flag, its maximum size
            for _ in range(1 + (reader.byte() & 1)):
                reader.unsigned()
        elif kind == 3 and name == "__stack_pointer":
            reader.bytes(2)
        else:
            raise CompileError(f'the object file needs "{name}" from a linker; this is a bug in bellcrank.')
    return found


def _functions(linking: bytes) -> dict[str, int]:
    """Return the functions that the file defines, with their indices."""
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
            raise CompileError("the object file has data without a constant address; this is a bug in bellcrank.")
        at = reader.unsigned()  # below 2^27: LLVM pads it to five bytes, so it has no sign bit
        reader.byte()
        size = reader.unsigned()
        reader.bytes(size)
        end = max(end, at + size)
    return end
