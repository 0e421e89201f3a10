"""A check of generated code while it is written: every element of every output is stored.

An emitter notes each store as it writes it down, and asks at the end. What nothing stores would be whatever lay in the
caller's memory, which may look like a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

import numpy as np

from bellcrank.errors import CompileError

MOST_SHOWN = 5  # elements in a message


class Coverage:
    """Elements of outputs that a function stores."""

    def __init__(self, function: str, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """function: its name, for the message. shapes: of all outputs, by name."""
        self.function = function
        self.stored = {name: np.zeros(prod(shape), bool) for name, shape in shapes.items()}

    def note(self, output: str, elements: Iterable[int]) -> None:
        """Note that these elements, counted flat, are stored."""
        known = self.stored.get(output, np.zeros(0, bool))
        places = elements if isinstance(elements, np.ndarray) else np.fromiter(elements, int)
        if places.size and (places.min() < 0 or places.max() >= len(known)):
            raise CompileError(f'{self.function}: its code stores to "{output}" outside of it{BUG}')
        known[places] = True

    def check(self) -> None:
        """Raise CompileError if an element of an output is not stored."""
        for name, stored in self.stored.items():
            missing = np.flatnonzero(~stored)
            if len(missing):
                some = ", ".join(map(str, missing[:MOST_SHOWN])) + (", ..." if len(missing) > MOST_SHOWN else "")
                raise CompileError(
                    f'{self.function}: its code does not store {len(missing)} of {len(stored)} elements of "{name}" '
                    f"({some}){BUG}"
                )


BUG = "; this is a bug of bellcrank, and no code was made. Please report it, with what you asked for."
