"""A process that makes wrong calls of everything public, one after the other, and reports every wrong result.

    python tests/wrong_calls.py FIRST COUNT [WORD]
    python tests/wrong_calls.py every [WORD]

A call is valid except for one or two arguments, which are arbitrary. Faults are: an internal Python error (an
IndexError from deep inside), an error without a message, a hang, a crash. Each case has a number and can be repeated
alone; WORD is a regular expression for names of callables. "every" gives each value of UNEXPECTED to each argument
in turn. The cases run in a process of their own, as in fuzzing.py.
"""

from __future__ import annotations

import contextlib
import datetime
import faulthandler
import functools
import inspect
import io
import json
import linecache
import math
import os
import random
import re
import resource
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank import actuators, control, forces, gym, identify, zoo
from bellcrank.errors import BellcrankError
from right_calls import built, good, objects, strangers

PATIENCE = 20  # seconds of processor time for a case, however busy the machine is
MEMORY = 12 << 30
SOURCE = str(Path(bc.__file__).parent)
SCALARS = bc._PUBLIC_NAMES["scalar"]  # type: ignore[attr-defined]
Good = Mapping[str, Any]


class Odd:
    """An object without any expected attribute."""


# Values that pass many checks, each made when it is needed: Python cannot iterate over a memoryview of two dimensions,
# and durations of Python have most operators of numbers.
UNEXPECTED: dict[str, Callable[[], Any]] = {
    "memoryview 2x2": lambda: memoryview(np.ones((2, 2))),
    "memoryview 3x3": lambda: memoryview(np.eye(3)),
    "list of memoryviews": lambda: [memoryview(np.eye(3)), memoryview(np.eye(3))],
    "memoryview without dimensions": lambda: memoryview(np.array(1.0)),
    "duration": lambda: datetime.timedelta(days=1),
    "text array": lambda: np.array(["a", "b"]),
}


def _wrong() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return [
        *(
            None,
            True,
            "",
            "x",
            "\u202ea\n\"'\x00",
            "joint1",
            "a" * 10_000,
            b"x",
            -1,
            0,
            1,
            7,
            10**400,
            10**9,
            1e308,
            0.5,
        ),
        *(math.nan, math.inf, -math.inf, 1j, [], {}, (), [[]], circle, set(), range(3), [None], ["x"], [1.0, math.nan]),
        *(np.zeros((2, 3)), np.array([math.nan, 1.0]), np.array(["a"]), np.zeros(0), np.zeros((0, 2)), np.int64(3)),
        *(np.timedelta64(5, "s"), *(make() for make in UNEXPECTED.values())),
        *({"x": 1.0}, {1: 2}, {"": math.nan}, {"joint1": "x"}, {"joint1": None}, {"joint1": math.nan}, {None: None}),
        *(
            lambda: None,
            lambda *a: None,
            lambda *a, **k: "x",
            lambda x: x / 0,
            int,
            Path("nope"),
            Ellipsis,
            Odd(),
            object(),
        ),
        *(
            bc.zoo.chain,
            bc,
            np.float32(0.5),
            [1, 2],
            [1.0, 2.0],
            [[1.0], [2.0, 3.0]],
            "joint1.q",
            "link2",
            2,
            -0.5,
            1e-300,
        ),
    ]


def _shaped(rng: random.Random) -> Any:
    return np.full(
        rng.choice([(1,), (2,), (3,), (2, 2), (1, 2), (3, 3), (2, 3, 3), (6,), ()]), rng.choice([0.0, 1.0, math.nan])
    )


def _other(rng: random.Random, wrong: list[Any], fits: Good) -> Any:
    """Return a nonsense value, or a value that is valid elsewhere: of another shape, argument or machine."""
    kind = rng.random()
    if kind < 0.15:
        return _shaped(rng)
    if kind < 0.35:
        return rng.choice(list(fits.values()))
    return rng.choice(strangers()) if kind < 0.45 else rng.choice(wrong)


