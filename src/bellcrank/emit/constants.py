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
from bellcrank.once import LOCK
from bellcrank.syntax import syntax_tree

OWN = __name__.partition(".")[0]
PLAIN = (type(None), bool, int, float, complex, str, bytes)
LONGEST_TEXT = 1 << 14  # characters; constants with a longer text are not compared
BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.BitOr: operator.or_,
}  # fmt: skip
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
MODULES = {"math": math, "np": np}

Texts = dict[str, str]  # texts of the constants of a module, by name
_shipped: dict[str, Texts] = {}  # by module
ABSENT = object()
_seen: list[_Seen] = []  # the last snapshot, if no constant had changed then
_values: dict[str, dict[str, Any]] = {}  # by module, while the sources are read


class _UnknownError(Exception):
    """Raised for an expression whose value cannot be determined from the source."""


def changed_constants() -> str:
    """Return a digest of the constants that differ from their sources, with their present values; "" if none does."""
    seen = next(iter(_seen), None)
    if seen is not None and seen.still():
        return ""
    loaded, known = _loaded_modules(), len(_shipped)
    found = [line for name in loaded for line in _changes(name)]
    if len(_shipped) > known and len(_shipped) > len(_kept()) and store.steady():
        store.save(_file(), json.dumps(_shipped).encode())
    _seen[:] = [] if found else [_Seen(loaded)]
    return hashlib.sha256("\n".join(found).encode("utf-8", "surrogatepass")).hexdigest() if found else ""


def _loaded_modules() -> list[str]:
    """Return the sorted names of the loaded modules that generate code."""
    return sorted(name for name, module in list(sys.modules.items()) if module is not None and _makes_code(name))


class _Seen:
    """Snapshot of all constants while they were as shipped: the objects, and copies of the mutable ones."""

    def __init__(self, loaded: list[str]) -> None:
        self.modules = len(sys.modules)
        parts = [(vars(sys.modules[name]), tuple(shipped(name))) for name in loaded]
        self.values = [now[constant] for now, names in parts for constant in names]  # kept alive: their ids stay valid
        self.addresses = [(now.get, names, [id(now[x]) for x in names]) for now, names in parts if names]
        # The shallow copy comes first, because another thread may add entries during a deep copy.
        self.tables = [(x, deepcopy(copy(x))) for x in self.values if isinstance(x, dict | list | set)]

    def still(self) -> bool:
        """Return True if no module was loaded since, and no constant was replaced or changed in place."""
        if len(sys.modules) != self.modules:
            return False
        for get, names, addresses in self.addresses:
            if list(map(id, map(get, names))) != addresses:
                return False
        return all(x == before for x, before in self.tables)


def _changes(name: str) -> list[str]:
    """Return "name = value" for the constants of a module that differ from the shipped ones."""
    now, texts = vars(sys.modules[name]), shipped(name)
    told = {constant: spelled(now.get(constant, ABSENT)) for constant in texts}
    return [f"{name}.{constant} = {told[constant]}" for constant in texts if told[constant] != texts[constant]]


def code_fingerprint() -> str:
    """Return a digest of the sources that generate code and of the constants that were changed since."""
    return store.package_fingerprint() + changed_constants()


def spelled(value: Any) -> str:
    """Return a text that is equal for equal constants in every process; one fixed text if `value` is no constant."""
    kind = type(value)
    if kind in PLAIN:
        return repr(value)
    if kind in (set, frozenset):
        return f"{kind.__name__}({', '.join(sorted(map(spelled, value.copy())))})"
    if kind in (tuple, list):
        return f"{kind.__name__}({', '.join(map(spelled, value))})"
    if kind is dict:
        return f"{{{', '.join(f'{spelled(k)}: {spelled(x)}' for k, x in value.copy().items())}}}"
    return "something else"


def shipped(name: str) -> Texts:
    """Return the texts of the constants of the loaded module `name` as its source defines them."""
    if (known := _shipped.get(name)) is not None:
        return known
    with LOCK:  # other threads must not see a module that is only partly read
        if not _shipped:
            _shipped.update(_kept())
        if name not in _shipped:
            _shipped[name] = {n: text for n, x in _constants(name).items() if len(text := spelled(x)) < LONGEST_TEXT}
        return _shipped[name]


def _makes_code(name: str) -> bool:
    package, _, rest = name.partition(".")
    return package == OWN and bool(rest) and rest.partition(".")[0] not in store.ABOVE


