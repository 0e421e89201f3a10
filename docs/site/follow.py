"""Follows every link of the site: python docs/site/follow.py build/site/html

A link leads to a file of the site and to a place in it; every page can be reached from the first; nothing is fetched
from elsewhere (to go elsewhere by a click is another matter).
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {"img": "src", "script": "src", "iframe": "src", "link": "href", "source": "src"}
APART = ("genindex", "search", "py-modindex")  # made by Sphinx, and reached by its own buttons


class Page(HTMLParser):
    """The links of a page, its places, and what it fetches."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.places: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places.add(given.get("id", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if given.get(FETCHED.get(tag, ""), ""):
            self.fetched.append(given[FETCHED[tag]])


def trouble(root: Path) -> list[str]:
    pages = {path: Page(path.read_text("utf-8")) for path in root.rglob("*.html") if "_static" not in path.parts}
    told, reached, to_see = [], set(), [root / "index.html"]
    for path, page in pages.items():
        told += [f"{path.relative_to(root)} fetches {x}" for x in page.fetched if urlsplit(x).netloc]
        wanted = {x for x in (*page.links, *page.fetched) if not urlsplit(x).scheme and not urlsplit(x).netloc}
        told += [f"{path.relative_to(root)}: {x} leads nowhere" for x in sorted(wanted) if not _leads(x, path, pages)]
    while to_see:
        path = to_see.pop()
        if path in reached or path not in pages:
            continue
        reached.add(path)
        to_see += [_file(x, path) for x in pages[path].links if not urlsplit(x).scheme]
    lost = sorted(path for path in pages if path not in reached and path.stem not in APART)
    return told + [f"{path.relative_to(root)} cannot be reached from the first page" for path in lost]


def _file(link: str, path: Path) -> Path:
    name = unquote(urlsplit(link).path)
    return (path.parent / name).resolve() if name else path


def _leads(link: str, path: Path, pages: dict[Path, Page]) -> bool:
    to, place = _file(link, path), unquote(urlsplit(link).fragment)
    return to.exists() and (to not in pages or place in pages[to].places)


if __name__ == "__main__":
    found = trouble(Path(sys.argv[1]).resolve())
    print("\n".join(found) or "every link leads somewhere, and every page can be reached")
    sys.exit(bool(found))
