"""The exported page works without a server in headless Chromium.

It consists of static files that contain the machine, and runs at full rate.
"""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.cockpit import scene_poses
from bellcrank.errors import InputError
from bellcrank.excavators.machines import MACHINES
from bellcrank.excavators.offline import moments
from bellcrank.ground.field import TASKS, Ground, Tool
from bellcrank.ground.soils import SOILS

pytest.importorskip("starlette", reason="the extra cockpit is not installed")

from bellcrank.exporting import web_page as exported
from bellcrank.exporting import webassembly
from chromium import settled
from cockpit_page import need_page, until
from targets.test_export_wasm import NODE, needs_node
from waiting import wait

WINDOW, WINDOWS = 2.0, 8  # s and count: on a shared computer other processes disturb some windows


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *given: Any) -> None:
        pass


@pytest.fixture(scope="module")
def excavator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of one machine, which several tests use."""
    need_page()
    return bc.export(MACHINES["excavator"](), tmp_path_factory.mktemp("pages") / "excavator", to="page")


@contextmanager
def opened(browser: Any, folder: Path, more: str = "") -> Iterator[Any]:
    """Open the page of a folder from any web server; it contacts no other server and logs nothing."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder.parent)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    trouble, here = list[str](), f"http://127.0.0.1:{server.server_port}/{folder.name}/"
    made = browser.new_page(viewport={"width": 480, "height": 320})
    made.on("pageerror", lambda error: trouble.append(str(error)))
    made.on("console", lambda m: trouble.append(m.text) if m.type in ("error", "warning") else None)
    made.on("request", lambda r: trouble.append(r.url) if not r.url.startswith((here, "data:", "blob:")) else None)
    try:
        made.goto(f"{here}?quality=low{more}")
        until(made, "cockpit.state() !== null && cockpit.roles() !== null")
        yield made
    finally:
        made.close()
        server.shutdown()
        thread.join()
        server.server_close()
    assert [t for t in trouble if "GPU stall" not in t and "GL Driver" not in t] == []


def value(page: Any, name: str) -> float:
    at = page.evaluate("cockpit.view() && cockpit.state().values.length")
    names = json.loads(page.evaluate("fetch('welcome.json').then((x) => x.text())"))["welcome"]["names"]
    return float(page.evaluate(f"cockpit.state().values[{at - len(names) + names.index(name)}]"))


def test_a_visitor_drives(browser: Any, excavator: Path) -> None:
    with opened(browser, excavator) as page:
        until(page, "document.getElementById('link').textContent.startsWith('live')")
        begin = value(page, "cab.q")
        page.keyboard.down("KeyD")
        until(page, "Math.abs(cockpit.axes()['left.x']) > 0.5")
        wait(lambda: abs(value(page, "cab.q") - begin) > 0.01)
        page.keyboard.up("KeyD")
        assert page.locator("#coach").is_visible()  # there is ground to dig in
        page.locator("#pause").click()
        until(page, "!cockpit.settings().running")
        still = page.evaluate("cockpit.state().n")
        for _ in range(5):
            settled(page)
        assert page.evaluate("cockpit.state().n") == still
        page.locator("#pause").click()
        until(page, f"cockpit.state().n > {still}")
        page.locator("#reset").click()
        until(page, f"cockpit.state().n < {still}")
        assert page.locator("#replay").is_visible()


def test_an_address_digs_and_is_rewound(browser: Any, excavator: Path) -> None:
    """?pilot=dig starts a digging program.

    The ground keeps the hole, the machine feels the load, and replay shows all.
    """
    with opened(browser, excavator, "&pilot=dig") as page:
        until(page, "cockpit.settings().pilot === 'dig'")
        until(page, "cockpit.view().site().dug > 0.05")
        assert value(page, "payload") > 50.0  # kg, at the same time
        page.evaluate("cockpit.view().dug({ whole: true, load: 0, dug: 0, heights: [], cells: [] })")
        page.locator("#replay").click()
        until(page, "cockpit.replay() !== null")
        assert page.evaluate("cockpit.replay().begin") < 0.5
        page.evaluate("cockpit.replay().seek(cockpit.replay().end)")
        until(page, "cockpit.view().site().dug > 0.02")  # the hole at the displayed time
        page.locator("#live").click()
        page.locator("#link").click()
        page.keyboard.down("KeyW")
        until(page, "cockpit.settings().pilot === ''")  # manual control replaces the program
        page.keyboard.up("KeyW")
        with page.expect_download() as saved:
            page.evaluate("[...document.querySelectorAll('#save a')].find((a) => a.textContent === 'csv').click()")
        assert saved.value.suggested_filename == "excavator.csv"
        table = np.genfromtxt(saved.value.path(), delimiter=",", names=True, deletechars="", replace_space=" ")
        assert len(table) > 60
        assert table["payload"][0] == 0.0
        assert table["payload"].max() > 50.0


