"""Routines and run loops in machine code agree with Graph.evaluate and with the loop written in Python."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from bellcrank.emit.cpu import run_loop
from bellcrank.emit.cpu.run_loop import DONE, FULL, PAUSE, SWAPPED
from bellcrank.emit.llvm.host import host
from bellcrank.emit.llvm.subroutines import CHUNK_ITEMS
from bellcrank.graph import Graph, Layout, Program, trace
from bellcrank.scalar import atan2, cos, exp, log, maximum, minimum, sin, sqrt, tanh, where
from bellcrank.sim.run.lane_blocks import CompiledProgram, LaneBlocks, run_all
from ticking import AT, Spelled, begun, program

Array = np.ndarray[Any, Any]
LANES = [n for n in (1, 2, 4, 8) if n <= host().lanes("float64")]


# -- routines


def plain(n: int) -> Layout:
    """Return a state of n numbers, the first of which holds every sign."""
    made = Layout({"s": (n,)})
    made.places |= {"live": 0, "due": 0}
    return made


def ran(graph: Graph, lanes: int, s: Array, p: Array | None = None) -> Array:
    """Return the result of a routine for s, (size, lanes)."""
    n = len(s)
    idle = trace("idle", lambda s: {"s": [x * 1.0 for x in s]}, {"s": (n,)})
    program = Program(plain(n), tick=idle, row=1, start=graph)
    p = np.zeros((0, lanes)) if p is None else p
    made = LaneBlocks(CompiledProgram(program, lanes), s, p, np.zeros((lanes, 1, 0)), np.zeros((lanes, 1, 1)))
    made.start_remaining()
    return made.state


def evaluated(graph: Graph, s: Array, p: Array | None = None) -> Array:
    more = {} if p is None else {"p": p.T}
    return np.asarray(graph.evaluate(s=s.T, **more)["s"]).T


def close(a: Array, b: Array) -> None:
    """Check equality except for fused multiply-adds and our sines: the bound is that of test_backends."""
    np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("lanes", LANES)
def test_every_operation(lanes: int) -> None:
    def function(s: Any) -> dict[str, Any]:
        a, b = s
        c = sqrt(a * a + 1.0)
        return {
            "s": [
                where(a < b, sin(a) - cos(b), tanh(a * b)),
                maximum(exp(-c), minimum(log(c), atan2(a, b))) / (2.0 + abs(b)) - a * c,
            ]
        }

    g = trace("operations", function, {"s": (2,)})
    s = np.random.default_rng(0).normal(size=(2, lanes))
    close(ran(g, lanes, s), evaluated(g, s))


@pytest.mark.parametrize("lanes", LANES)
def test_calls_within_calls_share_a_workspace(lanes: int) -> None:
    """Nested calls share a workspace.

    The caller keeps values across calls, and callees of different sizes reuse memory.
    """
    small = trace("small", lambda x: {"y": [sin(x[0]) * x[1], cos(x[1]), 0.25]}, {"x": (2,)})

    def middle(x: Any) -> dict[str, Any]:
        y = small.call(x=[x[0], x[2]])["y"]
        z = small.call(x=[y[0] + x[1], y[1]])["y"]
        return {"y": [y[0] * z[1], z[0] - y[1] + sin(x[1]), y[2]]}

    g = trace("middle", middle, {"x": (3,)})

    def outer(s: Any) -> dict[str, Any]:
        kept = [sin(x) for x in s]
        a = g.call(x=s)["y"]
        b = small.call(x=[a[0], 1.5])["y"]
        c = g.call(x=[b[0], a[1], kept[0]])["y"]
        return {"s": [c[0] + kept[1], c[1] * kept[2] + a[2], b[1] - a[0]]}

    made = trace("outer", outer, {"s": (3,)})
    s = np.random.default_rng(1).normal(size=(3, lanes))
    close(ran(made, lanes, s), evaluated(made, s))


@pytest.mark.parametrize("lanes", [LANES[0], LANES[-1]])
def test_large_graphs_are_cut_and_calls_cross_the_cuts(lanes: int) -> None:
    step = trace("step", lambda x: {"y": [x[0] + 0.01 * sin(x[1]), x[1] - 0.01 * x[0]]}, {"x": (2,)})

    def long(s: Any) -> dict[str, Any]:
        x, early = list(s), s[0] * s[1]
        for k in range(CHUNK_ITEMS):  # three or more operations each
            x = list(step.call(x=x)["y"]) if k % 10 == 0 else [x[0] + 0.01 * x[1], x[1] - (0.01 + 1e-6 * k) * sin(x[0])]
        return {"s": [x[0] + early, x[1] * early]}

    g = trace("long", long, {"s": (2,)})
    assert len(g.nodes) > 3 * CHUNK_ITEMS
    text, _ = run_loop.source(Program(plain(2), tick=g, row=1, start=g), lanes, host().lanes("float64"))
    assert text.count("define internal void @start_") >= 2
    s = np.random.default_rng(2).normal(size=(2, lanes))
    np.testing.assert_allclose(ran(g, lanes, s), evaluated(g, s), rtol=1e-10)  # 1500 steps of rounding


@pytest.mark.parametrize("lanes", LANES)
def test_free_parameters_are_a_separate_array(lanes: int) -> None:
    inner = trace("inner", lambda x, p: {"y": [p[1] * sin(x), p[0] - x]}, {"x": (), "p": (2,)})

    def outer(s: Any, p: Any) -> dict[str, Any]:
        y = inner.call(x=s[0], p=p)["y"]
        return {"s": [y[0] + p[0], y[1]]}

    g = trace("outer", outer, {"s": (2,), "p": (2,)})
    rng = np.random.default_rng(3)
    s, p = rng.normal(size=(2, lanes)), rng.normal(size=(2, lanes))
    close(ran(g, lanes, s, p), evaluated(g, s, p))


def test_a_lane_gives_the_same_bits_alone_and_among_others() -> None:
    def function(s: Any) -> dict[str, Any]:
        return {"s": [sin(s[0]) * s[1] + tanh(s[0]), sqrt(s[0] * s[0] + 1.0) / (2.0 + cos(s[1])) - exp(s[0])]}

    g = trace("bits", function, {"s": (2,)})
    s = np.random.default_rng(4).normal(size=(2, LANES[-1]))
    together = ran(g, LANES[-1], s)
    alone = np.concatenate([ran(g, 1, s[:, k : k + 1]) for k in range(LANES[-1])], axis=1)
    np.testing.assert_array_equal(together, alone)


# -- loops


def block(p: Program, s: Array, inputs: Array, capacity: int, lanes: int = 0) -> LaneBlocks:
    """Return as many runs as s has, in one block or in blocks of so many lanes, with initial state."""
    runs = s.shape[1]
    given = inputs if p.nu else np.zeros((runs, 1, 0))
    rows = np.full((runs, capacity, p.row), np.nan)
    made = LaneBlocks(CompiledProgram(p, lanes or runs), s, np.zeros((0, runs)), given, rows)
    made.start_remaining()
    return made


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("kind", ["plain", "fed", "watched", "all"])
def test_run_loop_equals_the_loop_in_python(kind: str, lanes: int) -> None:
    """Blocks of ticks of any length, with little space for rows at first, give the same rows, states and reasons."""
    p = program(kind)
    s, inputs = begun(lanes, [23, 0, 31, 7, 1])
    machine, spelled = block(p, s, inputs, 4), Spelled(p, s, inputs)
    close(machine.state, spelled.s)
    reasons = []
    for ticks in [1, 2, 3, 5, 8, 1, 13, 21, 34, 55]:
        capacity = machine.rows.shape[1]
        expected = spelled.run(ticks, capacity)
        machine.advance(ticks)
        reasons.append(expected)
        close(machine.state, spelled.s)
        assert machine.counts.tolist() == [len(r) for r in spelled.rows]
        assert machine.rows.shape[1] == capacity * (2 if expected == FULL else 1)
        assert machine.done == (expected == DONE)
        if machine.done:  # a finished lane stays unchanged in further calls
            spelled.run = lambda ticks, capacity: DONE  # type: ignore[method-assign]
    assert {DONE, PAUSE, FULL} == set(reasons)
    for lane in range(lanes):
        close(machine.rows[lane, : machine.counts[lane]], np.array(spelled.rows[lane]).reshape(-1, p.row))


def test_a_full_record_does_not_move_the_others() -> None:
    """A full record does not stop the other lanes: only lanes that have a row to write need room for it."""
    lanes = LANES[-1]
    if lanes == 1:
        pytest.skip("this processor has one lane")
    p = program("plain")
    s, inputs = begun(lanes, [30, 2])
    machine = block(p, s, inputs, 3)  # enough for lanes that end after two ticks
    machine.advance(1000)
    assert not machine.done
    assert machine.rows.shape[1] == 6
    assert machine.counts.tolist() == [3, 2] * (lanes // 2)


def test_run_by_run_or_in_blocks_is_the_same() -> None:
    """Running in one call or in blocks of ticks gives the same result."""
    p = program("all")
    s, inputs = begun(LANES[-1], [40, 17, 3])
    one, many = block(p, s, inputs, 64), block(p, s, inputs, 64)
    one.advance(10_000)
    while not many.done:
        many.advance(1)
    np.testing.assert_array_equal(one.state, many.state)
    np.testing.assert_array_equal(one.counts, many.counts)
    np.testing.assert_array_equal(one.rows, many.rows)


@pytest.mark.parametrize("kind", ["plain", "fed", "watched", "all"])
def test_blocks_one_after_the_other_are_as_each_alone(kind: str) -> None:
    """Blocks one after the other give the results of each alone.

    Some end in the first call and some in a later one, and some have no room for rows at first.
    """
    p, lanes = program(kind), LANES[-1]
    s, inputs = begun(7 * lanes, [23, 0, 31, 7, 1, 90])
    together = block(p, s, inputs, 2, lanes)
    calls = 0
    while not together.done:
        together.advance(5 if calls < 2 else None)
        calls += 1
    assert 2 < calls < 50
    for k in range(0, 7 * lanes, lanes):
        mine = slice(k, k + lanes)
        alone = block(p, s[:, mine], inputs[mine], 128)
        alone.advance(10_000)
        assert alone.done
        np.testing.assert_array_equal(together.state[:, mine], alone.state)
        np.testing.assert_array_equal(together.counts[mine], alone.counts)
        for i, n in enumerate(alone.counts):
            np.testing.assert_array_equal(together.rows[k + i, :n], alone.rows[i, :n])


def test_a_loop_of_dead_lanes_is_done_at_once() -> None:
    p = program("watched")
    s, inputs = begun(LANES[-1], [0])
    machine = block(p, s, inputs, 1)
    before = machine.state.copy()
    machine.advance(5)
    assert machine.done
    assert not machine.counts.any()
    np.testing.assert_array_equal(machine.state, before)


def test_no_ticks_no_change() -> None:
    p = program("plain")
    s, inputs = begun(LANES[-1], [5])
    machine = block(p, s, inputs, 4)
    before = machine.state.copy()
    machine.advance(0)
    assert not machine.done
    assert not machine.counts.any()
    np.testing.assert_array_equal(machine.state, before)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_many_blocks_on_some_threads(threads: int) -> None:
    """Several threads run a number of runs that is no multiple of the lanes; shares grow, and reach one."""
    p, told = program("all"), []
    code, runs = CompiledProgram(p, LANES[-1]), 5 * LANES[-1] + 3
    blocks, references = [], []
    for k in range(0, runs, LANES[-1]):
        s, inputs = begun(LANES[-1], [30, 11, 4], seed=k)
        dead = np.arange(k, k + LANES[-1]) >= runs
        for sign in ("live", "due", "left"):
            s[AT[sign]] = np.where(dead, 0.0, s[AT[sign]])
        rows = np.zeros((LANES[-1], 8, p.row))
        blocks.append(partial(LaneBlocks, code, s, np.zeros((0, LANES[-1])), inputs, rows))
        references.append(Spelled(p, s, inputs))
    kept: dict[int, LaneBlocks] = {}
    assert run_all(blocks, threads, told.append, lambda b: float(b.state[AT["n"]].max()) / 30, kept.__setitem__)
    assert sorted(kept) == list(range(len(blocks)))
    assert all(0.0 <= share <= 1.0 for share in told)
    assert threads > 1 or told == sorted(told)
    for k, spelled in enumerate(references):
        machine = kept[k]
        assert spelled.run(10_000, 10_000) == DONE
        close(machine.state, spelled.s)
        for lane in range(LANES[-1]):
            close(machine.rows[lane, : machine.counts[lane]], np.array(spelled.rows[lane]).reshape(-1, p.row))


def test_ctrl_c_returns_all_blocks() -> None:
    """Ctrl-C returns all blocks: finished ones, the running one, and those that had not begun."""
    p = program("plain")
    code = CompiledProgram(p, 1)
    made = []
    for k in range(4):
        s, _ = begun(1, [1000 if k else 3], seed=k)
        made.append(partial(LaneBlocks, code, s, np.zeros((0, 1)), np.zeros((1, 1, 0)), np.zeros((1, 8, p.row))))
    kept: dict[int, LaneBlocks] = {}

    def interrupt(share: float) -> None:
        if share > 0.25:
            raise KeyboardInterrupt

    assert not run_all(made, 1, interrupt, lambda b: float(b.state[AT["n"], 0]) / 1000, kept.__setitem__)
    assert sorted(kept) == [0, 1, 2, 3]
    assert [kept[k].done for k in range(4)] == [True, False, False, False]
    assert kept[1].state[AT["n"], 0] > 0
    assert kept[3].state[AT["n"], 0] == 0


def test_flag_names_the_array_of_the_state() -> None:
    """The state is in the array that the flag names: after an odd number of ticks it is the other one."""
    p = program("plain")
    s, inputs = begun(1, [50])
    machine = block(p, s, inputs, 64)
    for ticks, n in ((1, 1), (2, 3), (3, 6), (1, 7)):
        machine.advance(ticks)
        assert machine.state[AT["n"], 0] == n
    assert SWAPPED & (DONE | PAUSE | FULL) == 0


def test_equal_programs_have_equal_text() -> None:
    a, b = (run_loop.source(program("all"), 1, host().lanes("float64")) for _ in range(2))
    assert a == b
