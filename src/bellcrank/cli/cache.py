"""Command cache: compiled kernels and measured costs on disk."""

from __future__ import annotations

import os
import time
from typing import Annotated

import typer

from bellcrank.cli import JsonOpt, app, screen
from bellcrank.cli.screen import Column

WHAT = {
    ".o": "compiled kernels",
    ".cubin": "GPU kernels",
    ".json": "requests and measured costs",
    "": "incomplete files",
}


@app.command()
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all files.")] = False,
    json: JsonOpt = False,
) -> None:
    """Print the contents of the cache, and whether it is trusted.

    A file is not loaded if other users may write it or its folder. $BELLCRANK_CACHE names another folder,
    $BELLCRANK_CACHE_MB limits its size, $BELLCRANK_CACHE_DAYS the age of files that are not used.
    \f

    The options `clear` and `json` are described by their help texts.
    """  # noqa: D301
    from bellcrank.emit import cache as store
    from bellcrank.emit.cache import distrust

    removed = store.clear() if clear else 0
    found, (most, oldest), (folder, why) = list(store.kept()), store.limits(), store.location()
    why = distrust(folder) if folder is not None else why
    now = time.time()
    if json:
        used = {"oldest_days": max(now - f.used for f in found) / store.DAY} if found else {}
        about: dict[str, object] = {"folder": None if folder is None else str(folder), "trusted": not why, "why": why}
        about |= {"files": len(found), "bytes": sum(f.size for f in found), "removed": removed}
        screen.data(about | {"most_bytes": most, "most_days": oldest / store.DAY} | used)
        return
    rows = []
    for suffix, what in WHAT.items():
        mine = [f for f in found if os.path.splitext(f.path)[1] == suffix]
        if mine:
            age = max(now - f.used for f in mine) / store.DAY
            rows.append((what, str(len(mine)), f"{sum(f.size for f in mine) / 1e6:.1f}", f"{age:.1f}"))
    if folder is None:
        screen.line(f"no cache: {why}", style="bold")
        return
    screen.line(str(folder), style="bold")
    screen.line(f"not trusted, and not used: {why}" if why else "trusted: no other user may write it")
    screen.line()
    if clear:
        screen.line(f"removed {removed} file{'s' * (removed != 1)}")
    numbers = [Column(what, right=True) for what in ("files", "MB", "oldest use, days")]
    if rows:
        screen.table([Column("what", wrap=True), *numbers], rows)
    elif not clear:
        screen.line("the cache is empty")
    screen.line()
    screen.line(f"limits: {most / 1e6:g} MB, and files used in the last {oldest / store.DAY:g} days", style="dim")
