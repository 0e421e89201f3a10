"""Functions that take a duration, a count or a rate refuse invalid values with a clear error, at once, and never hang.

One table lists hostile values, another the entries that take such a number: Python's entries here, those of FMUs, C and
WebAssembly below.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import bellcrank as bc
from bellcrank import actuators, control, gym, identify
from bellcrank.argument_errors import explain_argument_errors
from bellcrank.cli import app
from bellcrank.errors import BellcrankError, InputError
from bellcrank.sim import run_arguments

PATIENCE = 10.0  # seconds; a call that does any work for such a number takes hours
NO_DURATION = {
    "minus": -1.0, "zero": 0.0, "nan": math.nan, "inf": math.inf, "minus inf": -math.inf, "text": "1.0", "true": True,
    "list": [1.0], "complex": 1j, "huge integer": 10**400, "array": np.array([1.0, 2.0]), "1e300": 1e300,
}  # fmt: skip
NO_COUNT = NO_DURATION | {"half": 0.5, "one": 1.0, "text": "3", "1e300": 1e300, "2^63": 2**63}
Call = Callable[[Any], Any]


def plant() -> bc.System:
    b = bc.Builder("pendulum")
    b.body("bob", mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0), damping=0.1)
    return bc.system(b.build(), control=lambda t, q, v, x, u: [u["push"]], inputs={"push": 0.0})


def table(rows: int = 5) -> dict[str, Any]:
    return {"t": 0.1 * np.arange(rows), "hinge.q": 0.1 * np.cos(0.3 * np.arange(rows)), "push": np.zeros(rows)}


def sampled(**given: Any) -> bc.Sampled:
    return bc.Sampled(lambda t, q, v, x, u: {"a": 1.0}, outputs={"a": 0.0}, **{"every": 0.01, **given})


def durations(tmp: Path) -> dict[str, Call]:
    """Every entry that takes seconds (or, like a tolerance, a number above zero)."""
    s, over = plant(), {"hinge.q": bc.uniform(0.0, 1.0)}
    events = [bc.Event("top", lambda t, q, v, x, u: v[0], "record")]
    study = {"to": tmp / "s", "summary": ["max(hinge.q)"]}
    return {
        "simulate seconds": lambda x: bc.simulate(s, x),
        "simulate seconds adaptive": lambda x: bc.simulate(s, x, integrator="dopri5", keep="final"),
        "simulate seconds events": lambda x: bc.simulate(s, x, events=events),
        "simulate step": lambda x: bc.simulate(s, 0.01, step=x),
        "simulate step first": lambda x: bc.simulate(s, 0.01, integrator="dopri5", tolerance=1e-6, step=x),
        "simulate tolerance": lambda x: bc.simulate(s, 0.01, integrator="dopri5", tolerance=x),
        "simulate every": lambda x: bc.simulate(s, 0.01, every=x),
        "simulate input_step": lambda x: bc.simulate(s, 0.01, inputs={"push": [0.0, 1.0]}, input_step=x),
        "Solver baumgarte": lambda x: bc.Solver(baumgarte=x),
        "stepper every": lambda x: bc.stepper(s, every=x, step=1e-3),
        "stepper every alone": lambda x: bc.stepper(s, every=x),
        "stepper step": lambda x: bc.stepper(s, every=0.01, step=x),
        "stepper limit": lambda x: bc.stepper(s, limit=x),
        "follow seconds": lambda x: bc.stepper(s).follow(lambda t, y: [0.0], x),
        "gradient seconds": lambda x: bc.gradient(s, x, final="hinge.q"),
        "gradient step": lambda x: bc.gradient(s, 0.01, final="hinge.q", step=x),
        "gradient input_step": lambda x: bc.gradient(
            s, 0.01, final="hinge.q", inputs={"push": [0.0, 1.0]}, input_step=x
        ),
        "gradient tolerance": lambda x: bc.gradient(s, 0.01, final="hinge.q", integrator="dopri5", tolerance=x),
        "minimize tolerance": lambda x: bc.minimize(
            s, "max(hinge.q)", over, seconds=0.01, integrator="dopri5", tolerance=x
        ),
        "drive spin": lambda x: bc.Drive(s, 1000.0, spin=x),
        "Trot period": lambda x: control.Trot({}, "base", 0.2, 0.27, period=x),
        "Trot every": lambda x: control.Trot({}, "base", 0.2, 0.27, every=x),
        "fit step": lambda x: bc.fit(s, table(), ["bob.mass"], step=x),
        "study seconds": lambda x: bc.study(s, over, 2, seconds=x, **study),
        "study step": lambda x: bc.study(s, over, 2, seconds=0.01, step=x, **study),
        "study tolerance": lambda x: bc.study(s, over, 2, seconds=0.01, integrator="dopri5", tolerance=x, **study),
        "study input_step": lambda x: bc.study(s, over, 2, seconds=0.01, input_step=x, inputs={"push": [0.0]}, **study),
        "study every": lambda x: bc.study(s, over, 2, seconds=0.01, keep="rows", every=x, to=tmp / "s", summary=[]),
        "minimize seconds": lambda x: bc.minimize(s, "max(hinge.q)", over, seconds=x),
        "minimize step": lambda x: bc.minimize(s, "max(hinge.q)", over, seconds=0.01, step=x),
        "drive rate": lambda x: bc.Drive(s, x),
        "drive keep": lambda x: bc.Drive(s, 1000.0, keep=x),
        "drive seconds": lambda x: bc.drive(s, 1000.0, x),
        "slow factor": lambda x: bc.Drive(s, 1000.0).slow(x),
        "export step": lambda x: bc.export(s, tmp / "e", step=x),
        "export tolerance": lambda x: bc.export(s, tmp / "e", integrator="dopri5", tolerance=x),
        "Sampled every": lambda x: sampled(every=x),
        "Sampled delay": lambda x: sampled(delay=x),
        "Sampled quantum": lambda x: sampled(quantum=x),
        "linearize step": lambda x: bc.linearize(s, step=x),
        "excite seconds": lambda x: identify.excite(_base(s), seconds=x),
        "excite rate": lambda x: identify.excite(_base(s), rate=x),
    }  # fmt: skip


def _base(s: bc.System) -> Any:
    return identify.base_parameters(s.mechanism)


def counts(tmp: Path) -> dict[str, Call]:
    """Every entry that takes a number of things."""
    s, over = plant(), {"hinge.q": bc.uniform(0.0, 1.0)}
    study = {"to": tmp / "s", "summary": ["max(hinge.q)"], "seconds": 0.01}
    return {
        "simulate batch": lambda x: bc.simulate(s, 0.01, batch=x),
        "simulate threads": lambda x: bc.simulate(s, 0.01, threads=x),
        "simulate max_steps": lambda x: bc.simulate(s, 0.01, integrator="dopri5", max_steps=x),
        "stepper batch": lambda x: bc.stepper(s, x),
        "stepper threads": lambda x: bc.stepper(s, 2, threads=x),
        "gradient checkpoints": lambda x: bc.Adjoint(s, final="hinge.q").run(0.01, checkpoints=x),
        "gradient batch": lambda x: bc.gradient(s, 0.01, final="hinge.q", batch=x),
        "fit starts": lambda x: bc.fit(s, table(), ["bob.mass"], bounds={"bob.mass": (0.5, 2.0)}, starts=x),
        "study runs": lambda x: bc.study(s, over, x, **study),
        "gradient threads": lambda x: bc.gradient(s, 0.01, final="hinge.q", threads=x),
        "fit threads": lambda x: bc.fit(s, table(), ["bob.mass"], threads=x),
        "study threads": lambda x: bc.study(s, over, 2, threads=x, **study),
        "study max_steps": lambda x: bc.study(s, over, 2, integrator="dopri5", max_steps=x, **study),
        "linearize threads": lambda x: bc.linearize(s, threads=x),
        "kernel threads": lambda x: bc.kernel(s.mechanism, "bias", threads=x),
        "compile threads": lambda x: bc.compile(lambda x: {"y": x[0]}, inputs={"x": 1}, threads=x),
        "drive most": lambda x: bc.Drive(s, 1000.0, most=x),
        "study chunk": lambda x: bc.study(s, over, 2, chunk=x, **study),
        "study workers": lambda x: bc.study(s, over, 2, workers=x, **study),
        "minimize tries": lambda x: bc.minimize(s, "max(hinge.q)", over, seconds=0.01, tries=x),
        "drive substeps": lambda x: bc.Drive(s, 1000.0, substeps=x),
        "drive every": lambda x: bc.Drive(s, 1000.0, every=x),
        "excite harmonics": lambda x: identify.excite(_base(s), harmonics=x),
        "excite tries": lambda x: identify.excite(_base(s), tries=x),
        "gym batch": lambda x: gym.make("cart_pole_balance", x),
    }


# Valid values of an entry: words with a special meaning, and numbers that are valid there.
ABOVE_ZERO = (
    "simulate tolerance",
    "study tolerance",
    "export tolerance",
    "Solver baumgarte",
    "Sampled quantum",
    "minimize tolerance",
    "Trot period",
)
RIGHT = {(entry, "1e300") for entry in ABOVE_ZERO}  # any number above zero
RIGHT |= {(entry, "zero") for entry in ("drive spin", "drive most", "Sampled delay")}  # zero means none
TINY = 1e-300  # valid as a duration, but too short for what is derived from it


def accepted(call: Call, entry: str, wrong: dict[str, Any]) -> list[str]:
    """The values that were not refused with an error of the package."""
    found = []
    for word, value in wrong.items():
        if (entry, word) in RIGHT:
            continue
        try:
            call(value)
            found.append(word)
        except BellcrankError:
            pass
    return found


@pytest.fixture
def soon() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < PATIENCE


@pytest.mark.parametrize("entry", durations(Path()))
def test_invalid_durations_are_rejected(entry: str, tmp_path: Path, soon: None) -> None:
    assert accepted(durations(tmp_path)[entry], entry, NO_DURATION) == []


@pytest.mark.parametrize("entry", counts(Path()))
def test_invalid_counts_are_rejected(entry: str, tmp_path: Path, soon: None) -> None:
    assert accepted(counts(tmp_path)[entry], entry, NO_COUNT) == []


def too_much(tmp: Path) -> dict[str, Callable[[], Any]]:
    """Calls with valid numbers whose product would need months or all memory."""
    s, over, weeks = plant(), {"hinge.q": bc.uniform(0.0, 1.0)}, 1e10
    study = {"to": tmp / "s", "summary": ["max(hinge.q)"]}
    nanoseconds = table() | {"t": 1e8 * np.arange(5)}
    return {
        "simulate": lambda: bc.simulate(s, weeks, keep="final"),
        "simulate tiny step": lambda: bc.simulate(s, 1.0, step=TINY, keep="final"),
        "simulate rows": lambda: bc.simulate(s, 1e8),
        "stepper": lambda: bc.stepper(s, every=weeks, step=1e-3),
        "stepper tiny step": lambda: bc.stepper(s, every=1.0, step=TINY),
        "follow": lambda: bc.stepper(s).follow(lambda t, y: [0.0], 1e9),
        "gradient": lambda: bc.gradient(s, weeks, final="hinge.q"),
        "fit": lambda: bc.fit(s, nanoseconds, ["bob.mass"]),
        "fit tiny step": lambda: bc.fit(s, table(), ["bob.mass"], step=TINY),
        "fit that chooses its steps": lambda: bc.fit(s, nanoseconds, ["bob.mass"], integrator="dopri5"),
        "study": lambda: bc.study(s, over, 2, seconds=weeks, **study),
        "study tiny step": lambda: bc.study(s, over, 2, seconds=1.0, step=TINY, **study),
        "minimize": lambda: bc.minimize(s, "max(hinge.q)", over, seconds=weeks),
        "minimize tiny step": lambda: bc.minimize(s, "max(hinge.q)", over, seconds=1.0, step=TINY),
        "drive": lambda: bc.Drive(s, 1000.0, substeps=10**9),
        "Sampled": lambda: sampled(delay=1e9),
        "excite": lambda: identify.excite(_base(s), seconds=1e6, rate=1e6),
    }


@pytest.mark.parametrize("entry", too_much(Path()))
def test_endless_work_is_rejected(entry: str, tmp_path: Path, soon: None) -> None:
    with pytest.raises(BellcrankError):
        too_much(tmp_path)[entry]()


HUGE = 2**40  # elements of a view that occupies eight bytes; its copy takes terabytes


def too_large(tmp: Path) -> dict[str, Callable[[], Any]]:
    """Calls with an array that fits into memory only because it repeats one number."""
    s, column, rows = plant(), np.broadcast_to(0.0, (HUGE,)), np.broadcast_to(0.0, (HUGE, 1))
    whole, over = np.broadcast_to(1, (HUGE, 1)), {"hinge.q": bc.uniform(0.0, 1.0)}
    loaded = bc.system(s.mechanism.free("bob.mass"))
    study: dict[str, Any] = {"to": tmp / "s", "summary": ["max(hinge.q)"], "seconds": 0.01}
    return {
        "simulate q0": lambda: bc.simulate(s, 0.01, q0=rows),
        "simulate q0 of integers": lambda: bc.simulate(s, 0.01, q0=whole),
        "simulate q0 by name": lambda: bc.simulate(s, 0.01, q0={"hinge": column}),
        "simulate v0": lambda: bc.simulate(s, 0.01, v0=rows),
        "simulate x0": lambda: bc.simulate(s, 0.01, x0=rows),
        "simulate inputs": lambda: bc.simulate(s, 0.01, inputs={"push": column}),
        "simulate parameters": lambda: bc.simulate(loaded, 0.01, parameters={"bob.mass": column}),
        "linearize element": lambda: bc.linearize(s, at={"hinge.q": column}),
        "linearize vector": lambda: bc.linearize(s, at={"q": rows}),
        "linearize input": lambda: bc.linearize(s, at={"push": column}),
        "linearize parameters": lambda: bc.linearize(loaded, at={"bob.mass": column}),
        "gradient q0": lambda: bc.gradient(s, 0.01, final="hinge.q", q0=rows),
        "study v0": lambda: bc.study(s, over, 2, v0=rows, **study),
        "kernel": lambda: s.mechanism.bias(rows, rows),
        "body": lambda: s.mechanism.kinetic_energy(rows, rows),
    }


@pytest.mark.parametrize("entry", too_large(Path()))
def test_array_beyond_memory_is_rejected(entry: str, tmp_path: Path, soon: None) -> None:
    with pytest.raises(InputError, match=r"GB|shape"):
        too_large(tmp_path)[entry]()


def test_out_of_memory_error_names_the_array() -> None:
    """The error names the array, also where no earlier check exists."""

    @explain_argument_errors
    def copied(values: Any, table: Any = None) -> Any:
        raise MemoryError("Unable to allocate")

    with pytest.raises(InputError, match=r"copied: table\['a'\] is an array of 8796.1 GB"):
        copied([1.0], {"a": np.broadcast_to(0.0, (HUGE,)), "b": 3})
    with pytest.raises(MemoryError):
        copied(np.zeros(3))


def test_excessive_counts_raise_with_the_bound(tmp_path: Path) -> None:
    over = {"hinge.q": bc.uniform(0.0, 1.0)}
    for runs in (0, 2**62, "x"):
        with pytest.raises(InputError, match=r"from 1 to 2,147,483,648\."):
            bc.study(plant(), over, runs, seconds=0.01, to=tmp_path / "s")  # type: ignore[arg-type]


def test_bounds_are_those_of_the_documentation() -> None:
    assert run_arguments.whole_multiple("seconds", 1e6, 1e-3, "step") == 10**9
    assert run_arguments.duration("seconds", np.float32(0.5)) == 0.5
    assert run_arguments.duration("seconds", np.array(2)) == 2.0
    assert run_arguments.count("runs", np.int64(3)) == 3
    assert run_arguments.delay("delay", 0) == 0.0


COMMANDS = {
    "simulate --seconds": "simulate pendulum --seconds {}",
    "simulate --step": "simulate pendulum --seconds 0.01 --step {}",
    "simulate --tolerance": "simulate pendulum --seconds 0.01 -i dopri5 --tolerance {}",
    "simulate --every": "simulate pendulum --seconds 0.01 --every {}",
    "simulate --max-steps": "simulate pendulum --seconds 0.01 -i dopri5 --max-steps {}",
    "linearize --step": "linearize pendulum --step {}",
    "export --step": "export pendulum --to c --out {out} --step {}",
    "bench --rows": "bench pendulum --rows {}",
    "bench --frame": "bench -f {}",
    "drive --seconds": "drive pendulum --no-browser --port 0 --seconds {}",
    "drive --rate": "drive pendulum --no-browser --port 0 --seconds 0.1 --rate {}",
    "identify --seconds": "identify pendulum --excite {out} --seconds {}",
    "identify --rate": "identify pendulum --excite {out} --rate {}",
}
WORDS = ("-1", "0", "nan", "inf", "-inf", "1e300", "99999999999999999999", "x")
FITS = {("simulate --tolerance", "1e300"), ("simulate --tolerance", "99999999999999999999")}
FITS |= {("simulate --every", word) for word in ("1e300", "99999999999999999999")}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_reject_excessive_amounts(command: str, tmp_path: Path, soon: None) -> None:
    for word in (w for w in WORDS if (command, w) not in FITS):
        given = COMMANDS[command].format(word, out=tmp_path / "out").split()
        result = CliRunner(env={"COLUMNS": "100"}).invoke(app, given)
        told = f"{command} {word}: {result.output}"
        assert result.exit_code not in (0, None), told
        assert result.exception is None or isinstance(result.exception, SystemExit | BellcrankError), told


# Parameters that are durations, rates or counts of work, by their names.
AMOUNTS = {
    "seconds", "step", "every", "rate", "input_step", "tolerance", "limit", "delay", "quantum", "baumgarte", "factor",
    "spin", "period", "batch", "threads", "max_steps", "chunk", "workers", "tries", "starts", "harmonics",
    "checkpoints", "substeps", "most",
}  # fmt: skip
# Parameters that are passed on, and the table entry that checks them.
ALIKE = {
    "Simulator": "Solver", "Simulator.run": "simulate", "Simulator.prepared": "simulate",
    "Simulator.planned": "simulate", "Adjoint.run": "gradient", "Drive": "drive",
    "Drive.slow": "slow", "Saving": "simulate",
    "Stepper": "stepper", "Stepper.follow": "follow", "Where": "simulate", "Kernel": "kernel", "make": "gym",
    "VectorEnv": "gym",
}  # fmt: skip
OTHERS = {
    ("Linear", "rate"),  # a graph
    ("Graph.divided", "most"),  # segments, as a target wants them
    ("quantised", "quantum"),  # of a scalar: scalar.py
    ("Linear", "step"),  # the argument of linearize
    ("Study.replay", "every"),  # of an existing study: simulate every
    ("Mechanism.random", "batch"),  # a shape
    *((name, "limit") for name in ("PD", "PID", "IdealTorque", "RotaryHydraulics")),  # of a force, by name
    ("Solver", "step"), ("Solver", "tolerance"), ("Solver", "max_steps"),  # checked where they are used: simulate
}  # fmt: skip


def public() -> Iterator[tuple[str, str]]:
    """Public callables and their parameters."""
    for module in (bc, identify, control, gym, actuators):
        for name in module.__all__:
            thing = getattr(module, name)
            methods = vars(thing).items() if inspect.isclass(thing) else ()
            inner = [(f"{name}.{key}", f) for key, f in methods if callable(f) and not key.startswith("_")]
            for called, function in [(name, thing), *inner]:
                with contextlib.suppress(TypeError, ValueError):
                    yield from ((called, p) for p in inspect.signature(function).parameters)


def test_tables_cover_every_amount_argument() -> None:
    known = {tuple(key.split()[:2]) for key in (*durations(Path()), *counts(Path()))}
    wanted = {(name, p) for name, p in public() if p in AMOUNTS} - OTHERS
    assert {x for x in wanted if (ALIKE.get(x[0], x[0]), x[1]) not in known} == set()
