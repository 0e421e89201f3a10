"""`bellcrank papers`: the list, the tables, and the figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

import pytest
from defusedxml import ElementTree
from test_cli import data, good, run

from bellcrank.build.schedules import PROGRAMS
from bellcrank.cli.schedule import MACHINE_NAMES
from bellcrank.papers import EXPERIMENTS
from bellcrank.scheduling.machines import LAYOUTS

FIGURES = Path(__file__).parents[2] / "docs/figures"


def test_command_without_a_name_lists_experiments() -> None:
    text = good("papers")
    assert all(name in text for name in EXPERIMENTS)
    assert [row["name"] for row in data("papers")] == list(EXPERIMENTS)


def test_tables() -> None:
    text = " ".join(good("papers", "schaefer1992").split())
    assert all(word in text for word in ("1596", "1141", "688 us", "subsystems + modules"))
    (found,) = data("papers", "nikravesh1989")
    assert found["tables"][0]["rows"][0] == ["print", "11", "", "", "", "", "76"]
    assert found["written"] == []


def test_figures_are_written_and_written_again(tmp_path: Path) -> None:
    for _ in range(2):
        assert "wrote" in good("papers", "nikravesh1989", "--out", str(tmp_path))
    assert [p.name for p in tmp_path.iterdir()] == ["nikravesh1989_figure_7.svg"]
    (tmp_path / "nikravesh1989_figure_7.svg").write_text("<svg>mine</svg>")
    assert run("papers", "nikravesh1989", "--out", str(tmp_path)).exit_code == 2
    assert (tmp_path / "nikravesh1989_figure_7.svg").read_text() == "<svg>mine</svg>"


def test_bad_names_are_explained() -> None:
    assert 'Did you mean "wong1991"' in run("papers", "wong").output
    assert "name the experiment" in run("papers", "--out", "x").output


@pytest.mark.parametrize(
    "file", ["nikravesh", "nikravesh_recursion", "wong.comparison", "wong.serial_counts", "schaefer"]
)
def test_the_figures_of_the_docs_are_current(file: str) -> None:
    """The figures in docs/figures are current.

    `bellcrank papers NAME --out docs/figures` writes them. Pages are too long to keep.
    """
    drawings: Mapping[str, Callable[[], str]] = import_module(f"bellcrank.papers.{file}").FIGURES
    for name, draw in drawings.items():
        text = draw()
        if name.endswith(".svg"):
            assert ElementTree.fromstring(text).tag.endswith("svg")
            assert (FIGURES / name).read_text("utf-8") == text
        else:
            assert text.lower().startswith("<!doctype html>")


def test_schedule_offers_every_machine() -> None:
    assert (*LAYOUTS, "threads", "gpu", *PROGRAMS) == MACHINE_NAMES
