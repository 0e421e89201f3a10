"""Invalid beams, sections, matrices and their files give a message, and nothing hangs."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc

NAN = float("nan")
HEAD = "%%MatrixMarket matrix"
PLACES = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)


def bars() -> Any:
    """Return springs between all pairs of four nodes."""
    K = np.zeros((12, 12))
    for i in range(4):
        for j in range(i):
            along = (PLACES[i] - PLACES[j]) / np.linalg.norm(PLACES[i] - PLACES[j])
            b = np.zeros(12)
            b[3 * i : 3 * i + 3], b[3 * j : 3 * j + 3] = along, -along
            K += 1e3 * np.outer(b, b)
    return K


GOOD: dict[str, Any] = {"K": bars(), "M": np.eye(12), "nodes": PLACES, "interfaces": {"a": [0, 1, 2]}, "modes": 2}


@pytest.mark.parametrize(
    ("what", "given"),
    [
        *(("K", x) for x in (5, "x", None, [[1, 2], [3]], np.eye(3), object(), 1j * np.eye(12), NAN * np.eye(12))),
        *(("M", x) for x in (5, "x", None, -np.eye(12), np.zeros((12, 12)), NAN * np.eye(12))),
        *(("nodes", x) for x in (5, "x", None, [], PLACES[:2], 0 * PLACES, NAN * PLACES)),
        *(("interfaces", x) for x in (5, "x", None, {}, [("a", [0, 1, 2])], {"a": None}, {"a": "xyz"}, {"a": 0.5})),
        *(("interfaces", {name: [0, 1, 2]}) for name in ("", 5, "a\n", "\u202ea")),
        *(("modes", x) for x in (-1, "x", None, 1.5, True, NAN, 10**9)),
        *(("below", x) for x in ("x", None, NAN, -1.0, 0.0)),
    ],
)
def test_flexible(what: str, given: Any) -> None:
    bc.flexible(**GOOD)
    with pytest.raises(bc.ModelError, match=r"expected|matrix|interface|below is"):
        bc.flexible(**{**GOOD, what: given})


@pytest.mark.parametrize(
    ("what", "given"),
    [
        *(("length", x) for x in ("x", NAN, -1.0, None, 1e300, 1e-300)),
        *(("section", x) for x in (5, None, "x", (1, 2, 3), lambda s: 1 / 0, lambda s: None, lambda: 5)),
        *(("section", x) for x in ((bc.Section.circle(0.1),), (bc.Section.circle(0.1), 5))),
        *(("material", x) for x in ("x", 5)),
        *(("elements", x) for x in (0, 1.5, "x", True, 10**7)),
        *(("theory", x) for x in ("x", None, [1])),
        *(("motions", x) for x in (5, "twist", None, [], [5])),
        *(("nodes", x) for x in (5, "x", [("a", 1.0)], {"a": "x"}, {"a": 2.0}, {5: 1.0}, {"": 1.0}, {"a\n": 1.0})),
        *(("modes", x) for x in (-1, 1.5, "x", None, True, 10**6)),
        *(("below", x) for x in ("x", NAN, -1.0)),
        *(("damping", x) for x in ("x", NAN, -1.0)),
        *(("rayleigh", x) for x in (5, "x", (1.0,), (1.0, 2.0, 3.0), None, (NAN, 0.0), (-1.0, 0.0), (0.0, -1.0))),
    ],
)
def test_beams(what: str, given: Any) -> None:
    parts: dict[str, Any] = {"length": 1.0, "section": bc.Section.circle(0.01), "material": bc.Material.steel()}
    with pytest.raises(bc.ModelError):
        bc.Builder("m").beam("beam", **{**parts, "elements": 4, what: given})
    if what in ("damping", "rayleigh"):
        with pytest.raises(bc.ModelError):
            bc.Builder("m").flexible("body", bc.flexible(**GOOD), **{what: given})


@pytest.mark.parametrize(
    "make",
    [
        lambda: bc.Section("general", (1.0,)),
        lambda: bc.Section("rectangle", 5),  # type: ignore[arg-type]
        lambda: bc.Section([1], (1.0,)),  # type: ignore[arg-type]
        lambda: bc.Section.rectangle(1e200, 1e200),
        lambda: bc.Section.rectangle(1e-200, 1e-200),
        lambda: bc.Section.tube(1.0, 0.6),
        lambda: bc.Material(1e9, "x", 1.0),  # type: ignore[arg-type]
        lambda: bc.Material(1e9, NAN, 1.0),
    ],
)
def test_sections_and_materials(make: Any) -> None:
    with pytest.raises(bc.ModelError):
        make()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "begins with"),
        ("x" * 1_000_000, "begins with"),
        (f"{HEAD} coordinate {'z' * 100_000} general\n", "expected real"),
        (f"{HEAD} coordinate real general\ninf 2 1\n", "no sizes"),
        (f"{HEAD} coordinate real general\nnan 2 1\n", "no sizes"),
        (f"{HEAD} coordinate real general\n1e300 0 0\n", "no sizes"),
        (f"{HEAD} coordinate real general\n1e300 1e300 0\n", "too large"),
        (f"{HEAD} coordinate real general\n2 2 1e300\n", "cut short"),
        (f"{HEAD} coordinate real general\n2 2 1\n1.5 1 3\n", "outside"),
        (f"{HEAD} coordinate real general\n2 2 1\n1e30 1 3\n", "outside"),
        (f"{HEAD} coordinate real general\n2 2 1\n1 1 nan\n", "not finite"),
        (f"{HEAD} coordinate real symmetric\n2 3 1\n1 3 1\n", "expected a square"),
        (f"{HEAD} array real symmetric\n2 3\n1 2 3\n", "expected a square"),
        (f"{HEAD} coordinate real symmetric\n2 2 2\n1 2 1\n2 1 1\n", "count twice"),
        (f"{HEAD} array real general\n1 1\n{'y' * 1_000_000}", "not a number"),
    ],
    ids=lambda x: x[:60],
)
def test_matrix_files(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    path.write_text(text)
    with pytest.raises(bc.ReadError, match=says) as caught:
        bc.read_matrix(path)
    assert len(str(caught.value)) < 1000


def test_invalid_matrix_files_raise(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "none", "a\0b", "\ud800", 5, None, "/dev/zero"):
        with pytest.raises(bc.ReadError):
            bc.read_matrix(path)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(4))
def test_damaged_matrix_files(seed: int, tmp_path: Path) -> None:
    """A damaged matrix file gives a clear error, or a matrix of finite numbers."""
    chance, path = random.Random(seed), tmp_path / "a.mtx"
    good = [
        f"{HEAD} coordinate real symmetric\n% made\n3 3 4\n1 1 2.5\n2 2 1e3\n3 1 -4\n3 3 1\n",
        f"{HEAD} array real general\n2 2\n1\n2\n3\n4\n",
    ]
    words = [
        "nan",
        "inf",
        "-1",
        "1e999",
        "0",
        "99999999999999999999",
        "\0",
        "\x1b",
        "1.5",
        "é",
        " ",
        "\n",
        "%",
        "general",
    ]
    for _ in range(300):
        text = list(chance.choice(good))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(text))
            text[at : at + chance.randint(0, 3)] = chance.choice(words)
        path.write_text("".join(text), encoding="utf-8")
        said = ""
        try:
            assert np.isfinite(bc.read_matrix(path)).all()
        except bc.ReadError as error:
            said = str(error)
        assert len(said) < 1000
        assert all(c.isprintable() or c == "\n" for c in said)
