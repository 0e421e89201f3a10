"""Dynamics quantities of a mechanism and the methods that compute them.

quantities.py lists the quantities, method_table.py the methods, and quantity_requests.py selects the methods that apply
to a mechanism and are worth trying.
"""

from __future__ import annotations

from bellcrank.dynamics.method_table import METHODS, Method, MethodTable, methods
from bellcrank.dynamics.quantities import QUANTITIES, Quantity, quantity, shape_of
from bellcrank.dynamics.quantity_requests import applicable_methods, candidates, estimate, method

__all__ = [
    "METHODS", "QUANTITIES", "Method", "MethodTable", "Quantity",
    "applicable_methods", "candidates", "estimate", "method", "methods", "quantity", "shape_of",
]  # fmt: skip
