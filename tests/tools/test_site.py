"""The documentation site: every page is in its tree, links lead to it, and generated pages are complete.

The build itself (`make docs`, warnings as errors, every link followed) is a long test.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bellcrank as bc
import chromium
from bellcrank.dynamics import METHODS, QUANTITIES
from bellcrank.quoting import name_problem
from prose import ROOT

SITE = ROOT / "docs/site"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return the files of docs/site by name."""
    monkeypatch.syspath_prepend(str(SITE))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(SITE) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


def test_every_page_is_in_the_tree(site: Any) -> None:
    sections = site("tree").sections()
    assert [section.folder for section in sections][:3] == ["start", "howto", "explained"]
    for section in sections:
        for page in section.pages:
            assert page.title
            assert page.words, f"{page.path.name} has no words that somebody would search for"


def test_unlisted_page_is_named(site: Any) -> None:
    tree = site("tree")
    listed = (SITE / "tree.toml").read_text("utf-8")
    line = '"loops" = "closed loops, four-bars, parallel robots, redundant constraints"\n'
    assert line in listed
    with pytest.raises(tree.SiteError, match=r"docs/loops\.md is in no section\n.*docs/site/tree\.toml"):
        tree.sections(listed.replace(line, ""))
    with pytest.raises(tree.SiteError, match=r"docs/nothing\.md is listed, but is not there"):
        tree.sections(listed.replace('"loops" =', '"loops" = ""\n"nothing" ='))
    with pytest.raises(tree.SiteError, match=r"docs/loops\.md is listed twice"):
        tree.sections(
            listed.replace('[section.pages]\n"start/install"', '[section.pages]\n"loops" = "x"\n"start/install"')
        )


def test_links_lead_to_the_site(site: Any, tmp_path: Path) -> None:
    pytest.importorskip("pygments")
    links, docs = site("links"), ROOT / "docs"
    sources = links.Sources(tmp_path / "_static")
    places = {docs / "loops.md": "loops", ROOT / "ARCHITECTURE.md": "project/architecture"}
    text = "[a](../loops.md#x) [b](../../ARCHITECTURE.md) [`c`](../../src/bellcrank/model/kind.py) [d](https://x.org)"
    text += "\n```python\nx[0](y)\n```\n![e](../figures/digging.svg)"
    found = links.rewritten(text, docs / "start/arm.md", "start/arm", places, sources)
    assert "[a](../loops.md#x) [b](../project/architecture.md)" in found
    assert '<a href="../_static/source/src/bellcrank/model/kind.py.html">`c`</a> [d](https://x.org)' in found
    assert "x[0](y)" in found
    assert "![e](../figures/digging.svg)" in found
    sources.write()
    assert "class" in (tmp_path / "_static/source/src/bellcrank/model/kind.py.html").read_text("utf-8")
    with pytest.raises(site("tree").SiteError, match=r"links to nowhere\.md, which is not there"):
        links.rewritten("[a](nowhere.md)", docs / "start/arm.md", "start/arm", places, sources)


def test_docstrings_stay_text(site: Any) -> None:
    prose = site("markup").prose
    assert prose("A *b* of x_1 <y>, `as *is*`.") == r"A \*b\* of x\_1 \<y\>, `as *is*`."
    assert prose("What.\n\n    bc.read(x)\n") == "What.\n\n```python\nbc.read(x)\n```"
    assert prose("a: one\nb: two\n  lines") == "* `a`: one\n* `b`: two lines"
    sections = "Do.\n\nParameters\n----------\na, *b\n    One\n    two.\n\nReturns\n-------\nlist of str\n    c : d.\n"
    assert prose(sections) == "Do.\n\n**Parameters**\n\n`a`, `*b`\n: One two.\n\n**Returns**\n\nlist of str\n: c : d."
    assert prose("X_i   moves    c_ij   axis") == "```text\nX_i   moves    c_ij   axis\n```"


