"""Mechanism families of any size, random trees for property-based tests, and checks of the arguments of all makers.

`chain` and `tree` come in three geometries: "alternate" is an idealised robot (axes z and x in turn, links along z,
symmetric bodies) with many zeros to exploit; "parallel" is planar; "general" has no special values, which is what the
papers' operation counts assume.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from bellcrank.argument_errors import explain_argument_errors, generator, sequence_elements
from bellcrank.errors import BellcrankError, InputError, brief, unknown
from bellcrank.formats.builder import Builder
from bellcrank.model import Mechanism, mechanism_of
from bellcrank.model.joints import KINDS
from bellcrank.model.parts import IDENTITY, Array, Body, Joint, Matrix, Mimic, Triple, matrix, triple
from bellcrank.model.pose import axis_rotation
from bellcrank.model.quaternion import rotation_matrix
from bellcrank.scalar import is_real, is_whole

Maker = TypeVar("Maker", bound=Callable[..., Any])


def explain_impossible_mechanism(maker: Maker) -> Maker:
    """Wrap `maker` so that arguments of a wrong type, or for which no mechanism exists, raise an InputError."""
    explained = explain_argument_errors(maker)

    @functools.wraps(maker)
    def call(*args: Any, **named: Any) -> Any:
        for name, value in _arguments(maker, args, named).items():
            if isinstance(value, float) and not math.isfinite(value):
                raise InputError(f"zoo: {maker.__name__}: {name} is {value:g}; expected a finite number.")
        try:
            return explained(*args, **named)
        except BellcrankError:
            raise
        except (ValueError, ArithmeticError) as error:
            given = ", ".join(f"{name} {brief(value)}" for name, value in _arguments(maker, args, named).items())
            raise InputError(
                f"zoo: {maker.__name__} does not exist with {given} ({error}); expected lengths that fit together."
            ) from error

    return call  # type: ignore[return-value]


def _arguments(maker: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return all arguments of a call by name, defaults included; empty if they do not fit the signature."""
    try:
        bound = inspect.signature(maker).bind(*args, **named)
    except TypeError:
        return {}  # the call raises Python's own error
    bound.apply_defaults()
    return bound.arguments


MOVING_KINDS = tuple(kind for kind in KINDS if kind != "fixed")
TWISTS = ("alternate", "parallel", "general")
MAX_BODIES = 100_000  # bodies
MAX_LOOP_BODIES = 10_000  # bodies of mechanisms with loops, whose equations are not yet shared
SECONDS_PER_BODY, BYTES_PER_BODY = 3e-4, 6e3  # to build one body
LINK_LENGTH, LINK_WIDTH, LINK_MASS = 0.4, 0.1, 2.0  # m, m and kg, of the links of chain and tree
_SIDE = LINK_MASS * (LINK_LENGTH**2 + LINK_WIDTH**2) / 12
LINK_MOMENTS = (_SIDE, _SIDE, LINK_MASS * LINK_WIDTH**2 / 6)  # kg m^2


