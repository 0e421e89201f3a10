"""Robot files of all installed packages, and of additional folders in BELLCRANK_ROBOT_FILES."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

SKIPPED = ("__pycache__", "node_modules", "torch", "jax", "jaxlib", "scipy", "numpy", "sympy", "llvmlite", "casadi")


def roots() -> list[Path]:
    """Return the folders to search: those of installed packages, and the additional ones."""
    given = [p for p in os.environ.get("BELLCRANK_ROBOT_FILES", "").split(os.pathsep) if p]
    found = [Path(p) for p in [*sys.path, *given] if "site-packages" in p or p in given]
    return [folder for folder in dict.fromkeys(found) if folder.is_dir()]


@cache
def files(suffix: str, marks: tuple[bytes, ...]) -> tuple[Path, ...]:
    """Return the files with this suffix that contain one of these texts, sorted by name."""
    found = []
    for root in roots():
        for folder, inner, names in os.walk(root):
            inner[:] = sorted(name for name in inner if name not in SKIPPED)
            paths = [Path(folder) / name for name in sorted(names) if name.lower().endswith(suffix)]
            found += [path for path in paths if any(mark in path.read_bytes() for mark in marks)]
    return tuple(found)


def mjcf_files() -> tuple[Path, ...]:
    return files(".xml", (b"<mujoco>", b"<mujoco "))


def urdf_files() -> tuple[Path, ...]:
    return files(".urdf", (b"<robot",))


def short(path: Path) -> str:
    """Return the path inside its folder, for the name of a test."""
    for root in roots():
        if path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return path.name
