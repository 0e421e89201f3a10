"""Optional dependencies: imported on demand, with the installation command in the error message."""

from __future__ import annotations

import importlib
from typing import Any

from bellcrank.errors import InputError

PACKAGE_OF_MODULE = {"skfem": "scikit-fem"}  # module names that differ from the package name


def optional_import(module: str, group: str, purpose: str) -> Any:
    """Import an optional module, or raise InputError with the command that installs it.

    Parameters
    ----------
    module
        Dotted name of the module.
    group
        Extra of the bellcrank package that installs it.
    purpose
        The feature that needs it, for the message.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        package = PACKAGE_OF_MODULE.get(package, package)
        raise InputError(
            f"{purpose} needs {package}, which cannot be imported ({error}). "
            f'Install it: pip install "bellcrank[{group}]" (or pip install {package}).'
        ) from None
