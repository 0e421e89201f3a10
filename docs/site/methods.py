"""A page for each method: what it says of itself, its cost, its equations for two rods, its paper; a table of all."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import markup

import bellcrank as bc
from bellcrank.build import equations, graphs
from bellcrank.cli.papers import bibtex_entry
from bellcrank.dynamics import QUANTITIES
from bellcrank.dynamics.method_table import SHIPPED, Method

SIZES = (2, 6, 12, 30)
LARGEST = {"absolute": 12, "joint_coordinates_recursive": 30}  # so many joints, where tracing takes long
OPTIONS = {"frame": "link2"}


def pages(static: Path) -> dict[str, tuple[str, str, str]]:
    made = {"all": ("All methods", "the table: what each solves, for which mechanisms, after whom", _table())}
    made |= {m.name: (m.name, _first(m), _page(m)) for m in SHIPPED.values()}
    return made


def rods() -> bc.Mechanism:
    """Two equal rods of 1 m and 1 kg in a plane, the smallest arm that has everything."""
    b = bc.Builder("two rods", gravity=(0, -9.81, 0))
    for k, (parent, x) in enumerate((("ground", 0), ("link1", 1)), 1):
        b.body(f"link{k}", mass=1.0, com=(x + 0.5, 0, 0), inertia=(1e-3, 1 / 12, 1 / 12))
        b.joint(f"joint{k}", "revolute", parent, f"link{k}", point=(x, 0, 0), axis=(0, 0, 1))
    return b.build()


def _table() -> str:
    head = (
        "# All methods\n\n`method=` takes these names; `auto` traces those that are not hopeless and takes the one "
        "with the least predicted time. Over revolute, prismatic, helical, cylindrical, universal, spherical, planar "
        "and floating joints, and joints of your own.\n\n| method | solves | for | source |\n|---|---|---|---|\n"
    )
    cells = [(f"[`{m.name}`]({m.name}.md)", ", ".join(m.solves), m.topology, _short(m)) for m in SHIPPED.values()]
    rows = [f"| {' | '.join(row)} |" for row in cells]
    return head + "\n".join(rows) + "\n"


def _short(m: Method) -> str:
    """Names and year."""
    year = re.findall(r"\b(?:19|20)\d\d\b", m.citation)[-1]
    names = re.findall(r"(?:[A-Z]\.[ -]?)+([^\W\d_][\w'-]+)", re.split(r"[.,] (?:[A-Z][a-z]+ |\w+ )", m.citation)[0])
    return markup.escaped(f"{', '.join(names) or m.citation.split(',')[0]} {year}")


def _first(m: Method) -> str:
    return f"{', '.join(m.solves[:2])}{', ...' if len(m.solves) > 2 else ''}; {_short(m)}"


def _page(m: Method) -> str:
    quantity = m.solves[0]
    said = inspect.getdoc(m.file) or ""
    parts = [
        f"# {m.name}",
        markup.prose(said),
        "## Solves",
        ", ".join(f"{{py:meth}}`{name} <bellcrank.Mechanism.{name}>`" for name in m.solves) + f". For: {m.topology}.",
        "## Cost",
        _cost(m, quantity),
        f"## {quantity} of two rods",
        _equations(m, quantity),
        "## Cite",
        markup.escaped(m.citation),
        markup.fenced(bibtex_entry(m.citation), "bibtex"),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _cost(m: Method, quantity: str) -> str:
    """Traced counts of general chains; of methods for loops, of the four-bar."""
    rows = []
    for mechanism in [bc.zoo.four_bar()] if quantity.startswith("closure") else _chains(m):
        g = _graph(mechanism, quantity, m)
        c = g.count()
        counts = c["mul"], c["add"] + c["sub"], c["div"], c["trig"], c.arithmetic
        rows.append((mechanism.name, *counts, int(g.span())))
    head = f"`{quantity}`, counted in the graph that is compiled ([what is counted](../counting.md)):\n\n"
    table = "| mechanism | mul | add | div | sin, cos | total | span |\n|---|---|---|---|---|---|---|\n"
    return head + table + "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def _chains(m: Method) -> list[bc.Mechanism]:
    sizes = [n for n in SIZES if n <= LARGEST.get(m.name, 30) and not (n > 12 and "derivatives" in m.solves[0])]
    return [bc.zoo.chain(n) for n in sizes]


def _graph(mechanism: bc.Mechanism, quantity: str, m: Method) -> Any:
    frame = list(mechanism.frames)[-1] if QUANTITIES[quantity].option == "frame" else ""
    return graphs.graph(mechanism, quantity, method=m.name, frame=frame)


def _equations(m: Method, quantity: str) -> str:
    """In the steps of the method, as our printer writes them."""
    mechanism = bc.zoo.four_bar() if quantity.startswith("closure") else rods()
    frame = list(mechanism.frames)[-1] if QUANTITIES[quantity].option == "frame" else ""
    text = equations.equation_text(mechanism, _graph(mechanism, quantity, m), "latex", terms=0, frame=frame)
    told = "" if not quantity.startswith("closure") else "Of the four-bar instead, for two rods have no loop.\n\n"
    return told + typeset(text)


def typeset(latex: str) -> str:
    """Return the output of `emit --target latex` as Markdown."""
    lines = [line for line in latex.splitlines() if not line.startswith("%")]
    text = "\n".join(lines).replace("\\noindent ", "\n\n")
    text = re.sub(r"\\\[\n?(.*?)\\\]", r"\n\n$$\n\1$$\n\n", text, flags=re.DOTALL)
    blocks = re.split(r"\\begin\{align\*\}(.*?)\\end\{align\*\}", text, flags=re.DOTALL)
    out = [f"$$\n\\begin{{align*}}{b}\\end{{align*}}\n$$" if k % 2 else b.strip() for k, b in enumerate(blocks)]
    return "\n\n".join(out)
