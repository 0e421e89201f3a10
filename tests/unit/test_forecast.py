"""The size of a large kernel is announced before it is made; an interrupt leaves nothing half-made behind."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path
from typing import Any

import pytest

import bellcrank as bc
from bellcrank import buffers, progress
from bellcrank.build import compile_time_forecast, graphs, policy, schedules
from bellcrank.dynamics.quantities import Request
from bellcrank.emit import cache
from bellcrank.errors import InputError
from bellcrank.graph import loop_graph, recursion_interpreter

DYNAMICS = Request("forward_dynamics")


def test_forecast_bytes_grow_with_bodies_or_operations() -> None:
    chain = bc.zoo.chain(200)
    rolled = compile_time_forecast.strategy_forecast(policy.choose(chain, DYNAMICS), calls=True)
    straight = compile_time_forecast.strategy_forecast(policy.choose(chain, DYNAMICS), calls=False)
    assert rolled.seconds < 2.0 < straight.seconds
    assert straight.bytes > 50 * rolled.bytes
    assert straight.bytes == compile_time_forecast.OPERATION_BYTES * straight.operations


def test_the_forecast_of_written_out_code_is_about_right() -> None:
    """The predicted operations of straight-line code, the base of seconds and bytes, are roughly right.

    Real machines have special geometry and need fewer.
    """
    for name in ("puma600", "chain:20", "tree:15", "stewart", "n_four_bar:8"):
        m = bc.zoo.load(name)
        found = compile_time_forecast.strategy_forecast(policy.choose(m, DYNAMICS), calls=False)
        assert 0.5 < found.operations / graphs.graph(m, "forward_dynamics").count().arithmetic < 6.0, name


def test_graph_beyond_memory_raises_before_tracing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELLCRANK_CACHE", str(tmp_path))
    monkeypatch.setattr(compile_time_forecast, "free_memory", lambda: 1e5)
    monkeypatch.setattr(graphs, "trace_plan", lambda *_: pytest.fail("it was begun"))
    what = r"forward_dynamics of chain70: about [\d,]+ operations, .* 0.0 GB are free"
    with pytest.raises(InputError, match=what):
        bc.kernel(bc.zoo.chain(70), "forward_dynamics")


def test_recursion_beyond_memory_is_not_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    found = graphs.graph(bc.zoo.chain(100), "forward_dynamics", "aba")
    monkeypatch.setattr(loop_graph, "free_memory", lambda: 1e6)
    monkeypatch.setattr(recursion_interpreter, "expand", lambda *_: pytest.fail("it was begun"))
    with pytest.raises(InputError, match=r"operation by operation: [\d,]+ of them, some 0.0 GB, and 0.0 GB are free"):
        _ = found.outputs


def test_minutes_are_announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELLCRANK_CACHE", str(tmp_path))
    monkeypatch.setattr(compile_time_forecast, "WARNING_SECONDS", 1e-3)
    monkeypatch.setattr(policy.Strategy, "is_small", False)  # otherwise the forecast would not run
    with pytest.warns(RuntimeWarning, match="bias of chain3: about .* to compile and .* GB"):
        bc.kernel(bc.zoo.chain(3), "bias")
    graph = graphs.graph(bc.zoo.chain(3), "bias")
    with pytest.warns(RuntimeWarning, match="chain3.bias: about"):
        bc.compile(graph)


def test_a_million_bodies_are_a_sentence() -> None:
    with pytest.raises(InputError, match=r"n is 1000000; so many bodies would take about [\d.]+ minutes and 6 GB"):
        bc.zoo.load("chain:1000000")


def test_derivatives_of_a_long_chain_are_a_sentence() -> None:
    chain, began = bc.zoo.chain(1000), time.process_time()
    with pytest.raises(InputError, match=r"[\d,]+ operations, some [\d,]+ minutes to compile and \d+ GB, and"):
        bc.kernel(chain, "forward_dynamics_derivatives")  # as an attribute it is computed column by column
    assert time.process_time() - began < 5.0


@pytest.mark.parametrize("at", ["compile", "save"])
def test_an_interrupted_compilation_leaves_a_clean_cache(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BELLCRANK_CACHE", str(tmp_path / "cache"))

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as m:
        if at == "compile":
            m.setattr("bellcrank.emit.llvm.host.compile_text", interrupted)
        else:
            m.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            bc.kernel(bc.zoo.chain(2), "forward_dynamics", method="aba")  # "auto" would calibrate this computer first
    assert not list(cache.cache_files())
    kernel = bc.kernel(bc.zoo.chain(2), "forward_dynamics", method="aba")
    assert not kernel.from_cache
    assert kernel([0.0, 0.0], [0.0, 0.0], [0.0, 0.0]).shape == (2,)


def test_progress_is_shown_on_a_terminal_once_and_wiped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress is printed once on a terminal, one line for nested slow work, and wiped at the end."""
    monkeypatch.setenv("BELLCRANK_CACHE", str(tmp_path))
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(progress, "DISPLAY_DELAY_SECONDS", 0.02)
    bc.kernel(bc.zoo.chain(6), "forward_dynamics", method="aba")
    told = screen.getvalue()
    assert "\rcompiling chain6.forward_dynamics ... 0 s\x1b[K" in told
    assert told.endswith("\r\x1b[K")
    screen.truncate(0)
    with progress.progress_message("all of it"):
        bc.kernel(bc.zoo.chain(7), "forward_dynamics", method="aba")
    assert "compiling" not in screen.getvalue()
    screen.truncate(0)
    bc.zoo.load("chain:500")
    assert "\rbuilding chain:500 ... 0 s\x1b[K" in screen.getvalue()


def test_free_memory_is_read_from_the_system() -> None:
    assert buffers.free_memory() > 1e6
    with pytest.raises(InputError, match=r"needs .* GB and .* GB are free; take less"):
        buffers.check_memory("it", 1e18, "take less")


def test_long_scheduling_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "WARNING_SECONDS", 0.1)
    with pytest.warns(RuntimeWarning, match=r"12,\d\d\d operations are scheduled one by one.*body by body"):
        bc.schedule(bc.zoo.chain(70), machine="complete:2", method="aba")


def test_derivatives_against_weights_of_many_bodies_announce_their_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reverse-mode derivatives of many bodies announce their minutes where the way back is no recursion.

    This is the case for dca, and not for aba and rnea.
    """
    monkeypatch.setattr("bellcrank.graph.autodiff.SLOW_VJP_OPERATIONS", 10_000)
    monkeypatch.setattr("bellcrank.graph.recursion_derivatives.vjp", lambda *given: None)
    graph = graphs.choose_graph(bc.zoo.chain(70), Request("forward_dynamics", "aba"), calls=True)[1]
    with pytest.warns(RuntimeWarning, match=r"12,\d\d\d operations one by one.*jvp"):
        graph.vjp(["tau"])
