"""Shared libraries from C: by the system's compiler for this computer, by `ziglang` (a wheel) for any platform.

Exported code calls a dozen functions of the C library, which every platform has. By default zig builds a C library of
its own for each platform, of which nothing would be used: two minutes of processor time, nearly all of it for Windows.
Therefore only the platform's own libraries are linked; for Windows, sources/windows.c supplies the remaining functions.
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
from typing import Any

from bellcrank.buffers import POISON_BYTE, POISONED
from bellcrank.errors import CompileError, InputError, brief, check_known

# FMI 3 name of a platform: zig's name, FMI 2 name ("" if it has none), and suffix of libraries.
PLATFORMS = {
    "x86_64-linux": ("x86_64-linux-gnu.2.17", "linux64", ".so"),
    "x86_64-windows": ("x86_64-windows-gnu", "win64", ".dll"),
    "x86_64-darwin": ("x86_64-macos", "darwin64", ".dylib"),
    "aarch64-darwin": ("aarch64-macos", "", ".dylib"),
    "aarch64-linux": ("aarch64-linux-gnu.2.17", "", ".so"),
}
FLAGS = ("-std=c99", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-fvisibility=hidden", "-s")
# These passes take most of the compile time and find nothing in straight-line code; and zig adds debug information by
# default, which is many times the size of the code.
QUICK_FLAGS = ("-g0", "-fno-slp-vectorize", "-fno-vectorize")
NO_STDLIB_FLAG = "-nostdlib"  # no libraries of zig's own
SOURCES = Path(__file__).parent / "sources"
# Parts of the C library that Windows 10 and later provide, by their contents.
WINDOWS_LIBRARIES = [f"-lapi-ms-win-crt-{part}-l1-1-0" for part in ("math", "heap", "string", "private")]


def host_platform() -> str:
    """Return the name of this computer's platform."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    return f"{machine}-{platform.system().lower()}"


def chosen_platforms(platforms: Sequence[str] | str) -> list[str]:
    """Return the platforms that `platforms` names: "all" for all of them, this computer's for an empty list."""
    if not isinstance(platforms, str | list | tuple):
        raise InputError(f'platforms is {brief(platforms)}; expected a list of names, or "all".')
    wanted = list(PLATFORMS) if platforms == "all" else [platforms] if isinstance(platforms, str) else list(platforms)
    for name in wanted:
        check_known("platform", name, PLATFORMS, advice=' "all" is all of them.')
    return wanted or [host_platform()]


def compiler_command(target: str, portable: bool = False) -> list[str]:
    """Return the compiler command for the platform `target`.

    For this computer it is the system's own, unless the code is to be `portable` and ziglang is installed.
    """
    system_compiler = next(filter(None, map(shutil.which, (os.environ.get("CC") or "cc", "gcc", "clang"))), None)
    has_ziglang = importlib.util.find_spec("ziglang") is not None
    if target == host_platform() and system_compiler is not None and not (portable and has_ziglang):
        return [system_compiler]
    if not has_ziglang:
        none = "no C compiler (cc, gcc or clang) is on the PATH"
        what = f"{target} is not this computer" if system_compiler else none
        raise CompileError(f"export: {what}; `pip install ziglang` has a compiler for every platform.")
    return [sys.executable, "-m", "ziglang", "cc", "-target", PLATFORMS[target][0], *QUICK_FLAGS]


def compile_library(files: Mapping[str, str], target: str, portable: bool = False) -> bytes:
    """Compile and link the .c files among `files` for the platform `target`.

    `portable` code must also run on other computers of that platform.
    """
    with tempfile.TemporaryDirectory(prefix="bellcrank-") as name:
        folder, compiler = Path(name), compiler_command(target, portable)
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        sources = [file for file in files if file.endswith(".c")]
        if "windows" not in target:
            defined = ["-Wl,-z,defs"] if "linux" in target else []
            link_flags = [NO_STDLIB_FLAG, "-lc", *defined] if "ziglang" in compiler else []
            run([*compiler, *FLAGS, *poison_flags(*compiler), *sources, "-o", "made", "-lm", *link_flags], folder)
        elif "ziglang" in compiler:
            _compile_dll(compiler, sources, folder)
        else:
            run([*compiler, *_flags_without("-fPIC"), *sources, "-o", "made"], folder)
        return (folder / "made").read_bytes()


@cache
def poison_flags(*compiler: str) -> tuple[str, ...]:
    """Return flags of `compiler` that poison unwritten memory, where buffers are poisoned (bellcrank.buffers).

    They fill the numbers of an instance (sources/instance.h) and, if the compiler can (gcc 12, clang 8), variables on
    the stack.
    """
    if not POISONED:
        return ()
    stack = "-ftrivial-auto-var-init=pattern"
    probe = [*compiler, stack, "-fsyntax-only", "-x", "c", os.devnull]
    supported = subprocess.run(probe, capture_output=True).returncode == 0
    return (f"-DUNWRITTEN={POISON_BYTE}", *([stack] if supported else []))


def _compile_dll(compiler: Sequence[str], sources: Sequence[str], folder: Path) -> None:
    """Build a Windows library; sources are compiled one by one, as otherwise the library's headers would be missing."""
    flags = [*_flags_without("-fPIC", "-shared", "-s"), "-include", str(SOURCES / "windows.h")]
    given = [*sources, str(SOURCES / "windows.c")]
    objects = [f"{k}.o" for k in range(len(given))]
    for source, object_file in zip(given, objects, strict=True):
        run([*compiler, *flags, "-c", source, "-o", object_file], folder)
    run([*compiler, NO_STDLIB_FLAG, "-shared", "-s", *objects, "-o", "made", *WINDOWS_LIBRARIES], folder)


def _flags_without(*names: str) -> list[str]:
    return [flag for flag in FLAGS if flag not in names]


def run(called: Sequence[str], folder: Path, task: str = "export", timeout: float | None = None) -> str:
    """Run a command in a folder and return its output, or raise a CompileError.

    Parameters
    ----------
    called
        The command.
    folder
        Its working directory.
    task
        What it is for, in the message of an error.
    timeout
        Its time limit, s.
    """
    options: dict[str, Any] = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL}
    done = subprocess.run(called, cwd=folder, timeout=timeout, **options)
    if done.returncode:
        raise CompileError(f"{task}: {' '.join(called)} failed:\n{(done.stderr or done.stdout)[:4000]}")
    return str(done.stdout + done.stderr)
