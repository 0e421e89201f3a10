"""Draws the figures of docs/machines/: python FILE, from the root of the project. Each page says what is drawn."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]


def draw(page: Path) -> None:
    """Runs the page, and writes the columns that its run.plot(...) names."""
    text = page.read_text("utf-8")
    found, code = re.search(r"`run\.plot\((.*?)\)`", text), re.search(r"```python\n(.*?)```", text, re.DOTALL)
    if found is None or code is None:
        return
    scope: dict[str, Any] = {}
    exec(compile(code[1], str(page), "exec"), scope)
    names = re.findall(r'"([^"]+)"', found[1])
    scope["run"].plot(*names, path=DOCS / "figures" / "machines" / f"{page.stem}.svg")


if __name__ == "__main__":
    for page in sorted((DOCS / "machines").glob("*.md")):
        if not sys.argv[1:] or page.stem in sys.argv[1:]:
            draw(page)
