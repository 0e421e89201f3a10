"""Numbers of a mechanism or an actuator that stay free, and are inputs of its kernels (docs/parameters.md)."""

from bellcrank.parameter.expression import Expression
from bellcrank.parameter.table import Parameters, parameter
from bellcrank.parameter.term import Term, evaluated
from bellcrank.parameter.walk import depends, expressions, nominal, replaced

__all__ = [
    "Expression",
    "Parameters",
    "Term",
    "depends",
    "evaluated",
    "expressions",
    "nominal",
    "parameter",
    "replaced",
]
