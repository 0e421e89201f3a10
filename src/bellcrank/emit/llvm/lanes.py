"""Writer of LLVM IR for values in lanes: lines with fresh names, and transposition between rows of states and lanes.

A batch is stored state by state, but vector code needs the same quantity of W states side by side. A tile of four
columns is loaded as W short rows, joined to four full vectors and exchanged in pairs until each vector holds one
column. The exchange is its own inverse, so storing is the same backwards; a tile with as many columns as lanes needs
fewer steps. With one lane a tile is just its elements, and likewise if the lanes are contiguous in memory already (no
stride), as in the states of a simulation.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from bellcrank.emit.llvm.scheduling import Tile

CACHED_RESULT_BYTES = 2**21  # bytes of results that the caches of a core hold, approximately
PREFETCHED_ROW_BYTES = 2048  # bytes of a row of results that is prefetched; computing a larger row takes long enough
CACHE_LINE_BYTES = 64  # bytes of a cache line
# Functions of the C library and their number of arguments.
LIBRARY_ARITY = {"tan": 1, "asin": 1, "acos": 1, "atan2": 2, "exp": 1, "log": 1, "tanh": 1}


class Writer:
    """Writer of lines for `lanes` values side by side: a scalar for one lane, a vector for more."""

    def __init__(self, lanes: int, dtype: str, pool: bool = False) -> None:
        """Make a writer.

        Parameters
        ----------
        lanes
            Lanes of a value.
        dtype
            Floating-point type, "float64" or "float32".
        pool
            True to keep constants in memory, see `literal`.
        """
        self.lanes, self.dtype = lanes, dtype
        self.pool: list[str] | None = [] if pool else None  # constants in memory, see `literal`
        self.element, short = ("double", "f64") if dtype == "float64" else ("float", "f32")
        self.bytes = 8 if dtype == "float64" else 4
        self.type = self.element if lanes == 1 else f"<{lanes} x {self.element}>"
        self.mangled = short if lanes == 1 else f"v{lanes}{short}"  # suffix of LLVM intrinsics
        self.mask = "i1" if lanes == 1 else f"<{lanes} x i1>"
        self.align = self.bytes * lanes  # bytes from one element of an array to the next
        self.alignment = self.align  # of a value in memory
        self.lines: list[str] = []
        self._numbers = count(1)  # of the next names

    def name(self, prefix: str = "t") -> str:
        """Return a fresh name that begins with `prefix`."""
        return f"%{prefix}{next(self._numbers)}"

    def with_lanes(self, lanes: int) -> Writer:
        """Return a writer for values of other `lanes`, which continues the same lines."""
        other = Writer(lanes, self.dtype)
        other.lines, other._numbers = self.lines, self._numbers
        return other

    def let(self, text: str, prefix: str = "t") -> str:
        """Write the definition of a new value by `text`; return its name, which begins with `prefix`."""
        name = self.name(prefix)
        self.lines.append(f"{name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Write the line `text`."""
        self.lines.append(text)

    def constant(self, x: float) -> str:
        """Return the constant `x` exactly, as the bits of a double; single precision is rounded first."""
        return self._bits(x) if self.lanes == 1 else self.literal(self.element, self._bits(x))

    def immediate(self, x: float) -> str:
        """Return the constant `x` in a form that LLVM may fold, never from the pool."""
        return self._bits(x) if self.lanes == 1 else f"splat ({self.element} {self._bits(x)})"

    def _bits(self, x: float) -> str:
        if self.dtype == "float32":
            with np.errstate(over="ignore"):  # values beyond single precision become infinite
                x = float(np.float32(x))
        return "0x" + struct.pack(">d", x).hex().upper()

    def literal(self, kind: str, text: str) -> str:
        """Return the constant `text` of the scalar type `kind` in all lanes.

        With a pool, every use has its own copy in memory. Then the constant is an operand of the instruction, where
        LLVM would otherwise spend a register and a shuffle on a constant that is used twice.
        """
        if self.pool is None:
            return f"splat ({kind} {text})"
        self.pool.append(f"{kind} {text}")
        address = f"getelementptr ({self.element}, ptr @pool, i64 {len(self.pool) - 1})"
        single = self.let(f"load <1 x {kind}>, ptr {address}, align {self.bytes}, !invariant.load !0")
        lanes = f"<{self.lanes} x i32> zeroinitializer"
        return self.let(f"shufflevector <1 x {kind}> {single}, <1 x {kind}> poison, {lanes}")

    def pooled(self) -> str:
        """Return the definition of the pool."""
        kinds = ", ".join(c.split()[0] for c in self.pool or [])
        return f"@pool = internal global {{{kinds}}} {{{', '.join(self.pool or [])}}}, align 64\n!0 = !{{}}"

    def at(self, base: str, offset: int) -> str:
        """Return the address `offset` bytes after `base`."""
        return base if offset == 0 else self.let(f"getelementptr i8, ptr {base}, i64 {offset}", "p")

    def load(self, pointer: str, kind: str = "", align: int = 0) -> str:
        """Load a value from `pointer`; the IR type `kind` and the bytes of `align` default to those of the writer."""
        return self.let(f"load {kind or self.type}, ptr {pointer}, align {align or self.alignment}", "x")

    def store(self, value: str, pointer: str, kind: str = "", align: int = 0, volatile: bool = False) -> None:
        """Store `value` at `pointer`; the type `kind` and `align` default to those of the writer; may be `volatile`."""
        word = "store volatile" if volatile else "store"
        self.do(f"{word} {kind or self.type} {value}, ptr {pointer}, align {align or self.alignment}")

    def function(self, op: str, args: Sequence[str]) -> str:
        """Call the function `op` of the C library with `args`, lane by lane."""
        name = op if self.dtype == "float64" else f"{op}f"

        def call(values: Sequence[str]) -> str:
            arguments = ", ".join(f"{self.element} {v}" for v in values)
            return self.let(f"call {self.element} @{name}({arguments})", "v")

        if self.lanes == 1:
            return call(args)
        result = "poison"
        for lane in range(self.lanes):
            value = call([self.let(f"extractelement {self.type} {a}, i64 {lane}") for a in args])
            result = self.let(f"insertelement {self.type} {result}, {self.element} {value}, i64 {lane}", "v")
        return result

    def negative(self, x: str) -> str:
        """Return the negative of the value `x`."""
        return self.let(f"fneg {self.type} {x}")

    def fma(self, a: str, b: str, c: str) -> str:
        """Return the fused multiply-add `a` * `b` + `c`."""
        t = self.type
        return self.let(f"call {t} @llvm.fma.{self.mangled}({t} {a}, {t} {b}, {t} {c})", "v")

    def shuffle(self, kind: str, a: str, b: str, lanes: list[int]) -> str:
        """Return the `lanes` of the concatenation of vectors `a` and `b` of the IR type `kind`."""
        mask = ", ".join(f"i32 {i}" for i in lanes)
        return self.let(f"shufflevector {kind} {a}, {kind} {b}, <{len(lanes)} x i32> <{mask}>", "s")

    def total(self, terms: Sequence[str]) -> str:
        """Return the sum of `terms` as a tree, because a chain of additions would be the critical path."""
        while len(terms) > 1:
            pairs = zip(terms[::2], terms[1::2], strict=False)
            unpaired = terms[-1:] if len(terms) % 2 else []
            terms = [self.let(f"fadd {self.type} {a}, {b}") for a, b in pairs] + list(unpaired)
        return terms[0] if terms else "zeroinitializer"


