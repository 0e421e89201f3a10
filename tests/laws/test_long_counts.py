"""Counters stay exact on every target and precision beyond 2**23, 2**24, 2**31, 2**32 and 2**47 steps.

A run of that length would take too long, so the counters start some steps before such a number, and the machine takes
some more. Python integers give the expected result.
"""

from __future__ import annotations

import ctypes
import itertools
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build.compilation import Where
from bellcrank.emit.c.exported_program import ExportedProgram
from bellcrank.errors import InputError
from bellcrank.graph import Program
from bellcrank.graph.layout import CounterWords, join_words, split_words
from bellcrank.graph.program import DRAWN, FINISHED
from bellcrank.sim.program.counter_rng import Random, seed_numbers
from bellcrank.sim.program.step_limits import check_counts, check_gradient_counts
from bellcrank.sim.run.gpu_runs import GpuProgram
from bellcrank.sim.run.lane_blocks import CompiledProgram, LaneBlocks
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.stepper.stepper_actions import ActionBuilder, StepperTask
from emulated import emulated
from targets.test_c99 import CC, needs_cc, run
from targets.test_export_wasm import needs_node, said

__all__ = ["emulated"]  # a fixture
Array = np.ndarray[Any, Any]
H = 2.0**-10  # a step that both precisions represent exactly
BEFORE, STEPS = 5, 19
JUMPS = (0, 2**23, 2**24, 2**31, 2**32, 2**47)
FAST, SLOW, LATE = 3, 4, 7  # steps: two periods and a delay
LINE, STRIDE = 5, 6  # steps for which a line of inputs is valid, and steps between rows
FIRST = 10.0  # the line of inputs that is valid at the start of a run


def machine() -> bc.System:
    """A link without forces, and two controllers that count their samples; one of them also records its input."""
    b = bc.Builder("clock")
    b.body("link", mass=1.0, com=(0, 0, 0), inertia=(1.0, 1.0, 1.0))
    b.joint("hinge", "revolute", "ground", "link", axis=(0, 1, 0))
    count = lambda name: lambda t, q, v, x, u: ({f"{name}.held": x[name] + 1.0}, {name: x[name] + 1.0})  # noqa: E731
    sampled = [
        bc.Sampled(count(name), every * H, {f"{name}.held": 0.0}, {name: 0.0}, delay)
        for name, every, delay in (("fast", FAST, 0.0), ("slow", SLOW, LATE * H))
    ]
    return bc.system(b.build(), control=lambda t, q, v, x, u: [0.0 * u["push"]], sampled=sampled, inputs={"push": 0.0})


