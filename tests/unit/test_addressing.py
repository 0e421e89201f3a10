"""Rebased workspace pointers give the same addresses, and most displacements are short."""

from __future__ import annotations

import re

import numpy as np

from bellcrank.emit.llvm.register_allocation import MAX_BASE_POINTERS, rebase


def test_addresses_are_the_same_and_most_are_near() -> None:
    rng = np.random.default_rng(0)
    offsets = [int(64 * k) for k in rng.integers(1, 2000, 500)] + [64 * 40_000]
    lines = [f"%p{i} = getelementptr i8, ptr %ws, i64 {at}" for i, at in enumerate(offsets)]
    lines.insert(7, "%v1 = fadd double %x, %y")
    found = rebase(lines, 64)
    bases = {"%ws": 0}
    addresses, short = {}, 0
    for line in found:
        if m := re.fullmatch(r"(%\w+) = getelementptr i8, ptr (%\w+), i64 (-?\d+)", line):
            bases[m[1]] = addresses[m[1]] = bases[m[2]] + int(m[3])
            short += m[2] != "%ws" and -128 * 64 <= int(m[3]) < 128 * 64
        elif m := re.fullmatch(r'(%near\d+) = call ptr asm "", "=r,0"\(ptr (%middle\d+)\)', line):
            bases[m[1]] = bases[m[2]]
        else:
            assert line == lines[7]
    assert [addresses[f"%p{i}"] for i in range(len(offsets))] == offsets
    assert short == 500  # windows of 256 vectors: eight of them, and one distant address
    assert sum("asm" in line for line in found) <= MAX_BASE_POINTERS


def test_few_addresses_are_unchanged() -> None:
    lines = [f"%p{i} = getelementptr i8, ptr %ws, i64 {64 * i}" for i in range(3)]
    assert rebase(lines, 64) == lines
