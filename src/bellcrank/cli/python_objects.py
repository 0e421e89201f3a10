"""Mechanisms that a Python file of the user's own makes, for every command: `bellcrank drive crane.py:crane`.

Only what is named like this is run, and it is said with the name of what it holds, so that no file which somebody else
sent is run by mistake (SECURITY.md).
"""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

from bellcrank.errors import BellcrankError, InputError, unknown
from bellcrank.formats import Builder
from bellcrank.model import Mechanism

NAMED = re.compile(r"(?P<path>.+\.py):(?P<name>\w+)", re.IGNORECASE | re.DOTALL)


def named_in_python(text: str) -> bool:
    """Whether it is FILE.py:NAME."""
    return NAMED.fullmatch(text) is not None


def from_python(text: str) -> Mechanism:
    """What NAME is in FILE.py: a mechanism, a Builder, or a function without arguments that gives one of them."""
    found = NAMED.fullmatch(text)
    assert found is not None
    path, name = Path(found["path"]), found["name"]
    if not path.is_file():
        raise InputError(f"{path} does not exist. Expected FILE.py:NAME, a mechanism in a Python file of yours.")
    sys.path.insert(0, str(path.parent.resolve()))  # as Python does for a script, so that files beside it are found
    try:
        inside = runpy.run_path(str(path), run_name="bellcrank.file")
        if name not in inside:
            raise InputError(f"{path}: {unknown('name', name, [x for x, y in inside.items() if _may_be(x, y)])}")
        thing = inside[name]() if callable(inside[name]) else inside[name]
    except BellcrankError:
        raise
    except Exception as error:
        raise InputError(f"{path}: running it failed: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    made = thing.build() if isinstance(thing, Builder) else thing
    if not isinstance(made, Mechanism):
        raise InputError(
            f"{path}: {name} is a {type(thing).__name__}; expected a mechanism, a Builder, or a function giving one."
        )
    return made


def _may_be(name: str, thing: Any) -> bool:
    return isinstance(thing, Mechanism | Builder) and not name.startswith("_")
