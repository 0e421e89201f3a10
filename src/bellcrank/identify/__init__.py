"""Identification: estimate the numbers of a mechanism from measurements.

regressors, closed_loops   the numbers, and tau = Y(q, v, a) times the numbers, for trees and closed loops; also for
                           energy and momentum
least_squares              base parameters: those that are identifiable, with standard errors; consistent mechanisms
excitation                 exciting trajectories within limits
output_error, design_optimisation      any numbers of any plant, through its runs
"""

from __future__ import annotations

from bellcrank.identify.closed_loops import completed
from bellcrank.identify.excitation import Excitation, excite
from bellcrank.identify.least_squares import Base, Consistent, Estimate, base_parameters, consistent_estimate, estimate
from bellcrank.identify.regressors import (
    Number,
    energy_regressor,
    mechanism_with,
    momentum_regressor,
    numbers_of,
    regressor,
    values_of,
)

__all__ = [
    "Base", "Consistent", "Estimate", "Excitation", "Number", "base_parameters", "completed", "consistent_estimate",
    "energy_regressor", "estimate", "excite", "mechanism_with", "momentum_regressor", "numbers_of", "regressor",
    "values_of",
]  # fmt: skip
