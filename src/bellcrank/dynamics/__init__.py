"""Dynamics quantities of a mechanism and the methods that compute them.

quantities.py lists the quantities, table.py the methods, and requests.py selects the methods that apply to a mechanism
and are worth trying.
"""

from __future__ import annotations

from bellcrank.dynamics.quantities import QUANTITIES, Quantity, quantity, shape_of
from bellcrank.dynamics.requests import applicable_methods, candidates, estimate, method
from bellcrank.dynamics.table import METHODS, Method, MethodTable, methods

__all__ = [
    "METHODS", "QUANTITIES", "Method", "MethodTable", "Quantity",
    "applicable_methods", "candidates", "estimate", "method", "methods", "quantity", "shape_of",
]  # fmt: skip
