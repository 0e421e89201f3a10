"""Arguments of users: errors that name the invalid one, elements of sequences, and random seeds.

If a call of a decorated function fails, its arguments are compared with their annotations, and the first one that does
not fit is named: an error of Python or numpy becomes an InputError. Calls that succeed are not inspected, so this costs
nothing and rejects nothing that works. Further conditions on an argument (finite, above zero, an existing name) are
checked by the function itself. Annotations that are aliases, or names that only type checkers resolve, are not checked.
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from bellcrank.buffers import UNCHECKED_BYTES
from bellcrank.errors import BellcrankError, InputError, brief
from bellcrank.process_state import syntax_tree
from bellcrank.scalar import is_real, is_scalar, is_whole

Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)
LIST_ANNOTATIONS = ("Sequence", "Iterable", "tuple", "list")
NUMBER_ANNOTATIONS = ("float", "int", "bool", "Scalar", "Array", "ArrayLike", "Number", "Sequence", "Any", "object")
MAX_INTEGER = 10**300  # larger integers are not representable as floats


def explain_argument_errors(function: Function) -> Function:
    """Wrap a `function` so that a failing call names the argument that does not fit."""

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except BellcrankError:
            raise
        except Exception as error:
            if (why := misfit_text(function, args, named) or _memory_text(error, function, args, named)) is not None:
                raise InputError(why) from error
            raise

    return call  # type: ignore[return-value]


def explain_methods(*names: str) -> Callable[[Class], Class]:
    """Return a class decorator that applies `explain_argument_errors` to the methods with these `names`."""

    def decorate(kind: Class) -> Class:
        for name in names:
            member = inspect.getattr_static(kind, name)
            inner = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            wrapped = explain_argument_errors(inner)
            setattr(kind, name, type(member)(wrapped) if inner is not member else wrapped)
        return kind

    return decorate


def misfit_text(function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> str | None:
    """Describe the first argument that does not fit its annotation; None if all fit.

    Parameters
    ----------
    function
        The function.
    args
        Positional arguments.
    named
        Keyword arguments.
    """
    bound = _bound(function, args, named)
    if bound is None:
        return None
    called = function.__qualname__.removesuffix(".__init__")
    for p in bound.signature.parameters.values():
        if p.name not in bound.arguments or p.name == "self" or not isinstance(p.annotation, str):
            continue
        value, kind = bound.arguments[p.name], syntax_tree(p.annotation, mode="eval").body
        several = p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        for x in (value.values() if isinstance(value, dict) else value) if several else (value,):
            if x is not p.default and not _fits(x, kind, function.__globals__):
                return f"{called}: {p.name} is {brief(x)}; expected {' or '.join(_expected_words(kind))}."
    return None


def _bound(
    function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]
) -> inspect.BoundArguments | None:
    """Return the arguments by name; None if some are missing or surplus, which Python's own message names."""
    try:
        return inspect.signature(function).bind(*args, **named)
    except TypeError:
        return None


def _memory_text(
    error: Exception, function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]
) -> str | None:
    """Describe the largest array among the arguments of a call that ran out of memory; None if none is large."""
    bound = _bound(function, args, named)
    if not isinstance(error, MemoryError) or bound is None:
        return None
    arrays = list(_named_arrays(bound.arguments))
    name, size = max(((name, 8 * x.size) for name, x in arrays), key=lambda pair: pair[1], default=("", 0))
    if size <= UNCHECKED_BYTES:
        return None
    called = function.__qualname__.removesuffix(".__init__")
    return (
        f"{called}: {name} is an array of {size / 1e9:.1f} GB, for which the memory is too small; take a smaller one."
    )


