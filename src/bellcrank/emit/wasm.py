"""Program or functions as a WebAssembly module, with a minimal linker.

    begin(s, spare, p, u, ws), run(ticks, s, spare, ...)       as in emit/cpu/run_loop.py, for one run
    name(ws, in..., out...)                                     for every other graph

Arrays are contiguous numbers; pointers are offsets in the memory, and the caller's own memory begins at `heap`. Nothing
is fused, since WebAssembly has no fused multiply-add: results equal those of the kernel up to rounding. Sines and
cosines are provided by the loader (JavaScript's Math).

LLVM's object file is nearly a module already: it numbers functions and places data as if no other file were linked. It
only needs the memory and the stack pointer, which it imports and which the linker defines. Functions that it lacks
(sin, tanh) remain imports, from "env"; JavaScript's Math has all of them.

    0 .. data .. stack .. heap      the stack grows downwards, the heap belongs to the caller
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bellcrank.emit.cpu import run_loop
from bellcrank.emit.llvm.host import compile_for_other
from bellcrank.emit.llvm.lanes import Writer, library_declarations
from bellcrank.emit.llvm.subroutines import routines
from bellcrank.errors import CompileError
from bellcrank.graph import Graph, Program

# Items in a function: values in locals need no memory traffic. For the excavator with its linkage, 3000 instead would
# give 70 kB more code (577), and a step of 58 us in Node instead of 52.
ITEMS_PER_FUNCTION = 8000
TRIPLE = "wasm32-unknown-unknown"
FEATURES = "+bulk-memory,+nontrapping-fptoint,+simd128,+sign-ext"  # supported by every browser since 2023
SINCOS = """
declare double @sin(double)
declare double @cos(double)
define internal void @sincos(ptr noalias %x, ptr noalias %s, ptr noalias %c, i64 %count) nounwind {
entry:
  %none = icmp eq i64 %count, 0
  br i1 %none, label %done, label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %x.at = getelementptr double, ptr %x, i64 %i
  %s.at = getelementptr double, ptr %s, i64 %i
  %c.at = getelementptr double, ptr %c, i64 %i
  %angle = load double, ptr %x.at, align 8
  %sine = call double @sin(double %angle)
  %cosine = call double @cos(double %angle)
  store double %sine, ptr %s.at, align 8
  store double %cosine, ptr %c.at, align 8
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""
MAGIC = b"\0asm\1\0\0\0"
CUSTOM, TYPE, IMPORT, FUNCTION, MEMORY, GLOBAL, EXPORT, DATA_COUNT, CODE, DATA = 0, 1, 2, 3, 5, 6, 7, 12, 10, 11
STACK_BYTES = 1 << 18  # bytes
PAGE_BYTES = 1 << 16
I32, I32_CONST, END = 0x7F, 0x41, 0x0B
IS_UNDEFINED, HAS_NAME = 0x10, 0x40  # flags of a symbol
SYMBOL_TABLE = 8  # kind of the symbol table in "linking"


def wasm_module(program: Program | None, graphs: Mapping[str, Graph], heap: int) -> LinkedModule:
    """Return the module of a program, of functions, or of both.

    Parameters
    ----------
    program
        Program with its begin and run functions, if any.
    graphs
        Graphs by exported name.
    heap
        Bytes for the caller's arrays and the workspace.
    """
    if program is not None:
        code = run_loop.run_functions(program, 1, 1, "float64", graphs, ITEMS_PER_FUNCTION)
    else:
        code = routines(graphs, 1, 1, "float64", ITEMS_PER_FUNCTION)
        code = replace(code, text="\n".join([*library_declarations(Writer(1, "float64")), code.text]))
    loops = {"begin": "begin", "run": "run"} if program is not None else {}
    llvm_text = (SINCOS + code.text).replace("@llvm.fma.", "@llvm.fmuladd.")
    exports = loops | {name: code.names[name] for name in graphs}
    object_code = compile_for_other(llvm_text, TRIPLE, cpu="generic", features=FEATURES, reloc="static")
    return replace(link(object_code, exports, heap + 8 * code.slots), slots=code.slots)


@dataclass(frozen=True)
class LinkedModule:
    """Linked module."""

    code: bytes
    heap: int  # address of the heap
    imports: tuple[str, ...]  # functions that the loader must provide
    slots: int = 0  # elements of the workspace that the loader must provide


class ByteReader:
    """Sequential reader of numbers and names."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def byte(self) -> int:
        """Return the next byte."""
        self.position += 1
        return self.data[self.position - 1]

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
        self.position += size
        return self.data[self.position - size : self.position]

    def name(self) -> str:
        """Return the next name."""
        return self.bytes(self.unsigned()).decode()

    @property
    def has_more(self) -> bool:
        """Return whether any bytes are left."""
        return self.position < len(self.data)


def encode_unsigned(x: int) -> bytes:
    """Return `x` as unsigned LEB128."""
    out = bytearray()
    while x >= 0x80:
        out.append(x & 0x7F | 0x80)
        x >>= 7
    return bytes([*out, x])


def encode_signed(x: int) -> bytes:
    """Return the non-negative `x` as signed LEB128: the highest bit of the last byte is the sign."""
    out = bytearray()
    while x >= 0x40:
        out.append(x & 0x7F | 0x80)
        x >>= 7
    return bytes([*out, x])


def encode_vector(items: Sequence[bytes]) -> bytes:
    """Return a vector of `items`, preceded by their number."""
    return encode_unsigned(len(items)) + b"".join(items)


def encode_name(name: str) -> bytes:
    """Return `name`, preceded by its length."""
    return encode_unsigned(len(name.encode())) + name.encode()


def link(object_code: bytes, exports: Mapping[str, str], heap: int) -> LinkedModule:
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
    function_indices = _functions(symbols)
    first = (_end_of_data(sections.get(DATA, b"\0")) + STACK_BYTES + 63) // 64 * 64
    pages = math.ceil((first + heap) / PAGE_BYTES)
    section_bodies = {
        TYPE: sections[TYPE],
        IMPORT: encode_vector(
            [encode_name("env") + encode_name(name) + b"\0" + encode_unsigned(kind) for name, kind in imports]
        ),
        FUNCTION: sections[FUNCTION],
        MEMORY: encode_vector([b"\0" + encode_unsigned(pages)]),
        GLOBAL: encode_vector([bytes([I32, 1, I32_CONST]) + encode_signed(first) + bytes([END])]),
        EXPORT: encode_vector(
            [
                encode_name("memory") + b"\2\0",
                *(
                    encode_name(name) + b"\0" + encode_unsigned(function_indices[function_name])
                    for name, function_name in exports.items()
                ),
            ]
        ),
        DATA_COUNT: sections.get(DATA_COUNT, b""),
        CODE: sections[CODE],
        DATA: sections.get(DATA, b""),
    }
    parts = [bytes([kind]) + encode_unsigned(len(body)) + body for kind, body in section_bodies.items() if body]
    return LinkedModule(MAGIC + b"".join(parts), first, tuple(name for name, _ in imports))


def _sections(code: bytes) -> tuple[dict[int, bytes], bytes]:
    """Return the sections by kind, and the contents of the custom section "linking"."""
    if code[:8] != MAGIC:
        raise CompileError("LLVM did not produce a WebAssembly object file; this is a bug in bellcrank.")
    reader, sections, linking = ByteReader(code[8:]), dict[int, bytes](), b""
    while reader.has_more:
        kind = reader.byte()
        body = reader.bytes(reader.unsigned())
        if kind != CUSTOM:
            sections[kind] = body
        elif (inside := ByteReader(body)).name() == "linking":
            linking = body[inside.position :]
    return sections, linking


def _imports(body: bytes) -> list[tuple[str, int]]:
    """Return functions with the indices of their types, without the memory and the stack pointer."""
    reader, imports = ByteReader(body), list[tuple[str, int]]()
    for _ in range(reader.unsigned()):
        reader.name()
        name, kind = reader.name(), reader.byte()
        if kind == 0:
            imports.append((name, reader.unsigned()))
        elif kind == 2:  # a memory: its minimum size and, depending on its flag, its maximum size
            for _ in range(1 + (reader.byte() & 1)):
                reader.unsigned()
        elif kind == 3 and name == "__stack_pointer":
            reader.bytes(2)
        else:
            raise CompileError(f'the object file needs "{name}" from a linker; this is a bug in bellcrank.')
    return imports


def _functions(linking: bytes) -> dict[str, int]:
    """Return the functions that the file defines, with their indices."""
    reader, indices = ByteReader(linking), dict[str, int]()
    reader.unsigned()  # the version
    while reader.has_more:
        kind = reader.byte()
        part = ByteReader(reader.bytes(reader.unsigned()))
        for _ in range(part.unsigned() if kind == SYMBOL_TABLE else 0):
            symbol_kind, flags = part.byte(), part.unsigned()
            if symbol_kind == 1:  # data
                part.name()
                for _ in range(0 if flags & IS_UNDEFINED else 3):
                    part.unsigned()
                continue
            index = part.unsigned()
            if symbol_kind != 3 and (not flags & IS_UNDEFINED or flags & HAS_NAME):
                name = part.name()
                if symbol_kind == 0 and not flags & IS_UNDEFINED:
                    indices[name] = index
    return indices


def _end_of_data(body: bytes) -> int:
    reader, end = ByteReader(body), 0
    for _ in range(reader.unsigned()):
        if reader.unsigned() != 0 or reader.byte() != I32_CONST:
            raise CompileError("the object file has data without a constant address; this is a bug in bellcrank.")
        address = reader.unsigned()  # below 2^27: LLVM pads it to five bytes, so it has no sign bit
        reader.byte()
        size = reader.unsigned()
        reader.bytes(size)
        end = max(end, address + size)
    return end
