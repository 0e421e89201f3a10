"""C code of one step of an exported Program on arrays: due samples, then a tick.

With adaptive steps or events, a step consists of as many ticks as necessary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from bellcrank.emit.c.stepper import Stepper
from bellcrank.graph.counting import WORD
from bellcrank.graph.program import BAD_STEP, FINISHED

LONGEST = {"": "1e300", "f": "1e30f"}  # seconds, by the suffix of numbers


def advanced(s: Stepper, real: str, suffix: str, given: Sequence[str], call: Callable[..., str]) -> list[str]:
    """Return the statements of the function that advances the state by one step.

    Parameters
    ----------
    s
        Program as functions of arrays.
    real
        C type of the numbers.
    suffix
        Suffix of constants and functions.
    given
        Names of the function's arrays.
    call
        call(word, from, *results) returns the call of a graph on the array `from`.
    """
    lines = _watched(s, real, suffix, call) if s.watched else _fixed(s, real, suffix, call)
    idle = [a for a in ("inputs", "free_numbers") if a in given and not any(re.search(rf"\b{a}\b", x) for x in lines)]
    rooms = [x for x in lines if x.startswith(f"{real} ")]
    return [*rooms, *(f"(void){a};" for a in idle), *lines[len(rooms) :]]


def _fixed(s: Stepper, real: str, suffix: str, call: Callable[..., str]) -> list[str]:
    size = len(s.state)
    rooms, end = [f"{real} next[{size}];", f"{real} status[1];"], ["memcpy(state, next, sizeof(next));"]
    end += ["return (int)status[0];"]
    rooms += _checked(f"state[{s.places['h']}]", suffix)
    if not s.renews:
        return [*rooms, call("tick", "state", "next", "status"), *end]
    return [
        f"{real} now[{size}];",
        *rooms,
        "memcpy(now, state, sizeof(now));",
        *_renewed(s, suffix, call, "state", "now"),
        call("tick", "now", "next", "status"),
        f"if (status[0] > 0.5{suffix}) {{",
        "    return (int)status[0];",
        "}",
        *end,
    ]


def _renewed(s: Stepper, suffix: str, call: Callable[..., str], before: str, after: str) -> list[str]:
    fresh = s.places["fresh"]
    return [f"if ({before}[{fresh}] > 0.5{suffix}) {{", f"    {call('renew', before, after)}", "}"]


def _checked(step: str, suffix: str) -> list[str]:
    """Return a check that the step size is positive and finite; a comparison with NaN is false."""
    return [f"if (!({step} > 0.0{suffix} && {step} < {LONGEST[suffix]})) {{", f"    return {BAD_STEP};", "}"]


def _counter(s: Stepper, name: str, suffix: str) -> tuple[str, list[str]]:
    """Return a counter of the state as an expression, and statements that increment it."""
    at = s.places[name]
    if s.program.layout.words(name) == 1:
        return f"state[{at}]", [f"state[{at}] += 1.0{suffix};"]
    high, low, word = f"state[{at}]", f"state[{at + 1}]", f"{WORD}{suffix}"
    more = [f"{low} += 1.0{suffix};", f"if ({low} >= {word}) {{", f"    {low} = 0.0{suffix};"]
    return f"({high} * {word} + {low})", [*more, f"    {high} += 1.0{suffix};", "}"]


def _watched(s: Stepper, real: str, suffix: str, call: Callable[..., str]) -> list[str]:
    """Return the loop to the next grid point, an integer number of steps from the start.

    A step that an event stopped continues to the same point.
    """
    at, f = s.places, suffix
    grid, more = _counter(s, "grid", f)
    step = f"state[{at['step']}]"
    body: list[str] = []
    if s.renews:
        body += [*_renewed(s, f, call, "state", "next"), f"if (state[{at['fresh']}] > 0.5{f}) {{"]
        body += ["    memcpy(state, next, sizeof(next));", "}"]
    body.append(call("tick", "state", "next", "status"))
    copied = "memcpy(state, next, sizeof(next));"
    if s.program.locate is not None:
        located = [call("locate", "next", "state", "found"), "memcpy(status, found, sizeof(found));"]
        body += [f"if (status[2] > 0.5{f}) {{", *_indented(located), "} else {", f"    {copied}", "}"]
    else:
        body.append(copied)
    return [
        f"{real} next[{len(s.state)}];",
        f"{real} status[3];",
        *([f"{real} found[3];"] if s.program.locate is not None else []),
        *_checked(step, f),
        f"const {real} goal = state[{at['begin']}] + ({grid} + 1.0{f}) * {step};",
        "if (!(goal > state[0])) {",
        f"    return {BAD_STEP};",
        "}",
        f"state[{at['end']}] = goal;",
        f"state[{at['tried']}] = 0.0{f};",
        "do {",
        *_indented(body),
        f"}} while (status[1] > 0.5{f});",
        f"if ((int)status[0] != {FINISHED}) {{",
        "    return (int)status[0];",
        "}",
        *more,
        "return 0;",
    ]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
