"""Schedule as a self-contained page, as SVG, and as a diagram for the terminal.

The picture has processors down, time across, tasks coloured by step, messages as arrows, and the critical path in red.
"""

from __future__ import annotations

from collections.abc import Iterable

from bellcrank.quoting import xml
from bellcrank.scheduling.timetable import Message, Schedule
from bellcrank.view import curves
from bellcrank.view.self_contained_page import css_classes, page, step_colours

GENERATOR = "bellcrank schedule"  # mark of our files
SCRIPTS = ("data.js", "chart.js", "page.js")
WIDTH, LEFT, RIGHT, ROW, BOX, HEAD = 1200, 64, 24, 34, 22, 92
LETTER_PX = 6.1  # mean width of a letter in a task's name
MAX_ARROWS = 600  # if there are more messages, only those of the critical path are drawn


def svg(s: Schedule) -> str:
    """Draw the schedule `s`."""
    return _Picture(s).text()


def html(s: Schedule) -> str:
    """Return the page of the schedule `s`, whose data are `Schedule.json()`."""
    return page("view/schedule_web", f"{s.tasks.name} on {s.machine.name}", GENERATOR, SCRIPTS, s.json())


class _Picture:
    def __init__(self, s: Schedule) -> None:
        self.s = s
        self.critical_hops: dict[int, list[int]] = {}  # messages of the critical path, and their hops on it
        for link in s.chain:
            if link.message >= 0:
                self.critical_hops.setdefault(link.message, []).append(link.hop)
        passed = {p for k, hops in self.critical_hops.items() for n in hops for p in _hop_ends(s.messages[k], n)}
        shown = range(s.machine.processors) if s.machine.processors <= 32 else sorted({*s.where, *passed})
        self.row = {p: k for k, p in enumerate(shown)}
        self.steps = step_colours(task.step for task in s.tasks)
        self.scale = (WIDTH - LEFT - RIGHT) / (s.makespan or 1.0)
        self.bottom = HEAD + ROW * len(self.row)
        self.legend = list(self._legend())
        self.height = self.bottom + 40 + 22 * (1 + max((line for _, _, line, _ in self.legend), default=0))

    def x(self, t: float) -> float:
        return LEFT + t * self.scale

    def y(self, p: int) -> float:
        """Return the centre of a processor's row."""
        return HEAD + ROW * (self.row[p] + 0.5)

    def text(self) -> str:
        s = self.s
        title = xml(f"{s.tasks.name} on {s.machine.name}")
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" width="{WIDTH}" '
            f'height="{self.height}" role="img" aria-label="{title}" font-family="system-ui, sans-serif">',
            f"<!-- {GENERATOR} -->",
            f"<title>{title}</title>",
            f"<style>{css_classes()}</style>",
            f"<defs>{_arrow_head('tip')}{_arrow_head('hot')}</defs>",
            f'<rect class="paper" width="{WIDTH}" height="{self.height}"/>',
            f'<g font-weight="600">{_text_element(f"{s.tasks.name} on {s.machine.name}", LEFT, 32, 17)}</g>',
            _text_element(self._summary(), LEFT, 54, 12.5, tone="soft"),
            *self._rows(),
            *self._ruler(),
            *self._messages(),  # behind the boxes, which must be readable
            *self._critical(),
            *self._tasks(),
            *self._drawn_legend(),
            "</svg>",
        ]
        return "\n".join(parts) + "\n"

    def _summary(self) -> str:
        f = self.s.facts
        return (
            f"{f['makespan']:.6g} {f['unit']}, {f['speedup']:.2f} times as fast as one processor; efficiency "
            f"{f['efficiency']:.0%}; no schedule is shorter than {f['bound']:.6g}; {f['messages']} messages, "
            f"{f['words']} words"
        )

    def _rows(self) -> Iterable[str]:
        for p, k in self.row.items():
            if k % 2 == 0:
                top, width = HEAD + ROW * k, WIDTH - LEFT - RIGHT
                yield f'<rect class="raised" x="{LEFT}" y="{top}" width="{width}" height="{ROW}"/>'
            yield _text_element(str(p), LEFT - 10, self.y(p) + 4, 12, "end", "soft")

    def _ruler(self) -> Iterable[str]:
        for t in ticks(self.s.makespan):
            x = f"{self.x(t):.1f}"
            yield f'<path class="rule" d="M{x} {HEAD - 6}V{self.bottom}"/>'
            yield _text_element(f"{t:g}", self.x(t), HEAD - 12, 11, "middle", "soft")
        yield _text_element(self.s.machine.unit, LEFT - 10, HEAD - 12, 11, "end", "soft")

    def _tasks(self) -> Iterable[str]:
        s, critical = self.s, set(self.s.critical)
        for task, p, a, b in zip(s.tasks, s.where, s.start, s.finish, strict=True):
            x, width = self.x(a), (b - a) * self.scale
            hot = task.index in critical
            hint = f"{task.name}, processor {p}, {a:.6g} to {b:.6g} {s.machine.unit}, {task.operations} operations"
            corner = min(3.0, width / 3)
            yield (
                f'<rect class="s{self.steps[task.step]} {"critical" if hot else "box"}" x="{x:.2f}" '
                f'y="{self.y(p) - BOX / 2:g}" width="{max(width, 0.3):.2f}" height="{BOX}" rx="{corner:.1f}" '
                f'stroke-width="{min(1.6 if hot else 0.8, width / 3):.2f}"><title>{xml(hint)}</title></rect>'
            )
            for name in (task.name, task.step):
                if 0 < LETTER_PX * len(name) + 6 <= width:
                    yield _text_element(name, x + width / 2, self.y(p) + 3.8, 11, "middle")
                    break

    def _messages(self) -> Iterable[str]:
        sent = self.s.messages
        if len(sent) > MAX_ARROWS:
            sent = tuple(sent[k] for k in self.critical_hops)
        strength = max(0.2, min(0.8, 100 / (len(sent) or 1)))
        yield f'<g fill="none" stroke-width="1" opacity="{strength:.2f}">'
        for m in sent:
            hint = f"{self.s.tasks[m.task].name}: {m.words} words from processor {m.source} to {m.target}"
            yield f'<path class="message" d="{self._path(m)}" marker-end="url(#tip)"><title>{xml(hint)}</title></path>'
        yield "</g>"

    def _between(self, a: int, b: int) -> tuple[float, float]:
        """Return the facing edges of two rows."""
        down = BOX / 2 if self.y(b) > self.y(a) else -BOX / 2
        return self.y(a) + down, self.y(b) - down

    def _path(self, m: Message) -> str:
        """Return a path with a straight line for each hop; hops through processors without a row are joined."""
        begin, drawn = m.source, ""
        for k, hop in enumerate(m.hops):
            end = _hop_ends(m, k)[1]
            if end in self.row:
                y0, y1 = self._between(begin, end)
                drawn += f"{'L' if drawn else 'M'}{self.x(hop.start):.1f} {y0:g}L{self.x(hop.finish):.1f} {y1:g}"
                begin = end
        return drawn

    def _critical(self) -> Iterable[str]:
        for k, hops in self.critical_hops.items():
            m, drawn, last = self.s.messages[k], "", -2
            for n in hops:
                y0, y1 = self._between(*_hop_ends(m, n))
                drawn += f"{'L' if n == last + 1 else 'M'}{self.x(m.hops[n].start):.1f} {y0:g}"
                drawn += f"L{self.x(m.hops[n].finish):.1f} {y1:g}"
                last = n
            yield f'<path class="critical" fill="none" stroke-width="1.6" d="{drawn}" marker-end="url(#hot)"/>'

    def _legend(self) -> Iterable[tuple[str, int, int, float]]:
        """Yield name, colour, line and x of each step."""
        x, line = float(LEFT), 0
        for step, colour in self.steps.items():
            width = 26 + 6.6 * len(step)
            if x + width > WIDTH - RIGHT:
                x, line = float(LEFT), line + 1
            yield step, colour, line, x
            x += width

    def _drawn_legend(self) -> Iterable[str]:
        for step, colour, line, x in self.legend:
            y = self.bottom + 34 + 22 * line
            yield f'<rect class="s{colour}" x="{x:.1f}" y="{y - 10}" width="12" height="12" rx="3"/>'
            yield _text_element(step, x + 17, y, 12)


def _hop_ends(m: Message, hop: int) -> tuple[int, int]:
    """Return source and target of a hop; the channel of a bus does not contain them."""
    channel = m.hops[hop].channel
    return m.source if hop == 0 else channel[0], m.target if hop == len(m.hops) - 1 else channel[1]


def _text_element(text: str, x: float, y: float, size: float, anchor: str = "start", tone: str = "ink") -> str:
    position = f'x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}"'
    return f'<text class="{tone}" {position} pointer-events="none">{xml(text)}</text>'


def _arrow_head(name: str) -> str:
    """Return the definition of an arrow head."""
    size = 'viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6"'
    tip = f'<path class="{name}" d="M0 0 6 3 0 6z"/>'
    return f'<marker id="{name}" {size} orient="auto" markerUnits="userSpaceOnUse">{tip}</marker>'


def ticks(end: float) -> list[float]:
    """Return about ten round numbers from 0 to `end`."""
    return curves.ticks(0.0, end, 10, (1.0, 2.0, 5.0, 10.0)) if end > 0.0 else [0.0]


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
