"""Read tables of documentation pages, so that a figure shows the numbers that its page prints."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]


def table(page: str, heading: str) -> list[list[str]]:
    """Return the body rows of the first table of docs/`page` whose header line contains `heading`."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("|") and heading in line)
    rows = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
    return rows


def number(cell: str) -> float:
    """Return the first number of a cell; a comma separates thousands."""
    return float(re.findall(r"\d[\d,]*\.?\d*(?:e-?\d+)?", cell)[0].replace(",", ""))
