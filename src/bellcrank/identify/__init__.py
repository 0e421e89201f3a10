"""Identification: which numbers of a mechanism explain what was measured.

regressors, loops       tau = Y(q, v, a) times the numbers, of trees and of closed loops; energy and momentum alike
numbers                 what they are called, what they are in a mechanism, and a mechanism with others
base                    which of them, and which sums of them, can be told at all
least_squares, consistent    least squares with honest errors; bodies that can exist
excitation              a motion within limits that tells most
output_error, design    any numbers of any plant, through its runs
"""

from __future__ import annotations

from bellcrank.identify.base import Base, base_parameters
from bellcrank.identify.consistent import Consistent, consistent_estimate
from bellcrank.identify.excitation import Excitation, excite
from bellcrank.identify.least_squares import Estimate, estimate
from bellcrank.identify.loops import completed
from bellcrank.identify.numbers import Number, mechanism_with, numbers_of, values_of
from bellcrank.identify.regressors import energy_regressor, momentum_regressor, regressor

__all__ = [
    "Base", "Consistent", "Estimate", "Excitation", "Number", "base_parameters", "completed", "consistent_estimate",
    "energy_regressor", "estimate", "excite", "mechanism_with", "momentum_regressor", "numbers_of", "regressor",
    "values_of",
]  # fmt: skip
