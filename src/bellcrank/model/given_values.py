"""Check of the values given to free parameters: the checks of check.py on nominal values, for whole batches at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bellcrank.errors import InputError
from bellcrank.model.check import NEGLIGIBLE, ROUNDING
from bellcrank.model.parts import Array, Body, Joint, Spring
from bellcrank.parameters import depends, evaluated, expressions, nominal, replaced

Mechanism: TypeAlias = Any  # model/mechanism.py imports this module


class ValueDoubt(NamedTuple):
    """A property of a part with its values and whether they are valid."""

    what: str  # the property, in words
    value: Array  # for each element of the batch, or one for all
    good: Array
    expected: str = "zero or more"


def possible(m: Mechanism, names: Sequence[str], p: Array, where: str) -> None:
    """Raise an InputError where parameter values give a part impossible numbers.

    Parameters
    ----------
    m
        The mechanism.
    names
        Names of the parameters.
    p
        Their values, (..., len(names)).
    where
        The element, for the message.
    """
    flat, known = p.reshape(-1, len(names)), dict[Any, Any]()

    def at(part: Any) -> Any:
        return replaced(part, lambda x: evaluated(x, lambda leaf: flat[:, names.index(leaf.args[0])], known))

    for kind, parts, doubts in (("body", m.bodies, _body), ("joint", m.joints, _joint), ("spring", m.springs, _spring)):
        for part in filter(depends, parts):
            with np.errstate(all="ignore"):
                found = list(doubts(at(part), nominal(part)))
            for doubt in found:
                bad = np.flatnonzero(~np.broadcast_to(doubt.good, len(flat)))
                if len(bad):
                    run = int(bad[0])
                    own = {str(leaf.args[0]): None for x in expressions(part) for leaf in x.leaves}
                    given = ", ".join(f"{name} = {flat[run, names.index(name)]:g}" for name in own)
                    among = f" (run {run} of {len(flat)})" if len(flat) > 1 else ""
                    value = np.broadcast_to(doubt.value, len(flat))[run]
                    raise InputError(
                        f'{where}: the parameters {given}{among} give {kind} "{part.name}" {doubt.what} {value:.4g}; '
                        f"expected {doubt.expected}."
                    )


def _body(b: Body, plain: Body) -> Iterator[ValueDoubt]:
    yield _at_least_zero("mass", b.mass)
    for x in b.com:
        yield ValueDoubt("in its centre of mass", np.asarray(x), np.isfinite(x), "finite numbers")
    moments, before = _moments(b), _moments(plain)
    scale = np.abs(moments).max(axis=-1)
    least = moments[..., 0]
    yield ValueDoubt("the principal moment of inertia", least, least >= -np.maximum(1e-9 * scale, NEGLIGIBLE))
    if _gap(before) <= max(ROUNDING * np.abs(before).max(), NEGLIGIBLE):  # otherwise it was read so, with a warning
        yield ValueDoubt(
            "a principal moment of inertia greater than the sum of the other two, by",
            _gap(moments),
            _gap(moments) <= np.maximum(ROUNDING * scale, NEGLIGIBLE),
            "a physically possible inertia",
        )


def _joint(j: Joint, plain: Joint) -> Iterator[ValueDoubt]:
    for what in ("armature", "damping", "friction"):
        yield _at_least_zero(what, getattr(j, what))
    speed = np.asarray(j.friction_speed)
    yield ValueDoubt("the friction_speed", speed, speed > 0.0, "more than zero")


def _spring(s: Spring, plain: Spring) -> Iterator[ValueDoubt]:
    for what in ("length", "damping"):
        yield _at_least_zero(what, getattr(s, what))


def _at_least_zero(what: str, value: Any) -> ValueDoubt:
    return ValueDoubt(f"the {what}", np.asarray(value), np.asarray(value) >= 0.0)


def _moments(b: Body) -> Array:
    """Return the sorted principal moments; non-finite elements are replaced so that the inertia is invalid."""
    each = np.broadcast_arrays(*(np.asarray(x, float) for row in b.inertia for x in row))
    I = np.stack(each, axis=-1).reshape(*each[0].shape, 3, 3)
    return np.linalg.eigvalsh(np.where(np.isfinite(I), I, -1.0))


def _gap(moments: Array) -> Array:
    return np.asarray(moments[..., 2] - moments[..., 0] - moments[..., 1])
