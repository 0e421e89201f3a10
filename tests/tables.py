"""Restore the tables that bc.register adds to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bellcrank import registration
from bellcrank.lazy_import import discard_compiled
from bellcrank.model import parts
from bellcrank.model.mechanism import Mechanism


@contextmanager
def restored() -> Iterator[None]:
    """Remove on exit what was registered inside the block."""
    tables = [row.table() for row in registration.KINDS.values()] + [parts.EQUATIONS]
    before = [dict(table) for table in tables]
    own = set(registration._registered)
    try:
        yield
    finally:
        for kind, name in registration._registered - own:
            if kind == "quantity":
                delattr(Mechanism, name)
        for table, rows in zip(tables, before, strict=True):
            table.clear()
            table.update(rows)
        registration._registered.clear()
        registration._registered.update(own)
        discard_compiled()