UNTRIED = {"register", "drive", "Env", "VectorEnv", *SCALARS} - {
    "interp"
}  # drive returns a Drive; scalar functions behave as those of Python's math
QUIET = {
    "start",
    "resume",
    "random",
    "animation",
    "program",
    "whole",
    "self_contained_program",
    "joined",
    "compiled",
}  # they run or draw for long, or return what does
# they are used by other packages


def callables(things: Mapping[str, Callable[[], Any]], word: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    rooms = {"bc": bc, "forces": forces, "actuators": actuators, "control": control, "identify": identify}
    rooms |= {"zoo": zoo, "gym": gym}
    for room, module in rooms.items():
        for name in sorted(module.__all__):
            thing = getattr(module, name)
            if callable(thing) and name not in UNTRIED and not _abstract(thing):
                yield f"{room}.{name}", thing
    for called, make in things.items():
        if not re.search(word, called):
            continue
        thing = make()
        for name in sorted(dir(type(thing))):
            if name.startswith("_") or name in QUIET or isinstance(thing, bc.System):  # its functions take scalars
                continue
            with contextlib.suppress(BellcrankError):  # this object does not have the attribute
                if callable(getattr(type(thing), name, None)) and callable(bound := getattr(thing, name)):
                    yield f"{called}.{name}", bound
        if callable(thing):
            yield f"{called}()", thing


def _abstract(thing: Any) -> bool:
    return inspect.isabstract(thing) or (isinstance(thing, type) and issubclass(thing, BaseException))


def arguments(rng: random.Random, called: str, function: Any, fits: Mapping[str, Any]) -> tuple[list[Any], Good]:
    """Return valid values for the required arguments, and invalid ones for one or two of all arguments."""
    try:
        named = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        named = []
    wrong = _wrong()
    given: dict[str, Any] = {}
    free = [p for p in named if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    for p in free:
        fit = _fitting(fits, called, p.name)
        if p.default is p.empty or f"{called}.{p.name}" in fits:
            given[p.name] = fit
    hit = rng.sample(free, min(len(free), rng.choice([1, 1, 1, 2]))) if free else []
    for p in hit:
        given[p.name] = _other(rng, wrong, fits)
    loose = (
        [rng.choice(wrong) for _ in range(rng.randrange(3))] if any(p.kind == p.VAR_POSITIONAL for p in named) else []
    )
    if any(p.kind == p.VAR_KEYWORD for p in named) and rng.random() < 0.3:
        given[rng.choice(["nope", "target", "threads", "dtype", "name", "step"])] = rng.choice(wrong)
    if loose:
        return [*given.values(), *loose], {}
    return [], given


def _to_the_end(rng: random.Random, called: str, function: Any) -> Any:
    """Use what was accepted: a part in a system, and sometimes in a run; build what a builder has accepted."""
    room, name = called.split(".") if "." in called else (called, "")
    if room == "builder" and name != "build":
        b = built()
        own = getattr(b, name)
        return functools.wraps(own)(lambda *args, **named: (own(*args, **named), b.build()))
    if room in ("forces", "actuators") and isinstance(function, type):
        kind = function

        @functools.wraps(kind)
        def used(*args: Any, **named: Any) -> None:
            m, part = bc.zoo.chain(2), kind(*args, **named)
            given = {"elements": [part]} if isinstance(part, forces.Element) else {"actuators": [part]}
            if isinstance(part, forces.Element | actuators.Actuator):
                s = bc.system(m, **given)
                if rng.random() < 0.1:
                    bc.simulate(s, 2e-3, step=1e-3)

        return used
    return function


def _fitting(fits: Good, called: str, name: str) -> Any:
    thing, one = called.split(".") if "." in called else (called, "")
    places = (f"{called}.{name}", f"{one}.{name}", f"{thing}.{name}", name)
    return next((fits[x] for x in places if x in fits), None)


def outcome(function: Any, args: list[Any], given: Good) -> tuple[str, str]:
    """Return ("made", ""), ("refused", sentence) or ("wrong", why)."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(*args, **given)
    except BellcrankError as error:
        said = str(error)
        return ("refused", said) if 15 < len(said) < 3000 else ("wrong", f"an error of {len(said)} characters")
    except Exception as error:
        return judged(error)
    return "made", ""


def judged(error: Exception) -> tuple[str, str]:
    """Accept a Python error if a `raise` of this package is its source, or if the call does not fit the signature."""
    frames, tb = [], error.__traceback__
    while tb is not None:
        frames.append((tb.tb_frame.f_code.co_filename, tb.tb_lineno))
        tb = tb.tb_next
    ours = [place for place in frames if place[0].startswith(SOURCE)]
    if not ours:
        return "refused", "a signature"
    if isinstance(error, MemoryError):
        return "refused", "more than there is memory for"
    if "unexpected keyword argument" in str(error):
        return "refused", "a signature further in"
    if frames[-1][0] == __file__ or "function(t[k]" in linecache.getline(*frames[-1]):  # a function in C has no frame
        return "refused", "an error of a function that was given"
    file, line = frames[-1]
    if frames[-1] in ours and linecache.getline(file, line).strip().startswith("raise "):
        return "refused", "written"
    at, where = ours[-1][0].removeprefix(SOURCE), ours[-1][1]
    return "wrong", f"{type(error).__name__}: {str(error)[:120]} [{at}:{where}]"


class Hang(BaseException):
    """Raised by the alarm."""


def _alarm(*_: Any) -> None:
    raise Hang


def shown(x: Any) -> str:
    try:
        return repr(x)[:60]
    except Exception:
        return f"<{type(x).__name__}>"


def every(word: str = "") -> None:
    """Give each value of UNEXPECTED to each argument, all other arguments being valid; report what is wrong."""
    counts = {"made": 0, "refused": 0, "wrong": 0}
    with _prepared(word) as (table, fits):
        for called, function in table:
            try:
                named = inspect.signature(function).parameters.values()
            except (TypeError, ValueError):
                continue
            free = [p for p in named if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
            valid = {
                p.name: _fitting(fits, called, p.name)
                for p in free
                if p.default is p.empty or f"{called}.{p.name}" in fits
            }
            for p, (kind, make) in product(free, UNEXPECTED.items()):
                used = _to_the_end(random.Random(0), called, function)
                result, why = limited_outcome(used, [], valid | {p.name: make()})
                counts[result] += 1
                if result == "wrong":
                    print(json.dumps({"case": f"{called}: {p.name} is a {kind}", "why": why}), flush=True)
    print(json.dumps(counts))


@contextlib.contextmanager
def _prepared(word: str) -> Iterator[tuple[list[tuple[str, Callable[..., Any]]], Good]]:
    """Yield the callables and the valid arguments, inside a folder that is removed at the end."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, _alarm)
    with tempfile.TemporaryDirectory() as made:
        os.chdir(made)
        folder = Path(made)
        fits = good(folder, cheap=bool(word))
        yield [x for x in callables(objects(folder), word) if re.search(word, x[0])], fits


def limited_outcome(function: Any, args: list[Any], given: Good) -> tuple[str, str]:
    """Return the outcome of a call, "wrong" if it takes too long."""
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    faulthandler.dump_traceback_later(30 * PATIENCE, exit=True)
    try:
        return outcome(function, args, given)
    except Hang:
        return "wrong", f"took more than {PATIENCE} s"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()


def main(first: int, count: int, word: str = "") -> None:
    counts = {"made": 0, "refused": 0, "wrong": 0}
    with _prepared(word) as (table, fits):
        for number in range(first, first + count):
            rng = random.Random(f"wrong {number} {word}")
            called, function = rng.choice(table)
            function = _to_the_end(rng, called, function)
            args, given = arguments(rng, called, function, fits)
            print(
                number,
                called,
                {k: shown(x) for k, x in given.items()},
                [shown(x) for x in args],
                file=sys.stderr,
                flush=True,
            )
            result, why = limited_outcome(function, args, given)
            counts[result] += 1
            if result == "wrong":
                case = f"{number} {called} { ({k: shown(x) for k, x in given.items()}) } {[shown(x) for x in args]}"
                print(json.dumps({"case": case[:400], "why": why}), flush=True)
    print(json.dumps(counts))


if __name__ == "__main__":
    if sys.argv[1] == "every":
        every(*sys.argv[2:])
    else:
        main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
