/* slider.inverse_dynamics in C99, double; made by bellcrank VERSION
 *
 *   q[2]        q
 *   v[2]        v
 *   a[2]        a
 *   out[2]      inverse_dynamics
 *
 * 29 operations: 15 mul, 7 add, 5 sub, 2 trig. Do not edit: make it anew.
 * Matrices lie row by row. Arguments must not overlap. Inputs are not checked: NaN in, NaN out (but for -ffast-math).
 * Re-entrant and fit for real time: no static data, no allocation, no loops, no calls but libm's. Its stack, libm's
 * aside, stays below SLIDER_INVERSE_DYNAMICS_STACK_BYTES even where a compiler optimises nothing. */
#ifndef SLIDER_INVERSE_DYNAMICS_H
#define SLIDER_INVERSE_DYNAMICS_H

#define SLIDER_INVERSE_DYNAMICS_SIZE_Q 2
#define SLIDER_INVERSE_DYNAMICS_SIZE_V 2
#define SLIDER_INVERSE_DYNAMICS_SIZE_A 2
#define SLIDER_INVERSE_DYNAMICS_SIZE_OUT 2
#define SLIDER_INVERSE_DYNAMICS_OPERATIONS 29
#define SLIDER_INVERSE_DYNAMICS_STACK_BYTES 600

#ifdef __cplusplus
extern "C" void slider_inverse_dynamics(const double *q, const double *v, const double *a, double *out);
#else
void slider_inverse_dynamics(const double *restrict q, const double *restrict v, const double *restrict a, double *restrict out);
#endif

#endif
