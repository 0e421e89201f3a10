/* slider.inverse_dynamics in C99, double; made by bellcrank VERSION
 *
 *   q[2]        q
 *   v[2]        v
 *   a[2]        a
 *   out[2]      inverse_dynamics
 *
 * 29 operations: 15 mul, 7 add, 5 sub, 2 trig.
 * Generated file. Do not edit; generate it again.
 * Matrices are stored by rows. Arguments must not overlap.
 * Inputs are not checked; a NaN input gives NaN outputs (not with -ffast-math).
 * Re-entrant and suitable for real time: no static data, no allocation, no loops, no calls except to libm.
 * Stack, without that of libm: less than SLIDER_INVERSE_DYNAMICS_STACK_BYTES, even without optimisation. */
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
