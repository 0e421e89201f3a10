"""Timing diagram of a schedule for the terminal."""

from __future__ import annotations

from bellcrank.scheduling.timetable import Schedule


def diagram(s: Schedule, width: int = 72) -> str:
    """Draw the schedule `s` in `width` characters: processors down, time across, messages below their senders."""
    scale = width / s.makespan
    lines = []
    for p in range(s.machine.processors):
        row, below = [" "] * (width + 1), [" "] * (width + 1)
        for task, processor, a, b in zip(s.tasks, s.where, s.start, s.finish, strict=True):
            if processor == p:
                _draw(row, round(a * scale), round(b * scale), task.name, "=")
        for m in s.messages:
            if m.source == p:
                _draw(
                    below, round(m.start * scale), round(m.arrival * scale), f"{s.tasks[m.task].name}>{m.target}", "~"
                )
        lines += [f"{p} |{''.join(row).rstrip()}", f"  |{''.join(below).rstrip()}"]
    end = f"{s.makespan:.0f} {s.machine.unit}"
    return "\n".join([*lines, "  +" + "-" * (width - len(end)) + " " + end])


def _draw(row: list[str], a: int, b: int, name: str, fill: str) -> None:
    b = max(b, a + 1)
    text = name.center(b - a, fill)[: b - a]
    row[a:b] = list(text)
