"""A headless Chromium for the tests of our pages, or a skip where there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@contextmanager
def launched(*flags: str) -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as p:
        path = next((found for name in NAMES if (found := shutil.which(name))), p.chromium.executable_path)
        if not os.path.exists(path):
            pytest.skip("no Chromium is installed")
        made = p.chromium.launch(executable_path=path, args=["--no-sandbox", *flags])
        yield made
        made.close()
