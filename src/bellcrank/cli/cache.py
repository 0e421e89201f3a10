"""Command cache: compiled kernels and measured costs on disk."""

from __future__ import annotations

import os
import time
from typing import Annotated

import typer

from bellcrank.cli import app, options, screen
from bellcrank.cli.screen import numbers, texts

FILE_KINDS = {
    ".o": "compiled kernels",
    ".cubin": "GPU kernels",
    ".json": "requests and measured costs",
    "": "incomplete files",
}


@app.command()
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all files.")] = False,
    json: options.JsonOpt = False,
) -> None:
    """Print the contents of the cache, and whether it is trusted.

    A file is not loaded if other users may write it or its folder. $BELLCRANK_CACHE names another folder,
    $BELLCRANK_CACHE_MB limits its size, $BELLCRANK_CACHE_DAYS the age of files that are not used.
    """
    from bellcrank.emit import cache as store
    from bellcrank.emit.cache import distrust_reason

    removed = store.clear() if clear else 0
    cached_files, (max_bytes, max_age_seconds) = list(store.cache_files()), store.limits()
    folder, why = store.location()
    why = distrust_reason(folder) if folder is not None else why
    now = time.time()
    if json:
        used = {"oldest_days": max(now - f.last_used for f in cached_files) / store.DAY_SECONDS} if cached_files else {}
        about: dict[str, object] = {"folder": None if folder is None else str(folder), "trusted": not why, "why": why}
        about |= {"files": len(cached_files), "bytes": sum(f.size for f in cached_files), "removed": removed}
        screen.data(about | {"most_bytes": max_bytes, "most_days": max_age_seconds / store.DAY_SECONDS} | used)
        return
    rows = []
    for suffix, what in FILE_KINDS.items():
        files_of_kind = [f for f in cached_files if os.path.splitext(f.path)[1] == suffix]
        if files_of_kind:
            age = max(now - f.last_used for f in files_of_kind) / store.DAY_SECONDS
            size = sum(f.size for f in files_of_kind)
            rows.append((what, str(len(files_of_kind)), f"{size / 1e6:.1f}", f"{age:.1f}"))
    if folder is None:
        screen.line(f"no cache: {why}", style="bold")
        return
    screen.line(str(folder), style="bold")
    screen.line(f"not trusted, and not used: {why}" if why else "trusted: no other user may write it")
    screen.line()
    if clear:
        screen.line(f"removed {removed} file{'s' * (removed != 1)}")
    if rows:
        screen.table([*texts("what"), *numbers("files", "MB", "oldest use, days")], rows)
    elif not clear:
        screen.line("the cache is empty")
    screen.line()
    days = max_age_seconds / store.DAY_SECONDS
    screen.line(f"limits: {max_bytes / 1e6:g} MB, and files used in the last {days:g} days", style="dim")
