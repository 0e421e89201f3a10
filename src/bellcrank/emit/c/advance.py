"""One step of a machine on arrays, in C: samples that are due, then a tick; where steps are chosen or events happen, as
many ticks as it takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from bellcrank.emit.c.stepper import Stepper
from bellcrank.graph.program import FINISHED


def advanced(s: Stepper, real: str, suffix: str, given: Sequence[str], call: Callable[..., str]) -> list[str]:
    """The statements of the function of the arrays `given`.

    call(word, from, *results) calls a graph of the machine on the array `from`.
    """
    lines = _watched(s, real, suffix, call) if s.watched else _fixed(s, real, suffix, call)
    idle = [a for a in ("inputs", "free_numbers") if a in given and not any(re.search(rf"\b{a}\b", x) for x in lines)]
    rooms = [x for x in lines if x.startswith(f"{real} ")]
    return [*rooms, *(f"(void){a};" for a in idle), *lines[len(rooms) :]]


def _fixed(s: Stepper, real: str, suffix: str, call: Callable[..., str]) -> list[str]:
    size = len(s.state)
    rooms, end = [f"{real} next[{size}];", f"{real} status[1];"], ["memcpy(state, next, sizeof(next));"]
    end += ["return (int)status[0];"]
    if not s.renews:
        return [*rooms, call("tick", "state", "next", "status"), *end]
    return [
        *rooms,
        f"{real} now[{size}];",
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


def _watched(s: Stepper, real: str, suffix: str, call: Callable[..., str]) -> list[str]:
    """To the next whole number of steps from where it began. One that an event stopped goes on from there."""
    at, f = s.places, suffix
    near = "1e-3f" if f else "1e-6"  # of a step: closer than that it has arrived
    count = f"floor{f}((state[0] - state[{at['begin']}]) / state[{at['step']}] + {near})"
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
        f"state[{at['end']}] = state[{at['begin']}] + ({count} + 1.0{f}) * state[{at['step']}];",
        f"state[{at['tried']}] = 0.0{f};",
        "do {",
        *_indented(body),
        f"}} while (status[1] > 0.5{f});",
        f"return (int)status[0] == {FINISHED} ? 0 : (int)status[0];",
    ]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
