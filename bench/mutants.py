"""`python -m bench.mutants`: plant errors in the mathematics, one at a time, and see which of them the tests find.

    python -m bench.mutants --list                      print the planted errors
    python -m bench.mutants --workers 16 --json F       plant them all, and write what became of each
    python -m bench.mutants --workers 16 --json F --all-tests     try those that F has as not found with all tests
    python -m bench.mutants --only 17                   one of them, with the output of the tests

An error is a sign, an operation, a comparison or a number that is changed in an expression of a function. They are
drawn from FOLDERS with a fixed seed, as many from each folder as its number of possible errors demands. Constants of
messages, tolerances and limits are left out, since another limit is not an error. An error that no test finds is
printed with its place and its source before and after.

A first run without errors records which tests call which functions (called_functions.py). For each error, the tests
that call its function run: of each test function the shortest case first, since its cases are alike, for up to
NEAR_SECONDS. Tests that fail without an error do not count. Functions that nearly every test calls, such as checks of a
mechanism, have more tests than that: `--all-tests` decides about what is left. Without the other programs, tests/peers
are skipped and find nothing.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import called_functions

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("dynamics", "integrate", "actuators", "excavators", "papers")
# The tests of the mathematics, in the order of how often they find an error.
TESTS = (
    *("tests/golden", "tests/papers", "tests/laws", "tests/unit"),
    *("tests/targets", "tests/crossing", "tests/peers"),
)
COPIED = ("src", "tests", "docs", "examples", "bench", "pyproject.toml", "README.md", "ARCHITECTURE.md", "CHANGELOG.md")
LIMIT_SECONDS = 900.0  # for the tests of one error; an endless loop is found by this
NEAR_SECONDS = 150.0  # of tests that call the function of an error
SEED = 2026
CHANGED_BY = 1.01  # factor of a changed number
SMALLEST = 1e-3  # smaller numbers are tolerances

OPERATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.Gt, ast.GtE: ast.Lt}
# Statements and calls in which a change is no error of a result: messages, warnings, checks of arguments.
MESSAGES = ("Error", "warn", "brief", "format", "quoted", "_text", "note")


@dataclass(frozen=True)
class Mutant:
    """An error: the file, the place of the expression, and its source before and after."""

    file: str
    line: int
    column: int
    before: str
    after: str


def mutants(count: int, seed: int = SEED) -> list[Mutant]:
    """Return `count` errors, drawn at random from all that are possible; the same for each `seed`."""
    possible = [(path, node) for folder in FOLDERS for path in files(folder) for node in changeable_nodes(path)]
    chosen = random.Random(seed).sample(possible, min(count, len(possible)))
    return sorted((mutant_of(*each) for each in chosen), key=lambda m: (m.file, m.line, m.column))


def files(folder: str) -> list[Path]:
    return sorted((ROOT / "src/bellcrank" / folder).rglob("*.py"))


def changeable_nodes(path: Path) -> list[ast.expr]:
    """Return the expressions in the functions of a file in which an error can be planted."""
    return [node for node in changeable(ast.parse(path.read_text("utf-8"))) if changed(node) is not None]


def mutant_of(path: Path, node: ast.expr) -> Mutant:
    """Return the error in an expression of a file."""
    before, after = ast.get_source_segment(path.read_text("utf-8"), node), changed(node)
    assert before is not None
    assert after is not None
    return Mutant(path.relative_to(ROOT).as_posix(), node.lineno, node.col_offset, before, ast.unparse(after))


def changeable(node: ast.AST, inside: bool = False) -> Iterator[ast.expr]:
    """Yield the expressions in functions, without annotations, messages and default values."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for statement in node.body:
            yield from changeable(statement, True)
        return
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Subscript) or is_message(node):
        return
    if isinstance(node, ast.AnnAssign):
        if node.value is not None:
            yield from changeable(node.value, inside)
        return
    if inside and isinstance(node, ast.expr):
        yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.Compare) and isinstance(child, ast.Constant)):  # a limit
            yield from changeable(child, inside)


def is_message(node: ast.AST) -> bool:
    """Return whether a node is a call that only makes or prints a text."""
    return isinstance(node, ast.Call) and any(word in ast.unparse(node.func) for word in MESSAGES)