def indented(lines: Iterable[str]) -> str:
    """Return `lines` as text, indented except labels."""
    return "".join(f"{line}\n" if line.endswith(":") else f"  {line}\n" for line in lines)


def library_declarations(w: Writer) -> list[str]:
    """Return the declarations of the C library's functions for the writer `w`."""
    suffix = "" if w.dtype == "float64" else "f"
    memory = ["declare ptr @malloc(i64)", "declare void @free(ptr)"]
    return memory + [
        f"declare {w.element} @{name}{suffix}({', '.join([w.element] * n)})" for name, n in LIBRARY_ARITY.items()
    ]


def constant_array(name: str, array: np.ndarray[Any, Any]) -> str:
    """Return the definition of the constant `array` under `name`, by its bytes."""
    raw = array.tobytes()
    return f'@{name} = internal constant [{len(raw)} x i8] c"\\{raw.hex(chr(92))}", align 64'


def load_tile(w: Writer, tile: Tile, array: str, stride: str) -> list[str]:
    """Load one value per column of `tile` by `w`, from rows at `array` with `stride` bytes between them ("": none)."""
    if w.lanes == 1 or not stride:
        return [w.load(w.at(array, c * w.align)) for c in range(tile.start, tile.start + tile.width)]
    if tile.width > w.lanes:
        return [x for part in _split_tile(w, tile) for x in load_tile(w, part, array, stride)]
    width, kind = _row_type(w, tile)
    rows = [_load_row(w, tile, _row_address(w, array, stride, tile.start, r), width, kind) for r in range(w.lanes)]
    vectors = [_join_rows(w, rows[j::width], width) for j in range(width)]
    return _transpose(w, vectors)[: tile.width]


