"""Versions of this package and of the libraries below it, as far as they affect computed numbers."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import sys
import time
from functools import cache
from pathlib import Path

from bellcrank import plugins
from bellcrank.code_timestamp import IMPORT_TIME_NS
from bellcrank.content_digest.distributions import folder_files
from bellcrank.errors import InputError
from bellcrank.version import __version__

PACKAGE_ROOT = Path(__file__).resolve().parents[1]


def code_versions() -> dict[str, str]:
    """Return the versions of all code that computes, by name; equal on two computers if they compute the same."""
    plugins.load()
    return {
        "bellcrank": f"{__version__} {package_digest()[:32]}",
        "plug-ins": plugins.fingerprint()[:32],
        "numpy": importlib.metadata.version("numpy"),
        "llvmlite": importlib.metadata.version("llvmlite"),
        "python": f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}",
    }


@cache
def package_digest() -> str:
    """Return a hash of all Python files of this package.

    Raises
    ------
    InputError
        If one of them was written after this process began, since the loaded text is then unknown.
    """
    digest, now = hashlib.sha256(), time.time_ns()
    for path, name in sorted(folder_files(str(PACKAGE_ROOT)).items()):
        if not name.endswith(".py"):
            continue
        if IMPORT_TIME_NS < os.stat(path).st_mtime_ns <= now:  # a time in the future comes from another clock
            raise InputError(
                f"{path} was changed after this process began, so that the process may run other code than the files "
                "contain. Restart Python."
            )
        digest.update(name.encode() + b"\0" + Path(path).read_bytes())
    return digest.hexdigest()
