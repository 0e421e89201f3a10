"""Consistency check of a finished Mechanism that did not come from `mechanism_of`, such as one read from a record.

`mechanism_of` checks parts before it merges welded bodies and sorts them. A record stores the mechanism after that
step, and an edited file may violate what later steps rely on.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from bellcrank.errors import ModelError, unknown
from bellcrank.model import part_checks
from bellcrank.model.mode_shapes import Modal
from bellcrank.model.parts import EQUATIONS, Joint, Loop

if TYPE_CHECKING:
    from bellcrank.model.mechanism import Mechanism


def check_consistency(m: Mechanism) -> None:
    """Raise a ModelError unless all numbers of mechanism `m` are finite and parts refer to existing parts, in order."""
    part_checks.check_finite(f'mechanism "{m.name}"', "gravity", m.gravity)
    part_checks.check_names("body", [m.ground, *(b.name for b in m.bodies)])
    part_checks.check_names("joint", [j.name for j in m.joints])
    for b in m.bodies:
        part_checks.check_body_numbers(b)
        part_checks.check_mass(b)
    _check_tree(m)
    bodies = {m.ground, *(b.name for b in m.bodies)}
    for name, frame in m.frames.items():
        if name != frame.name:
            raise ModelError(f'the frame "{frame.name}" is listed as "{name}"; expected the same name.')
        part_checks.check_frame(frame, bodies)
    for modes in m.flexible:
        _check_modes(modes, bodies)
    for loop in m.loops:
        _check_loop(m, loop)
    for spring in m.springs:
        _check_ends(m, f'spring "{spring.name}"', (spring.a, spring.b))
        part_checks.check_finite(
            f'spring "{spring.name}"', "numbers", [spring.stiffness, spring.length, spring.damping]
        )


def _check_tree(m: Mechanism) -> None:
    if len(m.joints) != len(m.bodies):
        raise ModelError(f"there are {len(m.joints)} joints for {len(m.bodies)} bodies; expected one for each.")
    earlier_bodies = [m.ground]
    own_joints: dict[str, Joint] = {}
    for joint, body in zip(m.joints, m.bodies, strict=True):
        where = f'joint "{joint.name}"'
        for _ in part_checks.check_joint(joint, (*earlier_bodies, body.name)):
            pass  # notes, which the report of the mechanism already holds
        if joint.child != body.name or joint.parent == body.name:
            raise ModelError(f'{where}: joins "{joint.parent}" to "{joint.child}"; expected it to move "{body.name}".')
        if joint.kind == "fixed":
            raise ModelError(f"{where}: is fixed; expected one that moves, because welded bodies are merged into one.")
        if joint.mimic is None:
            own_joints[joint.name] = joint
        elif joint.mimic.joint not in own_joints:
            raise ModelError(f"{where}: {unknown('joint to follow', joint.mimic.joint, own_joints)}")
        else:
            part_checks.check_finite(where, "mimic", [joint.mimic.multiplier, joint.mimic.offset])
        earlier_bodies.append(body.name)


def _check_modes(modes: Modal, bodies: Collection[str]) -> None:
    where, n = f'flexible body "{modes.body}"', modes.modes
    if modes.body not in bodies:
        raise ModelError(f"{where}: {unknown('body', modes.body, bodies)}")
    if len(modes.damping) != n:
        raise ModelError(
            f"{where}: {n} stiffnesses and {len(modes.damping)} damping coefficients; expected equal numbers."
        )
    shapes = {"A": (n, 3), "B": (n, 3, 3), "D": (n, n, 3, 3), "E": (n, n, 3), "F": (n, n, 3, 3)}
    for letter, shape in shapes.items():
        part_checks.check_finite(where, letter, getattr(modes, letter))
        if (actual_shape := np.shape(getattr(modes, letter))) != shape:
            raise ModelError(f"{where}: {letter} has the shape {actual_shape}; expected {shape} for {n} modes.")


def _check_loop(m: Mechanism, loop: Loop) -> None:
    where = f'loop "{loop.name}"'
    if loop.kind not in EQUATIONS:
        raise ModelError(f"{where}: {unknown('kind of loop', loop.kind, EQUATIONS)}")
    part_checks.check_finite(where, "numbers", [loop.value, loop.offset, *loop.weights])
    _check_ends(m, where, [end for end in (loop.a, loop.b) if end])
    names = [j.name for j in m.joints]
    for name in loop.joints:
        if name not in names:
            raise ModelError(f"{where}: {unknown('joint', name, names)}")
    if not (loop.joints or (loop.a and loop.b)):
        raise ModelError(f"{where}: joins nothing; expected two frames, or joints.")


def _check_ends(m: Mechanism, where: str, ends: tuple[str, ...] | list[str]) -> None:
    for end in ends:
        if end not in m.frames:
            raise ModelError(f"{where}: {unknown('frame', end, m.frames)}")
