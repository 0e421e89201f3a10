"""Background work and signals at any moment: nothing hangs, and no thread stays at work."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bellcrank.emit.cpu.thread_pool import run_on_threads

ROUNDS = 250


def test_results_are_in_order() -> None:
    assert run_on_threads(lambda k: (time.sleep(0.001 * (5 - k)), k * k)[1], 6, 3) == [0, 1, 4, 9, 16, 25]
    assert run_on_threads(lambda k: k, 0, 4) == []


def test_an_error_comes_when_all_are_done() -> None:
    ended: list[int] = []

    def work(k: int) -> None:
        if k == 0:
            raise ValueError("mine")
        time.sleep(0.01)
        ended.append(k)

    with pytest.raises(ValueError, match="mine"):
        run_on_threads(work, 5, 2)
    assert sorted(ended) == [1, 2, 3, 4]


def test_failure_of_a_waiting_thread_ends_the_work() -> None:
    begun, ended, stopped = [], [], []

    def work(k: int) -> None:
        begun.append(k)
        while not stopped:
            time.sleep(0.001)
        ended.append(k)

    def fails() -> None:
        raise RuntimeError("my own bug")

    with pytest.raises(RuntimeError, match="my own bug"):
        run_on_threads(work, 9, 2, fails, lambda: stopped.append(True))
    assert len(begun) <= 4
    assert sorted(begun) == sorted(ended)


@contextmanager
def interrupted_after(seconds: float, again: float = 0.0) -> Iterator[None]:
    """Send a signal after this time, and repeatedly at an interval."""
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, again)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python itself loses some signals
def test_signals_at_any_moment() -> None:
    rng, came = random.Random(1), 0
    for _ in range(ROUNDS):
        begun, ended = [], []

        def work(k: int, begun: list[int] = begun, ended: list[int] = ended) -> None:
            begun.append(k)
            time.sleep(0.0005)
            ended.append(k)

        try:
            with interrupted_after(rng.uniform(2e-5, 4e-3)):
                run_on_threads(work, 8, 3)
        except KeyboardInterrupt:
            came += 1
        assert sorted(begun) == sorted(ended)
    assert came > ROUNDS // 4


def test_a_second_signal_does_not_leave_the_first_one_s_work_behind() -> None:
    begun, ended = [], []

    def work(k: int) -> None:
        begun.append(k)
        time.sleep(0.1)
        ended.append(k)

    with pytest.raises(KeyboardInterrupt), interrupted_after(0.02, 0.015):
        run_on_threads(work, 9, 2)
    assert len(begun) == 2
    assert sorted(begun) == sorted(ended)


def test_runs_that_are_interrupted_at_any_moment() -> None:
    """Each interrupted run ends with its record, or before there was one.

    The process then continues and exits normally.
    """
    code = """
        import random, signal
        import numpy as np
        import bellcrank as bc
        from bellcrank.sim.run.record_builder import Interrupted

        simulator, rng, came = bc.Simulator(bc.zoo.chain(2), "rk4"), random.Random(2), 0
        q0 = np.full((64, 2), 0.1)
        want = simulator.run(0.5, q0, step=1e-3, threads=2).q[:, -1]
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        for _ in range(15):
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-4, 0.02))
                simulator.run(500.0, q0, step=1e-3, every=100.0, threads=2)
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            except KeyboardInterrupt as error:
                came += isinstance(error, Interrupted)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        assert came > 4, came
        assert (simulator.run(0.5, q0, step=1e-3, threads=2).q[:, -1] == want).all()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=100)
