"""`python -m bench.code_lines [REVISION ...]`: lines of code of src by package.

Blank lines, comments and docstrings do not count. Without a revision, the working tree is counted. With several, the
last column shows the change from the first to the last.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}
SCOPES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.code_lines", description="Lines of code by package.")
    parser.add_argument("revisions", nargs="*", metavar="REVISION", help="commits; the working tree by default")
    revisions = parser.parse_args().revisions or [""]
    counts = [package_lines(revision) for revision in revisions]
    names = sorted(set().union(*counts), key=lambda name: -counts[-1][name])
    print(f"{'':14}" + "".join(f"{revision[:10] or 'now':>12}" for revision in revisions))
    rows = [(name, *(count[name] for count in counts)) for name in names]
    for name, *numbers in [*rows, ("total", *map(Counter.total, counts))]:
        change = f"{numbers[-1] / max(1, numbers[0]) - 1:+12.1%}" if len(numbers) > 1 else ""
        print(f"{name:14}" + "".join(f"{number:12,}" for number in numbers) + change)


def package_lines(revision: str) -> Counter[str]:
    """Return the lines of code of each package; see `code_lines`."""
    total: Counter[str] = Counter()
    for path, text in sources(revision):
        parts = path.removeprefix("src/bellcrank/").split("/")
        total[parts[0] if len(parts) > 1 else "(beside them)"] += code_lines(text)
    return total


def sources(revision: str) -> Iterator[tuple[str, str]]:
    """Yield path and text of each Python file of src, of a commit or of the working tree."""
    if not revision:
        for path in sorted((ROOT / "src").rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
        return
    for path in git("ls-tree", "-r", "--name-only", revision, "src").split():
        if path.endswith(".py"):
            yield path, git("show", f"{revision}:{path}")


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def code_lines(text: str) -> int:
    """Return the number of lines with code; a docstring is none."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, SCOPES) and ast.get_docstring(node, clean=False) is not None:
            docstrings |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


if __name__ == "__main__":
    main()
