"""Description of a record in its files, as JSON: names, units, provenance, stops and the mechanism.

It includes a seal, a digest of the description and the numbers, which is checked when a file is read: so bits that
flipped on a disk are detected. The seal is not a signature: a file that is changed on purpose can be sealed again.

A mechanism is converted exactly to JSON and back, with equal parts, bit-identical numbers and equal fingerprint. The
JSON follows the fields of the dataclasses and their types, so new fields need no code here. Numbers that JSON lacks are
strings ("inf", "nan"). No content of a file is executed.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from bellcrank.errors import ReadError, brief, unknown
from bellcrank.model import Array, Mechanism
from bellcrank.model.construction import check_consistency
from bellcrank.nodes.tape import SCALAR_OPERATIONS
from bellcrank.parameters import parameter
from bellcrank.parameters.free import FREE, Free
from bellcrank.record.contents import Column, Stop, Stops

if TYPE_CHECKING:
    from bellcrank.record.record import Record

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


FORMAT, VERSION = "bellcrank record", 1
MAX_COUNT = 2**48  # rows, or runs along an axis: more do not fit into memory
MAX_AXES = 16


@dataclass(frozen=True)
class Description:
    """Description of a record, checked as far as the numbers depend on it."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    shape: tuple[int, ...]  # (*batch, rows)
    metadata: dict[str, Any]
    described: str  # the JSON without the seal
    seal: str | None = None

    @property
    def size(self) -> int:
        """Number of values in each column."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Memory of all columns, bytes."""
        return 8 * self.size * len(self.names)

    def record(self, columns: list[Array]) -> Record:
        """Return the record with the values `columns`, flat or shaped; raise a ReadError if the seal is wrong."""
        from bellcrank.record.record import Record

        wanted = self.size
        named = {}
        for name, unit, values in zip(self.names, self.units, columns, strict=True):
            if values.size != wanted:
                raise ReadError(f'column "{name}" has {values.size} values; expected {wanted}. The file is damaged.')
            named[name] = Column(name, unit, np.asarray(values, np.float64).reshape(self.shape))
        mechanism = self.metadata["mechanism"]
        if self.seal is not None and self.seal != seal(self.described, (column.values for column in named.values())):
            raise ReadError(
                "its contents do not match the seal made when it was saved: it was damaged or edited. Use another copy "
                'of it; if it was changed on purpose, remove "seal" from the description to read it as it is.'
            )
        run = Record(
            named,
            mechanism=read_mechanism(mechanism) if mechanism is not None else None,
            provenance=self.metadata["provenance"],
            stops=[Stop(reason, float(time), message) for reason, time, message in self.metadata["stops"]],
            states=self.metadata["states"],
        )
        run.sealed = self.seal is not None
        if not run.stops and run.runs:
            run.stops = _unknown_stops(run.t.reshape(run.runs, len(run)))
        return run


def _unknown_stops(t: Array) -> Stops:
    """Return stops of runs whose file has none, from their times `t`, shape (runs, rows)."""
    valid = np.isfinite(t)
    last = t.shape[1] - 1 - np.argmax(valid[:, ::-1], axis=1) if t.shape[1] else np.zeros(len(t), int)
    padded = np.append(np.where(valid, t, np.nan), np.full((len(t), 1), np.nan), axis=1)
    times = padded[np.arange(len(t)), last]
    message = "the file does not state why the run ended; this is the time of its last row"
    return Stops(["unknown"], np.zeros(len(t), int), times, lambda _: message)


def seal(described: str, columns: Iterable[Array]) -> str:
    """Return a digest of the description `described` and the values `columns`, bit by bit; all NaNs are equal."""
    digest = hashlib.sha256(described.encode())
    for values in columns:
        values = np.ascontiguousarray(values, "<f8")
        digest.update(np.where(np.isnan(values), np.nan, values).astype("<f8", copy=False).tobytes())
    return digest.hexdigest()


