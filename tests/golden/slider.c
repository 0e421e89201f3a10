/* slider.inverse_dynamics in C99, double; made by bellcrank VERSION */
#include "slider_inverse_dynamics.h"

#include <math.h>

void slider_inverse_dynamics(const double *restrict q, const double *restrict v, const double *restrict a, double *restrict out)
{
    /* A[rod] */
    const double cos_q_0 = cos(q[0]);
    const double sin_q_0 = sin(q[0]);
    const double A_rod_1 = 9.81 * sin_q_0;
    const double A_rod_2 = 9.81 * cos_q_0;
    /* f[rod] */
    const double f_rod_1 = v[0] * v[0];
    const double f_rod_2 = 0.875 * a[0];
    const double f_rod_3 = 4.905 * sin_q_0;
    const double f_rod_4 = f_rod_2 + f_rod_3;
    const double f_rod_5 = 0.5 * a[0];
    const double f_rod_6 = 0.5 * f_rod_1;
    /* A[bead] */
    const double A_bead_1 = q[1] * a[0];
    const double A_bead_2 = q[1] * f_rod_1;
    const double A_bead_3 = A_rod_1 - A_bead_1;
    const double A_bead_4 = A_rod_2 - A_bead_2;
    const double A_bead_5 = v[0] + v[0];
    const double A_bead_6 = v[1] * A_bead_5;
    const double A_bead_7 = A_bead_3 - A_bead_6;
    const double A_bead_8 = a[1] + A_bead_4;
    /* f[bead] */
    const double f_bead_1 = 0.5 * A_bead_7;
    const double f_bead_2 = 0.5 * A_bead_8;
    const double f_bead_3 = f_rod_5 + f_bead_1;
    const double f_bead_4 = f_rod_6 + f_bead_2;
    /* f[rod] */
    const double f_rod_7 = q[1] * f_bead_3;
    const double f_rod_8 = f_rod_7 - f_bead_1;
    const double f_rod_9 = f_rod_4 - f_rod_8;
    /* passive[rod] */
    const double passive_rod_1 = 0.25 * v[0];
    /* passive[bead] */
    const double passive_bead_1 = 10.0 * q[1];
    /* tau - passive */
    const double tau_passive_1 = f_rod_9 + passive_rod_1;
    const double tau_passive_2 = f_bead_4 + passive_bead_1;
    /* results */
    out[0] = tau_passive_1;
    out[1] = tau_passive_2;
}
