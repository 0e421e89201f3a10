/* An exported machine with the interface of FMI 3.0: Co-Simulation and Model Exchange. The interface is declared here
 * as in the standard (fmi-standard.org), so that no other file is needed. */
#include "instance.h"

#include <stdbool.h>
#include <stdint.h>

typedef unsigned int Reference;
typedef const char *Text;
typedef const uint8_t *Bytes;
typedef enum { OK, WARNING, DISCARD, ERROR, FATAL } Status;
typedef void (*Log)(void *environment, Status status, Text category, Text message);

typedef struct {
    Numbers now, before;
    void *environment;
    Log log;
    bool early; /* whether a step may return early */
} Instance;

static Status failed(void *c, Text message)
{
    const Instance *m = (const Instance *)c;
    if (m->log != NULL) {
        m->log(m->environment, ERROR, "logStatusError", message);
    }
    return ERROR;
}

static void *made(Text token, void *environment, Log log)
{
    Instance *m = NULL;
    if (token != NULL && strcmp(token, MODEL_TOKEN) == 0) {
        m = (Instance *)calloc(1, sizeof(Instance));
    }
    if (m != NULL) {
        m->environment = environment;
        m->log = log;
        at_rest(&m->now);
    }
    return m;
}

SHARED Text fmi3GetVersion(void) { return "3.0"; }

SHARED Status fmi3SetDebugLogging(void *c, bool on, size_t count, const Text categories[])
{
    (void)c; (void)on; (void)count; (void)categories;
    return OK;
}

SHARED void *fmi3InstantiateModelExchange(
    Text name, Text token, Text resources, bool visible, bool logging, void *environment, Log log)
{
    (void)name; (void)resources; (void)visible; (void)logging;
    return made(token, environment, log);
}

SHARED void *fmi3InstantiateCoSimulation(
    Text name, Text token, Text resources, bool visible, bool logging, bool event_mode, bool early_return,
    const Reference intermediate[], size_t count, void *environment, Log log, void (*update)(void))
{
    Instance *m = (Instance *)made(token, environment, log);
    (void)name; (void)resources; (void)visible; (void)logging; (void)event_mode;
    (void)intermediate; (void)count; (void)update;
    if (m != NULL) {
        m->early = early_return;
    }
    return m;
}

SHARED void *fmi3InstantiateScheduledExecution(
    Text name, Text token, Text resources, bool visible, bool logging, void *environment, Log log,
    void (*update)(void), void (*lock)(void), void (*unlock)(void))
{
    (void)name; (void)token; (void)resources; (void)visible; (void)logging; (void)environment; (void)log;
    (void)update; (void)lock; (void)unlock;
    return NULL;
}

SHARED void fmi3FreeInstance(void *c) { free(c); }

SHARED Status fmi3EnterInitializationMode(
    void *c, bool has_tolerance, double tolerance, double start, bool ends, double end)
{
    (void)ends; (void)end;
    if (!at_tolerance(&((Instance *)c)->now, has_tolerance, tolerance)) {
        return failed(c, "the tolerance is negative or not a number");
    }
    return at_time(&((Instance *)c)->now, start) ? OK : failed(c, "the start time is not finite");
}

SHARED Status fmi3ExitInitializationMode(void *c)
{
    Numbers *n = &((Instance *)c)->now;
    begin(n, n->step);
    return OK;
}

SHARED Status fmi3Reset(void *c)
{
    at_rest(&((Instance *)c)->now);
    return OK;
}

/* Functions that have nothing to do. */
#define DONE(name) \
    SHARED Status fmi3##name(void *c) \
    { \
        (void)c; \
        return OK; \
    }
DONE(EnterEventMode)
DONE(Terminate)
DONE(EnterConfigurationMode)
DONE(ExitConfigurationMode)
DONE(EvaluateDiscreteStates)
DONE(EnterContinuousTimeMode)
DONE(EnterStepMode)

SHARED Status fmi3GetFloat64(void *c, const Reference which[], size_t count, double values[], size_t size)
{
    const int good = size == count && get_numbers(&((Instance *)c)->now, which, count, values);
    return good ? OK : failed(c, "there is no such variable");
}

SHARED Status fmi3SetFloat64(void *c, const Reference which[], size_t count, const double values[], size_t size)
{
    const int good = size == count && set_numbers(&((Instance *)c)->now, which, count, values);
    return good ? OK : failed(c, "a variable does not exist or cannot be set");
}

/* All variables are of type Float64. */
#define NOTHING(kind, type) \
    SHARED Status fmi3Get##kind(void *c, const Reference which[], size_t count, type values[], size_t size) \
    { \
        (void)which; (void)values; (void)size; \
        return count == 0 ? OK : failed(c, "there is no variable of this type"); \
    } \
    SHARED Status fmi3Set##kind(void *c, const Reference which[], size_t count, const type values[], size_t size) \
    { \
        (void)which; (void)values; (void)size; \
        return count == 0 ? OK : failed(c, "there is no variable of this type"); \
    }
