"""Rules of language for sources and pages: openings, private words, names of files, documented parameters."""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bellcrank as bc

# A first line stands alone: it begins with a verb or a noun, not with a clause.
OPENINGS = re.compile(
    r"(What|Of|Whoever|Nobody|The same|How|Whether|Where|That|Who|Whose|Those|Here|And|Which|In which|By what)\b"
)
COMMENT_OPENINGS = re.compile(r"(What (?!if\b)|Of |Whoever|Nobody|The same,)")
PRIVATE_WORDS = re.compile(
    r"\b(whoever|nobody|anew|abreast|is told|are told|knows no|knows how|says how|says what|says so|says no|"
    r"hangs in the air|up the stairs|made by hand|the house)\b",
    re.IGNORECASE,
)
# Words that are no nouns, but are tempting names of files.
NO_NOUNS = {
    *("about", "above", "across", "after", "ahead", "along", "among", "around", "before", "behind", "below"),
    *("beneath", "beside", "between", "beyond", "during", "elsewhere", "everywhere", "forward", "here", "inside"),
    *("into", "nowhere", "off", "on", "once", "onto", "out", "outside", "over", "somewhere", "then", "there"),
    *("through", "under", "until", "up", "upon", "upstairs", "within", "without"),
    *("alike", "alone", "abreast", "apart", "few", "many", "same", "straight", "together"),
    *("asked", "began", "bent", "born", "built", "done", "drawn", "driven", "found", "given", "gone", "held", "kept"),
    *("known", "left", "lost", "made", "met", "passed", "put", "run_out", "said", "seen", "set_up", "shown", "spent"),
    *("taken", "told", "thrown", "worn", "written", "following", "yielding", "settling"),
}
PARTICIPLE_NOUNS = {"fixed", "published", "speed", "seed", "need", "feed"}  # a joint; what the zoo has from papers


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of every docstring of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of every comment of a source."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#: ")


def wording_faults(text: str) -> list[str]:
    """Return openings and words of one source that are not plain English."""
    faults = []
    for line, doc in docstrings(ast.parse(text)):
        match = OPENINGS.match(doc) or PRIVATE_WORDS.search(doc)
        if match:
            faults.append(f"{line}: docstring with {match.group(0)!r}")
    for line, comment in comments(text):
        match = COMMENT_OPENINGS.match(comment) or PRIVATE_WORDS.search(comment)
        if match:
            faults.append(f"{line}: comment with {match.group(0)!r}")
    return faults


def is_noun(stem: str) -> bool:
    """Return whether a file's stem may name what is inside: no participle, preposition or adverb at its head."""
    words = stem.strip("_").split("_")
    if stem in PARTICIPLE_NOUNS or not words[-1]:
        return True
    participle = len(words) == 1 and words[0].endswith("ed")
    return not participle and stem not in NO_NOUNS and words[-1] not in NO_NOUNS


def unnamed_parameters(tree: ast.Module) -> list[str]:
    """Return `line: function: parameters` where the docstring of a function does not name its parameters."""
    faults = []
    for function in _open_functions(tree.body):
        arguments = function.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        names = [a.arg for a in every if a and a.arg not in {"self", "cls"} and not a.arg.startswith("_")]
        doc = ast.get_docstring(function) or ""
        missing = [name for name in names if not re.search(rf"\b{name}\b", doc)]
        if missing:
            faults.append(f"{function.lineno}: {function.name}: {', '.join(missing)}")
    return faults


def _open_functions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _open_functions(node.body)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            overload = any(getattr(d, "id", "") == "overload" for d in node.decorator_list)
            if not overload and not node.name.startswith("_"):
                yield node


def public_callables() -> Iterator[tuple[str, Any]]:
    """Yield the name and the object of everything that users call: functions, classes, their methods and properties."""
    seen: set[int] = set()
    for name, thing in _public_names():
        if id(thing) not in seen:
            seen.add(id(thing))
            yield name, thing


def _public_names() -> Iterator[tuple[str, Any]]:
    for name in bc.__all__:
        thing = getattr(bc, name)
        if inspect.ismodule(thing):
            yield from (
                (f"{name}.{each}", getattr(thing, each))
                for each in getattr(thing, "__all__", ())
                if callable(getattr(thing, each))
            )
        elif inspect.isclass(thing):
            yield name, thing
            for member, value in inspect.getmembers(thing):
                function = value.fget if isinstance(value, property) else inspect.unwrap(value)
                ours = (getattr(function, "__module__", "") or "").startswith("bellcrank")
                if not member.startswith("_") and callable(function) and ours:
                    yield f"{name}.{member}", value
        elif callable(thing):
            yield name, thing


def sources() -> list[Path]:
    """Return the Python files of the package."""
    return sorted(Path(bc.__file__).resolve().parent.rglob("*.py"))
