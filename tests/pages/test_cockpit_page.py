"""The page of `bellcrank drive` in headless Chromium: drawing, driving, hand-over, reconnection, replay.

The drive is the tests' own, in Python; the tests cover everything between a hand and the drive.
"""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from python_drive import PythonDrive

pytest.importorskip("starlette", reason="the extra cockpit is not installed")

from bellcrank.cockpit import messages
from bellcrank.cockpit.machines import generic
from bellcrank.cockpit.session import Settings
from bellcrank.excavators import linkage_machine as linkage
from bellcrank.excavators import rotary_machine as excavator
from cockpit_page import Server, heard, opening, pictures, serving_machines, until
from waiting import PATIENCE, wait


@pytest.fixture
def served() -> Iterator[Any]:
    with serving_machines() as made:
        yield made


@pytest.fixture
def digger(served: Any) -> Server:
    made: Server = served(excavator.machine())
    return made


@pytest.fixture
def opened(browser: Any, served: Any) -> Iterator[Any]:
    with opening(browser) as made:
        yield made


def picture(page: Any) -> Any:
    from matplotlib.image import imread

    return imread(io.BytesIO(page.locator("#view").screenshot()))[..., :3]


HIDE = "document.querySelectorAll('header, footer, aside, section').forEach((e) => (e.style.visibility = 'hidden'))"


def test_page_draws_a_moving_machine(digger: Server, opened: Any) -> None:
    page = opened(digger)
    page.evaluate(HIDE)
    before = picture(page)
    yellow = (before[..., 0] > 0.5) & (before[..., 1] > 0.3) & (before[..., 2] < 0.25)
    assert yellow.mean() > 0.02  # the machine, without the sand
    page.keyboard.down("KeyA")
    q = digger.value("cab.q")
    wait(lambda: digger.value("cab.q") > q + 0.1)
    page.keyboard.up("KeyA")
    after = picture(page)
    assert (np.abs(after - before).max(axis=-1) > 0.1).mean() > 0.005


def test_new_user_digs_a_hole(served: Any, opened: Any) -> None:
    """A new user digs a hole by following only the page: the test presses the marked key until none is left."""
    server = served(linkage.machine(), make=lambda s, rate, by, method: bc.Drive(s, rate, by, method))
    keys = {"↑": "ArrowUp", "↓": "ArrowDown", "←": "ArrowLeft", "→": "ArrowRight"}
    page, held, steps = opened(server), "", list[str]()
    until(page, "document.querySelector('#coach li.now') !== null")
    end = time.monotonic() + 5 * PATIENCE  # half a minute if the page keeps up with the machine, which does not wait
    while step := page.evaluate("document.querySelector('#coach li.now')?.innerText ?? ''"):
        assert time.monotonic() < end, (steps, page.evaluate("cockpit.view().site()"))
        if step != (steps or [""])[-1]:
            steps.append(step)
            if held:
                page.keyboard.up(held)
            held = keys.get(step[0], f"Key{step[0]}")
            page.keyboard.down(held)
        time.sleep(0.03)
    page.keyboard.up(held)
    assert "boom down" in steps[0]
    assert "bucket open" in steps[-1]
    assert page.evaluate("cockpit.view().site().dug") > 0.3  # m3
    assert page.evaluate("Math.min(...cockpit.view().earth.heights)") < -0.1  # m: a hole
    assert page.evaluate("Math.max(...cockpit.view().earth.heights)") > 0.1  # and a heap beside it
    page.click("#reset")
    until(page, "cockpit.view().site().dug === 0 && Math.min(...cockpit.view().earth.heights) === 0")


def test_keys_move_the_sticks_and_the_machine(digger: Server, opened: Any) -> None:
    page = opened(digger)
    page.keyboard.down("ArrowDown")  # towards the operator: the boom rises
    until(page, "cockpit.axes()['right.y'] === -1")
    wait(lambda: digger.value("input.second") == pytest.approx(excavator.FULL_STICK_RATES[1]))
    boom = digger.value("boom.q")
    wait(lambda: digger.value("boom.q") > boom + 0.03)
    page.keyboard.up("ArrowDown")
    wait(lambda: digger.value("input.second") == 0.0)
    page.keyboard.press("KeyM")
    wait(lambda: digger.value("input.resolved") == 1.0)
    page.keyboard.down("KeyW")  # now W changes the radius
    wait(lambda: digger.value("input.first") == pytest.approx(excavator.FULL_STICK_SPEEDS[0]))


