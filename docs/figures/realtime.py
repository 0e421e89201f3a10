"""Draw docs/figures/realtime.svg, a sketch: periods of a real-time loop, one of which misses its deadline.

Command: `python docs/figures/realtime.py`
"""

from __future__ import annotations

from matplotlib.figure import Figure
from svg_file import write

PERIOD = 2.0  # ms, a rate of 500 Hz
# (due, woken, computed until) in ms. The third period takes too long; the fourth starts late and is caught up.
PERIODS = ((0.0, 0.06, 0.7), (2.0, 2.05, 2.75), (4.0, 4.08, 6.5), (6.0, 6.5, 7.2), (8.0, 8.05, 8.75))


def main() -> None:
    figure = Figure(figsize=(7.2, 1.9))
    axes = figure.subplots()
    for k, (due, woken, done) in enumerate(PERIODS):
        axes.barh(
            -0.33, woken - due, left=due, height=0.16, color="C1", label="" if k else "latency: due, not yet started"
        )
        axes.barh(
            0, min(done, due + PERIOD) - woken, left=woken, height=0.5, color="C0", label="" if k else "execution"
        )
        if done > due + PERIOD:
            axes.barh(0, done - due - PERIOD, left=due + PERIOD, height=0.5, color="C3", label="after the deadline")
    axes.annotate("deadline miss", (6.25, 0.28), (6.6, 0.62), fontsize=8, arrowprops={"arrowstyle": "->"})
    axes.annotate("starts late, caught up", (6.5, -0.38), (6.9, -0.75), fontsize=8, arrowprops={"arrowstyle": "->"})
    axes.set(xlabel="time [ms]", xlim=(-0.1, 10), ylim=(-0.9, 0.9), yticks=[])
    axes.set_xticks(range(0, 11, 2))
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles, labels, fontsize=7, ncols=3, loc="upper left", frameon=False)
    figure.tight_layout()
    write(figure, "realtime")


if __name__ == "__main__":
    main()
