"""Atomic write of a folder: it is written beside its destination, then renamed."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from bellcrank.errors import InputError
from bellcrank.files import remove_abandoned, shortened

TEMPORARY_SUFFIXES = (".part", ".old")  # suffixes of the folder being written and of the one being replaced


def write_folder(path: Path, files: Mapping[str, bytes]) -> Path:
    """Write `files` as the folder `path`; replace an earlier export, but no folder with other files in it."""
    target = Path(os.path.realpath(path))
    if not target.name:
        raise InputError(f"{path} is the root of all folders; expected the name of a folder, to be made or replaced.")
    partial_folder, replaced_folder = (
        target.with_name(f".{shortened(target.name)}.{secrets.token_hex(8)}{x}") for x in TEMPORARY_SUFFIXES
    )
    moved = False
    try:
        _check_replaceable(path, target, files)
        remove_abandoned(target, *TEMPORARY_SUFFIXES)
        for name, data in files.items():
            place = partial_folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        if target.exists():
            os.replace(target, replaced_folder)
            moved = True
        os.replace(partial_folder, target)
    except OSError as error:
        if moved and not target.exists():
            os.replace(replaced_folder, target)
        why = error.strerror or str(error)
        raise InputError(f"{path} cannot be written: {why}. Export to another path, or make room first.") from error
    finally:
        shutil.rmtree(partial_folder, ignore_errors=True)
        if moved and target.exists():
            shutil.rmtree(replaced_folder, ignore_errors=True)
    return path


def _check_replaceable(path: Path, target: Path, files: Mapping[str, bytes]) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError(f"{path} is a file; expected the name of a folder, to be made or replaced.")
    known = {target / name for name in files}
    if target == Path.cwd() or target in Path.cwd().parents:
        raise InputError(
            f"{path} is or contains the current working directory and would be replaced; name a new folder."
        )
    others = (p for p in sorted(target.rglob("*")) if p.is_symlink() or not p.is_dir())  # also pipes and dangling links
    foreign_file = next((p for p in others if p not in known or p.is_symlink()), None)
    if foreign_file is not None:
        raise InputError(
            f"{path} exists already, and {foreign_file.relative_to(target)} in it is not part of this export; it would "
            "be lost. Give the name of a new folder, or remove this one."
        )