def test_patterns(digger: Server, opened: Any) -> None:
    page = opened(digger)
    page.click("#patterns >> text=SAE")
    assert page.inner_text("#stick-left .up .what") == "boom down"
    page.keyboard.down("KeyS")
    wait(lambda: digger.value("input.second") > 0.0)
    assert digger.value("input.third") == 0.0


def test_dead_man(digger: Server, opened: Any) -> None:
    page = opened(digger)
    page.keyboard.down("KeyA")
    wait(lambda: digger.value("input.first") > 0.0)
    page.evaluate("dispatchEvent(new Event('blur'))")
    wait(lambda: digger.value("input.first") == 0.0)
    until(page, f"cockpit.state().flags & {messages.NEUTRAL}")
    until(page, "document.getElementById('dead-man').textContent.includes('click here to drive')")
    page.keyboard.up("KeyA")
    page.evaluate("dispatchEvent(new Event('focus'))")
    page.keyboard.down("KeyA")
    wait(lambda: digger.value("input.first") > 0.0)
    # A page that hangs releases the stick.
    page.evaluate("setTimeout(() => { const end = Date.now() + 1500; while (Date.now() < end); })")
    wait(lambda: digger.value("input.first") == 0.0)


def test_stalled_picture_keeps_control(digger: Server, opened: Any) -> None:
    """Slow drawing does not release the stick: the connection reports the levers until the page seems to hang."""
    page, heard_at = opened(digger), list[float]()
    move = digger.session.move_levers
    digger.session.move_levers = lambda *told: (heard_at.append(time.time()), move(*told))[1]  # type: ignore[method-assign]
    page.keyboard.down("KeyA")
    wait(lambda: digger.value("input.first") > 0.0)
    stall = """new Promise((done) => setTimeout(() => {
        const begin = Date.now();
        while (Date.now() < begin + 450);
        done([begin, Date.now()]);
    }))"""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:  # a busy machine may delay the connection's thread, too, but not every time
        begin, done = (x / 1000 for x in page.evaluate(stall))
        if sum(begin + 0.1 < t < done for t in heard_at) >= 3:
            return
    raise AssertionError("while the page drew, nothing was heard of its hand")


def test_stick_takes_over_an_idle_machine(digger: Server, opened: Any) -> None:
    first = opened(digger)
    second = opened(digger)
    until(second, "document.getElementById('dead-man').textContent === 'you are watching'")
    digger.session.start_pilot("dig")
    until(second, "document.getElementById('dead-man').textContent.endsWith('; you are watching')")
    first.close()
    until(second, "document.getElementById('dead-man').textContent.endsWith('move a stick to take over')")
    second.keyboard.down("KeyA")
    until(second, "cockpit.roles().driver === cockpit.roles().you && cockpit.settings().pilot === ''")
    wait(lambda: digger.value("input.first") > 0.0)
    second.keyboard.up("KeyA")
    second.evaluate("document.getElementById('release').click()")
    until(second, "document.getElementById('dead-man').textContent === 'nobody drives: move a stick to take over'")


def test_only_clients_with_the_token_are_admitted(digger: Server, opened: Any, browser: Any) -> None:
    page = opened(digger)
    assert "token" not in page.url  # nor in the displayed address
    stranger = browser.new_context().new_page()
    stranger.goto(f"http://127.0.0.1:{digger.port}/?quality=low")
    end = time.monotonic() + PATIENCE
    while "Open the address that the terminal shows" not in stranger.inner_text("#words"):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert stranger.evaluate("cockpit.state()") is None
    stranger.context.close()
    tab = page.context.new_page()  # another tab of the same browser has the token
    tab.goto(f"http://127.0.0.1:{digger.port}/?quality=low")
    until(tab, "cockpit.state() !== null")


