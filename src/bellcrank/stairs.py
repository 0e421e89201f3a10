"""The stairs up to view/: what can be drawn says so in a method, and only a call loads anything up there.

The one import that points upwards, and the reason why nothing below has to know how it looks.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def view(name: str) -> Any:
    """A file of view/."""
    return import_module(f"bellcrank.view.{name}")
