"""Commands methods and cite: sources of the methods, and references for a mechanism."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import bellcrank as bc
from bellcrank.cli import app, load_mechanism, options, screen
from bellcrank.cli.screen import TableColumn, texts
from bellcrank.dynamics import METHODS, QUANTITIES, candidates, method
from bellcrank.dynamics.quantity_requests import Request
from bellcrank.errors import InputError


@app.command()
def methods(json: options.JsonOpt = False) -> None:
    """List the methods and their publications."""
    if json:
        facts = ("name", "solves", "topology", "citation")
        screen.data([{fact: getattr(m, fact) for fact in facts} for m in METHODS.values()])
        return
    head = [TableColumn("method"), *texts("solves"), TableColumn("topology", optional=True)]
    head.append(TableColumn("source", wrap=True, min_width=30))
    screen.table(head, [(m.name, ", ".join(m.solves), m.topology, m.citation) for m in METHODS.values()])


@app.command()
def cite(
    name: options.MechanismArg,
    method_name: options.MethodOpt = "auto",
    bibtex: Annotated[bool, typer.Option("--bibtex", help="Print BibTeX.")] = False,
    base: options.BaseOpt = "fixed",
    check: options.CheckOpt = "warn",
    json: options.JsonOpt = False,
) -> None:
    """Print the references to cite for a mechanism.

    These are the paper it comes from, if any, and the papers of the methods that compute its quantities.
    """
    from bellcrank.build import graphs
    from bellcrank.cli.bibtex import bibtex as entry

    m = load_mechanism(name, base, check)
    used: dict[str, list[str]] = {}
    if method_name != "auto":
        for q in bc.methods()[method_name].solves:
            used.setdefault(method(method_name, q, m.tree).name, []).append(q)
    else:
        with screen.progress(f"tracing {m.name}"):
            for q in QUANTITIES:
                able = candidates(q, m.tree)
                if not able:
                    continue
                solver = able[0] if len(able) == 1 else graphs.choose_graph(m, Request(q))[0]
                used.setdefault(solver.name, []).append(q)
    references: list[dict[str, Any]] = [{"what": "mechanism", "name": m.name, "citation": c} for c in _sources(name)]
    for by_name, names in used.items():
        citation = METHODS[by_name].citation
        references.append({"what": "method", "name": by_name, "quantities": names, "citation": citation})
    if json:
        screen.data([row | {"bibtex": entry(row["citation"])} for row in references])
    elif bibtex:
        print("\n\n".join(entry(row["citation"]) for row in references))
    else:
        head = [TableColumn(""), *texts("used for"), TableColumn("reference", wrap=True, min_width=30)]
        uses = [", ".join(row.get("quantities", ["the mechanism"])) for row in references]
        screen.table(head, [(row["name"], use, row["citation"]) for row, use in zip(references, uses, strict=True)])


def _sources(name: str) -> list[str]:
    """Return the papers of a built-in mechanism; none for a family or a file."""
    try:
        return list(bc.zoo.data(name)["cite"])
    except InputError:
        return []
