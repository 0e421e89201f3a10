"""Check of parameter values against the actuators, forces and elements that use them.

Each part is created again with the values, and raises its own error if they are invalid. In large batches only the runs
are checked in which a number of the part is smallest, largest or NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.parameters import Free, evaluate, expressions, has_free, replace_free

Array = np.ndarray[Any, Any]
MAX_CHECKED_RUNS = 32  # largest number of runs of which every one is checked


def check_parts(parts: Iterable[Any], names: Sequence[str], p: Array, where: str) -> None:
    """Raise an InputError if parameter values make a part invalid.

    Parameters
    ----------
    parts
        Actuators, forces and elements.
    names
        Names of the parameters.
    p
        Values, (..., len(names)).
    where
        Call that is named in the error.
    """
    flat = p.reshape(-1, len(names))
    for part in parts:
        if not hasattr(part, "__post_init__") or not has_free(part):
            continue
        for run in _checked_runs(part, names, flat):
            values = dict(zip(names, flat[run].tolist(), strict=True))
            try:
                _rebuild(part, values)
            except InputError as error:
                part_parameters = {str(leaf.args[0]): None for x in expressions(part) for leaf in x.leaves}
                assignments = ", ".join(f"{name} = {values[name]:g}" for name in part_parameters)
                among = f" (run {run} of {len(flat)})" if len(flat) > 1 else ""
                raise InputError(f"{where}: the parameters {assignments}{among} make a part invalid. {error}") from None


def _rebuild(part: Any, values: Mapping[str, float]) -> None:
    replace_free(part, lambda x: evaluate(x, lambda leaf: values[leaf.args[0]]))


def _checked_runs(part: Any, names: Sequence[str], flat: Array) -> Iterator[int]:
    if len(flat) <= MAX_CHECKED_RUNS:
        yield from range(len(flat))
        return
    known = dict[Any, Any]()

    def column(leaf: Any) -> Array:
        values: Array = flat[:, names.index(leaf.args[0])]
        return values

    extreme_runs: set[int] = set()
    for x in expressions(part):
        values = _values(x, column, known, len(flat))
        extreme_runs |= {int(np.argmin(values)), int(np.argmax(values))}  # both are the first NaN, if there is one
    yield from sorted(extreme_runs)


def _values(x: Free, column: Any, known: dict[Any, Any], runs: int) -> Array:
    with np.errstate(all="ignore"):
        return np.broadcast_to(np.asarray(evaluate(x, column, known), float), runs)
