"""How the quantities of a mechanism are computed: what can be asked (quantities.py), by which method (table.py), and
which of them may answer and are worth a try (requests.py).
"""

from __future__ import annotations

from bellcrank.dynamics.quantities import QUANTITIES, Quantity, quantity, shape_of
from bellcrank.dynamics.requests import able, candidates, estimate, method
from bellcrank.dynamics.table import METHODS, Method, MethodTable, methods

__all__ = [
    "METHODS", "QUANTITIES", "Method", "MethodTable", "Quantity",
    "able", "candidates", "estimate", "method", "methods", "quantity", "shape_of",
]  # fmt: skip
