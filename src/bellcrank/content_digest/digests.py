"""Digests of values: two values have the same digest if and only if they have the same content.

Objects are decomposed as pickle decomposes them: dataclasses into all their fields, others into their class and state.
So everything that can be sent to another process can be identified, and a field that is added later becomes part of the
digest automatically. Cached properties are left out, since they follow from the rest. A value that cannot be
decomposed, such as an open file or a generator, raises an UnidentifiedError that contains the path to it.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import struct
import types
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any

import numpy as np

from bellcrank.content_digest import function_digests

MIN_CACHED_LENGTH = 16  # elements; from this length on, the digest of a container is cached by its identity
LRU_CACHE_TYPE = type(functools.lru_cache(len))


class UnidentifiedError(Exception):
    """A value has no content that could be compared; `path` leads to it, from the outside in."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.reason = what
        self.path: list[str] = []

    def __str__(self) -> str:
        return f"{'.'.join(self.path) or 'it'} is {self.reason}"


def content_digest(value: Any, **options: Any) -> str:
    """Return the digest of `value`, 64 hexadecimal digits; `options` are those of ContentDigest."""
    return ContentDigest(**options).digest(value)


class ContentDigest:
    """Digest computer that decomposes each object only once.

    Parameters
    ----------
    instead
        By class, a function that returns what to digest in place of an object of that class.
    without
        By class, names of fields that are left out.
    """

    def __init__(
        self,
        instead: Mapping[type, Callable[[Any], Any]] | None = None,
        without: Mapping[type, Iterable[str]] | None = None,
    ) -> None:
        self._replacements = dict(instead or {})
        self._excluded_fields = {kind: frozenset(names) for kind, names in (without or {}).items()}
        self._digests: dict[int, bytes] = {}
        self._kept_alive: list[Any] = []  # keeps known objects alive, so that no other object gets their address
        self._open_depths: dict[int, int] = {}  # objects that are being decomposed, with their depth

    def digest(self, value: Any) -> str:
        """Return the digest of `value`, 64 hexadecimal digits."""
        digest = hashlib.sha256()
        try:
            self.feed(value, digest)
        except RecursionError:
            raise UnidentifiedError("nested too deeply to be taken apart") from None
        return digest.hexdigest()

    def feed(self, value: Any, digest: Any) -> None:
        """Add `value` to the hash `digest`."""
        kind = type(value)
        if (atom := ATOM_ENCODERS.get(kind)) is not None:
            digest.update(atom(value))
        elif kind in (tuple, list) and len(value) < MIN_CACHED_LENGTH:
            self._sequence(value, digest)
        else:
            digest.update(self._object_digest(value))

    def feed_named(self, label: str, value: Any, digest: Any) -> None:
        """Add `value` to the hash `digest` under `label`, which errors about it mention."""
        self.feed(label, digest)
        try:
            self.feed(value, digest)
        except UnidentifiedError as error:
            error.path.insert(0, label)
            raise

    def _object_digest(self, value: Any) -> bytes:
        """Return the digest of an object; inside of the object itself, the distance to its outer occurrence."""
        identity = id(value)
        if identity in self._digests:
            return self._digests[identity]
        if identity in self._open_depths:
            return b"cycle %d;" % (len(self._open_depths) - self._open_depths[identity])
        self._open_depths[identity] = len(self._open_depths)
        digest = hashlib.sha256()
        try:
            self._feed_object(value, digest)
        finally:
            del self._open_depths[identity]
        self._kept_alive.append(value)
        self._digests[identity] = digest.digest()
        return self._digests[identity]

    def _feed_object(self, value: Any, digest: Any) -> None:
        for kind in type(value).__mro__:
            if kind in self._replacements:
                return self.feed((kind.__qualname__, self._replacements[kind](value)), digest)
        for kinds, method in FEEDERS:
            if isinstance(value, kinds):
                return method(self, value, digest)
        if dataclasses.is_dataclass(value):
            return self._dataclass(value, digest)
        return self._feed_reduced(value, digest)

    def _sequence(self, value: Any, digest: Any) -> None:
        digest.update(b"%s %d[" % (type(value).__name__.encode(), len(value)))
        if type(value) not in (tuple, list):
            self.feed(type(value), digest)
        for x in value:
            self.feed(x, digest)

    def _mapping(self, value: Mapping[Any, Any], digest: Any) -> None:
        """Add the items in order: the order matters where entries are summed or laid out one after the other."""
        digest.update(b"mapping %d{" % len(value))
        if type(value) not in (dict, types.MappingProxyType):
            self.feed(type(value), digest)
        for key, x in value.items():
            if isinstance(key, str):
                self.feed_named(key, x, digest)
            else:
                self.feed((key, x), digest)

    def _set(self, value: Any, digest: Any) -> None:
        element_digests = []
        for x in value:
            inner = hashlib.sha256()
            self.feed(x, inner)
            element_digests.append(inner.digest())
        digest.update(b"set %d{" % len(element_digests) + b"".join(sorted(element_digests)))

    def _array(self, value: Any, digest: Any) -> None:
        value = np.asarray(value)
        digest.update(f"array {value.dtype.descr} {value.shape};".encode())
        if value.dtype.hasobject:
            for x in value.flat:
                self.feed(x, digest)
        else:
            digest.update(np.ascontiguousarray(value).tobytes())

    def _dataclass(self, value: Any, digest: Any) -> None:
        """Add all fields, and the other attributes that pickle would include."""
        kind = type(value)
        self.feed(("dataclass", kind), digest)
        names = [f.name for f in dataclasses.fields(value)]
        if not any("__reduce__" in vars(base) or "__reduce_ex__" in vars(base) for base in kind.__mro__[:-1]):
            known_names = set(names) | cached_names(kind)
            names += sorted(name for name in getattr(value, "__dict__", {}) if name not in known_names)
        left_out = {name for base in kind.__mro__ for name in self._excluded_fields.get(base, ())}
        for name in names:
            if name not in left_out:
                self.feed_named(name, getattr(value, name), digest)

    def _feed_reduced(self, value: Any, digest: Any) -> None:
        """Add the parts into which pickle decomposes the object."""
        kind = type(value)
        try:
            reduced = value.__reduce_ex__(4)
        except Exception as error:  # __reduce_ex__ of a foreign class may raise anything
            raise UnidentifiedError(f"of the class {kind.__qualname__} and cannot be compared ({error})") from None
        if isinstance(reduced, str):
            return self.feed(("global", kind.__module__, reduced), digest)
        function, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        if isinstance(state, Mapping):
            state = {name: x for name, x in state.items() if name not in cached_names(kind)}
        self.feed(("object", kind), digest)
        self.feed(function, digest)
        self.feed(tuple(arguments), digest)
        for part in (state, None if items is None else list(items), None if pairs is None else dict(pairs)):
            self.feed(part, digest)
        return None


