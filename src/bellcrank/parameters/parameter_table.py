"""Table of the free parameters of a mechanism by name, and the input array `p` of its kernels.

Also searches and replaces expressions of free parameters in parts of a mechanism, tuples and arrays.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.buffers import check_array_memory
from bellcrank.errors import InputError, ModelError, brief, check_known
from bellcrank.parameters.free import FREE, Free
from bellcrank.quoting import name_problem, single_line
from bellcrank.scalar import is_real
from bellcrank.text_table import table

Array = np.ndarray[Any, Any]
ValueCheck = Callable[[Sequence[str], Array, str], None]  # (names, values (..., names), start of the message)


@explain_argument_errors
def parameter(name: str, value: float, unit: str = "") -> Free:
    """Create a free parameter: a number of a mechanism or an actuator that is an input of its kernels.

    Parameters
    ----------
    name : str
        Name by which values are given, such as "boom.mass".
    value : float
        Nominal value, used unless another one is given.
    unit : str
        Unit, for display.

    Returns
    -------
    Free
        A symbol for arithmetic and for the arguments of parts.

    Raises
    ------
    InputError
        If the name, value or unit is not valid.

    Examples
    --------
    >>> b = bc.Builder("pendulum")
    >>> b.body("arm", mass=bc.parameter("arm.mass", 1.0, "kg"), com=(0, 0, -1))
    >>> b.joint("hinge", "revolute", "ground", "arm", axis=(0, 1, 0))
    >>> b.build().mass_matrix([0.0], parameters={"arm.mass": 2.0}).tolist()
    [[2.0]]
    """
    if not isinstance(name, str) or not name:
        raise InputError(f'a parameter\'s name is {name!r}; expected a text, such as "boom.mass".')
    if why := name_problem(name):
        raise InputError(f"the parameter {why}.")
    if not is_real(value) or not math.isfinite(value):
        raise InputError(f'parameter "{name}": its nominal value is {value!r}; expected a finite number.')
    if not isinstance(unit, str) or name_problem(unit):
        raise InputError(f'parameter "{name}": its unit is {unit!r}; expected a text in one line.')
    return FREE.node("parameter", name, float(value) + 0.0, unit)  # -0.0 and 0.0 are one parameter


class Parameters(Mapping[str, float]):
    """Nominal values of free parameters by name, sorted by name: the order of p. Prints as a table."""

    def __init__(self, *things: Any, judge: ValueCheck | None = None) -> None:
        """Collect the parameters of all expressions in the things.

        Parameters
        ----------
        things
            Parts, tuples, arrays and numbers.
        judge
            Raises an error for values that are not possible.
        """
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

    def with_check(self, check: ValueCheck) -> Parameters:
        """Return the same parameters, whose values must also pass a `check`."""
        judges = [judge for judge in (self._judge, check) if judge is not None]

        def judge_all(names: Sequence[str], p: Array, where: str) -> None:
            for judge in judges:
                judge(names, p, where)

        new = Parameters(judge=judge_all)
        new._leaves = self._leaves
        return new

    def __getitem__(self, name: str) -> float:
        return float(self._leaf(name).args[1])

    def __iter__(self) -> Iterator[str]:
        return iter(self._leaves)

    def __len__(self) -> int:
        return len(self._leaves)

    def __contains__(self, name: object) -> bool:
        return name in self._leaves

    def unit(self, name: str) -> str:
        """Return the unit of parameter `name`."""
        return str(self._leaf(name).args[2])

    def _leaf(self, name: str) -> Free:
        if name not in self._leaves:
            raise KeyError(name)
        return self._leaves[name]

    @property
    def leaves(self) -> list[Free]:
        """The symbols of the parameters, in the order of p."""
        return list(self._leaves.values())

    @property
    def nominal(self) -> Array:
        """The array p of nominal values."""
        return np.array(list(self.values()), dtype=float)

    def vector(self, values: Mapping[str, Any], where: str = "parameters") -> Array:
        """Return p with some values given.

        Parameters
        ----------
        values : mapping
            Numbers or arrays by name, which broadcast.
        where : str
            Start of error messages.

        Returns
        -------
        ndarray, shape (..., len(self))
            Given values, and nominal values for the others.

        Raises
        ------
        InputError
            If a name is unknown, a value is not finite, or the shapes do not broadcast.
        """
        given = self._arrays(values, f"{where}: parameters is", where)
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
        """Return a copy of p with some values replaced.

        Parameters
        ----------
        p : ndarray, shape (..., len(self))
            Values to start from.
        values : mapping
            Numbers or arrays by name, which broadcast to the leading axes of p.
        where : str
            Start of error messages.
        judged : bool
            Check that the values are possible, which takes milliseconds.

        Returns
        -------
        ndarray, shape (..., len(self))
            The changed copy.
        """
        given, new = self._arrays(values, f"{where}:", where), np.array(p, float)
        for i, name in enumerate(self):
            if name in given:
                x = given[name]
                try:
                    new[..., i] = x
                except ValueError:
                    expected = "one value" + (f" for all, or the shape {p.shape[:-1]}" if p.ndim > 1 else "")
                    raise InputError(
                        f'{where}: parameter "{name}" has the shape {x.shape}; expected {expected}.'
                    ) from None
        if given and judged and self._judge is not None:
            self._judge(list(self), new, where)
        return new

    def _arrays(self, values: Any, what: str, where: str) -> dict[str, Array]:
        """Return given values as arrays; `what` begins the message about another type than a mapping."""
        if not isinstance(values, Mapping):
            raise InputError(f'{what} {brief(values)}; expected a mapping such as {{"boom.mass": 1900.0}}.')
        self.check(values, where)
        return {name: _checked_array(name, x, where) for name, x in values.items()}

    def check(self, names: Iterable[Any], where: str = "parameters") -> None:
        """Raise InputError if one of `names` is not a parameter; `where` begins the message."""
        for name in names:
            check_known("parameter", name, self, where)

    def __repr__(self) -> str:
        return f"<Parameters {', '.join(f'{single_line(name)}: {x:g}' for name, x in self.items())}>"

    def __str__(self) -> str:
        rows = [(name, f"{x:g}", self.unit(name)) for name, x in self.items()]
        return table(("parameter", "nominal", "unit"), rows, right=(1,))


def _checked_array(name: str, value: Any, where: str) -> Array:
    try:
        array = np.asanyarray(value)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "fiu" or np.ma.is_masked(array):
        raise InputError(f'{where}: parameter "{name}" is {value!r}; expected a number, or an array of them.')
    check_array_memory(f'{where}: parameter "{name}"', array)
    array = np.asarray(array, float)
    if not np.isfinite(array).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        place = str(list(index)) if index else ""
        raise InputError(f'{where}: parameter "{name}"{place} is {array[index]}; expected finite numbers.')
    return array


# By far the most frequent types, tested first: every part of every mechanism is traversed more than once.
PLAIN_TYPES = frozenset({float, int, bool, str, bytes, type(None), np.float64})
MAX_NESTING = 32  # levels of nested lists; a deeper structure may contain itself


@cache
def _field_names(kind: type) -> tuple[str, ...] | None:
    """Return the field names of a dataclass; None for any other type."""
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else None


@cache
def _field_reader(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads all fields of a dataclass at once."""
    names = _field_names(kind) or ()
    return operator.attrgetter(*names) if len(names) > 1 else lambda thing: tuple(getattr(thing, x) for x in names)


