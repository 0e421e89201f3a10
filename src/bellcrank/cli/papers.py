"""Command papers: experiments of the papers, repeated, with the printed results beside the computed ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bellcrank.cli import app, options, screen
from bellcrank.cli.options import option
from bellcrank.cli.page_files import write_pages
from bellcrank.cli.screen import TableColumn, numbers, texts
from bellcrank.errors import InputError
from bellcrank.files import write_text
from bellcrank.text_table import Table

NamesArg = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="Experiments; without a name, list them.", show_default=False),
]
FiguresOpt = Annotated[Path | None, option("FOLDER", "Write the figures there.", "--out", "--figures", "-o")]
RecordsOpt = Annotated[Path | None, option("FOLDER", "Write the runs there, as Parquet.", "--records")]


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
        screen.heading(("\n" if k else "") + f"{e.paper}, section {e.section}: {e.title}")
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
        _print_table(t)
    if result.tables:
        screen.line()


def _print_table(t: Table) -> None:
    screen.heading(t.title)
    screen.table([TableColumn(name, right=i in t.right) for i, name in enumerate(t.head)], t.rows)
    if t.below:
        screen.line()
        screen.lines(t.below)


def _write(name: str, result: Any, figures: Path | None, records: Path | None) -> list[Path]:
    written: list[Path] = []
    if figures is not None:
        for what, svg in result.figures.items():
            written.append(write_text(figures / f"{name}-{what}.svg", svg, "Try again"))
        written += map(Path, write_pages({figures / file: draw() for file, draw in result.drawings.items()}))
    if records is not None:
        written += [run.save(records / f"{name}-{what}.parquet") for what, run in result.records.items()]
    return written
