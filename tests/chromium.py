"""Headless Chromium for the tests of HTML pages; the tests are skipped where it is not installed.

With BELLCRANK_BROWSER=required, as in CI, a missing browser is a failure instead of a skip.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def missing(what: str) -> None:
    if os.environ.get("BELLCRANK_BROWSER") == "required":
        pytest.fail(f"{what}, and BELLCRANK_BROWSER is required")
    pytest.skip(what)


@contextmanager
def playing() -> Iterator[Any]:
    """Return Playwright; a thread can have only one instance."""
    try:
        import playwright.sync_api as playwright
    except ImportError:
        missing("playwright is not installed")
    with playwright.sync_playwright() as made:
        yield made


@contextmanager
def launched(playwright: Any, *flags: str) -> Iterator[Any]:
    own = playwright.chromium.executable_path
    path = next((found for name in NAMES if (found := shutil.which(name))), own)
    if not os.path.exists(path):
        missing("no Chromium is installed")
    made = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", *flags])
    yield made
    made.close()


@contextmanager
def opening(browser: Any) -> Iterator[Callable[..., Any]]:
    """Return a function that opens pages of files.

    It fails if a page logs anything or requests anything from the network.
    """
    pages, trouble = [], []

    def opened(path: Path, width: int, height: int, scheme: str = "light", **more: Any) -> Any:
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme, **more)
        pages.append(page)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("console", lambda message: trouble.append(message.text))
        page.on("request", lambda r: trouble.append(r.url) if not r.url.startswith(("file:", "data:")) else None)
        page.goto(path.as_uri())
        settled(page)
        return page

    yield opened
    for page in pages:
        page.close()
    assert trouble == []


def settled(page: Any) -> None:
    """Wait for two animation frames, after which everything is drawn."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
