"""Digests of functions, classes and modules: what they compute, without their names, locations and comments.

The content of a function is its bytecode, its constants, its defaults, its closure, and the globals that its code
names. Functions and classes of libraries are identified by name and version (libraries.py), as long as the name still
refers to them: one that was replaced, or was defined inside another function, is decomposed like the user's own.
"""

from __future__ import annotations

import builtins
import dis
import hashlib
import importlib.util
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bellcrank.content_digest.libraries import is_library_file, module_library

if TYPE_CHECKING:
    from bellcrank.content_digest.digests import ContentDigest

# Attributes of classes that do not affect behaviour, or follow from the others.
IGNORED_CLASS_ATTRIBUTES = {
    "__module__", "__doc__", "__dict__", "__weakref__", "__qualname__", "__annotations__", "__annotate__",
    "__annotate_func__", "__annotations_cache__", "__firstlineno__", "__static_attributes__", "__repr__", "__str__",
    "__dataclass_fields__", "__dataclass_params__", "__match_args__", "__abstractmethods__", "_abc_impl",
    "__slotnames__", "__orig_bases__", "__parameters__", "__type_params__",
}  # fmt: skip
ABSENT = "absent"


def feed_function(d: ContentDigest, function: Any, digest: Any) -> None:
    """Add `function` to the hash `digest` of the digest computer `d`."""
    if (name := _library_name(function)) is not None:
        return d.feed(("function", name), digest)
    code = function.__code__
    facts = code_facts(code, type(d)().feed)
    d.feed("function", digest)
    d.feed(code, digest)
    d.feed_named("defaults", function.__defaults__, digest)
    d.feed_named("defaults", function.__kwdefaults__, digest)
    for free, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        d.feed_named(free, cell, digest)
    if attributes := {name: x for name, x in vars(function).items() if name != "__wrapped__"}:
        d.feed(attributes, digest)
    for name in facts.global_names:
        d.feed_named(name, _global_value(function, name), digest)
    for level, name in facts.imported_names:
        d.feed_named(name, _imported_module(function, level, name), digest)
    for name, module in _module_attributes(function, facts.names):
        d.feed_named(name, module, digest)
    return None


def feed_code(d: ContentDigest, code: types.CodeType, digest: Any) -> None:
    """Add the facts about `code` to the hash `digest` of the digest computer `d`."""
    digest.update(code_facts(code, type(d)().feed).digest)


def feed_class(d: ContentDigest, kind: type, digest: Any) -> None:
    """Add the class `kind` to the hash `digest` of the digest computer `d`."""
    if kind.__module__ == "builtins" or (name := _library_name(kind)) is not None:
        return d.feed(("class", kind.__qualname__ if kind.__module__ == "builtins" else name), digest)
    d.feed(("class", kind.__bases__, type(kind)), digest)
    for name in sorted(vars(kind)):
        value = vars(kind)[name]
        slot = isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType)
        if name not in IGNORED_CLASS_ATTRIBUTES:
            d.feed_named(name, "slot" if slot else value, digest)
    return None


def feed_builtin(d: ContentDigest, function: Any, digest: Any) -> None:
    """Add a `function` written in C to the hash `digest` of `d`: its name and the object that it is bound to."""
    owner = getattr(function, "__self__", None)
    bound = None if isinstance(owner, types.ModuleType) else owner
    home = getattr(function, "__objclass__", None) or getattr(function, "__module__", None)
    name = home if home is None or isinstance(home, str) else home.__qualname__
    d.feed(("builtin", name, function.__qualname__, module_library(name) if name else None), digest)
    d.feed(bound, digest)


def feed_cell(d: ContentDigest, cell: Any, digest: Any) -> None:
    """Add the content of the closure `cell` to the hash `digest` of the digest computer `d`."""
    try:
        d.feed(cell.cell_contents, digest)
    except ValueError:  # the name has no value yet
        d.feed(ABSENT, digest)


def feed_module(d: ContentDigest, module: types.ModuleType, digest: Any) -> None:
    """Add `module` to the hash `digest` of `d`: a library by its version, a user's module by its text."""
    name = module.__name__
    d.feed(("module", module_library(name) or _file_bytes(getattr(module, "__file__", None))), digest)


def _file_bytes(file: str | None) -> bytes:
    try:
        return Path(file).read_bytes() if file else b""
    except OSError:
        return b""


def _library_name(thing: Any) -> str | None:
    """Return library and name of a function or class, if the library has it under that name."""
    module = getattr(thing, "__module__", None)
    if not isinstance(module, str) or (library := module_library(module)) is None:
        return None
    resolved: Any = sys.modules[module]
    for part in thing.__qualname__.split("."):
        resolved = getattr(resolved, part, None)
    code = getattr(thing, "__code__", None)
    if resolved is not thing or (code is not None and not is_library_file(code.co_filename)):
        return None
    return f"{library}: {module}.{thing.__qualname__}"


