"""Matplotlib figure of a record: one panel for each kind of column, time across."""

from __future__ import annotations

import io
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.atomic_file import path_of, write_whole
from bellcrank.errors import InputError
from bellcrank.extras import extra
from bellcrank.quoting import mathtext
from bellcrank.view.record_page import CHANGE, panels

if TYPE_CHECKING:
    from bellcrank.record.record import Record

RUNS = 50  # maximum number of runs of a batch that are drawn
NAMED = 12  # entries in one column of the legend
HINT = "The record is still in memory: plot again"


def plot(run: Record, names: tuple[str, ...], path: str | Path | None) -> Any:
    """Draw the columns `names` of `run`; also write the figure to `path` (.png, .pdf, .svg, ...) if given."""
    figures = extra("matplotlib.figure", "plot", "plotting")
    shown = _chosen(run, names)
    size = (9.0, 0.8 + 2.4 * len(shown))
    if path is None:  # registered in pyplot, so that plt.show() and notebooks show it
        figure = extra("matplotlib.pyplot", "plot", "plotting").figure(figsize=size, layout="constrained")
        figure._ipython_display_ = partial(_once, figure)
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
        title = " ".join(filter(None, [panel["title"], f"[{panel['unit']}]" if panel["unit"] else ""]))
        ax.set_ylabel(mathtext(title))
        ax.grid(alpha=0.3)
        lines, labels = ax.get_legend_handles_labels()
        if len(labels) > 2 * NAMED:
            labels = [*labels[: 2 * NAMED - 1], f"... and {len(labels) - 2 * NAMED + 1} more"]
        beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False, "fontsize": "small"}
        if labels:
            ax.legend(lines[: len(labels)], labels, ncols=1 + (len(labels) > NAMED), **beside)
    axes[-1].set_xlabel("t [s]")
    figure.align_ylabels(axes)
    few = f", {len(drawn)} of {run.runs} runs" if len(drawn) < run.runs else f", {run.runs} runs" if run.batch else ""
    figure.suptitle(mathtext(f"{repr(run)[1:].partition(':')[0]}{few}"))
    if path is not None:
        _write(figure, path_of(path))
    return figure


def _once(figure: Any) -> None:
    """Display the figure in a notebook, unless pyplot does.

    At the end of a cell, the notebook shows all open figures of pyplot, so this one must not be shown a second time.
    When pyplot has closed it, it is shown here.
    """
    if not extra("matplotlib.pyplot", "plot", "plotting").fignum_exists(figure.number):
        shown = import_module("IPython.display")
        stream = io.BytesIO()
        figure.savefig(stream, format="png")
        shown.display(shown.Image(data=stream.getvalue()))


def _chosen(run: Record, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return panels of the named columns by unit; without names, of positions, velocities and energies."""
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
        raise InputError(f'{path}: a figure can be written as {", ".join(sorted(known))}; got "{path.suffix}".')
    write_whole(path, lambda stream: figure.savefig(stream, format=kind), HINT)
