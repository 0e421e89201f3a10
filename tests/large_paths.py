"""Thresholds between code paths, lowered: small mechanisms then take the paths of large ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lowered import lower, of_groups


@contextmanager
def large_paths() -> Iterator[None]:
    """Lower all thresholds of the group "large" inside (lowered.py)."""
    with pytest.MonkeyPatch.context() as patch:
        lower(patch, of_groups("large"))
        yield