@dataclass(frozen=True)
class Expected:
    """Counter values after the steps [first, first + STEPS), by integers."""

    first: int

    @property
    def last(self) -> int:
        return self.first + STEPS

    def samples(self, every: int, late: int = 0) -> list[int]:
        """Return the steps at which a clock is due."""
        return [n for n in range(self.first, self.last) if n >= late and (n - late) % every == 0]

    @property
    def held(self) -> float:
        """Return the last value received from the delayed controller: the count at its sample LATE steps before."""
        arrivals = self.samples(SLOW, LATE)
        before = [n for n in self.samples(SLOW) if arrivals and n <= arrivals[-1] - LATE]
        return float(len(before))

    def phases(self) -> list[float]:
        """Return the clocks' phases at the beginning of the steps."""
        n = self.first
        late = (n - LATE) % SLOW if n >= LATE else n - LATE
        return [float(n % FAST), float(n % SLOW), float(late)]

    @property
    def fresh(self) -> float:
        return float(0.0 in self.phases())

    def begun(self) -> dict[str, Any]:
        """Return the fields of a Program's state."""
        return {
            "n": self.first, "t": self.first * H, "phases": np.array([self.phases()]), "fresh": self.fresh, "h": H,
            "live": 1.0, "last": self.last, "stride": STRIDE, "next": (self.first // STRIDE + 1) * STRIDE,
            "input": FIRST, "input_last": 99.0, "input_steps": LINE, "held": self.first % LINE,
        }  # fmt: skip

    def check(self, layout: Any, state: Array, dtype: str) -> None:
        """Check the state of one run at its end."""
        assert layout.count(state, "n") == self.last
        assert state[layout.place("t")] == np.dtype(dtype).type(np.float64(self.last) * H)
        names = ["fast.held", "fast", "slow.held", "slow"]
        y = dict(zip(["q", "v", *names], state[layout.span("y")][:6], strict=True))
        assert (y["fast"], y["slow"]) == (len(self.samples(FAST)), len(self.samples(SLOW)))
        assert y["fast.held"] == y["fast"]
        arrived = self.held  # no value was in transit before the first step
        assert y["slow.held"] == arrived
        lines = sum(n % LINE == 0 for n in range(self.first + 1, self.last + 1))
        assert state[layout.place("input")] == FIRST + lines

    def rows(self) -> list[float]:
        on_grid = {n for n in range(self.first + 1, self.last + 1) if n % STRIDE == 0}
        return [n * H for n in sorted(on_grid | {self.last})]


@pytest.fixture(params=JUMPS, ids=lambda n: f"2^{n.bit_length() - 1}" if n else "0")
def expected(request: pytest.FixtureRequest) -> Expected:
    return Expected(max(0, request.param - BEFORE))


def program(dtype: str, rows: bool = True) -> Program:
    return Simulator(machine()).program(rows=rows, dtype=dtype)


# -- graphs, the loops of the CPU and of the GPU


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_graphs(dtype: str, expected: Expected) -> None:
    """Evaluate the graphs in numbers of that precision."""
    p = program(dtype)
    s = p.layout.array(1, {"y": np.zeros((1, p.layout.span("y").stop - 1)), **expected.begun()}, dtype=dtype)[:, 0]
    u, times = np.zeros(1, dtype), []
    while s[p.live] > 0.0:
        for name in ("renew", "tick"):
            if name == "tick" or s[p.fresh] > 0.0:
                s = np.asarray(getattr(p, name).evaluate(s=s, u=u)["s"], dtype)
        times += [float(s[0])] * int(s[p.due])
    expected.check(p.layout, s, dtype)
    assert times == [float(np.dtype(dtype).type(t)) for t in expected.rows()]


@pytest.mark.parametrize("lanes", [1, 4])
def test_the_loop_of_the_cpu(lanes: int, expected: Expected) -> None:
    p = program("float64")
    s = p.layout.array(lanes, {"y": np.zeros((lanes, p.layout.span("y").stop - 1)), **expected.begun()})
    rows = np.empty((lanes, 64, p.row))
    blocks = LaneBlocks(CompiledProgram(p, lanes), s, np.zeros((0, lanes)), np.zeros((lanes, 100, 1)), rows)
    while not blocks.done:
        blocks.advance()
    expected.check(p.layout, blocks.state[:, -1], "float64")
    assert blocks.rows[-1, : blocks.counts[-1], 0].tolist() == expected.rows()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_loop_of_the_gpu(dtype: str, expected: Expected, emulated: Callable[[int], None]) -> None:
    p = program(dtype)
    s = p.layout.array(2, {"y": np.zeros((2, p.layout.span("y").stop - 1)), **expected.begun()}, dtype=dtype)
    pieces = GpuProgram(p, dtype).run_to_end(s, np.zeros((1, 100, 1)), np.zeros((2, 0)), 64, lambda s: True)
    expected.check(p.layout, s[:, 1], dtype)
    times = [float(row[0, 1]) for rows, counts in pieces for row in rows[: counts[1]]]
    assert times == [float(np.dtype(dtype).type(t)) for t in expected.rows()]


# -- steppers


def test_a_stepper(expected: Expected) -> None:
    """Take actions of several steps, each of which overwrites most of the state."""
    env = bc.stepper(machine(), 3, 4 * H, step=H, start=lambda random: {"hinge.q": random.uniform()})
    env.reset()
    layout, everyone = env._action.layout, np.ones(3, bool)
    for name in ("n", "starts"):
        env._write_count(name, everyone, np.full(3, float(expected.first)))
    env._write(layout.places["phases"], everyone, np.tile(expected.phases(), (3, 1)))
    for _ in range(5):
        env.step(np.zeros((3, 1)))
    samples = [n for n in range(expected.first, expected.first + 20) if n % FAST == 0]
    assert (env.state[:, 3] == len(samples)).all()
    assert (env.t == (expected.first + 20) * H).all()
    env.reset()
    first = env.state[:, 0]
    env.reset()
    second = env.state[:, 0]
    env.reset()
    assert not np.isin(np.concatenate([second, env.state[:, 0]]), first).any()
    assert (env._read(layout.places["starts"]) == expected.first + 3).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_actions(dtype: str, expected: Expected) -> None:
    """The graphs of a stepper as a GPU computes them: time, samples, limit and starts."""
    sim = Simulator(machine(), where=Where(dtype=dtype))
    limit = float(expected.first + 4 * 5)
    task = StepperTask(("t", "fast"), start=lambda random: {"hinge.q": random.uniform()}, limit=limit)
    made = ActionBuilder(sim.dynamics, sim.integrator, sim.self_contained_program(), H, 4, task, None, dtype).action()
    begun = {"n": expected.first, "starts": expected.first, "phases": np.array([expected.phases()])}
    c, u, ended = made.layout.array(1, begun, dtype=dtype)[:, 0], np.zeros(1, dtype), []
    for _ in range(5):
        s = _evaluated(made.open, dtype, c=c, u=u)["s"]
        for _ in range(made.ticks):
            if s[made.program.fresh] > 0.0:
                s = _evaluated(made.program.graphs["renew"], dtype, s=s, u=u)["s"]
            s = _evaluated(made.program.tick, dtype, s=s, u=u)["s"]
        found = _evaluated(made.close, dtype, c=c, s=s, u=u)
        c[: made.changing], row = found["c"], found["row"]
        ended.append(float(found["end"][0]))
    assert made.layout.count(c, "n") == expected.first + 20
    assert row[0] == np.dtype(dtype).type(np.float64(expected.first + 20) * H)
    assert row[1] == sum(n % FAST == 0 for n in range(expected.first, expected.first + 20))
    assert ended == [0.0] * 4 + [float(FINISHED)]
    starts = []
    for k in range(4):
        c[made.layout.place("new")] = DRAWN
        c = _evaluated(made.begin, dtype, c=c)["c"]
        assert made.layout.count(c, "starts") == expected.first + 1 + k
        assert made.layout.count(c, "n") == 0
        starts.append(float(c[0]))
    assert len(set(starts)) == 4


def _evaluated(graph: Any, dtype: str, **given: Array) -> dict[str, Array]:
    with np.errstate(over="ignore"):  # float32 overflows to infinity for times that never occur
        found = graph.evaluate(**{name: x for name, x in given.items() if name in graph.inputs})
    return {name: np.asarray(x, dtype) for name, x in found.items()}


# -- exports


def _set(s: ExportedProgram, state: Array, expected: Expected) -> None:
    """Set the counters of an exported machine's state."""
    layout = s.program.layout
    values = {name: x for name, x in expected.begun().items() if name in s.kept_indices and name != "h"}
    for name, x in values.items():
        words = layout.words(name)
        found = np.ravel(x) if words is None else split_words(x, words)
        state[s.field_offsets[name] : s.field_offsets[name] + len(found)] = found


def _check(s: ExportedProgram, state: Array, expected: Expected, dtype: str) -> None:
    words, at = s.program.layout.words("n") or 1, s.field_offsets["n"]
    assert join_words(state[at : at + words]) == expected.last
    assert state[0] == np.dtype(dtype).type(np.float64(expected.last) * H)
    y = state[1:7]
    assert (y[3], y[5], y[4]) == (len(expected.samples(FAST)), len(expected.samples(SLOW)), expected.held)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[ExportedProgram, ctypes.CDLL]]:
    from bellcrank.exporting.export_content import export_content
    from bellcrank.sim.settings import Solver

    made = {}
    for dtype in ("float64", "float32"):
        folder = tmp_path_factory.mktemp(dtype)
        bc.export(machine(), folder / "it", dtype=dtype, step=H)
        run(folder / "it", str(CC), "-std=c99", "-O1", "-fPIC", "-shared", "clock.c", "-o", "it.so", "-lm")
        s = export_content(machine(), (), "clock", Solver(step=H), (), dtype).stepper
        assert s is not None
        made[dtype] = s, ctypes.CDLL(str(folder / "it" / "it.so"))
    return made