def store_tile(w: Writer, tile: Tile, array: str, stride: str, values: Sequence[str], in_order: bool = False) -> None:
    """Store one value per column of a tile.

    Parameters
    ----------
    w
        The writer.
    tile
        The columns.
    array
        Address of the rows.
    stride
        Bytes from row to row; "" if the lanes are contiguous.
    values
        The values.
    in_order
        True to keep the stores where they are written, by marking them volatile. LLVM's scheduler would gather the many
        stores of a matrix at the end, with all values spilled, and lose a quarter of the time.
    """
    if w.lanes == 1 or not stride:
        for c, value in enumerate(values):
            w.store(value, w.at(array, (tile.start + c) * w.align))
        return
    if tile.width > w.lanes:
        for part in _split_tile(w, tile):
            store_tile(w, part, array, stride, values[part.start - tile.start :][: part.width], in_order)
        return
    width, kind = _row_type(w, tile)
    vectors = _transpose(w, [*values, *[w.immediate(0.0)] * (width - tile.width)])
    for r in range(w.lanes):
        group = r // width
        row = w.shuffle(w.type, vectors[r % width], "poison", list(range(group * width, (group + 1) * width)))
        _store_row(w, tile, row, _row_address(w, array, stride, tile.start, r), width, kind, in_order)


def store_masked(w: Writer, value: str, width: int, pointer: str, lane: int, size: int) -> None:
    """Store some lanes of a vector at the addresses where they would go if all lanes were stored.

    Parameters
    ----------
    w
        The writer.
    value
        The vector.
    width
        Its lanes.
    pointer
        Address of lane 0.
    lane
        First lane to store.
    size
        Number of lanes to store.
    """
    kind = f"<{width} x {w.element}>"
    if size == width:
        w.store(value, pointer, kind, w.bytes)
        return
    mask = ", ".join(f"i1 {int(lane <= k < lane + size)}" for k in range(width))
    short = "f64" if w.dtype == "float64" else "f32"
    w.do(
        f"call void @llvm.masked.store.v{width}{short}.p0({kind} {value}, ptr {pointer}, i32 {w.bytes}, "
        f"<{width} x i1> <{mask}>)"
    )


def uncached_rows(sizes: Mapping[str, int], w: Writer) -> int:
    """Return the number of rows from which on results of `sizes` elements exceed the caches; `w` has their type."""
    return CACHED_RESULT_BYTES // (w.bytes * max(1, *sizes.values()))


