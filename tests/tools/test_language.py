"""The language of sources and pages, checked by tools where there are some (CONTRIBUTING.md has the rules)."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

import bellcrank
import language
import readability

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(bellcrank.__file__).resolve().parent
# numpydoc: a docstring, its parameters (all, no others, in order, described), its results, a summary in one line.
CODES = {"GL08", "PR01", "PR02", "PR03", "PR07", "RT01", "RT03", "SS01", "SS03"}
# Modules of the same name within one tree: the interface that several packages implement.
SHARED_NAMES = {"__init__", "target"}


def test_docstrings_and_comments_use_plain_english() -> None:
    faults = {
        path.relative_to(PACKAGE).as_posix(): found
        for path in language.sources()
        if (found := language.wording_faults(path.read_text("utf-8")))
    }
    assert faults == {}


def test_other_docstrings_and_comments_use_plain_english() -> None:
    """The rules of the package hold for tests, benchmarks, documentation and examples."""
    faults = {
        path.relative_to(ROOT).as_posix(): found
        for path in language.other_sources(ROOT)
        if (found := language.wording_faults(path.read_text("utf-8")))
    }
    assert faults == {}


def test_tests_are_named_in_plain_english() -> None:
    faults = {
        path.relative_to(ROOT).as_posix(): found
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if (found := language.names_of_faulty_tests(ast.parse(path.read_text("utf-8"))))
    }
    assert faults == {}


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("test_what_cannot_be", True),
        ("test_it", True),
        ("test_a_long_run_says_so", True),
        ("test_gap_is_told", True),
        ("test_runs_begin_anew", True),
        ("test_items_of_a_list", False),
        ("test_zero_pivot_ends_the_run", False),
    ],
)
def test_private_test_names_are_found(name: str, fault: bool) -> None:
    tree = ast.parse(f"def {name}(): ...")
    assert language.names_of_faulty_tests(tree) == ([f"1: {name}"] if fault else [])


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('"""What is needed."""', 1),
        ('"""Return a sum."""\n# Of the others.\n', 1),
        ('def f():\n    """Do it anew."""', 1),
        ('"""Return a sum."""\n# Sums are exact.\n', 0),
    ],
)
def test_wording_faults_are_counted(source: str, count: int) -> None:
    assert len(language.wording_faults(source)) == count


def test_every_parameter_is_named() -> None:
    """Docstrings exist and have NumPy layout by ruff's rules D; this looks for the parameters in them."""
    faults = {
        path.relative_to(PACKAGE).as_posix(): found
        for path in language.sources()
        if (found := language.unnamed_parameters(ast.parse(path.read_text("utf-8"))))
    }
    assert faults == {}


def test_names_of_variables_state_contents() -> None:
    faults = {}
    for path in language.sources():
        public = f": {language.PUBLIC_FIELDS.get(path.name, path.name)}"
        names = language.vague_names(ast.parse(path.read_text("utf-8")))
        faults[path.relative_to(PACKAGE).as_posix()] = [name for name in names if not name.endswith(public)]
    assert {name: lines for name, lines in faults.items() if lines} == {}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("found = 1", ["1: found"]),
        ("def _function(at):\n    for by, x in at: ...", ["1: at", "2: by"]),
        ("class Task:\n    of: int\n    def __init__(self, on): self._kept = on", ["2: of", "3: _kept", "3: on"]),
        ("def function():\n    def inner(told): ...\n    return [made for made in ()]", ["2: told", "3: made"]),
        ("if (said := 1): asked = lambda found: found", ["1: asked", "1: found", "1: said"]),
        ("def function(of):\n    of = of or 1\n    by = 2", ["3: by"]),
        ("def product(b):\n    bx, by = b\n    return bx * by", []),
        ("nodes_found = at(1).of", []),
    ],
)
def test_vague_names_are_found(source: str, names: list[str]) -> None:
    assert language.vague_names(ast.parse(source)) == names