def replace_free(thing: Any, function: Callable[[Free], Any], depth: int = 0) -> Any:
    """Return a part, tuple, array or number with every expression in it replaced; the same object if there is none.

    Parameters
    ----------
    thing
        The object to search.
    function
        Gives the replacement of an expression.
    depth
        Current level of nested lists.
    """
    kind: Any = type(thing)
    if not FREE.alive and kind is not np.ndarray and not isinstance(thing, Mapping):
        return thing  # without free parameters no part is traversed, of which there may be a hundred thousand
    if kind in PLAIN_TYPES or (kind is tuple and PLAIN_TYPES.issuperset(map(type, thing))):
        return thing
    if isinstance(thing, Free):
        return function(thing)
    if isinstance(thing, tuple | list):
        if depth > MAX_NESTING:
            raise InputError(
                f"{brief(thing)} is nested more than {MAX_NESTING} lists deep; expected numbers in the lists."
            )
        new = [x if type(x) in PLAIN_TYPES else replace_free(x, function, depth + 1) for x in thing]
        return thing if all(map(operator.is_, new, thing)) else type(thing)(new)
    if isinstance(thing, np.ndarray):
        return np.array(replace_free(thing.tolist(), function)) if thing.dtype == object else thing
    names = _field_names(kind)
    if names is not None:
        return _with_fields(thing, kind, names, function)
    if isinstance(thing, Mapping):
        return {key: replace_free(x, function) for key, x in thing.items()}
    return thing


def _with_fields(thing: Any, kind: Any, names: Sequence[str], function: Callable[[Free], Any]) -> Any:
    """Replace expressions in the fields of a dataclass."""
    old = _field_reader(kind)(thing)
    if PLAIN_TYPES.issuperset(map(type, old)):
        return thing
    new = [x if type(x) in PLAIN_TYPES else replace_free(x, function) for x in old]
    return thing if all(map(operator.is_, new, old)) else kind(**dict(zip(names, new, strict=True)))


def nominal(thing: Any) -> Any:
    """Return `thing` with nominal values, for checks, sizes and choices that do not depend on the parameters."""
    return replace_free(thing, lambda x: x.value)


def expressions(*things: Any) -> Iterator[Free]:
    """Yield all expressions of free parameters in `things`: parts, tuples and arrays."""
    collected: list[Free] = []

    def note(x: Free) -> Free:
        collected.append(x)
        return x

    for thing in things:
        replace_free(thing, note)
    yield from collected


def has_free(*things: Any) -> bool:
    """Return true if anything in `things` depends on a free parameter."""
    return next(expressions(*things), None) is not None
