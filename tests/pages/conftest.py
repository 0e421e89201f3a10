"""Two browsers for all pages of a run: one with a graphics card of software, and one that has none at all."""

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
    """Has WebGL, for the cockpit and machines."""
    with launched(playwright, *SOFTWARE) as made:
        yield made


@pytest.fixture(scope="session")
def flat_browser(playwright: Any) -> Iterator[Any]:
    """Has none: what a page draws there, it draws by itself."""
    with launched(playwright, "--disable-gpu", "--disable-3d-apis") as made:
        yield made
