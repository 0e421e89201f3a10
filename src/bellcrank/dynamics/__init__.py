"""Dynamics quantities of a mechanism and the methods that compute them.

quantities.py lists the quantities and method_table.py the methods; it also selects those that apply to a mechanism and
are worth trying.
"""

from __future__ import annotations

from bellcrank.dynamics.method_table import METHODS, Method, applicable_methods, candidates, estimate, method, methods
from bellcrank.dynamics.quantities import QUANTITIES, Quantity, quantity, shape_of

__all__ = [
    "METHODS", "QUANTITIES", "Method", "Quantity",
    "applicable_methods", "candidates", "estimate", "method", "methods", "quantity", "shape_of",
]  # fmt: skip
