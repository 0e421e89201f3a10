/* One instance of an exported machine, for any version of FMI: its numbers, access to them by value reference, steps of
 * any length, and derivatives. The generated file model.h defines the sizes and functions of the machine.
 *
 * Value references: 0 the time, then the states, their rates, inputs, parameters, outputs and indicators of events.
 * The first 1 + N_Y numbers of a machine's state s are the time and the states; these references are indices in s. */
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
#define AT_INDICATORS (AT_OUTPUTS + N_OUT)
#define AT_END (AT_INDICATORS + N_E)

#if defined _WIN32
#define SHARED __declspec(dllexport)
#elif defined __GNUC__
#define SHARED __attribute__((visibility("default")))
#else
#define SHARED
#endif

/* Complete state of an instance; it is copied and serialised as a whole. Arrays have one extra element because C has no
 * empty arrays. */
typedef struct {
    double s[N_S];
    double u[N_U + 1];
    double p[N_P + 1];
    double held_u[N_U + 1]; /* inputs and parameters that the integrator's memory belongs to */
    double held_p[N_P + 1];
    double step; /* the machine's own step size */
    double rates[N_Y + 1];
    double out[N_OUT + 1];
    double g[N_E + 1];
    double fresh; /* 1 if rates, outputs and indicators are up to date */
    double was[N_E + 1]; /* indicators after the last event; an event happens where one changes its sign */
    double sampled; /* the step in which the last sample was taken */
    double ended; /* 1 if an event ended the step or the run */
    double owed; /* seconds of steps that were too short; the next longer step includes them */
} Numbers;

/* Status codes of a step (docs/export.md). */
enum { FAR_OFF = 2, TOO_SMALL = 3, EVENT = 4, OPEN = 6, TOO_MANY = 7, BAD_STEP = 8, OFF_GRID = 100, TOO_LONG = 101 };
#define TOO_SHORT 1e-8 /* fraction of the machine's own step: rounding by the importer */

static const char *reason(int status)
{
    switch (status) {
    case TOO_SMALL: return "the tolerance requires steps that are too small; the system may be stiff";
    case OPEN: return "the loops cannot be closed: a singular configuration is near, or the step is too long";
#if ADAPTIVE && N_E > 0
    case TOO_MANY: return "the communication step takes too many of the machine's own: it is too long, or events follow ever closer";
#elif ADAPTIVE
    case TOO_MANY: return "the communication step takes too many of the machine's own, more than 1e8; take shorter ones, or a larger tolerance";
#else
    case TOO_MANY: return "too many events in one of the machine's own steps: events follow ever closer";
#endif
    case BAD_STEP: return "the step is too short to change the time at its present size";
    case TOO_LONG: return "the communication step takes more than 1e8 of the machine's own; take shorter ones";
    case OFF_GRID: return "with a sampled controller a communication step must be a whole number of the machine's own steps";
    default: return "a number is not finite; take shorter steps, and check gains and stiffnesses";
    }
}

/* Byte that fills numbers before they are written; tests take 255, which makes them NaN. */
#ifndef UNWRITTEN
#define UNWRITTEN 0
#endif

static void at_rest(Numbers *n)
{
    memset(n, UNWRITTEN, sizeof(*n));
    MODEL_REST(n->s, n->u, n->p);
    n->step = n->s[AT_STEP];
    n->fresh = 0.0;
    n->sampled = -1.0;
    n->ended = 0.0;
    n->owed = 0.0;
}

/* Resets the integrator's memory, which belongs to other inputs or parameters. */
static void renewed(Numbers *n)
{
    double next[N_S];
    MODEL_BEGIN(n->s, n->u, n->p, next);
    memcpy(n->s, next, sizeof(next));
    memcpy(n->held_u, n->u, sizeof(n->u));
    memcpy(n->held_p, n->p, sizeof(n->p));
}

/* Prepares the first step, or steps of another length. */
static void begin(Numbers *n, double step)
{
    n->s[AT_BEGIN] = n->s[0];
    n->s[AT_STEPS] = 0.0;
#ifdef AT_GRID
    n->s[AT_GRID] = 0.0;
#endif
    n->s[AT_STEP] = step;
    n->s[AT_NEXT_STEP] = step;
    renewed(n);
}