CAMERA = "[...cockpit.view().eye.camera.position.toArray(), ...cockpit.view().eye.orbit.target.toArray()]"


def test_the_camera_stays_in_place(digger: Server, opened: Any) -> None:
    page = opened(digger, width=1000, height=700)
    at_first = page.evaluate(CAMERA)
    page.mouse.move(520, 330)
    page.mouse.down()
    page.mouse.move(620, 300, steps=4)
    page.mouse.up()
    until(page, f"Math.abs({CAMERA}[0] - {at_first[0]}) > 1")
    still(page)
    chosen = page.evaluate(CAMERA)
    for change in (
        lambda: page.click("#panel-toggle"),
        lambda: page.click("#help"),
        lambda: page.set_viewport_size({"width": 700, "height": 500}),
        lambda: page.set_viewport_size({"width": 1000, "height": 700}),
        lambda: page.keyboard.press("KeyM"),
        lambda: (page.click("#seats >> text=Cab"), page.click("#seats >> text=Orbit")),
    ):
        change()
        pictures(page, 3)
        assert page.evaluate(CAMERA) == pytest.approx(chosen, abs=1e-3)
    page.click("#seats >> text=Orbit")  # chosen again: back to its default position
    assert np.abs(np.array(page.evaluate(CAMERA)) - chosen).max() > 1


def test_the_camera_stays_above_the_ground(digger: Server, opened: Any) -> None:
    page = opened(digger, width=1000, height=700)
    for button in ("left", "right"):  # rotates; moves
        for _ in range(3):
            page.mouse.move(520, 560)
            page.mouse.down(button=button)
            page.mouse.move(520, 60, steps=4)
            page.mouse.up(button=button)
        still(page)
        _, y, _, _, below, _ = page.evaluate(CAMERA)
        assert y > excavator.GROUND
        assert below >= excavator.GROUND


def still(page: Any) -> None:
    """Wait until the camera is at rest."""
    last: Any = np.inf
    for _ in range(100):
        page.evaluate(
            "new Promise((d) => { let k = 0; const f = () => (++k < 10 ? requestAnimationFrame(f) : d()); f(); })"
        )
        now = np.array(page.evaluate(CAMERA))
        if np.abs(now - last).max() < 1e-6:
            return
        last = now
    raise AssertionError("the camera never stops")


def test_unchanged_scene_is_not_drawn_again(digger: Server, opened: Any) -> None:
    page = opened(digger)
    page.click("#pause")
    until(page, f"!(cockpit.state().flags & {messages.RUNNING})")
    until(page, "document.getElementById('link').textContent === 'paused'")
    pictures(page, 2)
    still(page)
    # None of sixty opportunities to draw is used.
    frames = "new Promise((d) => { let k = 0; const f = () => (++k < 60 ? requestAnimationFrame(f) : d()); f(); })"
    before = page.evaluate("cockpit.view().pictures")
    page.evaluate(frames)
    assert page.evaluate("cockpit.view().pictures") == before
    page.mouse.move(320, 200)
    page.mouse.down()
    page.mouse.move(380, 210, steps=3)
    page.mouse.up()
    until(page, f"cockpit.view().pictures > {before}")
    still(page)
    before = page.evaluate("cockpit.view().pictures")
    page.click("#pause")
    until(page, f"cockpit.view().pictures > {before + 3}")


def test_the_picture_gets_better_again(digger: Server, opened: Any) -> None:
    """Picture quality rises again after delays, if pictures are in time for long enough.

    A computer that is just too slow for the best quality does not switch back and forth all the time.
    """
    page = opened(digger)
    made = "(() => { const { constructor } = cockpit.view().quality; return new constructor(0, 3); })()"
    run = "const paced = (ms, s) => { for (let t = 0; t < 1000 * s; t += ms) q.pace(ms); return q.level; };"
    levels = f"{{ const q = {made}; {run} [paced(100, 20), paced(16, 30), paced(30, 60), paced(16, 1)] }}"
    assert page.evaluate(levels) == [3, 0, 0, 0]
    # In time at level 1, late at 0: at most so many changes in ten minutes.
    minutes = "let n = 0; for (let t = 0; t < 6e5; ) { const ms = q.level ? 16 : 60; t += ms; n += q.pace(ms); } n"
    changes = page.evaluate(f"{{ const q = {made}; {minutes} }}")
    assert 2 < changes < 30


