"""From docstrings and names to Markdown: text stays text, whatever characters are in it."""

from __future__ import annotations

import ast
import re
import textwrap

CODE = re.compile(r"(`+[^`]+`+)")
ARGUMENT = re.compile(r"^(\w+(?:, \w+)*(?:=\S*)?): ")
ALIGNED = re.compile(r"\S {2,}\S|^ {4}", re.MULTILINE)
# Sections of a docstring in NumPy layout have titles underlined by hyphens. The entries of some sections are names with
# descriptions.
SECTION = re.compile(r"^([A-Z]\w+(?: [A-Z]\w+)*)\n-{3,}\n", re.MULTILINE)
RESULTS = ("Returns", "Yields")  # an entry may have a type only
ENTRIES = ("Parameters", "Other Parameters", "Attributes", *RESULTS, "Raises", "Warns")


def escaped(text: str) -> str:
    """Text as it is, but for what is between backticks."""
    parts = CODE.split(text)
    return "".join(part if k % 2 else re.sub(r"([\\*_\[\]<>{}$#|])", r"\\\1", part) for k, part in enumerate(parts))


def fenced(text: str, language: str = "text") -> str:
    return f"```{language}\n{text}\n```"


def prose(docstring: str) -> str:
    """Return a docstring as Markdown.

    Paragraphs, argument lists and NumPy sections become markup; text that was laid out by hand stays monospaced.
    """
    first, *sections = SECTION.split(docstring.strip("\n"))
    parts = [_blocks(first)]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        parts += [f"**{title}**", _entries(title, body) if title in ENTRIES else _blocks(body)]
    return "\n\n".join(part for part in parts if part)


def _blocks(text: str) -> str:
    blocks = re.split(r"\n\s*\n", text.strip("\n"))
    return "\n\n".join(_block(block) for block in blocks if block.strip() and block.strip() != "::")


def _entries(title: str, body: str) -> str:
    """Return the entries of a NumPy section as a definition list: names with types, and their descriptions."""
    out = []
    for entry in re.split(r"\n+(?=\S)", body.strip("\n")):
        head, _, description = entry.partition("\n")
        term = _term(head, title not in RESULTS)
        text = _blocks(textwrap.dedent(description))
        out.append(f"{term}\n: {textwrap.indent(text, '  ').lstrip()}" if text else f"{term}\n: \u00a0")
    return "\n\n".join(out)


def _term(head: str, named: bool) -> str:
    """Return the first line of an entry: code for names, text for types; without a colon, a name if `named`."""
    names, colon, kind = head.partition(" : ")
    if not colon and not named:
        return escaped(head)
    code = ", ".join(f"`{name}`" for name in names.split(", "))
    return f"{code}: {escaped(kind)}" if colon else code


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
