"""Checks of what users give: numbers, lists, names, functions; and starts, inputs and parameters of runs.

Durations, counts and rates that users give pass through these functions wherever a run, stepper, drive, fit, study,
gradient, export or command accepts them. A value that passes is a plain number that can be computed with. The limits on
work are far above any useful run: exceeding one means a mistaken unit.

A function of the user is called during tracing, with errors that name the user's line and the remedy. Starts, inputs
and parameters are broadcast to the shape of the batch.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set, Sized
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from bellcrank.argument_errors import sequence_elements
from bellcrank.buffers import check_array_memory, check_memory
from bellcrank.errors import InputError, brief, unknown
from bellcrank.graph import Node
from bellcrank.graph.user_code import call_checked_pure
from bellcrank.nodes.ops import COMPARISONS
from bellcrank.quoting import name_problem
from bellcrank.scalar import Scalar, float_array, is_real, is_whole
from bellcrank.sim.input_histories import History

if TYPE_CHECKING:
    from bellcrank.sim.system.systems import System

MAX_SECONDS = 1e12  # 32,000 years
MAX_STEPS = 1e12  # steps of one run, which Ctrl-C ends: three hours at 10 ns per step
MAX_STEPS_PER_CALL = 1e8  # steps of a call that cannot be interrupted: an action of a stepper, an FMU or WebAssembly
MAX_EXPERIMENT_STEPS = 1e8  # steps of an experiment that is simulated many times: 28 hours at 1 ms
MAX_SAMPLES = 1e7  # samples of a generated motion
MAX_COUNT = 10**12
MAX_RATE_HZ = 1e9  # events a second


def positive(name: str, value: Any, unit: str) -> float:
    """Return `value`, a finite number above zero; `name` and `unit` appear in the message of the error."""
    if not _is_number(value) or not (math.isfinite(x := _float(value)) and x > 0.0):
        raise InputError(f"{name} is {brief(value)}; expected a number above zero{unit}.")
    return x


def duration(name: str, value: Any) -> float:
    """Return `value`, a duration in seconds above zero and at most MAX_SECONDS; `name` is its name in the error."""
    x = positive(name, value, ", in seconds")
    if x > MAX_SECONDS:
        raise InputError(f"{name} is {x:g} s; expected at most {MAX_SECONDS:g} s. Is it in seconds?")
    return x


def delay(name: str, value: Any) -> float:
    """Return `value`, a duration in seconds that may also be zero; `name` is its name in the error."""
    if _is_number(value) and _float(value) == 0.0:
        return 0.0
    if not _is_number(value) or not _float(value) > 0.0:
        raise InputError(f"{name} is {brief(value)}; expected seconds from 0.")
    return duration(name, value)


def rate(name: str, value: Any, unit: str = "Hz", least: float = 0.0, most: float = MAX_RATE_HZ) -> float:
    """Return a rate above zero, between `least` and `most`.

    Parameters
    ----------
    name
        Name of the argument in the error.
    value
        The rate that the user gave.
    unit
        Unit: "Hz" or "periods a second".
    least
        Smallest rate that is accepted.
    most
        Largest rate that is accepted.
    """
    x = positive(name, value, f", in {unit}" if unit == "Hz" else f", {unit}")
    if not least <= x <= most:
        raise InputError(f"{name} is {x:g}; expected {least:g} to {most:g} {unit}.")
    return x


def count(name: str, value: Any, most: float = MAX_COUNT, items: str = "") -> int:
    """Return a whole number from 1 to `most`.

    Parameters
    ----------
    name
        Name of the argument in the error.
    value
        The number that the user gave.
    most
        Largest number that is accepted.
    items
        The counted items, for the message (" of periods").
    """
    if not is_whole(value) or value < 1:
        raise InputError(f"{name} is {brief(value)}; expected a whole number{items} from 1.")
    number = int(value)
    if number > most:
        raise InputError(f"{name} is {brief(value)}; expected at most {most:.0f}.")
    return number


def whole_multiple(name: str, total: float, part: float, part_name: str, most: float = MAX_STEPS) -> int:
    """Return total / part, which must be a whole number.

    Parameters
    ----------
    name
        Name of the total in the error.
    total
        Duration, s.
    part
        Duration of one part, s.
    part_name
        Name of the part in the error.
    most
        Largest quotient that is accepted.
    """
    if not abs(total / part) <= most:
        raise InputError(
            f"{name} is {total:g} s, and the {part_name} of {part:g} s is too short for that: it takes "
            f"{total / part:g} of them; expected at most {most:g}."
        )
    n = round(total / part)
    if n < 1 or abs(n * part - total) > 1e-6 * part:
        near = max(1, n)
        raise InputError(
            f"{name} is {total:g} s, which is {total / part:.6g} times the {part_name} of {part:g} s; expected a whole "
            f"number. Take {name} {near * part:.12g} or a {part_name} of {total / near:.12g}."
        )
    return n


def check_work(name: str, total: float, part: float, most: float = MAX_STEPS) -> None:
    """Raise an InputError if `total` seconds take more than `most` steps of `part` seconds; `name` is its name."""
    if not total / part <= most:
        raise InputError(
            f"{name} is {total:g} s, which takes {total / part:.3g} steps of {part:g} s; expected at most {most:g}. "
            "Is it in seconds?"
        )


def step_count(total: float, part: float) -> float:
    """Return total / part, rounded where it is whole except for rounding errors.

    `total` and `part` are in seconds. The result is at most 1e15, more than any run has.
    """
    n = min(total / part, 1e15)
    return float(round(n)) if abs(n - round(n)) <= 1e-9 * n else n


def _is_number(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "iuf" and not np.ma.is_masked(value)
    return is_real(value)


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


Array = np.ndarray[Any, Any]
LIMIT_TOLERANCE = 1e-6  # part of its range by which rounding, as of float32, may put a state outside its limits


def is_omitted(value: Any) -> bool:
    """Return True if the argument `value` was left out: it is None, or an empty collection."""
    return value is None or (isinstance(value, Sized) and not isinstance(value, np.ndarray) and not len(value))


def as_tuple(name: str, value: Any, items: str) -> tuple[Any, ...]:
    """Return `value` as a tuple, or raise an InputError if it is a single item.

    Parameters
    ----------
    name
        Name of the argument in the error.
    value
        The list that the user gave.
    items
        Items of the list, in the plural, for the error.
    """
    numeric = isinstance(value, np.ndarray) and (value.ndim == 0 or value.dtype.kind not in "OUS")
    elements = list(value) if isinstance(value, Set) else sequence_elements(value)
    if numeric or elements is None:
        raise InputError(f"{name} is {brief(value)}; expected a list of {items}: {name}=[...].")
    return tuple(elements)


def real_array(name: str, value: Any) -> Array:
    """Return `value` as an array of finite real numbers; `name` is its name in the error."""
    check_array_memory(name, value)
    try:
        array = float_array(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is {brief(value)}; expected real numbers.") from None
    if not np.isfinite(array).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InputError(f"{name}{list(index) if index else ''} is {array[index]}; expected finite numbers.")
    return array


def real_number(name: str, value: Any) -> float:
    """Return `value` as one finite real number; `name` is its name in the error."""
    array = real_array(name, value)
    if array.ndim:
        raise InputError(f"{name} is {brief(value)}; expected one number.")
    return float(array)


def check_known(what: str, kind: str, names: Iterable[Any], known: Iterable[str]) -> None:
    """Raise an InputError that begins with `what` if one of `names`, each that of a `kind`, is not in `known`."""
    for name in names:
        if name not in known:
            raise InputError(f"{what}: {unknown(kind, name, known)}")


def check_unique_names(kind: str, names: Sequence[str]) -> None:
    """Raise an InputError if one of `names` is empty, invalid or given twice; `kind` is the kind of item they name."""
    for name in names:
        if name == "":
            raise InputError(f"the name of the {kind} is empty; expected a name that identifies it.")
        if why := name_problem(name):
            raise InputError(f"the {kind} {why}.")
    twice = sorted({n for n in names if list(names).count(n) > 1})
    if twice:
        raise InputError(f"there is more than one {kind} called {', '.join(twice)}; names must differ.")


class NamedVector(NDArrayOperatorsMixin, Sequence[Scalar]):
    """Vector whose elements can be read by name or by number; supports numpy arithmetic element by element."""

    def __init__(self, what: str, names: Iterable[str], values: Iterable[Scalar]) -> None:
        self.what, self.names, self.values = what, tuple(names), list(values)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            check_known(self.what, "element", [key], self.names)
            return self.values[self.names.index(key)]
        try:
            return self.values[key]
        except IndexError:
            has = f"has {len(self.values)} elements: {', '.join(self.names)}" if self.names else "is empty"
            raise InputError(f"{self.what}[{key}]: {self.what} {has}.") from None

    def __iter__(self) -> Iterator[Scalar]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        array = np.empty(len(self.values), object)
        array[:] = self.values
        return array if dtype is None else array.astype(dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Apply a numpy function element by element."""
        return getattr(ufunc, method)(*(np.asarray(x) if isinstance(x, NamedVector) else x for x in inputs), **options)

    def __repr__(self) -> str:
        return f"{self.what}({', '.join(f'{n}={x!r}' for n, x in zip(self.names, self.values, strict=True))})"