def test_one_hole_for_all_and_a_replay_has_the_hole_of_its_time(digger: Server, opened: Any) -> None:
    heights = "Array.from(cockpit.view().earth.heights)"
    first = opened(digger)
    arm = digger.session.machine.pilots["dig"]().hands.arm  # type: ignore[attr-defined]
    drive: Any = digger.session.drive
    drive.pause()

    def told() -> bool:
        """Return whether the page has the same ground as the server."""
        there = digger.session.ground
        return there is not None and np.allclose(first.evaluate(heights), there.heights.ravel(), atol=2e-4)

    for k in range(30):  # the test leads the teeth through the ground: the same motion every time
        with drive._lock:
            y = drive.y.copy()
            y[:4] = arm.inverse((6.4 - 0.04 * k, 0.0, -1.4, -2.2))
            drive.y, drive.t, drive.n = y, drive.t + 0.1, drive.n + 1
            drive.rows.append((drive.t, y, drive.u, list(drive.outputs.values())))
        serial = first.evaluate("cockpit.state().serial")
        until(first, f"cockpit.state().serial > {serial} && Math.abs(cockpit.state().t - {drive.t}) < 1e-6")
        if k == 15:
            wait(told)  # the ground follows the state
            half, then = first.evaluate(heights), drive.t
    ground = digger.session.ground
    assert ground is not None
    assert 0.1 < ground.dug <= 0.7
    until(first, f"Math.abs(cockpit.view().site().dug - {ground.dug}) < 1e-3")
    second = opened(digger)  # a later page shows the same
    until(second, f"Math.abs(cockpit.view().site().dug - {ground.dug}) < 1e-3")
    now = first.evaluate(heights)
    assert second.evaluate(heights) == now
    np.testing.assert_allclose(now, ground.heights.ravel(), atol=2e-4)
    first.evaluate("document.getElementById('replay').click()")
    until(first, "cockpit.replay() !== null")
    for t, wanted in ((then, half), (drive.t, now), (then, half)):
        first.evaluate(f"cockpit.replay().seek({t} + 1e-6)")
        first.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        np.testing.assert_allclose(first.evaluate(heights), wanted, atol=2e-4)
    assert np.abs(np.array(half) - now).max() > 0.1
    first.evaluate("document.getElementById('live').click()")
    assert first.evaluate(heights) == now


PAD = """
window.pad = { id: "a pad", index: 0, connected: true, axes: [0, 0, 0, 0], buttons: [], mapping: "standard" };
navigator.getGamepads = () => [window.pad];
"""


def test_a_gamepad_drives_the_boom(digger: Server, opened: Any) -> None:
    page = opened(digger, script=PAD)
    page.evaluate("pad.axes[3] = 0.05")  # within the dead zone
    heard(page)
    assert digger.value("input.second") == 0.0
    page.evaluate("pad.axes[3] = 1")  # gamepads: towards the operator; the boom rises
    boom = digger.value("boom.q")
    wait(lambda: digger.value("boom.q") > boom + 0.03)
    assert digger.value("input.second") == pytest.approx(excavator.FULL_STICK_RATES[1])


JOYSTICKS = """
const joystick = (index, count) => ({
  id: "joystick", index, connected: true, axes: new Array(count).fill(0), buttons: [], mapping: "",
});
window.pads = [joystick(0, 3), joystick(1, 1)];
navigator.getGamepads = () => window.pads;
"""


