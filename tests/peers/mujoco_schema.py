"""MuJoCo's XML schema as (element, attribute), and the table of docs/mjcf.md with the treatment of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/mjcf.md"
FATES = ("read", "reported", "no effect")
INDENT, COLUMN = 3, 30  # in the printed schema: spaces per level, and the column of the attributes
# Elements in <default> -> their path outside of it.
DEFAULTS = {"pair": "contact", "mesh": "asset", "texture": "asset", "material": "asset"} | dict.fromkeys(
    ("joint", "geom", "site", "camera", "light"), "body"
)
# These stand for every element inside them.
GROUPS = ("equality", "tendon")


def schema(text: str) -> Iterator[tuple[str, str]]:
    """Yield (path, attribute) of all that mj_printSchema prints, and (path, "") of each element."""
    path: list[str] = []
    for line in text.splitlines():
        found = re.match(r"( *)([(\w)]+) \((?:\*|\?|!|R)\)", line)
        if found and len(found[1]) < COLUMN:
            name = "body" if found[2] == "(world)body" else found[2]
            depth = len(found[1]) // INDENT
            path = [*path[:depth], name]
            yield _place(path), ""
        for attribute in line[COLUMN:].split():
            yield _place(path), attribute


def _place(path: list[str]) -> str:
    inner = path[1:] or path
    if inner[0] != "default" or len(inner) == 1:
        return "/".join(inner)
    name = inner[1]
    return "/".join([name, "*"] if name in GROUPS else [DEFAULTS.get(name, "actuator"), *inner[1:]])


@cache
def table() -> list[tuple[list[str], dict[str, set[str]]]]:
    """Return (elements, attributes by fate) of every row of the page."""
    rows = []
    for line in PAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 1 + len(FATES):
            rows.append(
                (
                    re.findall(r"`([^`]+)`", cells[0]),
                    {
                        fate: {"*"} if cell == "all" else set(re.findall(r"`([^`]+)`", cell))
                        for fate, cell in zip(FATES, cells[1:], strict=True)
                    },
                )
            )
    return rows


def fates(path: str, attribute: str) -> set[str]:
    """Return the page's treatment of an attribute, or of an element ("")."""
    found = set()
    for elements, columns in table():
        if any(fnmatchcase(path, e) or fnmatchcase(e, path) for e in elements):
            found |= {fate for fate, names in columns.items() if not attribute or attribute in names or "*" in names}
            if not attribute and not any(columns.values()):
                found.add("read")
    return found
