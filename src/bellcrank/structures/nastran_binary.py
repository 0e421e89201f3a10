"""Reader of Nastran's unformatted OUTPUT4 files.

They have the content of nastran_op4.py as Fortran records, each between two counts of its bytes. Words have four bytes,
or eight if the first record has 48; both byte orders occur.

    NCOL NROW FORM TYPE NAME                 of 24 or 48 bytes
    ICOL IROW NW, and NW words               dense: numbers from row IROW; sparse: strings
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bellcrank.errors import ReadError
from bellcrank.structures.matrix_market import MAX_ELEMENTS, Array
from bellcrank.structures.nastran_op4 import STRING_HEADER_BASE, choose_matrix

CUT_SHORT = "it was cut short, or is not an OUTPUT4 file. Write it again."


@dataclass(frozen=True)
class NumberFormat:
    """Number format of a file: byte order "<" or ">", and bytes of a word."""

    byte_order: str
    word_bytes: int

    def integers(self, data: bytes) -> list[int]:
        """Return `data` as integers of one word."""
        return [int(x) for x in np.frombuffer(data, f"{self.byte_order}i{self.word_bytes}")]

    def reals(self, data: bytes, words: int) -> Array:
        """Return `data` as real numbers of `words` words."""
        return np.frombuffer(
            data, f"{self.byte_order}f{self.word_bytes * words if self.word_bytes == 4 else 8}"
        ).astype(float)


def binary_op4(where: str, data: bytes, name: str | None = None) -> Array:
    """Return the matrix of that `name`, or the only one, from the bytes `data`; `where` is for errors."""
    kind = _number_format(where, data)
    return choose_matrix(where, dict(_matrices(where, list(_records(where, data, kind)), kind)), name)


def _number_format(where: str, data: bytes) -> NumberFormat:
    for end in "<>":
        count = int(np.frombuffer(data[:4], f"{end}i4")[0]) if len(data) >= 4 else 0
        if count in (24, 48):
            return NumberFormat(end, count // 6)
    raise ReadError(f"{where}: is binary and does not begin with the head of a matrix: {CUT_SHORT}")


def _records(where: str, data: bytes, kind: NumberFormat) -> Iterator[bytes]:
    position = 0
    while position < len(data):
        count = (
            int(np.frombuffer(data[position : position + 4], f"{kind.byte_order}i4")[0])
            if position + 4 <= len(data)
            else -1
        )
        end = position + 4 + count
        if count < 0 or end + 4 > len(data) or data[end : end + 4] != data[position : position + 4]:
            raise ReadError(f"{where}: a record at byte {position} does not end as it begins: {CUT_SHORT}")
        yield data[position + 4 : end]
        position = end + 4


def _matrices(where: str, records: list[bytes], kind: NumberFormat) -> Iterator[tuple[str, Array]]:
    index = 0
    while index < len(records):
        name, A, words, big = _head(where, records[index], kind)
        index += 1
        while True:
            if index == len(records) or len(records[index]) < 3 * kind.word_bytes:
                raise ReadError(f'{where}: ends inside of matrix "{name}": {CUT_SHORT}')
            column, row, _ = kind.integers(records[index][: 3 * kind.word_bytes])
            body = records[index][3 * kind.word_bytes :]
            index += 1
            if column > A.shape[1]:
                break
            try:
                for first, values in [(row, body)] if row else _strings(body, kind, big):
                    numbers = kind.reals(values, words)
                    if not 1 <= first <= len(A) - len(numbers) + 1 or column < 1:
                        raise ValueError
                    A[first - 1 : first - 1 + len(numbers), column - 1] = numbers
            except ValueError:
                raise ReadError(
                    f'{where}: column {column} of matrix "{name}" does not fit into it: {CUT_SHORT}'
                ) from None
        yield name, A


def _head(where: str, record: bytes, kind: NumberFormat) -> tuple[str, Array, int, bool]:
    if len(record) != 6 * kind.word_bytes:
        raise ReadError(
            f"{where}: a matrix begins with {len(record)} bytes; expected {6 * kind.word_bytes}: {CUT_SHORT}"
        )
    columns, rows, _, what = kind.integers(record[: 4 * kind.word_bytes])
    name = record[4 * kind.word_bytes :].decode("ascii", errors="replace").strip().upper()
    if not name.isprintable():
        raise ReadError(f"{where}: the name of a matrix is not a text: {CUT_SHORT}")
    if what not in (1, 2):
        raise ReadError(f'{where}: matrix "{name}" is of type {what}; expected a real one, of type 1 or 2.')
    if columns < 1 or rows == 0 or float(columns) * abs(rows) > MAX_ELEMENTS:
        raise ReadError(f'{where}: matrix "{name}" is {abs(rows)} x {columns}; expected one that can be made dense.')
    return name, np.zeros((abs(rows), columns)), what, rows < 0


def _strings(body: bytes, kind: NumberFormat, big: bool) -> Iterator[tuple[int, bytes]]:
    """Yield (first row, numbers) of each string of a sparse column."""
    position, word = 0, kind.word_bytes
    while position < len(body):
        head = kind.integers(body[position : position + word * (2 if big else 1)])
        length, row = (
            (head[0] - 1, head[1]) if big else (head[0] // STRING_HEADER_BASE - 1, head[0] % STRING_HEADER_BASE)
        )
        position += word * len(head)
        if length < 1 or position + word * length > len(body):
            raise ValueError
        yield row, body[position : position + word * length]
        position += word * length