def common_shape(shapes: Iterable[tuple[int, ...]], problem: str) -> tuple[int, ...]:
    """Return the shape that `shapes` broadcast to, or raise an InputError with the text `problem`."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise InputError(problem) from None


def vector_argument(name: str, value: Any, names: Sequence[str], default: Any) -> Array:
    """Return an array (..., n) from an array, or from a mapping by name on top of the default.

    Parameters
    ----------
    name
        Name of the argument in the error.
    value
        Array, mapping by name, or None for the default.
    names
        Names of the n elements.
    default
        Values of the elements that a mapping does not give.
    """
    base = np.asarray(default, float)
    if value is None:
        return base
    if isinstance(value, Mapping):
        check_known(name, "element", value, names)
        values_by_name = {key: real_array(f"{name}[{key!r}]", x) for key, x in value.items()}
        shapes = ", ".join(f"{key} {x.shape}" for key, x in values_by_name.items())
        problem = f"{name}: the elements do not broadcast: {shapes}; expected one shape for all."
        shape = common_shape((x.shape for x in values_by_name.values()), problem)
        out = np.broadcast_to(base, (*shape, len(names))).copy()
        for key, x in values_by_name.items():
            out[..., names.index(key)] = x
        return out
    array = real_array(name, value)
    if array.ndim == 0 and len(names) == 1:
        array = array[None]
    if array.ndim == 0 or array.shape[-1] != len(names):
        raise InputError(
            f"{name} has the shape {array.shape}; expected (..., {len(names)}): {', '.join(names) or 'nothing'}."
        )
    return array


def initial_state(s: System, q0: Any, v0: Any, x0: Any) -> Array:
    """Return the initial state y, (..., size), of the system `s` from `q0`, `v0` and `x0`.

    Quaternions are normalised. States of actuators outside their limits are refused.
    """
    m = s.mechanism
    q = vector_argument("q0", q0, list(m.columns[0]), m.neutral())
    v = vector_argument("v0", v0, list(m.columns[1]), np.zeros(m.nv))
    x = vector_argument("x0", x0, [z.name for z in s.states], [z.initial for z in s.states])
    _check_limits(s, x)
    problem = f"the leading axes of the start do not broadcast: q0 {q.shape}, v0 {v.shape}, x0 {x.shape}."
    batch = common_shape((a.shape[:-1] for a in (q, v, x)), problem)
    y = np.concatenate([np.broadcast_to(a, (*batch, a.shape[-1])) for a in (q, v, x)], axis=-1)
    for i in s.quaternions:
        n = np.linalg.norm(y[..., i : i + 4], axis=-1, keepdims=True)
        if (abs(n - 1.0) > 1e-6).any():
            worst = float(n.flat[np.argmax(abs(n - 1.0))])
            name = m.columns[0][i][: -len(".qx")]
            raise InputError(
                f'q0: the quaternion of "{name}" has the length {worst:g}; expected 1. Divide it by its length.'
            )
        y[..., i : i + 4] /= n
    return y


def _check_limits(s: System, x: Array) -> None:
    """Refuse states outside their limits: the first step would clip them, so that its length decided the motion."""
    for k, (z, limits) in enumerate(zip(s.states, s.limits(), strict=True)):
        if limits is None or not all(isinstance(end, Real) for end in limits):
            continue
        low, high = map(float, limits)
        outside = np.maximum(low - x[..., k], x[..., k] - high)
        if (outside > LIMIT_TOLERANCE * (high - low)).any():
            worst = float(x[..., k].flat[np.argmax(outside)])
            raise InputError(f'x0: "{z.name}" is {worst:g} {z.unit}; expected {low:g} to {high:g}, its limits.')


def input_table(
    s: System, values_by_name: Mapping[str, Any] | History | None, interval: float | None
) -> tuple[Array, float]:
    """Return the table of inputs, (..., lines, nu), and the seconds that each line holds.

    Parameters
    ----------
    s
        The system.
    values_by_name
        Inputs by name, (..., lines) each, or (...) without an interval; or a history of them.
    interval
        Seconds that a line holds; None for constant inputs.
    """
    where = "inputs"
    if isinstance(values_by_name, History):
        where = values_by_name.where
        values_by_name, interval = values_by_name.lines(None if interval is None else duration("input_step", interval))
    values_by_name = values_by_name or {}
    if not isinstance(values_by_name, Mapping):
        raise InputError(
            f"inputs is {values_by_name!r}; expected a mapping by name: {', '.join(s.inputs) or 'there are none'}."
        )
    check_known(where, "input", values_by_name, s.inputs)
    missing = [name for name in s.inputs if name not in values_by_name and name not in s.defaults]
    if missing:
        raise InputError(
            f"{where}: nothing is given for {', '.join(missing)}; the system has the inputs {', '.join(s.inputs)}. "
            f"Give inputs={{{missing[0]!r}: ...}}, or a default value when you create the system: "
            f"bellcrank.system(..., inputs={{{missing[0]!r}: 0.0}})."
        )
    columns = []
    for name in s.inputs:
        x = real_array(f'input "{name}"', values_by_name.get(name, s.defaults.get(name)))
        columns.append(x[..., None] if interval is None or x.ndim == 0 else x)
    hold = 1e9 if interval is None else duration("input_step", interval)
    if not columns:
        return np.zeros((1, 0)), hold
    try:
        table = np.stack(np.broadcast_arrays(*columns), axis=-1)
    except ValueError:
        shapes = ", ".join(f"{n} {c.shape}" for n, c in zip(s.inputs, columns, strict=True))
        raise InputError(f"the inputs do not broadcast: {shapes}; expected (..., lines) each.") from None
    if table.shape[-2] == 0:
        raise InputError(f"the inputs {', '.join(s.inputs)} have no lines; expected at least one.")
    return table, hold


class RunArguments:
    """Starts y (runs, size), inputs (runs, lines, nu) and parameters (runs, np) of all runs, broadcast to one batch."""

    def __init__(
        self, s: System, q0: Any, v0: Any, x0: Any, fed: Any, interval: float | None, free: Any, batch: int | None
    ) -> None:
        y = initial_state(s, q0, v0, x0)
        table, self.hold = input_table(s, fed, interval)
        p = s.parameters.vector(free or {}, "simulate")
        batch_shape = () if batch is None else (count("batch", batch),)
        check_memory(f"batch={batch}", 8.0 * math.prod(batch_shape) * y.shape[-1], "take a smaller batch")
        axes = {"start": y.shape[:-1], "inputs": table.shape[:-2], "parameters": p.shape[:-1], "batch": batch_shape}
        shapes = ", ".join(f"{name} {shape}" for name, shape in axes.items())
        self.shape = common_shape(axes.values(), f"the leading axes do not broadcast: {shapes}.")
        self.runs = math.prod(self.shape)
        if self.runs == 0:
            raise InputError(f"the start has the shape {y.shape}: there is nothing to run.")
        size = 8.0 * self.runs * (y.shape[-1] + math.prod(table.shape[-2:]) + p.shape[-1])
        check_memory(f"the start of {self.runs} runs", size, "take a smaller batch")
        self.y, self.parameters = self._for_each_run(y, 1), self._for_each_run(p, 1)
        self.table = self._for_each_run(table, 2)

    def _for_each_run(self, x: Array, inner_axes: int) -> Array:
        """Return `x` for each run; `inner_axes` is the number of its trailing axes that are not axes of the batch."""
        inner = x.shape[x.ndim - inner_axes :]
        return np.broadcast_to(x, (*self.shape, *inner)).reshape(self.runs, *inner)

    def check_inputs(self, h: float, adaptive: bool) -> None:
        """Raise an InputError if inputs change within a fixed step `h`; `adaptive` runs are not limited."""
        if self.table.shape[-1] and self.hold < h * (1 - 1e-9) and not adaptive:
            raise InputError(
                f"input_step is {self.hold:g} s, shorter than the step of {h:g} s; inputs hold for whole steps."
            )


def call_user_function(what: str, function: Callable[..., Any], *args: Any, expected: str = "(t, q, v, x, u)") -> Any:
    """Return function(*args), or raise an error that states that it was being traced, and at which line.

    The function is called twice, to check that its result depends on its arguments only (graph/user_code.py).

    Parameters
    ----------
    what
        Description of the function, for messages.
    function
        The user's function.
    *args
        Its arguments.
    expected
        Its signature, for messages.
    """
    check_argument_count(what, function, len(args), expected)
    return call_checked_pure(what, function, function, *args)


def check_argument_count(what: str, function: Callable[..., Any], count: int, expected: str) -> None:
    """Raise an InputError if a function does not accept the given number of arguments.

    Parameters
    ----------
    what
        Description of the function, for messages.
    function
        The user's function.
    count
        Number of arguments.
    expected
        Its signature, for messages.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError, OverflowError):  # a function that is not written in Python may have no signature
        return
    try:
        signature.bind(*[None] * count)
    except TypeError:
        raise InputError(f"{what} takes {signature}; expected {count} arguments: {expected}.") from None


