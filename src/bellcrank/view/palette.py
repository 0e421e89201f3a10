"""Colours of pictures: one for each step of a method, for light and dark themes, all of equal lightness.

Neighbours in the table differ strongly in hue. Text on them has the ink colour of the theme.
"""

from __future__ import annotations

from collections.abc import Iterable

LIGHT = (
    "#a0cfff", "#ebc38c", "#9edbb2", "#fdb4b9", "#d3befa", "#84dbe5",
    "#c8d291", "#f1b5dc", "#faba9d", "#bac7ff", "#b3d8a0", "#8ed6f6",
)  # fmt: skip
DARK = (
    "#335e89", "#76531b", "#2d6945", "#84454b", "#624f83", "#006871",
    "#596022", "#7a476a", "#824a30", "#4d568a", "#456533", "#146480",
)  # fmt: skip
# name: (light, dark)
THEME = {
    "paper": ("#ffffff", "#16181d"),
    "raised": ("#f6f7f9", "#1d2027"),
    "rule": ("#e3e6ea", "#2c3038"),
    "ink": ("#1c2024", "#e8eaed"),
    "soft": ("#5f6872", "#9aa3ae"),
    "message": ("#76808b", "#7f8995"),
    "critical": ("#d6293c", "#ff7a72"),
    "accent": ("#2563c9", "#7db1ff"),
}


def step_colours(steps: Iterable[str]) -> dict[str, int]:
    """Return the index of each of `steps` in the table of colours, in the order of first appearance."""
    colours: dict[str, int] = {}
    for step in steps:
        colours.setdefault(step, len(colours) % len(LIGHT))
    return colours


def css_variables(dark: bool) -> str:
    """Return the colours of the `dark` or light theme as CSS custom properties."""
    named = {key: pair[dark] for key, pair in THEME.items()}
    named |= {f"step{i}": colour for i, colour in enumerate(DARK if dark else LIGHT)}
    return " ".join(f"--{key}: {colour};" for key, colour in named.items())


def css_classes() -> str:
    """Return the colours as CSS classes of a standalone SVG; plain values, because some viewers lack variables."""

    def rules(dark: bool) -> str:
        c = {key: pair[dark] for key, pair in THEME.items()}
        steps = "".join(f".s{i}{{fill:{x}}}" for i, x in enumerate(DARK if dark else LIGHT))
        return (
            f".paper{{fill:{c['paper']}}}.raised{{fill:{c['raised']}}}.ink{{fill:{c['ink']}}}.soft{{fill:{c['soft']}}}"
            f".rule{{stroke:{c['rule']}}}.message{{stroke:{c['message']}}}.tip{{fill:{c['message']}}}"
            f".box{{stroke:{c['paper']}}}.critical{{stroke:{c['critical']}}}.hot{{fill:{c['critical']}}}{steps}"
        )

    return f"{rules(False)}@media (prefers-color-scheme:dark){{{rules(True)}}}"
