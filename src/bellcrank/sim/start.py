"""What a run starts from and is fed with: checked, broadcast to one shape, named in every complaint."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.errors import InputError, unknown
from bellcrank.sim.systems import System
from bellcrank.sim.traced import quaternions

Array = np.ndarray[Any, Any]


def positive(name: str, value: Any, unit: str = ", in seconds") -> float:
    try:
        x = float(value)
    except (TypeError, ValueError):
        x = math.nan
    if not (x > 0 and math.isfinite(x)):
        raise InputError(f"{name} is {value!r}; expected a number above zero{unit}.")
    return x


def whole(name: str, total: float, part: float, of: str) -> int:
    """total / part, which must be a whole number."""
    n = round(total / part)
    if n < 1 or abs(n * part - total) > 1e-6 * part:
        near = max(1, n)
        raise InputError(
            f"{name} is {total:g} s, which is {total / part:.6g} times the {of} of {part:g} s; expected a whole "
            f"number. Take {name} {near * part:.12g} or a {of} of {total / near:.12g}."
        )
    return n


def part(what: str, value: Any, names: Sequence[str], default: Any) -> Array:
    """An array (..., n) from an array, or from a mapping by name on top of the default."""
    base = np.asarray(default, float)
    if value is None:
        return base
    if isinstance(value, Mapping):
        for key in value:
            if key not in names:
                raise InputError(f"{what}: {unknown('element', key, names)}")
        given = {key: numbers(f"{what}[{key!r}]", x) for key, x in value.items()}
        shape = np.broadcast_shapes(*(x.shape for x in given.values())) if given else ()
        out = np.broadcast_to(base, (*shape, len(names))).copy()
        for key, x in given.items():
            out[..., names.index(key)] = x
        return out
    array = numbers(what, value)
    if array.ndim == 0 and len(names) == 1:
        array = array[None]
    if array.ndim == 0 or array.shape[-1] != len(names):
        raise InputError(
            f"{what} has the shape {array.shape}; expected (..., {len(names)}): {', '.join(names) or 'nothing'}."
        )
    return array


def numbers(what: str, value: Any) -> Array:
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        raise InputError(f"{what} is {value!r}; expected real numbers.") from None
    if not np.isfinite(array).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InputError(f"{what}{list(at) if at else ''} is {array[at]}; expected finite numbers.")
    return array


def state(s: System, q0: Any, v0: Any, x0: Any) -> Array:
    """y at the start, (..., size)."""
    m = s.mechanism
    q = part("q0", q0, list(m.columns[0]), m.neutral())
    v = part("v0", v0, list(m.columns[1]), np.zeros(m.nv))
    x = part("x0", x0, [z.name for z in s.states], [z.initial for z in s.states])
    try:
        batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], x.shape[:-1])
    except ValueError:
        shapes = f"q0 {q.shape}, v0 {v.shape}, x0 {x.shape}"
        raise InputError(f"the leading axes of the start do not broadcast: {shapes}.") from None
    y = np.concatenate([np.broadcast_to(a, (*batch, a.shape[-1])) for a in (q, v, x)], axis=-1)
    for i in quaternions(s):
        n = np.linalg.norm(y[..., i : i + 4], axis=-1, keepdims=True)
        if (abs(n - 1.0) > 1e-6).any():
            worst = float(n.flat[np.argmax(abs(n - 1.0))])
            name = m.columns[0][i][: -len(".qx")]
            raise InputError(
                f'q0: the quaternion of "{name}" has the length {worst:g}; expected 1. Divide it by its length.'
            )
        y[..., i : i + 4] /= n
    return y


def inputs(s: System, given: Mapping[str, Any] | None, interval: float | None) -> tuple[Array, float]:
    """The table of inputs, (..., lines, nu), and the seconds that each line holds."""
    given = given or {}
    if not isinstance(given, Mapping):
        raise InputError(f"inputs is {given!r}; expected a mapping by name: {', '.join(s.inputs) or 'there are none'}.")
    for name in given:
        if name not in s.inputs:
            raise InputError(f"inputs: {unknown('input', name, s.inputs)}")
    columns = []
    for name in s.inputs:
        x = numbers(f'input "{name}"', given.get(name, 0.0))
        columns.append(x[..., None] if interval is None or x.ndim == 0 else x)
    if not columns:
        return np.zeros((1, 0)), 1.0
    try:
        table = np.stack(np.broadcast_arrays(*columns), axis=-1)
    except ValueError:
        shapes = ", ".join(f"{n} {c.shape}" for n, c in zip(s.inputs, columns, strict=True))
        raise InputError(f"the inputs do not broadcast: {shapes}; expected (..., lines) each.") from None
    return table, 1e9 if interval is None else positive("input_step", interval)
