"""Command study: many runs with varied parameters, as a file describes them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bellcrank.cli import app, load_mechanism, options, screen
from bellcrank.cli.options import option
from bellcrank.cli.screen import numbers, texts


@app.command()
def study(
    path: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="Study to run.", show_default=False)],
    cluster: Annotated[str | None, option("ADDRESS", "Address of a dask cluster: tcp://...")] = None,
    workers: Annotated[int | None, option("N", "Processes on this computer.")] = None,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Also write study.html.")] = True,
    run: Annotated[int | None, option("N", "Repeat run N, and write its page.")] = None,
    json: options.JsonOpt = False,
) -> None:
    """Run a study, or continue one that was stopped.

    The file has the mechanism, the varied parameters and the results to keep of each run (docs/studies.md). Results are
    Parquet files in its folder. Repeating the command continues the study; finished runs are not computed again.
    """
    import bellcrank as bc
    from bellcrank.studies.study_toml import read_study

    plant, settings = read_study(path, lambda name: load_mechanism(name))
    settings |= {k: x for k, x in {"cluster": cluster, "workers": workers}.items() if x is not None}
    result = bc.study(plant, **settings)
    written = [result.folder / "runs"]
    if run is not None:
        written.append(result.replay(run).report(result.folder / f"run-{run}.html"))
    if page:
        with screen.progress("drawing the page"):
            written.append(result.report())
    table = result.table()
    quantiles = {}
    import numpy as np

    for name in result.results:
        x = table.column(name).to_numpy()
        finite = x[np.isfinite(x)]
        quantiles[name] = [float(c) for c in np.quantile(finite, (0.0, 0.05, 0.5, 0.95, 1.0))] if len(finite) else []
    if json:
        files = [str(p) for p in written]
        screen.data({**result.manifest, "failures": result.failures, "quantiles": quantiles, "files": files})
        return
    screen.heading(str(result))
    head = [*texts("result"), *numbers("least", "5 %", "median", "95 %", "most")]
    screen.table(head, [(name, *(f"{c:.6g}" for c in (x or [float("nan")] * 5))) for name, x in quantiles.items()])
    screen.wrote(written)
