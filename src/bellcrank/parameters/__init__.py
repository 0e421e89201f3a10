"""Free parameters of mechanisms and actuators, which are inputs of their kernels (docs/parameters.md)."""

from bellcrank.nodes.tape import evaluate
from bellcrank.parameters.free import Free
from bellcrank.parameters.parameter_table import Parameters, expressions, has_free, nominal, parameter, replace_free

__all__ = ["Free", "Parameters", "evaluate", "expressions", "has_free", "nominal", "parameter", "replace_free"]
