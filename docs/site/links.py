"""Links of a page as the site has them.

The pages are written for two readers: people who look at the files where they lie, and the site. Links lead to files.
On the site a link to a page leads to that page, and one to a source leads to a page with its text, so that everything
is there without a network.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path, PurePosixPath

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from tree import DOCS, ROOT, SiteError

FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
ELSEWHERE = re.compile(r"[a-z]+:|#")
SOURCES = "source"  # the folder with the text of files
LISTED = (".py", ".toml", ".cpp", ".c", ".js", ".ts")  # of a folder


class Sources:
    """The files that pages link to and that are no pages: each gets one, or of a folder a list.

    They are written as they are, beside the site, and not by Sphinx: hundreds of them with the whole tree in the margin
    would take longer than all the rest, and a search would find code where a page was meant.
    """

    def __init__(self, static: Path) -> None:
        self.static = static
        self.paths: dict[Path, str] = {}

    def place(self, path: Path) -> str:
        """Return the address of the page of a file, relative to the root of the site."""
        name = path.relative_to(ROOT).as_posix().lstrip(".")  # Sphinx leaves out what is hidden
        return self.paths.setdefault(path, f"_static/{SOURCES}/{name}.html")

    def write(self) -> None:
        """A list of a folder leads to more of them."""
        done: set[Path] = set()
        while left := [path for path in self.paths if path not in done]:
            for path in left:
                done.add(path)
                to = self.static.parent / self.place(path)
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_text(self._page(path), "utf-8")

    def _page(self, path: Path) -> str:
        name = path.relative_to(ROOT).as_posix()
        head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(name)}</title>'
        head += '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="'
        head += f'{os.path.relpath("_static/source.css", Path(self.place(path)).parent)}"><h1>{escape(name)}</h1>'
        if path.is_dir():
            inside = [p for p in sorted(path.iterdir()) if not p.name.startswith(("_", ".")) or p.name == "__init__.py"]
            here = Path(self.place(path)).parent
            items = [(p.name, os.path.relpath(self.place(p), here)) for p in inside if p.is_dir() or p.suffix in LISTED]
            return head + "<ul>" + "".join(f'<li><a href="{escape(to)}">{escape(n)}</a>' for n, to in items) + "</ul>"
        text = path.read_text("utf-8")
        try:
            lexer = get_lexer_for_filename(path.name)
        except ClassNotFound:
            lexer = TextLexer()
        return head + str(highlight(text, lexer, HtmlFormatter()))


def rewritten(text: str, path: Path, place: str, places: Mapping[Path, str], sources: Sources) -> str:
    """A page whose links lead to places of the site; what stands in code is left alone."""

    def link(found: re.Match[str]) -> str:
        mark, words, target = found.groups()
        if ELSEWHERE.match(target):
            return found[0]
        wanted, anchor = _wanted(target, path)
        here = PurePosixPath(place).parent
        if mark:
            return f"![{words}]({os.path.relpath(wanted.relative_to(DOCS).as_posix(), here)})"
        if wanted in places:
            return f"[{words}]({os.path.relpath(places[wanted], here)}.md{anchor})"
        return f'<a href="{escape(os.path.relpath(sources.place(wanted), here))}">{words}</a>'

    return outside_code(text, lambda part: LINK.sub(link, part))


def outside_code(text: str, change: Callable[[str], str]) -> str:
    parts = FENCED.split(text)
    return "".join(part if k % 2 else change(part) for k, part in enumerate(parts))


def _wanted(target: str, path: Path) -> tuple[Path, str]:
    """The file that a link means, and the place in it."""
    name, mark, anchor = target.partition("#")
    wanted = Path(os.path.normpath(path.parent / name))
    if not wanted.exists() or not wanted.is_relative_to(ROOT):
        raise SiteError(f"{path.relative_to(ROOT)} links to {target}, which is not there.")
    return wanted, mark + anchor
