"""Identification: estimate the numbers of a mechanism from measurements.

regressors, closed_loops   tau = Y(q, v, a) times the numbers, for trees and closed loops; also for energy and momentum
linear_parameters          names of the numbers, their values in a mechanism, and a mechanism with other values
parameter_groups           base parameters: the numbers, and sums of numbers, that are identifiable
least_squares              base parameters with standard errors; physically consistent mechanisms
excitation                 exciting trajectories within limits
output_error, design_optimisation      any numbers of any plant, through its runs
"""

from __future__ import annotations

from bellcrank.identify.closed_loops import completed
from bellcrank.identify.excitation import Excitation, excite
from bellcrank.identify.least_squares import Consistent, Estimate, consistent_estimate, estimate
from bellcrank.identify.linear_parameters import Number, mechanism_with, numbers_of, values_of
from bellcrank.identify.parameter_groups import Base, base_parameters
from bellcrank.identify.regressors import energy_regressor, momentum_regressor, regressor

__all__ = [
    "Base", "Consistent", "Estimate", "Excitation", "Number", "base_parameters", "completed", "consistent_estimate",
    "energy_regressor", "estimate", "excite", "mechanism_with", "momentum_regressor", "numbers_of", "regressor",
    "values_of",
]  # fmt: skip
