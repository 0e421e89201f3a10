"""A record as a figure of matplotlib: a panel for each kind of column, time across."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.extras import extra
from bellcrank.quoting import mathtext
from bellcrank.record.page import CHANGE, panels
from bellcrank.whole import write_whole

if TYPE_CHECKING:
    from bellcrank.record.record import Record

RUNS = 50  # of a batch that are drawn
NAMED = 12  # lines that a legend has room for
HINT = "The record is still in memory: plot again"


def plot(run: Record, names: tuple[str, ...], path: str | Path | None) -> Any:
    """The figure; also written to path (.png, .pdf, .svg, ...) if there is one."""
    figures = extra("matplotlib.figure", "plot", "plotting")
    shown = _chosen(run, names)
    size = (9.0, 0.8 + 2.4 * len(shown))
    if path is None:  # pyplot knows the figure: plt.show() and notebooks show it
        figure = extra("matplotlib.pyplot", "plot", "plotting").figure(figsize=size, layout="constrained")
    else:
        figure = figures.Figure(figsize=size, layout="constrained")
    axes = np.atleast_1d(figure.subplots(len(shown), 1, sharex=True))
    lanes = list(np.ndindex(*run.batch))
    drawn = [lanes[i] for i in np.unique(np.linspace(0, len(lanes) - 1, min(RUNS, len(lanes))).astype(int))]
    for ax, panel in zip(axes, shown, strict=True):
        for k, name in enumerate(panel["columns"]):
            for lane in drawn:
                label = mathtext(name) if lane == drawn[0] else None
                thin = {"linewidth": 1.2} if len(drawn) == 1 else {"linewidth": 0.7, "alpha": 0.6}
                ax.plot(run.t[lane], run[name][lane], color=f"C{k % 10}", label=label, **thin)
        ax.set_ylabel(mathtext(f"{panel['title']} [{panel['unit']}]" if panel["title"] else f"[{panel['unit']}]"))
        ax.grid(alpha=0.3)
        if 0 < len(panel["columns"]) <= NAMED:
            ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize="small")
    axes[-1].set_xlabel("t [s]")
    figure.align_ylabels(axes)
    few = f", {len(drawn)} of {run.runs} runs" if len(drawn) < run.runs else f", {run.runs} runs" if run.batch else ""
    figure.suptitle(mathtext(f"{repr(run)[1:].partition(':')[0]}{few}"))
    if path is not None:
        _write(figure, Path(path))
    return figure


def _chosen(run: Record, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The named columns, those of one unit together; without names positions, velocities and energies."""
    if not names:
        return [p for p in panels(run) if p["columns"] != [CHANGE]]
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(run.column(name).unit, []).append(name)
    return [{"title": "", "unit": unit, "columns": columns} for unit, columns in found.items()]


def _write(figure: Any, path: Path) -> None:
    kind = path.suffix.lower().lstrip(".")
    known = figure.canvas.get_supported_filetypes()
    if kind not in known:
        raise InputError(f'{path}: a figure is written as {", ".join(sorted(known))}; got "{path.suffix}".')
    write_whole(path, lambda stream: figure.savefig(stream, format=kind), HINT)