def test_options_have_help_texts() -> None:
    faults = {
        path.relative_to(PACKAGE).as_posix(): found
        for path in language.sources()
        if (found := language.options_without_help(ast.parse(path.read_text("utf-8"))))
    }
    assert faults == {}
    assert language.options_without_help(ast.parse('typer.Option("--json")\ntyper.Option(help="Print JSON.")')) == [1]


def test_names_in_prose_exist() -> None:
    """A rename changes names in code; this finds those that docstrings and comments still have."""
    texts = {path: path.read_text("utf-8") for path in language.sources()}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    names = language.package_names(trees, ROOT)
    faults = {
        path.relative_to(PACKAGE).as_posix(): found
        for path, text in texts.items()
        if (found := language.dead_names(text, trees[path], names))
    }
    assert faults == {}


@pytest.mark.parametrize(
    ("prose", "dead"),
    [
        ("Return `old_name` and `Task.run`.", ["`old_name`"]),
        ("At most OLD_LIMIT, not MAX_BYTES.", ["OLD_LIMIT"]),
        ("Raise an OldError; old_file.py and task.py have more.", ["OldError", "old_file.py"]),
        ("A Task.gone, a task.gone, and Task.run.", ["Task.gone", "task.gone"]),
        ("A Task.stop, `Task.stop`, `Job.run` and Job.stop.", ["Task.stop", "Task.stop"]),
        ("Return a task.\n\nReturns\n-------\nOld or Task\n    The task.", ["Old"]),
        ("Return a task.\n\nn: its number. old, run: no fields.", ["old:", "run:"]),
        ('Read `bellcrank show old`, `@old`, <https://old.org/OLD_PAGE> and text like "old_name".', []),
    ],
)
def test_dead_names_are_found(prose: str, dead: list[str]) -> None:
    task = ast.parse("MAX_BYTES = 1\nclass Task:\n    def run(self): ...\nclass Job(Task):\n    def stop(self): ...")
    names = language.package_names({Path("src/bellcrank/sim/task.py"): task}, ROOT)
    names.files.add("/src/bellcrank/sim/task.py")
    text = f'def function(n):\n    """{prose}"""\n'
    assert sorted(language.dead_names(text, ast.parse(text), names)) == [f"1: {name}" for name in dead]


def test_public_names_are_documented() -> None:
    faults = defaultdict(list)
    for name, thing in language.public_callables():
        errors = validate(get_doc_object(thing))["errors"]
        faults[name] = [message for code, message in errors if code in CODES]
    assert len(faults) > 400
    assert {name: messages for name, messages in faults.items() if messages} == {}


@pytest.mark.parametrize("page", readability.pages(), ids=lambda page: page.name)
def test_pages_can_be_read_once(page: Path) -> None:
    assert readability.faults(page) == []


def test_long_sentences_are_seen() -> None:
    text = (
        "# Title\n\nA short one. " + "word " * 40 + "end.\n\n| a table | " + "word " * 50 + "|\n\n    code " + "x " * 50
    )
    assert [readability.words(s) for s in readability.sentences(text)] == [3, 41]


def test_words_are_spelled() -> None:
    command = [sys.executable, "-m", "codespell_lib", "src", "docs", "bench", "examples", "README.md"]
    command += ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_files_are_called_by_nouns() -> None:
    """The name of a file describes its contents; a participle, preposition or adverb does not."""
    files = [*language.sources(), *(ROOT / "tests").rglob("test_*.py")]
    assert [path.name for path in files if not language.is_noun(path.stem.removeprefix("test_"))] == []


@pytest.mark.parametrize(
    "stem", ["beneath", "elsewhere", "ahead", "bent", "yielding", "given", "named", "what_is_kept"]
)
def test_other_words_are_no_nouns(stem: str) -> None:
    assert not language.is_noun(stem)


def test_modules_of_a_tree_have_different_names() -> None:
    """Within one package of the first level a module's name occurs once."""
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in language.sources():
        relative = path.relative_to(PACKAGE)
        if len(relative.parts) > 1 and path.stem not in SHARED_NAMES:
            places[relative.parts[0], path.stem].append(relative.as_posix())
    assert {name: paths for (_, name), paths in places.items() if len(paths) > 1} == {}
