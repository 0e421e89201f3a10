"""Packages that only some need: imported when they are, with the command that installs them."""

from __future__ import annotations

import importlib
from typing import Any

from bellcrank.errors import InputError

PACKAGES = {"skfem": "scikit-fem"}  # where the module is called otherwise


def extra(module: str, group: str, purpose: str) -> Any:
    """The module, or an error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        package = PACKAGES.get(package, package)
        raise InputError(
            f"{purpose} needs {package}, which cannot be imported ({error}). "
            f'Install it: pip install "bellcrank[{group}]" (or pip install {package}).'
        ) from None
