"""Page of a schedule in one self-contained file."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from bellcrank.quoting import xml
from bellcrank.view.self_contained_page import page

if TYPE_CHECKING:
    from bellcrank.scheduling.timetable import Schedule

GENERATOR = "bellcrank schedule"  # mark of our files
SCRIPTS = ("data.js", "chart.js", "page.js")


def html(s: Schedule) -> str:
    """Return the page of the schedule `s`, whose data are `Schedule.json()`."""
    return page("view/schedule_web", f"{s.tasks.name} on {s.machine.name}", GENERATOR, SCRIPTS, s.json())


def frame(s: Schedule) -> str:
    """Return a sandboxed frame with the page of the schedule `s`, for notebooks."""
    return (
        f'<iframe title="{xml(s.tasks.name)}" sandbox="allow-scripts" srcdoc="{escape(html(s))}" '
        'style="width:100%;height:560px;border:1px solid #8884;border-radius:8px"></iframe>'
    )