def describe(run: Record) -> str:
    """Return the description of `run` with its seal, as one line of JSON."""
    data = {
        "format": FORMAT,
        "version": VERSION,
        "batch": list(run.batch),
        "rows": len(run),
        "columns": [{"name": name, "unit": run.column(name).unit} for name in run.columns],
        "states": list(run.states),
        "provenance": dict(run.provenance),
        "stops": [[s.reason, to_plain(float(s.time)), s.message] for s in run.stops],
        "mechanism": to_plain(run.mechanism) if run.mechanism is not None else None,
    }
    described = json.dumps(data, allow_nan=False)
    return json.dumps({**data, "seal": seal(described, (run[name] for name in run.columns))}, allow_nan=False)


def parse_description(text: str | bytes) -> Description:
    """Parse and check the description `text`; raise a ReadError if it is invalid."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ReadError(f"the description of the record is not JSON: {error}.") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ReadError(f'expected a "{FORMAT}", found {str(data)[:60]}.')
    if data.get("version") != VERSION:
        raise ReadError(
            f"this is version {data.get('version')} of the format and this bellcrank reads {VERSION}; update bellcrank."
        )
    mark = data.pop("seal", None)
    for key, (is_valid, expected) in ENTRY_CHECKS.items():
        if not is_valid(data.get(key)):
            problem = f'"{key}" is {brief(data.get(key))}; expected {expected}'
            raise ReadError(f"the description of the record is not complete: {problem}.")
    names = tuple(c["name"] for c in data["columns"])
    shape = (*data["batch"], data["rows"])
    runs, stops = math.prod(shape[:-1]), len(data["stops"])
    if stops != runs and (stops or runs > max(1, math.prod(shape))):  # a run without rows would cost nothing to declare
        raise ReadError(f"it has {stops} stop reasons for {runs} runs; expected one for each.")
    units = tuple(c["unit"] for c in data["columns"])
    metadata = {key: data[key] for key in ("states", "provenance", "stops", "mechanism")}
    return Description(names, units, shape, metadata, json.dumps(data), None if mark is None else str(mark))


def _is_count(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and 0 <= x < MAX_COUNT


def _is_list(x: Any, is_item: Callable[[Any], bool]) -> bool:
    return isinstance(x, list) and all(map(is_item, x))


def _is_column(x: Any) -> bool:
    return isinstance(x, dict) and isinstance(x.get("name"), str) and isinstance(x.get("unit"), str)


def _is_stop(x: Any) -> bool:
    return isinstance(x, list) and len(x) == 3 and _is_text(x[0]) and _is_time(x[1]) and _is_text(x[2])


def _is_time(x: Any) -> bool:
    is_number = isinstance(x, float | int) and not isinstance(x, bool)
    return x in ("inf", "-inf", "nan") or (is_number and abs(x) <= sys.float_info.max)  # a longer int is no float


def _is_text(x: Any) -> bool:
    return isinstance(x, str)


# Expected type of each entry of the description: a check, and its text for messages.
ENTRY_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "batch": (lambda x: _is_list(x, _is_count) and len(x) <= MAX_AXES, "a list of counts"),
    "rows": (_is_count, "a count"),
    "columns": (
        lambda x: _is_list(x, _is_column) and len({c["name"] for c in x}) == len(x) > 0,
        'a list of {"name": ..., "unit": ...} with different names',
    ),
    "states": (lambda x: _is_list(x, _is_text), "a list of names"),
    "provenance": (lambda x: isinstance(x, dict), "an object"),
    "stops": (lambda x: _is_list(x, _is_stop), "a list of [reason, time, message]"),
    "mechanism": (lambda x: x is None or isinstance(x, dict), "an object or null"),
}


def run_numbers(shape: tuple[int, ...]) -> Array:
    """Return the column "run" of a file in long form, for a batch of `shape`: the run of each row."""
    runs = int(np.prod(shape[:-1], dtype=int))
    return np.repeat(np.arange(runs, dtype=np.int32), shape[-1])
