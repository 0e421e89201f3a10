"""Detection of module constants (thresholds and tables) that were changed at run time.

The sources of the package are a part of every cache key, so code that was generated with another value of a constant
must not be found under the same key. The shipped value is read from the source text, once for each version of the
package, and cached. Constants are assignments at the top level of a module, to an upper-case name that is assigned
once, of numbers, strings, and tuples, lists, sets and mappings of these, possibly by arithmetic or through other
constants. A mapping or list that is empty in the source is a table that the package fills, and is not compared.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import operator
import sys
from collections.abc import Callable, Mapping
from copy import copy, deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.emit import cache as store
from bellcrank.process_state import EVALUATION_LOCK, syntax_tree

PACKAGE_NAME = __name__.partition(".")[0]
SCALAR_TYPES = (type(None), bool, int, float, complex, str, bytes)
LONGEST_TEXT_CHARACTERS = 1 << 14  # characters; constants with a longer text are not compared
BINARY_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.BitOr: operator.or_,
}  # fmt: skip
UNARY_OPERATORS: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
CONSTANT_MODULES = {"math": math, "np": np}

ConstantTexts = dict[str, str]  # texts of the constants of a module, by name
_shipped_cache: dict[str, ConstantTexts] = {}  # by module
ABSENT_CONSTANT = object()
_last_snapshot: list[_Snapshot] = []  # the last snapshot, if no constant had changed then
_module_constants: dict[str, dict[str, Any]] = {}  # by module, while the sources are read


class _UnknownError(Exception):
    """Raised for an expression whose value cannot be determined from the source."""


def changed_constants() -> str:
    """Return a digest of the constants that differ from their sources, with their present values; "" if none does."""
    snapshot = next(iter(_last_snapshot), None)
    if snapshot is not None and snapshot.is_current():
        return ""
    loaded, known_modules = _loaded_modules(), len(_shipped_cache)
    changes = [line for name in loaded for line in _changed_lines(name)]
    if len(_shipped_cache) > known_modules and len(_shipped_cache) > len(_load_shipped()) and store.sources_unchanged():
        store.save(_cache_file_name(), json.dumps(_shipped_cache).encode())
    _last_snapshot[:] = [] if changes else [_Snapshot(loaded)]
    return hashlib.sha256("\n".join(changes).encode("utf-8", "surrogatepass")).hexdigest() if changes else ""


def _loaded_modules() -> list[str]:
    """Return the sorted names of the loaded modules that generate code."""
    return sorted(name for name, module in list(sys.modules.items()) if module is not None and _generates_code(name))


class _Snapshot:
    """Snapshot of all constants while they were as shipped: the objects, and copies of the mutable ones."""

    def __init__(self, loaded: list[str]) -> None:
        self.modules = len(sys.modules)
        parts = [(vars(sys.modules[name]), tuple(shipped_texts(name))) for name in loaded]
        # The values are kept alive, so that their ids stay valid.
        self.values = [namespace[constant] for namespace, names in parts for constant in names]
        self.addresses = [
            (namespace.get, names, [id(namespace[x]) for x in names]) for namespace, names in parts if names
        ]
        # The shallow copy comes first, because another thread may add entries during a deep copy.
        self.tables = [(x, deepcopy(copy(x))) for x in self.values if isinstance(x, dict | list | set)]

    def is_current(self) -> bool:
        """Return True if no module was loaded since, and no constant was replaced or changed in place."""
        if len(sys.modules) != self.modules:
            return False
        for get, names, addresses in self.addresses:
            if list(map(id, map(get, names))) != addresses:
                return False
        return all(x == copied for x, copied in self.tables)


def _changed_lines(name: str) -> list[str]:
    """Return "name = value" for the constants of a module that differ from the shipped ones."""
    namespace, texts = vars(sys.modules[name]), shipped_texts(name)
    texts_now = {constant: constant_text(namespace.get(constant, ABSENT_CONSTANT)) for constant in texts}
    return [
        f"{name}.{constant} = {texts_now[constant]}" for constant in texts if texts_now[constant] != texts[constant]
    ]


def code_fingerprint() -> str:
    """Return a digest of the sources that generate code and of the constants that were changed since."""
    return store.package_fingerprint() + changed_constants()


def constant_text(value: Any) -> str:
    """Return a text that is equal for equal constants in every process; one fixed text if `value` is no constant."""
    kind = type(value)
    if kind in SCALAR_TYPES:
        return repr(value)
    if kind in (set, frozenset):
        return f"{kind.__name__}({', '.join(sorted(map(constant_text, value.copy())))})"
    if kind in (tuple, list):
        return f"{kind.__name__}({', '.join(map(constant_text, value))})"
    if kind is dict:
        return f"{{{', '.join(f'{constant_text(k)}: {constant_text(x)}' for k, x in value.copy().items())}}}"
    return "something else"


def shipped_texts(name: str) -> ConstantTexts:
    """Return the texts of the constants of the loaded module `name` as its source defines them."""
    if (known := _shipped_cache.get(name)) is not None:
        return known
    with EVALUATION_LOCK:  # other threads must not see a module that is only partly read
        if not _shipped_cache:
            _shipped_cache.update(_load_shipped())
        if name not in _shipped_cache:
            _shipped_cache[name] = {
                n: text
                for n, x in _constants_of_module(name).items()
                if len(text := constant_text(x)) < LONGEST_TEXT_CHARACTERS
            }
        return _shipped_cache[name]


def _generates_code(name: str) -> bool:
    package, _, module = name.partition(".")
    return package == PACKAGE_NAME and bool(module) and module.partition(".")[0] not in store.FINGERPRINT_EXCLUSIONS


def _cache_file_name() -> str:
    return f"{store.key('constants', store.package_fingerprint())}.json"


def _load_shipped() -> dict[str, ConstantTexts]:
    payload = store.load(_cache_file_name())
    return {} if payload is None else {str(k): dict(x) for k, x in json.loads(payload).items()}


def _constants_of_module(name: str) -> dict[str, Any]:
    """Return the constants of a module from its source; empty while it is being read (circular imports)."""
    if name not in _module_constants:
        _module_constants[name] = {}
        _module_constants[name] = _read_constants(name)
    return _module_constants[name]


def _read_constants(name: str) -> dict[str, Any]:
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None or not file.endswith(".py"):
        return {}
    try:
        tree = syntax_tree(Path(file).read_text("utf-8"))
    except (OSError, SyntaxError):
        return {}
    reassigned = _reassigned_names(tree)
    constants: dict[str, Any] = {}
    for statement in tree.body:
        for target, expression in _assignments(statement):
            try:
                constants[target] = _evaluate(expression, constants)
            except _UnknownError:
                constants.pop(target, None)
        if isinstance(statement, ast.ImportFrom) and statement.module and _generates_code(statement.module):
            constants |= _imported_constants(statement)
    return {n: x for n, x in constants.items() if n.isupper() and n not in reassigned and x not in ({}, [], set())}


def _assignments(statement: ast.stmt) -> list[tuple[str, ast.expr]]:
    """Return (name, expression) for `A = ...`, `A: T = ...` and `A, B = ..., ...`."""
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
        return [(statement.target.id, statement.value)]
    if not isinstance(statement, ast.Assign):
        return []
    assignments = []
    for target in statement.targets:
        if isinstance(target, ast.Name):
            assignments.append((target.id, statement.value))
        both = isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple)
        if both and len(target.elts) == len(statement.value.elts):  # type: ignore[attr-defined]
            pairs = zip(target.elts, statement.value.elts, strict=True)  # type: ignore[attr-defined]
            assignments += [(t.id, x) for t, x in pairs if isinstance(t, ast.Name)]
    return assignments


def _reassigned_names(tree: ast.Module) -> set[str]:
    """Return names assigned in more than one place, declared global by functions, or bound inside other statements."""
    assignment_counts: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            assignment_counts |= dict.fromkeys(node.names, 2)
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef | ast.Lambda):
            assignment_counts[getattr(node, "name", "")] = 2
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            assignment_counts[node.id] = assignment_counts.get(node.id, 0) + 1
        pending += ast.iter_child_nodes(node)
    return {name for name, n in assignment_counts.items() if n > 1}


def _imported_constants(statement: ast.ImportFrom) -> dict[str, Any]:
    """Return the constants that a module imports from another module of the package."""
    known = _constants_of_module(str(statement.module))
    return {alias.asname or alias.name: known[alias.name] for alias in statement.names if alias.name in known}


def _evaluate(x: ast.expr, known: Mapping[str, Any]) -> Any:
    if isinstance(x, ast.Constant) and type(x.value) in SCALAR_TYPES:
        return x.value
    if isinstance(x, ast.Name) and x.id in known:
        return known[x.id]
    if isinstance(x, ast.Attribute) and isinstance(x.value, ast.Name) and x.value.id in CONSTANT_MODULES:
        value = getattr(CONSTANT_MODULES[x.value.id], x.attr, None)
        if type(value) is float:
            return value
    if isinstance(x, ast.Tuple | ast.List | ast.Set):
        kind = {ast.Tuple: tuple, ast.List: list, ast.Set: set}[type(x)]
        return _construct(kind, [_evaluate(y, known) for y in x.elts])
    if isinstance(x, ast.Dict) and None not in x.keys:
        keys = [_evaluate(k, known) for k in x.keys if k is not None]
        return _construct(dict, zip(keys, [_evaluate(y, known) for y in x.values], strict=True))
    return _evaluate_arithmetic(x, known)


def _construct(kind: Callable[[Any], Any], parts: Any) -> Any:
    try:
        return kind(parts)
    except TypeError:  # an element that cannot be hashed
        raise _UnknownError from None


def _evaluate_arithmetic(x: ast.expr, known: Mapping[str, Any]) -> Any:
    """Evaluate arithmetic on numbers."""
    try:
        if isinstance(x, ast.BinOp) and type(x.op) in BINARY_OPERATORS:
            return BINARY_OPERATORS[type(x.op)](_evaluate_number(x.left, known), _evaluate_number(x.right, known))
        if isinstance(x, ast.UnaryOp) and type(x.op) in UNARY_OPERATORS:
            return UNARY_OPERATORS[type(x.op)](_evaluate_number(x.operand, known))
    except (ArithmeticError, TypeError):
        pass
    raise _UnknownError


def _evaluate_number(x: ast.expr, known: Mapping[str, Any]) -> float:
    number = _evaluate(x, known)
    if type(number) not in (int, float):
        raise _UnknownError
    return float(number) if type(number) is float else number
