/* pendulum.forward_dynamics in C99, double; made by bellcrank VERSION
 *
 *   q[1]        q
 *   v[1]        v
 *   tau[1]      tau
 *   out[1]      forward_dynamics
 *
 * 3 operations: 1 mul, 1 sub, 1 trig.
 * Generated file. Do not edit; generate it again.
 * Matrices are stored by rows. Arguments must not overlap.
 * Inputs are not checked; a NaN input gives NaN outputs (not with -ffast-math).
 * Re-entrant and suitable for real time: no static data, no allocation, no loops, no calls except to libm.
 * Stack, without that of libm: less than PENDULUM_FORWARD_DYNAMICS_STACK_BYTES, even without optimisation. */
#ifndef PENDULUM_FORWARD_DYNAMICS_H
#define PENDULUM_FORWARD_DYNAMICS_H

#define PENDULUM_FORWARD_DYNAMICS_SIZE_Q 1
#define PENDULUM_FORWARD_DYNAMICS_SIZE_V 1
#define PENDULUM_FORWARD_DYNAMICS_SIZE_TAU 1
#define PENDULUM_FORWARD_DYNAMICS_SIZE_OUT 1
#define PENDULUM_FORWARD_DYNAMICS_OPERATIONS 3
#define PENDULUM_FORWARD_DYNAMICS_STACK_BYTES 360

#ifdef __cplusplus
extern "C" void pendulum_forward_dynamics(const double *q, const double *v, const double *tau, double *out);
#else
void pendulum_forward_dynamics(const double *restrict q, const double *restrict v, const double *restrict tau, double *restrict out);
#endif

#endif
