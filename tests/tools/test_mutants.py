"""bench/mutants.py: planted errors change one expression, and tests of all kinds are tried on them."""

from __future__ import annotations

import ast

from bench.mutants import NEAR_SECONDS, ROOT, TestRun, function_of, mutants, planted


def test_planted_errors_change_one_expression_of_a_function() -> None:
    for mutant in mutants(20):
        text = (ROOT / mutant.file).read_text("utf-8")
        assert ast.dump(ast.parse(planted(text, mutant))) != ast.dump(ast.parse(text))
        assert function_of(mutant).partition(":")[0] in mutant.file


def test_a_case_of_each_test_function_runs_before_further_ones() -> None:
    """A long list of short cases of one test does not displace another test."""
    (mutant,) = mutants(1)
    cases = [f"many[{k}]" for k in range(500)]
    run = TestRun(dict.fromkeys(cases, 1.0) | {"other": 2.0}, {function_of(mutant): [*cases, "other"]})
    near = run.near(mutant)
    assert near[:2] == ["many[0]", "other"]
    assert sum(run.seconds[test] for test in near) <= NEAR_SECONDS
