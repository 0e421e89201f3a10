"""A schedule as one page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from bellcrank.quoting import xml
from bellcrank.view.one_file import page

if TYPE_CHECKING:
    from bellcrank.scheduling.timetable import Schedule

GENERATOR = "bellcrank schedule"  # how our files are told from others
SCRIPTS = ("data.js", "chart.js", "page.js")


def html(s: Schedule) -> str:
    """What it shows is exactly `Schedule.json()`."""
    return page("view/schedule_web", f"{s.tasks.name} on {s.machine.name}", GENERATOR, SCRIPTS, s.json())


def frame(s: Schedule) -> str:
    """For notebooks: the page in a frame of its own, cut off from the notebook's."""
    return (
        f'<iframe title="{xml(s.tasks.name)}" sandbox="allow-scripts" srcdoc="{escape(html(s))}" '
        'style="width:100%;height:560px;border:1px solid #8884;border-radius:8px"></iframe>'
    )
