"""Binaries for computers that are not here: what they ask of them, and that nothing is built that is not used."""

from __future__ import annotations

import platform
import re
import resource
import zipfile
from pathlib import Path

import pytest

import bellcrank as bc
from bellcrank.exporting import compilers
from targets.test_c99 import CC, needs_cc, run

needs_zig = pytest.mark.skipif(compilers.importlib.util.find_spec("ziglang") is None, reason="ziglang is not installed")
# Libraries that a binary may ask for: those that every computer of its kind has.
ASKED = {
    "windows": rb"[\w.-]+\.dll",
    "darwin": rb"/usr/lib/[\w.-]+\.dylib",
    "linux": rb"\0lib[\w.-]+\.so[.\d]*",
}
THERE = {
    "windows": {b"api-ms-win-crt-heap-l1-1-0.dll", b"api-ms-win-crt-math-l1-1-0.dll"}
    | {b"api-ms-win-crt-private-l1-1-0.dll", b"api-ms-win-crt-string-l1-1-0.dll"},
    "darwin": {b"/usr/lib/libSystem.B.dylib"},
    "linux": {b"\0libm.so.6", b"\0libc.so.6"},
}
COLD = 20.0  # seconds of the processor, for all platforms; each needs one, of the library that zig would build 88


@needs_zig
def test_first_export_builds_and_needs_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    path = bc.export(bc.zoo.pendulum(), tmp_path / "it.fmu", to="fmu3", platforms="all")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < COLD
    with zipfile.ZipFile(path) as archive:
        binaries = {f.filename.split("/")[1]: archive.read(f) for f in archive.filelist if "binaries/" in f.filename}
    assert set(binaries) == set(compilers.PLATFORMS)
    for name, data in binaries.items():
        kind = name.rpartition("-")[2]
        assert set(re.findall(ASKED[kind], data)) <= THERE[kind], name
        assert b"fmi3DoStep\0" in data, name


# A frame of so many bytes, where the stack has them: all registers stay as they were, and so does what lies there.
FRAMES = r"""
#include <stdio.h>
#include <string.h>

int main(void)
{
    static char stack[1 << 20], before[1 << 20];
    const unsigned long sizes[] = {0, 1, 4095, 4096, 4097, 8192, 100000};
    for (int k = 0; k < 7; ++k) {
        unsigned long rax = sizes[k], rdx = 0x1234567890abcdefUL, kept;
        memset(stack, 0x5a, sizeof(stack));
        memcpy(before, stack, sizeof(stack));
        __asm__ volatile(
            "movq %%rsp, %2\n leaq %3, %%rsp\n call ___chkstk_ms\n movq %2, %%rsp\n"
            : "+a"(rax), "+d"(rdx), "=&r"(kept) : "m"(stack[sizeof(stack) - 4096]) : "memory", "cc");
        /* below its end lie what the call and the function itself keep there: 24 bytes */
        if (rax != sizes[k] || rdx != 0x1234567890abcdefUL || memcmp(stack, before, sizeof(stack) - 4096 - 24) != 0) {
            printf("%lu ", sizes[k]);
        }
    }
    return 0;
}
"""


@needs_cc
@pytest.mark.skipif(platform.machine() != "x86_64", reason="it is x86-64's")
def test_large_frames_of_windows_leave_registers_and_stack_alone(tmp_path: Path) -> None:
    assert CC is not None
    (tmp_path / "frames.c").write_text(FRAMES)
    (tmp_path / "windows.c").write_text((compilers.SOURCES / "windows.c").read_text())
    run(tmp_path, CC, "-std=gnu99", "-Wall", "-Werror", "-mno-red-zone", "frames.c", "windows.c", "-o", "frames")
    assert run(tmp_path, "./frames") == ""
