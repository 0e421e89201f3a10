"""How the quantities of a mechanism are computed: what can be asked (quantities.py), by which method (table.py), and
which of them are worth a try (work.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from textwrap import wrap

from bellcrank.dynamics.quantities import QUANTITIES, Quantity, quantity, shape_of
from bellcrank.dynamics.table import METHODS, Method
from bellcrank.dynamics.work import estimate
from bellcrank.errors import InputError, unknown
from bellcrank.model.tree import Tree
from bellcrank.text import table as table_of  # there is a file called table here

__all__ = [
    "METHODS", "QUANTITIES", "Method", "MethodTable", "Quantity",
    "able", "candidates", "estimate", "method", "methods", "quantity", "shape_of",
]  # fmt: skip

WIDTH = 100  # of the printed table
MARGIN = 1.4  # what a rough estimate puts further behind than this is not traced by "auto" ...
COUPLED = 3.0  # (where joints share coordinates, which the estimate does not see)
STRONG = ("rnea", "crba", "aba", "denoc", "vcrb", "reactions")  # ... unless it is one that wins elsewhere, and is not
HOPELESS = 3.0, 20_000.0  # both that many times behind and that many operations


def able(quantity_name: str, tree: Tree) -> list[Method]:
    """All methods that give the quantity for this tree."""
    q = quantity(quantity_name)
    if q.through and not tree.loops:
        return []
    found = [m for m in METHODS.values() if m.applies(tree, q.through or quantity_name)]
    if q.differentiates:  # what a method gives can be differentiated
        found += [m for m in METHODS.values() if m.applies(tree, q.differentiates) and m not in found]
    return found


def method(name: str, quantity_name: str, tree: Tree) -> Method:
    """The named method, if it solves the quantity for this tree."""
    found = [m.name for m in able(quantity_name, tree)]
    if not found:
        raise InputError(f"{quantity_name} is about loops, and this mechanism has none.")
    if name not in METHODS:
        raise InputError(unknown("method", name, ["auto", *found]))
    if name not in found:
        m, q = METHODS[name], quantity(quantity_name)
        needed = q.through or quantity_name
        if q.differentiates in m.solves:  # it could be differentiated, but for the mechanism
            needed = q.differentiates
        why = f"it solves {', '.join(m.solves)}" if needed not in m.solves else m.covered(needed).but
        raise InputError(
            f'method "{name}" does not give {quantity_name} of this mechanism: {why}. '
            f"Use: {', '.join(['auto', *found])}."
        )
    return METHODS[name]


def candidates(quantity_name: str, tree: Tree) -> list[Method]:
    """What "auto" chooses from: all that apply, less those that a rough estimate puts far behind."""
    found = able(quantity_name, tree)
    if base := quantity(quantity_name).differentiates:
        return [m for m in found if quantity_name in m.solves] or candidates(base, tree)
    if len(found) < 2:
        return found
    work = {m.name: estimate(m.name, quantity_name, tree) for m in found}
    least, (times, large) = min((x for x in work.values() if x), default=0.0), HOPELESS
    kept = {m.name for m in found if m.name in STRONG and work[m.name] <= max(times * least, large)}
    margin = COUPLED if tree.coupled else MARGIN
    return [m for m in found if m.name in kept or work[m.name] <= margin * least]


class MethodTable:
    """Prints as a table; iterates over the methods."""

    def __iter__(self) -> Iterator[Method]:
        return iter(METHODS.values())

    def __len__(self) -> int:
        return len(METHODS)

    def __getitem__(self, name: str) -> Method:
        if name not in METHODS:
            raise InputError(unknown("method", name, METHODS))
        return METHODS[name]

    def __str__(self) -> str:
        """Wrapped to the width, nothing cut."""
        cells = [(m.name, wrap(", ".join(m.solves), 20), wrap(m.topology, 10), m.citation) for m in self]
        names = max(map(len, METHODS))
        left = WIDTH - names - 3 * 2 - sum(max(len(line) for c in cells for line in c[k]) for k in (1, 2))
        rows: list[tuple[str, ...]] = []
        for name, solves, topology, citation in cells:
            rows += zip_longest([name], solves, topology, wrap(citation, left, break_on_hyphens=False), fillvalue="")
        return table_of(("method", "solves", "topology", "source"), rows)

    __repr__ = __str__


def methods() -> MethodTable:
    """The table of methods: what each solves, for which mechanisms, and where it was published."""
    return MethodTable()
