"""The page of a digging machine: gauges, soil and parameters, jobs, single steps, keys, dark mode; a robot's handle."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc

pytest.importorskip("starlette", reason="the extra cockpit is not installed")

from bellcrank.cockpit.machines import generic
from bellcrank.excavators import linkage_machine as linkage
from bellcrank.ground.field import rectangle_mask
from cockpit_page import Server, opening, serving_machines, until
from fake_drive import FakeDrive
from waiting import wait

PICTURES = os.environ.get("BELLCRANK_PICTURES", "")  # a folder for screenshots


class StillDrive(FakeDrive):
    """A drive that stays where it is put, and whose outputs are set in `shown`."""

    shown: dict[str, float] = {}

    def snapshot(self) -> Any:
        shot = super().snapshot()
        return type(shot)(shot.n, shot.t, shot.y, shot.u, "running", {**shot.outputs, **self.shown})

    def resume(self) -> None:
        self.t, self.n = self.t + 0.02, self.n + 20
        self.calls.append(("resume",))


@pytest.fixture
def served() -> Iterator[Any]:
    with serving_machines() as made:
        yield made


@pytest.fixture
def opened(browser: Any, served: Any) -> Iterator[Any]:
    with opening(browser) as made:
        yield made


def looked(page: Any, name: str) -> None:
    if PICTURES:
        page.screenshot(path=str(Path(PICTURES) / f"{name}.png"))


def test_a_site_is_watched_and_changed(served: Any, opened: Any) -> None:
    """The page shows and changes a site; one page for all checks, because loading a page takes seconds."""
    server: Server = served(linkage.machine(), make=StillDrive)
    drive: Any = server.session.drive
    drive.shown = {
        "payload": 1540.0,
        "tipping": 0.4,
        "slipping": 0.0,
        "soil.resistance": 0.0,
        "engine.load": 0.5,
        "pump.pressure": 2e7,
        "engine.speed": 2150.0,
    }
    drive.n += 1
    page = opened(server, width=1280, height=800)
    until(page, "document.querySelectorAll('.gauge').length === 7")
    until(page, "[...document.querySelectorAll('.gauge b')].some((b) => b.textContent === '1.54 t')")
    assert page.evaluate("document.getElementById('warning').hidden")
    # It is about to tip, and the page warns; then the warning disappears.
    drive.shown = {**drive.shown, "tipping": 0.9}
    drive.n += 1
    until(page, "document.getElementById('warning').textContent.includes('about to tip')")
    assert not page.evaluate("document.getElementById('warning').hidden")
    looked(page, "site")
    drive.shown = {**drive.shown, "tipping": 0.4}
    drive.n += 1
    until(page, "document.getElementById('warning').hidden")
    # Soil and parameters of the model.
    page.evaluate("[...document.querySelectorAll('#tabs button')].find((b) => b.textContent === 'Setup').click()")
    page.select_option("#soil", "heavy clay")
    wait(lambda: server.session.ground is not None and server.session.ground.soil.name == "heavy clay")
    slider = "document.querySelector('[data-tune=gravity]')"
    page.evaluate(f"{{ const i = {slider}; i.value = '1.62'; i.dispatchEvent(new Event('input')); }}")
    wait(lambda: abs(drive.tuned.get("gravity", 0.0) - 1.62) < 1e-9)
    looked(page, "setup")
    # A job: the place is drawn, and the score is that of the server.
    page.select_option("#task", "trench")
    until(page, "!document.getElementById('score').hidden && document.getElementById('score-text').textContent === '0'")
    task, ground = server.session.site.task, server.session.ground
    assert task is not None
    assert ground is not None
    ground.heights[rectangle_mask(task.low, task.high, 0.0)] = -task.depth / 2
    until(page, "Math.abs(Number(document.getElementById('score-text').textContent) - 50) <= 1")
    looked(page, "job")
    # One step, then paused again.
    n = drive.n
    page.evaluate("document.getElementById('step').click()")
    wait(lambda: drive.n >= n + 20 and drive.calls[-1] == ("pause",))
    # Keys and dark mode.
    page.keyboard.press("?")
    until(page, "document.getElementById('keys-dialog').open")
    assert "left stick" in page.evaluate("document.getElementById('keys-body').textContent")
    looked(page, "keys")
    page.evaluate("document.getElementById('keys-close').click()")
    before = page.evaluate("document.documentElement.dataset.theme")
    page.keyboard.press("t")
    until(page, f"document.documentElement.dataset.theme !== '{before}'")
    looked(page, "dark")
    assert page.evaluate("document.getElementById('sound').getAttribute('aria-pressed')") == "false"  # muted by default


def test_a_handle_leads_the_tool(served: Any, opened: Any) -> None:
    """Dragging the handle moves the sliders by inverse kinematics, and the tool follows to the handle."""
    machine = generic(bc.zoo.puma600())
    server: Server = served(machine, make=FakeDrive)
    page = opened(server, width=1100, height=760)
    until(page, "cockpit.view().handle !== null")
    until(page, "cockpit.roles().driver === cockpit.roles().you")
    drive: Any = server.session.drive
    drive.n += 1
    spot = page.evaluate("cockpit.view().handle.spot()")
    first = list(server.session.levers)
    page.mouse.move(spot["x"], spot["y"])
    page.mouse.down()
    page.mouse.move(spot["x"] - 60, spot["y"] - 40, steps=6)
    ball = page.evaluate("cockpit.view().handle.ball.position.toArray()")
    page.mouse.up()
    wait(lambda: np.abs(np.array(server.session.levers) - first).max() > 0.02)
    m = machine.mechanism
    frame = list(m.frames)[-1]

    def there() -> bool:
        q = np.array(m.neutral(), float)
        for name, x in zip((lever.name for lever in machine.levers), server.session.levers, strict=True):
            q[m.columns[0].index(name)] = x
        return bool(np.linalg.norm(np.asarray(m.pose(q, frame))[:3, 3] - ball) < 0.02)

    wait(there)
    looked(page, "handle")
