"""From docstrings and names to Markdown: text stays text, whatever characters are in it."""

from __future__ import annotations

import ast
import re
import textwrap

CODE = re.compile(r"(`+[^`]+`+)")
ARGUMENT = re.compile(r"^(\w+(?:, \w+)*(?:=\S*)?): ")
ALIGNED = re.compile(r"\S {2,}\S|^ {4}", re.MULTILINE)


def escaped(text: str) -> str:
    """Text as it is, but for what is between backticks."""
    parts = CODE.split(text)
    return "".join(part if k % 2 else re.sub(r"([\\*_\[\]<>{}$#|])", r"\\\1", part) for k, part in enumerate(parts))


def fenced(text: str, language: str = "text") -> str:
    return f"```{language}\n{text}\n```"


def prose(docstring: str) -> str:
    """A docstring as Markdown: paragraphs, lists of arguments, and in monospace what was laid out by hand."""
    blocks = re.split(r"\n\s*\n", docstring.strip("\n"))
    return "\n\n".join(_block(block) for block in blocks if block.strip())


def _block(block: str) -> str:
    plain = textwrap.dedent(block)
    if plain.startswith(">>> "):
        return fenced(plain, "pycon")
    if _is_code(plain):
        return fenced(plain, "python")
    if ALIGNED.search(block):
        return fenced(plain)
    lines = plain.splitlines()
    if sum(bool(ARGUMENT.match(line)) for line in lines) >= 2:
        return _arguments(lines)
    return escaped(" ".join(line.strip() for line in lines))


def _is_code(text: str) -> bool:
    if not re.search(r"[=(@]", text):
        return False
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _arguments(lines: list[str]) -> str:
    items: list[list[str]] = []
    for line in lines:
        if ARGUMENT.match(line) or not items:
            items.append([])
        items[-1].append(line.strip())
    out = []
    for item in (" ".join(item) for item in items):
        found = ARGUMENT.match(item)
        out.append(f"* `{found[1]}`: {escaped(item[found.end() :])}" if found else f"{escaped(item)}\n")
    return "\n".join(out)