@needs_cc
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_c(dtype: str, expected: Expected, libraries: Any) -> None:
    s, code = libraries[dtype]
    state, u = np.zeros(len(s.state), dtype), np.zeros(1, dtype)
    given = [ctypes.c_void_p(x.ctypes.data) for x in (state, u)]
    code.clock_init(*given)
    _set(s, state, expected)
    assert [code.clock_step(*given) for _ in range(STEPS)] == [0] * STEPS
    _check(s, state, expected, dtype)


@needs_cc
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_exported_c_continues_after_a_restart(dtype: str, expected: Expected, libraries: Any) -> None:
    """After an input that jumped, counters and phases are kept."""
    s, code = libraries[dtype]
    state, u = np.zeros(len(s.state), dtype), np.zeros(1, dtype)
    given = [ctypes.c_void_p(x.ctypes.data) for x in (state, u)]
    code.clock_init(*given)
    _set(s, state, expected)
    for _ in range(STEPS):
        if expected.first:
            code.clock_start(*given)
        assert code.clock_step(*given) == 0
    _check(s, state, expected, dtype)


@needs_node
def test_wasm(tmp_path: Path) -> None:
    from bellcrank.exporting.export_content import export_content
    from bellcrank.sim.settings import Solver

    s = export_content(machine(), (), "clock", Solver(step=H)).stepper
    assert s is not None
    bc.export(machine(), tmp_path / "it", to="wasm", step=H)
    layout, script = s.program.layout, "const found = [];"
    cases = [Expected(max(0, n - BEFORE)) for n in JUMPS]
    for case in cases:
        start = layout.array(1, case.begun())[:, 0]
        names = ("n", "t", "phases", "fresh")
        places = [k for name in names for k in np.atleast_1d(np.r_[layout.places[name]])]
        script += "m.reset();" + "".join(f"m.now[{k}] = {start[k]!r};".replace("np.float64", "") for k in places)
        script += f"m.step({STEPS}); found.push([...m.now]);"
    for case, state in zip(cases, said(tmp_path / "it", script + "console.log(JSON.stringify(found));"), strict=True):
        now = np.array([np.nan if x is None else x for x in state])
        assert now[layout.place("n")] == case.last
        assert now[0] == case.last * H
        assert (now[4], now[6], now[5]) == (len(case.samples(FAST)), len(case.samples(SLOW)), case.held)


