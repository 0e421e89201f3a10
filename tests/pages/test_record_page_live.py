"""The page of a record in headless Chromium: playing, rotating, zooming, and no element outside the window."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.record import Column, Record, Stop, state_columns
from bellcrank.record.dug_ground import dug_ground
from bellcrank.structures.beam import Beam
from chromium import opening, settled
from page_measures import contrasts
from runs import rk4
from trees import ALL, random_tree


@pytest.fixture(scope="module")
def run() -> Record:
    return rk4(bc.zoo.excavator(), [0.3, 0.5, -0.9, -0.4], [0.6, 0.0, 0.0, 0.0], 2.0, 2e-3, every=5)


@pytest.fixture
def shown(flat_browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Return a function that opens a record."""
    with opening(flat_browser) as opened:

        def show(run: Record, width: int = 1280, height: int = 800, scheme: str = "light", **more: Any) -> Any:
            return opened(run.report(tmp_path / "page.html"), width, height, scheme, **more)

        yield show


PATIENCE = 60.0  # s, on a busy machine


def until(page: Any, what: str) -> None:
    """Wait for a JavaScript expression.

    Playwright's own wait compiles text in the page, which the page's policy forbids.
    """
    end = time.monotonic() + PATIENCE
    while not page.evaluate(what):
        assert time.monotonic() < end, f"{what} did not come true in {PATIENCE:g} s"
        settled(page)


def middle(page: Any, selector: str) -> tuple[float, float]:
    box = page.locator(selector).first.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def colours(page: Any, canvas: str) -> int:
    """Return the number of different colours on a canvas."""
    return page.evaluate(
        f"""(() => {{ const c = document.querySelector('{canvas}');
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        const seen = new Set(); for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
        return seen.size; }})()"""
    )


def test_page_is_complete(shown: Any, run: Record) -> None:
    page = shown(run)
    assert page.inner_text("h1") == "excavator"
    assert "rk4" in page.inner_text("#facts")
    assert page.locator(".plot").count() == 4
    assert page.locator(".legend button").all_inner_texts()[1].startswith("boom.q")
    assert "integrator" in page.inner_text("#provenance")
    assert page.locator("#joints tr").count() == 4
    assert page.evaluate("drawn.faces") > 100
    assert page.evaluate("drawn.trace") == len(run)
    assert page.inner_text("#notices") == ""  # it ended regularly
    assert colours(page, "#stage") > 40
    assert colours(page, ".plot canvas") > 6


def test_poses_are_those_of_the_record(shown: Any, run: Record) -> None:
    page = shown(run)
    for t in (0.0, 0.615, 2.0):  # the second is between two frames
        found = page.evaluate(f"placed(poseAt(3, {t}), [0, 0, 0])")
        wanted = [np.interp(t, run.t, run[f"bucket.{c}"]) for c in "xyz"]
        assert found == pytest.approx(wanted, abs=1e-5)
    assert page.evaluate("valueAt(1, 0.615)") == pytest.approx(np.interp(0.615, run.t, run["boom.q"]))


def test_page_plays_the_record(shown: Any, run: Record) -> None:
    page = shown(run)
    before = page.evaluate("stage.toDataURL()")
    page.select_option("#speed", "0.1")  # slow enough for the test to observe
    page.click("#play")
    assert page.get_attribute("#play", "aria-label") == "Pause"
    until(page, "now.t > 0.05")
    page.click("#play")
    t = page.evaluate("now.t")
    assert 0 < t < 2
    settled(page)
    assert page.evaluate("now.t") == t
    assert page.evaluate("stage.toDataURL()") != before
    assert float(page.inner_text("#clock").split()[0]) == pytest.approx(t, abs=1e-3)
    page.select_option("#speed", "10")
    page.click("#play")
    until(page, "!now.playing")  # it stops at the end
    assert page.evaluate("now.t") == 2
    page.select_option("#speed", "0.1")
    page.click("#play")
    until(page, "now.t < 1.9")  # and begins again


def test_the_slider_and_the_keys(shown: Any, run: Record) -> None:
    page = shown(run)
    page.fill("#time", "1.5")
    assert page.evaluate("now.t") == 1.5
    page.focus("#stage")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("now.t") == pytest.approx(1.52)
    page.keyboard.press("Shift+ArrowLeft")
    assert page.evaluate("now.t") == pytest.approx(1.42)
    page.keyboard.press("Home")
    assert page.evaluate("now.t") == 0
    page.evaluate("now.speed = 0.1")
    page.keyboard.press(" ")
    assert page.evaluate("now.playing") is True
    page.keyboard.press(" ")
    assert page.evaluate("now.playing") is False


