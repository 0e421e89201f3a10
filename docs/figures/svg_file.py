"""Write matplotlib figures as small SVG files that are the same on every run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl

if TYPE_CHECKING:
    from matplotlib.figure import Figure

mpl.use("svg")
mpl.rcParams.update(
    {
        "svg.hashsalt": "bellcrank",  # names of clip paths
        "svg.fonttype": "none",  # text stays text
        "font.family": "sans-serif",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.3,
        "path.simplify_threshold": 0.5,
    }
)
FOLDER = Path(__file__).resolve().parent


def write(figure: Figure, name: str) -> None:
    """Write `figure` to docs/figures/`name`.svg, without a date and with coordinates of two decimals."""
    path = FOLDER / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None, "Creator": None}, bbox_inches="tight", facecolor="white")
    text = re.sub(r"<[^>]*>", _shortened, path.read_text(encoding="utf-8"))  # tags, not the labels between them
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")
    print(f"{path.name}: {path.stat().st_size / 1024:.0f} KB")


def _shortened(tag: re.Match[str]) -> str:
    return re.sub(r"(\d+\.\d\d)\d+", r"\1", tag.group(0))
