"""The stairs up: what can be drawn or compiled says so in a method, and only a call loads anything up there.

The one import that points upwards, and the reason why a graph need not know how it looks, nor a mechanism how it is
compiled.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def above(name: str) -> Any:
    """A file or a room of the package."""
    return import_module(f"bellcrank.{name}")


def view(name: str) -> Any:
    """A file of view/."""
    return above(f"view.{name}")
