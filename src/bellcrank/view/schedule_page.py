"""A schedule as one page: the files of web/, the colours and the schedule's own JSON put together.

Nothing is fetched, and the page's own policy forbids it. What it shows is exactly `Schedule.json()`.
"""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from bellcrank.quoting import script, xml
from bellcrank.version import __version__
from bellcrank.view import palette

if TYPE_CHECKING:
    from bellcrank.scheduling.timetable import Schedule

GENERATOR = "bellcrank schedule"  # how our files are told from others
SCRIPTS = ("data.js", "chart.js", "page.js")


def html(s: Schedule) -> str:
    dark = palette.variables(dark=True)
    colours = (
        f":root {{ {palette.variables(dark=False)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ color-scheme: dark; {dark} }} }}\n"
        f":root[data-theme=dark] {{ color-scheme: dark; {dark} }}\n"
    )
    parts = {
        "TITLE": xml(f"{s.tasks.name} on {s.machine.name}"),
        "GENERATOR": f"{GENERATOR} {__version__}",
        "STYLE": colours + _file("page.css"),
        "DATA": script(s.json()),
        "SCRIPT": "\n".join(_file(name) for name in SCRIPTS),
    }
    out = []
    for piece in _file("page.html").split("{{"):  # one pass: what is put in is not looked at again
        name, mark, rest = piece.partition("}}")
        out.append(parts[name] + rest if mark else piece)
    return "".join(out)


def frame(s: Schedule) -> str:
    """For notebooks: the page in a frame of its own, cut off from the notebook's."""
    return (
        f'<iframe title="{xml(s.tasks.name)}" sandbox="allow-scripts" srcdoc="{escape(html(s))}" '
        'style="width:100%;height:560px;border:1px solid #8884;border-radius:8px"></iframe>'
    )


def _file(name: str) -> str:
    return (files("bellcrank.view") / "schedule_web" / name).read_text("utf-8")
