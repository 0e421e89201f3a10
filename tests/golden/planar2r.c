/* planar2r.forward_dynamics in C99, double; made by bellcrank VERSION */
#include "planar2r_forward_dynamics.h"

#include <math.h>

/* Sines and cosines of four angles, which may be large, infinite or NaN. */
#if defined(__GNUC__)
__attribute__((noinline, cold))
#endif
static void turned_far(double a, double b, double c, double d, double *restrict sine, double *restrict cosine)
{
    const double angle[4] = {a, b, c, d};
    int i;
    for (i = 0; i < 4; ++i) {
        sine[i] = sin(angle[i]);
        cosine[i] = cos(angle[i]);
    }
}

/* Sines and cosines of four angles. */
static void turned(double a, double b, double c, double d, double *restrict sine, double *restrict cosine)
{
    if (fabs(a) + fabs(b) + fabs(c) + fabs(d) < 102891.0) {
        const double angle[4] = {a, b, c, d};
        int i;
        for (i = 0; i < 4; ++i) {
            const double x = angle[i];
#if defined(__SSE4_1__) || defined(__AVX__) || defined(__aarch64__)
            const double n = floor(x * 0.6366197723675814 + 0.5);
            const double m = n - 4.0 * floor(n * 0.25);
#else
            const int k = (int)(x * 0.6366197723675814 + 65536.5) - 65536;
            const double n = (double)k;
            const double m = (double)(k & 3);
#endif
            const double r = ((x - n * 1.5707963267341256) - n * 6.077100506303966e-11) - n * 2.0222662487959506e-21;
            const double z = r * r;
            const double zz = z * z;
            const double p = (0.1666666666666663 + z * -0.00833333333332184) + zz * ((0.00019841269829358528 + z * -2.7557313538514717e-06) + zz * (2.505073438946763e-08 + z * -1.589543331176016e-10));
            const double q = (0.0416666666666666 + z * -0.0013888888888874474) + zz * ((2.4801587289671537e-05 + z * -2.755731440103062e-07) + zz * (2.087572928124647e-09 + z * -1.135993424498149e-11));
            const double s = r - r * z * p;
            const double t = (1.0 - z * 0.5) + zz * q;
            const double u = fabs(m - 2.0) - 1.0;
            const double v = 1.0 - fabs(m - 1.0);
            sine[i] = s * u + t * v;
            cosine[i] = t * u - s * v;
        }
    } else {
        turned_far(a, b, c, d, sine, cosine);
    }
}

void planar2r_forward_dynamics(const double *restrict q, const double *restrict v, const double *restrict tau, double *restrict out)
{
    /* A[upper] */
    double sin_1[4];
    double cos_1[4];
    turned(q[0], q[1], q[1], q[1], sin_1, cos_1);
    const double cos_q_0 = cos_1[0];
    const double sin_q_0 = sin_1[0];
    /* A[lower] */
    const double cos_q_1 = cos_1[1];
    const double sin_q_1 = sin_1[1];
    /* A[upper] */
    const double A_upper_1 = 9.81 * sin_q_0;
    const double A_upper_2 = 9.81 * cos_q_0;
    /* f[upper] */
    const double f_upper_1 = v[0] * v[0];
    const double f_upper_2 = 19.62 * cos_q_0;
    /* A[lower] */
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
    /* L[upper] */
    const double L_upper_1 = F_lower_2 * L_lower_1;
    const double L_upper_2 = Ic_upper_2 - L_upper_1;
    const double L_upper_3 = 1.0 / L_upper_2;
    /* L[lower] */
    const double L_lower_2 = tau_C_2 * L_lower_1;
    const double L_lower_3 = tau_C_1 - L_lower_2;
    /* a[upper] */
    const double a_upper_1 = L_upper_3 * L_lower_3;
    /* a[lower] */
    const double a_lower_1 = 5.333333333333333 * tau_C_2;
    const double a_lower_2 = L_lower_1 * a_upper_1;
    const double a_lower_3 = a_lower_1 - a_lower_2;
    /* results */
    out[0] = a_upper_1;
    out[1] = a_lower_3;
}
