"""A vector whose elements have names: q["boom"] and q[1] are the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bellcrank.errors import InputError, unknown
from bellcrank.scalar import Scalar


class Named(Sequence[Scalar]):
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
            raise InputError(
                f"{self.what}[{key}]: {self.what} has {len(self.values)} elements: {', '.join(self.names)}."
            ) from None

    def __iter__(self) -> Iterator[Scalar]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"{self.what}({', '.join(f'{n}={x!r}' for n, x in zip(self.names, self.values, strict=True))})"
