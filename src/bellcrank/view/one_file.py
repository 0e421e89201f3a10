"""Pages that are one file: markup, colours, scripts and data put together. Nothing is fetched, and the page's own
policy forbids it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files

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
"""  # noqa: E501  # a policy is one line


def page(
    folder: str,
    title: str,
    generator: str,
    scripts: Sequence[str],
    data: str,
    colours: Callable[[bool], str] = palette.variables,
    **more: str,
) -> str:
    """folder: of the package, with page.html (from <body> on), page.css and the scripts. data: JSON. colours: of the
    light and of the dark theme. more: what else page.html asks for.
    """
    room, _, rest = folder.partition("/")

    def text(name: str) -> str:
        return (files(f"bellcrank.{room}") / rest / name).read_text("utf-8")

    pieces = {
        "TITLE": xml(title),
        "GENERATOR": f"{generator} {__version__}",
        "STYLE": themes(colours(False), f"color-scheme: dark; {colours(True)}") + text("page.css"),
        "DATA": script(data),
        "SCRIPT": "\n".join(map(text, scripts)),
        **more,
    }
    out = []
    for piece in (HEAD + text("page.html")).split("{{"):  # one pass: what is put in is not looked at again
        name, mark, after = piece.partition("}}")
        out.append(pieces[name] + after if mark else piece)
    return "".join(out)


def themes(light: str, dark: str) -> str:
    """The one that the reader's system has, unless another was chosen."""
    return (
        f":root {{ {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {dark} }} }}\n"
        f":root[data-theme=dark] {{ {dark} }}\n"
    )