def changed(node: ast.expr) -> ast.expr | None:
    """Return the expression with an error, or None if there is none to make."""
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS and not is_text(node):
        return ast.BinOp(node.left, OPERATIONS[type(node.op)](), node.right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
        return node.operand
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        return ast.Compare(node.left, [COMPARISONS[type(node.ops[0])]()], node.comparators)
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, float)
        and node.value >= SMALLEST
        and node.value != 1.0
    ):
        return ast.Constant(node.value * CHANGED_BY)
    return None


def is_text(node: ast.BinOp) -> bool:
    """Return whether an operation joins texts or lists."""
    return any(
        isinstance(x, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp) or isinstance(getattr(x, "value", None), str)
        for x in ast.walk(node)
    )


def planted(text: str, mutant: Mutant) -> str:
    """Return the text of a file with the error in its place."""
    lines = text.splitlines(keepends=True)
    start = sum(map(len, lines[: mutant.line - 1]))
    at = start + len(lines[mutant.line - 1].encode()[: mutant.column].decode())
    assert text[at : at + len(mutant.before)] == mutant.before
    return f"{text[:at]}({mutant.after}){text[at + len(mutant.before) :]}"


@dataclass(frozen=True)
class TestRun:
    """Seconds and called functions of each test that passes without an error."""

    seconds: dict[str, float]
    callers: dict[str, list[str]]  # tests by function, "path:first line", the shortest first

    def near(self, mutant: Mutant) -> list[str]:
        """Return tests that call the function of an error, one case of each test function first."""
        chosen, total = [], 0.0
        for test in alternated(self.callers.get(function_of(mutant), [])):
            total += self.seconds[test]
            if chosen and total > NEAR_SECONDS:
                break
            chosen.append(test)
        return chosen


def alternated(tests: Sequence[str]) -> list[str]:
    """Return the first case of each test function, then the second of each, and so on; otherwise in the given order."""
    cases: Counter[str] = Counter()
    turns = []
    for test in tests:
        family = test.partition("[")[0]
        cases[family] += 1
        turns.append((cases[family], len(turns), test))
    return [test for _, _, test in sorted(turns)]


def function_of(mutant: Mutant) -> str:
    """Return the innermost function around an error, as called_functions.py names it."""
    tree = ast.parse((ROOT / mutant.file).read_text("utf-8"))
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.lineno <= mutant.line <= (node.end_lineno or 0)
    ]
    innermost = max(around, key=lambda node: node.lineno)
    first = min([innermost.lineno, *(decorator.lineno for decorator in innermost.decorator_list)])
    return f"{mutant.file.removeprefix('src/bellcrank/')}:{first}"


def test_run(workers: int, folder: Path) -> TestRun:
    """Run the tests without an error, unless `folder` has their records already, and return these."""
    if not folder.exists():
        command = [sys.executable, "-m", "pytest", "-p", "bench.called_functions", "-q", "-n", str(workers), *TESTS]
        environment = os.environ | {called_functions.VARIABLE: str(folder)}
        run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        print("\n".join((run.stdout + run.stderr).splitlines()[-30:]), flush=True)
    rows = {}
    for file in folder.glob("*.json"):
        rows |= json.loads(file.read_text("utf-8"))
    passed = {test: row for test, row in rows.items() if row[0] == "passed"}
    if not passed:
        raise SystemExit("no test passes without an error")
    callers: dict[str, list[str]] = {}
    for test in sorted(passed, key=lambda test: passed[test][1]):
        for function in passed[test][2]:
            callers.setdefault(function, []).append(test)
    return TestRun({test: row[1] for test, row in passed.items()}, callers)