NOTHING(Float32, float)
NOTHING(Int8, int8_t)
NOTHING(UInt8, uint8_t)
NOTHING(Int16, int16_t)
NOTHING(UInt16, uint16_t)
NOTHING(Int32, int32_t)
NOTHING(UInt32, uint32_t)
NOTHING(Int64, int64_t)
NOTHING(UInt64, uint64_t)
NOTHING(Boolean, bool)
NOTHING(String, Text)

SHARED Status fmi3GetBinary(
    void *c, const Reference which[], size_t count, size_t sizes[], Bytes values[], size_t size)
{
    (void)which; (void)sizes; (void)values; (void)size;
    return count == 0 ? OK : failed(c, "there is no variable of this type");
}

SHARED Status fmi3SetBinary(
    void *c, const Reference which[], size_t count, const size_t sizes[], const Bytes values[], size_t size)
{
    (void)which; (void)sizes; (void)values; (void)size;
    return count == 0 ? OK : failed(c, "there is no variable of this type");
}

/* There are no clocks. */
#define NO_CLOCK(name, arguments) \
    SHARED Status fmi3##name arguments \
    { \
        (void)which; (void)a; \
        return count == 0 ? OK : failed(c, "there are no clocks"); \
    }
#define NO_CLOCK_2(name, arguments) \
    SHARED Status fmi3##name arguments \
    { \
        (void)which; (void)a; (void)b; \
        return count == 0 ? OK : failed(c, "there are no clocks"); \
    }
NO_CLOCK(GetClock, (void *c, const Reference which[], size_t count, bool a[]))
NO_CLOCK(SetClock, (void *c, const Reference which[], size_t count, const bool a[]))
NO_CLOCK_2(GetIntervalDecimal, (void *c, const Reference which[], size_t count, double a[], int b[]))
NO_CLOCK(GetShiftDecimal, (void *c, const Reference which[], size_t count, double a[]))
NO_CLOCK_2(GetShiftFraction, (void *c, const Reference which[], size_t count, uint64_t a[], uint64_t b[]))
NO_CLOCK(SetIntervalDecimal, (void *c, const Reference which[], size_t count, const double a[]))
NO_CLOCK_2(SetIntervalFraction, (void *c, const Reference which[], size_t count, const uint64_t a[], const uint64_t b[]))
NO_CLOCK(SetShiftDecimal, (void *c, const Reference which[], size_t count, const double a[]))
NO_CLOCK_2(SetShiftFraction, (void *c, const Reference which[], size_t count, const uint64_t a[], const uint64_t b[]))

SHARED Status fmi3GetIntervalFraction(
    void *c, const Reference which[], size_t count, uint64_t counters[], uint64_t resolutions[], int qualifiers[])
{
    (void)which; (void)counters; (void)resolutions; (void)qualifiers;
    return count == 0 ? OK : failed(c, "there are no clocks");
}

SHARED Status fmi3ActivateModelPartition(void *c, Reference clock, double t)
{
    (void)clock; (void)t;
    return failed(c, "there are no clocks");
}

SHARED Status fmi3GetNumberOfVariableDependencies(void *c, Reference which, size_t *count)
{
    (void)which; (void)count;
    return failed(c, "the model description has the dependencies; they do not change");
}

SHARED Status fmi3GetVariableDependencies(
    void *c, Reference which, size_t own[], Reference on[], size_t theirs[], int kinds[], size_t count)
{
    (void)which; (void)own; (void)on; (void)theirs; (void)kinds; (void)count;
    return failed(c, "the model description has the dependencies; they do not change");
}

SHARED Status fmi3GetFMUState(void *c, void **state)
{
    if (state == NULL) {
        return failed(c, "the pointer to the state is NULL");
    }
    return kept(state, &((Instance *)c)->now) ? OK : failed(c, "no memory for a copy of the state");
}

SHARED Status fmi3SetFMUState(void *c, void *state)
{
    if (state == NULL) {
        return failed(c, "the state is NULL");
    }
    memcpy(&((Instance *)c)->now, state, sizeof(Numbers));
    return OK;
}

SHARED Status fmi3FreeFMUState(void *c, void **state)
{
    (void)c;
    if (state != NULL) {
        free(*state);
        *state = NULL;
    }
    return OK;
}

SHARED Status fmi3SerializedFMUStateSize(void *c, void *state, size_t *size)
{
    (void)c; (void)state;
    *size = BYTES;
    return OK;
}

SHARED Status fmi3SerializeFMUState(void *c, void *state, uint8_t bytes[], size_t size)
{
    if (state == NULL || bytes == NULL || size < BYTES) {
        return failed(c, "the state is NULL, or the buffer is too small");
    }
    write_bytes(state, bytes);
    return OK;
}

