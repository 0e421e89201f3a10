"""Damaged files: real files, changed as a keyboard, a tool or an attacker might change them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

NUMBERS = (
    *("nan", "inf", "-inf", "1e400", "-1e400", "-1", "0", "-0.0", "", "1e-320", "1e49", "-1e49", "1e50", "1e300"),
    *("1_000", "0x10", "\u0661\u0662", "1,5", "--1", "1e", "5.", "9" * 5000, "1" + "0" * 300, "1.5707963", "${x}"),
)
WORDS = (
    *("", " ", "a\u0300", "\u202eevil", "\ud7ff", "x" * 10_000, "../../etc/passwd", "'\"", "%s%n", "NaN", "true"),
    *("world", "base", "ground", "floating", "ball", "\\", "&#0;", "&#10;", "&lt;", "$(x)", "{}", "[[", "-"),
)
ENTITIES = "".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 10}">' for i in range(9))
DOCTYPES = (
    f'<!DOCTYPE r [<!ENTITY a0 "aaaa">{ENTITIES}]>',
    '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
    '<!DOCTYPE r SYSTEM "http://127.0.0.1:9/x.dtd">',
)
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
ATTRIBUTE = re.compile(r'([\w:]+)="([^"]*)"')
ELEMENT = re.compile(r"<(\w+)\b[^<>]*(?:/>|>[^<>]*</\1>)")
# Words with a special meaning in YAML and TOML: dates, tags, anchors, merges, depths.
VALUES = (
    *("2020-13-45", "!!int x", "!!float y", "!!timestamp 2020-13-45", "!!binary ?", "!!set {a}", "!!omap [a]", "~"),
    *("&a [*a, *a]", "*b", "{<<: *c}", "? [a]", "{[1]: 2}", "{{}: 2}", "!!python/object/apply:os.getcwd []", "|", ">"),
    *("[" * 5000, "{a: " * 2000, "- " * 3000, "[[1,2],[3]]", "9" * 5000, "0x" + "f" * 5000, "0b" + "1" * 9000),
    *("1979-05-27T07:32:00Z", "07:32:00", "12:30:45", "1e400", "inf", "nan", ".inf", "true", "null", '"""', "'''"),
    *("{}", "[]", "{a=1}", "{a={a={}}}", "[[link]]", "[link]", "[a.b.c]", '"\\u0000"', '"\\ud800"', "\x00", "\t", "#"),
    "a." * 3000 + "b = 1",
)
BOMB = "\n".join(["a0: &a0 [x, x]", *(f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]" for i in range(9))])

Change = Callable[[random.Random, str], str]


def _span(rng: random.Random, text: str) -> tuple[int, int]:
    at = rng.randrange(len(text) + 1)
    return at, min(len(text), at + int(rng.expovariate(0.05)))


def _cut(rng: random.Random, text: str) -> str:
    a, b = _span(rng, text)
    return text[:a] + text[b:]


def _repeated(rng: random.Random, text: str) -> str:
    a, b = _span(rng, text)
    return text[:b] + text[a:b] * rng.choice((1, 2, 300)) + text[b:]


def _moved(rng: random.Random, text: str) -> str:
    a, b = _span(rng, text)
    piece, rest = text[a:b], text[:a] + text[b:]
    at = rng.randrange(len(rest) + 1)
    return rest[:at] + piece + rest[at:]


def _noise(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + "".join(chr(rng.choice((0, 1, 9, 27, 34, 38, 60, 62, 91, 127, 0x202E, 0xFEFF, 0x1F600)))
                               for _ in range(rng.randint(1, 4))) + text[at:]  # fmt: skip


def _end(rng: random.Random, text: str) -> str:
    return text[: rng.randrange(len(text) + 1)]


def _exchanged(pattern: re.Pattern[str], by: Sequence[str], group: int = 0) -> Change:
    def change(rng: random.Random, text: str) -> str:
        found = list(pattern.finditer(text))
        if not found:
            return text
        a, b = rng.choice(found).span(group)
        return text[:a] + rng.choice(by) + text[b:]

    return change


def _swapped(rng: random.Random, text: str) -> str:
    """Put one attribute's value where another's should be: a name of another thing, a word for a number."""
    found = list(ATTRIBUTE.finditer(text))
    if len(found) < 2:
        return text
    one, other = rng.sample(found, 2)
    return text[: one.start(2)] + other[2] + text[one.end(2) :]


def _attribute_gone(rng: random.Random, text: str) -> str:
    return _exchanged(ATTRIBUTE, ("", 'name="x"', 'value="x" value="y"'))(rng, text)


def _element(rng: random.Random, text: str) -> str:
    found = list(ELEMENT.finditer(text))
    if not found:
        return text
    one, other = rng.choice(found), rng.choice(found)
    nested = "<a>" * 200 + one[0] + "</a>" * 200
    return text[: one.start()] + rng.choice(("", one[0] * 2, other[0], one[0] * 1000, nested)) + text[one.end() :]


def _doctype(rng: random.Random, text: str) -> str:
    at = max(text.find("<robot"), text.find("<mujoco"), 0)
    return text[:at] + rng.choice(DOCTYPES) + text[at:]


def _line(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    change = rng.randrange(4)
    if change == 0:
        del lines[i]
    elif change == 1:
        lines.insert(i, lines[j])
    elif change == 2:
        lines.insert(i, rng.choice(VALUES))
    else:
        lines[i] = "  " * rng.randint(1, 3) + lines[i]
    return "\n".join(lines)


def _bomb(rng: random.Random, text: str) -> str:
    return rng.choice((f"{BOMB}\nclosed_loop: *a9\n", f"{BOMB}\n{text}", "x: &x {<<: [*x, *x]}\n" + text))


TEXT: tuple[Change, ...] = (_cut, _repeated, _moved, _noise, _end, _exchanged(NUMBER, NUMBERS))
# Well-formed changes reach further into a reader than malformed ones, so most changes are well-formed.
XML: tuple[Change, ...] = (
    *TEXT, *[_exchanged(NUMBER, NUMBERS)] * 7, *[_exchanged(ATTRIBUTE, WORDS, 2)] * 2, *[_swapped] * 5,
    *[_attribute_gone] * 2, *[_element] * 4, _doctype,
)  # fmt: skip
PLAIN: tuple[Change, ...] = (
    *TEXT, *[_exchanged(NUMBER, NUMBERS)] * 6, _line, _line, _exchanged(re.compile(r"[\w.-]+"), WORDS), _bomb,
    *[_exchanged(re.compile(r"(?<=[=:] )[^\n]+"), VALUES)] * 4, _exchanged(re.compile(r"[\w.-]+"), VALUES),
)  # fmt: skip
ENCODINGS = ("utf-16", "utf-16-be", "utf-32", "latin-1", "utf-7", "utf-8-sig", "cp037")


def mutated(rng: random.Random, text: str, changes: Sequence[Change]) -> bytes:
    """Return the text after one to four changes, sometimes in another encoding or with invalid bytes."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        text = rng.choice(changes)(rng, text)[:2_000_000]
    if rng.random() < 0.04:
        return text.encode(rng.choice(ENCODINGS), "replace")
    data = bytearray(text, "utf-8", "replace")
    if data and rng.random() < 0.06:
        for _ in range(rng.randint(1, 5)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)