@needs_cc
@pytest.mark.parametrize("version", [2, 3])
def test_fmu(version: int, tmp_path: Path) -> None:
    """The FMU state as bytes begins with a mark, then the machine's state."""
    pytest.importorskip("fmpy", reason="FMPy is not installed")
    from bellcrank.exporting.export_content import export_content
    from bellcrank.sim.settings import Solver
    from targets.test_export_fmu import instance

    s = export_content(machine(), (), "clock", Solver(step=H)).stepper
    assert s is not None
    path = bc.export(machine(), tmp_path / "it.fmu", to=f"fmu{version}", step=H)
    with instance(path) as (made, _):
        word = "FMUstate" if version == 2 else "FMUState"
        numbers = 8 * len(s.state)
        for case in (Expected(max(0, n - BEFORE)) for n in JUMPS):
            kept = getattr(made, f"get{word}")()
            made.reset()
            if version == 2:
                made.setupExperiment(startTime=0.0)
            made.enterInitializationMode()
            made.exitInitializationMode()
            data = bytearray(
                getattr(made, "serializeFMUstate" if version == 2 else "serializeFMUState")(
                    getattr(made, f"get{word}")()
                )
            )
            state = np.frombuffer(data, float, len(s.state), 32).copy()
            _set(s, state, case)
            data[32 : 32 + numbers] = state.tobytes()
            restored = getattr(made, "deSerializeFMUstate" if version == 2 else "deserializeFMUState")(bytes(data))
            getattr(made, f"set{word}")(restored)
            made.doStep(case.first * H, STEPS * H)
            after = getattr(made, "serializeFMUstate" if version == 2 else "serializeFMUState")(
                getattr(made, f"get{word}")()
            )
            _check(s, np.frombuffer(bytes(after), float, len(s.state), 32), case, "float64")
            getattr(made, f"free{word}")(kept)
    shutil.rmtree(tmp_path, ignore_errors=True)


