"""Points of a study: every design follows from its seed alone, and invalid ranges give a message."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import InputError, ReadError
from bellcrank.record.table_files import read_table
from bellcrank.studies.sampling_plans import points, saltelli

pytest.importorskip("scipy")

OVER = {"a": bc.uniform(2.0, 3.0), "b": bc.log_uniform(1.0, 1e4), "c": [0.1, 0.2, 0.4]}


@pytest.mark.parametrize("design", ["random", "latin", "sobol"])
def test_designs_have_their_distributions(design: str) -> None:
    made = points(OVER, 3000, design, 5)
    a, b, c = (made.columns[n] for n in "abc")
    assert abs(a.mean() - 2.5) < 0.02
    assert abs(np.log10(b).mean() - 2.0) < 0.1
    assert sorted(np.unique(c)) == [0.1, 0.2, 0.4]
    assert min(np.unique(c, return_counts=True)[1]) > 900
    assert 2.0 < a.min() < a.max() < 3.0


def test_a_latin_hypercube_has_one_point_in_every_layer() -> None:
    a = points({"a": bc.uniform(0.0, 1.0), "b": bc.uniform(0.0, 1.0)}, 50, "latin", 0).columns
    for x in a.values():
        assert sorted(np.floor(x * 50).astype(int)) == list(range(50))


def test_a_normal_distribution() -> None:
    x = points({"a": bc.normal(3.0, 0.5)}, 4096, "sobol", 0).columns["a"]
    assert abs(x.mean() - 3.0) < 1e-2
    assert abs(x.std() - 0.5) < 1e-2


def test_a_grid_is_every_combination() -> None:
    made = points({"a": [1, 2], "m": ["x", "y", "z"]}, None, None, 0)
    assert made.design == "grid"
    assert list(zip(made.columns["a"], made.columns["m"])) == [(a, m) for a in (1, 2) for m in "xyz"]


def test_seeds_decide() -> None:
    for design in ("random", "latin", "sobol"):
        same, other = points(OVER, 40, design, 1), points(OVER, 40, design, 2)
        assert same.digest == points(OVER, 40, design, 1).digest != other.digest


def test_saltelli_exchanges_one_column_at_a_time() -> None:
    A, B = np.zeros((2, 3)), np.ones((2, 3))
    rows = saltelli(A, B).reshape(2, 5, 3)
    assert rows[0].tolist() == [[0, 0, 0], [1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_tables(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("# by hand\nboom.mass,how\n1500,a\n2000,b\n")
    made = points(None, None, str(tmp_path / "t.csv"), 0)
    assert made.columns["boom.mass"].tolist() == [1500.0, 2000.0]
    assert made.columns["how"].tolist() == ["a", "b"]
    assert points(None, 2, {"x": [1.0, 2.0]}, 0).columns["x"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: bc.uniform(2.0, 2.0), "empty range"),
        (lambda: bc.uniform(0.0, float("nan")), "finite"),
        (lambda: bc.log_uniform(0.0, 1.0), "above zero"),
        (lambda: bc.normal(0.0, 0.0), "deviation"),
        (lambda: points({}, 10, None, 0), "what varies"),
        (lambda: points({"a": []}, 10, None, 0), "empty list"),
        (lambda: points({"a": [1.0, float("nan")]}, 10, None, 0), "finite"),
        (lambda: points({"a": [1.0, "x"]}, 10, None, 0), "one kind"),
        (lambda: points({"a": 3.0}, 10, None, 0), "list of values"),
        (lambda: points({"a": bc.uniform(0, 1)}, None, None, 0), "runs is None"),
        (lambda: points({"a": bc.uniform(0, 1)}, 0, None, 0), "runs is 0"),
        (lambda: points({"a": bc.uniform(0, 1)}, 10, "sobl", 0), "sobol"),
        (lambda: points({"a": bc.uniform(0, 1)}, None, "grid", 0), "expected a list"),
        (lambda: points({"a": bc.uniform(0, 1)}, 10, "saltelli", 0), "Take 9"),
        (lambda: points({"a": [1, 2]}, 3, "grid", 0), "2 points"),
        (lambda: points(None, None, {"x": [1.0], "y": [1.0, 2.0]}, 0), "different lengths"),
        (lambda: points(None, None, {"x": [1.0, float("nan")]}, 0), "row 1"),
        (lambda: points(None, None, {"x": []}, 0), "no rows"),
        (lambda: points({"a": [1]}, None, {"x": [1.0]}, 0), "leave out over"),
    ],
)
def test_invalid_points_raise(make, word: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=word):
        make()


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="cannot be read"):
        read_table(tmp_path / "none.csv")
    (tmp_path / "t.csv").write_text("a,b\n1\n")
    with pytest.raises(ReadError, match="line 2 has 1 cells"):
        read_table(tmp_path / "t.csv")
    (tmp_path / "e.csv").write_text("")
    with pytest.raises(ReadError, match="is empty"):
        read_table(tmp_path / "e.csv")


def test_numbers_of_numpy_in_a_list_are_numbers() -> None:
    made = points({"a": [*np.linspace(0.0, 1.0, 3)], "b": [np.int64(2), 3, np.float32(0.5)]}, 6, "latin", 0).columns
    assert set(np.unique(made["a"])) <= {0.0, 0.5, 1.0}
    assert set(np.unique(made["b"])) <= {0.5, 2.0, 3.0}
