"""Numbers of a mechanism or an actuator that stay free, and are inputs of its kernels (docs/parameters.md)."""

from bellcrank.parameters.expression import Expression
from bellcrank.parameters.table import Parameters, parameter
from bellcrank.parameters.term import Term, evaluated
from bellcrank.parameters.walk import depends, expressions, nominal, replaced

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
