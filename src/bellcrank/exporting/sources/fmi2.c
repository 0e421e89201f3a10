/* An exported machine with the interface of FMI 2.0: Co-Simulation and Model Exchange. The interface is declared here
 * as in the standard (fmi-standard.org), so that no other file is needed. */
#include "instance.h"

typedef void *Component;
typedef unsigned int Reference;
typedef int Boolean;
typedef const char *Text;
typedef enum { OK, WARNING, DISCARD, ERROR, FATAL, PENDING } Status;

typedef struct {
    void (*log)(void *environment, Text name, Status status, Text category, Text message, ...);
    void *(*allocate)(size_t count, size_t size);
    void (*release)(void *memory);
    void (*finished)(void *environment, Status status);
    void *environment;
} Callbacks;

typedef struct {
    Boolean new_states_needed, terminate, nominals_changed, values_changed, has_next_event;
    double next_event;
} EventInfo;

typedef struct {
    Numbers now, before;
    const Callbacks *callbacks;
    char *name;
} Instance;

static Status failed(Instance *m, Text message)
{
    if (m->callbacks != NULL && m->callbacks->log != NULL) {
        m->callbacks->log(m->callbacks->environment, m->name, ERROR, "logStatusError", "%s", message);
    }
    return ERROR;
}

SHARED Text fmi2GetTypesPlatform(void) { return "default"; }
SHARED Text fmi2GetVersion(void) { return "2.0"; }

SHARED Status fmi2SetDebugLogging(Component c, Boolean on, size_t count, const Text categories[])
{
    (void)c; (void)on; (void)count; (void)categories;
    return OK;
}

SHARED Component fmi2Instantiate(
    Text name, int kind, Text guid, Text resources, const Callbacks *callbacks, Boolean visible, Boolean logging)
{
    Instance *m;
    (void)resources; (void)visible; (void)logging;
    if (name == NULL || guid == NULL || strcmp(guid, MODEL_TOKEN) != 0 || (kind != 0 && kind != 1)) {
        return NULL;
    }
    m = (Instance *)calloc(1, sizeof(Instance));
    if (m == NULL) {
        return NULL;
    }
    m->name = (char *)calloc(strlen(name) + 1, 1);
    if (m->name == NULL) {
        free(m);
        return NULL;
    }
    memcpy(m->name, name, strlen(name));
    m->callbacks = callbacks;
    at_rest(&m->now);
    return m;
}

SHARED void fmi2FreeInstance(Component c)
{
    if (c != NULL) {
        free(((Instance *)c)->name);
        free(c);
    }
}

SHARED Status fmi2SetupExperiment(Component c, Boolean has_tolerance, double tolerance, double start, Boolean ends, double end)
{
    (void)ends; (void)end;
    if (!at_tolerance(&((Instance *)c)->now, has_tolerance, tolerance)) {
        return failed(c, "the tolerance is negative or not a number");
    }
    return at_time(&((Instance *)c)->now, start) ? OK : failed(c, "the start time is not finite");
}

SHARED Status fmi2EnterInitializationMode(Component c) { (void)c; return OK; }

SHARED Status fmi2ExitInitializationMode(Component c)
{
    Numbers *n = &((Instance *)c)->now;
    begin(n, n->step);
    return OK;
}

SHARED Status fmi2Terminate(Component c) { (void)c; return OK; }

SHARED Status fmi2Reset(Component c)
{
    at_rest(&((Instance *)c)->now);
    return OK;
}

SHARED Status fmi2GetReal(Component c, const Reference which[], size_t count, double values[])
{
    return get_numbers(&((Instance *)c)->now, which, count, values) ? OK : failed(c, "there is no such variable");
}

SHARED Status fmi2SetReal(Component c, const Reference which[], size_t count, const double values[])
{
    return set_numbers(&((Instance *)c)->now, which, count, values) ? OK : failed(c, "a variable does not exist or cannot be set");
}

/* All variables are real numbers. */
#define NOTHING(kind, type) \
    SHARED Status fmi2Get##kind(Component c, const Reference which[], size_t count, type values[]) \
    { \
        (void)which; (void)values; \
        return count == 0 ? OK : failed(c, "there is no variable of this type"); \
    } \
    SHARED Status fmi2Set##kind(Component c, const Reference which[], size_t count, const type values[]) \
    { \
        (void)which; (void)values; \
        return count == 0 ? OK : failed(c, "there is no variable of this type"); \
    }
NOTHING(Integer, int)
NOTHING(Boolean, Boolean)
NOTHING(String, Text)

SHARED Status fmi2GetFMUstate(Component c, void **state)
{
    if (state == NULL) {
        return failed(c, "the pointer to the state is NULL");
    }
    return kept(state, &((Instance *)c)->now) ? OK : failed(c, "no memory for a copy of the state");
}

SHARED Status fmi2SetFMUstate(Component c, void *state)
{
    if (state == NULL) {
        return failed(c, "the state is NULL");
    }
    memcpy(&((Instance *)c)->now, state, sizeof(Numbers));
    return OK;
}

SHARED Status fmi2FreeFMUstate(Component c, void **state)
{
    (void)c;
    if (state != NULL) {
        free(*state);
        *state = NULL;
    }
    return OK;
}

SHARED Status fmi2SerializedFMUstateSize(Component c, void *state, size_t *size)
{
    (void)c; (void)state;
    *size = BYTES;
    return OK;
}

