/* One instance of an exported machine, whatever interface it is behind: its numbers, what is read and written by value
 * reference, steps of any length, and derivatives. model.h, which is generated, says what there is.
 *
 * Value references: 0 the time, then the states, their rates, inputs, parameters and outputs. The first 1 + N_Y numbers
 * of a machine's state s are the time and the states, so there a reference is also a place in s. */
#ifndef INSTANCE_H
#define INSTANCE_H

#include "model.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define AT_RATES (1 + N_Y)
#define AT_INPUTS (AT_RATES + N_Y)
#define AT_PARAMETERS (AT_INPUTS + N_U)
#define AT_OUTPUTS (AT_PARAMETERS + N_P)
#define AT_END (AT_OUTPUTS + N_OUT)

#if defined _WIN32
#define SHARED __declspec(dllexport)
#elif defined __GNUC__
#define SHARED __attribute__((visibility("default")))
#else
#define SHARED
#endif

/* All that an instance remembers: it is copied and serialised as it lies here. Arrays have one more, for none is empty. */
typedef struct {
    double s[N_S];
    double u[N_U + 1];
    double p[N_P + 1];
    double held_u[N_U + 1]; /* what the integrator's memory is made of */
    double held_p[N_P + 1];
    double step; /* the one it was made for */
    double rates[N_Y + 1];
    double out[N_OUT + 1];
    double fresh; /* 1 where rates and outputs are of now */
} Numbers;

static void at_rest(Numbers *n)
{
    memset(n, 0, sizeof(*n));
    MODEL_REST(n->s, n->u, n->p);
    n->step = n->s[AT_STEP];
}

/* Before the first step, and where what the integrator remembers is of another time, step, or input. */
static void begin(Numbers *n, double step)
{
    double next[N_S];
    n->s[AT_BEGIN] = n->s[0];
    n->s[AT_STEPS] = 0.0;
    n->s[AT_STEP] = step;
    MODEL_BEGIN(n->s, n->u, n->p, next);
    memcpy(n->s, next, sizeof(next));
    memcpy(n->held_u, n->u, sizeof(n->u));
    memcpy(n->held_p, n->p, sizeof(n->p));
}

static void at_time(Numbers *n, double t)
{
    n->s[0] = t;
    n->fresh = 0.0;
}

static void refresh(Numbers *n)
{
    if (n->fresh < 0.5) {
        MODEL_SLOPE(n->s, n->u, n->p, n->rates);
        MODEL_OBSERVE(n->s, n->u, n->p, n->out);
        n->fresh = 1.0;
    }
}

/* Where a number lies; NULL where there is none. */
static double *place(Numbers *n, size_t reference)
{
    if (reference < AT_RATES) {
        return &n->s[reference];
    }
    if (reference < AT_INPUTS) {
        return &n->rates[reference - AT_RATES];
    }
    if (reference < AT_PARAMETERS) {
        return &n->u[reference - AT_INPUTS];
    }
    if (reference < AT_OUTPUTS) {
        return &n->p[reference - AT_PARAMETERS];
    }
    return reference < AT_END ? &n->out[reference - AT_OUTPUTS] : NULL;
}

static int is_computed(size_t reference)
{
    return (reference >= AT_RATES && reference < AT_INPUTS) || reference >= AT_OUTPUTS;
}

static int get_numbers(Numbers *n, const unsigned int *references, size_t count, double *values)
{
    size_t k;
    for (k = 0; k < count; ++k) {
        const double *from = place(n, references[k]);
        if (from == NULL) {
            return 0;
        }
        if (is_computed(references[k])) {
            refresh(n);
        }
        values[k] = *from;
    }
    return 1;
}

static int set_numbers(Numbers *n, const unsigned int *references, size_t count, const double *values)
{
    size_t k;
    for (k = 0; k < count; ++k) {
        double *to = place(n, references[k]);
        if (to == NULL || references[k] == 0 || is_computed(references[k])) {
            return 0;
        }
        *to = values[k];
        n->fresh = 0.0;
    }
    return 1;
}

/* Takes the machine so many seconds further in steps of its own, or, where they do not fit, in shorter ones. Gives 0, or
 * the status of the step that failed. */
