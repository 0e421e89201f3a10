"""The page of a schedule in headless Chromium: drawing, zooming, explanations, and use without a mouse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bellcrank as bc
from bellcrank.scheduling import Schedule, Tasks
from chromium import opening, settled
from page_measures import contrasts


@pytest.fixture(scope="module")
def s() -> Schedule:
    return bc.schedule(bc.zoo.excavator(), machine="triangle", kind="t800", method="crba")


@pytest.fixture
def shown(flat_browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Return a function that opens a schedule."""
    with opening(flat_browser) as opened:

        def show(s: Schedule, width: int = 1200, height: int = 760, scheme: str = "light") -> Any:
            path = tmp_path / "page.html"
            path.write_text(s.html(), encoding="utf-8")
            return opened(path, width, height, scheme)

        yield show


def seen(page: Any) -> tuple[float, float]:
    return page.evaluate("view.from"), page.evaluate("view.to")


def middle(page: Any, i: int) -> tuple[float, float]:
    """Return the centre of a task's box, in window coordinates."""
    x, y, left, top = page.evaluate(
        f"(() => {{ const t = S.tasks[{i}], box = chart.getBoundingClientRect();"
        " return [X((t.start + t.finish) / 2), Y(t.processor), box.left, box.top]; })()"
    )
    return x + left, y + top


def widest(s: Schedule) -> int:
    return max(range(len(s.tasks)), key=lambda i: s.finish[i] - s.start[i])


def test_everything_is_drawn(shown: Any, s: Schedule) -> None:
    page = shown(s)
    drawn = page.evaluate("view.drawn")
    assert drawn["tasks"] == len(s.tasks)
    assert drawn["messages"] == len(s.messages)
    assert 0 < drawn["labels"] <= len(s.tasks)
    assert page.inner_text("h1") == f"{s.tasks.name} on {s.machine.name}"
    facts = page.inner_text("#facts")
    for word in (f"{s.makespan:.5g}", f"{s.speedup:.2f}", f"{s.span:g}", str(len(s.messages)), f"{s.words} words"):
        assert word in facts
    steps = page.eval_on_selector_all("#legend button", "all => all.map(b => b.title)")
    assert steps == list(dict.fromkeys(task.step for task in s.tasks))


def test_boxes_have_their_colours_and_positions(shown: Any, s: Schedule) -> None:
    page = shown(s)
    i = widest(s)
    colour, wanted = page.evaluate(
        f"(() => {{ const t = S.tasks[{i}], k = window.devicePixelRatio;"
        " const at = [(X(t.start) + 6) * k, (Y(t.processor) + tall / 3) * k];"
        " const p = chart.getContext('2d').getImageData(...at, 1, 1).data;"
        " return ['#' + [...p].slice(0, 3).map(c => c.toString(16).padStart(2, '0')).join(''),"
        " ink.steps[steps.get(t.step).colour]]; })()"
    )
    assert colour == wanted


def test_pointing_describes_a_task(shown: Any, s: Schedule) -> None:
    page = shown(s)
    i = widest(s)
    assert page.is_hidden("#tip")
    page.mouse.move(*middle(page, i))
    text = page.inner_text("#tip")
    for word in (s.tasks[i].name, f"{len(s.tasks[i].nodes)}", f"{s.start[i]:.6g} to {s.finish[i]:.6g} us", "word"):
        assert word in text
    page.mouse.move(5, 5)
    assert page.is_hidden("#tip")


def test_wheel_zooms_around_the_pointer_and_drag_moves(shown: Any, s: Schedule) -> None:
    page = shown(s)
    assert seen(page) == (0, pytest.approx(s.makespan))
    x, y = map(round, middle(page, widest(s)))  # a mouse is at whole pixels
    left = page.evaluate("chart.getBoundingClientRect().left")
    at = page.evaluate(f"T({x - left})")
    page.mouse.move(x, y)
    page.mouse.wheel(0, -300)
    page.wait_for_function("view.to - view.from < 0.9 * END")
    assert page.evaluate(f"T({x - left})") == pytest.approx(at, rel=1e-6)
    before = seen(page)
    page.mouse.down()
    page.mouse.move(x - 80, y, steps=4)
    page.mouse.up()
    after = seen(page)
    assert after[0] > before[0]
    assert after[1] - after[0] == pytest.approx(before[1] - before[0])
    assert page.evaluate("view.selected") is None  # a drag does not select a task
    page.click("#fit")
    assert seen(page) == (0, pytest.approx(s.makespan))


def test_clicking_shows_the_predecessors(shown: Any, s: Schedule) -> None:
    page = shown(s)
    i = next(i for i in s.critical[2:] if s.tasks[i].needs and s.finish[i] - s.start[i] > s.makespan / 60)
    page.mouse.click(*middle(page, i))
    assert page.evaluate("view.selected") == i
    text = page.inner_text("#details")
    assert s.tasks[i].name in text
    assert "on the critical path" in text
    before = next(iter(s.tasks[i].needs))
    page.click(f"#details .links button:has-text('{s.tasks[before].name}') >> nth=0")
    assert page.evaluate("view.selected") in s.tasks[i].needs