/* Sets the tolerance of the importer, with adaptive steps. Returns 0 if it is not a valid tolerance. */
static int at_tolerance(Numbers *n, int asked, double tolerance)
{
    if (asked && !(isfinite(tolerance) && tolerance >= 0.0)) {
        return 0;
    }
    (void)n;
#if ADAPTIVE
    if (asked && tolerance > 0.0) {
        n->s[AT_RTOL] = n->s[AT_ATOL] = tolerance;
    }
#endif
    return 1;
}

/* Sets the time. Returns 0 if it is not finite. */
static int at_time(Numbers *n, double t)
{
    if (!isfinite(t)) {
        return 0;
    }
    n->s[0] = t;
    n->s[AT_STEP] = 0.0; /* time is counted in steps from a start time, which changes here */
    n->fresh = 0.0;
    return 1;
}

static void refresh(Numbers *n)
{
    if (n->fresh < 0.5) {
        MODEL_SLOPE(n->s, n->u, n->p, n->rates);
        MODEL_OBSERVE(n->s, n->u, n->p, n->out);
#if N_E > 0
        MODEL_INDICATE(n->s, n->u, n->p, n->g);
#endif
        n->fresh = 1.0;
    }
}

/* Returns the address of a number, or NULL if there is none. */
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
    if (reference < AT_INDICATORS) {
        return &n->out[reference - AT_OUTPUTS];
    }
    return reference < AT_END ? &n->g[reference - AT_INDICATORS] : NULL;
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

/* Sets all of them, or none if one cannot be set. */
static int set_numbers(Numbers *n, const unsigned int *references, size_t count, const double *values)
{
    size_t k;
    for (k = 0; k < count; ++k) {
        if (references[k] == 0 || references[k] >= AT_END || is_computed(references[k])) {
            return 0;
        }
    }
    for (k = 0; k < count; ++k) {
        *place(n, references[k]) = values[k];
        n->fresh = 0.0;
    }
    return 1;
}

/* A state as bytes begins with the token of this model, because that of another model may have the same size. */
#define MARK (sizeof(MODEL_TOKEN) - 1)
#define BYTES (MARK + sizeof(Numbers))

static void write_bytes(const void *state, void *bytes)
{
    memcpy(bytes, MODEL_TOKEN, MARK);
    memcpy((char *)bytes + MARK, state, sizeof(Numbers));
}

static int are_mine(const void *bytes, size_t size)
{
    return bytes != NULL && size == BYTES && memcmp(bytes, MODEL_TOKEN, MARK) == 0;
}

/* Copies to *state, which is allocated if it is NULL. Returns 0 if there is no memory. */
static int kept(void **state, const void *from)
{
    if (*state == NULL) {
        *state = malloc(sizeof(Numbers));
    }
    if (*state == NULL) {
        return 0;
    }
    memcpy(*state, from, sizeof(Numbers));
    return 1;
}

/* Returns the reason why a step of the importer cannot be taken, or NULL if it can. */
static const char *misfit(const Numbers *n, double t, double seconds)
{
    if (!(isfinite(t) && isfinite(seconds) && seconds >= 0.0)) {
        return "the time or the step is negative or not a number";
    }
    if (fabs(t - n->s[0]) > 1e-6 * (n->step + fabs(t))) {
        return "the step does not begin where the last one ended";
    }
    return NULL;
}

/* Returns whether `seconds` are a whole number of steps, except for rounding. */
static int fits(double seconds, double step)
{
    const double fit = floor(seconds / step + 0.5);
    return fit >= 1.0 && fabs(fit * step - seconds) <= 1e-9 * step * fit;
}

#if ADAPTIVE
#define FASTER 100.0 /* a call goes on while steps this much longer than the last ones would suffice */

/* Advances to the next point of communication in at most MOST_STEPS steps, as with fixed steps. A call that would need
 * many more ends soon: after each AT_MOST steps, the last ones show how many would follow. Events that follow ever
 * closer end it, too. */
static int advance_to(Numbers *n, double end)
{
    const double most = n->s[AT_MOST];
    double left = MOST_STEPS, from;
    int status;
    do {
        from = n->s[0];
        status = MODEL_ADVANCE(n->s, n->u, n->p);
        left -= most;
    } while (status == TOO_MANY && FASTER * (n->s[0] - from) * (left / most) >= end - n->s[0]);
    return status;
}
#endif

/* Advances the machine by `seconds` in its own steps, or in shorter ones if they do not fit; with adaptive steps, the
 * last one ends there. Seconds that are too few for a step are owed, so that nothing is divided by them. Returns 0, or the
 * status of the step that failed. */
