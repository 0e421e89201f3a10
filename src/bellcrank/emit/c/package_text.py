"""Texts of a C package: header, build file, README and examples, and the code of one step of a Program.

A step works on arrays: due samples, then a tick. With adaptive steps or events, it consists of as many ticks as
necessary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from bellcrank.emit.c.exported_program import ExportedProgram
from bellcrank.graph.layout import WORD_RANGE
from bellcrank.graph.program import BAD_STEP, FINISHED

FLAGS = "-Wall -Wextra -Wpedantic -Wconversion -Wdouble-promotion"
STATUS = {
    0: "success",
    2: "a number is not finite; the state is unchanged",
    3: "the tolerance requires steps that are too small; the state is the one before them",
    4: "an event stopped the step; the state is that of the event, `which` is its number, and the next call continues",
    6: "the loops cannot be closed (near a singular configuration, or the step is too long); the state is unchanged",
    8: "`step` is not greater than zero, or too short to change `t` in this precision; the state is unchanged",
    7: "the step needs more than `most` ticks, as with a ball that comes to rest in smaller and smaller bounces",
}
FIXED_STATUS = (0, 2, 6, 8)  # possible values with fixed steps and without events

HEADER = """/* {title}. Generated file. Do not edit; generate it again.
 *
{about}
 *
 * Matrices are stored by rows. Arguments must not overlap.
 * Inputs are not checked; a NaN input gives NaN outputs (not with -ffast-math).
 * Re-entrant and suitable for real time: {memory}, no allocation, {loops}, no calls
 * except to libm and memcpy.
 * Stack of a function of arrays, without that of libm: less than its _STACK_BYTES, even without optimisation. */
#ifndef {NAME}_H
#define {NAME}_H

{bounds}

#ifdef __cplusplus
extern "C" {{
{plain}
#else
{restrict}
#endif

{structs}
{calls}

#ifdef __cplusplus
}}
#endif

#endif
"""

CMAKE = """cmake_minimum_required(VERSION 3.10)
project({name} C)

set(CMAKE_C_STANDARD 99)
set(CMAKE_C_STANDARD_REQUIRED ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library({name} STATIC {name}.c)
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
if(NOT MSVC)
  target_compile_options({name} PRIVATE {flags})
  target_link_libraries({name} PUBLIC m)
endif()

add_executable({name}_example main.c)
target_link_libraries({name}_example PRIVATE {name})
"""

README = """# {name}

{title}.

    cc -std=c99 -O3 {flags} {name}.c main.c -lm -o example && ./example
    cmake -B build && cmake --build build

The library is `{name}.h` and `{name}.c`; it needs only libm. All functions are re-entrant: no allocation,
{memory}, {loops}. The header has macros with the sizes, the numbers of operations and the bounds of the stack.

{functions}
{program}
Deviations from MISRA C:2012: identifiers are distinct in 63 characters, as C99 guarantees, not in 31 (rule 5.1); where
`__GNUC__` is defined, one function may have an attribute that prevents inlining (rule 1.2).
"""

PROGRAM = """
Functions that take the structs of the header:

    {name}_init      writes the initial state, default inputs and default parameters
    {name}_start     resets the integrator's memory; call it after you changed the state, or after an input jumped
    {name}_step      takes one step of `step` seconds ({step:g}, or set before `start`); returns 0, or a status code
    {name}_output    computes the outputs
    {name}_rate      computes the time derivative of the state

Status codes:

{status}
"""

EXAMPLE = """#include "{name}.h"

#include <stdio.h>

int main(void)
{{
{rooms}
    int k, status = 0;
    {name}_init({given});
    for (k = 0; k < 1000 && status == 0; ++k) {{
        status = {name}_step({given});
    }}
    printf("t = %g, {first} = %.17g, status %d\\n", (double)s.t, (double)s.{first}, status);
    return status;
}}
"""

FUNCTIONS_ONLY = """#include "{name}.h"

#include <stdio.h>

int main(void)
{{
{arrays}
    {call}
    printf("{result}[0] = %.17g\\n", (double){result}[0]);
    return 0;
}}
"""


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
