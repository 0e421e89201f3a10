"""Texts of the C11 package of a schedule: header, ring buffers, threads, build file, README and an example."""

from __future__ import annotations

FLAGS = "-Wall -Wextra -Wpedantic -Wconversion"

HEADER = """/* {title}. Generated file. Do not edit; generate it again.
 *
{about}
 *
{processors}
 *
 * Matrices are stored by rows. Inputs are not checked; a NaN input gives NaN outputs (not with -ffast-math).
 * No allocation; all memory is in the struct, of which a program may have several. */
#ifndef {NAME}_H
#define {NAME}_H

#include <stdatomic.h>

#define {NAME}_PROCESSORS {count}
{sizes}

/* A ring buffer from one processor to another. Counters run on modulo 2^32. */
typedef struct {{
    {real} *words;
    unsigned capacity;                 /* words, a power of two */
    _Alignas(64) atomic_uint sent;     /* words; only the sender writes it */
    _Alignas(64) atomic_uint received; /* words; only the receiver writes it */
}} {name}_channel;

/* The number of the last state that a processor has completed. */
typedef struct {{
    _Alignas(64) atomic_uint state;
}} {name}_done;

typedef struct {{
    _Alignas(64) atomic_uint state; /* number of the state to compute; its arrays are below */
    atomic_int stopped;
    void (*pause)(void);            /* called while a processor waits, unless it is a null pointer */
{members}
    {name}_done done[{NAME}_PROCESSORS];
    {name}_channel channels[{channel_count}];
    {real} words[{words}];
}} {name}_machine;

/* Prepare the machine, before any processor begins. */
void {name}_init({name}_machine *machine, void (*pause)(void));

/* Compute a state, on processor 0; return when all processors have completed their parts. */
void {name}_evaluate({name}_machine *machine, {parameters});

/* Compute the parts of processor k, from 1 to {NAME}_PROCESSORS - 1, until the machine is stopped. */
void {name}_processor({name}_machine *machine, int k);

/* Let all processors return. */
void {name}_stop({name}_machine *machine);

/* The programs, and what they call. */
void {name}_send({name}_machine *machine, {name}_channel *channel, const {real} *words, unsigned count);
void {name}_receive({name}_machine *machine, {name}_channel *channel, {real} *words, unsigned count);
{prototypes}

#endif
"""

PROGRAM = """/* {title}.
 * Program {k}: processor {processor} of the schedule. Generated file. Do not edit; generate it again. */
#include "{name}.h"

#include <math.h>

{code}"""

CHANNELS = """/* {title}.
 * Ring buffers between the processors, and the hand-over of a state; it needs no operating system.
 * Generated file. Do not edit; generate it again. */
#include "{name}.h"

static void wait(const {name}_machine *machine)
{{
    if (machine->pause) {{
        machine->pause();
    }}
}}

/* Copy words to the ring, then publish them. */
void {name}_send({name}_machine *machine, {name}_channel *channel, const {real} *words, unsigned count)
{{
    const unsigned sent = atomic_load_explicit(&channel->sent, memory_order_relaxed);
    unsigned k;
    while (channel->capacity - (sent - atomic_load_explicit(&channel->received, memory_order_acquire)) < count) {{
        wait(machine);
    }}
    for (k = 0; k < count; ++k) {{
        channel->words[(sent + k) & (channel->capacity - 1u)] = words[k];
    }}
    atomic_store_explicit(&channel->sent, sent + count, memory_order_release);
}}

/* Wait for words, copy them from the ring, then free their places. */
void {name}_receive({name}_machine *machine, {name}_channel *channel, {real} *words, unsigned count)
{{
    const unsigned received = atomic_load_explicit(&channel->received, memory_order_relaxed);
    unsigned k;
    while (atomic_load_explicit(&channel->sent, memory_order_acquire) - received < count) {{
        wait(machine);
    }}
    for (k = 0; k < count; ++k) {{
        words[k] = channel->words[(received + k) & (channel->capacity - 1u)];
    }}
    atomic_store_explicit(&channel->received, received + count, memory_order_release);
}}

static void connect({name}_machine *machine, int channel, int first, unsigned capacity)
{{
    machine->channels[channel].words = machine->words + first;
    machine->channels[channel].capacity = capacity;
    atomic_init(&machine->channels[channel].sent, 0u);
    atomic_init(&machine->channels[channel].received, 0u);
}}

void {name}_init({name}_machine *machine, void (*pause)(void))
{{
    int k;
    atomic_init(&machine->state, 0u);
    atomic_init(&machine->stopped, 0);
    machine->pause = pause;
    for (k = 0; k < {NAME}_PROCESSORS; ++k) {{
        atomic_init(&machine->done[k].state, 0u);
    }}
{rows}
}}

static void run({name}_machine *machine, int k)
{{
    switch (k) {{
{cases}
    default:
        break;
    }}
}}

void {name}_evaluate({name}_machine *machine, {parameters})
{{
    const unsigned state = atomic_load_explicit(&machine->state, memory_order_relaxed) + 1u;
    int k;
{posts}
    atomic_store_explicit(&machine->state, state, memory_order_release);
    run(machine, 0);
    for (k = 1; k < {NAME}_PROCESSORS; ++k) {{
        while (atomic_load_explicit(&machine->done[k].state, memory_order_acquire) != state) {{
            wait(machine);
        }}
    }}
}}

void {name}_processor({name}_machine *machine, int k)
{{
    unsigned last = 0u;
    for (;;) {{
        const unsigned state = atomic_load_explicit(&machine->state, memory_order_acquire);
        if (state != last) {{
            run(machine, k);
            atomic_store_explicit(&machine->done[k].state, state, memory_order_release);
            last = state;
        }} else if (atomic_load_explicit(&machine->stopped, memory_order_acquire)) {{
            return;
        }} else {{
            wait(machine);
        }}
    }}
}}

void {name}_stop({name}_machine *machine)
{{
    atomic_store_explicit(&machine->stopped, 1, memory_order_release);
}}
"""

