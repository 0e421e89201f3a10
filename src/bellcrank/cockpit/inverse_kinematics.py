"""Inverse kinematics by damped least squares: slider positions that move a tool to a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bellcrank.cockpit.machines import Machine
from bellcrank.errors import InputError

Array = np.ndarray[Any, Any]
# Iterations; damping relative to the Jacobian's norm; tolerance, m.
MAX_ITERATIONS, DAMPING, TOLERANCE_M = 60, 0.05, 1e-4


def lever_positions(machine: Machine, q: Array, point: Sequence[float]) -> list[float]:
    """Return positions of all levers that move the tool to a point, or near to it if it is out of reach.

    Parameters
    ----------
    machine
        Machine with position sliders.
    q
        Present positions, shape (nq,).
    point
        Target in the world frame, m.
    """
    m = machine.mechanism
    names = [lever.name for lever in machine.levers]
    if len(point) != 3:
        raise InputError(f"a point with {len(point)} coordinates; expected x, y and z.")
    if not tool_frame(machine):
        raise InputError(f'"{m.name}" has no tool to move: expected sliders for positions, no loops, and a frame.')
    frame = tool_frame(machine)
    rows, columns = [m.columns[0].index(n) for n in names], [m.columns[1].index(n) for n in names]
    low, high = (np.array([getattr(lever, end) for lever in machine.levers]) for end in ("low", "high"))
    q = np.array(q, float)
    for _ in range(MAX_ITERATIONS):
        error = np.asarray(point) - np.asarray(m.pose(q, frame))[:3, 3]
        if np.linalg.norm(error) < TOLERANCE_M:
            break
        J = np.asarray(m.jacobian(q, frame))[:3, columns]
        scale = DAMPING * max(float(np.linalg.norm(J)), 1e-6)
        free = np.ones(len(names), bool)
        step = np.zeros(len(names))
        for _ in range(2):  # joints at their limits are fixed, and the others do the rest
            A = J * free
            step = A.T @ np.linalg.solve(A @ A.T + scale * scale * np.eye(3), error)
            free = ~(((q[rows] >= high) & (step > 0)) | ((q[rows] <= low) & (step < 0)))
        q[rows] = np.clip(q[rows] + np.clip(step, -0.3, 0.3), low, high)
    return [float(x) for x in q[rows]]


def tool_frame(machine: Machine) -> str:
    """Return the tool frame of `machine`, the last one; empty unless all sliders are positions of a tree."""
    m = machine.mechanism
    led = all(x.neutral is None and x.name in m.columns[0] and x.name in m.columns[1] for x in machine.levers)
    return list(m.frames)[-1] if led and m.frames and not m.loops else ""
