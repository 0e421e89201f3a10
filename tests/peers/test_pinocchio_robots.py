"""Every readable robot of example-robot-data, on a fixed and on a floating base, against Pinocchio.

Our numbers come from the methods on plain floats: the source of the traced kernels, on the regrouped tree where kernels
use that. A few robots are also tested through compiled kernels. Tolerances are relative to the largest element: 1e-10,
and results of M^-1 lose as many digits as its condition number (up to 2e8, for iCub) costs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics import aba, crba, derivatives, kinematics, reactions, rnea
from bellcrank.dynamics import singular_mass as movable
from bellcrank.model import Mechanism, regrouped

pin = pytest.importorskip("pinocchio")
from pinocchio_map import Array, Peer  # noqa: E402

FOLDERS = [Path(p) / "cmeel.prefix/share/example-robot-data/robots" for p in sys.path]
ROBOTS = next((folder for folder in FOLDERS if folder.is_dir()), None)
if ROBOTS is None:
    pytest.skip("example-robot-data is not installed", allow_module_level=True)

# Files that are invalid for every reader; tests/unit/test_read_robots.py has our errors. All others are read with the
# defaults of `bc.read`, impossible inertias included.
BROKEN = ("falcon", "ur3")
FILES = [p for p in sorted(ROBOTS.rglob("*.urdf")) if p.stem not in BROKEN]
ONCE = [p.relative_to(ROBOTS).as_posix() for p in FILES]


def near(got: object, expected: object, tolerance: float = 1e-10) -> None:
    got, expected = np.asarray(got, float), np.asarray(expected, float)
    assert got.shape == expected.shape
    worst, scale = np.abs(got - expected).max(initial=0.0), np.abs(expected).max(initial=0.0)
    assert worst <= tolerance * scale + 1e-12, f"{worst:.2e} off, of {scale:.2e}"


def pair(path: str, base: str) -> tuple[Mechanism, Peer]:
    """The robot as Pinocchio reads it: angles exactly as in the file, impossible inertias included, no friction."""
    m = bc.read(ROBOTS / path, base=base, right_angles=0.0).frictionless()
    root = [pin.JointModelFreeFlyer(), m.joints[0].name] if base == "floating" else []
    return m, Peer(pin.buildModelFromUrdf(str(ROBOTS / path), *root), m)


def some_wrench(seed: int) -> Array:
    """Return a wrench: [force, moment]."""
    return np.random.default_rng(seed).uniform(-9, 9, 6)


def singular(M: Array) -> bool:
    """Return whether leaves are massless, as in some of these files."""
    return len(M) > 0 and bool(np.linalg.eigvalsh(M).min() < 1e-12 * np.abs(M).max())


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("path", ONCE)
def test_robot(path: str, base: str) -> None:
    m, peer = pair(path, base)
    if not m.bodies:
        assert peer.model.nv == 0
        return
    tree, felt = m.tree, regrouped(m.tree)
    Q, V, TAU = m.random(1)
    peer.at(Q, V)
    q, v, tau = Q.tolist(), V.tolist(), TAU.tolist()

    M = peer.mass_matrix()
    near(crba.mass_matrix(felt, q), M)
    near(rnea.bias(felt, q, v), peer.bias())
    near(rnea.gravity_torque(felt, q), peer.gravity_torque())
    near(rnea.inverse_dynamics(felt, q, v, tau), peer.inverse_dynamics(TAU))
    for ours, theirs in zip(
        derivatives.inverse_dynamics_derivatives(felt, q, v, tau), peer.inverse_dynamics_derivatives(TAU), strict=False
    ):
        near(ours, theirs)
    near(kinematics.kinetic_energy(felt, q, v), peer.kinetic_energy())
    near(kinematics.potential_energy(tree, q), peer.potential_energy())
    near(kinematics.com(tree, q), peer.com())
    near(kinematics.momentum(tree, q, v), peer.momentum())

    links = peer.frames()
    assert set(links) <= set(m.frames)  # no link is lost
    for link in links:
        near(kinematics.pose(tree, q, link), peer.pose(link))
    for link in links[:: max(1, len(links) // 8)]:
        near(kinematics.jacobian(tree, q, link), peer.jacobian(link))
        near(kinematics.velocity(tree, q, v, link), peer.velocity(link))

    if singular(M):
        with pytest.raises(bc.ModelError, match="without moving any inertia"):
            movable.check_mass_matrix(m)
        return
    movable.check_mass_matrix(m)
    digits = 1e-15 * max(1e5, float(np.linalg.cond(M)))
    near(crba.forward_dynamics(felt, q, v, tau), peer.forward_dynamics(TAU), digits)
    if not tree.coupled:
        near(aba.forward_dynamics(felt, q, v, tau), peer.forward_dynamics(TAU), digits)

    # One wrench in the middle, one at the end; Pinocchio's forces use our accelerations, so that M^-1 is used only
    # once.
    wrenches = {links[len(links) // 2]: some_wrench(1), links[-1]: some_wrench(2)}
    pushed = list(wrenches), [w.tolist() for w in wrenches.values()]
    a = (crba if tree.coupled else aba).forward_dynamics(felt, q, v, tau, *pushed)
    near(reactions.reactions(tree, q, v, tau, *pushed), peer.reactions(np.array(a), wrenches))


# An arm, a gripper with a coupled finger, a humanoid, a hand, a quadruped: tested through tracing, LLVM and the call.
COMPILED = [
    ("ur_description/urdf/ur5_robot.urdf", "fixed"),
    ("panda_description/urdf/panda.urdf", "floating"),
    ("talos_data/robots/talos_reduced.urdf", "floating"),
    ("allegro_hand_description/urdf/allegro_left_hand.urdf", "fixed"),
    ("anymal_b_simple_description/robots/anymal.urdf", "floating"),
]


@pytest.mark.parametrize(("path", "base"), COMPILED)
def test_robot_compiled(path: str, base: str) -> None:
    m, peer = pair(path, base)
    rows = 11  # a whole block and a rest, for any number of lanes
    q, v, tau = m.random(2, (rows,))
    tool = m.bodies[-1].name
    got = {
        "mass_matrix": m.mass_matrix(q),
        "bias": m.bias(q, v),
        "forward_dynamics": m.forward_dynamics(q, v, tau),
        "inverse_dynamics": m.inverse_dynamics(q, v, tau),
        "reactions": m.reactions(q, v, tau),
        "pose": m.pose(q, tool),
        "jacobian": m.jacobian(q, tool),
        "kinetic_energy": m.kinetic_energy(q, v),
        "potential_energy": m.potential_energy(q),
        "com": m.com(q),
        "momentum": m.momentum(q, v),
    }
    for i in (0, 7, rows - 1):
        peer.at(q[i], v[i])
        arguments = {"forward_dynamics": [tau[i]], "inverse_dynamics": [tau[i]], "pose": [tool], "jacobian": [tool]}
        arguments["reactions"] = [got["forward_dynamics"][i]]
        for name, x in got.items():
            near(x[i], getattr(peer, name)(*arguments.get(name, [])), 1e-9)
    # A single state uses other machine code.
    near(m.forward_dynamics(q[3], v[3], tau[3]), got["forward_dynamics"][3], 1e-10)


@pytest.mark.parametrize("path", ["hyq_description/robots/hyq_no_sensors.urdf", "talos_data/robots/talos_reduced.urdf"])
def test_derivatives_in_loops_over_columns(path: str) -> None:
    """The first robot uses loops over columns for one state; the second uses them for a block of states, too."""
    m, peer = pair(path, "floating")
    q, v, tau = m.random(3, (6,))
    got = m.forward_dynamics_derivatives(q, v, tau)
    alone = m.forward_dynamics_derivatives(q[0], v[0], tau[0])
    for i in (0, 5):
        peer.at(q[i], v[i])
        for x, y, expected in zip(got, alone, peer.forward_dynamics_derivatives(tau[i]), strict=True):
            near(x[i], expected)
            if i == 0:
                near(y, expected)


def test_enough_robot_files_are_found() -> None:
    """The tests include all robots that Pinocchio reads."""
    assert len(ONCE) == 75
    for name in BROKEN:
        (path,) = ROBOTS.rglob(f"{name}.urdf")
        with pytest.raises(ValueError):
            pin.buildModelFromUrdf(str(path))
        with pytest.raises(bc.BellcrankError):
            bc.read(path)
