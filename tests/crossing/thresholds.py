"""Take a small mechanism through the code paths of a large one: every size at which the package changes its mind.

PATHS is the only list of these constants. They are no part of the key of a cached kernel, so that each setting gets a
cache folder of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

Setting = dict[str, Any]  # "module.CONSTANT": value

_BODIES: Setting = {  # alike bodies share their code
    "dynamics.requests.MOST_STRAIGHT": 1,
    "dynamics.requests.MOST_NUMBERS": 1,
    "build.sharing.ALIKE": 0,
    "build.by_tangents.MOST_WRITTEN": 1,
    "build.beneath.MOST_STRAIGHT": 1,
    "build.beneath.ALIKE": 0,
    "build.beneath.WASTE": 1e9,
    "sim.frame_passes.MANY": 1,
    "sim.frame_passes.ALIKE": 0,
    "sim.everywhere.MANY": 1,
    "sim.everywhere.ALIKE": 0,
    "sim.element_passes.FEW": 1,
    "sim.tree_dynamics.MANY": 1,
}
_CALLS: Setting = {  # linear systems are solved by functions that are called
    "sim.implicit_systems.FEWEST": 1,
    "sim.tree_dynamics.MANY": 1,
    "dynamics.immobility.LARGE": 1,
}
_COLUMNS: Setting = {  # columns of a matrix are loops, and code is cut into chunks
    "emit.cpu.llvm.SPARED": 0,
    "graph.columns.FEWEST": 2,
    "emit.cpu.llvm.CHUNK": 40,
}
_STRIPS: Setting = {  # alike operations are loops
    "emit.cpu.llvm.LARGE": 1,
    "graph.strip_parts.FEWEST": 1,
    "graph.strip_parts.LONG": 4,
    "graph.strip_parts.SHARE": 0.05,
}
_FEW: Setting = {"sim.loop_form.MANY_PAIRS": 1, "sim.loop_form.CHEAPER": 0}  # mass matrices of few freedoms
PATHS: dict[str, Setting] = {
    "straight": {},
    "rolled": _BODIES,
    "merged classes": _BODIES | _STRIPS | {"dynamics.alike.MANY_CLASSES": 1, "dynamics.alike.FEW": 100},
    "columns": _COLUMNS | _CALLS | _FEW,
    "projected": {"sim.loop_form.LARGE": 0.0},
}


@contextmanager
def small_thresholds(path: str, cache: Path) -> Iterator[None]:
    """Set the thresholds of a path, with a folder of its own for what is compiled meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in PATHS[path].items():
            patch.setattr(f"bellcrank.{name}", value)
        if PATHS[path]:
            folder = cache / path.replace(" ", "_")
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            patch.setenv("BELLCRANK_CACHE", str(folder))
        yield
