"""Lays out the site for Sphinx: python docs/site/stage.py build/site/pages

The pages of docs/ and of the repository with their links led to the site, the pages that are made from tables, the
texts of sources that pages link to, and a page for each section with its contents.
"""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import links
from tree import DOCS, FRONT, HERE, Section, SiteError, sections

PICTURES = (".svg", ".jpg", ".png", ".gif", ".webp")


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copytree(HERE / "static", folder / "_static")
    shutil.copy(HERE / "conf.py", folder)
    shutil.copy(HERE / "mathml.py", folder)
    for path in DOCS.rglob("*"):
        if path.suffix in PICTURES:
            _copy(path, folder / path.relative_to(DOCS))
    tree = sections()
    places = {page.path: page.place for section in tree for page in section.pages} | {DOCS / f"{FRONT}.md": FRONT}
    sources = links.Sources(folder / "_static")
    for path, place in places.items():
        text = links.rewritten(path.read_text("utf-8"), path, place, places, sources)
        _write(folder, place, text + _contents(tree) if place == FRONT else text)
    for section in tree:
        _section(section, folder)
    sources.write()


def _copy(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, to)


def _write(folder: Path, place: str, text: str) -> None:
    path = folder / f"{place}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _contents(tree: list[Section]) -> str:
    """The tree at the end of the first page."""
    return _toctree([f"{section.folder}/contents" for section in tree])


def _toctree(places: list[str]) -> str:
    return "\n".join(["", "```{toctree}", ":hidden:", "", *places, "```", ""])


def _section(section: Section, folder: Path) -> None:
    rows = [(page.title, page.words, page.place) for page in section.pages]
    if section.generated:
        made = importlib.import_module(section.generated).pages(folder / "_static")
        for name, (title, words, text) in made.items():
            place = f"{section.folder}/{name}"
            _write(folder, place, text)
            rows.append((title, words, place))
    offers = [f"* [{title}](/{place}.md): {words}" for title, words, place in rows]
    text = "\n".join([f"# {section.title}", "", section.about, "", *offers, ""])
    _write(folder, f"{section.folder}/contents", text + _toctree([f"/{place}" for _, _, place in rows]))


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]).resolve())
    except SiteError as error:
        sys.exit(str(error))
