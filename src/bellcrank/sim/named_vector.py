"""A vector whose elements have names: q["boom"] and q[1] are the same, and 2.0 * q is an array, as with numpy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from bellcrank.errors import InputError, unknown
from bellcrank.scalar import Scalar


class Named(NDArrayOperatorsMixin, Sequence[Scalar]):
    def __init__(self, what: str, names: Iterable[str], values: Iterable[Scalar]) -> None:
        self.what, self.names, self.values = what, tuple(names), list(values)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self.names:
                raise InputError(f"{self.what}: {unknown('element', key, self.names)}")
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
        """Arithmetic and numpy's functions, element by element."""
        return getattr(ufunc, method)(*(np.asarray(x) if isinstance(x, Named) else x for x in inputs), **options)

    def __repr__(self) -> str:
        return f"{self.what}({', '.join(f'{n}={x!r}' for n, x in zip(self.names, self.values, strict=True))})"
