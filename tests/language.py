"""Rules of language for sources and pages: openings, private words, names of files, parameters, dead names."""

from __future__ import annotations

import abc
import ast
import builtins
import enum
import inspect
import io
import keyword
import re
import tokenize
import typing
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

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
# Words that do not say what a variable holds, and the fields of public classes that have them.
NO_CONTENTS = {"asked", "at", "by", "found", "kept", "made", "of", "on", "said", "told"}
PUBLIC_FIELDS = {"equation_analysis.py": "kept", "linearisation.py": "at", "least_squares.py": "at"}
# A test is named by subject, condition and result (`test_zero_pivot_ends_the_run`), not by a clause or a story.
TEST_OPENINGS = re.compile(
    r"test_(what|of|who|whom|whose|whoever|nobody|it|its|they|where|whether|how|that|those|the_same)_"
)
TEST_WORDS = re.compile(
    r"_(says?|said|tells?|told|asks?|asked|knows?|anew|alike|abreast|nobody|anybody|everybody|whoever|wherever|"
    r"whatever|strangers?|ones_own|what)(?=_|$)"
)
PARTICIPLE_NOUNS = {"fixed", "published", "quadruped", "speed", "seed", "need", "feed"}  # a joint; zoo data of papers


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


def names_of_faulty_tests(tree: ast.Module) -> list[str]:
    """Return `line: name` for the test functions of a module with an opening or a word that is not plain English."""
    return [
        f"{node.lineno}: {node.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and (TEST_OPENINGS.match(node.name + "_") or TEST_WORDS.search(node.name))
    ]


def is_noun(stem: str) -> bool:
    """Return whether a file's stem may name what is inside: no participle, preposition or adverb at its head."""
    words = stem.strip("_").split("_")
    if stem in PARTICIPLE_NOUNS or not words[-1]:
        return True
    participle = len(words) == 1 and words[0].endswith("ed")
    return not participle and stem not in NO_NOUNS and words[-1] not in NO_NOUNS


def vague_names(tree: ast.Module) -> list[str]:
    """Return `line: name` for variables, attributes and parameters whose name does not say what they hold.

    Parameters of public functions are exempt with all their uses, as callers may write their names; so is `by` beside
    `bx`, a component of a vector.
    """
    public = {id(function) for function in _open_functions(tree.body)}
    return [f"{line}: {name}" for line, name in sorted(set(_vague_names(tree, public, set())))]


def _vague_names(node: ast.AST, public: set[int], exempt: set[str]) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of everything that is bound in `node`, except for the names that are `exempt`."""
    for child in ast.iter_child_nodes(node):
        names = exempt
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if id(child) in public:
                    names = exempt | {x.arg for x in ast.walk(child.args) if isinstance(x, ast.arg)}
                if "bx" in {x.id for x in ast.walk(child) if isinstance(x, ast.Name)}:
                    names = names | {"by"}
            case (
                ast.arg(arg=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.ExceptHandler(name=str(name))
            ) if name.strip("_") in NO_CONTENTS - exempt:
                yield child.lineno, name
        yield from _vague_names(child, public, names)


def unnamed_parameters(tree: ast.Module) -> list[str]:
    """Return `line: function: parameters` where the docstring of a function does not name its parameters.

    Options of the command line have help texts instead.
    """
    faults = []
    for function in _open_functions(tree.body):
        arguments = function.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        own = [a for a in every if a and a.arg not in {"self", "cls"} and not _is_option(a.annotation)]
        names = [a.arg for a in own if not a.arg.startswith("_")]
        doc = ast.get_docstring(function) or ""
        missing = [name for name in names if not re.search(rf"\b{name}\b", doc)]
        if missing:
            faults.append(f"{function.lineno}: {function.name}: {', '.join(missing)}")
    return faults


def _is_option(annotation: ast.expr | None) -> bool:
    """Return whether a parameter is an option of a command: made by typer or cli/options.py, or called as JsonOpt."""
    nodes = list(ast.walk(annotation)) if annotation else []
    names = [getattr(x, "attr", getattr(x, "id", "")) for x in nodes]
    return any(map(_makes_option, nodes)) or any(x.endswith(("Opt", "Arg")) or x in OPTION_MAKERS for x in names)


OPTION_MAKERS = ("option", "argument")  # of cli/options.py; their help text is not optional


def _makes_option(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="typer"), attr="Option" | "Argument")):
            return True
    return False


def options_without_help(tree: ast.Module) -> list[int]:
    """Return the lines of calls of typer.Option and typer.Argument that have no help text."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _makes_option(node)]
    return [call.lineno for call in calls if not any(k.arg == "help" for k in call.keywords)]


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


def other_sources(root: Path) -> list[Path]:
    """Return the Python files of tests, benchmarks, documentation and examples below the folder `root`."""
    return sorted(path for folder in ("tests", "bench", "docs", "examples") for path in (root / folder).rglob("*.py"))


