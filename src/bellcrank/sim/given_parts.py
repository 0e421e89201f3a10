"""Check of parameter values against the actuators, forces and elements that use them.

Each part is created again with the values, and raises its own error if they are invalid. In large batches only the runs
are checked in which a number of the part is smallest, largest or NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.parameters import Free, depends, evaluated, expressions, replaced

Array = np.ndarray[Any, Any]
ALL = 32  # largest number of runs of which every one is checked


def possible_parts(parts: Iterable[Any], names: Sequence[str], p: Array, where: str) -> None:
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
        if not hasattr(part, "__post_init__") or not depends(part):
            continue
        for run in _asked(part, names, flat):
            values = dict(zip(names, flat[run].tolist(), strict=True))
            try:
                _made_again(part, values)
            except InputError as error:
                own = {str(leaf.args[0]): None for x in expressions(part) for leaf in x.leaves}
                given = ", ".join(f"{name} = {values[name]:g}" for name in own)
                among = f" (run {run} of {len(flat)})" if len(flat) > 1 else ""
                raise InputError(f"{where}: the parameters {given}{among} make a part invalid. {error}") from None


def _made_again(part: Any, values: Mapping[str, float]) -> None:
    replaced(part, lambda x: evaluated(x, lambda leaf: values[leaf.args[0]]))


def _asked(part: Any, names: Sequence[str], flat: Array) -> Iterator[int]:
    if len(flat) <= ALL:
        yield from range(len(flat))
        return
    known = dict[Any, Any]()

    def column(leaf: Any) -> Array:
        found: Array = flat[:, names.index(leaf.args[0])]
        return found

    found: set[int] = set()
    for x in expressions(part):
        values = _values(x, column, known, len(flat))
        found |= {int(np.argmin(values)), int(np.argmax(values))}  # both are the first NaN, if there is one
    yield from sorted(found)


def _values(x: Free, column: Any, known: dict[Any, Any], runs: int) -> Array:
    with np.errstate(all="ignore"):
        return np.broadcast_to(np.asarray(evaluated(x, column, known), float), runs)
