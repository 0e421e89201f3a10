"""Text templates of a C package: header, build file, README, examples."""

from __future__ import annotations

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
