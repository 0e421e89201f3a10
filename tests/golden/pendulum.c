/* pendulum.forward_dynamics in C99, double; made by bellcrank VERSION */
#include "pendulum_forward_dynamics.h"

#include <math.h>

void pendulum_forward_dynamics(const double *restrict q, const double *restrict v, const double *restrict tau, double *restrict out)
{
    (void)v;
    /* X[bob] */
    const double sin_q_0 = sin(q[0]);
    /* a[bob] */
    const double a_bob_1 = 9.81 * sin_q_0;
    const double a_bob_2 = tau[0] - a_bob_1;
    /* results */
    out[0] = a_bob_2;
}