static int advance(Numbers *n, double seconds)
{
    const int changed = memcmp(n->held_u, n->u, sizeof(n->u)) != 0 || memcmp(n->held_p, n->p, sizeof(n->p)) != 0;
    double step = n->step;
    int status = 0;
#if !ADAPTIVE
    double fit;
#endif
    n->fresh = 0.0;
    if (ADAPTIVE || !fits(seconds, step)) {
        seconds += n->owed;
        n->owed = 0.0;
    }
    if (seconds <= TOO_SHORT * step || !(n->s[0] + seconds > n->s[0])) {
        n->owed = seconds;
        return 0;
    }
    if (!ADAPTIVE && seconds / step > MOST_STEPS) {
        return TOO_LONG;
    }
#if ADAPTIVE
    step = seconds;
    if (REMEMBERS && changed) {
        renewed(n);
    }
    n->s[AT_BEGIN] = n->s[0];
    n->s[AT_STEP] = step;
    n->s[AT_GRID] = 0.0;
#else
    fit = floor(seconds / step + 0.5);
    if (!fits(seconds, step)) {
        if (N_CLOCKS > 0) {
            return OFF_GRID;
        }
        fit = ceil(seconds / step - 1e-9);
        step = seconds / fit;
    }
    if (step < n->s[AT_STEP] || step > n->s[AT_STEP]) {
        begin(n, step);
    } else if (REMEMBERS && changed) {
        renewed(n);
    }
#endif
#if ADAPTIVE
    status = advance_to(n, n->s[AT_BEGIN] + step);
#else
    for (; fit > 0.5 && status == 0; fit -= 1.0) {
        status = MODEL_ADVANCE(n->s, n->u, n->p);
    }
#endif
    n->ended = status == EVENT ? 1.0 : 0.0;
    return status;
}

/* Advances as above; if a step fails, restores the state before the first. */
static int advance_or_stay(Numbers *n, Numbers *before, double seconds)
{
    int status;
    memcpy(before, n, sizeof(*n));
    status = advance(n, seconds);
    if (status != 0 && status != EVENT) {
        memcpy(n, before, sizeof(*n));
    }
    return status;
}

/* -- Model Exchange: events and samples */

#if N_E > 0
/* Returns whether a function crossed zero in the direction of its event. */
static int is_crossed(double direction, double before, double after)
{
    const int rose = before < 0.0 && after >= 0.0, fell = before > 0.0 && after <= 0.0;
    return direction > 0.5 ? rose : direction < -0.5 ? fell : rose || fell;
}

/* Handles events whose functions changed sign. Returns 1 if the state jumped. */
static int happen(Numbers *n)
{
    static const double directions[N_E] = MODEL_DIRECTIONS, actions[N_E] = MODEL_ACTIONS;
    double g[N_E], e[N_E], y[N_Y + 1];
    int jumped = 0, any = 0, k;
    MODEL_INDICATE(n->s, n->u, n->p, g);
    for (k = 0; k < N_E; ++k) {
        const int is = is_crossed(directions[k], n->was[k], g[k]);
        e[k] = is ? 1.0 : 0.0;
        any = any || is;
        jumped = jumped || (is && actions[k] > 1.5);
        if (is && actions[k] > 0.5 && actions[k] < 1.5) {
            n->ended = 1.0;
        }
    }
    if (jumped) {
        MODEL_SWITCH(n->s, n->u, n->p, e, y);
        memcpy(n->s + 1, y, N_Y * sizeof(double));
        n->fresh = 0.0;
        MODEL_INDICATE(n->s, n->u, n->p, g);
    }
    for (k = 0; k < N_E; ++k) {
        n->was[k] = any && e[k] > 0.5 ? 0.0 : g[k]; /* an event that happened is at zero, except for rounding */
    }
    return jumped;
}
#endif

#if N_CLOCKS > 0
/* Sets the steps since the last sample of each clock; before the first sample they count up to 0. */
static void phases_at(Numbers *n, double now)
{
    static const double clocks[N_CLOCKS][2] = MODEL_CLOCKS;
    int k;
    for (k = 0; k < N_CLOCKS; ++k) {
        const double each = floor(clocks[k][0] / n->step + 0.5), past = now - floor(clocks[k][1] / n->step + 0.5);
        n->s[AT_PHASES + k] = past < 0.0 ? past : fmod(past, each);
    }
}

