"""Plain-text tables for print(), with aligned columns; the command line has its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bellcrank.quoting import single_line


@dataclass(frozen=True)
class Table:
    """A table with a title above and text below."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Collection[int] = ()  # columns aligned to the right
    below: str = ""

    def __str__(self) -> str:
        return "\n\n".join(filter(None, (self.title, table(self.head, self.rows, self.right), self.below)))


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> str:
    """Return a text table.

    Parameters
    ----------
    head
        Titles of the columns.
    rows
        Texts of the cells.
    right
        Indices of right-aligned columns.
    """
    # Names come from files, and a cell must have one line.
    head, *rows = ([single_line(cell) for cell in row] for row in (head, *rows))
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]

    def joined(cells: Sequence[str]) -> str:
        padded = (c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True)))
        return "  ".join(padded).rstrip()

    return "\n".join([joined(head), joined(["-" * w for w in widths]), *map(joined, rows)])
