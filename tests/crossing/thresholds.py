"""Take a small mechanism through the code paths of a large one by lowering all size thresholds.

The constants and their values are in tests/lowered.py. They are not part of the key of a cached kernel, so each path
has its own cache folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lowered import lower, of_groups

SEGMENTED = "segmented"  # cases of this path have a branch that can be cut (mechanisms.py)
GROUPS: dict[str, tuple[str, ...]] = {
    "straight": (),
    "rolled": ("bodies",),
    "merged classes": ("bodies", "strips", "classes"),
    "columns": ("columns", "calls", "few"),
    "chunks": ("chunks", "bodies"),
    "projected": ("projected",),
    SEGMENTED: ("segments",),
}
PATHS = {path: of_groups(*groups) for path, groups in GROUPS.items()}


@contextmanager
def small_thresholds(path: str, cache: Path) -> Iterator[None]:
    """Set the thresholds of a path, with its own folder for compiled kernels."""
    with pytest.MonkeyPatch.context() as patch:
        lower(patch, PATHS[path])
        if PATHS[path]:
            folder = cache / path.replace(" ", "_")
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            patch.setenv("BELLCRANK_CACHE", str(folder))
        yield
