"""Whether fixed steps are short enough for bodies and large beams that bend: an explicit step must not be longer than
their fastest mode allows, however smooth the motion is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bellcrank.dynamics import crba
from bellcrank.errors import InputError
from bellcrank.integrate.problem import Integrator, Problem, Rate
from bellcrank.model import Mechanism
from bellcrank.scalar import Scalar

STEPS = 400  # of an oscillator, after which an unstable one has grown
GROWN = 2.0


Array = np.ndarray[Any, Any]
Kind = Callable[[Any], tuple[Rate, list[Scalar]]]


def swings(z: Any) -> tuple[Rate, list[Scalar]]:
    """An undamped oscillator, z radians in a unit of time, and where it begins."""
    return lambda t, y: [y[1], -z * z * y[0]], [1.0, 0.0]


def decays(z: Any) -> tuple[Rate, list[Scalar]]:
    """A speed that decays, by z of itself in a unit of time."""
    return lambda t, y: [0.0 * y[1], -z * y[1]], [0.0, z]


def shorter(h: float) -> str:
    """What to ask for, to get steps of h."""
    return f"step={h:g} or less"


def check_modes(
    mechanism: Mechanism, integrator: Integrator, h: float, asked: Callable[[float], str] = shorter
) -> None:
    """An error that says which frequency is too fast, and which step would do. asked: how steps are asked for."""
    if not (mechanism.flexible or mechanism.outlines) or integrator.stiff:
        return
    plain = mechanism.at() if mechanism.parameters else mechanism
    omega, name = _fastest(plain)
    _check_damping(plain, integrator, h, asked)
    bends = any(name == body.nodes[0].joint.rpartition(".")[0] for body in mechanism.flexible)
    if not grows(integrator, omega * h):
        return
    best = longest(integrator, omega, h)
    would = f"take {asked(best)}, or" if best else "take"
    raise InputError(
        f'body "{name}" has a mode of {omega / (2 * math.pi):.4g} Hz, which {integrator.name} cannot follow with a '
        f"step of {h:g} s: it would run away. {would[0].upper()}{would[1:]} integrator=rodas4 or midpoint, or leave "
        f"such modes out ({'below=...' if bends else 'fewer motions or elements'})."
    )


def _check_damping(plain: Mechanism, integrator: Integrator, h: float, asked: Callable[[float], str]) -> None:
    """The same for what damps: a rate that decays faster than a step can follow runs away as well."""
    rate, name = _fastest(plain, damping=True)
    if not grows(integrator, rate * h, decays):
        return
    best = longest(integrator, rate, h, decays)
    would = f"take {asked(best)}, or" if best else "take"
    raise InputError(
        f'body "{name}" has a mode that its damping ends in {1 / rate:.2g} s, which {integrator.name} cannot follow '
        f"with a step of {h:g} s: it would run away. {would[0].upper()}{would[1:]} integrator=rodas4 or midpoint, "
        "or damp less (rayleigh's beta, times the square of the frequency, is what damps)."
    )


def longest(integrator: Integrator, omega: float, h: float, kind: Kind = swings) -> float:
    """The longest step below h, to one digit, with which a frequency (rad/s) does not run away; 0 where none does."""
    low, high = 0.0, omega * h
    for _ in range(8):
        low, high = (low, (low + high) / 2) if grows(integrator, (low + high) / 2, kind) else ((low + high) / 2, high)
    while low == 0.0 and high > 0.05:
        low, high = (0.0, high / 2) if grows(integrator, high / 2, kind) else (high / 2, high)
    return rounded_down(low / omega) if low > 0.05 else 0.0


def _fastest(mechanism: Mechanism, damping: bool = False) -> tuple[float, str]:
    """The highest frequency in rad/s, or rate of decay in 1/s, with all joints free, and the body that has it."""
    M = np.array(crba.mass_matrix(mechanism.tree, mechanism.neutral().tolist()), float)
    K = np.zeros(mechanism.nv)
    own: dict[int, str] = {}
    for body, given in zip(mechanism.tree.flexible, mechanism.flexible, strict=True):
        K[list(body.v_index)] = body.damping if damping else body.stiffness
        own |= dict.fromkeys(body.v_index, given.nodes[0].joint.rpartition(".")[0])
    for link in mechanism.tree.links:  # a large beam is a chain of joints with springs
        beam = next((o.name for o in mechanism.outlines if link.joint.child in o.bodies[1:]), "")
        if beam and link.joint.stiffness and len(link.v_index) == 1:
            K[link.v_index[0]] += link.joint.damping if damping else link.joint.stiffness
            own[link.v_index[0]] = beam
    if not own:
        return 0.0, ""
    square, vectors = np.linalg.eig(np.linalg.solve(M, np.diag(K)))
    k = int(np.argmax(square.real))
    energy = K * np.abs(vectors[:, k]) ** 2
    most, mine = max(float(square[k].real), 0.0), own.get(int(np.argmax(energy)), "")
    return (most if damping else math.sqrt(most)), mine


def grows(integrator: Integrator, z: float, kind: Kind = swings) -> bool:
    """Whether an undamped oscillator runs away in steps of z radians; or what decays in steps of z of its times."""
    return bool(grown(integrator, np.array([z]), kind)[0])


def grown(integrator: Integrator, z: Array, kind: Kind = swings) -> Array:
    """The same of many of them, one beside the other."""
    rate, y = kind(z)
    problem = Problem(rate, 1, 1, 0)
    memory = integrator.begin(problem, 0.0, y, 1.0)
    found = np.zeros(len(z), bool)
    with np.errstate(all="ignore"):
        for i in range(STEPS):
            made = integrator.step(problem, float(i), y, 1.0, memory)
            y, memory = made.y, made.memory
            found |= np.abs(y[0]) + np.abs(y[1]) / np.maximum(z, 1e-300) > GROWN
            if found.all():
                break
    return found


def rounded_down(x: float) -> float:
    """Down to one digit."""
    power = 10.0 ** math.floor(math.log10(x))
    return math.floor(x / power) * power
