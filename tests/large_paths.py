"""Lower the thresholds between code paths, so that small mechanisms take the paths of large ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lowered import lower, of_groups


@contextmanager
def large_paths() -> Iterator[None]:
    """Lower all thresholds of the group "large" inside the block (lowered.py)."""
    with pytest.MonkeyPatch.context() as patch:
        lower(patch, of_groups("large"))
        yield
