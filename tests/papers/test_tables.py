"""Tables over all papers: `bellcrank count chain --papers` and docs/methods/family.md."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bellcrank.cli import app
from bellcrank.dynamics import METHODS
from bellcrank.papers import is_near
from bellcrank.papers import operation_counts as papers

PAGE = (Path(__file__).parents[2] / "docs/methods/family.md").read_text("utf-8")
ROWS = papers.PUBLISHED_COUNTS


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.key}-{row.method}" for row in ROWS])
def test_our_form_needs_no_more_than_the_print(row: papers.PublishedCount) -> None:
    """For the paper's own method, and for other methods of the same quantity."""
    found = papers.compare_counts(row)
    for n in (6, 10):
        assert found.ours(n) <= found.theirs(n)


def test_every_printed_count_is_compared() -> None:
    counts = papers.published()["counts"]
    compared = {(row.table, row.key) for row in ROWS}
    for table in ("forward_dynamics", "wong_parts", "mass_matrix"):
        missing = [key for key in counts[table] if (table, key) not in compared]
        assert missing in ([], ["bae"])  # Bae's count is of two functions: test_wong1991_compared.py


def test_command_prints_the_comparison() -> None:
    done = CliRunner().invoke(app, ["count", "chain", "--papers", "--json"])
    assert done.exit_code == 0
    rows = json.loads(done.stdout)
    assert [row["method"] for row in rows] == [row.method for row in ROWS]
    for row, shown in zip(ROWS, rows, strict=True):
        assert shown["traced"]["M"] == str(papers.compare_counts(row).M)
        assert shown["at"]["6"]["traced"] == papers.compare_counts(row).ours(6)
    text = CliRunner(env={"COLUMNS": "120"}).invoke(app, ["count", "chain", "--papers"]).stdout
    assert all(row.title.split(",")[0] in text for row in ROWS)
    wrong = CliRunner().invoke(app, ["count", "excavator", "--papers"])
    assert wrong.exit_code == 2
    assert "count chain --papers" in wrong.stderr


def test_the_page_has_every_method() -> None:
    table = PAGE[PAGE.index("| method | J |") :].split("\n\n")[0]
    named = {name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    none = {"kinematics", "closure", "derivatives", "coriolis", "centroidal", "frame_motion"}  # not formulations
    assert named == set(METHODS) - none
    assert f"{len(named) + 1} methods" in PAGE  # and kinematics, which all of them need


SHOWN = {
    "mass matrix: `crba`": ("crba", "mass_matrix", ("q",)),
    "`vcrb`": ("vcrb", "mass_matrix", ("q",)),
    "force vector: `rnea`": ("rnea", "bias", ("q", "v")),
    "accelerations, forces given: `crba`": ("crba", "accelerations", ("q", "phi")),
    "`denoc`": ("denoc", "accelerations", ("q", "phi")),
    "forward dynamics, all included: `crba`": ("crba", "forward_dynamics", ("q", "v", "tau")),
    "`aba`": ("aba", "forward_dynamics", ("q", "v", "tau")),
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_page_has_the_counts_of_today(name: str) -> None:
    found = papers.compare_counts(papers.PublishedCount("", name, *SHOWN[name]))
    assert f"| {name} | {found.M} | {found.A} | {found.ours(6)} | {found.ours(10)} |" in PAGE
    assert found.least_n <= 4


def test_numbers_from_plots_agree_in_sign_and_within_their_share() -> None:
    assert is_near(-2.3, -2.0)
    assert is_near(0.085, 0.1)
    assert not is_near(2.0, -2.0)
    assert not is_near(0.13, 0.1)
    assert not is_near(1.1, 1.0, share=0.05)
