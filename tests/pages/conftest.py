"""Two browsers for all page tests of a run: one with software WebGL, and one without WebGL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chromium import launched, playing

SOFTWARE = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")


@pytest.fixture(scope="session")
def playwright() -> Iterator[Any]:
    with playing() as made:
        yield made


@pytest.fixture(scope="session")
def browser(playwright: Any) -> Iterator[Any]:
    """Return a browser with WebGL, for the cockpit and machines."""
    with launched(playwright, *SOFTWARE) as made:
        yield made


@pytest.fixture(scope="session")
def flat_browser(playwright: Any) -> Iterator[Any]:
    """Return a browser without WebGL, where pages draw on a 2D canvas."""
    with launched(playwright, "--disable-gpu", "--disable-3d-apis") as made:
        yield made
