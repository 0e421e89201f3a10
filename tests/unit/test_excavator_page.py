"""docs/excavator.md lists every number of the data with its source, and its drawing is that of the model."""

from __future__ import annotations

import re
import runpy

from bellcrank.zoo import data
from prose import ROOT, UPDATE

PAGE = ROOT / "docs/excavator.md"
FIGURE = ROOT / "docs/figures/excavator_linkage"
BEGIN, END = "<!-- numbers -->\n", "<!-- end of numbers -->"
SECTION = re.compile(r"^\[excavator_linkage(?:\.([\w.]+))?\](.*)$")
ENTRY = re.compile(r"^(\w+) = ([^#\"]+?)\s*(?:#\s*(.*))?$")


def rows() -> list[tuple[str, str, str, str]]:
    """Return (part, name, value, source) of all numbers, from the text, because a parser drops comments."""
    found, part = [], None
    for line in (ROOT / "src/bellcrank/zoo/data.toml").read_text("utf-8").splitlines():
        if line.startswith("["):
            section = SECTION.match(line)
            part = (section.group(1) or "machine") if section else None
        elif part is not None and (entry := ENTRY.match(line)) and entry.group(1) != "cite":
            found.append((part, entry.group(1), entry.group(2), entry.group(3) or ""))
    return found


def table() -> str:
    lines = ["| part | number | value | source |", "|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {p} | {n} | {v} | {s} |" for p, n, v, s in rows())]) + "\n"


def test_every_number_has_a_source() -> None:
    found = rows()
    assert len(found) > 60
    silent = [row for row in found if not re.search(r"assumed|cat320|merritt1967", row[3])]
    assert silent == []
    cited = {word for row in found for word in re.findall(r"cat320e?|merritt1967", row[3])}
    assert len(data("excavator_linkage")["cite"]) == len(cited)


def test_the_table_is_current() -> None:
    text = PAGE.read_text("utf-8")
    before, rest = text.split(BEGIN)
    shown, after = rest.split(END)
    if UPDATE:
        PAGE.write_text(before + BEGIN + table() + END + after, "utf-8")
    else:
        assert shown == table(), "BELLCRANK_UPDATE=1 writes it"


def test_the_drawing_is_current() -> None:
    drawn = runpy.run_path(f"{FIGURE}.py")["drawing"]()
    assert drawn == FIGURE.with_suffix(".svg").read_text("utf-8"), "python docs/figures/excavator_linkage.py draws it"