def test_the_linkage_runs_at_its_rate_with_the_kernels_numbers(browser: Any, tmp_path: Path) -> None:
    need_page()
    machine = MACHINES["excavator_linkage"]()
    folder = bc.export(machine, tmp_path / "linkage", to="page")
    assert sum(p.stat().st_size for p in folder.iterdir()) < 1_500_000
    s = machine.system
    native = bc.simulate(
        s, 0.05, q0=machine.start, inputs=dict(zip(s.inputs, machine.first(), strict=True)), integrator="rodas4",
        step=1e-3, form="projected",
    )  # fmt: skip
    expected = np.concatenate([native.q[-1], native.v[-1], [native[x.name][-1] for x in s.states]])
    with opened(browser, folder) as page:
        run = """(async () => {
            const { load } = await import("./excavator_linkage.js");
            const { welcome, start } = await (await fetch("welcome.json")).json();
            const m = await load();
            m.now.set(start, 1); m.u.set(welcome.first); m.start();
            return [m.step(50), ...m.now.slice(1, 1 + start.length)];
        })()"""
        status, *y = page.evaluate(run)
        assert status == 0
        nq = len(native.q[-1])
        for some in (slice(0, nq), slice(nq, 2 * nq), slice(2 * nq, None)):
            size = np.abs(expected[some]).max()
            np.testing.assert_allclose(y[some], expected[some], rtol=0, atol=1e-12 * size if size > 1.0 else 1e-12)
        clocks = [page.evaluate("[cockpit.state().t, performance.now() / 1000]")]
        for _ in range(WINDOWS):
            time.sleep(WINDOW)
            clocks.append(page.evaluate("[cockpit.state().t, performance.now() / 1000]"))
            t, wall = np.diff(clocks[-2:], axis=0)[0]
            if abs(t / wall - 1.0) < 0.02:
                break
        else:
            pytest.fail(f"no two seconds in real time: {np.diff(clocks, axis=0)}")


DIGS = """
import { readFileSync } from "node:fs";
import { Ground } from "./ground.js";
import { load } from "./excavator.js";
import { pilot } from "./pilots.js";

const { welcome, settings, start, nq, lengths, pilots, site } = JSON.parse(readFileSync("welcome.json"));
const m = await load(), g = new Ground(site.contact, site.soils[settings.soil]), p = pilot(pilots.dig), rows = [];
const bucket = 12 * welcome.scene.bodies.indexOf("bucket");
const inside = (x, { low, high }) => Math.min(Math.max(x, low), high);
m.now.set(start, 1); m.u.set(welcome.first); m.start();
for (let k = 0; k <= 700; k++) {
  const { poses } = m.call("poses", m.now.subarray(1, 1 + nq), lengths.map((i) => m.p[i]));
  for (const [name, x] of Object.entries(g.look(k * 0.02, poses.subarray(bucket, bucket + 12)))) m.set(name, x);
  rows.push([g.load, g.dug, ...m.now.subarray(1, 1 + nq)]);
  m.u.set(p.levers(k * 0.02, m.now.subarray(1)).map((x, i) => inside(x, welcome.levers[i])));
  if (m.step(20)) throw new Error("it stopped");
}
const noted = g.between(11, 12).changes.length;
console.log(JSON.stringify([rows, [...g.heights], g.balance, g.score(site.tasks.trench), noted, g.news().byteLength]));
"""


