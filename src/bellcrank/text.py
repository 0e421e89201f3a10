"""Plain text: tables for print() with aligned columns (the command line has its own), and names in pictures."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Table:
    """A table with its title, and what is to be said below it."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Collection[int] = ()  # columns of numbers
    below: str = ""

    def __str__(self) -> str:
        return "\n\n".join(filter(None, (self.title, table(self.head, self.rows, self.right), self.below)))


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> str:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        padded = (c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True)))
        return "  ".join(padded).rstrip()

    return "\n".join([line(head), line(["-" * w for w in widths]), *map(line, rows)])


def xml(text: str) -> str:
    """Text for SVG and HTML. Names come from files: what has no shape there becomes the sign for that."""
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))
