"""Object code on disk, in the user's cache folder: a second start compiles nothing.

A file is a line of identification, a checksum and the payload; it is written beside and then renamed, so that
processes can race and a crash leaves nothing half. Whatever does not check out is treated as absent and overwritten.
"""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache
from pathlib import Path

MAGIC = b"bellcrank cache 2\n"


def folder() -> Path:
    """$BELLCRANK_CACHE, or the platform's place for caches."""
    own = os.environ.get("BELLCRANK_CACHE")
    if own:
        return Path(own)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "bellcrank"


def key(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:".encode() + part.encode())
    return digest.hexdigest()


def load(name: str) -> bytes | None:
    """The payload, or None where there is none that can be trusted."""
    try:
        data = (folder() / name).read_bytes()
    except OSError:
        return None
    head = len(MAGIC) + 32
    payload = data[head:]
    intact = data.startswith(MAGIC) and _seal(name, payload) == data[len(MAGIC) : head]
    return payload if intact else None


def _seal(name: str, payload: bytes) -> bytes:
    """A checksum that also knows the name: a good file in another's place is as wrong as a broken one."""
    return hashlib.sha256(name.encode() + b"\0" + payload).digest()


def save(name: str, payload: bytes) -> bool:
    """Whether it could be kept; a read-only home or a full disk is no reason to fail."""
    import tempfile  # a kernel that comes from the cache never needs it

    place = folder()
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=place, prefix=".new-")
    except OSError:
        return False
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC + _seal(name, payload) + payload)
        os.replace(temporary, place / name)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        return False
    return True


@cache
def package_fingerprint() -> str:
    """Changes with every change of the package's code: a cached kernel never outlives the code that made it."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
