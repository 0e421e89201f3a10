"""Facts about code objects: their digest, and the names that they look up and import.

A code object never changes, so its facts are computed once and cached. The values behind the names are looked up again
for each digest (function_digests.py).
"""

from __future__ import annotations

import dis
import hashlib
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

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
