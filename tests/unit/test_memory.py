"""Memory of large records is reused, and never while something refers to it."""

from __future__ import annotations

import numpy as np

from bellcrank.sim.run import batch_execution
from bellcrank.sim.run.batch_execution import RowMemory


def place(a) -> int:
    return a.__array_interface__["data"][0]


def test_released_rows_are_reused(monkeypatch) -> None:
    monkeypatch.setattr(batch_execution, "REUSED_SIZE_NUMBERS", 50)
    m = RowMemory()
    first = m.rows((10, 10))
    column = first[:, 3].reshape(5, 2).view()
    column[:] = 7.0
    at = place(first)
    del first
    other = m.rows((10, 10))
    other[:] = 0.0
    assert (column == 7.0).all()  # a view of a view of a deleted record
    there = place(other)
    assert there != at
    del other
    assert place(m.rows((9, 11))) == there
    del column


def test_oversized_memory_is_released(monkeypatch) -> None:
    monkeypatch.setattr(batch_execution, "REUSED_SIZE_NUMBERS", 50)
    m = RowMemory()
    m.rows((1000,))
    assert m.rows((400,)).base.size == 400
    assert m.rows((500,)).base.size == 500  # too small to be reused


def test_small_ones_are_not_kept() -> None:
    m = RowMemory()
    m.rows((10, 10))
    assert m._last is None
    assert m.rows((3, 4)).shape == (3, 4)
    assert m.rows((3, 4)).dtype == np.float64