def _named_arrays(values: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Yield the arrays among `values` with their names, also those in mappings."""
    for name, x in values.items():
        if isinstance(x, np.ndarray):
            yield name, x
        elif isinstance(x, Mapping):
            yield from ((f"{name}[{brief(key)}]", inner) for key, inner in x.items() if isinstance(inner, np.ndarray))


def _fits(x: Any, annotation: ast.expr, namespace: Mapping[str, Any]) -> bool:
    if isinstance(annotation, ast.BinOp):
        return _fits(x, annotation.left, namespace) or _fits(x, annotation.right, namespace)
    if isinstance(annotation, ast.Constant):
        return x is None if annotation.value is None else True
    name, inner = _name(annotation), _type_arguments(annotation)
    if name in ANNOTATION_CHECKS:
        if not ANNOTATION_CHECKS[name][0](x):
            return False
        of_others = name in LIST_ANNOTATIONS and inner and _name(inner[0]) not in NUMBER_ANNOTATIONS
        if of_others and getattr(x, "ndim", 0) == 1:
            # An array of numbers, even an empty one, is not a list of other things.
            return not isinstance(x, memoryview) and bool(x.dtype.kind in "OUS")
        return all(_fits(one, part, namespace) for one, part in _checked_items(x, name, inner))
    annotated_type = namespace.get(name)
    try:
        return isinstance(x, annotated_type) if isinstance(annotated_type, type) and annotated_type is not Any else True
    except TypeError:  # a protocol without isinstance checks
        return True


def _checked_items(x: Any, name: str, inner: list[ast.expr]) -> list[tuple[Any, ast.expr]]:
    """Return the items to check: names in mappings and lists, which must be str. Numbers may be arrays: no check."""
    if name in ("Mapping", "dict") and inner and _name(inner[0]) == "str":
        return [(key, inner[0]) for key in x]
    if name == "tuple" and len(inner) != 2:
        return []  # its items have different types
    if name in LIST_ANNOTATIONS and inner and _name(inner[0]) not in ("float", "Scalar", "Array"):
        return [(one, inner[0]) for one in (x if isinstance(x, tuple | list | np.ndarray) else ())]
    return []


def _name(kind: ast.expr) -> str:
    if isinstance(kind, ast.Subscript):
        return _name(kind.value)
    if isinstance(kind, ast.Attribute):
        return kind.attr
    return kind.id if isinstance(kind, ast.Name) else ""


def _type_arguments(kind: ast.expr) -> list[ast.expr]:
    if not isinstance(kind, ast.Subscript):
        return []
    return kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]


def _expected_words(kind: ast.expr) -> list[str]:
    if isinstance(kind, ast.BinOp):
        return list(dict.fromkeys([*_expected_words(kind.left), *_expected_words(kind.right)]))
    if isinstance(kind, ast.Constant):
        return [repr(kind.value)]
    name = _name(kind)
    if name in ANNOTATION_CHECKS:
        return [ANNOTATION_CHECKS[name][1]]
    return [f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}"]


def _is_number(x: Any) -> bool:
    if is_whole(x):
        return _is_integer(x)
    if isinstance(x, np.generic | np.ndarray):
        return x.ndim == 0 and x.dtype.kind in "iuf" and not np.ma.is_masked(x)
    return is_real(x) or (getattr(x, "ndim", None) == 0 and not isinstance(x, memoryview))


def _is_integer(x: Any) -> bool:
    return is_whole(x) and abs(int(x)) < MAX_INTEGER


def _is_array(x: Any) -> bool:
    try:
        return np.asarray(x).dtype.kind in "fiub" and np.size(x) > 0 and np.ndim(x) > 0
    except Exception:  # it is not convertible to an array
        return False


def _is_scalar(x: Any) -> bool:
    if isinstance(x, Real | np.generic):
        return _is_number(x)
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "iufO"
    return is_scalar(x)


def _is_path(x: Any) -> bool:
    return isinstance(x, str | os.PathLike) and "\0" not in os.fspath(x)


def _is_list(x: Any) -> bool:
    if is_matrix_view(x):
        return False
    return (isinstance(x, Sequence) and not isinstance(x, str | bytes)) or getattr(x, "ndim", 0) > 0


def _is_iterable(x: Any) -> bool:
    several = isinstance(x, Iterable) and not isinstance(x, str | bytes) and not is_matrix_view(x)
    return several and getattr(x, "ndim", 1) > 0


ANNOTATION_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "str": (lambda x: isinstance(x, str) and "\0" not in x, "a text (str) without NUL"),
    "float": (_is_number, "a number"),
    "int": (_is_integer, "a whole number"),
    "bool": (lambda x: isinstance(x, bool | np.bool_), "True or False"),
    "Mapping": (lambda x: isinstance(x, Mapping), "a mapping, {name: ...}"),
    "dict": (lambda x: isinstance(x, Mapping), "a mapping, {name: ...}"),
    "Sequence": (_is_list, "a list"),
    "tuple": (_is_list, "a tuple"),
    "list": (_is_list, "a list"),
    "Iterable": (_is_iterable, "a list"),
    "Callable": (callable, "a function"),
    "Array": (_is_array, "an array of numbers"),
    "ArrayLike": (_is_array, "an array of numbers"),
    "Scalar": (_is_scalar, "a number"),
    "Path": (_is_path, "the path of a file"),
    "PathLike": (_is_path, "the path of a file"),
    "Any": (lambda x: True, "anything"),
    "object": (lambda x: True, "anything"),
}


# Iterable types without an order, or whose elements are characters.
NOT_SEQUENCES = (str, bytes, bytearray, set, frozenset, Mapping)


def sequence_elements(value: Any) -> list[Any] | None:
    """Return the elements of an ordered `value` as a list, or None if it is something else.

    The elements of a matrix, an array or a memoryview of two dimensions, are its rows.
    """
    if isinstance(value, NOT_SEQUENCES) or not isinstance(value, Iterable):
        return None
    try:
        # Python cannot iterate over a memoryview of several dimensions, but numpy can.
        return list(np.asarray(value) if is_matrix_view(value) else value)
    except (TypeError, ValueError, OverflowError):  # an array without dimensions, or a memoryview that was released
        return None


def is_matrix_view(value: Any) -> bool:
    """Return True if `value` is a memoryview without or of several dimensions, over which Python cannot iterate."""
    try:
        return isinstance(value, memoryview) and value.ndim != 1
    except ValueError:  # it was released
        return True


def generator(seed: int | None) -> np.random.Generator:
    """Return numpy's random generator for an integer `seed` of at least 0, or for a fresh seed if it is None."""
    return np.random.default_rng(None if seed is None else checked_seed(seed))


def checked_seed(seed: Any) -> int:
    """Return the `seed` as an int; raise InputError if it is not an integer of at least 0."""
    if not is_whole(seed) or seed < 0:
        raise InputError(f"seed is {brief(seed)}; expected a whole number of at least 0.")
    return int(seed)
