"""Escaping of names for generated text: IR, C, Python, LaTeX, HTML, JSON, spreadsheets, shells and file names.

A name comes from a file, whose author may be hostile: no name, unit or title reaches generated text except through a
function of this module.

    refused     reason why a text cannot be a name; checked for every mechanism, parameter, column and record
    comment     IR, C, Python, SymPy, LaTeX: one line of ASCII, harmless between any marks of a comment
    symbol      a word of LLVM IR, different for every name
    identifier  the nearest word that C, C++ and Python accept as a name
    source      such a word that a C file may have as its name
    docstring   between three double quotes of Python
    string      between double quotes of C or DOT
    latex       running text
    markdown    running text in which no marks have a meaning
    xml         text and attributes of SVG and HTML
    script      JSON inside <script>
    cell        of a spreadsheet, which executes text that begins as a formula
    shell       a word of a command to copy
    stem        the name of a file
    visible     a terminal, print() and messages
    mathtext    labels of matplotlib

The output is safe for any name, refused or not: parts created without the checks cannot inject code either.
"""

from __future__ import annotations

import hashlib
import keyword
import re
import shlex
import unicodedata
from html import escape

# Characters that end lines, control terminals, or reverse the direction of text.
_CONTROL_CHARACTERS = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
_DIRECTION_MARKS = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_FORBIDDEN = re.compile(f"[{_CONTROL_CHARACTERS}{_DIRECTION_MARKS}\ud800-\udfff]")

# Keywords of C, C++ and Python, and names that libm and the rest of the C library reserve.
_KEYWORDS = """alignas alignof and asm auto bitand bitor bool break case catch char class compl concept const constexpr
    continue decltype default delete do double else enum explicit export extern false float for friend goto if inline
    int long mutable namespace new noexcept not nullptr operator or private protected public register requires restrict
    return short signed sizeof static struct switch template this throw true try typedef typeid typename union unsigned
    using virtual void volatile while xor abs errno exit gamma infinity isnan main math nan pow signal time unix
    null shared linux offsetof memcpy ceil fmod modf frexp ldexp exp2 expm1 log2 log10 log1p logb ilogb cbrt hypot erf
    erfc lgamma tgamma round lround llround rint lrint llrint trunc nearbyint fdim fmax fmin fma copysign remainder
    remquo nextafter nexttoward scalbn scalbln sinh cosh asinh acosh atan atanh size_t ptrdiff_t wchar_t"""
LIBM_FUNCTIONS = ("fabs", "floor", "atan2", "sqrt", "sin", "cos", "tan", "asin", "acos", "exp", "log", "tanh")
# Forbidden file names: Windows has devices of these names, with any suffix.
WINDOWS_DEVICES = {"con", "prn", "aux", "nul", *(f"{x}{k}" for x in ("com", "lpt") for k in range(10))}
# Forbidden for C files, too: system headers, which include each other, and files of an FMU (exporting/fmu.py).
_HEADERS = """assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg
    stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string strings tgmath threads time uchar unistd wchar
    wctype features model instance fmi2 fmi3"""
RESERVED_FILE_NAMES = {*_HEADERS.split(), *WINDOWS_DEVICES}
RESERVED_WORDS = {*_KEYWORDS.split(), *LIBM_FUNCTIONS, *(f"{f}f" for f in LIBM_FUNCTIONS)}
RESERVED_WORDS |= {word.lower() for word in keyword.kwlist}


def name_problem(name: object) -> str:
    """Return the reason why `name` cannot be a name; empty if it can."""
    if not isinstance(name, str):  # users may pass any object as a name
        return f"{single_line(repr(name))[:60]} is of type {type(name).__name__}; expected a name, as text"
    forbidden = _FORBIDDEN.search(name)
    if forbidden is None:
        return ""
    c = forbidden[0]
    character_name = unicodedata.name(c, "a control character").lower()
    return (
        f"{quoted_name(name)} has {character_name} (U+{ord(c):04X}) at {forbidden.start()}; expected a name without "
        "line ends, control characters and marks that turn the direction of text. Rename it"
    )