static int advance(Numbers *n, double seconds)
{
    double next[N_S], status[1], step = n->step, fit = floor(seconds / step + 0.5);
    const int changed = memcmp(n->held_u, n->u, sizeof(n->u)) != 0 || memcmp(n->held_p, n->p, sizeof(n->p)) != 0;
    if (fit < 1.0 || fabs(fit * step - seconds) > 1e-9 * step * fit) {
        fit = ceil(seconds / step - 1e-9);
        step = seconds / fit;
    }
    if (step < n->s[AT_STEP] || step > n->s[AT_STEP] || (REMEMBERS && changed)) {
        begin(n, step);
    }
    n->fresh = 0.0;
    for (; fit > 0.5; fit -= 1.0) {
        MODEL_TICK(n->s, n->u, n->p, next, status);
        if (status[0] > 0.5) {
            return (int)status[0];
        }
        memcpy(n->s, next, sizeof(next));
    }
    return 0;
}

/* Some elements of a vector of all: of the states, inputs and parameters in `known`, of the rates and outputs in
 * `unknown`. */
typedef struct {
    double known[N_Y + N_U + N_P + 1];
    double unknown[N_Y + N_OUT + 1];
} Moves;

static double *known_of(Moves *m, size_t reference)
{
    if (reference >= 1 && reference < AT_RATES) {
        return &m->known[reference - 1];
    }
    return reference >= AT_INPUTS && reference < AT_OUTPUTS ? &m->known[reference - AT_INPUTS + N_Y] : NULL;
}

static double *unknown_of(Moves *m, size_t reference)
{
    if (reference >= AT_RATES && reference < AT_INPUTS) {
        return &m->unknown[reference - AT_RATES];
    }
    return reference >= AT_OUTPUTS && reference < AT_END ? &m->unknown[reference - AT_OUTPUTS + N_Y] : NULL;
}

/* How fast unknowns change when knowns move. A state that is asked for as an output is what moves. */
static int directional(
    const Numbers *n, const unsigned int *unknowns, size_t count, const unsigned int *knowns, size_t moving,
    const double *seeds, double *results)
{
    Moves m;
    size_t k;
    memset(&m, 0, sizeof(m));
    for (k = 0; k < moving; ++k) {
        double *to = known_of(&m, knowns[k]);
        if (to == NULL) {
            return 0;
        }
        *to = seeds[k];
    }
    MODEL_SLOPE_ALONG(n->s, n->u, n->p, m.known, m.known + N_Y, m.known + N_Y + N_U, m.unknown);
    MODEL_OBSERVE_ALONG(n->s, n->u, n->p, m.known, m.known + N_Y, m.known + N_Y + N_U, m.unknown + N_Y);
    for (k = 0; k < count; ++k) {
        const double *from = unknown_of(&m, unknowns[k]);
        if (from == NULL) {
            from = known_of(&m, unknowns[k]);
        }
        if (from == NULL) {
            return 0;
        }
        results[k] = *from;
    }
    return 1;
}

#ifdef WITH_ADJOINT
/* The gradient, with respect to knowns, of the sum of unknowns by their weights. */
static int adjoint(
    const Numbers *n, const unsigned int *unknowns, size_t count, const unsigned int *knowns, size_t moving,
    const double *weights, double *results)
{
    Moves m, of_outputs;
    double own[N_Y + N_U + N_P + 1];
    size_t k;
    memset(&m, 0, sizeof(m));
    memset(own, 0, sizeof(own));
    memset(&of_outputs, 0, sizeof(of_outputs));
    for (k = 0; k < count; ++k) {
        double *to = unknown_of(&m, unknowns[k]);
        if (to == NULL && known_of(&m, unknowns[k]) != NULL) {
            to = &own[known_of(&m, unknowns[k]) - m.known]; /* a state that is an output */
        }
        if (to == NULL) {
            return 0;
        }
        *to += weights[k];
    }
    MODEL_SLOPE_BACK(n->s, n->u, n->p, m.unknown, m.known, m.known + N_Y, m.known + N_Y + N_U);
    MODEL_OBSERVE_BACK(
        n->s, n->u, n->p, m.unknown + N_Y, of_outputs.known, of_outputs.known + N_Y, of_outputs.known + N_Y + N_U);
    for (k = 0; k < moving; ++k) {
        const double *from = known_of(&m, knowns[k]);
        if (from == NULL) {
            return 0;
        }
        results[k] = *from + of_outputs.known[from - m.known] + own[from - m.known];
    }
    return 1;
}
#endif

#endif
