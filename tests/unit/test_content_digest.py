"""Content digests change with code and numbers, and not with names, comments and processes."""

from __future__ import annotations

import functools
import math
import os
import subprocess
import sys
import types
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bellcrank.content_digest import ContentDigest, UnidentifiedError, content_digest, function_digests

SOURCE = '''
import math
import numpy as np
import gains

NUMBER = 2.0
TABLE = {"a": [1.0, 2.0]}


class Base:
    rate = 1.0


class Law(Base):
    """Says what it does."""

    def __init__(self, k):
        self.k = k

    @property
    def twice(self):
        return 2.0 * self.k

    def __call__(self, t):
        return self.twice * self.rate * t


def helper(x):
    return NUMBER * x


def deep(x):
    def inner(y):
        return helper(y) + TABLE["a"][0]

    return inner(x)


def made(scale, power=2):
    def law(t, rng, offset=0.5):
        """A docstring."""
        words = {"x", "y", "z"}
        return scale * np.sin(t) ** power + deep(t) + gains.SPRING * math.pi + offset + len(words)

    return law


def late(x):
    import gains

    return gains.spring(x)


def again(n):
    return 1 if n == 0 else again(n - 1)


law = made(3.0)
thing = Law(4.0)
bound = thing.__call__
'''
GAINS = "SPRING = 5.0\nDAMPING = 1.0\ndef spring(x):\n    return DAMPING * x\n"
NAMES = ("law", "thing", "bound", "late", "again")
# (what is replaced, its replacement, the digests that change)
CHANGES = {
    "constant in a closure": ("made(3.0)", "made(3.5)", {"law"}),
    "default argument": ("offset=0.5", "offset=0.6", {"law"}),
    "default of the outer function": ("power=2", "power=3", {"law"}),
    "global number": ("NUMBER = 2.0", "NUMBER = 2.5", {"law"}),
    "global of an inner function": ('"a": [1.0', '"a": [1.5', {"law"}),
    "helper": ("return NUMBER * x", "return NUMBER + x", {"law"}),
    "another function of a library": ("np.sin", "np.cos", {"law"}),
    "method": ("2.0 * self.k", "3.0 * self.k", {"thing", "bound"}),
    "attribute of a base class": ("rate = 1.0", "rate = 1.5", {"thing", "bound"}),
    "number of an object": ("Law(4.0)", "Law(5.0)", {"thing", "bound"}),
    "recursion": ("n == 0", "n == 1", {"again"}),
    "set of constants": ('"z"}', '"w"}', {"law"}),
    "number of another module": ("SPRING = 5.0", "SPRING = 6.0", {"law", "late"}),
    "text of a module that is imported later": ("return DAMPING * x", "return DAMPING + x", {"late"}),
    "docstring": ("A docstring.", "Another docstring.", set()),
    "docstring of a class": ("Says what it does.", "Says it otherwise.", set()),
    "comment and lines": ("def helper(x):", "# a comment\n\n\ndef helper(x):", set()),
}


def _digests(folder: Path, source: str = SOURCE, gains: str = GAINS) -> dict[str, str]:
    (folder / "gains.py").write_text(gains)
    module = types.ModuleType("gains")
    module.__file__ = str(folder / "gains.py")
    exec(compile(gains, module.__file__, "exec"), vars(module))
    sys.modules["gains"] = module
    try:
        own: dict[str, Any] = {"__name__": "a_users_model"}
        exec(compile(source, str(folder / "model.py"), "exec"), own)
        return {name: content_digest(own[name]) for name in NAMES}
    finally:
        del sys.modules["gains"]


@pytest.mark.parametrize("name", CHANGES)
def test_digest_changes_with_the_computation(name: str, tmp_path: Path) -> None:
    old, new, expected = CHANGES[name]
    assert (old in SOURCE) != (old in GAINS)
    before = _digests(tmp_path)
    after = _digests(tmp_path, SOURCE.replace(old, new), GAINS.replace(old, new))
    # The digest of a module's text covers all of it, so a module that imports it at run time changes with any part of
    # it.
    assert {n for n in NAMES if before[n] != after[n]} - {"law"} == expected - {"law"}
    assert "law" not in expected or before["law"] != after["law"]
    assert before == _digests(tmp_path)