@explain_impossible_mechanism
def pendulum(length: float = 1.0, mass: float = 1.0) -> Mechanism:
    """Point mass on a massless rod; q = 0 hangs straight down.

    Parameters
    ----------
    length : float, default 1.0
        Length of the rod, m.
    mass : float, default 1.0
        Point mass, kg.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    b = Builder("pendulum")
    b.body("bob", mass=mass, com=(0.0, 0.0, -length))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0.0, 1.0, 0.0))
    b.frame("tip", "bob", point=(0.0, 0.0, -length))
    return b.build()


@explain_impossible_mechanism
def chain(n: int, joints: str | Sequence[str] = "revolute", twist: str = "alternate", seed: int = 0) -> Mechanism:
    """Serial chain of n bodies.

    Parameters
    ----------
    n : int
        Number of bodies.
    joints : str or sequence of str, default "revolute"
        Joint type, or a list of types that is repeated along the bodies.
    twist : str, default "alternate"
        Geometry: "alternate" (axes z and x in turn), "parallel" (planar) or "general" (random).
    seed : int, default 0
        Seed of the random geometry; used if `twist` is "general".

    Returns
    -------
    Mechanism
        The mechanism.

    Raises
    ------
    InputError
        If an argument is outside its range.
    """
    return _family(f"chain{checked_count(n, 'n')}", n, 1, joints, twist, seed)


@explain_impossible_mechanism
def tree(
    n: int, branching: int = 2, joints: str | Sequence[str] = "revolute", twist: str = "alternate", seed: int = 0
) -> Mechanism:
    """Tree of n bodies, in which the parent of body i is (i - 1) // branching and body 0 is on the ground.

    Parameters
    ----------
    n : int
        Number of bodies.
    branching : int, default 2
        Number of children of each body.
    joints : str or sequence of str, default "revolute"
        Joint type, or a list of types that is repeated along the bodies.
    twist : str, default "alternate"
        Geometry: "alternate" (axes z and x in turn), "parallel" (planar) or "general" (random).
    seed : int, default 0
        Seed of the random geometry; used if `twist` is "general".

    Returns
    -------
    Mechanism
        The mechanism.

    Raises
    ------
    InputError
        If an argument is outside its range.
    """
    name = f"tree{checked_count(n, 'n')}x{checked_count(branching, 'branching')}"
    return _family(name, n, branching, joints, twist, seed)


@explain_impossible_mechanism
def general_chain(n: int, joints: str | Sequence[str] = "revolute", seed: int = 0) -> Mechanism:
    """Return a chain without special values, on a base as Denavit-Hartenberg tables have it.

    Joint 1 is at the origin along z, and gravity is along z. The papers' operation counts are for this chain.

    Parameters
    ----------
    n
        Number of bodies.
    joints
        Joint type, or a list of types that is repeated along the bodies.
    seed
        Seed of the random geometry.
    """
    checked_count(n, "n")
    rng, kinds = generator(seed), _kinds(joints)
    bodies, joint_list = [], []
    for i in range(n):
        alpha, a, d = rng.uniform(0.4, 1.2), rng.uniform(0.2, 0.5), rng.uniform(0.2, 0.5)
        R, point = np.eye(3), (0.0, 0.0, 0.0)
        if i:
            R, point = axis_rotation(0, alpha), (a, -d * math.sin(alpha), d * math.cos(alpha))
        pose = matrix(R), triple(point)
        joint_list.append(_joint(i, i - 1, kinds[i % len(kinds)], *pose, (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)))
        bodies.append(_random_body(rng, i))
    return mechanism_of(f"chain{n}_papers", bodies, joint_list, source="zoo")


@explain_impossible_mechanism
def random_tree(
    seed: int | np.random.Generator = 0,
    n: int = 6,
    kinds: Sequence[str] = MOVING_KINDS,
    *,
    special: float = 0.3,
    armature: bool = True,
    passive: bool = False,
    mimic: float = 0.0,
) -> Mechanism:
    """Random tree of n bodies on joints of given types; equal seeds give equal trees.

    Parameters
    ----------
    seed : int or numpy.random.Generator, default 0
        Seed or generator.
    n : int, default 6
        Number of bodies.
    kinds : sequence of str
        Joint types to choose from; all types with freedoms by default.
    special : float, default 0.3
        Probability of special values as in machines: quarter turns, coordinate axes, points at the origin.
    armature : bool, default True
        Give some joints a rotor inertia.
    passive : bool, default False
        Give some joints damping, friction and a spring.
    mimic : float, default 0.0
        Probability that a joint with one coordinate mimics an earlier one.

    Returns
    -------
    Mechanism
        The mechanism.

    Raises
    ------
    InputError
        If an argument is outside its range.
    """
    checked_count(n, "n")
    kinds = _kinds(kinds)
    _check_random_tree({"special": special, "mimic": mimic}, {"armature": armature, "passive": passive})
    rng = seed if isinstance(seed, np.random.Generator) else generator(seed)
    bodies: list[Body] = []
    joints: list[Joint] = []
    for i in range(n):
        parent = int(rng.integers(max(-1, i - 4), i)) if i else -1
        kind = str(rng.choice(kinds))
        joint_options: dict[str, Any] = {}
        if armature and rng.random() < 0.5:
            joint_options["armature"] = float(rng.uniform(0.01, 0.5))
        if passive and rng.random() < 0.5:
            joint_options |= {k: float(rng.uniform(0.1, 1.0)) for k in ("damping", "friction", "stiffness", "rest")}
            joint_options["friction_speed"] = 0.1
        masters = [j.name for j in joints if KINDS[j.kind].nq == 1 and j.mimic is None]
        if KINDS[kind].nq == 1 and masters and rng.random() < mimic:
            master = str(rng.choice(masters))
            joint_options["mimic"] = Mimic(master, float(rng.uniform(0.3, 2.0)), float(rng.uniform(-0.5, 0.5)))
        joints.append(replace(_random_joint(rng, i, parent, kind, special), **joint_options))
        bodies.append(_random_body(rng, i))
    g = triple(rng.normal(size=3) * 6.0) if rng.random() > special else (0.0, 0.0, -9.81)
    return mechanism_of(f"random{n}", bodies, joints, gravity=g, source="zoo")


def _check_random_tree(probabilities: Mapping[str, Any], flags: Mapping[str, Any]) -> None:
    """Raise an InputError for a probability outside 0 to 1, or a flag that is not a truth value."""
    for name, probability in probabilities.items():
        if not is_real(probability) or not 0.0 <= probability <= 1.0:
            raise InputError(f"random_tree: {name} is {brief(probability)}; expected a probability, from 0 to 1.")
    for name, flag in flags.items():
        if not isinstance(flag, bool | np.bool_):
            raise InputError(f"random_tree: {name} is {brief(flag)}; expected True or False.")


def _family(name: str, n: int, branching: int, joints: str | Sequence[str], twist: str, seed: int) -> Mechanism:
    if twist not in TWISTS:
        raise InputError(f"zoo: {unknown('twist', twist, TWISTS)}")
    kinds = _kinds(joints)
    rng = generator(seed)
    bodies, joint_list, depth = [], [], [0] * n
    inertia = matrix(np.diag(LINK_MOMENTS))
    for i in range(n):
        parent = (i - 1) // branching if i else -1
        depth[i] = depth[parent] + 1 if i else 0
        kind = kinds[i % len(kinds)]
        if twist == "general":
            joint_list.append(_random_joint(rng, i, parent, kind, special=0.0))
            bodies.append(_random_body(rng, i))
            continue
        # Siblings stand side by side at the parent's tip.
        offset = ((i - 1) % branching - (branching - 1) / 2) * LINK_WIDTH if i else 0.0
        turns_across = twist == "parallel" or depth[i] % 2 == 1
        point = (0.0, offset, LINK_LENGTH if i else 0.0)
        axes = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)) if turns_across else ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0))
        joint_list.append(_joint(i, parent, kind, IDENTITY, point, *axes))
        bodies.append(Body(f"link{i + 1}", LINK_MASS, (0.0, 0.0, LINK_LENGTH / 2), inertia))
    return mechanism_of(name if twist == "alternate" else f"{name}_{twist}", bodies, joint_list, source="zoo")


def _random_joint(rng: np.random.Generator, i: int, parent: int, kind: str, special: float) -> Joint:
    R = _random_rotation(rng)
    if rng.random() < special:
        R = axis_rotation(2, rng.integers(4) * math.pi / 2) @ axis_rotation(0, rng.integers(4) * math.pi / 2)
    axis = np.eye(3)[rng.integers(3)] if rng.random() < special else _unit(rng.normal(size=3))
    second = _unit(np.cross(axis, _unit(rng.normal(size=3))))
    pitch = float(rng.uniform(0.02, 0.3))
    point = np.zeros(3) if rng.random() < special else rng.uniform(-0.5, 0.5, 3)
    return _joint(i, parent, kind, matrix(R), triple(point), triple(axis), triple(second), pitch)


def _joint(
    i: int, parent: int, kind: str, R: Matrix, point: Triple, axis: Triple, second: Triple, pitch: float = 0.05
) -> Joint:
    """Return a joint; `second` and `pitch` are used by the types that have them."""
    own_numbers: dict[str, dict[str, Any]] = {"universal": {"second_axis": second}, "helical": {"pitch": pitch}}
    carrier = f"link{parent + 1}" if parent >= 0 else "ground"
    return Joint(f"joint{i + 1}", kind, carrier, f"link{i + 1}", R, point, axis, **own_numbers.get(kind, {}))


def _random_body(rng: np.random.Generator, i: int) -> Body:
    """Return a physically consistent random body: its inertia is that of a mass spread along three axes."""
    m, spread, R = rng.uniform(0.5, 5.0), rng.uniform(0.02, 0.2, 3), _random_rotation(rng)
    second = R @ np.diag(spread**2) @ R.T * m  # second moments of mass
    I = np.trace(second) * np.eye(3) - second
    return Body(f"link{i + 1}", float(m), triple(rng.uniform(-0.3, 0.3, 3)), matrix((I + I.T) / 2))


def _random_rotation(rng: np.random.Generator) -> Array:
    """Return a rotation distributed uniformly, from a random unit quaternion."""
    return np.array([[*row] for row in rotation_matrix(_unit(rng.normal(size=4)).tolist()).rows])


def _unit(v: Array) -> Array:
    return np.asarray(v / np.linalg.norm(v))


def _kinds(requested: str | Sequence[str]) -> list[str]:
    kinds = [requested] if isinstance(requested, str) else sequence_elements(requested)
    if kinds is None:
        raise InputError(f"zoo: joints is {brief(requested)}; expected a joint type, or a list of them.")
    if not kinds:
        raise InputError("zoo: the list of joints is empty; expected at least one kind of joint.")
    for kind in kinds:
        if not isinstance(kind, str) or kind not in KINDS:
            raise InputError(f"zoo: {unknown('joint type', kind, KINDS)}")
    return kinds


def checked_count(n: int, what: str, least: int = 1, bodies: int = 1, most: int = MAX_BODIES) -> int:
    """Return a number of parts as an int, or raise an InputError if it is no integer, too small or too large to build.

    Parameters
    ----------
    n
        Number of parts.
    what
        Name of the argument in the message.
    least
        Smallest number allowed.
    bodies
        Number of bodies in each part.
    most
        Largest number of bodies allowed.
    """
    if not is_whole(n) or n < least:
        raise InputError(f"zoo: {what} is {brief(n)}; expected a whole number of at least {least}.")
    if n * bodies > most:
        parts = float(min(int(n) * bodies, 10**30))
        hours = parts * SECONDS_PER_BODY / 3600
        time = f"{hours:.3g} hours" if hours > 1 else f"{60 * hours:.2g} minutes"
        raise InputError(
            f"zoo: {what} is {brief(n)}; so many bodies would take about {time} and {parts * BYTES_PER_BODY / 1e9:.3g} "
            f"GB to build. At most {most // bodies:,}."
        )
    return int(n)
