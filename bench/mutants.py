"""`python -m bench.mutants`: plant errors in the mathematics, one at a time, and see which of them the tests find.

    python -m bench.mutants --list               print the planted errors
    python -m bench.mutants --workers 16         plant them all (each runs the tests until the first failure)
    python -m bench.mutants --only 17            one of them, with the output of the tests
    python -m bench.mutants --json found.json    also write what became of each

An error is a sign, an operation, a comparison or a number that is changed in an expression of a function. They are
drawn from FOLDERS with a fixed seed, as many from each folder as its number of possible errors demands. Constants of
messages, tolerances and limits are left out, since another limit is not an error. An error that no test finds is
printed with its place and its source before and after.
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
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("dynamics", "integrate", "actuators", "excavators", "papers")
# The tests of the mathematics, in the order of how often they find an error.
TESTS = ("tests/golden", "tests/papers", "tests/laws", "tests/unit", "tests/targets")
COPIED = ("src", "tests", "docs", "examples", "bench", "pyproject.toml", "README.md", "ARCHITECTURE.md", "CHANGELOG.md")
LIMIT_SECONDS = 3600.0  # for the tests of one error; an endless loop is found by this
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
    possible = [m for folder in FOLDERS for path in files(folder) for m in possible_mutants(path)]
    chosen = random.Random(seed).sample(possible, min(count, len(possible)))
    return sorted(chosen, key=lambda m: (m.file, m.line, m.column))


def files(folder: str) -> list[Path]:
    return sorted((ROOT / "src/bellcrank" / folder).rglob("*.py"))


def possible_mutants(path: Path) -> Iterator[Mutant]:
    """Yield an error for each expression of the functions of a file that can be changed."""
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    for node in changeable(tree):
        after = changed(node)
        before = ast.get_source_segment(text, node)
        if after is not None and before is not None:
            yield Mutant(path.relative_to(ROOT).as_posix(), node.lineno, node.col_offset, before, ast.unparse(after))


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


def result(mutant: Mutant, show: bool = False) -> dict[str, object]:
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
        arguments = ["-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-rf", "--tb=no", *TESTS]
        paths = {
            "PYTHONPATH": os.pathsep.join([str(folder / "src"), str(folder / "tests"), str(folder), *sys.path[1:]])
        }
        try:
            run = subprocess.run(
                [sys.executable, *arguments],
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.mutants", description="Plant errors and count those found.")
    parser.add_argument("--count", type=int, default=200, help="number of errors (default: 200)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="errors at the same time")
    parser.add_argument("--list", action="store_true", help="print them and stop")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="only one, with the output of the tests")
    parser.add_argument("--json", metavar="FILE", help="also write the results to a file")
    options = parser.parse_args()
    chosen = list(enumerate(mutants(options.count)))
    if options.only is not None:
        chosen = [chosen[options.only]]
    if options.list:
        for number, m in chosen:
            print(f"{number:4} {m.file}:{m.line}  {single_line(m.before)}  ->  {single_line(m.after)}")
        return
    rows = []
    with ThreadPoolExecutor(options.workers) as pool:
        waiting = {pool.submit(result, m, options.only is not None): (number, m) for number, m in chosen}
        for done in as_completed(waiting):
            (number, m), became = waiting[done], done.result()
            rows.append({"number": number, **asdict(m), **became})
            print(
                f"{len(rows):4}/{len(chosen)} {number:4} {m.file}:{m.line}  {became['found_by'] or 'NOT FOUND'}",
                flush=True,
            )
            if options.json:
                Path(options.json).write_text(json.dumps(rows, indent=1), "utf-8")
    missed = [row for row in rows if not row["found_by"]]
    print(f"{len(rows) - len(missed)} of {len(rows)} errors are found ({1 - len(missed) / len(rows):.1%})")
    for row in missed:
        before, after = single_line(row["before"]), single_line(row["after"])
        print(f"{row['number']:4} {row['file']}:{row['line']}  {before}  ->  {after}")
    sys.exit(bool(missed))


def single_line(text: object) -> str:
    return " ".join(str(text).split())


if __name__ == "__main__":
    main()
