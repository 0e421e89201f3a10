"""Summary lines at the end of a run: how many robot files were found, compared and refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

KINDS = ("MJCF file", "URDF file")


def summary(recorded: Iterable[tuple[str, object]]) -> list[str]:
    """Return a line for each kind of file. recorded: (kind, result) of every test; other results are ignored."""
    found: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for kind, result in recorded:
        if kind in found:
            found[kind][str(result)] += 1
    return [
        f"{kind}s: {results.total()} looked at; " + ", ".join(f"{n} {what}" for what, n in results.most_common())
        for kind, results in found.items()
        if results
    ]
