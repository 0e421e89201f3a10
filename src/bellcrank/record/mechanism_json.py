"""Exact conversion of a mechanism to JSON and back, with equal parts, bit-identical numbers and equal fingerprint.

The JSON follows the fields of the dataclasses and their types, so new fields need no code here. Numbers that JSON lacks
are strings ("inf", "nan"). No content of a file is executed.
"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from bellcrank.errors import ReadError, unknown
from bellcrank.model import Mechanism
from bellcrank.model.construction import check_consistency
from bellcrank.nodes.tape import SCALAR_OPERATIONS
from bellcrank.parameters import parameter
from bellcrank.parameters.free import FREE, Free

LARGEST_INTEGER = 10**300  # larger integers cannot be converted to float


def to_plain(value: Any) -> Any:
    """Return `value`, a part of a mechanism, as dictionaries, lists, strings and numbers."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_plain(x) for key, x in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_plain(x) for x in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, Free):
        return {"free": [value.op, *(to_plain(x) for x in value.args)]}
    raise TypeError(f"{value!r} is not a part of a mechanism that can be written")


def read_mechanism(data: Any) -> Mechanism:
    """Return the mechanism from the output `data` of `to_plain`; raise a ReadError if it is invalid."""
    mechanism = _from_plain(Mechanism, data, "mechanism")
    assert isinstance(mechanism, Mechanism)
    check_consistency(mechanism)
    return mechanism


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind)}


def _from_plain(kind: Any, value: Any, where: str) -> Any:
    """Convert a value to a type; `where` is its location in the file, for messages."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        return _from_plain(next(k for k in inner if k is not type(None)), value, where)
    if is_dataclass(kind):
        assert isinstance(kind, type)
        return _part(kind, value, where)
    if origin is tuple:
        return _tuple(inner, value, where)
    if origin is not None and issubclass(origin, Mapping):
        items = _expected(value, dict, where)
        return {key: _from_plain(inner[1], x, f"{where}.{key}") for key, x in items.items()}
    return _number(value, where) if kind in (float, Any) else _expected(value, kind, where)


def _part(kind: type, value: Any, where: str) -> Any:
    known = _hints(kind)
    for name in _expected(value, dict, where):
        if name not in known:
            raise ReadError(f"{where}: {unknown('field', name, known)} A newer bellcrank may have written this.")
    given = {name: _from_plain(known[name], x, f"{where}.{name}") for name, x in value.items()}
    try:
        return kind(**given)
    except TypeError as error:
        raise ReadError(f"{where}: {error}.") from None


def _tuple(inner: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    items = _expected(value, list, where)
    each = [inner[0]] * len(items) if inner[-1] is Ellipsis else list(inner)
    if len(each) != len(items):
        raise ReadError(f"{where}: expected {len(each)} values, found {len(items)}.")
    return tuple(_from_plain(k, x, f"{where}[{i}]") for i, (k, x) in enumerate(zip(each, items, strict=True)))


def _number(value: Any, where: str) -> Any:
    """Convert a number; an int stays an int, because the fingerprint distinguishes them."""
    if isinstance(value, dict) and isinstance(value.get("free"), list) and value["free"]:
        return _expression(value["free"], where)
    if isinstance(value, str) and value in ("inf", "-inf", "nan"):
        return float(value)
    if isinstance(value, bool):
        raise ReadError(f"{where}: expected a number, found {value!r}.")
    number = _expected(value, (int, float), where)
    if isinstance(number, int) and abs(number) > LARGEST_INTEGER:
        raise ReadError(f"{where}: is an integer of {number.bit_length()} bits; expected a number.")
    return number


def _expression(terms: list[Any], where: str) -> Free:
    """Return a free parameter, or an expression of free parameters, from its operation and arguments."""
    op, args = terms[0], terms[1:]
    if op == "parameter" and len(args) == 3 and isinstance(args[0], str) and isinstance(args[2], str):
        return parameter(args[0], _expected(args[1], (int, float), where), args[2])
    if not isinstance(op, str) or op not in SCALAR_OPERATIONS:
        raise ReadError(f"{where}: {unknown('operation', op, SCALAR_OPERATIONS)}")
    try:
        SCALAR_OPERATIONS[op](*[0.5] * len(args))
    except TypeError:
        raise ReadError(f"{where}: {op} does not take {len(args)} numbers.") from None
    return FREE.node(op, *(_from_plain(float, x, where) for x in args))


def _expected(value: Any, kind: Any, where: str) -> Any:
    if not isinstance(value, kind):
        raise ReadError(f"{where}: expected {getattr(kind, '__name__', 'a number')}, found {value!r:.60}.")
    return value
