"""Warnings about the loops of a mechanism, each issued once for every mechanism object.

The texts come from the analysis of the loops, or are stored with a compiled kernel, so that a kernel from the cache
warns without an analysis.
"""

from __future__ import annotations

from collections.abc import Iterable

from bellcrank.errors import warn
from bellcrank.model.mechanism import Mechanism


def warn_once(mechanism: Mechanism, texts: Iterable[str]) -> None:
    """Issue warnings about a mechanism, except those that this object has issued before.

    Parameters
    ----------
    mechanism
        The mechanism, whose name precedes each text.
    texts
        Texts of the warnings, without a full stop.
    """
    issued: set[str] = mechanism.__dict__.setdefault("_issued_warnings", set())
    for text in texts:
        if text not in issued:
            warn(f'"{mechanism.name}": {text}.')
            issued.add(text)  # after the warning: one that is raised as an error is raised again by the next call
