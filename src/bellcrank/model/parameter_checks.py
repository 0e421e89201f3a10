"""Check of values given to free parameters: the checks of part_checks.py on nominal values, for whole batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bellcrank.errors import InputError
from bellcrank.model.part_checks import NEGLIGIBLE_MOMENT, RELATIVE_ROUNDING
from bellcrank.model.parts import Array, Body, Joint, Spring
from bellcrank.parameters import evaluate, expressions, has_free, nominal, replace_free

Mechanism: TypeAlias = Any  # model/mechanism.py imports this module


class ValueCheck(NamedTuple):
    """A property of a part with its values and whether they are valid."""

    description: str  # the property, in words
    value: Array  # for each element of the batch, or one for all
    is_valid: Array
    expected: str = "zero or more"


def check_values(m: Mechanism, names: Sequence[str], p: Array, where: str) -> None:
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
    values, evaluated_expressions = p.reshape(-1, len(names)), dict[Any, Any]()

    def with_values(part: Any) -> Any:
        return replace_free(
            part, lambda x: evaluate(x, lambda leaf: values[:, names.index(leaf.args[0])], evaluated_expressions)
        )

    for kind, parts, doubts in (
        ("body", m.bodies, _body_checks),
        ("joint", m.joints, _joint_checks),
        ("spring", m.springs, _spring_checks),
    ):
        for part in filter(has_free, parts):
            with np.errstate(all="ignore"):
                checks = list(doubts(with_values(part), nominal(part)))
            for doubt in checks:
                bad = np.flatnonzero(~np.broadcast_to(doubt.is_valid, len(values)))
                if len(bad):
                    run = int(bad[0])
                    part_parameters = {str(leaf.args[0]): None for x in expressions(part) for leaf in x.leaves}
                    parameter_text = ", ".join(
                        f"{name} = {values[run, names.index(name)]:g}" for name in part_parameters
                    )
                    among = f" (run {run} of {len(values)})" if len(values) > 1 else ""
                    value = np.broadcast_to(doubt.value, len(values))[run]
                    raise InputError(
                        f'{where}: the parameters {parameter_text}{among} give {kind} "{part.name}" '
                        f"{doubt.description} {value:.4g}; expected {doubt.expected}."
                    )


def _body_checks(b: Body, plain: Body) -> Iterator[ValueCheck]:
    yield _not_negative("mass", b.mass)
    for x in b.com:
        yield ValueCheck("in its centre of mass", np.asarray(x), np.isfinite(x), "finite numbers")
    moments, nominal_moments = _principal_moments(b), _principal_moments(plain)
    scale = np.abs(moments).max(axis=-1)
    least = moments[..., 0]
    yield ValueCheck("the principal moment of inertia", least, least >= -np.maximum(1e-9 * scale, NEGLIGIBLE_MOMENT))
    if _triangle_excess(nominal_moments) <= max(
        RELATIVE_ROUNDING * np.abs(nominal_moments).max(), NEGLIGIBLE_MOMENT
    ):  # otherwise it was read so, with a warning
        yield ValueCheck(
            "a principal moment of inertia greater than the sum of the other two, by",
            _triangle_excess(moments),
            _triangle_excess(moments) <= np.maximum(RELATIVE_ROUNDING * scale, NEGLIGIBLE_MOMENT),
            "a physically possible inertia",
        )


def _joint_checks(j: Joint, plain: Joint) -> Iterator[ValueCheck]:
    for what in ("armature", "damping", "friction"):
        yield _not_negative(what, getattr(j, what))
    speed = np.asarray(j.friction_speed)
    yield ValueCheck("the friction_speed", speed, speed > 0.0, "more than zero")


def _spring_checks(s: Spring, plain: Spring) -> Iterator[ValueCheck]:
    for what in ("length", "damping"):
        yield _not_negative(what, getattr(s, what))


def _not_negative(what: str, value: Any) -> ValueCheck:
    return ValueCheck(f"the {what}", np.asarray(value), np.asarray(value) >= 0.0)


def _principal_moments(b: Body) -> Array:
    """Return the sorted principal moments; non-finite elements are replaced so that the inertia is invalid."""
    each = np.broadcast_arrays(*(np.asarray(x, float) for row in b.inertia for x in row))
    I = np.stack(each, axis=-1).reshape(*each[0].shape, 3, 3)
    return np.linalg.eigvalsh(np.where(np.isfinite(I), I, -1.0))


def _triangle_excess(moments: Array) -> Array:
    return np.asarray(moments[..., 2] - moments[..., 0] - moments[..., 1])