def test_the_reference_has_every_public_name_and_quantity(site: Any, tmp_path: Path) -> None:
    pages = site("api").pages(tmp_path)
    text = "\n".join(page for _, _, page in pages.values())
    found = set(re.findall(r"\{py:\w+\} bellcrank\.(\w+)", text)) | set(re.findall(r"^## (\w+)$", text, re.MULTILINE))
    assert set(bc.__all__) - {"__version__"} <= found
    quantities = re.findall(r"\{py:method\} bellcrank\.Mechanism\.(\w+)\(", pages["quantities"][2])
    assert [name for name in QUANTITIES if name in quantities] == quantities != []
    assert "## bellcrank show" in pages["commands"][2]


def test_the_table_of_methods_is_complete(site: Any) -> None:
    rows = [line for line in site("methods")._table().splitlines() if line.startswith("| [`")]
    assert [row.split("`")[1] for row in rows] == list(METHODS)
    for row, method in zip(rows, METHODS.values(), strict=True):
        assert ", ".join(method.solves) in row
        assert method.topology in row
        assert method.citation.rpartition(", ")[2].rstrip(".")[-4:] in row


@pytest.mark.parametrize("name", ["crba", "closure"])
def test_a_page_of_a_method_has_its_equations(site: Any, name: str) -> None:
    text = site("methods")._page(METHODS[name])
    assert METHODS[name].citation.split(".")[-2].strip() in text.replace("\\", "")
    assert r"\begin{align*}" in text
    assert re.search(r"\| \w+ \| \d+ \| \d+ \|", text)


def test_links_of_a_site_are_followed(site: Any, tmp_path: Path) -> None:
    trouble = site("follow").trouble
    (tmp_path / "index.html").write_text('<a href="a.html#here">a</a><img src="p.png">')
    (tmp_path / "a.html").write_text('<p id="there"><script src="https://x.org/y.js"></script>')
    (tmp_path / "b.html").write_text("<p>")
    assert sorted(trouble(tmp_path)) == [
        "a.html fetches https://x.org/y.js",
        "b.html cannot be reached from the first page",
        "index.html: a.html#here leads nowhere",
        "index.html: p.png leads nowhere",
    ]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site with the command of `make docs`."""
    for name in ("sphinx", "furo", "myst_parser", "latex2mathml", "sphinx_copybutton"):
        pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "pages", "html"]
    for command in (
        [sys.executable, SITE / "stage.py", "pages"],
        build,
        [sys.executable, SITE / "follow.py", "html"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-6000:]}"
    return folder / "html"


def test_the_site_builds(built: Path) -> None:
    assert (built / "searchindex.js").stat().st_size > 100_000
    assert "<math" in (built / "methods/aba.html").read_text("utf-8")


def test_the_site_on_a_phone_in_the_dark_without_a_network(built: Path) -> None:
    look(built)


def look(built: Path) -> None:
    """No page is wider than the screen, nothing is requested from other servers, and the search finds pages."""
    with chromium.playing() as p, chromium.launched(p) as browser, chromium.opening(browser) as opened:
        for name in ("index", "methods/aba", "reference/quantities", "terminal", "speed"):
            page = opened(built / f"{name}.html", 390, 844, "dark")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
            ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert sum(map(int, re.findall(r"\d+", ground)[:3])) < 200, f"{name} is not dark: {ground}"
        page.goto((built / "search.html").as_uri() + "?q=LQR")
        page.wait_for_selector("#search-results li a")
        assert "Linearise, balance, design" in page.locator("#search-results li a").all_inner_texts()


# -- other generated files


def test_version_changelog_and_citation_agree() -> None:
    version = re.escape(bc.__version__)
    assert re.search(rf"^version: {version}$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    assert re.search(rf"^## {version}$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)


def test_workflows_and_forms_are_yaml() -> None:
    yaml = pytest.importorskip("yaml")
    files = sorted((ROOT / ".github").rglob("*.yml"))
    assert len(files) >= 5
    for path in files:
        found = yaml.safe_load(path.read_text("utf-8"))
        assert isinstance(found, dict), path
        assert not any(name_problem(str(key)) for key in found)
    tested = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text("utf-8"))["jobs"]["core"]["strategy"][
        "matrix"
    ]
    assert {"3.11", "3.12", "3.13", "3.14"} <= set(tested["python"])
    assert {name.partition("-")[0] for name in tested["os"]} == {"ubuntu", "macos", "windows"}