/* Returns the first step after `now` in which a sample is taken or an output arrives. */
static double next_sample(const Numbers *n, double now)
{
    static const double clocks[N_CLOCKS][2] = MODEL_CLOCKS;
    double first = HUGE_VAL;
    int k;
    for (k = 0; k < N_CLOCKS; ++k) {
        const double each = floor(clocks[k][0] / n->step + 0.5), late = floor(clocks[k][1] / n->step + 0.5);
        const double turns = floor((now - late + 0.5) / each) + 1.0;
        const double mine = late + each * (turns > 0.0 ? turns : 0.0);
        first = mine < first ? mine : first;
    }
    return first;
}

/* Takes the samples that are due. Returns 1 if there are any; *next_time: time of the next ones. */
static int sample(Numbers *n, double *next_time)
{
    double next[N_S];
    const double now = floor((n->s[0] - n->s[AT_BEGIN]) / n->step + 0.5);
    const double off = n->s[0] - (n->s[AT_BEGIN] + now * n->step);
    const int due = next_sample(n, now - 1.0) < now + 0.5 && fabs(off) < 1e-3 * n->step && n->sampled < now - 0.5;
    if (due) {
        n->s[AT_STEPS] = now;
        phases_at(n, now);
        n->s[AT_FRESH] = 1.0;
        MODEL_RENEW(n->s, n->u, n->p, next);
        memcpy(n->s, next, sizeof(next));
        n->sampled = now;
        n->fresh = 0.0;
    }
    *next_time = n->s[AT_BEGIN] + n->step * next_sample(n, now);
    return due;
}
#endif

/* Handles samples and events at this time. Returns 1 if the state jumped; *next: time of the next sample, or -inf. */
static int at_once(Numbers *n, double *next)
{
    int jumped = 0;
    *next = -HUGE_VAL;
#if N_CLOCKS > 0
    jumped = sample(n, next);
#endif
#if N_E > 0
    jumped = happen(n) || jumped;
#endif
    (void)n;
    return jumped;
}

/* Writes the nominal sizes of the states, which an integrator uses to scale absolute errors. */
static void usual_sizes(double *sizes)
{
    static const double found[N_Y + 1] = MODEL_NOMINALS;
    memcpy(sizes, found, N_Y * sizeof(double));
}

/* Directions or weights of all variables: states, inputs and parameters in `known`; rates, outputs and indicators in
 * `unknown`. */
typedef struct {
    double known[N_Y + N_U + N_P + 1];
    double unknown[N_Y + N_OUT + N_E + 1];
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

/* Directional derivatives of unknowns along knowns. For a state among the unknowns it is the state's seed. */
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
    MODEL_ALONG(n->s, n->u, n->p, m.known, m.known + N_Y, m.known + N_Y + N_U, m.unknown);
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
#ifndef MODEL_BACK
/* Derivative of the weighted sum of all unknowns with respect to one known, for a large model. */
static double weighted(const Numbers *n, size_t known, const double *weights)
{
    Moves m;
    double sum = 0.0;
    size_t k;
    memset(&m, 0, sizeof(m));
    m.known[known] = 1.0;
    MODEL_ALONG(n->s, n->u, n->p, m.known, m.known + N_Y, m.known + N_Y + N_U, m.unknown);
    for (k = 0; k < N_Y + N_OUT + N_E; ++k) {
        sum += weights[k] * m.unknown[k];
    }
    return sum;
}
#endif

/* Gradient of the weighted sum of unknowns with respect to knowns. */
static int adjoint(
    const Numbers *n, const unsigned int *unknowns, size_t count, const unsigned int *knowns, size_t moving,
    const double *weights, double *results)
{
    Moves m;
    double own[N_Y + N_U + N_P + 1];
    size_t k;
    memset(&m, 0, sizeof(m));
    memset(own, 0, sizeof(own));
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
#ifdef MODEL_BACK
    MODEL_BACK(n->s, n->u, n->p, m.unknown, m.known, m.known + N_Y, m.known + N_Y + N_U);
#endif
    for (k = 0; k < moving; ++k) {
        double *from = known_of(&m, knowns[k]);
        if (from == NULL) {
            return 0;
        }
#ifndef MODEL_BACK
        *from = weighted(n, (size_t)(from - m.known), m.unknown);
#endif
        results[k] = *from + own[from - m.known];
    }
    return 1;
}
#endif

#endif
