"""Wong 1991, tables 2.1, 3.2, 3.3, 3.5 and figure 3.11: `bellcrank count chain --papers --n 2..16`."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from bellcrank.cli import app
from bellcrank.errors import InputError
from bellcrank.papers import fijany
from bellcrank.papers import operation_counts as papers
from bellcrank.papers.wong import serial_counts
from bellcrank.papers.wong.atom_programs import Cost
from bellcrank.papers.wong.serial_counts import cheapest, contradictions, serial_rows

TABLES = papers.published()["serial_tables"]


def test_cells_contradict_their_polynomials_only_where_the_thesis_does() -> None:
    """Every other cell equals its polynomial, so a digit that was copied wrongly fails here."""
    found = {table: [(name, n, cell.M, cell.A) for name, n, cell, _ in contradictions(table)] for table in TABLES}
    walker = [(631, 513), (907, 742), (1208, 991), (1537, 1261), (1893, 1553)]
    walker += [(2279, 1868), (2694, 2207), (3141, 2571), (3619, 2961), (4131, 3378)]
    assert found == {
        "2.1": [],
        "3.2": [("Proposed", 7, 1135, 851), ("Walker", 5, 555, 457), ("Fijany", 6, 664, 535)],
        "3.3": [("Angeles", 6, 536, 445)],
        "3.5": [("Walker", n, *cell) for n, cell in enumerate(walker, 3)],
    }
    # table 3.5 has Walker's M with 11 n^2 where table 3.1 has 27 n^2/2
    eleven = papers.parse_polynomial("n^3/6 + 11 n^2 + 577 n/3 - 49")
    assert all(abs(cell[0] - eleven(n)) < 1 for n, cell in enumerate(walker, 3))


@pytest.mark.parametrize("table", TABLES)
def test_counts_beyond_the_traced_sizes_are_those_of_a_trace(table: str) -> None:
    """The polynomial that fits n = 2 to 12 also counts a chain of 14 joints, traced."""
    for row in serial_rows(table)[1:2]:
        traced = [source.tally(14) for source in row.sources]
        assert row.traced(14) == Cost(sum(M for M, _ in traced), sum(A for _, A in traced))


def test_cheapest_algorithms_follow_the_printed_tables() -> None:
    """He's force vector is the least of table 3.3, Lilly's third matrix of table 3.2 (both stated in the thesis)."""
    assert {cheapest(serial_rows("3.3"), n) for n in TABLES["3.3"]["sizes"]} == {"He"}
    assert {cheapest(serial_rows("3.2"), n) for n in TABLES["3.2"]["sizes"]} == {"Lilly III"}
    assert [cheapest(serial_rows("3.5"), n) for n in (5, 6)] == ["Proposed", "Brandl"]
    assert cheapest(serial_rows("2.1"), 6) == "Brandl"  # Featherstone's 996 + 871 lack the force vector


def test_command_prints_every_row_for_every_n() -> None:
    done = CliRunner().invoke(app, ["count", "chain", "--papers", "--n", "2..16", "--json"])
    found = {t["title"].split(":")[0]: t for t in json.loads(done.stdout)}
    for table in TABLES:
        names = [row.name for row in serial_rows(table)]
        head, rows = found[f"Table {table}"]["head"], found[f"Table {table}"]["rows"]
        assert head == ["n", "", *names, "least M + A/2"]
        assert [row[0] for row in rows[::2]] == [str(n) for n in range(2, 17)]
    cells = {row[0]: row for row in found["Table 3.2"]["rows"]}
    assert cells["6"][found["Table 3.2"]["head"].index("Fijany")] == "664 [674] + 535"
    assert found["Figure 3.11"]["rows"][4][1] == f"{1391 + 1087 / 2:g}"
    text = CliRunner().invoke(app, ["count", "chain", "--papers", "--n", "2..16"]).stdout
    assert "He for 2 to 16" in " ".join(text.split())


def test_fijanys_printed_total_stands_beside_its_polynomial() -> None:
    """The slide prints 644 + 535 for six joints; its own polynomial gives 1209."""
    printed, polynomial = fijany.serial_rows(6)
    assert (printed[2], polynomial[2]) == (str(644 + 535), "1209")
    assert len(fijany.serial_rows(8)) == 1


@pytest.mark.parametrize("text", ["1..4", "5..3", "", "x", "2...4", "2..2000", "-3"])
def test_bad_numbers_of_joints_are_explained(text: str) -> None:
    with pytest.raises(InputError, match=r"2\.\.16"):
        serial_counts.parse_sizes(text)
    assert CliRunner().invoke(app, ["count", "chain", "--n", "2..4"]).exit_code == 2
