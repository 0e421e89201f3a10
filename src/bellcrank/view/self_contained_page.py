"""Self-contained pages: markup, colours, scripts and data in one file; and the colours of all pictures.

Such a page fetches nothing, and its content security policy forbids it.

There is a colour for each step of a method, for light and dark themes, all of equal lightness. Neighbours in the table
differ strongly in hue. Text on them has the ink colour of the theme.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from bellcrank.quoting import script, xml
from bellcrank.version import __version__

HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="{{GENERATOR}}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{{TITLE}}</title>
<style>
{{STYLE}}
</style>
</head>
"""  # noqa: E501  # the policy must be one line

LIGHT_COLOURS = (
    "#a0cfff", "#ebc38c", "#9edbb2", "#fdb4b9", "#d3befa", "#84dbe5",
    "#c8d291", "#f1b5dc", "#faba9d", "#bac7ff", "#b3d8a0", "#8ed6f6",
)  # fmt: skip
DARK_COLOURS = (
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
        colours.setdefault(step, len(colours) % len(LIGHT_COLOURS))
    return colours


def css_variables(dark: bool) -> str:
    """Return the colours of the `dark` or light theme as CSS custom properties."""
    named = {key: pair[dark] for key, pair in THEME.items()}
    named |= {f"step{i}": colour for i, colour in enumerate(DARK_COLOURS if dark else LIGHT_COLOURS)}
    return " ".join(f"--{key}: {colour};" for key, colour in named.items())


def css_classes() -> str:
    """Return the colours as CSS classes of a standalone SVG; plain values, because some viewers lack variables."""

    def rules(dark: bool) -> str:
        c = {key: pair[dark] for key, pair in THEME.items()}
        steps = "".join(f".s{i}{{fill:{x}}}" for i, x in enumerate(DARK_COLOURS if dark else LIGHT_COLOURS))
        return (
            f".paper{{fill:{c['paper']}}}.raised{{fill:{c['raised']}}}.ink{{fill:{c['ink']}}}.soft{{fill:{c['soft']}}}"
            f".rule{{stroke:{c['rule']}}}.message{{stroke:{c['message']}}}.tip{{fill:{c['message']}}}"
            f".box{{stroke:{c['paper']}}}.critical{{stroke:{c['critical']}}}.hot{{fill:{c['critical']}}}{steps}"
        )

    return f"{rules(False)}@media (prefers-color-scheme:dark){{{rules(True)}}}"


def page(
    folder: str,
    title: str,
    generator: str,
    scripts: Sequence[str],
    data: str,
    colours: Callable[[bool], str] = css_variables,
    **more: str,
) -> str:
    """Return a page.

    Parameters
    ----------
    folder
        Folder of the package with page.html (from <body> on), page.css and the scripts.
    title
        Title of the page.
    generator
        Name of the generator, which marks our files.
    scripts
        Names of the scripts.
    data
        Data, JSON.
    colours
        Function that returns the CSS colours of the light (False) or dark (True) theme.
    more
        Further texts that page.html contains by name.
    """
    package, _, path = folder.partition("/")

    def text(name: str) -> str:
        return (files(f"bellcrank.{package}") / path / name).read_text("utf-8")

    pieces = {
        "TITLE": xml(title),
        "GENERATOR": f"{generator} {__version__}",
        "STYLE": themes(colours(False), f"color-scheme: dark; {colours(True)}") + text("page.css"),
        "DATA": script(data),
        "SCRIPT": "\n".join(map(text, scripts)),
        **more,
    }
    out = []
    for piece in (HEAD + text("page.html")).split("{{"):  # one pass: inserted texts are not searched for names
        name, mark, after = piece.partition("}}")
        out.append(pieces[name] + after if mark else piece)
    return "".join(out)


def packed(values: Any, dtype: str) -> str:
    """Return `values` as binary numbers of type `dtype` in base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype).tobytes()).decode()


def themes(light: str, dark: str) -> str:
    """Return CSS that applies the rules `light` or `dark` by the system's theme, unless the reader chose one."""
    return (
        f":root {{ {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {dark} }} }}\n"
        f":root[data-theme=dark] {{ {dark} }}\n"
    )
