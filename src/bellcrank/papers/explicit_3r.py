"""Explicit equations of motion of a planar arm of three equal rods, written without any other code of this package.

With the absolute angles phi_i = theta_1 + ... + theta_i from the horizontal, rods of mass m and length l, and the
centres of mass at x_i = l (cos phi_1 + ... + cos phi_i / 2), and likewise y_i, Lagrange's equations are

    sum_j c_ij cos(phi_i - phi_j) ddphi_j + sum_j c_ij sin(phi_i - phi_j) dphi_j^2 + w_i g cos phi_i = Q_i

    c = m l^2 [7/3 3/2 1/2; 3/2 4/3 1/2; 1/2 1/2 1/3]     (1/3 per rod itself, 1/2 per half rod, 1 per rod beyond)
    w = m l [5/2 3/2 1/2]                                 Q_i = tau_i - tau_(i+1)

They are integrated by the classical Runge-Kutta method in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
C = np.array([[7 / 3, 3 / 2, 1 / 2], [3 / 2, 4 / 3, 1 / 2], [1 / 2, 1 / 2, 1 / 3]])
W = np.array([5 / 2, 3 / 2, 1 / 2])
G = 9.81


def _matrix_and_forces(theta: Array, dtheta: Array) -> tuple[Array, Array]:
    """Return the matrix and the remaining terms of the equations in absolute angles."""
    phi, dphi = np.cumsum(theta), np.cumsum(dtheta)
    differences = phi[:, None] - phi[None, :]
    return C * np.cos(differences), (C * np.sin(differences)) @ dphi**2 + W * G * np.cos(phi)


def acceleration(theta: Array, dtheta: Array, tau: Array) -> Array:
    """Return joint accelerations, rad/s^2.

    Parameters
    ----------
    theta
        Joint angles, (3,), rad.
    dtheta
        Joint rates, (3,), rad/s.
    tau
        Joint torques, (3,), N m.
    """
    matrix, forces = _matrix_and_forces(theta, dtheta)
    Q = tau - np.append(tau[1:], 0.0)
    return np.diff(np.linalg.solve(matrix, Q - forces), prepend=0.0)


def torque(theta: Array, dtheta: Array, ddtheta: Array) -> Array:
    """Return the joint torques for given accelerations, N m.

    Parameters
    ----------
    theta
        Joint angles, (3,), rad.
    dtheta
        Joint rates, (3,), rad/s.
    ddtheta
        Joint accelerations, (3,), rad/s^2.
    """
    matrix, forces = _matrix_and_forces(theta, dtheta)
    Q = matrix @ np.cumsum(ddtheta) + forces
    return np.cumsum(Q[::-1])[::-1]


def integrate(tau: Callable[[float], Array], seconds: float, h: float, every: int) -> Array:
    """Integrate from rest at zero angles; return theta, (rows, 3).

    Parameters
    ----------
    tau
        Joint torques as a function of time.
    seconds
        Duration.
    h
        Step, s.
    every
        Steps between two rows.
    """

    def f(t: float, y: Array) -> Array:
        return np.concatenate([y[3:], acceleration(y[:3], y[3:], tau(t))])

    y, rows = np.zeros(6), [np.zeros(3)]
    for n in range(round(seconds / h)):
        t = n * h
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + h / 2, y + h / 2 * k2)
        k4 = f(t + h, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        if (n + 1) % every == 0:
            rows.append(y[:3])
    return np.array(rows)