def named_scalars(what: str, value: Any, names: Sequence[str]) -> list[Scalar]:
    """Return one scalar for each name.

    Parameters
    ----------
    what
        Description of the function, for messages.
    value
        A list, an array, a mapping by name (missing names are 0), or one scalar.
    names
        Names of the expected numbers.
    """
    if isinstance(value, Mapping):
        check_known(f"{what} returned a value with an unexpected name", "element", value, names)
        value = [value.get(name, 0.0) for name in names]
    if value is None:
        raise InputError(f"{what} returned nothing; expected {expected_numbers(names)}.")
    is_sequence = (isinstance(value, Sequence) and not isinstance(value, str)) or np.ndim(value) > 0
    scalars = list(value) if is_sequence else [value]
    if len(scalars) != len(names):
        raise InputError(f"{what} returned {len(scalars)} numbers; expected {expected_numbers(names)}.")
    for name, x in zip(names, scalars, strict=True):
        if isinstance(x, (int, float, np.number)) and not np.isfinite(x):
            raise InputError(f'{what} returned {x} for "{name}"; expected finite numbers.')
        if isinstance(x, Node) and x.op in COMPARISONS:
            raise InputError(
                f'{what} returned a comparison for "{name}"; expected a number: the difference of its two sides, or '
                "where(condition, 1.0, 0.0)."
            )
        non_scalars = (bool, np.bool_, complex, np.complexfloating, np.ndarray, Sequence, set)
        if not hasattr(x, "__sub__") or isinstance(x, non_scalars):
            raise InputError(f'{what} returned {x!r} for "{name}"; expected one real number.')
    return scalars


def expected_numbers(names: Sequence[str]) -> str:
    """Return the number of `names` and the names, as text."""
    return f"{len(names)} number{'' if len(names) == 1 else 's'}: {', '.join(names) or 'none'}"