def test_a_number_of_a_module_that_is_changed_while_it_runs(tmp_path: Path) -> None:
    (tmp_path / "gains.py").write_text(GAINS)
    gains = types.ModuleType("gains")
    gains.__file__ = str(tmp_path / "gains.py")
    vars(gains)["SPRING"] = 5.0
    law = eval("lambda t: t * gains.SPRING", {"gains": gains})
    before = content_digest(law)
    vars(gains)["SPRING"] = 6.0
    assert content_digest(law) != before


Pair = namedtuple("Pair", "a b")


class Lazy:
    def __init__(self, x: float) -> None:
        self.x = x

    @functools.cached_property
    def square(self) -> float:
        return self.x * self.x


VALUES = [
    None, True, 1, 1.0, -0.0, 0.0, float("nan"), 1j, "1", b"1", (1,), [1], {1}, {1: 1}, (1, (2,)), ((1, 2),), (1, 2),
    Pair(1, 2), np.float64(1.0), np.float32(1.0), np.zeros(2), np.zeros((2, 1)), np.zeros(2, np.float32), range(3),
    np.array([0, None]), slice(1, 2), Lazy(1.0), Lazy(2.0), functools.partial(max, 1), functools.partial(max, 2), len,
    np.sin, np.cos, Path("x"), "x", Lazy, Pair, np, os, np.random.default_rng(1), np.random.default_rng(2), ...,
    {"a": 1, "b": 2}, {"b": 2, "a": 1}, "mapping 0{",
]  # fmt: skip


def test_values_that_differ_have_other_digests() -> None:
    found = [content_digest(x) for x in VALUES]
    assert len(set(found)) == len(VALUES)
    assert found == [content_digest(x) for x in VALUES]


def test_cached_properties_are_left_out() -> None:
    lazy = Lazy(3.0)
    before = content_digest(lazy)
    assert lazy.square == 9.0
    assert content_digest(lazy) == before


class Holder:
    def __init__(self, thing: Any) -> None:
        self.inside = {"part": [thing]}


@pytest.mark.parametrize("thing", [(x for x in ()), sys.stdout])
def test_object_without_content_is_named(thing: Any) -> None:
    with pytest.raises(UnidentifiedError, match=r"inside\.part is of the class"):
        content_digest(Holder(thing))


def test_replaced_and_ignored_objects() -> None:
    ignoring = ContentDigest(instead={Lazy: lambda x: round(x.x)})
    assert ignoring.digest(Lazy(1.1)) == ignoring.digest([Lazy(1.2)][0])
    assert ignoring.digest(Lazy(1.1)) != ignoring.digest(Lazy(2.2))


TELL = """
import sys
sys.path.insert(0, sys.argv[1])
import model
from bellcrank.content_digest import content_digest
print(*[content_digest(getattr(model, name)) for name in sys.argv[2:]])
"""


def test_digests_are_the_same_in_every_process(tmp_path: Path) -> None:
    """Digests are the same in every process.

    Sets of strings have another order there, and objects have other addresses.
    """
    (tmp_path / "model.py").write_text(SOURCE)
    (tmp_path / "gains.py").write_text(GAINS)
    found = []
    for seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", TELL, str(tmp_path), *NAMES]
        found.append(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)
    assert found[0] == found[1]
    assert len(set(found[0].split())) == len(NAMES)


def test_code_is_scanned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code is searched for names once; the objects that the names refer to are read each time."""
    gains = [2.0]

    def control(x: float) -> float:
        return gains[0] * x + sum(y * math.pi for y in gains)

    before = content_digest(control)
    looks = []
    monkeypatch.setattr(function_digests.dis, "get_instructions", lambda code: looks.append(code) or iter(()))
    assert content_digest(control) == before
    gains[0] = 5.0
    assert content_digest(control) != before
    assert looks == []


@pytest.mark.parametrize("many", [1, 7, 4096])
def test_digest_of_deleted_code_is_not_reused(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A digest is never taken from a deleted code object, although new code objects reuse its address."""
    monkeypatch.setattr(function_digests, "MAX_CACHED_CODES", many)
    digests = set()
    for k in range(200):
        space: dict[str, Any] = {}
        exec(f"def law(x): return {k}.5 * x", space)
        digests.add(content_digest(space["law"]))
    assert len(digests) == 200