SHARED Status fmi2SerializeFMUstate(Component c, void *state, char bytes[], size_t size)
{
    if (state == NULL || bytes == NULL || size < BYTES) {
        return failed(c, "the state is NULL, or the buffer is too small");
    }
    write_bytes(state, bytes);
    return OK;
}

SHARED Status fmi2DeSerializeFMUstate(Component c, const char bytes[], size_t size, void **state)
{
    if (state == NULL || !are_mine(bytes, size)) {
        return failed(c, "the bytes are not a state of this model");
    }
    return kept(state, bytes + MARK) ? OK : failed(c, "no memory for a copy of the state");
}

SHARED Status fmi2GetDirectionalDerivative(
    Component c, const Reference unknowns[], size_t count, const Reference knowns[], size_t moving, const double seeds[],
    double results[])
{
    const Numbers *n = &((Instance *)c)->now;
    return directional(n, unknowns, count, knowns, moving, seeds, results) ? OK : failed(c, "a variable has no such derivative");
}

/* -- Model Exchange */

SHARED Status fmi2EnterEventMode(Component c) { (void)c; return OK; }
SHARED Status fmi2EnterContinuousTimeMode(Component c) { (void)c; return OK; }

SHARED Status fmi2NewDiscreteStates(Component c, EventInfo *info)
{
    Numbers *n = &((Instance *)c)->now;
    memset(info, 0, sizeof(*info));
    info->values_changed = at_once(n, &info->next_event);
    info->has_next_event = info->next_event >= n->s[0];
    info->terminate = n->ended > 0.5;
    return OK;
}

SHARED Status fmi2CompletedIntegratorStep(Component c, Boolean no_rollback, Boolean *enter_event_mode, Boolean *terminate)
{
    (void)c; (void)no_rollback;
    *enter_event_mode = 0;
    *terminate = 0;
    return OK;
}

SHARED Status fmi2SetTime(Component c, double t)
{
    return at_time(&((Instance *)c)->now, t) ? OK : failed(c, "the time is not finite");
}

SHARED Status fmi2SetContinuousStates(Component c, const double x[], size_t count)
{
    Numbers *n = &((Instance *)c)->now;
    if (count != N_Y) {
        return failed(c, "the size is not the number of states");
    }
    memcpy(n->s + 1, x, N_Y * sizeof(double));
    n->fresh = 0.0;
    return OK;
}

SHARED Status fmi2GetDerivatives(Component c, double rates[], size_t count)
{
    Numbers *n = &((Instance *)c)->now;
    if (count != N_Y) {
        return failed(c, "the size is not the number of states");
    }
    refresh(n);
    memcpy(rates, n->rates, N_Y * sizeof(double));
    return OK;
}

SHARED Status fmi2GetEventIndicators(Component c, double indicators[], size_t count)
{
    Numbers *n = &((Instance *)c)->now;
    if (count != N_E) {
        return failed(c, "the size is not the number of event indicators");
    }
    refresh(n);
    memcpy(indicators, n->g, N_E * sizeof(double));
    return OK;
}

SHARED Status fmi2GetContinuousStates(Component c, double x[], size_t count)
{
    if (count != N_Y) {
        return failed(c, "the size is not the number of states");
    }
    memcpy(x, ((Instance *)c)->now.s + 1, N_Y * sizeof(double));
    return OK;
}

SHARED Status fmi2GetNominalsOfContinuousStates(Component c, double nominals[], size_t count)
{
    if (count != N_Y) {
        return failed(c, "the size is not the number of states");
    }
    usual_sizes(nominals);
    return OK;
}

/* -- Co-Simulation */

SHARED Status fmi2SetRealInputDerivatives(
    Component c, const Reference which[], size_t count, const int orders[], const double values[])
{
    (void)which; (void)orders; (void)values;
    return count == 0 ? OK : failed(c, "inputs are held, not interpolated");
}

SHARED Status fmi2GetRealOutputDerivatives(
    Component c, const Reference which[], size_t count, const int orders[], double values[])
{
    (void)which; (void)orders; (void)values;
    return count == 0 ? OK : failed(c, "there are no derivatives of outputs");
}

SHARED Status fmi2DoStep(Component c, double t, double seconds, Boolean no_rollback)
{
    Instance *m = (Instance *)c;
    Text why = misfit(&m->now, t, seconds);
    int status;
    (void)no_rollback;
    if (why != NULL) {
        return failed(c, why);
    }
    status = seconds > 0.0 ? advance_or_stay(&m->now, &m->before, seconds) : 0;
    return status == 0 ? OK : status == EVENT ? DISCARD : failed(c, reason(status));
}

SHARED Status fmi2CancelStep(Component c) { return failed(c, "no step is ever pending"); }

#define NO_STATUS(kind, type) \
    SHARED Status fmi2Get##kind##Status(Component c, int which, type *value) \
    { \
        (void)c; (void)which; (void)value; \
        return DISCARD; \
    }
NO_STATUS(, Status)
NO_STATUS(Integer, int)
NO_STATUS(String, Text)

/* Status after a step that an event ended: the time reached, and whether the run has ended. */
SHARED Status fmi2GetRealStatus(Component c, int which, double *value)
{
    *value = ((Instance *)c)->now.s[0] + ((Instance *)c)->now.owed;
    return which == 2 ? OK : DISCARD;
}

SHARED Status fmi2GetBooleanStatus(Component c, int which, Boolean *value)
{
    *value = ((Instance *)c)->now.ended > 0.5;
    return which == 3 ? OK : DISCARD;
}
