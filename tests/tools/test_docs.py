"""docs/ and ARCHITECTURE.md: links lead to existing targets, code runs, tables are current."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

import bellcrank as bc
import tables
from bellcrank.dynamics import METHODS
from bellcrank.graph import trace
from bellcrank.model import Tree, regrouped
from bellcrank.papers.operation_counts import published
from prose import FENCE, ROOT, UPDATE, run_console, run_python

DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *DOCS]
FOLDERS = [Path(p) / "cmeel.prefix/share/example-robot-data/robots" for p in sys.path]
ROBOTS = next((folder for folder in FOLDERS if folder.is_dir()), None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)]+)\)", page.read_text("utf-8"))
    broken = [link for link in links if "://" not in link and not (page.parent / link.partition("#")[0]).exists()]
    assert broken == []


@pytest.mark.filterwarnings("error:.*is not resolved:RuntimeWarning")
@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_code_runs(page: Path, tmp_path: Path) -> None:
    with tables.restored():  # a page may add to the tables
        run_python(page)
    run_console(page, tmp_path)


def test_every_dependency_is_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = dict(project["optional-dependencies"])
    core, more, dev = re.split("## (?:Extras|Development)", (ROOT / "docs/dependencies.md").read_text("utf-8"))
    for page, wanted in ((core, project["dependencies"]), (dev, extras.pop("dev"))):
        cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
        explained = re.findall(r"`([\w-]+)`", "".join(cells))
        assert sorted(explained) == sorted(re.match(r"[\w-]+", want)[0] for want in wanted)  # type: ignore[index]
    explained = re.findall(r"^\| `(\w+)` \| `([\w-]+)` \|", more, re.MULTILINE)
    wanted = [(name, re.match(r"[\w-]+", want)[0]) for name, wants in extras.items() for want in wants]  # type: ignore[index]
    assert sorted(explained) == sorted(wanted)


def test_architecture_is_one_page() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines()) < 110


@pytest.mark.skipif(ROBOTS is None, reason="example-robot-data is not installed")
def test_counts_are_current() -> None:
    assert ROBOTS is not None
    files = {
        "UR5, 6 joints": "ur_description/urdf/ur5_robot.urdf",
        "Panda, 7 joints": "panda_description/urdf/panda.urdf",
        "Talos, 32 joints": "talos_data/robots/talos_reduced.urdf",
    }
    rows = []
    for name, file in files.items():
        fingers = ["panda_finger_joint1", "panda_finger_joint2"] if "panda" in file else []
        tree = bc.read(ROBOTS / file, lock=fingers).frictionless().tree
        for i, method in enumerate(("crba", "aba")):
            totals = _total(regrouped(tree), method), _total(tree, method)
            rows.append(f"| {'' if i else name + ' '}| {method} | {totals[0]} | {totals[1]} |")
    page = ROOT / "docs/counting.md"
    text, table = page.read_text("utf-8"), "\n".join(rows)
    if UPDATE:
        page.write_text(re.sub(r"(?<=\|---\|---\|---\|---\|\n)(\| UR5.*\n)(\|.*\n)+", table + "\n", text), "utf-8")
    else:
        assert table in text, f"docs/counting.md should have (BELLCRANK_UPDATE=1 writes it):\n{table}"


def _total(tree: Tree, method: str) -> int:
    function = METHODS[method].function("forward_dynamics")
    shapes = {"q": (tree.nq,), "v": (tree.nv,), "tau": (tree.nv,)}
    return trace(method, lambda q, v, tau: {"a": function(tree, q, v, tau)}, shapes).count().arithmetic


def test_numbers_of_the_parallel_story_are_printed_on_it() -> None:
    """Decimals and large numbers in the prose of the parallel page are printed by its commands or by the papers."""
    page = (ROOT / "docs/parallel.md").read_text("utf-8")
    printed = "".join(body for _, body in FENCE.findall(page)) + str(published())
    prose = re.sub(r"\(.*?\)", "", FENCE.sub("", page))
    loose = [x for x in re.findall(r"(?<![\w.])(\d+\.\d+|\d{3,})(?![\w.]*\d)", prose) if x not in printed]
    assert [x for x in loose if x not in ("1989", "1990", "1991", "1992")] == []
