"""The free numbers of a mechanism by name, the input array `p` that kernels make of them, and where expressions of them
are inside of things: parts of a mechanism, tuples, arrays.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from bellcrank.errors import InputError, ModelError, brief, unknown
from bellcrank.misfits import explained
from bellcrank.parameters.free import FREE, Free
from bellcrank.quoting import line, refused
from bellcrank.scalar import is_real
from bellcrank.text import table

Array = np.ndarray[Any, Any]
Judge = Callable[[Sequence[str], Array, str], None]  # (names, values (..., names), who asks)


@explained
def parameter(name: str, value: float, unit: str = "") -> Free:
    """A number of a mechanism or an actuator that stays free: kernels take it as an input, `value` unless told.

    >>> b = bc.Builder("pendulum")
    >>> b.body("arm", mass=bc.parameter("arm.mass", 1.0, "kg"), com=(0, 0, -1))
    >>> b.joint("hinge", "revolute", "ground", "arm", axis=(0, 1, 0))
    >>> b.build().mass_matrix([0.0], parameters={"arm.mass": 2.0}).tolist()
    [[2.0]]
    """
    if not isinstance(name, str) or not name:
        raise InputError(f'a parameter\'s name is {name!r}; expected a text, such as "boom.mass".')
    if why := refused(name):
        raise InputError(f"the parameter {why}.")
    if not is_real(value) or not math.isfinite(value):
        raise InputError(f'parameter "{name}": its nominal value is {value!r}; expected a finite number.')
    if not isinstance(unit, str) or refused(unit):
        raise InputError(f'parameter "{name}": its unit is {unit!r}; expected a text in one line.')
    return FREE.node("parameter", name, float(value) + 0.0, unit)  # -0.0 and 0.0 are one parameter


class Parameters(Mapping[str, float]):
    """Nominal values by name, in the order of the names: the order of p. Prints as a table."""

    def __init__(self, *things: Any, judge: Judge | None = None) -> None:
        """Of all expressions in the things. judge: raises an error where values cannot be."""
        self._judge = judge
        leaves: dict[str, Free] = {}
        for leaf in {leaf: None for x in expressions(*things) for leaf in x.leaves}:
            name, value, unit = leaf.args
            first = leaves.setdefault(name, leaf)
            if first is not leaf:
                raise ModelError(
                    f'parameter "{name}" is {first.args[1]:g} {first.args[2]} in one place and {value:g} {unit} in '
                    "another; expected one nominal value and unit. Make it once and use it twice, or rename one."
                )
        self._leaves = {name: leaves[name] for name in sorted(leaves)}

    def __getitem__(self, name: str) -> float:
        return float(self._leaf(name).args[1])

    def __iter__(self) -> Iterator[str]:
        return iter(self._leaves)

    def __len__(self) -> int:
        return len(self._leaves)

    def __contains__(self, name: object) -> bool:
        return name in self._leaves

    def unit(self, name: str) -> str:
        return str(self._leaf(name).args[2])

    def _leaf(self, name: str) -> Free:
        if name not in self._leaves:
            raise KeyError(name)
        return self._leaves[name]

    @property
    def leaves(self) -> list[Free]:
        """The free numbers themselves, in the order of p."""
        return list(self._leaves.values())

    @property
    def nominal(self) -> Array:
        """p at nominal values."""
        return np.array(list(self.values()), dtype=float)

    def vector(self, values: Mapping[str, Any], where: str = "parameters") -> Array:
        """p with some values given: each a number or an array, which broadcast; shape (..., len(self))."""
        if not isinstance(values, Mapping):
            raise InputError(
                f'{where}: parameters is {brief(values)}; expected a mapping such as {{"boom.mass": 1900.0}}.'
            )
        self.check(values, where)
        given = {name: _array(name, x, where) for name, x in values.items()}
        try:
            batch = np.broadcast_shapes(*(x.shape for x in given.values()))
        except ValueError:
            shown = ", ".join(f"{name} {x.shape}" for name, x in given.items())
            raise InputError(f"{where}: shapes of the parameters do not broadcast: {shown}.") from None
        p = np.empty((*batch, len(self)))
        for i, name in enumerate(self):
            p[..., i] = given.get(name, self[name])
        if given and self._judge is not None:
            self._judge(list(self), p, where)
        return p

    def changed(self, p: Array, values: Mapping[str, Any], where: str, judged: bool = True) -> Array:
        """p, (..., len(self)), with some values instead of its own, which broadcast to its batch. judged: whether they
        can be is looked at, which takes milliseconds.
        """
        if not isinstance(values, Mapping):
            raise InputError(f'{where}: {brief(values)}; expected a mapping such as {{"boom.mass": 1900.0}}.')
        self.check(values, where)
        new = np.array(p, float)
        for i, name in enumerate(self):
            if name in values:
                x = _array(name, values[name], where)
                try:
                    new[..., i] = x
                except ValueError:
                    expected = "one value" + (f" for all, or the shape {p.shape[:-1]}" if p.ndim > 1 else "")
                    raise InputError(
                        f'{where}: parameter "{name}" has the shape {x.shape}; expected {expected}.'
                    ) from None
        if values and judged and self._judge is not None:
            self._judge(list(self), new, where)
        return new

    def check(self, names: Iterable[Any], where: str = "parameters") -> None:
        for name in names:
            if name not in self:
                raise InputError(f"{where}: {unknown('parameter', name, self)}")

    def __repr__(self) -> str:
        return f"<Parameters {', '.join(f'{line(name)}: {x:g}' for name, x in self.items())}>"

    def __str__(self) -> str:
        rows = [(name, f"{x:g}", self.unit(name)) for name, x in self.items()]
        return table(("parameter", "nominal", "unit"), rows, right=(1,))


def _array(name: str, value: Any, where: str) -> Array:
    try:
        array = np.asanyarray(value)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "fiu" or np.ma.is_masked(array):
        raise InputError(f'{where}: parameter "{name}" is {value!r}; expected a number, or an array of them.')
    array = np.asarray(array, float)
    if not np.isfinite(array).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        place = str(list(at)) if at else ""
        raise InputError(f'{where}: parameter "{name}"{place} is {array[at]}; expected finite numbers.')
    return array


# Most of what is met by far: asked for first, for every part of every mechanism is walked through more than once.
LEAVES = frozenset({float, int, bool, str, bytes, type(None), np.float64})
DEEPEST = 32  # lists in lists: what is deeper may hold itself


@cache
def _names(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass; None for any other type."""
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else None