def visible(text: str) -> str:
    """Return `text` for a terminal and for print(): control characters are escaped; lines stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def single_line(text: str) -> str:
    """Return `text` in one line, with control characters escaped."""
    return visible(text).replace("\n", r"\n")


def quoted_name(name: str, max_length: int = 60) -> str:
    """Return `name` for a message: in quotes, in one line, at most `max_length` characters."""
    text = single_line(name)
    return f'"{text if len(text) <= max_length else text[: max_length - 3] + "..."}"'


def comment(text: str) -> str:
    """Return `text` as one line of ASCII that neither ends nor begins a comment of any language.

    A C compiler reads ??/ as a backslash before anything else, and a backslash at the end of a line joins the next line
    to it: the result has no such three characters in a row.
    """
    plain = text.encode("unicode_escape").decode()
    plain = plain.replace("*/", "* /").replace("/*", "/ *")
    return re.sub(r"\?(?=\?)", "? ", plain)


def symbol(name: str) -> str:
    """Return `name` as part of a name in LLVM IR: letters, digits and _ stay, other bytes become .hh.

    Different names stay different. LLVM cuts names at 1024 characters, so a long one ends in its digest.
    """
    word = re.sub(r"[^0-9A-Za-z_]", lambda m: "".join(f".{b:02x}" for b in m[0].encode("utf-8", "surrogatepass")), name)
    if len(word) <= 200:
        return word
    return f"{word[:100]}..{hashlib.sha256(word.encode()).hexdigest()}"


def identifier(text: str) -> str:
    """Return the word nearest to `text` that C, C++ and Python accept as a name: "3R arm.bias" becomes x3R_arm_bias."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    word = re.sub("[^0-9A-Za-z]+", "_", plain).strip("_")
    word = word if word[:1].isalpha() else f"x{word}"
    return f"{word}_" if word.lower() in RESERVED_WORDS else word


def source(text: str) -> str:
    """Return the identifier of `text` for a C file: no name of a system header, and none of ours."""
    word = identifier(text)
    return f"{word}_" if word.lower() in RESERVED_FILE_NAMES else word


def docstring(text: str) -> str:
    """Return `text` for use between three double quotes; lines stay."""
    safe = "\n".join(part.encode("unicode_escape").decode() for part in text.split("\n"))
    return safe.replace('"', "'")


def string(text: str) -> str:
    """Return `text` for use between double quotes in DOT, which has no other escape."""
    return single_line(text).replace("\\", "\\\\").replace('"', '\\"')


def latex(text: str) -> str:
    """Return `text` as running text in which LaTeX finds no command and no mathematics."""
    plain = " ".join(text.split()).encode("ascii", "backslashreplace").decode()
    plain = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in plain)
    named = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return re.sub(r"[\\~^&%#_{}$]", lambda m: named.get(m[0], f"\\{m[0]}"), plain)


def markdown(text: str) -> str:
    """Return `text` as running text of Markdown without emphasis, links and HTML: every possible mark is escaped."""
    plain = " ".join(text.split()).encode("unicode_escape").decode()
    return re.sub(r"[!-/:-@\[-`{-~]", lambda m: f"\\{m[0]}", plain)


def xml(text: str) -> str:
    """Return `text` for text and attributes of SVG and HTML, with unprintable characters replaced."""
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))


def script(json: str) -> str:
    """Return `json` for use inside <script>: no name can end it, or begin an HTML comment in it."""
    for c in "<>&\u2028\u2029":
        json = json.replace(c, f"\\u{ord(c):04x}")
    return json


# Start of a formula in a spreadsheet: at the start of a cell, so also after any possible separator of cells.
_FORMULA = re.compile(r"(^|[,;\t|\"'])(\s*)([=+\-@])")


def cell(text: str) -> str:
    """Return `text` for a spreadsheet cell, with an apostrophe in front if it would be read as a formula."""
    return f"'{text}" if re.match(r"\s*[=+\-@]", text) else text


def cells(text: str) -> str:
    """Return a line of `text` that a spreadsheet will split into cells, with possible formulas escaped."""
    return _FORMULA.sub(r"\1\2'\3", text)


def json_cells(json: str) -> str:
    """Return `json` for such a line; it still parses to the same data."""
    texts = re.compile(r'"(?:[^"\\]|\\.)*"')
    return texts.sub(lambda m: _FORMULA.sub(lambda f: f"{f[1]}{f[2]}\\u{ord(f[3]):04x}", m[0]), json)


def shell(text: str) -> str:
    """Return `text` as one word of a shell command."""
    return shlex.quote(single_line(text))


def stem(text: str, max_bytes: int = 100) -> str:
    """Return `text` as a file name without suffix: word characters, no device name, at most `max_bytes` bytes."""
    word = re.sub(r"\W+", "_", text)
    word = f"{word}_" if word.lower() in WINDOWS_DEVICES else word
    return word if len(word.encode()) <= max_bytes else word.encode()[:max_bytes].decode(errors="ignore")


def member(name: str) -> str:
    """Return `name` for a file in an archive, with path separators and leading dots escaped in hexadecimal."""
    safe = re.sub(r"[%/\\:\x00]", lambda m: f"%{ord(m[0]):02X}", name)
    return f"%2E{safe[1:]}" if safe.startswith(".") else safe


def mathtext(text: str) -> str:
    """Return `text` as a matplotlib label: `$` is escaped, a leading `_` would hide it, and long texts are cut."""
    plain = single_line(text)
    plain = (plain if len(plain) <= 60 else f"{plain[:57]}...").replace("$", r"\$")
    return f"\N{ZERO WIDTH SPACE}{plain}" if plain.startswith("_") else plain
