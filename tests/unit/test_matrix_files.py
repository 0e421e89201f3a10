"""Matrices from other programs: Nastran's OUTPUT4 and Abaqus files, complete and truncated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import ReadError

A = np.array([[4.0, 0, 0, 1.0], [0, 3.0, -2.5, 0], [0, -2.5, 5.0, 0], [1.0, 0, 0, 7.0]])


def number(x: float) -> str:
    return f"{x:23.16E}"


def columns(values: Any, headers: Any) -> str:
    """Return the file of one matrix, with a header for each column and for each run of numbers."""
    out = []
    for j, column in enumerate(np.asarray(values).T):
        runs, i = [], 0
        while i < len(column):
            n = next((k for k, x in enumerate(column[i:]) if x == 0.0), len(column) - i)
            runs += [(i + 1, column[i : i + n])] if n else []
            i += max(n, 1)
        out += headers(j + 1, runs)
    return "\n".join([*out, f"{values.shape[1] + 1:8d}{1:8d}{1:8d}", number(2**0.5), ""])


def bigmat(j: int, runs: Any) -> list[str]:
    lines = [f"{j:8d}{0:8d}{sum(2 + 2 * len(r) for _, r in runs):8d}"]
    for row, r in runs:
        lines += [f"{2 * len(r) + 1:8d}{row:8d}", "".join(map(number, r))]
    return lines


def nonbigmat(j: int, runs: Any) -> list[str]:
    lines = [f"{j:8d}{0:8d}{sum(1 + 2 * len(r) for _, r in runs):8d}"]
    for row, r in runs:
        lines += [f"{(2 * len(r) + 1) * 65536 + row:11d}", "".join(map(number, r))]
    return lines


def dense(j: int, runs: Any) -> list[str]:
    (row, last) = runs[0][0], runs[-1]
    filled = np.zeros(last[0] + len(last[1]) - row)
    for at, r in runs:
        filled[at - row : at - row + len(r)] = r
    rest = ["".join(map(number, filled[k : k + 3])) for k in range(0, len(filled), 3)]
    return [f"{j:8d}{row:8d}{len(filled):8d}", *rest]


KINDS = {"dense": (4, dense), "bigmat": (-4, bigmat), "nonbigmat": (4, nonbigmat)}


def text(kind: str, name: str = "KAA", values: Any = A) -> str:
    rows, headers = KINDS[kind]
    return f"{4:8d}{rows:8d}{6:8d}{2:8d}{name:<8s}1P,3E23.16\n" + columns(values, headers)


@pytest.mark.parametrize("kind", KINDS)
def test_op4(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "k.op4"
    path.write_text(text(kind))
    assert np.array_equal(bc.read_matrix(path), A)
    path.write_text(text(kind) + text(kind, "MAA", 2 * A))
    assert np.array_equal(bc.read_matrix(path, "maa"), 2 * A)
    with pytest.raises(ReadError, match="KAA, MAA"):
        bc.read_matrix(path)
    with pytest.raises(ReadError, match='no matrix "kbb"'):
        bc.read_matrix(path, "kbb")


def test_a_file_of_another_program(tmp_path: Path) -> None:
    """Files of other programs are read: a sparse column of A from pyYeti 1.4, and the string header of the manual."""
    path = tmp_path / "k.op4"
    path.write_text(
        "       1       4       2       2KAA     1P,3E23.16\n       1       0       6\n     196609\n"
        " 4.0000000000000000E+00\n     196612\n 1.0000000000000000E+00\n       2       1       1\n"
        " 1.4142135623730951E+00\n"
    )
    assert bc.read_matrix(path)[:, 0].tolist() == [4.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("kind", KINDS)
def test_truncated_file_raises(kind: str, tmp_path: Path) -> None:
    whole, path = text(kind), tmp_path / "k.op4"
    for n in range(0, len(whole.rstrip()) - 24, 7):
        path.write_text(whole[:n])
        with pytest.raises(ReadError):
            bc.read_matrix(path)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("       6       2KAA", "       6       4KAA", "a real matrix"),
        ("1P,3E23.16", "3F23.16", "a format such as"),
        ("       2       2       2", "       2       4       2", "rows within 1 to 4"),
        ("       2       2       2", "      -2       2       2", "a column from 1"),
        ("       2       2       2", "       2       x       2", "3 whole numbers"),
    ],
)
def test_errors_in_op4_are_named(old: str, new: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "k.op4"
    path.write_text(text("dense").replace(old, new))
    with pytest.raises(ReadError, match=what):
        bc.read_matrix(path)


def binary(kind: str, end: str, word: int, name: str = "KAA", values: Any = A) -> bytes:
    """Return the unformatted form of the file: records between two byte counts."""
    out = []
    double = 8 // word  # words of a number

    def record(*parts: Any) -> None:
        body = b"".join(np.asarray(p).astype(f"{end}{'f8' if np.asarray(p).dtype == float else f'i{word}'}").tobytes()
                        if not isinstance(p, bytes) else p for p in parts)  # fmt: skip
        count = np.array(len(body), f"{end}i4").tobytes()
        out.append(count + body + count)

    rows, cols = values.shape
    record([cols, -rows if kind == "bigmat" else rows, 2, 2], name.ljust(2 * word).encode())
    for j, column in enumerate(values.T, 1):
        if kind == "dense":
            record([j, 1, double * rows], column)
            continue
        parts: list[Any] = []
        for i in np.flatnonzero(column):
            head = [double + 1, i + 1] if kind == "bigmat" else [(double + 1) * 65536 + i + 1]
            parts += [head, column[i : i + 1]]
        record([j, 0, sum(len(p) * (1 if isinstance(p, list) else double) for p in parts)], *parts)
    record([cols + 1, 1, double], [2**0.5])
    return b"".join(out)


@pytest.mark.parametrize("word", [4, 8])
@pytest.mark.parametrize("end", ["<", ">"])
@pytest.mark.parametrize("kind", KINDS)
def test_binary_files(kind: str, end: str, word: int, tmp_path: Path) -> None:
    path = tmp_path / "both.op4"
    path.write_bytes(binary(kind, end, word) + binary(kind, end, word, "MAA", 2 * A))
    assert np.array_equal(bc.read_matrix(path, "kaa"), A)
    assert np.array_equal(bc.read_matrix(path, "MAA"), 2 * A)
    with pytest.raises(ReadError, match="KAA, MAA"):
        bc.read_matrix(path)
    whole = path.read_bytes()
    for cut in range(8, len(whole), 7):
        path.write_bytes(whole[:cut])
        if cut == len(whole) // 2:  # between two matrices: the first one is complete
            continue
        with pytest.raises(ReadError, match=r"cut short|begins with|numbers of|which"):
            bc.read_matrix(path, "MAA")


def test_binary_file_without_a_matrix_raises(tmp_path: Path) -> None:
    for name, data in (("k.op4", b"\x18\0\0\0\4\0\0\0"), ("k.mtx", b"a\0b"), ("z.op4", bytes(100))):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(ReadError, match=r"binary|cut short"):
            bc.read_matrix(path)


def abaqus(A: Any, labels: Any, half: bool) -> str:
    lines = ["** made by a test", "*MATRIX, TYPE=STIFFNESS"]
    for i, j in np.argwhere(A):
        if not half or i >= j:
            a, b = (f"{labels[k // 3]},{k % 3 + 1}" for k in (i, j))
            lines.append(f"{a}, {b}, {A[i, j]:.17g}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("half", [True, False])
def test_abaqus(half: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    B = rng.normal(size=(6, 6))
    B = B + B.T
    path = tmp_path / "job_STIF1.mtx"
    path.write_text(abaqus(B, (3, 17), half))
    assert np.array_equal(bc.read_matrix(path), B)
    path.write_text(abaqus(B, (17, 3), half))  # nodes by their labels
    order = [3, 4, 5, 0, 1, 2]
    assert np.array_equal(bc.read_matrix(path), B[np.ix_(order, order)])


@pytest.mark.parametrize(
    ("rest", "what"),
    [
        ("3,1,3", "cut short"),
        ("3,1,3,1,x", "not a number"),
        ("-1,1,3,1,2.0", "labels from 1"),
        ("1,9,1,9,1.0", "1 to 6"),
    ],
)
def test_errors_in_abaqus_files_are_named(rest: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "k.mtx"
    path.write_text("1,1,1,1,2.0\n" + rest)
    with pytest.raises(ReadError, match=what):
        bc.read_matrix(path)