def test_two_joysticks_drive_in_resolved_mode(digger: Server, opened: Any) -> None:
    """Three axes move the teeth, which a twist to the right lowers. The other joystick turns the bucket."""
    page = opened(digger, script=JOYSTICKS)
    page.keyboard.press("KeyM")
    page.evaluate("pads[0].axes = [0, 0, 1]; pads[1].axes = [-1]")
    until(page, "cockpit.axes()['right.y'] === 1 && cockpit.axes()['right.x'] === -1")
    wait(lambda: digger.value("input.third") == pytest.approx(-excavator.FULL_STICK_SPEEDS[2]))
    wait(lambda: digger.value("input.fourth") == pytest.approx(-excavator.FULL_STICK_SPEEDS[3]))
    page.evaluate("pads[0].axes = [0, 0, 0]; pads[1].axes = [0]")
    wait(lambda: digger.value("input.third") == 0.0)


def test_calibration(digger: Server, opened: Any) -> None:
    """Calibration handles a joystick with other axes that do not rest at zero and do not reach one."""
    page = opened(digger, width=920, height=600, script=PAD)
    page.evaluate("pad.axes = [0.1, 0, 0, 0, 0, -0.2]")
    page.click("#tabs >> text=Setup")
    page.click("#pads")
    page.click("#pad-body >> text=Calibrate")
    rest = "[0.1, 0, 0, 0, 0, -0.2]"
    for text, axes in (
        ("left stick all the way to the right", "[0.1, 0, 0, 0, 0, 0.6]"),
        ("left stick all the way forward", "[0.1, 0, 0, 0, 0.5, -0.2]"),
        ("right stick all the way to the right", "[0.1, -0.7, 0, 0, 0, -0.2]"),
        ("right stick all the way forward", "[0.9, 0, 0, 0, 0, -0.2]"),
    ):
        until(page, f"document.getElementById('pad-body').textContent.includes('{text}')")
        page.evaluate(f"pad.axes = {axes}")
        until(page, "document.getElementById('pad-body').textContent.includes('Let it go now')")
        page.evaluate(f"pad.axes = {rest}")
    until(page, "document.getElementById('pad-body').textContent.includes('dead zone')")
    page.click("#pad-close")
    page.evaluate("pad.axes = [0.9, 0, 0, 0, 0, 0.6]")
    until(page, "cockpit.axes()['right.y'] === 1 && cockpit.axes()['left.x'] === 1")
    page.evaluate(f"pad.axes = {rest}")
    until(page, "cockpit.axes()['right.y'] === 0 && cockpit.axes()['left.x'] === 0")


def test_fingers(digger: Server, opened: Any) -> None:
    page = opened(digger)
    box = page.locator("#stick-left .pad").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 100, y)
    # left lever to the left: the cab turns left
    wait(lambda: digger.value("input.first") == pytest.approx(excavator.FULL_STICK_RATES[0]))
    page.mouse.up()
    wait(lambda: digger.value("input.first") == 0.0)


def test_two_viewers_and_a_hand_over(digger: Server, opened: Any) -> None:
    first, second = opened(digger), opened(digger)
    until(first, "cockpit.roles().viewers === 2")
    until(second, "document.getElementById('dead-man').textContent === 'you are watching'")
    second.keyboard.down("KeyA")
    until(second, "cockpit.axes()['left.x'] === -1")
    heard(first)
    assert digger.value("input.first") == 0.0
    assert second.is_disabled("#pause")
    second.keyboard.up("KeyA")
    second.click("#panel-toggle")
    second.click("#tabs >> text=Setup")
    second.click("#ask")
    until(first, "!document.getElementById('asked').hidden")
    first.click("#refuse")
    until(second, "document.getElementById('notice').textContent.includes('keeps the controls')")
    second.click("#ask")
    until(first, "!document.getElementById('asked').hidden")
    first.click("#grant")
    until(second, "cockpit.roles().driver === cockpit.roles().you")
    second.keyboard.down("KeyA")
    wait(lambda: digger.value("input.first") > 0.0)