# -- counting, random streams, and refusals


@pytest.mark.parametrize("words", [1, 2])
def test_counts_are_whole_numbers(words: int) -> None:
    """Compare with Python integers, in numbers of the precision that uses so many words."""
    kind = {1: np.float64, 2: np.float32}[words]
    rng = np.random.default_rng(0)
    numbers = [0, 1, *(2**k + d for k in (12, 23, 24, 25, 31, 32, 46) for d in (-1, 0, 1))]
    numbers += [int(x) for x in rng.integers(0, 2**46, 50)]

    def count(n: int) -> CounterWords:
        return CounterWords([kind(x) for x in split_words(n, words)])

    for a, b in itertools.product(numbers, repeat=2):
        assert join_words(count(a).plus(count(b))) == a + b
        assert bool(count(a).reached(count(b))) == (a >= b)
    for a in numbers:
        assert join_words(count(a).incremented()) == a + 1
        assert count(a).value == kind(a)
        assert not count(a).reached(count(2**47))


@pytest.mark.parametrize("start", [0, 2**12, 2**23, 2**24, 2**31, 2**32, 2**47])
def test_random_numbers_are_the_same_in_both_precisions_and_never_again(start: int) -> None:
    def drawn(words: int, kind: Any, n: int, run: int) -> tuple[float, ...]:
        given = [CounterWords([kind(x) for x in split_words(k, words)]) for k in (run, n)]
        random = Random([kind(x) for x in seed_numbers(3)], *given)
        return tuple(float(random.uniform()) for _ in range(3))

    near = [n for n in range(start - 3, start + 4) if n >= 0]
    double = [drawn(1, np.float64, n, run) for n in near for run in (0, 1, 2**24 + 1)]
    single = [drawn(2, np.float32, n, run) for n in near for run in (0, 1, 2**24 + 1)]
    np.testing.assert_allclose(single, double, rtol=2e-7)
    others = [drawn(1, np.float64, n % 2**k, run) for n in near for run in (0, 1) for k in (12, 24) if n >= 2**k]
    assert len({*double, *others}) == len(set(double)) + len(set(others))
    assert len(set(double)) == len(double)


def test_a_program_for_float64_is_no_program_for_float32(tmp_path: Path) -> None:
    p = Simulator(machine()).self_contained_program()
    for use in (lambda: bc.export(p, tmp_path / "it", dtype="float32"), lambda: GpuProgram(p, "float32")):
        with pytest.raises(InputError, match=r"counts its steps in one number.*dtype=\"float32\""):
            use()
    bc.export(Simulator(machine()).self_contained_program(dtype="float32"), tmp_path / "it", dtype="float32")


def test_counts_beyond_float32_are_rejected() -> None:
    s = machine()
    check_counts(s, H, "float64", 1e9, 2)
    check_counts(s, H, "float32", 1e9, 1)
    with pytest.raises(InputError, match=r"input_step.*float32"):
        check_counts(s, H, "float32", 2.0**15, 2)
    with pytest.raises(InputError, match=r"lines of inputs.*float32"):
        check_counts(s, H, "float32", H, 2**24 + 1)
    check_gradient_counts(s, H, "float64", 2**40, H, 2)
    check_gradient_counts(s, H, "float32", 2**21, H, 2)
    with pytest.raises(InputError, match=r"steps of the gradient.*float32"):
        check_gradient_counts(s, H, "float32", 2**21 + 1, H, 2)
    with pytest.raises(InputError, match=r"period of the sampled controller.*float32"):
        check_counts(s, H * 2.0**-24, "float32")
