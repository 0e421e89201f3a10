"""Failing runs: other runs continue, recorded rows stay, the message names time and joint; Ctrl-C stops a run."""

from __future__ import annotations

import io
import math
import pickle
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import progress
from bellcrank.scalar import sqrt, where
from bellcrank.sim.run.record_builder import Interrupted
from trees import random_tree
from waiting import wait


def slides() -> bc.Mechanism:
    b = bc.Builder("slides", gravity=(0, 0, 0))
    for name in ("left", "right"):
        b.body(f"{name} mass", mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1))
        b.joint(name, "prismatic", "ground", f"{name} mass", axis=(1, 0, 0))
    return b.build()


def explosive(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
    """v' = 1 + v^2 on the right: v = tan(t + c), infinite at pi/2 - c."""
    return [0.0, 1.0 + v["right"] * v["right"]]


@pytest.mark.parametrize(
    ("name", "how"), [("rk4", {"step": 0.01}), ("dopri5", {"tolerance": 1e-8}), ("abm4", {"step": 0.01})]
)
def test_diverging_lane_does_not_stop_others(name: str, how: dict[str, Any]) -> None:
    start = np.zeros((11, 2))
    start[4, 1] = math.tan(1.0)  # infinite at 0.5708; the others at 1.5708, after the end
    run = bc.simulate(slides(), 1.0, None, start, control=explosive, integrator=name, every=0.1, **how)
    assert [s.reason for s in run.stops] == ["end"] * 4 + [run.stops[4].reason] + ["end"] * 6
    stop = run.stops[4]
    assert stop.reason in ("not finite", "step too small")
    assert 0.55 < stop.time < 0.65
    assert '"right.v"' in stop.message
    assert f"{stop.time:.4g}"[:4] in stop.message
    rows = np.isfinite(run.t[4])
    assert rows.sum() == math.floor(stop.time * 10) + 1
    assert rows.sum() in (6, 7)
    np.testing.assert_allclose(run["right.v"][4, :6], np.tan(1.0 + np.arange(6) * 0.1), rtol=2e-3)
    others = np.delete(run["right.v"], 4, axis=0)
    np.testing.assert_allclose(others, np.broadcast_to(np.tan(np.arange(11) * 0.1), others.shape), rtol=1e-5)


def test_a_nan_stops_one_run() -> None:
    """The root of a negative number, from t = 0.25 on, as an input requires."""

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return [sqrt(where(u["bad"] > 0.0, 0.25 - t, 1.0)), 0.0]

    s = bc.system(slides(), control=control, inputs=["bad"])
    run = bc.simulate(s, 0.5, step=0.01, inputs={"bad": [0.0, 1.0, 0.0]})
    assert [x.reason for x in run.stops] == ["end", "not finite", "end"]
    assert run.stops[1].time == pytest.approx(0.25, abs=0.0101)
    assert '"left.v"' in run.stops[1].message
    assert np.isfinite(run.t[1]).sum() == round(run.stops[1].time / 0.01) + 1
    assert np.isfinite(run.q[[0, 2]]).all()


def test_the_failure_is_explained_with_the_inputs_of_its_time() -> None:
    """The first line is harmless; the second drives the left slide away."""

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return [u["gain"] * v["left"], 0.0]

    s = bc.system(slides(), control=control, inputs=["gain"])
    run = bc.simulate(s, 2.0, None, [1e-3, 5.0], step=0.1, inputs={"gain": [0.0, 1e30]}, input_step=0.5)
    assert run.stops[0].reason == "not finite"
    assert '"left.v"' in run.stops[0].message
    assert run.stops[0].time >= 0.5


def test_a_step_that_shrinks_to_nothing() -> None:
    """A force that jumps with the state and back, so that no step meets the tolerance."""

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return [where(v["left"] < 0.5, 1e9, -1e9), 0.0]

    starts = np.array([[0.0, 0.0], [0.9, 0.0]])
    run = bc.simulate(slides(), 1.0, None, starts, control=control, integrator="rkf45", tolerance=1e-12, every=0.1)
    assert {s.reason for s in run.stops} == {"step too small"}
    for stop in run.stops:
        assert "left" in stop.message
        assert "step shrinks to nothing" in stop.message
        assert stop.time < 1e-6


def test_a_failure_in_the_first_step_keeps_the_start() -> None:
    run = bc.simulate(slides(), 1.0, None, [0.0, 1e200], control=explosive, step=0.1)
    assert run.stops[0].reason == "not finite"
    assert run.t.tolist() == [0.0]
    assert run["right.v"].tolist() == [1e200]


# -- Ctrl-C


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_hands_over_the_record(threads: int) -> None:
    code = f"""
        import os, signal, sys
        import numpy as np
        import bellcrank as bc
        from bellcrank.sim.run.record_builder import Interrupted
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
        told = []
        def progress(share):
            if share > 0 and not told:
                told.append(share)
                print("running", flush=True)
        try:
            bc.simulate(bc.zoo.chain(3), 1e5, q0=np.full(({threads} * 16, 3), 0.1), every=100.0, threads={threads},
                        progress=progress)
        except KeyboardInterrupt as error:
            assert isinstance(error, Interrupted)
            run = error.record
            reasons = {{s.reason for s in run.stops}}
            rows = np.isfinite(run.t).sum(axis=-1)
            print(sorted(reasons), int(rows.max()), "record" in str(error), flush=True)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "running\n"
        time.sleep(0.5)
        asked = time.monotonic()
        child.send_signal(signal.SIGINT)
        reasons, rows, named = child.stdout.read().strip().rsplit(" ", 2)
    assert child.returncode == 0
    assert time.monotonic() - asked < 20
    assert reasons == "['interrupted']"
    assert int(rows) >= 2
    assert named == "True"


def test_a_progress_that_fails_stops_all() -> None:
    def fails(share: float) -> None:
        raise RuntimeError("my own bug")

    for threads in (1, 2):
        began = time.monotonic()
        with pytest.raises(RuntimeError, match="my own bug"):
            bc.simulate(bc.zoo.chain(3), 1e5, np.zeros((16, 3)), every=100.0, threads=threads, progress=fails)
        assert time.monotonic() - began < 30


def test_progress_goes_from_zero_to_one() -> None:
    """Padding lanes, which stay at t = 0, do not affect the progress."""
    told: list[float] = []
    bc.simulate(bc.zoo.chain(3), 20.0, np.zeros((3, 3)), every=1.0, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert len(told) > 2
    assert 0.0 < told[len(told) // 2] < 1.0


# -- many users


def test_several_threads_may_use_one_simulator() -> None:
    m = random_tree(2, ["revolute", "spherical"])
    sim = bc.Simulator(m, "rodas4")
    q, v, _ = m.random(0, (4,))
    found: list[Any] = [None] * 8

    def work(k: int) -> None:
        found[k] = sim.run(0.05, q[k % 4], v[k % 4], step=0.005) if k < 4 else sim.run(0.05, q, v, step=0.005)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(4):
        for batch in found[4:]:
            np.testing.assert_array_equal(found[k].q, batch.q[k])


def test_records_can_be_pickled_and_simulators_raise() -> None:
    sim = bc.Simulator(bc.zoo.chain(2))
    run = sim.run(0.1, [0.3, 0.1])
    sent = pickle.loads(pickle.dumps(run))
    np.testing.assert_array_equal(sent.q, run.q)
    np.testing.assert_array_equal(sent.energy(), run.energy())
    assert sent.provenance == run.provenance
    assert pickle.loads(pickle.dumps(Interrupted(run))).record.columns == run.columns
    with pytest.raises(bc.InputError, match=r"cannot be pickled; send its \.system"):
        pickle.dumps(sim)


def test_many_runs_leak_no_memory() -> None:
    def size() -> int:
        with open("/proc/self/statm") as text:
            return int(text.read().split()[1]) * 4096

    if not sys.platform.startswith("linux"):
        pytest.skip("needs /proc")
    sim, start = bc.Simulator(bc.zoo.chain(3)), np.zeros((16, 3))
    for _ in range(20):
        sim.run(0.2, start)
    before = size()
    for _ in range(200):
        sim.run(0.2, start)  # half a megabyte each
    for _ in range(20):
        bc.simulate(bc.zoo.chain(3), 0.2, start)
    assert size() - before < 20_000_000


def test_compile_message_appears_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message appears only on a terminal, after a second, and is erased afterwards."""
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "DISPLAY_DELAY_SECONDS", 0.05)
    with progress.progress_message("compiling arm", None):
        time.sleep(0.2)
    assert screen.getvalue() == ""
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    with progress.progress_message("compiling arm", None):
        pass
    with progress.progress_message("compiling arm", False):
        time.sleep(0.2)
    assert screen.getvalue() == ""
    monkeypatch.setattr(progress, "MESSAGE_INTERVAL_SECONDS", 60.0)  # one message is enough
    with progress.progress_message("compiling arm", None):
        wait(screen.getvalue)
    assert re.fullmatch(r"\rcompiling arm \.\.\. \d+ s\x1b\[K\r\x1b\[K", screen.getvalue())
