"""The page without a server in headless Chromium: files and nothing else, the machine inside, at its full rate."""

from __future__ import annotations

import functools
import http.server
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.cockpit import stage
from bellcrank.errors import InputError
from bellcrank.excavators.machines import MACHINES

pytest.importorskip("starlette", reason="the extra cockpit is not installed")

from bellcrank.exporting import page as exported
from bellcrank.exporting import wasm
from cockpit_page import chromium, until
from targets.test_export_wasm import NODE, needs_node

WINDOW, WINDOWS = 2.0, 8  # s, and how often: on a computer that others use, some are theirs


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *given: Any) -> None:
        pass


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as made:
        yield made


@contextmanager
def opened(browser: Any, folder: Path) -> Iterator[Any]:
    """The page of a folder, from any web server; it asks nobody else, and complains of nothing."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder.parent)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    trouble, here = list[str](), f"http://127.0.0.1:{server.server_port}/{folder.name}/"
    made = browser.new_page(viewport={"width": 480, "height": 320})
    made.on("pageerror", lambda error: trouble.append(str(error)))
    made.on("console", lambda m: trouble.append(m.text) if m.type in ("error", "warning") else None)
    made.on("request", lambda r: trouble.append(r.url) if not r.url.startswith((here, "data:", "blob:")) else None)
    try:
        made.goto(f"{here}?quality=low")
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


def test_a_visitor_drives(browser: Any, tmp_path: Path) -> None:
    folder = bc.export(MACHINES["excavator"](), tmp_path / "excavator", to="page")
    with opened(browser, folder) as page:
        until(page, "document.getElementById('link').textContent.startsWith('live')")
        begin = value(page, "cab.q")
        page.keyboard.down("KeyD")
        until(page, "Math.abs(cockpit.axes()['left.x']) > 0.5")
        time.sleep(1.0)
        page.keyboard.up("KeyD")
        assert abs(value(page, "cab.q") - begin) > 0.01
        assert page.locator("#coach").is_visible()  # there is ground to dig in
        page.locator("#pause").click()
        until(page, "!cockpit.settings().running")
        still = page.evaluate("cockpit.state().n")
        time.sleep(0.2)
        assert page.evaluate("cockpit.state().n") == still
        page.locator("#pause").click()
        until(page, f"cockpit.state().n > {still}")
        page.locator("#reset").click()
        until(page, f"cockpit.state().n < {still}")
        assert not page.locator("#replay").is_visible()


def test_the_linkage_runs_at_its_rate_with_the_kernels_numbers(browser: Any, tmp_path: Path) -> None:
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


@needs_node
def test_earth_is_kept(tmp_path: Path) -> None:
    """A bucket goes through the ground, carries, and tips: what is missing is in it, or on a heap."""
    (tmp_path / "ground.mjs").write_text((wasm.SOURCES / "ground.js").read_text())
    script = """import { Ground } from "./ground.mjs";
        const g = new Ground({ width: 1.2, capacity: 0.8 }, 0.5), out = [];
        let t = 0;
        const look = (x, z, mouth) => g.work((t += 1 / 60), [x, 0, z + 0.5], [0, 1, 0], mouth, [x, 0, z + 0.5]);
        for (let k = 0; k < 60; k++) look(6 - k / 30, 0.2 - k / 60, 0.9);
        out.push(g.load, g.dug, g.balance, g.news().byteLength);
        for (let k = 0; k < 90; k++) look(4, -0.8 + k / 30, 0.9);
        for (let k = 0; k < 90; k++) look(4, 2.2, -1);
        out.push(g.load, g.balance, Math.max(...g.heights));
        console.log(JSON.stringify(out));"""
    (tmp_path / "it.mjs").write_text(script)
    done = subprocess.run([str(NODE), "it.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    load, dug, balance, news, left, after, heap = json.loads(done.stdout)
    assert 0.1 < load <= 0.8
    assert load == dug
    assert max(abs(balance), abs(after)) < 1e-9
    assert news > 24
    assert left < 1e-6 < 0.05 < heap


def test_what_is_no_machine_or_not_built_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="a slider for every joint"):
        bc.export(MACHINES["excavator"]().system, tmp_path / "it", to="page")
    monkeypatch.setattr(exported, "STATIC", tmp_path)
    with pytest.raises(InputError, match="make page"):
        bc.export(bc.zoo.pendulum(), tmp_path / "it", to="page")
    assert not list(tmp_path.iterdir())
    assert stage.pose_kernel(bc.zoo.pendulum())  # what the export takes its poses from
