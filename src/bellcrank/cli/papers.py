"""What the papers did on parallel machines, their numbers beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bellcrank.cli import JsonOpt, app, screen
from bellcrank.cli.screen import Column
from bellcrank.cli.write import write
from bellcrank.errors import InputError, unknown
from bellcrank.parallel import EXPERIMENTS
from bellcrank.text import Table


@app.command()
def papers(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help=", ".join(EXPERIMENTS), show_default=False)] = "",
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="Write its figures there.")] = None,
    json: JsonOpt = False,
) -> None:
    """The papers' experiments on parallel machines, print beside ours.

    Without PAPER, what there is. With one, its tables; with --out its figures too: curves, and timing diagrams as
    pictures and as pages. Their operation counts on one processor are in `bellcrank count chain --papers`.
    """
    if paper and paper not in EXPERIMENTS:
        raise InputError(unknown("paper", paper, EXPERIMENTS))
    if not paper:
        if out is not None:
            raise InputError("--out writes the figures of one paper; name it.")
        if json:
            screen.data(
                [{"paper": x.paper, "about": x.about, "figures": list(x.figures)} for x in EXPERIMENTS.values()]
            )
            return
        screen.table([Column("paper"), Column("what `bellcrank papers PAPER` prints", wrap=True)],
                     [(x.paper, x.about) for x in EXPERIMENTS.values()])  # fmt: skip
        return
    found = EXPERIMENTS[paper]
    with screen.working(f"repeating {paper}"):
        tables = found.tables()
        written = write({out / name: draw() for name, draw in found.figures.items()}) if out is not None else []
    if json:
        rows = [{"title": t.title, "head": list(t.head), "rows": [list(r) for r in t.rows]} for t in tables]
        screen.data({"paper": paper, "tables": rows, "written": written})
        return
    for k, t in enumerate(tables):
        if k:
            screen.line()
        _print(t)
    if written:
        screen.line()
    for path in written:
        screen.line(f"wrote {path}", style="dim")


def _print(t: Table) -> None:
    screen.line(t.title, style="bold")
    screen.line()
    screen.table([Column(name, right=i in t.right) for i, name in enumerate(t.head)], t.rows)
    if t.below:
        screen.line()
        screen.lines(t.below)
