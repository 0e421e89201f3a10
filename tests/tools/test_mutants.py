"""bench/mutants.py: planted errors change one expression, and tests of all kinds are tried on them."""

from __future__ import annotations

import ast

from bench import mutants

FILE = mutants.ROOT / "src/bellcrank/dynamics/aba.py"


def test_planted_errors_change_one_expression_of_a_function() -> None:
    text = FILE.read_text("utf-8")
    nodes = mutants.changeable_nodes(FILE)
    assert len(nodes) > 20
    for node in nodes[:20]:
        mutant = mutants.mutant_of(FILE, node)
        assert ast.dump(ast.parse(mutants.planted(text, mutant))) != ast.dump(ast.parse(text))
        assert mutants.function_of(mutant).startswith("dynamics/aba.py:")


def test_a_case_of_each_test_function_runs_before_further_ones() -> None:
    """A long list of short cases of one test does not displace another test."""
    mutant = mutants.mutant_of(FILE, mutants.changeable_nodes(FILE)[0])
    cases = [f"many[{k}]" for k in range(500)]
    seconds = dict.fromkeys(cases, 1.0) | {"other": 2.0}
    near = mutants.TestRun(seconds, {mutants.function_of(mutant): [*cases, "other"]}).near(mutant)
    assert near[:2] == ["many[0]", "other"]
    assert sum(seconds[test] for test in near) <= mutants.NEAR_SECONDS
