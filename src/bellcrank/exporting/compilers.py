"""Shared libraries from C: by this system's compiler for this computer, by `ziglang` (a wheel) for any.

What is exported calls a dozen functions of the C library, which every platform has. zig would first build a library of
its own for each, of which nothing is used: two minutes of a processor, nearly all of it for Windows. So it links those
of the platform alone, and for Windows sources/windows.c has what is left.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from bellcrank.buffers import POISON_BYTE, POISONED
from bellcrank.errors import CompileError, InputError, brief, unknown

# What FMI 3 calls a platform: what zig calls it, what FMI 2 calls it ("" where it has no name), and how libraries end.
PLATFORMS = {
    "x86_64-linux": ("x86_64-linux-gnu.2.17", "linux64", ".so"),
    "x86_64-windows": ("x86_64-windows-gnu", "win64", ".dll"),
    "x86_64-darwin": ("x86_64-macos", "darwin64", ".dylib"),
    "aarch64-darwin": ("aarch64-macos", "", ".dylib"),
    "aarch64-linux": ("aarch64-linux-gnu.2.17", "", ".so"),
}
FLAGS = ("-std=c99", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-fvisibility=hidden", "-s")
# Straight-line code has nothing that these would find, and they look for it most of the time; and zig adds what a
# debugger wants, which is many times the code.
QUICK = ("-g0", "-fno-slp-vectorize", "-fno-vectorize")
ALONE = "-nostdlib"  # nothing of zig's own
SOURCES = Path(__file__).parent / "sources"
# Parts of the C library that Windows has had since 10, by what is in them.
WINDOWS = [f"-lapi-ms-win-crt-{part}-l1-1-0" for part in ("math", "heap", "string", "private")]


def here() -> str:
    """This computer's platform."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    return f"{machine}-{platform.system().lower()}"


def chosen(asked: Sequence[str] | str) -> list[str]:
    """Platforms by name; "all" for all, nothing for this one."""
    if not isinstance(asked, str | list | tuple):
        raise InputError(f'platforms is {brief(asked)}; expected a list of names, or "all".')
    wanted = list(PLATFORMS) if asked == "all" else [asked] if isinstance(asked, str) else list(asked)
    for name in wanted:
        if name not in PLATFORMS:
            raise InputError(f'{unknown("platform", name, PLATFORMS)} "all" is all of them.')
    return wanted or [here()]


def command(target: str, portable: bool = False) -> list[str]:
    """The compiler that makes code for a platform: this computer's own for itself, unless others are to run it, too."""
    own = next(filter(None, map(shutil.which, (os.environ.get("CC") or "cc", "gcc", "clang"))), None)
    there = importlib.util.find_spec("ziglang") is not None
    if target == here() and own is not None and not (portable and there):
        return [own]
    if not there:
        what = f"{target} is not this computer" if own else "no C compiler (cc, gcc or clang) is on the PATH"
        raise CompileError(f"export: {what}; `pip install ziglang` has a compiler for every platform.")
    return [sys.executable, "-m", "ziglang", "cc", "-target", PLATFORMS[target][0], *QUICK]


def library(files: Mapping[str, str], target: str, portable: bool = False) -> bytes:
    """The .c files among these, compiled and linked. portable: to run on other computers of that platform."""
    with tempfile.TemporaryDirectory(prefix="bellcrank-") as name:
        folder, compiler = Path(name), command(target, portable)
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        sources = [file for file in files if file.endswith(".c")]
        if "windows" not in target:
            alone = [ALONE, "-lc", *(["-Wl,-z,defs"] if "linux" in target else [])] if "ziglang" in compiler else []
            _run([*compiler, *FLAGS, *poison_flags(*compiler), *sources, "-o", "made", "-lm", *alone], folder)
        elif "ziglang" in compiler:
            _dll(compiler, sources, folder)
        else:
            _run([*compiler, *_without("-fPIC"), *sources, "-o", "made"], folder)
        return (folder / "made").read_bytes()


@cache
def poison_flags(*compiler: str) -> tuple[str, ...]:
    """Flags that fill what nothing has written yet, where buffers are poisoned (bellcrank.buffers): the numbers of an
    instance (sources/instance.h) and, where the compiler can (gcc 12, clang 8), variables on the stack.
    """
    if not POISONED:
        return ()
    stack = "-ftrivial-auto-var-init=pattern"
    probe = [*compiler, stack, "-fsyntax-only", "-x", "c", os.devnull]
    can = subprocess.run(probe, capture_output=True).returncode == 0
    return (f"-DUNWRITTEN={POISON_BYTE}", *([stack] if can else []))


def _dll(compiler: Sequence[str], sources: Sequence[str], folder: Path) -> None:
    """Sources are compiled one by one: linked at once, they would not be given the headers of the library."""
    flags = [*_without("-fPIC", "-shared", "-s"), "-include", str(SOURCES / "windows.h")]
    given = [*sources, str(SOURCES / "windows.c")]
    objects = [f"{k}.o" for k in range(len(given))]
    for source, made in zip(given, objects, strict=True):
        _run([*compiler, *flags, "-c", source, "-o", made], folder)
    _run([*compiler, ALONE, "-shared", "-s", *objects, "-o", "made", *WINDOWS], folder)


def _without(*names: str) -> list[str]:
    return [flag for flag in FLAGS if flag not in names]


def _run(called: Sequence[str], folder: Path) -> None:
    done = subprocess.run(called, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise CompileError(f"export: {' '.join(called)} failed:\n{done.stderr[:4000]}")