def _file() -> str:
    return f"{store.key('constants', store.package_fingerprint())}.json"


def _kept() -> dict[str, Texts]:
    found = store.load(_file())
    return {} if found is None else {str(k): dict(x) for k, x in json.loads(found).items()}


def _constants(name: str) -> dict[str, Any]:
    """Return the constants of a module from its source; empty while it is being read (circular imports)."""
    if name not in _values:
        _values[name] = {}
        _values[name] = _read(name)
    return _values[name]


def _read(name: str) -> dict[str, Any]:
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None or not file.endswith(".py"):
        return {}
    try:
        tree = syntax_tree(Path(file).read_text("utf-8"))
    except (OSError, SyntaxError):
        return {}
    often = _assigned_often(tree)
    found: dict[str, Any] = {}
    for statement in tree.body:
        for target, expression in _assignments(statement):
            try:
                found[target] = _value(expression, found)
            except _UnknownError:
                found.pop(target, None)
        if isinstance(statement, ast.ImportFrom) and statement.module and _makes_code(statement.module):
            found |= _imported(statement)
    return {n: x for n, x in found.items() if n.isupper() and n not in often and x not in ({}, [], set())}


def _assignments(statement: ast.stmt) -> list[tuple[str, ast.expr]]:
    """Return (name, expression) for `A = ...`, `A: T = ...` and `A, B = ..., ...`."""
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
        return [(statement.target.id, statement.value)]
    if not isinstance(statement, ast.Assign):
        return []
    found = []
    for target in statement.targets:
        if isinstance(target, ast.Name):
            found.append((target.id, statement.value))
        both = isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple)
        if both and len(target.elts) == len(statement.value.elts):  # type: ignore[attr-defined]
            pairs = zip(target.elts, statement.value.elts, strict=True)  # type: ignore[attr-defined]
            found += [(t.id, x) for t, x in pairs if isinstance(t, ast.Name)]
    return found


def _assigned_often(tree: ast.Module) -> set[str]:
    """Return names assigned in more than one place, declared global by functions, or bound inside other statements."""
    places: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            places |= dict.fromkeys(node.names, 2)
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef | ast.Lambda):
            places[getattr(node, "name", "")] = 2
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            places[node.id] = places.get(node.id, 0) + 1
        pending += ast.iter_child_nodes(node)
    return {name for name, n in places.items() if n > 1}


def _imported(statement: ast.ImportFrom) -> dict[str, Any]:
    """Return the constants that a module imports from another module of the package."""
    known = _constants(str(statement.module))
    return {alias.asname or alias.name: known[alias.name] for alias in statement.names if alias.name in known}


def _value(x: ast.expr, known: Mapping[str, Any]) -> Any:
    if isinstance(x, ast.Constant) and type(x.value) in PLAIN:
        return x.value
    if isinstance(x, ast.Name) and x.id in known:
        return known[x.id]
    if isinstance(x, ast.Attribute) and isinstance(x.value, ast.Name) and x.value.id in MODULES:
        found = getattr(MODULES[x.value.id], x.attr, None)
        if type(found) is float:
            return found
    if isinstance(x, ast.Tuple | ast.List | ast.Set):
        kind = {ast.Tuple: tuple, ast.List: list, ast.Set: set}[type(x)]
        return _built(kind, [_value(y, known) for y in x.elts])
    if isinstance(x, ast.Dict) and None not in x.keys:
        keys = [_value(k, known) for k in x.keys if k is not None]
        return _built(dict, zip(keys, [_value(y, known) for y in x.values], strict=True))
    return _computed(x, known)


def _built(kind: Callable[[Any], Any], parts: Any) -> Any:
    try:
        return kind(parts)
    except TypeError:  # an element that cannot be hashed
        raise _UnknownError from None


def _computed(x: ast.expr, known: Mapping[str, Any]) -> Any:
    """Evaluate arithmetic on numbers."""
    try:
        if isinstance(x, ast.BinOp) and type(x.op) in BINARY:
            return BINARY[type(x.op)](_number(x.left, known), _number(x.right, known))
        if isinstance(x, ast.UnaryOp) and type(x.op) in UNARY:
            return UNARY[type(x.op)](_number(x.operand, known))
    except (ArithmeticError, TypeError):
        pass
    raise _UnknownError


def _number(x: ast.expr, known: Mapping[str, Any]) -> float:
    found = _value(x, known)
    if type(found) not in (int, float):
        raise _UnknownError
    return float(found) if type(found) is float else found
