"""Limits of fixed steps, checked before anything is compiled for them: stability, samples, and counters in float32.

An explicit step must not be longer than the fastest motion allows, however smooth the run is. That motion is a mode of
a flexible body or large beam, the oscillation of a force element with the effective inertia at the start,

    omega^2 = k  r M^-1 r^T         r: derivative of its deflection by v

or a velocity that decays at the rate d (M^-1)_kk by joint damping. An element that always acts raises an error; one
that acts at times (a stop, a contact, a cable, teeth with play) gives a warning, because the run may never get there.
Fixed steps are implicit in damping (implicit_forces.py), but not in every system, nor if they are longer than the step
for which the Simulator was made. Elements and damping of mechanisms with loops are not checked, nor damping where the
motion of a frame is prescribed: constraints make bodies effectively heavier than the tree alone.

Runs of a counter in float32 that exceed it are refused, because a stuck counter raises no error. Step counters of a run
have two words (graph/layout.py). Other counts are single numbers because they restart regularly: steps of a sampling
period or a delay, steps and lines of a table of inputs. They must stay below 2**24. A gradient counts its steps in one
number as well and finds samples by the time, which needs three more bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.dynamics import crba
from bellcrank.dynamics.articulated_compliance import ArticulatedCompliance, sum_by_body
from bellcrank.dynamics.frame_pairs import frame_pair, jacobian_row
from bellcrank.dynamics.singular_mass import MATRIX_CHECK_MAX_NV
from bellcrank.errors import InputError, warn
from bellcrank.forces.bearings import product
from bellcrank.forces.contact import Contact
from bellcrank.forces.element import Between, Coupling, Element
from bellcrank.forces.gears import Belt, Gear, Worm
from bellcrank.forces.springs import Bushing, Cable, EndStop
from bellcrank.graph.layout import WORD_RANGE
from bellcrank.integrate.problem import Integrator, Problem, Rate
from bellcrank.model import Mechanism, Tree
from bellcrank.parameters import nominal
from bellcrank.scalar import Scalar
from bellcrank.sim.program.implicit_forces import ImplicitForces, can_be_implicit, decay, is_large, mobility
from bellcrank.sim.program.system_graphs import Dynamics
from bellcrank.sim.system.joint_loads import bearing_place, transmitted_forces
from bellcrank.sim.system.sampling import check_sampling
from bellcrank.sim.system.systems import System
from bellcrank.spatial.vector import AXES, Vec

TEST_STEPS = 400  # steps of a test problem, after which an unstable one has grown
UNSTABLE_AMPLITUDE = 2.0  # amplitude that counts as unstable; it begins at 1

Array = np.ndarray[Any, Any]
TestProblem = Callable[[Any], tuple[Rate, list[Scalar]]]


def oscillator(z: Any) -> tuple[Rate, list[Scalar]]:
    """Return the rate and the initial state of an undamped oscillator with the frequency `z`, rad per unit of time."""
    return lambda t, y: [y[1], -z * z * y[0]], [1.0, 0.0]


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
        middle = (low + high) / 2
        low, high = (low, middle) if is_unstable(integrator, middle, kind) else (middle, high)
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


INTERMITTENT_ELEMENTS = (Contact, EndStop, Cable, Gear)
MOST_SPRINGS = 100  # springs between points of a large mechanism that are checked
COINCIDENT_POINTS_M = 1e-9  # distance of the ends of a spring below which its direction is not determined


@dataclass(frozen=True)
class Spring(Between):
    """A spring between two points of the mechanism, as an element: it acts along the line through them."""

    stiffness: float = 0.0
    damping: float = 0.0
    length: float = 0.0

    def __call__(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> Any:
        """Raise an error: the mechanism itself computes the force."""
        raise NotImplementedError("springs of a mechanism are part of its dynamics")

    def directions(self, a: Array, b: Array) -> list[Array]:
        """Return the direction in which the spring acts between the points `a` and `b`, all axes if they coincide."""
        distance = float(np.linalg.norm(b - a))
        if distance > COINCIDENT_POINTS_M:
            return [(b - a) / distance]
        return [] if self.length else list(np.eye(3))


def _springs(m: Mechanism) -> list[Spring]:
    """Return the springs between points of `m` as elements; of many the stiffest ones, and those that damp most."""
    springs = [
        Spring(s.name, s.a, s.b, float(s.stiffness), float(s.damping), float(s.length)) for s in map(nominal, m.springs)
    ]
    stiffest = sorted(springs, key=lambda s: s.stiffness, reverse=True)[:MOST_SPRINGS]
    damping_most = sorted(springs, key=lambda s: s.damping, reverse=True)[:MOST_SPRINGS]
    return list(dict.fromkeys([*stiffest, *damping_most]))


def check_steps(
    s: System, integrator: Integrator, h: float, y: Array, advice: Callable[[float], str] = step_advice
) -> None:
    """Raise an InputError or warn if fixed steps are too long, before anything is compiled for them.

    Parameters
    ----------
    s
        System.
    integrator
        Integrator.
    h
        Step, s.
    y
        Initial state.
    advice
        Function that formats the advice to use a given step.
    """
    check_modes(s.mechanism, integrator, h, advice)
    check_elements(s.mechanism, s.elements, integrator, h, y[: s.mechanism.nq], advice, can_be_implicit(s, integrator))


def check_elements(
    m: Mechanism, elements: Sequence[Element], integrator: Integrator, h: float, q: Array,
    advice: Callable[[float], str] = step_advice, implicit: bool = False,
) -> None:  # fmt: skip
    """Raise an InputError or warn if fixed steps are too long for force elements.

    Parameters
    ----------
    m
        Mechanism.
    elements
        Force elements.
    integrator
        Integrator.
    h
        Step, s.
    q
        Positions at which the inertia is computed.
    advice
        Function that formats the advice to use a given step.
    implicit
        True if contacts are treated implicitly, which is stable in steps of any length.
    """
    if not (elements or m.springs) or m.loops or integrator.stiff:
        return
    tree = (m.at() if m.parameters else m).tree
    large = m.nv > MATRIX_CHECK_MAX_NV and not tree.coupled
    elements = [*elements, *_springs(m)]
    frequencies_of = _frequencies_by_bodies if large else _frequencies_by_matrix
    dampers = [replace(e, stiffness=e.damping) for e in _linear_dampers(elements)]
    rates = frequencies_of(tree, m, dampers, q) ** 2 if dampers else np.zeros(0)
    motions = []
    for e, rate in ((e, rate) for e, rate in zip(dampers, rates.tolist(), strict=True) if rate):
        text, is_certain = f"damps what it moves within {1 / rate:.2g} s", not isinstance(e, INTERMITTENT_ELEMENTS)
        name = f'{type(e).__name__} "{e.name}"'
        motions.append(FastMotion(f"{name} {text}", rate, ", or damp less", decay, is_certain=is_certain))
    for e, omega in zip(elements, frequencies_of(tree, m, elements, q).tolist(), strict=True):
        is_stable = isinstance(e, Contact) and implicit
        consequence = ": it is stable, but bodies bounce off less than its damping implies" if is_stable else ""
        text = f'{type(e).__name__} "{e.name}" oscillates at {omega / (2 * math.pi):.4g} Hz with the mass it moves'
        is_certain = not isinstance(e, INTERMITTENT_ELEMENTS)
        motions.append(FastMotion(text, omega, ", or make it softer", oscillator, consequence, is_certain))
    check_motions(motions, integrator, h, advice)


# Elements that are linear in velocities, with `damping` in the same form as `stiffness`.
LINEAR_DAMPERS = (Bushing, Cable, Belt, Worm, Spring)


def _linear_dampers(elements: Sequence[Element]) -> list[Any]:
    """Return the linear dampers: velocities that decay faster than an explicit step can follow diverge."""
    return [e for e in map(nominal, elements) if isinstance(e, LINEAR_DAMPERS) and np.any(e.damping)]


def _frequencies_by_matrix(tree: Tree, m: Mechanism, elements: Sequence[Element], q: Array) -> Array:
    """Return omega of each element, by the inverse of the mass matrix."""
    inverse = mobility(tree, q)
    if not np.isfinite(inverse).all():
        return np.zeros(len(elements))
    rates = [[k * float(r @ inverse @ r) for k, r in _deflection_rows(tree, m, nominal(e), q)] for e in elements]
    return np.sqrt([max(body_rates, default=0.0) for body_rates in rates])


def _frequencies_by_bodies(tree: Tree, m: Mechanism, elements: Sequence[Element], q: Array) -> Array:
    """Return omega of each element by articulated compliances, for large mechanisms."""
    compliance, zero = ArticulatedCompliance(tree, q.tolist()), np.zeros(3)
    bodies = {k: i for i, link in enumerate(tree.links) for k in link.v_index}
    largest = []
    for e in map(nominal, elements):
        rates = [0.0]
        if isinstance(e, Coupling):
            indices = [bodies[m.columns[1].index(joint)] for joint in e.joints]
            for k, weights in _coupling_weights(e):
                pairs = [f for i, w in zip(indices, weights, strict=True) for f in compliance.joint_force(i, w)]
                rates.append(k * compliance.compliance(sum_by_body(pairs)))
        elif isinstance(e, Spring):
            for u in e.directions(compliance.position(e.a), compliance.position(e.b)) if e.stiffness else ():
                pair = [compliance.frame_force(e.a, -u, zero), compliance.frame_force(e.b, u, zero)]
                rates.append(e.stiffness * compliance.compliance(sum_by_body(compliance.with_reaction(pair))))
        elif isinstance(e, Between) and any(six := _six_stiffnesses(e)):
            for i, axis in enumerate(compliance.axes(e.a)):
                for k, force, moment in ((six[i], axis, zero), (six[3 + i], zero, axis)):
                    pair = [compliance.frame_force(e.a, -force, -moment), compliance.frame_force(e.b, force, moment)]
                    rates.append(k * compliance.compliance(sum_by_body(compliance.with_reaction(pair))) if k else 0.0)
        largest.append(max(rates))
    return np.sqrt(largest)


def _six_stiffnesses(e: Between) -> Sequence[float]:
    """Return the stiffness along and about the axes of a; zeros if unknown."""
    if isinstance(e, Bushing):
        return e.stiffness
    one = e.stiffness if isinstance(e, Cable) or (isinstance(e, Contact) and e.exponent == 1.0) else 0.0
    return one, one, one, 0.0, 0.0, 0.0


def _deflection_rows(tree: Tree, m: Mechanism, e: Element, q: Array) -> Iterator[tuple[float, Array]]:
    """Yield (stiffness, Jacobian row) of the deflections of an element."""
    if isinstance(e, Coupling):
        for k, weights in _coupling_weights(e):
            r = np.zeros(m.nv)
            r[[m.columns[1].index(joint) for joint in e.joints]] = weights
            yield k, r
        return
    assert isinstance(e, Between)
    six = (0.0,) * 6 if isinstance(e, Spring) else _six_stiffnesses(e)
    if not (e.stiffness if isinstance(e, Spring) else any(six)):
        return
    a, b = frame_pair(tree, e.a, e.b, q.tolist(), None)

    def along(part: str, u: Vec) -> Array:
        row = jacobian_row(a, b, lambda s: -u.dot(getattr(s, part)), lambda s: u.dot(getattr(s, part)))
        return np.array([float(row.get(k, 0.0)) for k in range(m.nv)])

    if isinstance(e, Spring):
        for direction in e.directions(np.array([*a.p], float), np.array([*b.p], float)):
            yield e.stiffness, along("lin", Vec(*direction))
        return
    for i, axis in enumerate(AXES):
        yield six[i], along("lin", a.R @ axis)
        yield six[3 + i], along("ang", a.R @ axis)


def _coupling_weights(e: Coupling) -> Iterator[tuple[float, list[float]]]:
    if isinstance(e, EndStop):
        yield e.stiffness, [1.0]
    elif isinstance(e, Gear):
        yield e.stiffness, [-e.ratio, 1.0]
    elif isinstance(e, Belt):
        yield 2.0 * e.stiffness, [e.radius_a, -e.radius_b]
    elif isinstance(e, Worm):
        yield e.stiffness, [e.radius_worm * math.sin(e.lead), -e.radius_wheel * math.cos(e.lead)]


def check_damping(
    s: System, implicit: ImplicitForces | None, integrator: Integrator, h: float,
    advice: Callable[[float], str] = step_advice,
) -> None:  # fmt: skip
    """Raise an InputError if viscous damping is too stiff for explicit steps, and warn about dry friction.

    Parameters
    ----------
    s
        System.
    implicit
        Forces that fixed steps treat implicitly, or None.
    integrator
        Integrator.
    h
        Step, s.
    advice
        Function that formats the advice to use a given step.
    """
    if integrator.stiff or s.mechanism.loops or any(name not in s.mechanism.columns[1] for name in s.motions):
        return
    if motions := list(_damped_motions(s, implicit, h)):
        check_motions(motions, integrator, h, advice)


def _damped_motions(s: System, implicit: ImplicitForces | None, h: float) -> Iterator[FastMotion]:
    """Yield the fastest motion that explicit damping ends, and the fastest one that explicit dry friction ends."""
    tree = (s.mechanism.at() if s.mechanism.parameters else s.mechanism).tree
    slopes = [(k, slope, viscous) for k, slope, viscous in _explicit_damping(s, tree, implicit, h) if slope > 0.0]
    if not slopes:
        return
    prescribed = [s.mechanism.columns[1].index(name) for name in s.motions]
    compliances = _compliances(tree, s.mechanism.neutral(), sorted({k for k, _, _ in slopes}), prescribed)
    for viscous in (True, False):
        rate, k = max(((slope * compliances[k], k) for k, slope, kind in slopes if kind == viscous), default=(0.0, 0))
        if rate and np.isfinite(rate):
            problem = "damping ends a motion" if viscous else "dry friction ends a slow motion"
            consequence = "the simulation would diverge" if viscous else "the velocity would oscillate"
            text = f'the {problem} of joint "{s.mechanism.columns[1][k]}" in {1 / rate:.2g} s'
            yield FastMotion(text, rate, _why_explicit(s), decay, f": {consequence}", viscous)


def _why_explicit(s: System) -> str:
    """Return why the damping is not implicit, as far as that can be changed."""
    if s.motions or s.latches:
        return ". (Fixed steps are not implicit in damping with prescribed motions or latches)"
    if is_large(s):
        return ". (Fixed steps are not implicit in damping of mechanisms that large)"
    return ", or give the step to the Simulator where it is made, so that its steps are implicit in the damping"


def _explicit_damping(
    s: System, tree: Tree, implicit: ImplicitForces | None, h: float
) -> Iterator[tuple[int, float, bool]]:
    """Yield (element of v, explicit damping coefficient at rest, True if viscous)."""
    joints, actuators = (implicit.joints, implicit.actuators) if implicit else ({}, {})
    for link in tree.links:
        for k, slope in zip(link.v_index, link.resistance([0.0] * tree.nv), strict=True):
            explicit = min(float(slope), joints.get(k, np.inf) / h)
            yield k, explicit, k in joints or not link.joint.friction
    for number, a in enumerate(map(nominal, s.actuators)):
        slope = a.resistance(0.0, 0.0, 0.0, [0.0] * len(a.states), 0.0)
        explicit = min(float(slope), actuators.get(number, np.inf) / h)
        yield s.mechanism.columns[1].index(a.joint), explicit, True
    if implicit is None and s.bearings:
        yield from ((k, slope, False) for k, slope in _bearing_slopes(s, tree))


def _bearing_slopes(s: System, tree: Tree) -> Iterator[tuple[int, float]]:
    """Yield (element of v, slope of the friction of a bearing at rest), with loads by the weight of all bodies."""
    q, still = s.mechanism.neutral().tolist(), [0.0] * tree.nv
    bearings = [nominal(e) for e in s.bearings]
    places = [bearing_place(tree, e, q) for e in bearings]
    for e, place, W in zip(bearings, places, transmitted_forces(tree, places, (q, still, still), []), strict=True):
        for pad in e.pads(place.kind):
            N = math.hypot(*(float(product(row, W)) for row in pad.load))
            for row, column in zip(place.rows, zip(*pad.slide, strict=True), strict=True):
                for k, x in row.items():
                    yield k, e.coefficient * N / e.slow * float(product(column, column)) * float(x) ** 2


def _compliances(tree: Tree, q: Array, wanted: list[int], held: list[int]) -> dict[int, float]:
    """Return (M^-1)_kk of the requested elements of v; for a large mechanism only of joints with one coordinate."""
    if tree.nv <= MATRIX_CHECK_MAX_NV or tree.coupled:
        inverse = mobility(tree, q, held)
        return {k: float(inverse[k, k]) for k in wanted}
    compliance = ArticulatedCompliance(tree, q.tolist())
    single = {link.v_index[0]: i for i, link in enumerate(tree.links) if len(link.v_index) == 1}
    return {
        k: float(compliance.compliance(sum_by_body(compliance.joint_force(single[k], 1.0)))) if k in single else 0.0
        for k in wanted
    }


SPARE_BITS = 3  # for the rounding of n * h and of its quotient by h


def check_fixed_steps(
    dynamics: Dynamics, integrator: Integrator, h: float, y: Any, advice: Callable[[float], str] = step_advice
) -> None:
    """Raise an InputError or warn if fixed steps are too long for a system, or not in time with its samples.

    Parameters
    ----------
    dynamics
        Dynamics of the system.
    integrator
        Integrator.
    h
        Step, s.
    y
        Initial state.
    advice
        Function that formats the advice to use a given step.
    """
    check_sampling(dynamics.system, h, False)
    check_steps(dynamics.system, integrator, h, y, advice)
    check_damping(dynamics.system, dynamics.implicit, integrator, h, advice)


def check_counts(system: System, h: float, dtype: str, hold: float = 0.0, lines: int = 1) -> None:
    """Raise an InputError if float32 cannot hold the counts of a run.

    Parameters
    ----------
    system
        System.
    h
        Step, s.
    dtype
        Number type; "float64" needs no check.
    hold
        Seconds that a line of inputs holds.
    lines
        Number of lines in the table of inputs.
    """
    if dtype != "float32":
        return
    for what, count in _counted(system, h, hold, lines):
        if count > WORD_RANGE:
            raise _too_many(what, count, WORD_RANGE)


def check_gradient_counts(system: System, h: float, dtype: str, steps: int, hold: float, lines: int) -> None:
    """Raise an InputError if float32 cannot hold the counts of a gradient, which has no counters of two words.

    Parameters
    ----------
    system, h, dtype, hold, lines
        See `check_counts`.
    steps
        Number of steps of the run.
    """
    limit = WORD_RANGE / 2.0**SPARE_BITS if system.sampled else WORD_RANGE
    if dtype == "float32" and steps > limit:
        raise _too_many("the steps of the gradient", steps, limit)
    check_counts(system, h, dtype, hold, lines)


def _counted(system: System, h: float, hold: float, lines: int) -> Iterator[tuple[str, float]]:
    for c in system.sampled:
        yield f"steps in a period of the sampled controller {c.name}", c.every / h
        yield f"steps in the delay of the sampled controller {c.name}", c.delay / h
    if lines > 1:
        yield "steps that a line of inputs holds (input_step)", hold / h
        yield "lines of inputs", lines


def _too_many(what: str, count: float, most: float) -> InputError:
    return InputError(
        f"{what}: {count:.0f} exceed the limit of float32 here, {most:.0f}; "
        'give dtype="float64", longer steps, or fewer of them.'
    )
