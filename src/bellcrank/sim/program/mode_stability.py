"""Stability check of fixed explicit steps: test problems, the message about a motion that is too fast, and modes.

An explicit step must not be longer than the fastest motion allows, however smooth the run is. Here are the modes of
flexible bodies and large beams; element_stability.py has force elements, damping_stability.py the joints.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.dynamics import crba
from bellcrank.errors import InputError, warn
from bellcrank.integrate.problem import Integrator, Problem, Rate
from bellcrank.model import Mechanism
from bellcrank.scalar import Scalar

TEST_STEPS = 400  # steps of a test problem, after which an unstable one has grown
UNSTABLE_AMPLITUDE = 2.0  # amplitude that counts as unstable; it begins at 1

Array = np.ndarray[Any, Any]
TestProblem = Callable[[Any], tuple[Rate, list[Scalar]]]


def oscillator(z: Any) -> tuple[Rate, list[Scalar]]:
    """Return the rate and the initial state of an undamped oscillator with the frequency `z`, rad per unit of time."""
    return lambda t, y: [y[1], -z * z * y[0]], [1.0, 0.0]


def decay(z: Any) -> tuple[Rate, list[Scalar]]:
    """Return the rate and the initial state of a speed that decays at the rate `z` per unit of time."""
    return lambda t, y: [0.0 * y[1], -z * y[1]], [0.0, z]


def step_advice(h: float) -> str:
    """Return the advice to take steps of `h`, s."""
    return f"step={h:g} or less"


@dataclass(frozen=True)
class FastMotion:
    """A motion of a system that explicit steps may be too long to follow."""

    text: str  # what it does, for the message
    rate: float  # frequency, rad/s, or rate of decay, 1/s
    remedy: str  # end of the message, after a shorter step and other integrators
    kind: TestProblem = oscillator
    consequence: str = ": the simulation would diverge"
    is_certain: bool = True  # False gives a warning: the run may never get there


def check_motions(
    motions: Sequence[FastMotion], integrator: Integrator, h: float, advice: Callable[[float], str] = step_advice
) -> None:
    """Raise an InputError, or warn, for each motion that the steps cannot follow; decays come first.

    Parameters
    ----------
    motions
        The motions.
    integrator
        The integrator.
    h
        Length of a step, s.
    advice
        Function of a step length that returns how the user sets it.
    """
    for kind in (decay, oscillator):
        some = [motion for motion in motions if motion.kind is kind]
        unstable = unstable_rates(integrator, np.array([motion.rate * h for motion in some]), kind)
        for motion in (motion for motion, is_bad in zip(some, unstable, strict=True) if is_bad):
            best = longest_stable_step(integrator, motion.rate, h, kind)
            message = (
                f"{motion.text}, which {integrator.name} cannot follow with a step of {h:g} s{motion.consequence}. "
                f"Take {f'{advice(best)}, or ' if best else ''}integrator=rodas4 or midpoint{motion.remedy}."
            )
            if motion.is_certain:
                raise InputError(message)
            warn(message)


def check_modes(
    mechanism: Mechanism, integrator: Integrator, h: float, advice: Callable[[float], str] = step_advice
) -> None:
    """Raise an InputError if a mode is too fast for the steps, naming its frequency and a step that is short enough.

    Parameters
    ----------
    mechanism
        The mechanism.
    integrator
        The integrator.
    h
        Length of a step, s.
    advice
        Function of a step length that returns how the user sets it.
    """
    if not (mechanism.flexible or mechanism.outlines) or integrator.stiff:
        return
    plain = mechanism.at() if mechanism.parameters else mechanism
    omega, name = _fastest_mode(plain)
    rate, damped = _fastest_mode(plain, damping=True)
    bends = any(name == body.nodes[0].joint.rpartition(".")[0] for body in mechanism.flexible)
    fewer = f", or leave such modes out ({'below=...' if bends else 'fewer motions or elements'})"
    motions = [FastMotion(f'body "{name}" has a mode of {omega / (2 * math.pi):.4g} Hz', omega, fewer)]
    if rate:
        text = f'body "{damped}" has a mode that is damped out in {1 / rate:.2g} s'
        less = ", or reduce the damping (rayleigh's beta times the square of the frequency)"
        motions.append(FastMotion(text, rate, less, decay))
    check_motions(motions, integrator, h, advice)


def longest_stable_step(integrator: Integrator, omega: float, h: float, kind: TestProblem = oscillator) -> float:
    """Return the longest stable step below h, rounded down to one digit; 0 if there is none.

    Parameters
    ----------
    integrator
        The integrator.
    omega
        Frequency, rad/s, or rate of decay, 1/s.
    h
        Length of a step that is unstable, s.
    kind
        Test problem: `oscillator` or `decay`.
    """
    low, high = 0.0, omega * h
    for _ in range(8):
        low, high = (
            (low, (low + high) / 2) if is_unstable(integrator, (low + high) / 2, kind) else ((low + high) / 2, high)
        )
    while low == 0.0 and high > 0.05:
        low, high = (0.0, high / 2) if is_unstable(integrator, high / 2, kind) else (high / 2, high)
    return rounded_down(low / omega) if low > 0.05 else 0.0


def _fastest_mode(mechanism: Mechanism, damping: bool = False) -> tuple[float, str]:
    """The highest frequency in rad/s, or rate of decay in 1/s, with all joints free, and the body that has it."""
    M = np.array(crba.mass_matrix(mechanism.tree, mechanism.neutral().tolist()), float)
    K = np.zeros(mechanism.nv)
    body_names: dict[int, str] = {}
    for body, description in zip(mechanism.tree.flexible, mechanism.flexible, strict=True):
        K[list(body.v_index)] = body.damping if damping else body.stiffness
        body_names |= dict.fromkeys(body.v_index, description.nodes[0].joint.rpartition(".")[0])
    for link in mechanism.tree.links:  # a large beam is a chain of joints with springs
        beam = next((o.name for o in mechanism.outlines if link.joint.child in o.bodies[1:]), "")
        if beam and link.joint.stiffness and len(link.v_index) == 1:
            K[link.v_index[0]] += link.joint.damping if damping else link.joint.stiffness
            body_names[link.v_index[0]] = beam
    if not body_names:
        return 0.0, ""
    square, vectors = np.linalg.eig(np.linalg.solve(M, np.diag(K)))
    k = int(np.argmax(square.real))
    energy = K * np.abs(vectors[:, k]) ** 2
    most, body_name = max(float(square[k].real), 0.0), body_names.get(int(np.argmax(energy)), "")
    return (most if damping else math.sqrt(most)), body_name


def is_unstable(integrator: Integrator, z: float, kind: TestProblem = oscillator) -> bool:
    """Return True if the test problem `kind` with the rate `z` is unstable in unit steps of `integrator`."""
    return bool(unstable_rates(integrator, np.array([z]), kind)[0])


def unstable_rates(integrator: Integrator, z: Array, kind: TestProblem = oscillator) -> Array:
    """Return for each rate in `z` whether the test problem `kind` is unstable in unit steps of `integrator`."""
    rate, y = kind(z)
    problem = Problem(rate, 1, 1, 0)
    memory = integrator.begin(problem, 0.0, y, 1.0)
    unstable = np.zeros(len(z), bool)
    with np.errstate(all="ignore"):
        for i in range(TEST_STEPS):
            stepped = integrator.step(problem, float(i), y, 1.0, memory)
            y, memory = stepped.y, stepped.memory
            unstable |= np.abs(y[0]) + np.abs(y[1]) / np.maximum(z, 1e-300) > UNSTABLE_AMPLITUDE
            if unstable.all():
                break
    return unstable


def rounded_down(x: float) -> float:
    """Return the positive number `x` rounded down to one significant digit."""
    power = 10.0 ** math.floor(math.log10(x))
    return math.floor(x / power) * power
