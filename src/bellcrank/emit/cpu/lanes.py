"""Rows of states to lanes of one quantity, and back.

A batch is stored state by state; vector code wants the same quantity of W states side by side. A tile of four columns
is loaded as W short rows, joined to four full vectors and exchanged two by two until each vector holds one column.
The exchange is its own inverse, so storing is the same backwards; a tile with as many columns as there are lanes takes
a shorter way. With one lane a tile is just its elements, and so it is where the lanes lie side by side in memory
already (no stride): a simulation keeps its states so.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.emit.cpu.plan import Tile
from bellcrank.emit.cpu.writer import Writer


def load(w: Writer, tile: Tile, array: str, stride: str) -> list[str]:
    """One value per column of the tile."""
    if w.lanes == 1 or not stride:
        return [w.load(w.at(array, c * w.align)) for c in range(tile.start, tile.start + tile.width)]
    if tile.width > w.lanes:
        return [x for part in _parts(w, tile) for x in load(w, part, array, stride)]
    width, kind = _row(w, tile)
    rows = [_load_row(w, tile, _address(w, array, stride, tile.start, r), width, kind) for r in range(w.lanes)]
    vectors = [_join(w, rows[j::width], width) for j in range(width)]
    return _exchange(w, vectors)[: tile.width]


def store(w: Writer, tile: Tile, array: str, stride: str, values: Sequence[str], in_order: bool = False) -> None:
    """in_order keeps the stores where they are written: LLVM's scheduler would gather the many stores of a matrix at
    the end, with all values waiting in memory, and lose a quarter of the time. The word for it is volatile.
    """
    if w.lanes == 1 or not stride:
        for c, value in enumerate(values):
            w.store(value, w.at(array, (tile.start + c) * w.align))
        return
    if tile.width > w.lanes:
        for part in _parts(w, tile):
            store(w, part, array, stride, values[part.start - tile.start :][: part.width], in_order)
        return
    width, kind = _row(w, tile)
    vectors = _exchange(w, [*values, *[w.immediate(0.0)] * (width - tile.width)])
    for r in range(w.lanes):
        group = r // width
        row = w.shuffle(w.type, vectors[r % width], "poison", list(range(group * width, (group + 1) * width)))
        _store_row(w, tile, row, _address(w, array, stride, tile.start, r), width, kind, in_order)


def _parts(w: Writer, tile: Tile) -> list[Tile]:
    """Two lanes (NEON, SSE2) take a tile of four in two goes."""
    end = tile.start + tile.width
    return [Tile(tile.array, start, min(w.lanes, end - start)) for start in range(tile.start, end, w.lanes)]


def _row(w: Writer, tile: Tile) -> tuple[int, str]:
    """Width of a row in a register (a power of two) and its type."""
    width = 4 if tile.width == 3 else tile.width
    return width, f"<{width} x {w.element}>"


def _address(w: Writer, array: str, stride: str, column: int, row: int) -> str:
    offset = w.let(f"mul i64 {stride}, {row}")
    return w.at(w.let(f"getelementptr i8, ptr {array}, i64 {offset}", "p"), column * w.bytes)


def _load_row(w: Writer, tile: Tile, pointer: str, width: int, kind: str) -> str:
    if tile.width == width:
        return w.load(pointer, kind, w.bytes)
    row = "zeroinitializer"
    for c in range(tile.width):  # three columns: never read beyond the row
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


def _join(w: Writer, parts: Sequence[str], width: int) -> str:
    """Rows j, j + width, j + 2 width ... side by side in one vector."""
    while len(parts) > 1:
        kind = f"<{width} x {w.element}>"
        parts = [w.shuffle(kind, a, b, list(range(2 * width))) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        width *= 2
    return parts[0]


def _exchange(w: Writer, vectors: Sequence[str]) -> list[str]:
    """Transposes the square blocks that lie side by side in the lanes of as many vectors.

    Where one block fills the vectors, pairs of lanes are not exchanged but sorted, even ones first: x86 has an
    instruction for that (vshuff64x2), and the one that it needs to exchange them (vpermt2pd) keeps multipliers waiting.
    """
    result, step, W = list(vectors), 1, w.lanes
    while step < len(result):
        low = [lane + W - step if lane & step else lane for lane in range(W)]
        high = [lane + W if lane & step else lane + step for lane in range(W)]
        if step > 1 and len(result) == W:
            low = [lane for lane in range(2 * W) if not lane & 2]
            high = [lane for lane in range(2 * W) if lane & 2]
        for i in range(len(result)):
            if not i & step:
                a, b = result[i], result[i + step]
                result[i], result[i + step] = w.shuffle(w.type, a, b, low), w.shuffle(w.type, a, b, high)
        step *= 2
    return result
