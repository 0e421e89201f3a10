"""Choice among methods by their rounding errors, and warnings about accelerations that lose digits."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.build.graphs import quantity_tree
from bellcrank.dynamics import METHODS, Method
from bellcrank.dynamics.singular_mass import MATRIX_CHECK_MAX_NV
from bellcrank.dynamics.tree_accuracy import (
    MAX_RELATIVE_ERROR,
    NEGLIGIBLE_RELATIVE_ERROR,
    acceleration_error,
    may_lose_digits,
)
from bellcrank.model import Mechanism

ERROR_FACTOR = 10.0  # multiple of the least error with which a method is still chosen if it is faster


def accurate_methods(mechanism: Mechanism, methods: Sequence[Method]) -> list[Method]:
    """Return the methods whose accelerations are about as accurate as those of the best one.

    Parameters
    ----------
    mechanism
        The mechanism.
    methods
        Methods of forward dynamics.
    """
    errors = [rounding_error(mechanism, m)[0] for m in methods]
    most = max(NEGLIGIBLE_RELATIVE_ERROR, ERROR_FACTOR * min(errors))
    return [m for m, error in zip(methods, errors, strict=True) if error <= most]


def rounding_doubts(mechanism: Mechanism, method: Method) -> list[str]:
    """Return the text of a warning if accelerations of `mechanism` by `method` lose digits."""
    error, coordinate = rounding_error(mechanism, method)
    if error <= MAX_RELATIVE_ERROR:
        return []
    joint = next(link.joint.name for link in mechanism.tree.links if coordinate in link.v_index)
    size = f"about {error:.0e}" if error < 1.0 else "more than their size"
    return [
        f"accelerations are not exact: rounding changes them by {size} (relative, expected at most "
        f'{MAX_RELATIVE_ERROR:.0e}), most of all at joint "{joint}". Sizes or masses of bodies differ by many orders '
        "of magnitude, and a small body carries a large one. Give small bodies the inertia of parts that can carry "
        "such a load, give their joints an armature, lock them, or model only one of the sizes; otherwise rely only "
        "on the remaining digits"
    ]


def rounding_error(mechanism: Mechanism, method: Method) -> tuple[float, int]:
    """Return the estimated relative error of accelerations by `method`, and the coordinate where it is largest.

    It is 0 for a `mechanism` of usual sizes, and for one with loops, whose analysis has an estimate of its own.
    """
    tree = mechanism.tree
    if mechanism.loops or tree.has_massive_bodies or not mechanism.nv:
        return 0.0, 0
    known: dict[str, tuple[float, int]] = mechanism.__dict__.setdefault("_rounding_errors", {})
    name = _measured_method(mechanism, method)
    if name not in known:
        plain = mechanism.at() if mechanism.parameters else mechanism
        is_usual = not name or not may_lose_digits(plain.tree, plain.random(seed=0)[0].tolist())
        known[name] = (0.0, 0) if is_usual else _measured_error(plain, METHODS[name])
    return known[name]


def _measured_error(mechanism: Mechanism, method: Method) -> tuple[float, int]:
    tree = quantity_tree(mechanism, "forward_dynamics", method)
    return acceleration_error(mechanism, tree, method.function("forward_dynamics"))


def _measured_method(mechanism: Mechanism, method: Method) -> str:
    """Return the name of the method that is measured for `method`: one of the package, and fast enough."""
    is_own = isinstance(method.module, str) and "forward_dynamics" in method.solves
    is_small = mechanism.nv <= MATRIX_CHECK_MAX_NV
    names = [method.name] if is_own and is_small else []
    names += ["aba", *(["crba"] if is_small else [])]
    return next((name for name in names if METHODS[name].applies(mechanism.tree, "forward_dynamics")), "")
