"""Commands papers, methods and cite: experiments of the papers, sources of the methods, and references to cite.

A printed reference is converted to BibTeX if it has one of two forms; anything else becomes a note:

    A. Author, B. Author. Title. Journal 102(2), 69-76, 1980.
    A. Author and B. Author, Title, Journal 7(5), 1988, pp. 32-47
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

import bellcrank as bc
from bellcrank.cli import app, load_mechanism, options, screen
from bellcrank.cli.options import option
from bellcrank.cli.screen import TableColumn, numbers, texts, write_pages
from bellcrank.dynamics import METHODS, QUANTITIES, candidates, method
from bellcrank.dynamics.quantities import Request
from bellcrank.errors import InputError
from bellcrank.files import write_text

NamesArg = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="Experiments; without a name, list them.", show_default=False),
]
FiguresOpt = Annotated[Path | None, option("FOLDER", "Write the figures there.", "--out", "--figures", "-o")]
RecordsOpt = Annotated[Path | None, option("FOLDER", "Write the runs there, as Parquet.", "--records")]

PUBLISHERS = ("Springer",)  # publishers of books; any other place is a journal
_AUTHOR = r"(?:[A-Z]\.[ -]?)+[^\W\d_][\w'-]*"
_AUTHORS = rf"(?P<authors>{_AUTHOR}(?:(?:, | and |, and ){_AUTHOR})*)"
_FORMS = (
    re.compile(rf"{_AUTHORS}\. (?P<title>[^.]+)\. (?P<place>.+?)(?:, (?P<pages>\d+-\d+))?, (?P<year>\d{{4}})\.?"),
    re.compile(rf"{_AUTHORS}, (?P<title>[^,]+), (?P<place>.+), (?P<year>\d{{4}})(?:, pp\. (?P<pages>\d+-\d+))?\.?"),
)
_VOLUME = re.compile(r"(?P<journal>.+?) (?P<volume>\d+) ?(?:\((?P<number>[\d-]+)\))?")


@app.command()
def papers(
    names: NamesArg = None, figures: FiguresOpt = None, records: RecordsOpt = None, json: options.JsonOpt = False
) -> None:
    """Repeat the experiments of the papers.

    Prints the results of the paper beside the computed ones; without a name, lists the experiments. With --out it also
    writes the figures: curves, and timing diagrams as pictures and as pages. Operation counts on one processor are in
    `bellcrank count chain --papers`.
    """
    from bellcrank.papers import EXPERIMENTS, experiment

    chosen = [experiment(name) for name in names or []]
    for folder, what in ((figures, "--out"), (records, "--records")):
        if folder is not None and not chosen:
            raise InputError(f"{what} writes files of an experiment; name the experiment.")
        if folder is not None and not folder.is_dir():
            raise InputError(f"{what} {folder}: there is no such directory; create it first.")
    if not chosen:
        rows = [(e.name, e.paper, e.section, e.title) for e in EXPERIMENTS.values()]
        if json:
            screen.data([dict(zip(("name", "paper", "section", "title"), row, strict=True)) for row in rows])
        else:
            screen.table([*map(TableColumn, ("name", "paper", "section")), *texts("what")], rows)
        return
    results: list[Any] = []
    for k, e in enumerate(chosen):
        with screen.progress(f"repeating {e.name}"):
            result = e.run()
            written = _write(e.name, result, figures, records)
        if json:
            results.append(_data(e, result) | {"written": [str(path) for path in written]})
            continue
        screen.heading(("\n" if k else "") + f"{e.source}: {e.title}")
        _print(result)
        screen.wrote(written)
    if json:
        screen.data(results)


def _data(e: Any, result: Any) -> dict[str, Any]:
    keys = ("what", "printed", "ours", "unit", "agrees")
    rows = [{key: getattr(row, key) for key in keys} for row in result.rows]
    tables = [{"title": t.title, "head": list(t.head), "rows": [list(r) for r in t.rows]} for t in result.tables]
    about = {"name": e.name, "paper": e.paper, "section": e.section, "title": e.title}
    return about | {"rows": rows, "tables": tables}


def _print(result: Any) -> None:
    if result.rows:
        head = [TableColumn("what", wrap=True, min_width=30), *texts("printed"), *numbers("ours"), TableColumn("")]
        screen.table(head, [(r.what, r.printed, r.shown, r.verdict) for r in result.rows])
    for k, t in enumerate(result.tables):
        if k:
            screen.line()
        screen.titled_table(t)
    if result.tables:
        screen.line()


def _write(name: str, result: Any, figures: Path | None, records: Path | None) -> list[Path]:
    written: list[Path] = []
    if figures is not None:
        for what, svg in result.figures.items():
            written.append(write_text(figures / f"{name}-{what}.svg", svg, "Try again"))
        written += map(Path, write_pages({figures / file: draw() for file, draw in result.drawings.items()}))
    if records is not None:
        written += [run.save(records / f"{name}-{what}.parquet") for what, run in result.records.items()]
    return written


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
        screen.data([row | {"bibtex": bibtex_entry(row["citation"])} for row in references])
    elif bibtex:
        print("\n\n".join(bibtex_entry(row["citation"]) for row in references))
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


def bibtex_entry(citation: str) -> str:
    """Return `citation` as @article, @phdthesis or @book; as @misc where it has another form."""
    parsed = next((match for form in _FORMS if (match := form.fullmatch(citation))), None)
    if parsed is None:
        return _entry("misc", "reference", {"note": citation})
    authors = re.split(r", and | and |, ", parsed["authors"])
    key = re.sub(r"\W", "", authors[0].rpartition(" ")[2]).lower() + parsed["year"]
    fields: dict[str, str | None] = {"author": " and ".join(authors), "title": parsed["title"], "year": parsed["year"]}
    place, pages = parsed["place"], (parsed["pages"] or "").replace("-", "--")
    if place.startswith("PhD thesis, "):
        return _entry("phdthesis", key, fields | {"school": place.removeprefix("PhD thesis, ")})
    if place in PUBLISHERS:
        return _entry("book", key, fields | {"publisher": place})
    volume = _VOLUME.fullmatch(place)
    return _entry("article", key, fields | (volume.groupdict() if volume else {"journal": place}) | {"pages": pages})


def _entry(kind: str, key: str, fields: Mapping[str, str | None]) -> str:
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])
