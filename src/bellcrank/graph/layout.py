"""Where in the state of a program each thing lies, and why a run stopped (its field "status")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.scalar import Scalar

RUNNING, FINISHED, NOT_FINITE, TOO_SMALL, EVENT, REPARTITION, NOT_CLOSED, TOO_MANY = range(8)
NEVER = 1e300  # a time that does not come
HUGE = 1e150  # a state beyond this has left physics


class Layout:
    """Fields by name, one after the other; a size of 1 is a scalar, anything else a list."""

    def __init__(self, fields: Mapping[str, int | tuple[int]]) -> None:
        self.places: dict[str, int | slice] = {}
        at = 0
        for name, size in fields.items():
            width = size if isinstance(size, int) else size[0]
            self.places[name] = at if size == 1 else slice(at, at + width)
            at += width
        self.size = at

    def read(self, s: Sequence[Scalar]) -> dict[str, Any]:
        return {name: s[place] if isinstance(place, int) else list(s[place]) for name, place in self.places.items()}

    def written(self, values: Mapping[str, Any]) -> list[Scalar]:
        flat: list[Scalar] = []
        for name, place in self.places.items():
            flat += [values[name]] if isinstance(place, int) else list(values[name])
        return flat

    def array(self, lanes: int, values: Mapping[str, Any], xp: Any = np, dtype: str = "float64") -> Any:
        """The state of as many lanes, (size, lanes), from numbers or arrays (lanes,) or (lanes, width); else zero.

        Arrays of one lane, (1, width), are of all; what there is no field for is left out. xp: numpy, or what makes
        arrays elsewhere.
        """
        out = xp.zeros((self.size, lanes), dtype)
        for name, value in values.items():
            if name in self.places:
                out[self.places[name]] = xp.asarray(value).T if np.ndim(value) else value
        return out

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def put(self, state: Any, values: Mapping[str, Any]) -> Any:
        """A copy of one lane's state with some fields changed."""
        out = state.copy()
        for name, x in values.items():
            if name in self.places:
                out[self.places[name]] = x
        return out

    def span(self, name: str) -> slice:
        """Of a field that is a list."""
        found = self.places[name]
        assert isinstance(found, slice)
        return found

    def place(self, name: str) -> int:
        found = self.places[name]
        assert isinstance(found, int)
        return found


def size(width: int) -> int | tuple[int]:
    """A list in a layout, also where it has one element or none."""
    return (width,)
