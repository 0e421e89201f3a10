"""All that is also written for one body (neighbours.py): by method and quantity.

A quantity is said of one of three things, and that is all that whoever makes a recursion of it must know (`Said`):

    coordinates    each joint says its own: forward_dynamics, rate; or a column of a matrix: jacobian, momentum_matrix
    frames         of every body one, as poses and reactions are; or a single one, along its path to the ground
    a sum          what all bodies say, added up, and what is made of it at last: energies, centre of mass, momentum
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bellcrank.dynamics import bodies, body_columns, body_motion, body_sums
from bellcrank.dynamics.neighbours import Body
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar

VELOCITIES, POSITIONS, COLUMNS, FRAMES, SUM = "velocities", "positions", "columns", "frames", "sum"


# Where joints follow others and bodies bend: it is enough that links know their own coordinates; or they must know
# which of these others have as well, and how their bodies bend (shares.py).
OWN, SHARED = "own", "shared"


@dataclass(frozen=True)
class Said:
    """A quantity as what one body says. of: what has results, and shape: those of each. last: what is made of all of
    them, where they are not the quantity yet. shared: what all bodies are told beside their own, each a quantity.
    """

    body: Callable[..., Body]
    of: str = VELOCITIES
    shape: tuple[int, ...] = ()
    last: Callable[[Tree, Sequence[Scalar]], Any] | None = None
    shared: Mapping[str, str] = field(default_factory=dict)
    coupled: str = ""  # whether joints may follow others and bodies bend: see OWN and SHARED; not, unless told
    turned: bool = True  # of frames: whether it matters how they are turned


def _sum(body: Callable[..., Body], width: int, last: Callable[[Tree, Sequence[Scalar]], Any]) -> Said:
    return Said(body, SUM, (width,), last, coupled=SHARED)


OVER_MASS, ABOUT_CENTRE = body_sums.over_mass, body_sums.about_centre
BODIES: dict[tuple[str, str], Said] = {
    ("aba", "forward_dynamics"): Said(bodies.forward_dynamics, coupled=SHARED),
    ("aba", "response"): Said(bodies.response),  # no quantity: what loops need of the tree beneath (build/beneath.py)
    ("rnea", "inverse_dynamics"): Said(bodies.inverse_dynamics, coupled=SHARED),
    ("rnea", "bias"): Said(bodies.bias, coupled=SHARED),
    ("rnea", "coriolis_torque"): Said(bodies.coriolis_torque, coupled=SHARED),
    ("rnea", "gravity_torque"): Said(bodies.gravity_torque, coupled=SHARED),
    ("coriolis", "product"): Said(body_columns.coriolis_product),  # of matrices with x, which are no quantities
    ("aba", "product"): Said(body_columns.factor_product, COLUMNS, (2,)),
    ("reactions", "reactions"): Said(body_motion.reactions, FRAMES, (6,), coupled=SHARED, turned=False),
    ("kinematics", "passive_torque"): Said(body_motion.passive_torque),
    ("kinematics", "rate"): Said(body_motion.of_its_joint("rate"), POSITIONS),
    ("kinematics", "integrate"): Said(body_motion.of_its_joint("integrate"), POSITIONS),
    ("kinematics", "difference"): Said(body_motion.of_its_joint("difference")),
    ("kinematics", "pose"): Said(body_motion.poses, FRAMES, (4, 4), coupled=OWN),
    ("frame_motion", "poses"): Said(body_motion.poses, FRAMES, (4, 4), coupled=OWN),
    ("kinematics", "velocity"): Said(body_motion.velocity, FRAMES, (6,), coupled=OWN),
    ("frame_motion", "acceleration"): Said(body_motion.acceleration, FRAMES, (6,), coupled=OWN),
    ("frame_motion", "spatial_acceleration"): Said(body_motion.spatial_acceleration, FRAMES, (6,), coupled=OWN),
    ("kinematics", "jacobian"): Said(body_columns.jacobian, COLUMNS, (6,)),
    ("frame_motion", "jacobian_rate"): Said(body_columns.jacobian_rate, COLUMNS, (6,)),
    ("kinematics", "kinetic_energy"): _sum(body_sums.kinetic_energy, 1, lambda tree, total: total[0]),
    ("kinematics", "potential_energy"): _sum(body_sums.potential_energy, 4, body_sums.height_energy),
    **{(by, "com"): _sum(body_sums.com, 3, OVER_MASS) for by in ("kinematics", "centroidal")},
    **{(by, "momentum"): _sum(body_sums.momentum, 9, ABOUT_CENTRE) for by in ("kinematics", "centroidal")},
    ("centroidal", "com_velocity"): _sum(body_sums.com_velocity, 3, OVER_MASS),
    ("centroidal", "com_acceleration"): _sum(body_sums.com_acceleration, 3, OVER_MASS),
    ("centroidal", "momentum_rate"): _sum(body_sums.momentum_rate, 9, ABOUT_CENTRE),
    ("centroidal", "com_jacobian"): Said(body_columns.com_jacobian, COLUMNS, (3,), OVER_MASS),
    ("centroidal", "momentum_matrix"): Said(body_columns.momentum_matrix, COLUMNS, (6,), shared={"c": "com"}),
    ("centroidal", "momentum_matrix_rate"): Said(
        body_columns.momentum_matrix_rate, COLUMNS, (6,), shared={"c": "com", "dc": "com_velocity"}
    ),
}
