"""The gallery: pictures and replays, each made by the command that stands over it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import markup

# A title, the command, the file that it makes, and what there is to see.
REPLAYS = (
    ("An excavator in RESOLVED mode", "simulate excavator --scenario resolved-mode --report excavator.html",
     "excavator.html", "Wong's experiment of 1991: the operator moves the teeth, and not the joints."),
    ("A ring that should not move", "simulate bricard --seconds 10 --report bricard.html", "bricard.html",
     "Bricard's six hinges: over-constrained, and closed to rounding all the way round."),
    ("A squeezer", "simulate andrews --seconds 0.05 --step 1e-5 --report andrews.html", "andrews.html",
     "Seven bodies and three loops: the benchmark that stiff solvers are measured by."),
    ("An arm falls", "simulate puma600 --seconds 3 --report puma.html", "puma.html",
     "A PUMA 600 from rest, without motors."),
)  # fmt: skip
PICTURES = (
    ("Forward dynamics on fourteen processors", "schedule excavator --machine triangle --svg --out schedule.svg",
     "schedule.svg", "Who does what when; outlined, the chain that decides how long it takes."),
    ("The graph of a pendulum", "emit pendulum --target svg --out pendulum.svg", "pendulum.svg",
     "All that is computed for one acceleration."),
)  # fmt: skip


def pages(static: Path) -> dict[str, tuple[str, str, str]]:
    folder = static / "gallery"
    folder.mkdir(parents=True)
    replays = [_item(*row, folder) for row in REPLAYS]
    pictures = [_item(*row, folder) for row in PICTURES]
    seat = (
        "## In the seat\n\n`bellcrank drive excavator_linkage --pilot dig`; the picture is made by `make picture`.\n\n"
        "![The page of bellcrank drive](../figures/cockpit.jpg)"
    )
    digging = (
        "## A cycle of digging\n\n`python docs/figures/digging.py > docs/figures/digging.svg`\n\n"
        "![An excavator digs](../figures/digging.svg)"
    )
    told = "Drag to turn, space to play; the plots below follow. Each is one file that works without a network."
    return {
        "replays": ("Replays", "runs in 3D", "\n\n".join(["# Replays", told, *replays]) + "\n"),
        "pictures": (
            "Pictures",
            "schedules, graphs, machines",
            "\n\n".join(["# Pictures", digging, seat, *pictures]) + "\n",
        ),
    }


def _item(title: str, command: str, name: str, words: str, folder: Path) -> str:
    subprocess.run(
        [sys.executable, "-m", "bellcrank", *shlex.split(command)], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )
    place = f"../_static/gallery/{name}"
    shown = f"![{title}]({place})"
    if name.endswith(".html"):
        shown = f'<iframe class="replay" loading="lazy" title="{title}" src="{place}"></iframe>'
        shown += f'\n\n<a href="{place}">Alone on a page</a>'
    return "\n\n".join([f"## {title}", words, markup.fenced(f"$ bellcrank {command}", "console"), shown])
