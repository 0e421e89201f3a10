"""C code of one step of an exported Program on arrays: due samples, then a tick.

With adaptive steps or events, a step consists of as many ticks as necessary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from bellcrank.emit.c.exported_program import ExportedProgram
from bellcrank.graph.layout import WORD_RANGE
from bellcrank.graph.program import BAD_STEP, FINISHED

MAX_STEP_LITERAL = {"": "1e300", "f": "1e30f"}  # seconds, by the suffix of numbers


def step_statements(
    s: ExportedProgram, real: str, suffix: str, arrays: Sequence[str], call: Callable[..., str]
) -> list[str]:
    """Return the statements of the function that advances the state by one step.

    Parameters
    ----------
    s
        Program as functions of arrays.
    real
        C type of the numbers.
    suffix
        Suffix of constants and functions.
    arrays
        Names of the function's arrays.
    call
        call(word, from, *results) returns the call of a graph on the array `from`.
    """
    lines = _step_to_grid_point(s, real, suffix, call) if s.multi_tick else _fixed_step(s, real, suffix, call)
    idle = [a for a in ("inputs", "free_numbers") if a in arrays and not any(re.search(rf"\b{a}\b", x) for x in lines)]
    declarations = [x for x in lines if x.startswith(f"{real} ")]
    return [*declarations, *(f"(void){a};" for a in idle), *lines[len(declarations) :]]


def _fixed_step(s: ExportedProgram, real: str, suffix: str, call: Callable[..., str]) -> list[str]:
    size = len(s.state)
    declarations, end = [f"{real} next[{size}];", f"{real} status[1];"], ["memcpy(state, next, sizeof(next));"]
    end += ["return (int)status[0];"]
    declarations += _step_check(f"state[{s.field_offsets['h']}]", suffix)
    if not s.renews:
        return [*declarations, call("tick", "state", "next", "status"), *end]
    return [
        f"{real} now[{size}];",
        *declarations,
        "memcpy(now, state, sizeof(now));",
        *_renew_if_fresh(s, suffix, call, "state", "now"),
        call("tick", "now", "next", "status"),
        f"if (status[0] > 0.5{suffix}) {{",
        "    return (int)status[0];",
        "}",
        *end,
    ]


def _renew_if_fresh(s: ExportedProgram, suffix: str, call: Callable[..., str], before: str, after: str) -> list[str]:
    fresh = s.field_offsets["fresh"]
    return [f"if ({before}[{fresh}] > 0.5{suffix}) {{", f"    {call('renew', before, after)}", "}"]


def _step_check(step: str, suffix: str) -> list[str]:
    """Return a check that the step size is positive and finite; a comparison with NaN is false."""
    return [f"if (!({step} > 0.0{suffix} && {step} < {MAX_STEP_LITERAL[suffix]})) {{", f"    return {BAD_STEP};", "}"]


def _counter(s: ExportedProgram, name: str, suffix: str) -> tuple[str, list[str]]:
    """Return a counter of the state as an expression, and statements that increment it."""
    index = s.field_offsets[name]
    if s.program.layout.words(name) == 1:
        return f"state[{index}]", [f"state[{index}] += 1.0{suffix};"]
    high, low, word = f"state[{index}]", f"state[{index + 1}]", f"{WORD_RANGE}{suffix}"
    more = [f"{low} += 1.0{suffix};", f"if ({low} >= {word}) {{", f"    {low} = 0.0{suffix};"]
    return f"({high} * {word} + {low})", [*more, f"    {high} += 1.0{suffix};", "}"]


def _step_to_grid_point(s: ExportedProgram, real: str, suffix: str, call: Callable[..., str]) -> list[str]:
    """Return the loop to the next grid point, an integer number of steps from the start.

    A step that an event stopped continues to the same point.
    """
    offsets, float_suffix = s.field_offsets, suffix
    grid, more = _counter(s, "grid", float_suffix)
    step = f"state[{offsets['step']}]"
    body: list[str] = []
    if s.renews:
        body += [
            *_renew_if_fresh(s, float_suffix, call, "state", "next"),
            f"if (state[{offsets['fresh']}] > 0.5{float_suffix}) {{",
        ]
        body += ["    memcpy(state, next, sizeof(next));", "}"]
    body.append(call("tick", "state", "next", "status"))
    copied = "memcpy(state, next, sizeof(next));"
    if s.program.locate is not None:
        located = [call("locate", "next", "state", "found"), "memcpy(status, found, sizeof(found));"]
        body += [f"if (status[2] > 0.5{float_suffix}) {{", *_indent(located), "} else {", f"    {copied}", "}"]
    else:
        body.append(copied)
    return [
        f"{real} next[{len(s.state)}];",
        f"{real} status[3];",
        *([f"{real} found[3];"] if s.program.locate is not None else []),
        *_step_check(step, float_suffix),
        f"const {real} goal = state[{offsets['begin']}] + ({grid} + 1.0{float_suffix}) * {step};",
        "if (!(goal > state[0])) {",
        f"    return {BAD_STEP};",
        "}",
        f"state[{offsets['end']}] = goal;",
        f"state[{offsets['tried']}] = 0.0{float_suffix};",
        "do {",
        *_indent(body),
        f"}} while (status[1] > 0.5{float_suffix});",
        f"if ((int)status[0] != {FINISHED}) {{",
        "    return (int)status[0];",
        "}",
        *more,
        "return 0;",
    ]


def _indent(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
