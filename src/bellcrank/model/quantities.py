"""Quantities of a mechanism, as its methods; quantities.pyi has their types, dynamics/quantities.py their texts."""

from __future__ import annotations

from bellcrank.lazy_import import CompiledQuantity

# Rows of the table in dynamics/quantities.py, which the model layer does not import.
NAMES = (
    *("forward_dynamics", "inverse_dynamics", "forward_dynamics_derivatives", "inverse_dynamics_derivatives"),
    *("mass_matrix", "inverse_mass_matrix", "mass_matrix_factors", "bias", "gravity_torque", "coriolis_torque"),
    *("coriolis_matrix", "reactions", "multipliers", "closure", "closure_jacobian", "closure_bias", "loop_forces"),
    *("passive_torque", "kinetic_energy", "potential_energy", "pose", "velocity", "jacobian", "poses", "acceleration"),
    *("spatial_acceleration", "jacobian_rate", "com", "com_velocity", "com_acceleration", "com_jacobian", "momentum"),
    *("momentum_rate", "momentum_matrix", "momentum_matrix_rate", "rate", "integrate", "difference"),
)


class Quantities:
    """All quantities of a mechanism: compiled kernels on a mechanism, documented functions on the class."""


for _name in NAMES:
    setattr(Quantities, _name, CompiledQuantity(_name))