SHARED Status fmi3DeserializeFMUState(void *c, const uint8_t bytes[], size_t size, void **state)
{
    if (state == NULL || !are_mine(bytes, size)) {
        return failed(c, "the bytes are not a state of this model");
    }
    return kept(state, bytes + MARK) ? OK : failed(c, "no memory for a copy of the state");
}

SHARED Status fmi3GetDirectionalDerivative(
    void *c, const Reference unknowns[], size_t count, const Reference knowns[], size_t moving, const double seeds[],
    size_t seeded, double results[], size_t size)
{
    const Numbers *n = &((Instance *)c)->now;
    const int fits = seeded == moving && size == count;
    return fits && directional(n, unknowns, count, knowns, moving, seeds, results) ? OK : failed(c, "a variable has no such derivative");
}

SHARED Status fmi3GetAdjointDerivative(
    void *c, const Reference unknowns[], size_t count, const Reference knowns[], size_t moving, const double seeds[],
    size_t seeded, double results[], size_t size)
{
    const Numbers *n = &((Instance *)c)->now;
    const int fits = seeded == count && size == moving;
    return fits && adjoint(n, unknowns, count, knowns, moving, seeds, results) ? OK : failed(c, "a variable has no such derivative");
}

/* -- Model Exchange */

SHARED Status fmi3UpdateDiscreteStates(
    void *c, bool *again, bool *terminate, bool *nominals_changed, bool *values_changed, bool *has_next, double *next)
{
    Numbers *n = &((Instance *)c)->now;
    double found;
    *again = *nominals_changed = false;
    *values_changed = at_once(n, &found) != 0;
    *has_next = found >= n->s[0];
    if (*has_next) {
        *next = found;
    }
    *terminate = n->ended > 0.5;
    return OK;
}

SHARED Status fmi3CompletedIntegratorStep(void *c, bool no_rollback, bool *enter_event_mode, bool *terminate)
{
    (void)c; (void)no_rollback;
    *enter_event_mode = *terminate = false;
    return OK;
}

SHARED Status fmi3SetTime(void *c, double t)
{
    return at_time(&((Instance *)c)->now, t) ? OK : failed(c, "the time is not finite");
}

SHARED Status fmi3SetContinuousStates(void *c, const double x[], size_t count)
{
    Numbers *n = &((Instance *)c)->now;
    if (count != N_Y) {
        return failed(c, "the size is not the number of states");
    }
    memcpy(n->s + 1, x, N_Y * sizeof(double));
    n->fresh = 0.0;
    return OK;
}

SHARED Status fmi3GetContinuousStateDerivatives(void *c, double rates[], size_t count)
{
    Numbers *n = &((Instance *)c)->now;
    if (count != N_Y) {
        return failed(c, "the size is not the number of states");
    }
    refresh(n);
    memcpy(rates, n->rates, N_Y * sizeof(double));
    return OK;
}

SHARED Status fmi3GetEventIndicators(void *c, double indicators[], size_t count)
{
    Numbers *n = &((Instance *)c)->now;
    if (count != N_E) {
        return failed(c, "the size is not the number of event indicators");
    }
    refresh(n);
    memcpy(indicators, n->g, N_E * sizeof(double));
    return OK;
}

SHARED Status fmi3GetContinuousStates(void *c, double x[], size_t count)
{
    if (count != N_Y) {
        return failed(c, "the size is not the number of states");
    }
    memcpy(x, ((Instance *)c)->now.s + 1, N_Y * sizeof(double));
    return OK;
}

SHARED Status fmi3GetNominalsOfContinuousStates(void *c, double nominals[], size_t count)
{
    if (count != N_Y) {
        return failed(c, "the size is not the number of states");
    }
    usual_sizes(nominals);
    return OK;
}

SHARED Status fmi3GetNumberOfEventIndicators(void *c, size_t *count)
{
    (void)c;
    *count = N_E;
    return OK;
}

SHARED Status fmi3GetNumberOfContinuousStates(void *c, size_t *count)
{
    (void)c;
    *count = N_Y;
    return OK;
}

/* -- Co-Simulation */

SHARED Status fmi3GetOutputDerivatives(
    void *c, const Reference which[], size_t count, const int32_t orders[], double values[], size_t size)
{
    (void)which; (void)orders; (void)values; (void)size;
    return count == 0 ? OK : failed(c, "there are no derivatives of outputs");
}

SHARED Status fmi3DoStep(
    void *c, double t, double seconds, bool no_rollback, bool *event, bool *terminate, bool *early, double *reached)
{
    Instance *m = (Instance *)c;
    Numbers *n = &m->now;
    Text why = misfit(n, t, seconds);
    int status;
    (void)no_rollback;
    if (why != NULL) {
        return failed(c, why);
    }
    status = seconds > 0.0 ? advance_or_stay(n, &m->before, seconds) : 0;
    *event = false;
    *terminate = status == EVENT;
    *early = *terminate && m->early;
    *reached = n->s[0] + n->owed;
    return status == 0 || status == EVENT ? OK : failed(c, reason(status));
}
