"""Free parameters of mechanisms and actuators, which are inputs of their kernels (docs/parameters.md)."""

from bellcrank.nodes.evaluation import evaluated
from bellcrank.parameters.free import Free
from bellcrank.parameters.table import Parameters, depends, expressions, nominal, parameter, replaced

__all__ = ["Free", "Parameters", "depends", "evaluated", "expressions", "nominal", "parameter", "replaced"]