# -- names in prose: a rename of code that forgets a docstring leaves a name that nothing has

STRING = re.compile(r"\"[^\"\n]*\"|(?<!\w)'[^'\n]*'")
QUOTED = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"(bellcrank|python|make|pip|git) |@|%|[\w-]+: ")  # no Python: a command, LLVM, or a header
WORD = re.compile(r"(?<![\w$%@}-])[A-Za-z_]\w*")
CONSTANT = re.compile(r"(?<![\w$.-])[A-Z][A-Z0-9]+(?:_[A-Z][A-Z0-9]*)+(?![\w*])")
SNAKE = re.compile(r"(?<![\w$@%.*-])[a-z]{3,}(?:_[a-z]{3,})+(?![\w*.])")
FILE = re.compile(r"(?<![\w*<.])((?:[\w-]+/)*[\w-]+\.(?:py|md))\b")
MEMBER = re.compile(r"(?<![\w./$@%-])([A-Za-z_]\w*)\.([A-Za-z_]\w*)(?![\w/])")
TYPE = re.compile(r"(?<![\w.])[A-Z]\w+")
FIELDS = re.compile(r"(?:^|[.;]\s+|\n\s*\n\s*)(_?[a-z]\w*(?:(?:, and |, | and )_?[a-z]\w*)*): ")
SECTIONS = {"Parameters", "Attributes", "Returns", "Yields", "Raises"}
SUFFIXES = {"py", "pyi", "md", "toml", "json", "js", "txt", "html", "xml", "h", "c"}
CAMEL = re.compile(r"(?<![\w./$-])(?:[A-Z][a-z]+){2,}(?![\w*])")
# Names of other projects, of generated code and of examples.
OTHER_NAMES = {
    *("METH_FASTCALL", "METH_KEYWORDS", "NPY_ARRAY_ALIGNED", "NPY_ARRAY_C_CONTIGUOUS", "NPY_ARRAY_WRITEABLE"),
    *("MCL_CURRENT", "MCL_ONFAULT", "UJOINT_XY", "PyObject", "PyArrayObject", "_ARRAY_API", "array_like", "bc", "re"),
    *("CartPole", "CuPy", "DefaultExperiment", "JavaScript", "LuGre", "McKyes", "MuJoCo", "NaNs", "NumPy", "PyTorch"),
    *("TypeScript", "UnitDefinitions", "WebAssembly"),
    *("BELLCRANK_UPDATE", "MECHANISM_QUANTITY_MACHINE", "IA_boom_3", "arm_forward_dynamics"),
    *("abort", "out_stride", "per_run", "per_element"),
}
NAMED_TUPLE = set(dir(tuple)) | {"_replace", "_asdict", "_fields"}
EXAMPLE_FILES = {"FILE.py", "crane.py", "model.py"}
OTHER_PACKAGES = {"jax", "torch"}  # of which a module here has the name


@dataclass
class Names:
    """Names that prose may use: those that modules of the package share, and all names in the same source."""

    package: set[str] = field(default_factory=set)
    modules: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # stem -> names in these modules
    sources: dict[int, set[str]] = field(default_factory=dict)  # id of a source's tree -> its names
    files: set[str] = field(default_factory=set)
    # Members and bases of the package's classes, by their names; several classes of one name are joined.
    classes: dict[str, tuple[set[str], set[str]]] = field(default_factory=dict)

    def members(self, name: str) -> set[str] | None:
        """Return the members of the class `name` and of its bases, or None if some are defined elsewhere."""
        if name not in self.classes:
            thing = next((x for x in map(vars, (abc, builtins, enum, typing)) if name in x), {}).get(name)
            return set(dir(thing)) | NAMED_TUPLE if thing is not None else None
        members, bases = self.classes[name]
        inherited = [self.members(base) for base in bases - {name}]
        return None if any(x is None for x in inherited) else members.union(*(x for x in inherited if x))


def _identifiers(tree: ast.AST) -> Iterator[str]:
    """Yield every identifier of a source, and the words of its strings other than docstrings."""
    skipped = set()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant() as doc):
                skipped.add(id(doc))
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=asname):
                yield from (*name.split("."), asname or name)
            case ast.ImportFrom(module=str(module)):
                yield from module.split(".")
            case ast.Constant(value=str(text)) if id(node) not in skipped:
                yield from re.findall(r"[A-Za-z_]\w*", text)


