"""The tree of the site: the sections of tree.toml with their pages, checked against what is in docs/."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent
ROOT = DOCS.parent
FRONT = "index"  # docs/index.md, the first page


class SiteError(Exception):
    """Something on the site that does not fit together."""


@dataclass(frozen=True)
class Page:
    path: Path  # of the Markdown
    place: str  # on the site, without a suffix
    words: str  # what it is offered for

    @property
    def title(self) -> str:
        found = re.search(r"^# (.+)$", self.path.read_text("utf-8"), re.MULTILINE)
        if found is None:
            raise SiteError(f"{self.path.relative_to(ROOT)} has no title; expected a line that begins with '# '.")
        return found[1]


@dataclass(frozen=True)
class Section:
    folder: str
    title: str
    about: str
    generated: str
    pages: tuple[Page, ...]


def sections(listed: str | None = None) -> list[Section]:
    """As tree.toml has them (or this text instead); every page of docs/ is in one, and only in one."""
    table = tomllib.loads((HERE / "tree.toml").read_text("utf-8") if listed is None else listed)
    found = []
    for row in table["section"]:
        pages = tuple(_page(name, words) for name, words in row["pages"].items())
        found.append(Section(row["folder"], row["title"], row["about"], row.get("generated", ""), pages))
    _complete([page for section in found for page in section.pages])
    return found


def _page(name: str, words: str) -> Page:
    if name.startswith("@"):
        return Page(ROOT / name[1:], f"project/{Path(name[1:]).stem.lower().replace('_', '-')}", words)
    return Page(DOCS / f"{name}.md", name.replace("README", "index"), words)


def _complete(pages: list[Page]) -> None:
    paths = [page.path for page in pages]
    there = [path for path in sorted(DOCS.rglob("*.md")) if path != DOCS / f"{FRONT}.md"]
    told = [f"{_said(path)} is in no section" for path in there if path not in paths]
    told += [f"{_said(path)} is listed, but is not there" for path in paths if not path.exists()]
    told += [f"{_said(path)} is listed twice" for path in sorted(set(paths)) if paths.count(path) > 1]
    if told:
        how = 'A line in docs/site/tree.toml puts a page into the tree: "NAME" = "what people search for".'
        raise SiteError("\n".join([*told, how]))


def _said(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
