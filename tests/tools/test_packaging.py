"""The build hook: a wheel contains the page of drive, or the build explains what to do. (hatchling is not needed.)"""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import hatch_build.py with replacements for the names that it takes from hatchling."""
    name = "hatchling.builders.hooks.plugin.interface"
    parts = name.split(".")
    for k in range(1, len(parts) + 1):
        monkeypatch.setitem(sys.modules, ".".join(parts[:k]), types.ModuleType(".".join(parts[:k])))
    sys.modules[name].BuildHookInterface = object  # type: ignore[attr-defined]
    monkeypatch.delenv("BELLCRANK_WITHOUT_PAGE", raising=False)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tree(root: Path, hook: Any, page: float | None, sources: float) -> Any:
    """Return a source tree with the hook, whose page and sources have these times."""
    files = {root / "web" / "src" / "main.ts": sources, root / "web" / "build.mjs": 0.0}
    static = root / "src" / "bellcrank" / "cockpit" / "static"
    files |= {static / name: page for name in hook.PAGE} if page is not None else {}
    for path, time in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        os.utime(path, (time, time))
    made = hook.Page()
    made.root = str(root)
    return made


def test_existing_page_is_used(tmp_path: Path, hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An existing page is used without Node, as in a source archive, where all files have the same time."""
    monkeypatch.setenv("PATH", "")
    tree(tmp_path, hook, 5.0, 5.0).initialize("standard", {})


@pytest.mark.parametrize("page", [None, 4.0])
def test_build_without_node_fails_with_a_remedy(
    page: float | None, tmp_path: Path, hook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    made = tree(tmp_path, hook, page, 5.0)
    with pytest.raises(RuntimeError, match=r"Install Node 18.*make page.*source archive.*BELLCRANK_WITHOUT_PAGE"):
        made.initialize("standard", {})
    made.initialize("editable", {})  # a development checkout uses `make page`
    monkeypatch.setenv("BELLCRANK_WITHOUT_PAGE", "1")
    made.initialize("standard", {})


def test_page_is_bundled_with_node(tmp_path: Path, hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Node the page is bundled; a shell script replaces Node."""
    tools = tmp_path / "bin"
    tools.mkdir()
    static = tmp_path / "tree" / "src" / "bellcrank" / "cockpit" / "static"
    make = f"/bin/mkdir -p '{static}'; for f in {' '.join(hook.PAGE)}; do echo made > '{static}'/$f; done"
    for name, line in (("node", make), ("npm", "exit 0")):
        (tools / name).write_text(f"#!/bin/sh\n{line}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    tree(tmp_path / "tree", hook, None, 5.0).initialize("standard", {})
    assert (static / "cockpit.js").read_text() == "made\n"
    (tools / "npm").write_text("#!/bin/sh\nexit 3\n")
    os.utime(static / "cockpit.js", (1.0, 1.0))
    made = hook.Page()
    made.root = str(tmp_path / "tree")
    with pytest.raises(RuntimeError, match=r"exit status 3.*Install Node 18"):
        made.initialize("standard", {})
