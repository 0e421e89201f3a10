"""Fixture of all tests of combinations."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def held(cache_folder: Path) -> Path:
    """Return the folder in which every process records the cases that passed."""
    return cache_folder.parent / "crossing"