def test_lost_connection_is_restored(opened: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    server = Server(excavator.machine(), port)
    page = opened(server, quiet=False)
    page.evaluate("window.same = true")
    server.stop()
    until(page, "document.getElementById('link').textContent.includes('trying again')")
    server = Server(excavator.machine(), port)
    try:
        until(page, "cockpit.state() !== null && cockpit.roles() !== null")
        assert page.evaluate("same")  # without reloading the page
        page.keyboard.down("KeyA")
        wait(lambda: server.value("input.first") > 0.0)
    finally:
        server.stop()


def test_pause_slow_motion_reset(digger: Server, opened: Any) -> None:
    page = opened(digger)
    page.click("#pause")
    until(page, f"!(cockpit.state().flags & {messages.RUNNING})")
    until(page, "document.getElementById('link').textContent === 'paused'")  # requests in flight have ended
    n = digger.session.drive.snapshot().n
    pictures(page, 2)
    assert digger.session.drive.snapshot().n == n
    page.click("#pause")
    until(page, f"cockpit.state().n > {n}")
    page.select_option("#slow", "0.1")
    until(page, "cockpit.state().slow < 0.11")
    page.select_option("#slow", "1")
    page.keyboard.down("KeyA")
    wait(lambda: digger.value("cab.q") > 0.05)
    page.keyboard.up("KeyA")
    t = page.evaluate("cockpit.state().t")
    page.click("#reset")
    until(page, f"cockpit.state().t < {t}")
    wait(lambda: abs(digger.value("cab.q")) < 0.02)


def test_switches(digger: Server, opened: Any) -> None:
    page = opened(digger, width=920, height=600)
    page.click("#tabs >> text=Setup")
    changes = [("integrator", "euler"), ("method", "aba"), ("method", "denoc"), ("rate", "500"), ("rate", "2000")]
    for epoch, (what, name) in enumerate(changes, 1):
        page.select_option(f"#{what}", name)
        until(page, f"cockpit.state()?.epoch === {epoch} && String(cockpit.settings().{what}) === '{name}'")
        pictures(page, 3)
        assert page.input_value(f"#{what}") == name
        assert digger.value("boom.q") == pytest.approx(excavator.machine().start[1], abs=0.1)  # type: ignore[index]
    assert digger.session.settings == Settings(2000.0, "euler", "denoc")
    assert digger.session.drive.rate == 2000.0


def test_slow_change_of_settings(served: Any, opened: Any) -> None:
    """A long change of machine is announced until it is done, and the old machine is driven meanwhile."""
    go = threading.Event()
    go.set()

    def slow(*asked: Any) -> PythonDrive:
        assert go.wait(PATIENCE)
        return PythonDrive(*asked)

    server = served(excavator.machine(), make=slow)
    page = opened(server, width=920, height=600)
    page.click("#tabs >> text=Setup")
    go.clear()
    page.select_option("#method", "aba")
    until(page, "!document.getElementById('compiling').hidden")
    assert "Compiling rk4, aba, 1000 steps per second" in page.inner_text("#compiling")
    assert page.is_disabled("#rate")
    page.keyboard.down("KeyA")
    wait(lambda: server.value("input.first") > 0.0)
    cab = server.value("cab.q")
    wait(lambda: server.value("cab.q") > cab + 0.02)
    pictures(page, 20)
    page.keyboard.up("KeyA")
    go.set()
    until(page, "document.getElementById('compiling').hidden && cockpit.settings().method === 'aba'")
    assert page.is_enabled("#rate")


def test_late_periods_are_listed(digger: Server, opened: Any) -> None:
    page = opened(digger, width=920, height=600)
    page.click("#tabs >> text=Deadlines")
    until(page, "!document.getElementById('late').hidden")
    rows = [row.split("\t") for row in page.inner_text("#late-table").splitlines()]
    assert rows == [
        ["at", "woke late", "took", "then"],
        ["2.50 s", "9.00 ms", "7.00 µs", "skipped 3"],
        ["1.25 s", "1.50 ms", "6.00 µs", "caught up"],
    ]


@pytest.mark.parametrize("machine", [excavator, linkage], ids=["excavator", "linkage"])
def test_pilots_in_plain_words(served: Any, opened: Any, machine: Any) -> None:
    server = served(machine.machine(), make=bc.Drive)
    page = opened(server, width=1280, height=600)
    names = page.evaluate("[...document.getElementById('pilot').options].map((o) => o.text)")
    assert names == ["by hand", "dig a hole", "paper's run"]
    for name, words in (("dig a hole", "digs, swings and dumps"), ("paper's run", "the paper's RESOLVED run")):
        page.select_option("#pilot", label=name)
        until(page, f"document.getElementById('dead-man').textContent.includes({words!r})")
        wait(lambda: any(server.session.levers[:4]) or server.session.levers[-1] > 0.5)
    page.keyboard.down("KeyA")  # manual control replaces the autopilot
    until(page, "cockpit.settings().pilot === ''")
    assert page.input_value("#pilot") == ""


def test_record_and_replay(digger: Server, opened: Any) -> None:
    page = opened(digger)
    page.click("#record")
    page.keyboard.down("KeyA")
    wait(lambda: digger.value("cab.q") > 0.1)
    page.keyboard.up("KeyA")
    page.click("#record")
    until(page, "cockpit.replay() !== null")
    begin, end = page.evaluate("[cockpit.replay().begin, cockpit.replay().end]")
    assert end > begin + 0.3
    page.evaluate(HIDE)
    shots = []
    for share in (0.0, 1.0):
        page.evaluate(
            "(t) => { const e = document.getElementById('time'); e.value = t; e.dispatchEvent(new Event('input')); }",
            begin + share * (end - begin),
        )
        assert page.evaluate("cockpit.replay().t") == pytest.approx(begin + share * (end - begin), abs=0.02)
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        shots.append(picture(page))
    assert (np.abs(shots[1] - shots[0]).max(axis=-1) > 0.1).mean() > 0.005
    page.keyboard.down("KeyD")
    until(page, "cockpit.axes()['left.x'] === 1")
    pictures(page, 10)
    assert digger.value("input.first") == 0.0  # in a replay the levers have no effect
    page.keyboard.up("KeyD")
    page.evaluate("document.getElementById('live').click()")
    assert page.evaluate("cockpit.replay()") is None


def saved(page: Any) -> Any:
    """Return the times in the file of the first download link."""
    with page.expect_download() as found:
        page.evaluate("document.querySelector('#save a').click()")
    lines = [line for line in Path(found.value.path()).read_text().splitlines() if line[0].isdigit()]
    return np.array([float(line.split(",")[0]) for line in lines])


def test_selected_or_whole_record_is_saved(digger: Server, opened: Any) -> None:
    page = opened(digger)
    until(page, "cockpit.state().t > 0.3")
    page.click("#record")
    begin = page.evaluate("cockpit.state().t")
    until(page, f"cockpit.state().t > {begin + 0.3}")
    assert saved(page)[0] == pytest.approx(begin, abs=0.2)  # the mark is open at its end
    page.click("#record")
    end = page.evaluate("cockpit.state().t")
    until(page, f"cockpit.state().t > {end + 0.6}")
    t = saved(page)
    assert t[0] == pytest.approx(begin, abs=0.2)
    assert t[-1] == pytest.approx(end, abs=0.2)
    page.evaluate("document.getElementById('unmark').click()")
    t = saved(page)
    assert t[0] < 0.1
    assert t[-1] > end + 0.5
    page.click("#record")
    page.click("#record")
    page.click("#reset")  # the record is restarted: there is nothing left to mark
    until(page, "document.getElementById('unmark').hidden")
    assert page.evaluate("document.querySelector('#save a').getAttribute('href')") == "/record.csv"


def test_sliders(served: Any, opened: Any) -> None:
    server = served(generic(bc.zoo.planar3r()))
    page = opened(server)
    assert page.locator("#sliders input").count() == 3
    page.locator("#sliders input").nth(1).fill("0.8")
    wait(lambda: abs(server.value("joint2.q") - 0.8) < 0.1)
    page.evaluate("dispatchEvent(new Event('blur'))")
    until(page, f"cockpit.state().flags & {messages.NEUTRAL}")
    pictures(page, 3)
    assert server.value("input.joint2") == pytest.approx(0.8)  # a desired position stays


def test_sliders_show_target_and_actual_value(served: Any, opened: Any) -> None:
    """Sliders show target and actual value, which follows the target; long names remain distinguishable."""
    names = [f"left_front_leg_shoulder_pitch_joint_{i}" for i in (1, 2)]
    b = bc.Builder("legs", gravity=(0, 0, 0))
    for name in names:
        b.body(f"{name}_link", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
        b.joint(name, "revolute", "ground", f"{name}_link", axis=(0, 0, 1))
    server = served(generic(b.build()))
    page = opened(server, width=390, height=844)
    shown = page.evaluate(
        """[...document.querySelectorAll("#sliders .name")]
        .map((e) => [e.innerText, e.title, e.scrollWidth <= e.clientWidth])"""
    )
    assert shown == [[name, name, True] for name in names]  # no name is cut off
    page.locator("#sliders input").nth(1).fill("0.5")
    assert page.locator("#sliders .target").nth(1).inner_text() == "28.6°"
    until(page, "document.querySelectorAll('#sliders .actual')[1].textContent === '28.6°'")
    assert page.locator("#sliders .actual").nth(0).inner_text().lstrip("-") == "0.0°"
    left = page.evaluate("[...document.querySelectorAll('#sliders .mark')].map((e) => parseFloat(e.style.left))")
    assert left == pytest.approx([50.0, 100 * (0.5 + 0.5 / (2 * 3.14159))], abs=0.5)


def test_falling_mechanism_stays_in_the_picture(served: Any, opened: Any, tmp_path: Path) -> None:
    links = "".join(
        f'<link name="{name}"><inertial><mass value="1"/><origin xyz="0 0 {z}"/>'
        '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for name, z in (("base", 0.2), ("leg", -0.3))
    )
    hinge = (
        '<joint name="hip" type="revolute"><parent link="base"/><child link="leg"/><axis xyz="0 1 0"/>'
        '<limit lower="-1" upper="1" effort="100" velocity="10"/></joint>'
    )
    (tmp_path / "hopper.urdf").write_text(f'<robot name="hopper">{links}{hinge}</robot>')
    server = served(generic(bc.read(tmp_path / "hopper.urdf", base="floating")))
    page = opened(server)
    wait(lambda: server.value("root_joint.z.q") < -5.0)
    page.click("#pause")
    until(page, f"!(cockpit.state().flags & {messages.RUNNING})")
    pictures(page, 3)
    page.evaluate(HIDE)
    page.evaluate("document.getElementById('sliders').style.display = 'none'")
    seen = picture(page)
    assert (np.abs(seen - seen[5, 5]).max(axis=-1) > 0.2).mean() > 0.003  # more than the sky


def test_names_never_become_markup(served: Any, opened: Any) -> None:
    bad = '<img src=x onerror="document.title=1">'
    b = bc.Builder(bad)
    b.body(bad, mass=1.0, com=(0, 0, 1), inertia=(1, 1, 1))
    b.joint(bad, "revolute", "ground", bad, axis=(0, 1, 0))
    server = served(generic(b.build()))
    page = opened(server, width=1280)
    assert page.title() == bad
    assert page.query_selector("img") is None
    assert bad in page.inner_text("#sliders")


def test_beams_bend_by_the_selected_scale(served: Any, opened: Any) -> None:
    b = bc.Builder("jib")
    section, steel = bc.Section.box(0.1, 0.15, 0.01), bc.Material.steel()
    b.beam("boom", length=4.0, section=section, material=steel, elements=6, modes=0, below=60.0, damping=0.1)
    b.joint("luff", "revolute", "ground", "boom", axis=(0, 1, 0), damping=1e4)
    page = opened(served(generic(b.build())))
    assert page.is_visible("#bends")
    until(page, "document.getElementById('stress').textContent.includes('MPa')")
    pictures(page, 5)
    before = picture(page)
    page.select_option("#bending", "200")
    pictures(page, 5)
    assert np.abs(picture(page) - before).max() > 0.2
    page.select_option("#bending", "0")
    until(page, "document.getElementById('stress').textContent === ''")
