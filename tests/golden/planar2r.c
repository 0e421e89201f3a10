/* planar2r.forward_dynamics in C99, double; made by bellcrank VERSION */
#include "planar2r_forward_dynamics.h"

#include <math.h>

void planar2r_forward_dynamics(const double *restrict q, const double *restrict v, const double *restrict tau, double *restrict out)
{
    /* A[upper] */
    const double cos_q_0 = cos(q[0]);
    const double sin_q_0 = sin(q[0]);
    const double A_upper_1 = 9.81 * sin_q_0;
    const double A_upper_2 = 9.81 * cos_q_0;
    /* f[upper] */
    const double f_upper_1 = v[0] * v[0];
    const double f_upper_2 = 19.62 * cos_q_0;
    /* A[lower] */
    const double cos_q_1 = cos(q[1]);
    const double sin_q_1 = sin(q[1]);
    const double A_lower_1 = A_upper_1 - f_upper_1;
    const double A_lower_2 = A_upper_2 * cos_q_1;
    const double A_lower_3 = sin_q_1 * A_lower_1;
    const double A_lower_4 = A_lower_3 - A_lower_2;
    const double A_lower_5 = v[0] + v[1];
    /* f[lower] */
    const double f_lower_1 = A_lower_5 * A_lower_5;
    const double f_lower_2 = 0.25 * A_lower_4;
    const double f_lower_3 = 0.25 * f_lower_1;
    /* f[upper] */
    const double f_upper_3 = sin_q_1 * f_lower_3;
    const double f_upper_4 = f_lower_2 + f_upper_3;
    const double f_upper_5 = f_upper_2 - f_upper_4;
    /* tau - C */
    const double tau_C_1 = tau[0] - f_upper_5;
    const double tau_C_2 = tau[1] + f_lower_2;
    /* F[lower] */
    const double F_lower_1 = 0.25 * cos_q_1;
    const double F_lower_2 = 0.1875 + F_lower_1;
    /* Ic[upper] */
    const double Ic_upper_1 = 0.5 * cos_q_1;
    const double Ic_upper_2 = 1.9375 + Ic_upper_1;
    /* L[lower] */
    const double L_lower_1 = 5.333333333333333 * F_lower_2;
    const double L_lower_2 = F_lower_2 * L_lower_1;
    const double L_lower_3 = Ic_upper_2 - L_lower_2;
    /* L[upper] */
    const double L_upper_1 = 1.0 / L_lower_3;
    /* L[lower] */
    const double L_lower_4 = tau_C_2 * L_lower_1;
    const double L_lower_5 = tau_C_1 - L_lower_4;
    /* a[upper] */
    const double a_upper_1 = L_upper_1 * L_lower_5;
    /* a[lower] */
    const double a_lower_1 = 5.333333333333333 * tau_C_2;
    const double a_lower_2 = L_lower_1 * a_upper_1;
    const double a_lower_3 = a_lower_1 - a_lower_2;
    /* results */
    out[0] = a_upper_1;
    out[1] = a_lower_3;
}
