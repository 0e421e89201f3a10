"""What a wheel or a source archive needs beside the sources: the page of `bellcrank drive`, bundled from web/.

A checkout bundles it with Node, where it is not there or older than its sources. A source archive has it, so that who
packages from one needs neither Node nor a network. Where it cannot be made the build fails, and says how it can: a
wheel without it would look whole and is not. BELLCRANK_WITHOUT_PAGE=1 builds one all the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = ("cockpit.js", "cockpit.css", "index.html", "report.js")


class Page(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or os.environ.get("BELLCRANK_WITHOUT_PAGE"):
            return  # `make page` bundles it into the checkout
        root = Path(self.root)
        if not whole(root):
            bundle(root / "web")
        if not whole(root):
            raise RuntimeError(
                "web/build.mjs ran, but the page of `bellcrank drive` is not in src/bellcrank/cockpit/static."
            )


def whole(root: Path) -> bool:
    """Whether the page is there, and not older than what it is made from."""
    files = [root / "src" / "bellcrank" / "cockpit" / "static" / name for name in PAGE]
    if not all(path.is_file() for path in files):
        return False
    sources = [*(root / "web" / "src").glob("*"), *(root / "web").glob("*.json"), *(root / "web").glob("*.mjs")]
    oldest = min(path.stat().st_mtime for path in files)
    return all(path.stat().st_mtime <= oldest for path in sources)


def bundle(web: Path) -> None:
    how = (
        "The page of `bellcrank drive` is not in the source tree, or older than web/. Install Node 18 or newer with "
        "npm and build again; or run `make page` first, which brings its own Node; or build from a source archive, "
        "which has the page. BELLCRANK_WITHOUT_PAGE=1 builds without it."
    )
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None or not web.is_dir():
        raise RuntimeError(how)
    try:
        if not (web / "node_modules" / "esbuild").is_dir():
            subprocess.run([npm, "ci", "--loglevel=error", "--no-audit", "--no-fund"], cwd=web, check=True)
        subprocess.run([node, "build.mjs"], cwd=web, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise RuntimeError(f"{error}. {how}") from error