THREADS_HEADER = """/* {title}.
 * A POSIX thread for each processor. Generated file. Do not edit; generate it again. */
#ifndef {NAME}_THREADS_H
#define {NAME}_THREADS_H

#include "{name}.h"

#include <pthread.h>

struct {name}_threads;

typedef struct {{
    struct {name}_threads *threads;
    int k;
}} {name}_place;

typedef struct {name}_threads {{
    {name}_machine machine;
    pthread_t handles[{NAME}_PROCESSORS];
    {name}_place places[{NAME}_PROCESSORS];
    int started;
}} {name}_threads;

/* Start all processors but the first, which is the thread that calls {name}_evaluate; return 0, or an error number. */
int {name}_start({name}_threads *threads);

/* Stop them and wait for their ends. */
void {name}_join({name}_threads *threads);

#endif
"""

THREADS = """/* {title}.
 * A POSIX thread for each processor. Generated file. Do not edit; generate it again. */
#define _POSIX_C_SOURCE 200809L

#include "{name}_threads.h"

#include <sched.h>

static void yield(void)
{{
    (void)sched_yield();
}}

static void *work(void *argument)
{{
    const {name}_place *place = ({name}_place *)argument;
    {name}_processor(&place->threads->machine, place->k);
    return 0;
}}

int {name}_start({name}_threads *threads)
{{
    int k;
    {name}_init(&threads->machine, yield);
    threads->started = 1;
    for (k = 1; k < {NAME}_PROCESSORS; ++k) {{
        int error;
        threads->places[k].threads = threads;
        threads->places[k].k = k;
        error = pthread_create(&threads->handles[k], 0, work, &threads->places[k]);
        if (error) {{
            {name}_join(threads);
            return error;
        }}
        threads->started = k + 1;
    }}
    return 0;
}}

void {name}_join({name}_threads *threads)
{{
    int k;
    {name}_stop(&threads->machine);
    for (k = 1; k < threads->started; ++k) {{
        (void)pthread_join(threads->handles[k], 0);
    }}
    threads->started = 1;
}}
"""

CMAKE = """cmake_minimum_required(VERSION 3.10)
project({name} C)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_package(Threads REQUIRED)

add_library({name} STATIC {name}_channels.c {sources})
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
target_compile_options({name} PRIVATE {flags})
target_link_libraries({name} PUBLIC m)

add_executable({name}_example main.c {name}_threads.c)
target_link_libraries({name}_example PRIVATE {name} Threads::Threads)
"""

README = """# {title}

{count} programs in C11, one for each processor of a schedule that takes {plan} on its own machine.

    cc -std=c11 -O2 {flags} *.c -pthread -lm -o example && ./example
    cmake -B build && cmake --build build

`./example` reads states from standard input and prints their results.

{rows}
* `{name}_channels.c`: ring buffers between the processors, and the hand-over of a state
* `{name}_threads.c`: a POSIX thread for each processor; only this file and `main.c` need an operating system

On a controller with several cores and without an operating system, leave out `{name}_threads.c` and `main.c`. Put one
`{name}_machine` into memory that all cores share coherently. One core calls `{name}_init` with a null pointer; then
core k calls `{name}_processor(&machine, k)`, and core 0 calls `{name}_evaluate` for every state.

A send never waits: a ring has room for all words of a state. A program needs less than {stack} bytes of stack.
"""

EXAMPLE = """/* {title}.
 * Reads states from standard input, {total} numbers each, and prints their results; without input, a state of zeros. */
#include "{name}_threads.h"

#include <stdio.h>

static {name}_threads threads;

static int read_numbers({real} *array, int count)
{{
    int k;
    for (k = 0; k < count; ++k) {{
        double x;
        if (scanf("%lf", &x) != 1) {{
            return k;
        }}
        array[k] = ({real})x;
    }}
    return count;
}}

static void print_numbers(const char *name, const {real} *array, int count)
{{
    int k;
    printf("%s", name);
    for (k = 0; k < count; ++k) {{
        printf(" %.17g", (double)array[k]);
    }}
    printf("\\n");
}}

int main(void)
{{
{arrays}
    int states = 0;
    if ({name}_start(&threads)) {{
        fprintf(stderr, "a thread could not be started\\n");
        return 1;
    }}
    for (;;) {{
        int got = 0;
{reads}
        if (got < {total} && (states || got)) {{
            break;
        }}
        {name}_evaluate(&threads.machine, {given});
        ++states;
{prints}
    }}
    {name}_join(&threads);
    return 0;
}}
"""
