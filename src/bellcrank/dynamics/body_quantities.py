"""Table of body recursions, by method and quantity.

The results of a recursion belong to one of three things, and the code that rolls it needs to distinguish no more
(`Said`):

    coordinates    each joint returns its own (forward_dynamics, rate), or a column of a matrix (jacobian)
    frames         one for every body, as poses and reactions; or a single one, along its path to the ground
    a sum          the sum over all bodies, and the quantity made of it at last: energies, centre of mass, momentum
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


# For mimic joints and flexible bodies a recursion needs either only the links' own coordinates, or also the relations
# to shared coordinates and modes (shares.py).
OWN, SHARED = "own", "shared"


@dataclass(frozen=True)
class Said:
    """A quantity as a body recursion.

    of tells to what the results belong, and shape gives the shape of each. last turns all results into the quantity, if
    they are not the quantity itself. shared maps further inputs, equal for all bodies, to the quantities that they are.
    """

    body: Callable[..., Body]
    of: str = VELOCITIES
    shape: tuple[int, ...] = ()
    last: Callable[[Tree, Sequence[Scalar]], Any] | None = None
    shared: Mapping[str, str] = field(default_factory=dict)
    coupled: str = ""  # OWN or SHARED if mimic joints and flexible bodies are supported, else empty
    turned: bool = True  # the result depends on the orientation of the frames


def _sum(body: Callable[..., Body], width: int, last: Callable[[Tree, Sequence[Scalar]], Any]) -> Said:
    return Said(body, SUM, (width,), last, coupled=SHARED)


OVER_MASS, ABOUT_CENTRE = body_sums.over_mass, body_sums.about_centre
BODIES: dict[tuple[str, str], Said] = {
    ("aba", "forward_dynamics"): Said(bodies.forward_dynamics, coupled=SHARED),
    ("aba", "response"): Said(
        bodies.response
    ),  # not a quantity, but what loops need from their tree (build/beneath.py)
    ("rnea", "inverse_dynamics"): Said(bodies.inverse_dynamics, coupled=SHARED),
    ("rnea", "bias"): Said(bodies.bias, coupled=SHARED),
    ("rnea", "coriolis_torque"): Said(bodies.coriolis_torque, coupled=SHARED),
    ("rnea", "gravity_torque"): Said(bodies.gravity_torque, coupled=SHARED),
    ("coriolis", "product"): Said(
        body_columns.coriolis_product
    ),  # products of matrices with x, which are not quantities
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