def test_turning_zooming_moving(shown: Any, run: Record) -> None:
    page = shown(run)
    first = page.evaluate("({...eye})")
    x, y = middle(page, "#stage")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 50, y + 30, steps=3)
    page.mouse.up()
    turned = page.evaluate("({...eye})")
    assert turned["yaw"] == pytest.approx(first["yaw"] - 0.4)
    assert turned["pitch"] == pytest.approx(first["pitch"] + 0.24)
    assert turned["target"] == first["target"]
    page.mouse.wheel(0, -200)
    until(page, f"eye.distance < {0.9 * first['distance']}")
    page.keyboard.down("Shift")
    page.mouse.down()
    page.mouse.move(x + 90, y + 30, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    assert page.evaluate("eye.target") != first["target"]
    assert page.evaluate("eye.yaw") == turned["yaw"]
    page.click("#home")
    assert page.evaluate("({...eye})") == first


def test_traces_can_be_chosen(shown: Any, run: Record) -> None:
    page = shown(run)
    assert page.eval_on_selector("#trace", "s => s.selectedOptions[0].textContent") == "centre of bucket"
    page.select_option("#trace", label="stick")
    settled(page)
    assert page.evaluate("D.replay.frames[traceFrame].name") == "stick"
    page.select_option("#trace", "-1")
    settled(page)
    assert page.evaluate("drawn.trace") == 0


def test_plots_zoom_together_and_set_the_time(shown: Any, run: Record) -> None:
    page = shown(run)
    box = page.locator(".plot canvas").first.bounding_box()
    y, x1, x2 = box["y"] + 60, box["x"] + 200, box["x"] + 300
    t1, t2 = (page.evaluate(f"plotT(plots[0], {x - box['x']})") for x in (x1, x2))
    page.mouse.click(x1, y)
    assert page.evaluate("now.t") == pytest.approx(t1)
    page.mouse.move(x1, y)
    page.mouse.down()
    page.mouse.move(x2, y, steps=4)
    page.mouse.up()
    assert page.evaluate("[span.from, span.to]") == pytest.approx([t1, t2])
    assert page.evaluate("now.t") == pytest.approx(t1)  # a drag does not select a time
    page.mouse.dblclick(x1, y)
    assert page.evaluate("[span.from, span.to]") == [0, 2]
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    until(page, "span.to - span.from < 1.9")
    page.mouse.wheel(0, 50)  # without the key the page scrolls
    until(page, "scrollY > 0")


def test_pointing_shows_values(shown: Any, run: Record) -> None:
    page = shown(run)
    box = page.locator(".plot canvas").first.bounding_box()
    page.mouse.move(box["x"] + 250, box["y"] + 50)
    settled(page)
    t = page.evaluate("now.hover")
    wanted = np.interp(t, run.t, run["boom.q"])
    text = page.locator(".plot").first.locator(".legend button").nth(1).inner_text()
    assert float(text.split()[-1]) == pytest.approx(wanted, rel=1e-4)
    page.mouse.move(5, 5)
    settled(page)
    assert page.evaluate("now.hover") is None


def test_lines_can_be_hidden(shown: Any, run: Record) -> None:
    page = shown(run)
    high = page.evaluate("plots[1].high")
    for k in (1, 2, 3):
        page.locator(".plot").nth(1).locator(".legend button").nth(k).click()
    settled(page)
    assert page.evaluate("plots[1].hidden.size") == 3
    assert page.evaluate("plots[1].high") < high  # the axis covers the remaining lines
    page.locator(".plot").nth(1).locator(".legend button").nth(1).click(modifiers=["Shift"])
    assert page.evaluate("[...plots[1].hidden].includes(plots[1].columns[1])") is False
    assert page.evaluate("plots[1].hidden.size") == 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_word_can_be_read(shown: Any, run: Record, scheme: str) -> None:
    found = contrasts(shown(run, scheme=scheme))
    assert len(found) > 20
    assert {name: ratio for name, ratio in found if ratio < 4.5} == {}


def test_light_and_dark(shown: Any, run: Record) -> None:
    for scheme, paper, other in (("light", "rgb(255, 255, 255)", "#16181d"), ("dark", "rgb(22, 24, 29)", "#ffffff")):
        page = shown(run, scheme=scheme)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == paper
        page.click("#theme")
        assert page.evaluate("ink.paper") == other
        page.click("#theme")
        assert page.evaluate("ink.paper") != other


@pytest.mark.parametrize("width", [320, 480, 900, 1600])
def test_elements_stay_inside_the_window(shown: Any, run: Record, width: int) -> None:
    page = shown(run, width=width, height=700)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("Math.min(stage.clientWidth, stage.clientHeight)") > 180
    for button in ("#play", "#home", "#follow", "#trace", "#speed", "#theme"):
        box = page.locator(button).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_fingers(shown: Any, run: Record) -> None:
    page = shown(run, width=400, has_touch=True)
    page.evaluate(
        """(() => { const send = (kind, id, x, y) => stage.dispatchEvent(new PointerEvent(kind,
          { pointerId: id, clientX: x, clientY: y, pointerType: 'touch', buttons: 1, bubbles: true }));
        stage.setPointerCapture = () => {};
        send('pointerdown', 1, 100, 200); send('pointerdown', 2, 200, 200);
        send('pointermove', 1, 50, 200); send('pointermove', 2, 250, 200);
        send('pointerup', 1, 50, 200); send('pointerup', 2, 250, 200); })()"""
    )
    first = page.evaluate("(() => { const d = eye.distance; home(); return d / eye.distance; })()")
    assert first == pytest.approx(0.5)  # twice as far apart: twice as near


def test_a_run_that_went_wrong(shown: Any) -> None:
    m = bc.zoo.planar3r()
    t, q = np.arange(20) * 0.1, np.zeros((20, 3))
    q[15:] = np.nan
    t[15:] = np.nan
    run = Record(
        state_columns(m, t, q=q, v=q),
        mechanism=m,
        stops=[Stop("not finite", 1.4, "joint2.v grew beyond all bounds; a smaller step may help")],
    )
    page = shown(run)
    assert "Stopped at 1.4 s: not finite. joint2.v grew beyond" in page.inner_text("#notices")
    assert page.evaluate("END") == pytest.approx(1.4)
    assert page.evaluate("UP") == [0, 1, 0]  # its gravity is along -y


def test_numbers_that_are_none(shown: Any) -> None:
    values = np.array([1.0, np.nan, np.inf, -np.inf, 2.0])
    given = {"t": ("s", np.arange(5.0)), "p": ("Pa", values), "c": ("m", np.full(5, 7.0))}
    columns = {name: Column(name, unit, x) for name, (unit, x) in given.items()}
    page = shown(Record(columns))
    assert page.is_hidden("#replay")
    assert page.locator(".plot").count() == 2
    assert page.evaluate("[plots[0].low < 1, plots[0].high > 2]") == [True, True]
    page = shown(Record({"t": Column("t", "s", np.zeros(1)), "p": Column("p", "Pa", np.ones(1))}))  # one row
    page.click(".plot canvas")


@pytest.mark.parametrize("kind", ALL)
def test_every_joint_type(shown: Any, kind: str) -> None:
    m = random_tree(2, [kind, "revolute"])
    q, v, _ = m.random(0)
    page = shown(rk4(m, q, v, 0.02, 1e-2))
    assert page.evaluate("drawn.faces") > 30
    assert page.evaluate("following") is (kind == "floating")


def test_a_slide_stays_on_its_rod(shown: Any) -> None:
    m = bc.zoo.stanford()
    q = np.tile(m.neutral(), (2, 1))
    q[1, 2] = 2.0
    page = shown(Record(state_columns(m, [0.0, 1.0], q=q, v=np.zeros((2, 6))), mechanism=m))
    count = "rods(D.replay.bodies.map((_, i) => poseAt(i, now.t))).length"
    faces = page.evaluate("drawn.faces")
    assert page.evaluate(count) == 0
    page.evaluate("seek(1)")
    settled(page)
    assert page.evaluate(count) == 1
    assert page.evaluate("drawn.faces") > faces


def test_a_large_mechanism(shown: Any) -> None:
    m = bc.zoo.tree(63)
    q = np.linspace(0, 1, 3000)[:, None] * np.ones(63)
    run = Record(state_columns(m, np.linspace(0, 1, 3000), q=q, v=0 * q), mechanism=m)
    page = shown(run)
    assert page.evaluate("D.replay.bodies.length") == 63
    assert page.evaluate("D.t.length") == 1501  # every second and the last
    assert page.evaluate("drawn.faces") > 1000


def test_names_never_become_markup(shown: Any) -> None:
    bad = '<img src=x onerror="document.title=1">'
    b = bc.Builder(bad)
    b.body(bad, mass=1.0, com=(0, 0, 1), inertia=(1, 1, 1))
    b.joint(bad, "revolute", "ground", bad, axis=(0, 1, 0))
    m = b.build()
    columns = state_columns(m, [0.0, 1.0], q=np.zeros((2, 1)), v=np.zeros((2, 1)))
    run = Record(columns, mechanism=m, provenance={bad: bad}, stops=[Stop(bad, 1.0, bad)])
    page = shown(run)
    assert page.inner_text("h1") == bad
    assert bad in page.inner_text("#notices")
    assert page.query_selector("img") is None
    assert page.title() == bad


def test_ground_that_was_dug_is_drawn_and_rewound(shown: Any, run: Record) -> None:
    """Dug ground is drawn for the displayed time: the hole is there at the end, gone at the start, and there again."""
    first = np.zeros((21, 21))
    hole = dug_ground(0.0, 0.5, first, [(1.0, {220: -0.8, 221: -0.6}), (1.5, {150: 0.5})])
    page = shown(run.noting({"ground": hole.plain}))
    page.evaluate("seek(END)")
    until(page, "drawn.ground > 8")
    settled(page)
    lowest = "Math.min(...groundAt(now.t))"
    assert page.evaluate(lowest) == pytest.approx(-0.8)
    deep = page.evaluate("stage.toDataURL()")
    page.evaluate("seek(0.5)")
    until(page, f"{lowest} === 0")
    page.evaluate("seek(1.2)")
    until(page, f"{lowest} < -0.7")
    assert page.evaluate("Math.max(...groundAt(now.t))") == 0
    page.evaluate("seek(END)")
    settled(page)
    assert page.evaluate("stage.toDataURL()") == deep


def test_beams_bend_by_the_selected_scale(shown: Any) -> None:
    b = bc.Builder("cantilever")
    beam = {"length": 2.0, "section": bc.Section.box(0.1, 0.15, 0.01), "material": bc.Material.steel(), "elements": 6}
    b.beam("boom", **beam, modes=0, below=200.0, sections={"root": 0.0})
    b.joint("clamp", "fixed", "ground", "boom")
    b.body("load", 20.0, (2, 0, -0.5), (1, 1, 1))
    b.joint("hook", "revolute", "boom.end", "load", point=(2, 0, 0), axis=(0, 1, 0))
    m = b.build()
    q = np.zeros((3, m.nq))
    q[:, 0] = 0.0, 0.004, 0.008
    run = Record(state_columns(m, [0.0, 0.5, 1.0], q=q, v=np.zeros((3, m.nv))), mechanism=m)
    page = shown(run)
    where = "(() => { const n = bentAt(1), p = scaled(D.replay.bodies.map((_, i) => poseAt(i, 1)), n); "
    tips = where + "return [p[1].p, beamMeshes(p, n)[0].corners.at(-1), D.replay.nodes[0].point]; })()"
    load, end, still = np.array(page.evaluate(tips))
    page.select_option("#scale", "20")
    more, tip, _ = np.array(page.evaluate(tips))
    assert more - still == pytest.approx(20 * (load - still), rel=0.02, abs=1e-3)  # attached parts move with it
    assert np.linalg.norm(tip - end) > 10 * np.linalg.norm(load - still)
    assert "MPa" in page.inner_text("#legend")
    assert (
        page.evaluate("new Set(beamMeshes(D.replay.bodies.map((_, i) => poseAt(i, 1)), bentAt(1))[0].colours).size") > 4
    )
    assert "Stresses at sections" in page.inner_text("#plots")


def test_bodies_from_matrices_bend_too(shown: Any) -> None:
    bar = Beam(1.0, bc.Section.circle(0.02), bc.Material.steel(), elements=8)
    b = bc.Builder("rod")
    b.flexible("rod", bc.flexible(*bar.matrices, bar.nodes, {"eye": 0, "pin": 8}, modes=0, below=2000.0))
    b.joint("clamp", "revolute", "ground", "rod", axis=(0, 1, 0))
    m = b.build()
    q = np.zeros((2, m.nq))
    q[1, 1] = 0.004
    page = shown(Record(state_columns(m, [0.0, 1.0], q=q, v=np.zeros((2, m.nv))), mechanism=m))
    at = "(t) => skinMeshes(D.replay.bodies.map((_, i) => poseAt(i, t)), bentAt(t))[0].corners"
    straight, bent = (np.array(page.evaluate(at, t)) for t in (0, 1))
    assert straight.shape == (8 * 6, 3)
    way = np.linalg.norm((m.pose(q[1], frame="rod.pin") - m.pose(q[0], frame="rod.pin"))[:3, 3])
    assert np.linalg.norm(bent - straight, axis=1).max() == pytest.approx(way, rel=0.02)
    page.select_option("#scale", "20")
    assert np.linalg.norm(page.evaluate(at, 1) - straight, axis=1).max() == pytest.approx(20 * way, rel=0.02)