def result(mutant: Mutant, tests: Sequence[str], workers: int = 0, show: bool = False) -> dict[str, object]:
    """Return what became of an error: the test that found it, or nothing; and the seconds that the tests took."""
    began = time.monotonic()
    with TemporaryDirectory(prefix="mutant") as name:
        folder = Path(name) / "copy"
        folder.mkdir()
        for entry in COPIED:
            source = ROOT / entry
            if source.is_dir():
                shutil.copytree(source, folder / entry, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / entry)
        file = folder / mutant.file
        file.write_text(planted(file.read_text("utf-8"), mutant), "utf-8")
        (folder / "tests.txt").write_text("\n".join(tests), "utf-8")
        arguments = ["-m", "pytest", "-x", "-q", "-n", str(workers), "-p", "no:cacheprovider", "-rf", "--tb=no"]
        paths = {
            "PYTHONPATH": os.pathsep.join([str(folder / "src"), str(folder / "tests"), str(folder), *sys.path[1:]])
        }
        try:
            run = subprocess.run(
                [sys.executable, *arguments, "-m", "", "@tests.txt"],
                cwd=folder, env=os.environ | paths, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False,
            )  # fmt: skip
            output = run.stdout
            failures = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
            found_by = failures[0] if failures else "" if run.returncode == 0 else f"pytest ended with {run.returncode}"
        except subprocess.TimeoutExpired:
            output, found_by = "", "time limit"
    if show:
        print(output)
    return {"found_by": found_by, "seconds": round(time.monotonic() - began, 1)}


def results(chosen: Sequence[tuple[int, Mutant]], tests: TestRun, workers: int) -> Iterator[dict[str, Any]]:
    """Plant errors side by side, with the tests that call their functions, and yield what became of each."""
    with ThreadPoolExecutor(workers) as pool:
        waiting = {}
        for number, mutant in chosen:
            if near := tests.near(mutant):
                waiting[pool.submit(result, mutant, near)] = number, mutant
            else:
                yield {"number": number, **asdict(mutant), "found_by": "", "seconds": 0.0}
        for done in as_completed(waiting):
            number, mutant = waiting[done]
            yield {"number": number, **asdict(mutant), **done.result()}


def results_of_all_tests(rows: Sequence[dict[str, Any]], tests: TestRun, workers: int) -> Iterator[dict[str, Any]]:
    """Plant the errors of `rows` one after the other, with all tests on all processors."""
    for row in rows:
        mutant = Mutant(**{field.name: row[field.name] for field in fields(Mutant)})
        yield row | result(mutant, sorted(tests.seconds), workers)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.mutants", description="Plant errors and count those found.")
    parser.add_argument("--count", type=int, default=200, help="number of errors (default: 200)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="errors at the same time")
    parser.add_argument("--list", action="store_true", help="print them and stop")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="only one, with the output of the tests")
    parser.add_argument("--json", metavar="FILE", type=Path, default=Path("build/mutants.json"), help="file of results")
    parser.add_argument("--calls", metavar="FOLDER", type=Path, default=Path("build/calls"), help="records of tests")
    parser.add_argument("--all-tests", action="store_true", help="errors of FILE that were not found, by all tests")
    options = parser.parse_args()
    chosen = list(enumerate(mutants(options.count)))
    if options.list:
        for number, m in chosen:
            print(f"{number:4} {m.file}:{m.line}  {single_line(m.before)}  ->  {single_line(m.after)}")
        return
    tests = test_run(options.workers, options.calls.resolve())
    if options.only is not None:
        _, mutant = chosen[options.only]
        print(result(mutant, tests.near(mutant), show=True))
        return
    rows: dict[int, dict[str, Any]] = {}
    if options.all_tests:
        rows = {row["number"]: row for row in json.loads(options.json.read_text("utf-8"))}
        missed = [row for row in rows.values() if not row["found_by"]]
        new = results_of_all_tests(missed, tests, options.workers)
    else:
        new = results(chosen, tests, options.workers)
    for done, row in enumerate(new, 1):
        rows[row["number"]] = row
        place = f"{row['number']:4} {row['file']}:{row['line']}"
        print(f"{done:4} {row['seconds']:6} s {place}  {row['found_by'] or 'NOT FOUND'}", flush=True)
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(list(rows.values()), indent=1), "utf-8")
    missed = sorted((row for row in rows.values() if not row["found_by"]), key=lambda row: row["number"])
    print(f"{len(rows) - len(missed)} of {len(rows)} errors are found ({1 - len(missed) / len(rows):.1%})")
    for row in missed:
        before, after = single_line(row["before"]), single_line(row["after"])
        print(f"{row['number']:4} {row['file']}:{row['line']}  {before}  ->  {after}")
    sys.exit(bool(missed))


def single_line(text: object) -> str:
    return " ".join(str(text).split())


if __name__ == "__main__":
    main()
