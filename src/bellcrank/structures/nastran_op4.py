"""Reader of Nastran's OUTPUT4 files, formatted or not.

Real matrices are stored by columns, dense, or sparse as strings of numbers with a header of one word (length and row in
one) or of two ("bigmat").

    NCOL NROW FORM TYPE NAME format          NROW is negative if headers have two words
    ICOL IROW NW                             of a dense column its first row and count; IROW is 0 for a sparse one
    numbers, in fields of the width given by the format; after the last column there is one more, without content

Unformatted files have the same content as Fortran records, each between two counts of its bytes. Words have four bytes,
or eight if the first record has 48; both byte orders occur.

    NCOL NROW FORM TYPE NAME                 of 24 or 48 bytes
    ICOL IROW NW, and NW words               dense: numbers from row IROW; sparse: strings
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bellcrank.errors import ReadError, unknown
from bellcrank.structures.matrix_files import MAX_ELEMENTS, Array

REAL_TYPES = (1, 2)  # also the words of a number; other types are complex
STRING_HEADER_BASE = 65536
CUT_SHORT = "it was cut short, or is not an OUTPUT4 file. Write it again."


@dataclass(frozen=True)
class MatrixHead:
    """Head of a matrix, in a text file with the format of its numbers."""

    name: str
    columns: int
    rows: int
    words: int  # of a number
    is_bigmat: bool
    per_line: int = 0
    width: int = 0


def _checked_head(where: str, name: str, integers: Sequence[int], *number_format: int) -> MatrixHead:
    """Return the head of the matrix `name` with its columns, rows, form and type in `integers`."""
    columns, rows, _, kind = integers
    if kind not in REAL_TYPES:
        raise ReadError(f'{where}: matrix "{name}" is of type {kind}; expected a real matrix, of type 1 or 2.')
    if columns < 1 or rows == 0 or float(columns) * abs(rows) > MAX_ELEMENTS:
        raise ReadError(f'{where}: matrix "{name}" is {abs(rows)} x {columns}; expected one that can be made dense.')
    return MatrixHead(name, columns, abs(rows), kind, rows < 0, *number_format)


class LineReader:
    """Line reader whose errors name the line."""

    def __init__(self, where: str, lines: Sequence[str]) -> None:
        self.where, self.lines, self.position = where, [line for line in lines if line.strip()], 0

    @property
    def has_more(self) -> bool:
        """True if lines are left."""
        return self.position < len(self.lines)

    def next_line(self) -> str:
        """Return the next line."""
        if not self.has_more:
            raise ReadError(f"{self.where}: ends inside of a matrix: it was cut short. Write it again.")
        self.position += 1
        return self.lines[self.position - 1]

    def line_error(self, expected: str) -> ReadError:
        """Return an error about the last line, with what was `expected`."""
        return ReadError(
            f'{self.where}: line {self.position} is "{self.lines[self.position - 1].strip()}"; expected {expected}.'
        )

    def integers(self, count: int) -> list[int]:
        """Return the `count` integers of the next line."""
        line = self.next_line()
        try:
            integers = [int(line[8 * i : 8 * i + 8]) if count > 1 else int(line) for i in range(count)]
        except ValueError:
            raise self.line_error(f"{count} whole numbers") from None
        return integers

    def numbers(self, count: int, head: MatrixHead) -> list[float]:
        """Return the next `count` real numbers, in the format given by `head`."""
        numbers: list[float] = []
        while len(numbers) < count:
            line, want = self.next_line(), min(head.per_line, count - len(numbers))
            fields = [line[head.width * i : head.width * (i + 1)] for i in range(want)]
            try:
                numbers += [float(f.replace("D", "E").replace("d", "e")) for f in fields]
            except ValueError:
                raise self.line_error(f"{want} numbers of {head.width} characters: was it cut short?") from None
        return numbers


def op4(where: str, lines: Sequence[str], name: str | None = None) -> Array:
    """Return the matrix of that `name`, or the only one, in `lines`; `where` is for errors."""
    return choose_matrix(where, dict(_matrices(LineReader(where, lines))), name)


def choose_matrix(where: str, matrices: Mapping[str, Array], name: str | None) -> Array:
    """Return the matrix of that `name`, or the only one, of the `matrices` in a file; `where` is for errors."""
    if not matrices:
        raise ReadError(f"{where}: has no matrix.")
    if name is None and len(matrices) > 1:
        raise ReadError(f"{where}: has {', '.join(matrices)}. Choose one: name=...")
    if name is not None and name.upper() not in matrices:
        raise ReadError(f"{where}: {unknown('matrix', name, matrices)}")
    return matrices[name.upper()] if name is not None else next(iter(matrices.values()))


def _matrices(file: LineReader) -> Iterator[tuple[str, Array]]:
    while file.has_more:
        head = _head(file)
        A = np.zeros((head.rows, head.columns))
        while True:
            column, row, words = file.integers(3)
            if column > head.columns:
                file.numbers(words, head)
                break
            if column < 1:
                raise file.line_error("a column from 1")
            if row:
                _place(file, A, column, row, file.numbers(words, head))
            else:
                _strings(file, A, column, words, head)
        yield head.name, A


def _head(file: LineReader) -> MatrixHead:
    line = file.next_line()
    shape = re.fullmatch(r"((?:\s*-?\d+){4})\s*(\S+?)\s+1P,(\d+)E(\d+)\.\d+\s*", line.rstrip())
    if shape is None:
        raise file.line_error('columns, rows, form, type, name and a format such as "1P,5E16.9"')
    integers = [int(line[8 * i : 8 * i + 8]) for i in range(4)]
    where = f"{file.where}: line {file.position}"
    return _checked_head(where, shape[2].upper(), integers, int(shape[3]), int(shape[4]))


def _strings(file: LineReader, A: Array, column: int, words: int, head: MatrixHead) -> None:
    while words > 0:
        length, row = file.integers(2) if head.is_bigmat else divmod(file.integers(1)[0], STRING_HEADER_BASE)
        words -= length + head.is_bigmat
        length -= 1
        if length < head.words:
            raise file.line_error("a string of one number or more")
        _place(file, A, column, row, file.numbers(length // head.words, head))


def _place(file: LineReader, A: Array, column: int, row: int, values: Sequence[float]) -> None:
    if row < 1 or row - 1 + len(values) > len(A):
        raise file.line_error(f"rows within 1 to {len(A)}")
    A[row - 1 : row - 1 + len(values), column - 1] = values


# -- unformatted files


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
        number_bytes = self.word_bytes * words if self.word_bytes == 4 else 8
        return np.frombuffer(data, f"{self.byte_order}f{number_bytes}").astype(float)


def binary_op4(where: str, data: bytes, name: str | None = None) -> Array:
    """Return the matrix of that `name`, or the only one, from the bytes `data`; `where` is for errors."""
    kind = _number_format(where, data)
    return choose_matrix(where, dict(_binary_matrices(where, list(_records(where, data, kind)), kind)), name)


def _number_format(where: str, data: bytes) -> NumberFormat:
    for end in "<>":
        count = int(np.frombuffer(data[:4], f"{end}i4")[0]) if len(data) >= 4 else 0
        if count in (24, 48):
            return NumberFormat(end, count // 6)
    raise ReadError(f"{where}: is binary and does not begin with the head of a matrix: {CUT_SHORT}")


def _records(where: str, data: bytes, kind: NumberFormat) -> Iterator[bytes]:
    position = 0
    while position < len(data):
        head = np.frombuffer(data[position : position + 4].ljust(4, b"\xff"), f"{kind.byte_order}i4")
        count = int(head[0])  # below zero, or more than is left, at the end of a file that was cut short
        end = position + 4 + count
        if count < 0 or end + 4 > len(data) or data[end : end + 4] != data[position : position + 4]:
            raise ReadError(f"{where}: a record at byte {position} does not end as it begins: {CUT_SHORT}")
        yield data[position + 4 : end]
        position = end + 4


def _binary_matrices(where: str, records: list[bytes], kind: NumberFormat) -> Iterator[tuple[str, Array]]:
    index = 0
    while index < len(records):
        head = _binary_head(where, records[index], kind)
        A = np.zeros((head.rows, head.columns))
        index += 1
        while True:
            if index == len(records) or len(records[index]) < 3 * kind.word_bytes:
                raise ReadError(f'{where}: ends inside of matrix "{head.name}": {CUT_SHORT}')
            column, row, _ = kind.integers(records[index][: 3 * kind.word_bytes])
            body = records[index][3 * kind.word_bytes :]
            index += 1
            if column > head.columns:
                break
            try:
                for first, values in [(row, body)] if row else _binary_strings(body, kind, head.is_bigmat):
                    numbers = kind.reals(values, head.words)
                    if not 1 <= first <= len(A) - len(numbers) + 1 or column < 1:
                        raise ValueError
                    A[first - 1 : first - 1 + len(numbers), column - 1] = numbers
            except ValueError:
                raise ReadError(
                    f'{where}: column {column} of matrix "{head.name}" does not fit into it: {CUT_SHORT}'
                ) from None
        yield head.name, A


def _binary_head(where: str, record: bytes, kind: NumberFormat) -> MatrixHead:
    if len(record) != 6 * kind.word_bytes:
        raise ReadError(
            f"{where}: a matrix begins with {len(record)} bytes; expected {6 * kind.word_bytes}: {CUT_SHORT}"
        )
    name = record[4 * kind.word_bytes :].decode("ascii", errors="replace").strip().upper()
    if not name.isprintable():
        raise ReadError(f"{where}: the name of a matrix is not a text: {CUT_SHORT}")
    return _checked_head(where, name, kind.integers(record[: 4 * kind.word_bytes]))


def _binary_strings(body: bytes, kind: NumberFormat, big: bool) -> Iterator[tuple[int, bytes]]:
    """Yield (first row, numbers) of each string of a sparse column."""
    position, word = 0, kind.word_bytes
    while position < len(body):
        head = kind.integers(body[position : position + word * (2 if big else 1)])
        length, row = head if big else divmod(head[0], STRING_HEADER_BASE)
        length -= 1
        position += word * len(head)
        if length < 1 or position + word * length > len(body):
            raise ValueError
        yield row, body[position : position + word * length]
        position += word * length
