"""Measure sentences of documentation pages: `python tests/readability.py [PAGE.md ...]`, all pages by default.

A sentence is a piece of running text outside code, tables, headings and formulas. Pages keep their sentences below
`MOST_WORDS` and their median at `MEDIAN_WORDS` or below, so that they can be read once.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
MOST_WORDS = 35
MEDIAN_WORDS = 16
ABBREVIATIONS = ("e.g", "i.e", "etc", "cf", "vs", "al", "No", "no", "Fig", "fig", "Eq", "eq", "pp", "p")
NO_ABBREVIATION = "".join(rf"(?<!\b{re.escape(name)})" for name in ABBREVIATIONS)
SENTENCE_END = re.compile(rf"{NO_ABBREVIATION}[.!?](?:[\"')*_]*)(?:\s+|$)")


def pages() -> list[Path]:
    """Return all pages of the documentation and of the repository's root."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def paragraphs(text: str) -> list[str]:
    """Return the running text of a page: paragraphs and list items, without code, tables, headings and markup."""
    text = re.sub(r"^---\n.*?\n---\n", "", text, flags=re.DOTALL)
    text = re.sub(r"^( *)(`{3,}|~{3,}).*?^ *\2 *$", "\n", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"\$\$.*?\$\$", "\n", text, flags=re.DOTALL)
    blocks: list[list[str]] = [[]]
    in_list = False
    for line in text.splitlines():
        bare = line.strip()
        item = re.match(r"(?:[-*+]|\d+\.)\s+", bare)
        if item:
            in_list = True
        elif not bare:
            blocks.append([])
            continue
        elif not line.startswith(" "):
            in_list = False
        code = line.startswith("    ") and not in_list
        if code or bare.startswith(("|", "#", "<", ":::", "![", ":", "=")):
            blocks.append([])
            continue
        if item:
            blocks.append([])
            bare = bare[item.end() :]
        blocks[-1].append(re.sub(r"^>\s?", "", bare))
    return [" ".join(block) for block in blocks if block]


def sentences(text: str) -> list[str]:
    """Return the sentences of a page; the text of a link counts, its address does not."""
    result = []
    for paragraph in paragraphs(text):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
        plain = re.sub(r"`[^`]*`", "code", plain)
        plain = re.sub(r"\$[^$]*\$", "formula", plain)
        result += [sentence.strip() for sentence in SENTENCE_END.split(plain) if sentence and sentence.strip()]
    return result


def words(sentence: str) -> int:
    """Count the words of a sentence."""
    return len(re.findall(r"[\w'’-]*[A-Za-z0-9][\w'’.,/-]*", sentence))


def faults(page: Path) -> list[str]:
    """Return the sentences of a page that are too long, and its median if that is too high."""
    parts = sentences(page.read_text(encoding="utf-8"))
    name = page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else str(page)
    result = [f"{name}: {words(s)} words: {s}" for s in parts if words(s) > MOST_WORDS]
    middle = median(map(words, parts)) if parts else 0
    if middle > MEDIAN_WORDS:
        result.append(f"{name}: the median sentence has {middle:g} words, at most {MEDIAN_WORDS}")
    return result


def main() -> None:
    """Print the faults of the pages given on the command line, or of all."""
    chosen = [Path(name).resolve() for name in sys.argv[1:]] or pages()
    report = [fault for page in chosen for fault in faults(page)]
    print(*report, sep="\n")
    print(f"{len(report)} faults on {len(chosen)} pages")
    sys.exit(bool(report))


if __name__ == "__main__":
    main()
