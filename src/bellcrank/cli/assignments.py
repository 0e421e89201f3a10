"""Values of coordinates that a command line names, NAME=NUMBER."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bellcrank.errors import InputError
from bellcrank.model import Mechanism


def assignments_of(m: Mechanism, option: str, texts: list[str], unit: str) -> dict[str, float]:
    """Return the values by name that `texts`, NAME=NUMBER, give; `m`, `option` and `unit` are for errors."""
    values = {}
    for text in texts:
        name, sign, value = text.rpartition("=")
        if not sign:
            raise InputError(f'{option} is "{text}"; expected NAME=NUMBER, as in {option} {m.columns[0][0]}=1.5.')
        values[name] = checked_number(f"{option} {name}", value, unit)
    return values


def checked_number(what: str, text: str, unit: str) -> float:
    """Return the number `text`; `what` and `unit` are for errors."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f'{what}: "{text}" is not a number; expected {unit}.') from None


def closed(m: Mechanism, q: Any, moved: Iterable[str]) -> Any:
    """Return the positions of `m` nearest to `q` that close its loops; joints with `moved` coordinates keep theirs."""
    names = list(moved)
    fixed = [j.name for j in m.own_joints if any(x == j.name or x.startswith(f"{j.name}.") for x in names)]
    return m.assemble(q, fixed=fixed)[0]
