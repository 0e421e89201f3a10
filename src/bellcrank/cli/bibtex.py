"""Conversion of a printed reference to BibTeX.

Two forms are parsed:

    A. Author, B. Author. Title. Journal 102(2), 69-76, 1980.
    A. Author and B. Author, Title, Journal 7(5), 1988, pp. 32-47

Anything else becomes a note.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

PUBLISHERS = ("Springer",)  # publishers of books; any other place is a journal
_AUTHOR = r"(?:[A-Z]\.[ -]?)+[^\W\d_][\w'-]*"
_AUTHORS = rf"(?P<authors>{_AUTHOR}(?:(?:, | and |, and ){_AUTHOR})*)"
_FORMS = (
    re.compile(rf"{_AUTHORS}\. (?P<title>[^.]+)\. (?P<place>.+?)(?:, (?P<pages>\d+-\d+))?, (?P<year>\d{{4}})\.?"),
    re.compile(rf"{_AUTHORS}, (?P<title>[^,]+), (?P<place>.+), (?P<year>\d{{4}})(?:, pp\. (?P<pages>\d+-\d+))?\.?"),
)
_VOLUME = re.compile(r"(?P<journal>.+?) (?P<volume>\d+) ?(?:\((?P<number>[\d-]+)\))?")


def bibtex(citation: str) -> str:
    """Return `citation` as @article, @phdthesis or @book; as @misc where it has another form."""
    parsed = next((match for form in _FORMS if (match := form.fullmatch(citation))), None)
    if parsed is None:
        return _entry("misc", "reference", {"note": citation})
    authors = re.split(r", and | and |, ", parsed["authors"])
    key = re.sub(r"\W", "", authors[0].rpartition(" ")[2]).lower() + parsed["year"]
    fields: dict[str, str | None] = {"author": " and ".join(authors), "title": parsed["title"], "year": parsed["year"]}
    place, pages = parsed["place"], (parsed["pages"] or "").replace("-", "--")
    if place.startswith("PhD thesis, "):
        return _entry("phdthesis", key, fields | {"school": place.removeprefix("PhD thesis, ")})
    if place in PUBLISHERS:
        return _entry("book", key, fields | {"publisher": place})
    volume = _VOLUME.fullmatch(place)
    return _entry("article", key, fields | (volume.groupdict() if volume else {"journal": place}) | {"pages": pages})


def _entry(kind: str, key: str, fields: Mapping[str, str | None]) -> str:
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])
