"""Mechanisms made by a Python file of the user, for every command: `bellcrank drive crane.py:crane`.

A Python file is run only if it is given in this form, with the name of the object, so that a file from another person
is not run by mistake (SECURITY.md).
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

FILE_AND_NAME = re.compile(r"(?P<path>.+\.py):(?P<name>\w+)", re.IGNORECASE | re.DOTALL)


def is_python_object(text: str) -> bool:
    """Return whether `text` has the form FILE.py:NAME."""
    return FILE_AND_NAME.fullmatch(text) is not None


def load_python_object(text: str) -> Mechanism:
    """Run the file of `text`, FILE.py:NAME, and return NAME: a mechanism, a Builder, or a function that returns one."""
    match = FILE_AND_NAME.fullmatch(text)
    assert match is not None
    path, name = Path(match["path"]), match["name"]
    if not path.is_file():
        raise InputError(f"{path} does not exist. Expected FILE.py:NAME, a mechanism in a Python file.")
    sys.path.insert(0, str(path.parent.resolve()))  # as Python does for a script, so that files beside it are found
    try:
        namespace = runpy.run_path(str(path), run_name="bellcrank.file")
        if name not in namespace:
            raise InputError(f"{path}: {unknown('name', name, _candidates(namespace))}")
        thing = namespace[name]() if callable(namespace[name]) else namespace[name]
    except BellcrankError:
        raise
    except Exception as error:
        raise InputError(f"{path}: running it failed: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    built = thing.build() if isinstance(thing, Builder) else thing
    if not isinstance(built, Mechanism):
        raise InputError(
            f"{path}: {name} is a {type(thing).__name__}; expected a mechanism, a Builder, or a function of one."
        )
    return built


def _candidates(namespace: dict[str, Any]) -> list[str]:
    return [x for x, y in namespace.items() if isinstance(y, Mechanism | Builder) and not x.startswith("_")]
