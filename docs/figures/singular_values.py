"""Draw the singular values that decide the rank of loop equations: `python docs/figures/singular_values.py`."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc


def main() -> None:
    """Draw the singular values of a scissor lift of 20 stages and of a Bricard ring, in natural sizes."""
    figure = Figure(figsize=(7.6, 3.0))
    for axes, (name, m) in zip(
        figure.subplots(1, 2), (("scissor(20)", bc.zoo.scissor(20)), ("bricard()", bc.zoo.bricard())), strict=True
    ):
        (block,) = m.loop_analysis.blocks
        values, rank = np.maximum(block.values, 1e-17), block.rank
        places = np.arange(1, values.shape[1] + 1)
        axes.semilogy(places, values[:4].T, ".", ms=3, color="0.6")
        axes.semilogy(places[:rank], np.median(values, axis=0)[:rank], color="C0", label="count")
        axes.semilogy(places[rank:], values.max(axis=0)[rank:], "." if rank + 1 == len(places) else "-", color="C3",
                      label="zero but for rounding")  # fmt: skip
        axes.axvline(rank + 0.5, color="black", lw=0.8, ls="--")
        axes.set_title(f"{name}: rank {rank} of {values.shape[1]}", fontsize=9)
        axes.set_xlabel("number of the singular value")
        axes.legend(fontsize=8)
    figure.tight_layout()
    write(figure, "singular_values")


if __name__ == "__main__":
    main()
