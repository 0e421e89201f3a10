"""Experiments: what the papers did, done again, with what they print beside what came out."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from bellcrank.cli import JsonOpt, app, screen
from bellcrank.cli.screen import Column
from bellcrank.errors import InputError

NamesArg = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Which; without one, a list.", show_default=False)
]
FiguresOpt = Annotated[Path | None, typer.Option("--figures", metavar="FOLDER", help="Write its plots there, as SVG.")]
RecordsOpt = Annotated[Path | None, typer.Option("--records", metavar="FOLDER", help="Write its runs there: Parquet.")]


@app.command()
def experiment(
    names: NamesArg = None, figures: FiguresOpt = None, records: RecordsOpt = None, json: JsonOpt = False
) -> None:
    """The papers' experiments, done again.

    Prints what the paper says beside what came out; without a name, which there are.
    """
    from bellcrank.experiments import EXPERIMENTS
    from bellcrank.experiments import experiment as named

    chosen = [named(name) for name in names or []]
    for folder, what in ((figures, "--figures"), (records, "--records")):
        if folder is not None and not folder.is_dir():
            raise InputError(f"{what} {folder}: there is no such directory; make it first.")
    if not chosen:
        rows = [(e.name, e.paper, e.section, e.title) for e in EXPERIMENTS.values()]
        if json:
            screen.data([dict(zip(("name", "paper", "section", "title"), row, strict=True)) for row in rows])
        else:
            screen.table([Column("name"), Column("paper"), Column("section"), Column("what", wrap=True)], rows)
        return
    found: list[Any] = []
    for k, e in enumerate(chosen):
        result = e.run()
        if json:
            lines = [
                {"what": r.what, "printed": r.printed, "ours": r.ours, "unit": r.unit, "agrees": r.agrees}
                for r in result.rows
            ]
            found.append({"name": e.name, "paper": e.paper, "section": e.section, "title": e.title, "rows": lines})
        else:
            screen.line(("\n" if k else "") + f"{e.paper}, section {e.section}: {e.title}", style="bold")
            screen.line()
            cells = [(r.what, r.printed, r.shown, r.verdict) for r in result.rows]
            screen.table(
                [
                    Column("what", wrap=True, least=30),
                    Column("printed", wrap=True),
                    Column("ours", right=True),
                    Column(""),
                ],
                cells,
            )
        _write(e.name, result, figures, records, quiet=json)
    if json:
        screen.data(found)


def _write(name: str, result: Any, figures: Path | None, records: Path | None, quiet: bool) -> None:
    from bellcrank.whole import write_whole

    written = []
    if figures is not None:
        for what, svg in result.figures.items():
            path = figures / f"{name}-{what}.svg"
            written.append(write_whole(path, partial(_put, svg.encode()), "Try again"))
    if records is not None:
        written += [run.save(records / f"{name}-{what}.parquet") for what, run in result.records.items()]
    if not quiet:
        for path in written:
            screen.line(f"wrote {path}", style="dim")


def _put(text: bytes, stream: IO[bytes]) -> None:
    stream.write(text)
