"""Store coverage check for generated code: every element of every output is stored.

An emitter notes each store when it writes it, and calls `check` at the end. An element that is not stored would return
whatever was in the memory of the caller, which may look like a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

import numpy as np

from bellcrank.errors import CompileError

MAX_LISTED_ELEMENTS = 5  # elements listed in a message


class Coverage:
    """The output elements that a function stores."""

    def __init__(self, function: str, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Start with no element stored.

        Parameters
        ----------
        function
            Name of the function, for the message.
        shapes
            Shapes of all outputs, by name.
        """
        self.function = function
        self.stored = {name: np.zeros(prod(shape), bool) for name, shape in shapes.items()}

    def note(self, output: str, elements: Iterable[int]) -> None:
        """Record that `elements` (flat indices) of `output` are stored."""
        known = self.stored.get(output, np.zeros(0, bool))
        places = elements if isinstance(elements, np.ndarray) else np.fromiter(elements, int)
        if places.size and (places.min() < 0 or places.max() >= len(known)):
            raise CompileError(f'{self.function}: the generated code stores outside of "{output}"{REPORT_BUG}')
        known[places] = True

    def check(self) -> None:
        """Raise CompileError if an element of an output is not stored."""
        for name, stored in self.stored.items():
            missing = np.flatnonzero(~stored)
            if len(missing):
                some = ", ".join(map(str, missing[:MAX_LISTED_ELEMENTS])) + (
                    ", ..." if len(missing) > MAX_LISTED_ELEMENTS else ""
                )
                raise CompileError(
                    f"{self.function}: the generated code does not store {len(missing)} of {len(stored)} elements "
                    f'of "{name}" ({some}){REPORT_BUG}'
                )


REPORT_BUG = "; this is a bug of bellcrank, and no code was generated. Please report it, with the call that caused it."