def cached_names(kind: type) -> set[str]:
    """Return the names of the cached properties of `kind`, which follow from the rest."""
    return {name for base in kind.__mro__ for name, x in vars(base).items() if isinstance(x, functools.cached_property)}


def _framed(tag: bytes, data: bytes) -> bytes:
    return b"%s %d:%s" % (tag, len(data), data)


def _encoded_repr(value: Any) -> bytes:
    return _framed(type(value).__name__.encode(), repr(value).encode())


ATOM_ENCODERS: dict[type, Callable[[Any], bytes]] = {
    **dict.fromkeys((type(None), bool, int, type(...), type(NotImplemented)), _encoded_repr),
    str: lambda value: _framed(b"str", value.encode("utf-8", "surrogatepass")),
    bytes: lambda value: _framed(b"bytes", value),
    float: lambda value: b"float " + struct.pack("<d", value),
    complex: lambda value: b"complex " + struct.pack("<dd", value.real, value.imag),
}

FEEDERS: tuple[tuple[Any, Callable[[ContentDigest, Any, Any], None]], ...] = (
    (type, function_digests.feed_class),
    (types.FunctionType, function_digests.feed_function),
    (types.MethodType, lambda d, x, h: d.feed(("method", x.__func__, x.__self__), h)),
    (types.CodeType, function_digests.feed_code),
    (types.ModuleType, function_digests.feed_module),
    (types.CellType, function_digests.feed_cell),
    (
        (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType),
        function_digests.feed_builtin,
    ),
    (np.ufunc, lambda d, x, h: d.feed(("ufunc", x.__name__), h)),
    (functools.partial, lambda d, x, h: d.feed(("partial", x.func, x.args, x.keywords), h)),
    (LRU_CACHE_TYPE, lambda d, x, h: d.feed(("cached", x.__wrapped__), h)),
    ((staticmethod, classmethod), lambda d, x, h: d.feed((type(x).__name__, x.__func__), h)),
    (property, lambda d, x, h: d.feed(("property", x.fget, x.fset), h)),
    (functools.cached_property, lambda d, x, h: d.feed(("cached property", x.func), h)),
    ((np.ndarray, np.generic), ContentDigest._array),
    (np.dtype, lambda d, x, h: h.update(f"dtype {x.descr};".encode())),
    (Enum, lambda d, x, h: d.feed(("enum", type(x), x.name), h)),
    (PurePath, lambda d, x, h: d.feed(("path", str(x)), h)),
    ((set, frozenset), ContentDigest._set),
    ((dict, types.MappingProxyType), ContentDigest._mapping),
    ((tuple, list), ContentDigest._sequence),
)
