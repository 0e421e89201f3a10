"""Self-contained pages: markup, colours, scripts and data in one file.

Such a page fetches nothing, and its content security policy forbids it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from bellcrank.quoting import script, xml
from bellcrank.version import __version__
from bellcrank.view import palette

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


def page(
    folder: str,
    title: str,
    generator: str,
    scripts: Sequence[str],
    data: str,
    colours: Callable[[bool], str] = palette.css_variables,
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