@needs_node
def test_the_page_digs_the_hole_that_python_digs(excavator: Path, tmp_path: Path) -> None:
    """The page digs the hole that Python digs.

    Fourteen seconds of machine, ground and program agree number by number.
    """
    machine, folder = MACHINES["excavator"](), shutil.copytree(excavator, tmp_path / "it")
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "digs.js").write_text(DIGS)
    done = subprocess.run([str(NODE), "digs.js"], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rows, heights, balance, score, changes, news = json.loads(done.stdout)
    own = list[list[float]]()
    for now in moments(machine, 14.0, machine.pilots["dig"]()):
        g = now.digger.ground
        own.append([g.load, g.dug, *now.y[: machine.mechanism.nq]])
    assert own[-1][0] > 0.5
    np.testing.assert_allclose(rows, own, rtol=0, atol=1e-10)
    np.testing.assert_allclose(heights, g.heights.reshape(-1), rtol=0, atol=1e-10)
    assert abs(balance) < 1e-9
    assert score == pytest.approx(TASKS["trench"]().score(g), abs=1e-9)
    assert changes == 0  # no client requested changes, so none were recorded
    assert news > 24


@needs_node
def test_a_replay_is_packed_as_a_server_does(tmp_path: Path) -> None:
    for name in ("record.js", "ground.js", "contact.js"):
        (tmp_path / name).write_text((webassembly.SOURCES / name).read_text())
    (tmp_path / "package.json").write_text('{"type": "module"}')
    contact = {"tool": {"width": 1.2, "capacity": 0.8}, "level": 0.5}
    script = f"""import {{ Memory }} from "./record.js";
        import {{ Ground }} from "./ground.js";
        const m = new Memory(), g = new Ground({json.dumps(contact)}, {{ slopes: [0.7, 1.8] }});
        for (let k = 0; k < 90; k++) {{
          g.work(k / 60, [6 - k / 30, 0, 0.7 - k / 60], [0, 1, 0], 0.9, [6 - k / 30, 0, 0.7 - k / 60]);
          g.news();
          m.add(k / 60, Float32Array.from([k, -k, 2 * k]));
        }}
        const data = m.replay("from=0.5&to=1.25", g), csv = m.csv("to=0", ["=a", 'b"'], 1);
        console.log(JSON.stringify([[...new Uint8Array(data)], new TextDecoder().decode(csv)]));"""
    (tmp_path / "it.js").write_text(script)
    done = subprocess.run([str(NODE), "it.js"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    packed, csv = json.loads(done.stdout)
    tool = Tool((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), 1.2, 0.8)
    soil = replace(SOILS["loam"], repose=float(np.degrees(np.arctan(0.7))), wall=float(np.degrees(np.arctan(1.8))))
    ground = Ground(tool, 0.5, soil)
    for k in range(90):
        place = (6 - k / 30, 0, 0.7 - k / 60)
        ground.work(k / 60, place, (0, 1, 0), 0.9, place)
        ground.take_changes()
    t = np.arange(30, 76) / 60
    base, patches = ground.history(t[0], t[-1])
    changes = [(p.t, h, p.load, p.dug, c) for p in patches for c, h in (p.cells or {2**32 - 1: 0.0}).items()]
    data = bytes(packed)
    assert np.frombuffer(data, "<u4", 4).tolist() == [46, 3, len(changes), base.size]
    times = np.frombuffer(data, "<f8", 46 + len(changes), 16)
    np.testing.assert_allclose(times, [*t, *(c[0] for c in changes)], rtol=1e-15)
    rest = np.frombuffer(data, "<f4", 3 * 46 + base.size + 3 * len(changes), 16 + 8 * len(times))
    rows = [x for k in range(30, 76) for x in (k, -k, 2 * k)]
    np.testing.assert_allclose(rest, [*rows, *base.ravel(), *(c[i] for i in (1, 2, 3) for c in changes)], atol=1e-6)
    assert np.frombuffer(data[-4 * len(changes) :], "<u4").tolist() == [c[4] for c in changes]
    assert csv == 't,\'=a,"b"""\n0,0,0\n'


def test_invalid_machine_or_missing_page_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="a slider for every joint"):
        bc.export(MACHINES["excavator"]().system, tmp_path / "it", to="page")
    monkeypatch.setattr(exported, "STATIC", tmp_path)
    with pytest.raises(InputError, match="make page"):
        bc.export(bc.zoo.pendulum(), tmp_path / "it", to="page")
    assert not list(tmp_path.iterdir())
    assert scene_poses.pose_kernel(bc.zoo.pendulum())  # the poses of the export come from it
