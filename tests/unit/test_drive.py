"""The real-time loop on a simulated clock (late wake-ups, slow steps, jumps), and on the real one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.emit.cpu.realtime_loop import HISTOGRAM_BINS, bin_edges
from bellcrank.errors import InputError
from bellcrank.sim.realtime import realtime_memory
from bellcrank.sim.realtime.realtime_drive import Drive
from bellcrank.sim.realtime.realtime_memory import Clock, RowStore
from waiting import wait

MS = 1_000_000  # nanoseconds


class Hand:
    """A clock that advances only when it is read or slept on, and follows a script at a wake-up."""

    def __init__(self, script: dict[int, Callable[[Hand], None]], wakes: int, look: int = 1000) -> None:
        self.t, self.n, self.look = 10 * MS, 0, look
        self.script, self.wakes = script, wakes
        self.drive: Any = None
        self.slow = 0

    def now(self) -> int:
        self.t += self.look + self.slow
        return self.t

    def sleep(self, until: int) -> None:
        self.n += 1
        self.t = max(self.t, until)
        self.slow = 0
        if self.n in self.script:
            self.script[self.n](self)
        if self.n >= self.wakes:
            self.drive.shared.set("stop", 1)

    def run(self, mechanism: Any, **settings: Any) -> Drive:
        self.drive = Drive(mechanism, 1000.0, clock=Clock(self.now, self.sleep), **settings)
        self.drive.start()
        self.drive._thread.join()
        self.drive.stop()
        found: Drive = self.drive
        return found


@pytest.fixture(scope="module")
def arm() -> bc.Mechanism:
    return bc.zoo.load("planar3r")


START = [0.3, 0.2, 0.1]


def test_a_punctual_loop_is_the_simulation(arm: bc.Mechanism) -> None:
    drive = Hand({}, wakes=200).run(arm, q0=START)
    run = drive.record()
    assert len(run) == 200
    plain = bc.simulate(arm, seconds=0.2, q0=START)
    assert np.array_equal(run.q, plain.q[1:])
    assert np.array_equal(run.v, plain.v[1:])
    report = drive.report()
    assert report["overruns"] == report["skipped"] == 0
    assert report["real_time_factor"] == 1.0
    assert report["steps"] == 200
    assert sum(report["measured"]["histogram"]["counts"]) == 200
    assert run.realtime is not None
    assert run.realtime["steps"] == 200


def test_a_period_is_timed_by_its_threads_own_clock_and_traced(arm: bc.Mechanism) -> None:
    """The computing time of a period is measured by the thread's own clock and recorded.

    The scripted clock stops, as when another process has the core, and advances 7 us in each period.
    """
    clock = Hand({50: late(3 * MS)}, wakes=100)
    own = iter(range(0, 10**9, 7000))
    drive = Drive(arm, 1000.0, q0=START, clock=Clock(clock.now, clock.sleep, lambda: next(own)))
    clock.drive = drive
    drive.start()
    drive._thread.join()
    drive.stop()
    report = drive.report()
    assert report["own"]["min"] == report["own"]["max"] == pytest.approx(7e-6)
    assert "by its own clock" in str(drive.deadlines)
    trace = drive.shared.trace[: drive.shared.get("traced")]
    assert len(trace) == 100
    assert (np.diff(trace[:, 0]) > 0).all()  # in order of wake-up
    assert trace[:, 1].max() * 1e-9 == report["jitter"]["max"]
    assert trace[:, 2].max() * 1e-9 == report["measured"]["max"]
    assert set(trace[:, 3]) == {7000}


def late(by: int) -> Callable[[Hand], None]:
    def act(clock: Hand) -> None:
        clock.t += by

    return act


def slow(by: int) -> Callable[[Hand], None]:
    def act(clock: Hand) -> None:
        clock.slow = by

    return act


def test_a_late_wake_up_within_bounds_is_caught_up(arm: bc.Mechanism) -> None:
    clock = Hand({50: late(3 * MS)}, wakes=200)
    drive = clock.run(arm, q0=START)
    report = drive.report()
    assert report["skipped"] == 0
    assert report["overruns"] == 3 == report["caught_up"]
    assert report["jitter"]["max"] == pytest.approx(3e-3, rel=0.01)
    # all periods were computed, and the loop is on time again: 200 wake-ups took 200 periods
    assert report["steps"] == 200
    assert clock.t - 10 * MS == pytest.approx(200 * MS, rel=0.01)


def test_late_periods_beyond_the_limit_are_skipped(arm: bc.Mechanism) -> None:
    drive = Hand({50: late(100 * MS)}, wakes=200).run(arm, q0=START, most=5)
    report = drive.report()
    assert report["skipped"] == 94
    assert report["overruns"] <= 7
    assert report["real_time_factor"] == pytest.approx(200 / 294)
    first = report["log"][0]
    assert first["late"] == pytest.approx(0.1, rel=0.01)
    assert first["skipped"] == 94
    assert first["time"] == pytest.approx(0.05)


def test_slow_steps_never_end_in_a_spiral(arm: bc.Mechanism) -> None:
    """Steps that take 2.5 periods do not accumulate delay: the loop drops periods and goes on."""
    clock = Hand({n: slow(5 * MS // 4) for n in range(1, 101)}, wakes=100)
    drive = clock.run(arm, q0=START, most=2)
    report = drive.report()
    assert report["steps"] == 100
    assert report["overruns"] == 100
    assert report["skipped"] > 100
    assert 0.3 < report["real_time_factor"] < 0.5


def test_a_clock_that_jumps_back_does_no_harm(arm: bc.Mechanism) -> None:
    drive = Hand({50: late(-30 * MS)}, wakes=100).run(arm, q0=START)
    report = drive.report()
    assert report["skipped"] == 0
    assert report["jitter"]["min"] >= 0.0
    assert np.isfinite(drive.record().q).all()


def test_inputs_newest_wins(arm: bc.Mechanism) -> None:
    system = bc.system(arm, control=lambda t, q, v, x, u: [u["push"], 0.0, 0.0], inputs=["push"])

    def push(clock: Hand) -> None:
        for x in (1.0, 2.0, 3.0):
            clock.drive.input({"push": x})

    for integrator in ("rk4", "dopri5"):
        run = Hand({51: push}, wakes=100).run(system, q0=START, integrator=integrator).record()
        force = np.where(np.arange(100) < 50, 0.0, 3.0)
        assert np.array_equal(run["input.push"], force)
        plain = bc.simulate(
            system, 0.1, q0=START, integrator=integrator, step=1e-3, inputs={"push": force}, input_step=1e-3
        )
        assert np.abs(run.q - plain.q[1:]).max() < 1e-14


def test_rows_that_the_ring_cannot_hold_are_counted(arm: bc.Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bellcrank.sim.realtime.realtime_memory.RING_ROWS", 64)
    monkeypatch.setattr(Drive, "_save_periodically", lambda self: None)
    drive = Hand({}, wakes=100).run(arm, q0=START)
    assert len(drive.record()) == 64
    assert drive.report()["lost_rows"] == 36


def test_every_and_substeps(arm: bc.Mechanism) -> None:
    run = Hand({}, wakes=100).run(arm, q0=START, every=10, substeps=4).record()
    assert len(run) == 10
    assert np.allclose(run.t, np.arange(1, 11) * 0.01)
    fine = bc.simulate(arm, seconds=0.1, q0=START, step=0.25e-3, every=0.01)
    assert np.array_equal(run.q, fine.q[1:])


def test_a_run_that_fails_stops_and_keeps_its_record(arm: bc.Mechanism) -> None:
    system = bc.system(arm, control=lambda t, q, v, x, u: [1e300 * (t - 0.05), 0.0, 0.0])
    drive = Hand({}, wakes=100).run(system, q0=START)
    assert drive.snapshot().status == "failed"
    run = drive.record()
    assert run.stops[0].reason == "not finite"
    assert np.isfinite(run.q).all()


def test_the_real_clock(arm: bc.Mechanism) -> None:
    """The loop runs on the real clock; how punctual this computer is is not tested."""
    with Drive(arm, 1000.0, q0=START) as drive:
        wait(lambda: drive.snapshot().t > 0.1)
        drive.pause()
        wait(lambda: drive.snapshot().status == "paused")
        first = drive.snapshot()
        time.sleep(0.05)
        assert drive.snapshot().t == first.t
        drive.resume()
        drive.slow(0.5)
        wait(lambda: drive.snapshot().t > first.t)
        drive.reset(q0=START)
        wait(lambda: 0.0 < drive.snapshot().t < first.t)
    run = drive.record()
    assert len(run) > 0
    assert run.t[0] == pytest.approx(1e-3)
    assert np.array_equal(run.q, bc.simulate(arm, seconds=float(run.t[-1]), q0=START).q[1:])
    assert "predicted" in str(drive.deadlines)


def test_histogram_bins_have_their_bounds() -> None:
    edges = bin_edges()
    assert len(edges) == HISTOGRAM_BINS + 1
    assert (np.diff(edges) >= 0).all()
    assert edges[8 * 10] == 1024.0
    assert edges[8 * 10 + 1] == 1024.0 + 128.0


def test_bad_arguments(arm: bc.Mechanism) -> None:
    with pytest.raises(InputError, match="rate is 0"):
        Drive(arm, 0)
    with pytest.raises(InputError, match="substeps is 0"):
        Drive(arm, substeps=0)
    drive = Drive(bc.system(arm, control=lambda t, q, v, x, u: [u[0], 0.0, 0.0], inputs=["push"]))
    with pytest.raises(InputError, match=r'no input "pull".*push'):
        drive.input({"pull": 1.0})
    with pytest.raises(InputError, match="shape"):
        drive.input([1.0, 2.0])
    with pytest.raises(InputError, match="expected finite numbers"):
        drive.input([float("nan")])


def test_outputs_are_those_of_the_record(arm: bc.Mechanism) -> None:
    def tip(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return q[0] * v[1] + u["push"] * t

    outputs = {"tip": tip, "twice": lambda t, q, v, x, u: 2.0 * tip(t, q, v, x, u)}
    control = lambda t, q, v, x, u: [u["push"], 0.0, 0.0]  # noqa: E731
    system = bc.system(arm, control=control, inputs=["push"], outputs=outputs)
    drive = Hand({20: lambda clock: clock.drive.input({"push": 3.0})}, wakes=50).run(system, q0=START)
    shot, last = drive.snapshot(), drive.record()
    assert shot.outputs == pytest.approx({name: last[name][-1] for name in outputs}, rel=1e-14)
    assert shot.outputs["tip"] != 0.0


def test_the_record_of_an_endless_run_is_bounded(arm: bc.Mechanism) -> None:
    drive = Hand({}, wakes=400).run(arm, q0=START, keep=0.1)
    run = drive.record()
    assert len(run) + drive.row_store.dropped == 400
    assert run.t[-1] == pytest.approx(0.4)
    kept = RowStore(1, 100)
    for k in range(60):
        kept.add(np.full((10, 1), k))
    assert kept.dropped == 500
    assert np.array_equal(kept.rows(), np.repeat(np.arange(50, 60), 10)[:, None])


def test_code_is_there_before_the_time_runs(arm: bc.Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    drive = Drive(arm, 1000.0, q0=START)
    monkeypatch.setattr(
        "bellcrank.sim.realtime.realtime_drive.LoopCode", lambda program: pytest.fail("it is compiled while time runs")
    )
    with drive:
        wait(lambda: drive.snapshot().n > 0)


class Refused:
    """An operating system that permits nothing, or everything, and records the calls."""

    SCHED_FIFO, SCHED_OTHER, sched_param = 1, 0, staticmethod(lambda priority: priority)

    def __init__(self, permits: bool, cores: set[int]) -> None:
        self.permits, self.cores, self.calls = permits, cores, list[tuple[Any, ...]]()

    def sched_getaffinity(self, pid: int) -> set[int]:
        return self.cores

    def sched_setscheduler(self, pid: int, policy: int, param: int) -> None:
        if not self.permits:
            raise PermissionError(1, "Operation not permitted")
        self.calls.append(("scheduler", policy, param))

    def sched_setaffinity(self, pid: int, cores: set[int]) -> None:
        self.calls.append(("cores", *sorted(cores)))


@pytest.mark.parametrize(
    ("permits", "cores", "asked", "calls", "notes"),
    [
        (True, {0, 1, 2}, None, [("scheduler", 1, 50), ("cores", 2)], ["locked"]),
        (True, {0}, None, [("scheduler", 1, 50)], ["locked", "only one"]),
        (False, {0, 1}, None, [], ["no SCHED_FIFO (Operation not permitted)", "locked", "not pinned"]),
        (False, {0, 1}, 1, [("cores", 1)], ["no SCHED_FIFO", "locked"]),
    ],
)
def test_missing_permissions_are_reported(
    monkeypatch: pytest.MonkeyPatch, permits: bool, cores: set[int], asked: int | None, calls: Any, notes: Any
) -> None:
    def refused() -> None:
        raise OSError(12, "Cannot allocate memory")

    system = Refused(permits, cores)
    monkeypatch.setattr("bellcrank.sim.realtime.realtime_memory.os", system)
    monkeypatch.setattr("bellcrank.sim.realtime.realtime_memory._lock_memory", refused)
    with realtime_memory.realtime_priority(asked) as found:
        assert system.calls == calls
        assert len(found) == len(notes)
        for text, part in zip(found, notes, strict=True):
            assert part in text
    assert system.calls[-1] == ("cores", *cores)
    assert ("scheduler", 0, 0) in system.calls or not permits


def test_loops_are_closed_where_it_starts() -> None:
    m = bc.zoo.andrews()
    drive = bc.Drive(m, rate=1000.0)
    assert np.abs(m.closure(drive.snapshot().y[: m.nq])).max() < 1e-9
