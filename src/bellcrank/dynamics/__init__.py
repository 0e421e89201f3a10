"""How the quantities of a mechanism are computed: what can be asked (quantities.py), by which method (table.py), and
which of them are worth a try (work.py).
"""

from __future__ import annotations

from bellcrank.dynamics.quantities import QUANTITIES, Quantity, quantity, shape_of
from bellcrank.dynamics.table import METHODS, Method, MethodTable, able, method, methods
from bellcrank.dynamics.work import candidates, estimate

__all__ = [
    "METHODS", "QUANTITIES", "Method", "MethodTable", "Quantity",
    "able", "candidates", "estimate", "method", "methods", "quantity", "shape_of",
]  # fmt: skip
