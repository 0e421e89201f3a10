"""Table of body recursions, by method and quantity.

The results of a recursion are per coordinate, per frame or a sum over bodies; code generation distinguishes only these
(`BodyQuantity`):

    coordinates    each joint returns its own (forward_dynamics, rate), or a column of a matrix (jacobian)
    frames         one for every body, as poses and reactions; or a single one, along its path to the ground
    a sum          the sum over all bodies, and the quantity made of it at last: energies, centre of mass, momentum
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bellcrank.dynamics import aba, centroidal, coriolis, frame_motion, kinematics, reactions, rnea
from bellcrank.dynamics.tree_sweeps import Body, BodyRecursion
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar

VELOCITIES, POSITIONS, COLUMNS, FRAMES, SUM = "velocities", "positions", "columns", "frames", "sum"


# For mimic joints and flexible bodies a recursion needs either only the links' own coordinates, or also the relations
# to shared coordinates and modes (shared_coordinates.py).
OWN_COORDINATES, SHARED_COORDINATES = "own", "shared"


@dataclass(frozen=True)
class BodyQuantity:
    """A quantity as a body recursion.

    `owner` states what each result belongs to, and `shape` its shape. `finish`, if given, computes the quantity from
    all results. `shared_inputs` maps further inputs, equal for all bodies, to the quantities that supply them.
    """

    body: Callable[[Body], BodyRecursion]
    owner: str = VELOCITIES
    shape: tuple[int, ...] = ()
    finish: Callable[[Tree, Sequence[Scalar]], Any] | None = None
    shared_inputs: Mapping[str, str] = field(default_factory=dict)
    # OWN_COORDINATES or SHARED_COORDINATES if mimic joints and flexible bodies are supported, else empty.
    coupled: str = ""
    oriented: bool = True  # the result depends on the orientation of the frames


def _sum_quantity(
    terms: Callable[[Body], BodyRecursion], width: int, last: Callable[[Tree, Sequence[Scalar]], Any]
) -> BodyQuantity:
    return BodyQuantity(kinematics.sum_over_bodies(terms), SUM, (width,), last, coupled=SHARED_COORDINATES)


OVER_MASS, ABOUT_CENTRE = kinematics.divide_by_mass, kinematics.momentum_about_centre
BODY_QUANTITIES: dict[tuple[str, str], BodyQuantity] = {
    ("aba", "forward_dynamics"): BodyQuantity(aba.body_forward_dynamics, coupled=SHARED_COORDINATES),
    # Not a quantity, but a result that loops need from their tree (build/rolled_tree_terms.py).
    ("aba", "response"): BodyQuantity(aba.body_response),
    ("rnea", "inverse_dynamics"): BodyQuantity(rnea.body_inverse_dynamics, coupled=SHARED_COORDINATES),
    ("rnea", "bias"): BodyQuantity(rnea.body_bias, coupled=SHARED_COORDINATES),
    ("rnea", "coriolis_torque"): BodyQuantity(rnea.body_coriolis_torque, coupled=SHARED_COORDINATES),
    ("rnea", "gravity_torque"): BodyQuantity(rnea.body_gravity_torque, coupled=SHARED_COORDINATES),
    # Products of matrices with x, which are not quantities.
    ("coriolis", "product"): BodyQuantity(coriolis.body_product),
    ("aba", "product"): BodyQuantity(aba.body_product, COLUMNS, (2,)),
    ("reactions", "reactions"): BodyQuantity(
        reactions.body_reaction, FRAMES, (6,), coupled=SHARED_COORDINATES, oriented=False
    ),
    ("kinematics", "passive_torque"): BodyQuantity(kinematics.body_passive_torque),
    ("kinematics", "rate"): BodyQuantity(kinematics.joint_function("rate", "q", "v"), POSITIONS),
    ("kinematics", "integrate"): BodyQuantity(kinematics.joint_function("integrate", "q", "dv"), POSITIONS),
    ("kinematics", "difference"): BodyQuantity(kinematics.joint_function("difference", "q0", "q1")),
    ("kinematics", "pose"): BodyQuantity(kinematics.body_poses, FRAMES, (4, 4), coupled=OWN_COORDINATES),
    ("frame_motion", "poses"): BodyQuantity(kinematics.body_poses, FRAMES, (4, 4), coupled=OWN_COORDINATES),
    ("kinematics", "velocity"): BodyQuantity(kinematics.body_velocity, FRAMES, (6,), coupled=OWN_COORDINATES),
    ("frame_motion", "acceleration"): BodyQuantity(
        frame_motion.body_acceleration, FRAMES, (6,), coupled=OWN_COORDINATES
    ),
    ("frame_motion", "spatial_acceleration"): BodyQuantity(
        frame_motion.body_spatial_acceleration, FRAMES, (6,), coupled=OWN_COORDINATES
    ),
    ("kinematics", "jacobian"): BodyQuantity(kinematics.body_jacobian, COLUMNS, (6,)),
    ("frame_motion", "jacobian_rate"): BodyQuantity(frame_motion.body_jacobian_rate, COLUMNS, (6,)),
    ("kinematics", "kinetic_energy"): _sum_quantity(kinematics.body_kinetic_energy, 1, lambda tree, total: total[0]),
    ("kinematics", "potential_energy"): _sum_quantity(kinematics.body_potential_energy, 4, kinematics.gravity_energy),
    **{(method, "com"): _sum_quantity(kinematics.body_com, 3, OVER_MASS) for method in ("kinematics", "centroidal")},
    **{
        (method, "momentum"): _sum_quantity(kinematics.body_momentum, 9, ABOUT_CENTRE)
        for method in ("kinematics", "centroidal")
    },
    ("centroidal", "com_velocity"): _sum_quantity(centroidal.body_com_velocity, 3, OVER_MASS),
    ("centroidal", "com_acceleration"): _sum_quantity(centroidal.body_com_acceleration, 3, OVER_MASS),
    ("centroidal", "momentum_rate"): _sum_quantity(centroidal.body_momentum_rate, 9, ABOUT_CENTRE),
    ("centroidal", "com_jacobian"): BodyQuantity(centroidal.body_com_jacobian, COLUMNS, (3,), OVER_MASS),
    ("centroidal", "momentum_matrix"): BodyQuantity(
        centroidal.body_momentum_matrix, COLUMNS, (6,), shared_inputs={"c": "com"}
    ),
    ("centroidal", "momentum_matrix_rate"): BodyQuantity(
        centroidal.body_momentum_matrix_rate, COLUMNS, (6,), shared_inputs={"c": "com", "dc": "com_velocity"}
    ),
}