def _members(tree: ast.Module) -> Iterator[str]:
    """Yield the names that other modules may mean: functions, classes, parameters, attributes, module variables."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
        if isinstance(node, ast.Module | ast.ClassDef):
            for statement in node.body:
                targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
                yield from (x.id for t in targets if t for x in ast.walk(t) if isinstance(x, ast.Name))


def _class_members(node: ast.ClassDef) -> Iterator[str]:
    """Yield the names of methods, fields and attributes that a class defines itself."""
    for each in ast.walk(node):
        match each:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.Call(func=ast.Attribute(attr="update" | "__setattr__"), keywords=keywords):
                yield from (k.arg for k in keywords if k.arg)
    for statement in node.body:
        targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
        yield from (x.id for t in targets if t for x in ast.walk(t) if isinstance(x, ast.Name))


def _base_names(node: ast.ClassDef) -> Iterator[str]:
    """Yield the names of the bases of a class, without their parameters."""
    for base in node.bases:
        base = base.value if isinstance(base, ast.Subscript) else base
        yield base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")


def package_names(trees: dict[Path, ast.Module], root: Path) -> Names:
    """Return the names of the package's sources `trees`, and the files of the repository `root`."""
    names = Names(package={*dir(builtins), *dir(type), *dir(np), *keyword.kwlist, *bc.__all__, *dir(bc), *OTHER_NAMES})
    for path, tree in trees.items():
        names.package.update(_members(tree))
        names.package.update(path.with_suffix("").parts[-4:])
        names.sources[id(tree)] = set(_identifiers(tree))
        names.modules[path.stem] |= names.sources[id(tree)]
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                members, bases = names.classes.setdefault(node.name, (set(dir(object)), set()))
                members.update(_class_members(node))
                bases.update(_base_names(node))
    for folder in ("src", "tests", "bench", "docs", "examples"):
        for path in (root / folder).rglob("*.*"):
            if path.suffix in {".py", ".md"}:
                names.files.add("/" + path.relative_to(root).as_posix())
                names.package.add(path.stem)
    names.files.update(f"/{path.name}" for path in root.glob("*.md"))
    return names


def dead_names(text: str, tree: ast.Module, names: Names) -> list[str]:
    """Return `line: name` for names in docstrings and comments of a source, `text` and `tree`, that nothing has."""
    known = names.package | (names.sources.get(id(tree)) or set(_identifiers(tree)))
    faults = [f"{line}: {name}" for line, comment in comments(text) for name in _dead_words(comment, known, names)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            doc = ast.get_docstring(node) or ""
            dead = [*_dead_words(doc, known, names), *(name for name in _section_types(doc) if name not in known)]
            dead += [] if isinstance(node, ast.Module) else _dead_fields(node, doc)
            faults += [f"{getattr(node, 'lineno', 1)}: {name}" for name in dead]
    return faults


def _dead_words(prose: str, known: set[str], names: Names) -> Iterator[str]:
    prose = re.sub(r"https?://\S+", "", prose)
    for code in QUOTED.findall(prose):
        if not COMMAND.match(code):
            yield from (f"`{word}`" for word in WORD.findall(STRING.sub("", code)) if word not in known)
            yield from _dead_members(STRING.sub("", code), known, names)
    prose = STRING.sub("", QUOTED.sub("", prose))
    yield from (word for pattern in (CONSTANT, CAMEL, SNAKE) for word in pattern.findall(prose) if word not in known)
    for file in set(FILE.findall(prose)) - EXAMPLE_FILES:
        if not any(each.endswith("/" + file) for each in names.files):
            yield file
    yield from _dead_members(prose, known, names)


def _dead_members(prose: str, known: set[str], names: Names) -> Iterator[str]:
    for owner, member in MEMBER.findall(prose):
        is_class = owner in known and re.search("[A-Z].*[a-z]", owner)
        is_module = owner in names.modules and owner not in OTHER_PACKAGES and member not in names.modules[owner]
        # A class of the package has this member only if it or one of its bases defines it.
        defined = names.members(owner) if is_class and owner in names.classes else None
        if (is_class or is_module) and member not in SUFFIXES | (known if defined is None else defined):
            yield f"{owner}.{member}"


def _section_types(doc: str) -> Iterator[str]:
    """Yield the capitalised names of types in the sections of a docstring."""
    section, lines = "", doc.splitlines()
    for line, following in pairwise(lines):
        if re.fullmatch(r"-{3,}", following.strip()):
            section = line.strip()
        elif section in SECTIONS and line and not line.startswith((" ", "-")):
            _, colon, kind = line.partition(" : ")
            if colon or section not in {"Parameters", "Attributes"}:
                yield from TYPE.findall(STRING.sub("", kind or line))


def _dead_fields(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, doc: str) -> list[str]:
    """Return the names of a list "name: text. name: text." that are neither fields of the class nor in the function."""
    if "\n---" in doc:
        return []
    every = [name for match in FIELDS.finditer(doc) for name in re.split(r", and |, | and ", match.group(1))]
    return [f"{name}:" for name in set(every) - set(_identifiers(node))] if every else []
