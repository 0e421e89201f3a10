"""Text templates of a C package: header, build file, README, examples."""

from __future__ import annotations

FLAGS = "-Wall -Wextra -Wpedantic -Wconversion -Wdouble-promotion"
STATUS = {
    0: "all is well",
    2: "a number is not finite, and the state stays as it was",
    3: "the steps that the tolerance asks for are too small, and the state is where that was",
    4: "an event stopped it: the state is where that was, `which` is its number, and the next step goes on from there",
    6: "the loops cannot be closed (a singular configuration is near, or the step is too long), and the state stays",
    8: "`step` is not a number above zero, or too short to change `t` in this precision, and the state stays",
    7: "too many ticks (`most`) until the end of the step, as of a ball that comes to rest in ever smaller bounces",
}
FIXED_STATUS = (0, 2, 6, 8)  # possible values with fixed steps and without events

HEADER = """/* {title}. Do not edit: make it anew.
 *
{about}
 *
 * Matrices lie row by row. Arguments must not overlap. Inputs are not checked: NaN in, NaN out (but for -ffast-math).
 * Re-entrant and fit for real time: {memory}, no allocation, {loops}, no calls but libm's and memcpy. The
 * stack of a function of arrays, libm's aside, stays below its _STACK_BYTES even where a compiler optimises nothing. */
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

The library is `{name}.h` and `{name}.c`; they need libm and nothing else. Everything is re-entrant: no allocation,
{memory}, {loops}. Sizes, operations and bounds of the stack are macros of the header.

{functions}
{program}
MISRA C:2012, what is not kept: identifiers are distinct in 63 characters as C99 has it, not in 31 (rule 5.1); one
function may have an attribute where `__GNUC__` is defined, which keeps it out of others (rule 1.2).
"""

PROGRAM = """
    {name}_init      where the machine rests, with what its inputs and parameters usually are
    {name}_start     after you changed the state, or where an input jumped: what the integrator remembers is made anew
    {name}_step      one step of `step` seconds ({step:g} unless changed before `start`); 0, or why there was none
    {name}_output    what can be observed
    {name}_rate      how fast the state changes

Status: {status}.
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
