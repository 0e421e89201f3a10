"""Further controls of the cockpit's page: single steps, list of keys, dark mode, sound, and plots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra cockpit is not installed")

from bellcrank.cockpit import messages
from bellcrank.excavators import linkage_machine as linkage
from cockpit_page import opening, serving_machines, until
from fake_drive import FakeDrive
from waiting import wait


@pytest.fixture
def shown(browser: Any) -> Iterator[Any]:
    """Return the page of excavator_linkage, whose state is set by a test."""
    with serving_machines() as served, opening(browser) as opened:
        server = served(linkage.machine(), make=FakeDrive)
        page = opened(server, width=1280, height=800)
        yield page, server.session.drive


def test_keys_theme_sound_and_steps(shown: Any) -> None:
    page, drive = shown
    page.keyboard.press("?")
    until(page, "document.getElementById('keys-dialog').open")
    listed = page.inner_text("#keys-body")
    assert all(word in listed for word in ("W A S D", "space", "another view", "light or dark", "one step"))
    page.click("#keys-close")
    until(page, "!document.getElementById('keys-dialog').open")

    first = page.evaluate("document.documentElement.dataset.theme")
    page.keyboard.press("t")
    until(page, f"document.documentElement.dataset.theme !== '{first}'")
    page.click("#theme")
    until(page, f"document.documentElement.dataset.theme === '{first}'")

    assert page.get_attribute("#sound", "aria-pressed") == "false"  # muted by default
    page.click("#sound")
    until(page, "document.getElementById('sound').getAttribute('aria-pressed') === 'true'")

    page.click("#pause")
    until(page, f"!(cockpit.state().flags & {messages.RUNNING})")
    before = drive.calls.count(("resume",))
    page.click("#step")
    wait(lambda: drive.calls.count(("resume",)) == before + 1)
    wait(lambda: drive.calls[-1] == ("pause",))  # paused again
    until(page, f"!(cockpit.state().flags & {messages.RUNNING})")


def test_plots_show_values_under_the_pointer(shown: Any) -> None:
    """Plots show values under the cursor, toggle lines by their names, zoom in, and back."""
    page, drive = shown
    for k in range(1, 20):  # some motion, so that there is something under the cursor
        drive.n, drive.t = k, 0.2 * k
        until(page, f"cockpit.state().n === {k}")
    plot = page.locator(".plot").first
    over, name = plot.locator(".u-over"), plot.locator(".legend button").first
    plain = name.inner_text()
    box = over.bounding_box()
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 20)
    wait(lambda: name.inner_text() != plain and name.inner_text().startswith(plain))
    assert float(name.inner_text().removeprefix(plain)) == pytest.approx(0.0, abs=1e-6)

    name.click()
    assert "off" in (name.get_attribute("class") or "")
    name.click()
    assert "off" not in (name.get_attribute("class") or "")

    page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 30, steps=4)
    page.mouse.up()
    zoom = "cockpit.plots().zoom"
    until(page, f"{zoom} !== null")
    low, high = page.evaluate(zoom)
    assert 0.5 < high - low < 4.0
    page.mouse.dblclick(box["x"] + 0.5 * box["width"], box["y"] + 30)
    until(page, f"{zoom} === null")


def test_message_appears_outside_the_diggable_ground(browser: Any) -> None:
    """A message appears where the machine cannot dig: a machine on tracks can reach the end of the ground."""
    with serving_machines() as served, opening(browser) as opened:
        server = served(linkage.tracked(), make=FakeDrive)
        page, drive = opened(server), server.session.drive
        said = "document.getElementById('warning').textContent.includes('nothing can be dug')"
        until(page, "document.getElementById('warning').textContent !== ''")  # a warning of the fake gauges
        assert not page.evaluate(said)
        drive.y[drive.system.mechanism.columns[0].index("carriage.x")] = 30.0
        drive.n = 1
        until(page, said)
