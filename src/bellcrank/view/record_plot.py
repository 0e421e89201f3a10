"""Matplotlib figure of a record: one panel for each kind of column, time across."""

from __future__ import annotations

import io
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.files import path_of, write_atomically
from bellcrank.lazy_import import optional_import
from bellcrank.quoting import mathtext
from bellcrank.view.record_page import CHANGE, panels

if TYPE_CHECKING:
    from bellcrank.record.record import Record

MAX_RUNS = 50  # maximum number of runs of a batch that are drawn
LEGEND_ROWS = 12  # entries in one column of the legend
HINT = "The record is still in memory: plot again"


def plot(run: Record, names: tuple[str, ...], path: str | Path | None) -> Any:
    """Draw the columns `names` of `run`; also write the figure to `path` (.png, .pdf, .svg, ...) if given."""
    figures = optional_import("matplotlib.figure", "plot", "plotting")
    shown = _chosen_panels(run, names)
    size = (9.0, 0.8 + 2.4 * len(shown))
    if path is None:  # registered in pyplot, so that plt.show() and notebooks show it
        figure = optional_import("matplotlib.pyplot", "plot", "plotting").figure(figsize=size, layout="constrained")
        figure._ipython_display_ = partial(_display_closed, figure)
    else:
        figure = figures.Figure(figsize=size, layout="constrained")
    axes = np.atleast_1d(figure.subplots(len(shown), 1, sharex=True))
    lanes = list(np.ndindex(*run.batch))
    drawn = [lanes[i] for i in np.unique(np.linspace(0, len(lanes) - 1, min(MAX_RUNS, len(lanes))).astype(int))]
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
        if len(labels) > 2 * LEGEND_ROWS:
            labels = [*labels[: 2 * LEGEND_ROWS - 1], f"... and {len(labels) - 2 * LEGEND_ROWS + 1} more"]
        beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False, "fontsize": "small"}
        if labels:
            ax.legend(lines[: len(labels)], labels, ncols=1 + (len(labels) > LEGEND_ROWS), **beside)
    axes[-1].set_xlabel("t [s]")
    figure.align_ylabels(axes)
    run_text = (
        f", {len(drawn)} of {run.runs} runs" if len(drawn) < run.runs else f", {run.runs} runs" if run.batch else ""
    )
    figure.suptitle(mathtext(f"{repr(run)[1:].partition(':')[0]}{run_text}"))
    if path is not None:
        _write(figure, path_of(path))
    return figure


def _display_closed(figure: Any) -> None:
    """Display the figure in a notebook, unless pyplot does.

    At the end of a cell, the notebook shows all open figures of pyplot, so this one must not be shown a second time.
    When pyplot has closed it, it is shown here.
    """
    if not optional_import("matplotlib.pyplot", "plot", "plotting").fignum_exists(figure.number):
        shown = import_module("IPython.display")
        stream = io.BytesIO()
        figure.savefig(stream, format="png")
        shown.display(shown.Image(data=stream.getvalue()))


def _chosen_panels(run: Record, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return panels of the named columns by unit; without names, of positions, velocities and energies."""
    if not names:
        return [p for p in panels(run) if p["columns"] != [CHANGE]]
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(run.column(name).unit, []).append(name)
    return [{"title": "", "unit": unit, "columns": columns} for unit, columns in groups.items()]


def _write(figure: Any, path: Path) -> None:
    kind = path.suffix.lower().lstrip(".")
    known = figure.canvas.get_supported_filetypes()
    if kind not in known:
        raise InputError(f'{path}: a figure can be written as {", ".join(sorted(known))}; got "{path.suffix}".')
    write_atomically(path, lambda stream: figure.savefig(stream, format=kind), HINT)
