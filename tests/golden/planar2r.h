/* planar2r.forward_dynamics in C99, double; made by bellcrank VERSION
 *
 *   q[2]        q
 *   v[2]        v
 *   tau[2]      tau
 *   out[2]      forward_dynamics
 *
 * 35 operations: 18 mul, 5 add, 7 sub, 1 div, 4 trig.
 * Generated file. Do not edit; generate it again.
 * Matrices are stored by rows. Arguments must not overlap.
 * Inputs are not checked; a NaN input gives NaN outputs (not with -ffast-math).
 * Re-entrant and suitable for real time: no static data, no allocation, no loops except over four angles, no calls except to libm.
 * Stack, without that of libm: less than PLANAR2R_FORWARD_DYNAMICS_STACK_BYTES, even without optimisation. */
#ifndef PLANAR2R_FORWARD_DYNAMICS_H
#define PLANAR2R_FORWARD_DYNAMICS_H

#define PLANAR2R_FORWARD_DYNAMICS_SIZE_Q 2
#define PLANAR2R_FORWARD_DYNAMICS_SIZE_V 2
#define PLANAR2R_FORWARD_DYNAMICS_SIZE_TAU 2
#define PLANAR2R_FORWARD_DYNAMICS_SIZE_OUT 2
#define PLANAR2R_FORWARD_DYNAMICS_OPERATIONS 35
#define PLANAR2R_FORWARD_DYNAMICS_STACK_BYTES 1096

#ifdef __cplusplus
extern "C" void planar2r_forward_dynamics(const double *q, const double *v, const double *tau, double *out);
#else
void planar2r_forward_dynamics(const double *restrict q, const double *restrict v, const double *restrict tau, double *restrict out);
#endif

#endif
