"""Golden numbers: JSON files of computed values, each with the place that computes it.

`BELLCRANK_UPDATE=1 python -m pytest tests/golden` rewrites the files; read the diff before you commit it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bellcrank.parameters import nominal

HERE = Path(__file__).resolve().parent
UPDATE = bool(os.environ.get("BELLCRANK_UPDATE"))
DIGITS = 10  # in the files


def check(file: str, key: str, values: Any, same: Callable[[float, float], bool]) -> None:
    """Compare nested values with those under `key` of a file; `same` compares two numbers."""
    path = HERE / file
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    new = plain(values)
    if UPDATE:
        known[key] = new
        rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(known.items()))
        path.write_text(f"{{\n{rows}\n}}\n", "utf-8")
    differences = list(compared(key, known[key], new, same))
    assert not differences, f"{file} has other numbers; BELLCRANK_UPDATE=1 writes it anew:\n" + "\n".join(differences)


def plain(x: Any) -> Any:
    """Return nested values as JSON has them, with rounded numbers."""
    if x is None or isinstance(x, str | bool):
        return x
    if isinstance(x, Mapping):
        return {str(name): plain(value) for name, value in x.items()}
    if isinstance(x, Sequence) or (hasattr(x, "tolist") and getattr(x, "ndim", 0)):
        return [plain(value) for value in x]
    number = float(nominal(x))
    return float(f"{number:.{DIGITS}g}") if math.isfinite(number) else str(number)


def compared(place: str, old: Any, new: Any, same: Callable[[float, float], bool]) -> Any:
    """Yield a line for each difference between nested values."""
    if isinstance(old, float | int) and isinstance(new, float | int) and not isinstance(old, bool):
        if not same(float(old), float(new)):
            yield f"{place}: {old} -> {new}"
    elif isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        for name in old:
            yield from compared(f"{place}.{name}", old[name], new[name], same)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for k, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from compared(f"{place}[{k}]", a, b, same)
    elif old != new:
        yield f"{place}: {old} -> {new}"