def prefetch_function(sizes: Mapping[str, int], w: Writer) -> str:
    """Return @fetch(arrays and strides), which prefetches the cache lines that the rows of a block will be written to.

    Without it, a core waits for these lines if results exceed its caches: on a Xeon, derivatives of 65,536 states of a
    UR5 take up to twice as long.

    Parameters
    ----------
    sizes
        Elements of each array in a row.
    w
        The writer.
    """
    lines = []
    for name, size in sizes.items():
        for r in range(w.lanes if size * w.bytes <= PREFETCHED_ROW_BYTES else 0):
            lines.append(f"  %{name}.{r}.o = mul i64 %stride_{name}, {r}\n")
            lines.append(f"  %{name}.{r} = getelementptr i8, ptr %{name}, i64 %{name}.{r}.o\n")
            for line_offset in range(0, size * w.bytes, CACHE_LINE_BYTES):
                lines.append(f"  %{name}.{r}.{line_offset} = getelementptr i8, ptr %{name}.{r}, i64 {line_offset}\n")
                lines.append(f"  call void @llvm.prefetch.p0(ptr %{name}.{r}.{line_offset}, i32 1, i32 3, i32 1)\n")
    return f"""declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
define internal void @fetch({", ".join(f"ptr %{n}, i64 %stride_{n}" for n in sizes)}) noinline nounwind {{
{"".join(lines)}  ret void
}}"""


def _split_tile(w: Writer, tile: Tile) -> list[Tile]:
    """Split a tile of four for two lanes (NEON, SSE2)."""
    end = tile.start + tile.width
    return [Tile(tile.array, start, min(w.lanes, end - start)) for start in range(tile.start, end, w.lanes)]


def _row_type(w: Writer, tile: Tile) -> tuple[int, str]:
    """Return the width of a row in a register (a power of two) and its type."""
    width = 4 if tile.width == 3 else tile.width
    return width, f"<{width} x {w.element}>"


def _row_address(w: Writer, array: str, stride: str, column: int, row: int) -> str:
    offset = w.let(f"mul i64 {stride}, {row}")
    return w.at(w.let(f"getelementptr i8, ptr {array}, i64 {offset}", "p"), column * w.bytes)


def _load_row(w: Writer, tile: Tile, pointer: str, width: int, kind: str) -> str:
    if tile.width == width:
        return w.load(pointer, kind, w.bytes)
    row = "zeroinitializer"
    for c in range(tile.width):  # three columns, because the row must not be exceeded
        x = w.load(w.at(pointer, c * w.bytes), w.element, w.bytes)
        row = w.let(f"insertelement {kind} {row}, {w.element} {x}, i64 {c}")
    return row


def _store_row(w: Writer, tile: Tile, row: str, pointer: str, width: int, kind: str, in_order: bool) -> None:
    if tile.width == width:
        w.store(row, pointer, kind, w.bytes, in_order)
        return
    for c in range(tile.width):
        x = w.let(f"extractelement {kind} {row}, i64 {c}")
        w.store(x, w.at(pointer, c * w.bytes), w.element, w.bytes)


def _join_rows(w: Writer, parts: Sequence[str], width: int) -> str:
    """Join the rows j, j + width, j + 2 width ... to one vector."""
    while len(parts) > 1:
        kind = f"<{width} x {w.element}>"
        parts = [w.shuffle(kind, a, b, list(range(2 * width))) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        width *= 2
    return parts[0]


def _transpose(w: Writer, vectors: Sequence[str]) -> list[str]:
    """Transpose the square blocks that lie side by side in the lanes of equally many vectors."""
    result, step = list(vectors), 1
    while step < len(result):
        result = exchange_step(w, result, step, len(result) == w.lanes)
        step *= 2
    return result


def exchange_step(w: Writer, vectors: Sequence[str], step: int, fills_vector: bool) -> list[str]:
    """Emit one step of the transposition of `vectors` by `w`, which exchanges lanes at distance `step`.

    If one block fills the vectors (`fills_vector`), pairs of lanes are not exchanged but sorted, even ones first: x86
    has an instruction for that (vshuff64x2), while the one for exchanging them (vpermt2pd) blocks the multipliers.
    """
    result, W = list(vectors), w.lanes
    low = [lane + W - step if lane & step else lane for lane in range(W)]
    high = [lane + W if lane & step else lane + step for lane in range(W)]
    if step > 1 and fills_vector:
        low = [lane for lane in range(2 * W) if not lane & 2]
        high = [lane for lane in range(2 * W) if lane & 2]
    for i in range(len(result)):
        if not i & step:
            a, b = result[i], result[i + step]
            result[i], result[i + step] = w.shuffle(w.type, a, b, low), w.shuffle(w.type, a, b, high)
    return result