def test_without_a_mouse(shown: Any, s: Schedule) -> None:
    page = shown(s)
    page.focus("#chart")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("view.selected") == s.critical[0]
    for wanted in s.critical[1:4]:
        page.keyboard.press("n")
        assert page.evaluate("view.selected") == wanted
        assert s.tasks[wanted].name in page.inner_text("#details[aria-live=polite]")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("S.tasks[view.selected].processor") != s.where[s.critical[3]]
    page.keyboard.press("Enter")
    assert page.evaluate("view.to - view.from") < s.makespan
    page.keyboard.press("0")
    assert seen(page) == (0, pytest.approx(s.makespan))
    page.keyboard.press("+")
    assert page.evaluate("view.to - view.from") == pytest.approx(0.6 * s.makespan)
    for key, name in (("c", "critical"), ("m", "messages"), ("i", "idle")):
        page.keyboard.press(key)
        assert page.evaluate(f"view.{name}") is False
        assert page.get_attribute(f"#{name}", "aria-pressed") == "false"
    settled(page)
    assert page.evaluate("view.drawn.messages") == 0
    page.keyboard.press("?")
    assert page.is_visible("#keys")
    page.keyboard.press("Escape")
    assert page.is_hidden("#keys")
    assert page.evaluate("view.selected") is None
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert reached >= {"find", "critical", "messages", "idle", "in", "out", "fit", "theme", "help", "chart"}


def test_finding_a_task(shown: Any, s: Schedule) -> None:
    page = shown(s)
    page.keyboard.press("/")
    page.keyboard.type("ic[boom]")
    page.keyboard.press("Enter")
    first = page.evaluate("view.selected")
    assert s.tasks[first].name == "Ic[boom]"
    page.keyboard.press("Enter")
    assert page.evaluate("view.selected") != first  # the next one of that name
    page.fill("#find", "no such thing")
    page.keyboard.press("Enter")
    assert "No task is called" in page.inner_text("#details")


def test_a_step_can_be_picked_out(shown: Any, s: Schedule) -> None:
    page = shown(s)
    page.click("#legend button:has-text('Ic')")
    assert page.evaluate("view.step") == "Ic"
    page.click("#legend button:has-text('Ic')")
    assert page.evaluate("view.step") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_word_can_be_read(shown: Any, s: Schedule, scheme: str) -> None:
    found = contrasts(shown(s, scheme=scheme))
    assert len(found) > 20
    assert {name: ratio for name, ratio in found if ratio < 4.5} == {}


def test_light_and_dark(shown: Any, s: Schedule) -> None:
    light, dark = (shown(s, scheme=scheme).evaluate("ink.paper") for scheme in ("light", "dark"))
    assert (light, dark) == ("#ffffff", "#16181d")
    page = shown(s, scheme="dark")
    page.click("#theme")
    assert page.evaluate("[ink.paper, getComputedStyle(document.body).backgroundColor]") == [
        "#ffffff",
        "rgb(255, 255, 255)",
    ]
    page.click("#theme")
    assert page.evaluate("ink.paper") == "#16181d"


@pytest.mark.parametrize("width", [320, 480, 800, 1600])
def test_elements_stay_inside_the_window(shown: Any, s: Schedule, width: int) -> None:
    page = shown(s, width=width, height=640)
    wide, tall = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
    assert wide <= width
    assert tall <= 640
    assert page.evaluate("chart.clientHeight") > 100
    assert page.evaluate("view.drawn.tasks") > 0
    # every control has an accessible name
    for name in ("find", "critical", "messages", "idle", "out", "fit", "in", "theme", "help"):
        box = page.locator(f"#{name}").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_the_critical_path_is_drawn_along_its_channels(shown: Any) -> None:
    """The critical path is drawn along channels: on the bus, messages wait for each other in hops."""
    s = bc.schedule(bc.zoo.excavator(), machine="bus:4", kind="t800", method="crba")
    page = shown(s)
    assert page.evaluate("hotHops.length") > 0
    drawn = page.evaluate("hotHops.reduce((sum, run) => sum + run.last - run.first + 1, 0)")
    assert drawn == len([link for link in s.chain if link.message >= 0])


def test_thousands_of_tasks(shown: Any) -> None:
    s = bc.schedule(bc.zoo.tree(63), machine="complete:4", kind="t800", method="aba", level="node")
    assert len(s.tasks) > 5000
    page = shown(s)
    boxes = page.evaluate("view.drawn.tasks")
    assert 1000 < boxes < len(s.tasks)  # no more than there are pixels
    page.evaluate(f"show({s.makespan * 0.4}, {s.makespan * 0.41})")
    settled(page)
    drawn = page.evaluate("view.drawn")
    assert 0 < drawn["tasks"] < 300
    assert drawn["messages"] < 300


@pytest.mark.parametrize("on", ["single", "bus:3", "triangle:12"])
def test_other_machines(shown: Any, on: str) -> None:
    s = bc.schedule(bc.zoo.planar3r(), machine=on, method="aba")
    page = shown(s)
    assert page.evaluate("shown.length") == (s.machine.processors if s.machine.processors <= 32 else s.used)
    assert page.evaluate("view.drawn.tasks") == len(s.tasks)


def test_names_never_become_markup(shown: Any, s: Schedule) -> None:
    bad = '<img src=x onerror="document.title=1">'
    named = replace(s, tasks=Tasks(bad, s.tasks.level, tuple(replace(t, name=bad) for t in s.tasks)))
    page = shown(named)
    page.mouse.move(*middle(page, widest(s)))
    page.mouse.click(*middle(page, widest(s)))
    assert bad in page.inner_text("#details")
    assert bad in page.inner_text("h1")
    assert page.query_selector("img") is None
