"""Command report: a saved record as a table, and as a page that replays it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bellcrank.cli import app, screen
from bellcrank.cli.options import option
from bellcrank.cli.page_files import check_ours, page_path
from bellcrank.errors import InputError

FileArg = Annotated[Path, typer.Argument(metavar="FILE", help="A saved record.", show_default=False)]
OutOpt = Annotated[Path | None, option("PAGE", "Page to write; by default FILE.html.", "--out", "-o")]


@app.command()
def report(
    file: FileArg,
    out: OutOpt = None,
    lane: Annotated[int, option("N", "Which run of a batch, counted from 0.", "--run")] = 0,
    page: Annotated[bool, typer.Option(help="Write the page.")] = True,
) -> None:
    """Print a saved record, and write a page that replays it.

    FILE is a file of Record.save: .parquet, .csv, .npz or .mcap. The page is one file without dependencies: the
    mechanism in motion, plots of all columns, the origin of the record and the reason why the run stopped.
    """
    import numpy as np

    from bellcrank.record import load_record
    from bellcrank.view.record_page import GENERATOR

    run = load_record(file)
    if not 0 <= lane < run.runs:
        raise InputError(f"--run {lane}: {file} has {run.runs} runs, 0 to {run.runs - 1}.")
    screen.line(str(run))
    if not page:
        return
    target = page_path(out, file.with_suffix(".html"))
    check_ours(target, "report", GENERATOR)
    with screen.progress(f"drawing {len(run)} rows"):
        run.report(target, lane=tuple(map(int, np.unravel_index(lane, run.batch))) if run.batch else ())
    screen.line()
    screen.line(f"wrote {target}: open it in a browser", style="dim")