@cache
def _values(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    """What reads all fields of a dataclass at once."""
    names = _names(kind) or ()
    return operator.attrgetter(*names) if len(names) > 1 else lambda thing: tuple(getattr(thing, x) for x in names)


def replaced(thing: Any, function: Callable[[Free], Any], depth: int = 0) -> Any:
    """A part, a tuple, an array or a number, with every expression in it replaced; itself where there is none."""
    kind: Any = type(thing)
    if not FREE.alive and kind is not np.ndarray and not isinstance(thing, Mapping):
        return thing  # of a hundred thousand parts none is walked through where nothing is free
    if kind in LEAVES or (kind is tuple and LEAVES.issuperset(map(type, thing))):
        return thing
    if isinstance(thing, Free):
        return function(thing)
    if isinstance(thing, tuple | list):
        if depth > DEEPEST:
            raise InputError(f"{brief(thing)} is lists in lists, more than {DEEPEST} deep; expected numbers in them.")
        new = [x if type(x) in LEAVES else replaced(x, function, depth + 1) for x in thing]
        return thing if all(map(operator.is_, new, thing)) else type(thing)(new)
    if isinstance(thing, np.ndarray):
        return np.array(replaced(thing.tolist(), function)) if thing.dtype == object else thing
    names = _names(kind)
    if names is not None:
        return _with_fields(thing, kind, names, function)
    if isinstance(thing, Mapping):
        return {key: replaced(x, function) for key, x in thing.items()}
    return thing


def _with_fields(thing: Any, kind: Any, names: Sequence[str], function: Callable[[Free], Any]) -> Any:
    """The same for a dataclass, field by field."""
    old = _values(kind)(thing)
    if LEAVES.issuperset(map(type, old)):
        return thing
    new = [x if type(x) in LEAVES else replaced(x, function) for x in old]
    return thing if all(map(operator.is_, new, old)) else kind(**dict(zip(names, new, strict=True)))


def nominal(thing: Any) -> Any:
    """The same with nominal values. For checks, sizes and choices that are right whatever the parameters are."""
    return replaced(thing, lambda x: x.value)


def expressions(*things: Any) -> Iterator[Free]:
    """All that are in parts, tuples and arrays."""
    found: list[Free] = []

    def note(x: Free) -> Free:
        found.append(x)
        return x

    for thing in things:
        replaced(thing, note)
    yield from found


def depends(*things: Any) -> bool:
    """Whether anything there depends on a parameter."""
    return next(expressions(*things), None) is not None
