"""The schedules of the papers are executed as predicted, with the results of one core."""

from __future__ import annotations

from reruns import rerun


def test_programs_take_the_predicted_time() -> None:
    papers, general, _ = rerun("executed").tables
    for row in (*papers.rows, *general.rows):
        predicted, executed, difference = row[2], row[3], row[8]
        assert predicted == executed
        assert difference == "below 1e-12"
    assert {row[0].partition(",")[0] for row in papers.rows} == {"Wong", "Schäfer", "Fijany"}
    assert len(papers.rows) == 8 + 2 + 14 + 4
    assert len(general.rows) == 24


def test_plans_for_free_messages_are_late_on_transputers() -> None:
    _, _, elsewhere = rerun("executed").tables
    for row in elsewhere.rows:
        assert float(row[3]) > 1.5 * float(row[2])
        assert row[8] == "below 1e-12"