def _global_value(function: Any, name: str) -> Any:
    if name in function.__globals__:
        return function.__globals__[name]
    return ("builtin", name) if hasattr(builtins, name) else ABSENT


def _imported_module(function: Any, level: int, name: str) -> Any:
    """Return the module that an import statement refers to, or else the text that it would execute."""
    package = str(function.__globals__.get("__package__") or "")
    try:
        full_name = importlib.util.resolve_name("." * level + name, package) if level else name
        if full_name in sys.modules:
            return sys.modules[full_name]
        spec = importlib.util.find_spec(full_name)
    except (ImportError, ValueError, AttributeError):
        return ABSENT
    return _file_bytes(spec.origin) if spec is not None and spec.has_location else ABSENT


def _module_attributes(function: Any, names: frozenset[str]) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of user modules that the code names, such as gains.SPRING, with their current values."""
    modules = [x for x in map(function.__globals__.get, names) if isinstance(x, types.ModuleType)]
    seen: set[str] = set()
    while modules:
        module = modules.pop()
        if module.__name__ in seen or module_library(module.__name__) is not None:
            continue
        seen.add(module.__name__)
        for name in sorted(names & vars(module).keys()):
            value = vars(module)[name]
            if isinstance(value, types.ModuleType):
                modules.append(value)
            yield f"{module.__name__}.{name}", value


# -- facts about code objects: their digest, and the names that they look up and import
#
# A code object never changes, so its facts are computed once and cached. The values behind the names are looked up
# again for each digest.

GLOBAL_OPERATIONS = ("LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME")
MAX_CACHED_CODES = 4096  # code objects whose facts are cached


class CodeFacts(NamedTuple):
    """Facts about a code object and all code inside of it."""

    code: types.CodeType  # held, so that no other object gets its address
    digest: bytes  # without names of functions and files, and without line numbers
    global_names: tuple[str, ...]  # in order
    imported_names: tuple[tuple[int, str], ...]  # (level, name) of what it imports while it runs, in order
    names: frozenset[str]  # of globals and attributes


_facts_by_id: dict[int, CodeFacts] = {}


def code_facts(code: types.CodeType, feed: Callable[[Any, Any], None]) -> CodeFacts:
    """Return the facts about `code`; `feed(constant, hash)` adds a constant to a hash."""
    facts = _facts_by_id.get(id(code))
    if facts is None or facts.code is not code:
        if len(_facts_by_id) >= MAX_CACHED_CODES:
            _facts_by_id.clear()
        facts = _facts_by_id[id(code)] = _compute_facts(code, feed)
    return facts


def _compute_facts(code: types.CodeType, feed: Callable[[Any, Any], None]) -> CodeFacts:
    global_names, imported, names = set(), set(), set[str]()
    for part in _nested_codes(code):
        names.update(part.co_names)
        instructions = list(dis.get_instructions(part))
        global_names |= {str(i.argval) for i in instructions if i.opname in GLOBAL_OPERATIONS}
        imported |= set(_imports(instructions))
    return CodeFacts(code, _digest(code, feed), tuple(sorted(global_names)), tuple(sorted(imported)), frozenset(names))


def _nested_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield a code object and all code inside of it."""
    yield code
    for x in code.co_consts:
        if isinstance(x, types.CodeType):
            yield from _nested_codes(x)


def _imports(instructions: list[dis.Instruction]) -> Iterator[tuple[int, str]]:
    earlier_arguments: list[Any] = [0, 0]
    for instruction in instructions:
        if instruction.opname == "IMPORT_NAME":
            yield earlier_arguments[-2] if isinstance(earlier_arguments[-2], int) else 0, str(instruction.argval)
        earlier_arguments.append(instruction.argval)


def _digest(code: types.CodeType, feed: Callable[[Any, Any], None]) -> bytes:
    digest = hashlib.sha256()
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    table = getattr(code, "co_exceptiontable", b"")
    feed(("code", code.co_code, table, counts, names), digest)
    constants = list(code.co_consts)
    if constants and isinstance(constants[0], str) and not _loads_first_constant(code):
        constants[0] = None  # a docstring
    for x in constants:
        feed(x, digest)
    return digest.digest()


def _loads_first_constant(code: types.CodeType) -> bool:
    """Return whether the code loads its first constant, which otherwise is only the docstring."""
    return any(i.opname in ("LOAD_CONST", "RETURN_CONST") and i.arg == 0 for i in dis.get_instructions(code))
