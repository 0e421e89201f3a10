"""Imports follow the layers: mechanics and compiler are independent, build/ connects them, and papers are a leaf."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import bellcrank
from bellcrank.lazy_import import UPWARD_CALLS, lazy_import

ROOT = Path(bellcrank.__file__).resolve().parent

NEUTRAL = {
    *(
        "files",
        "buffers",
        "content_digest",
        "errors",
        "process_state",
        "jets",
        "argument_errors",
        "nodes",
        "parameters",
        "progress",
        "plugins",
        "quoting",
        "interpolation",
        "scalar",
        "lazy_import",
        "text_table",
        "version",
    ),
}
MECHANICS = {"dynamics", "model", "spatial"}
COMPILER = {"emit", "graph", "scheduling"}
GENERAL = {"actuators", "control", "forces", "integrate"}  # general parts of a system
# Packages that each package may import besides itself and the common modules.
BELOW: dict[str, set[str]] = {
    **{part: set() for part in NEUTRAL},
    # mechanics: independent of graphs
    "spatial": set(),
    "model": {"spatial"},
    "dynamics": {"model", "spatial"},
    "integrate": {"model", "spatial"},
    "structures": {"model", "spatial"},
    "formats": {"forces", "meshes", "model", "spatial", "structures"},
    "actuators": {"model", "spatial"},
    "forces": {"actuators", "model", "spatial"},
    "ground": {"forces", "model"},
    "meshes": set(),
    "control": {"actuators", "forces", *MECHANICS},
    "zoo": {"formats", "model", "spatial", "excavators.linkage_mechanism"},
    # compiler: independent of mechanics
    "graph": set(),
    "scheduling": {"graph"},
    "emit": {"graph", "scheduling"},
    # the bridge
    "build": {*MECHANICS, *COMPILER},
    # whole runs, their records, and their drawings
    "record": {"dynamics", "model", "spatial"},
    "sim": {"actuators", "build", "forces", "integrate", "record", *MECHANICS, *COMPILER},
    "view": {"formats", "graph", "meshes", "record", "scheduling", *MECHANICS},
    # many runs, and what is derived from them
    "studies": {"emit.cuda.device", "graph", "model", "record", "sim", "view"},  # whether a worker has a GPU
    "identify": {"record", "sim", "studies", *MECHANICS},
    # models for other programs
    "exporting": {"build", "cockpit", "ground", "record", "sim", *MECHANICS, *COMPILER},
    # the live page: independent of particular machines
    "cockpit": {"build", "ground", "meshes", "record", "sim", "view", *GENERAL, *MECHANICS, *COMPILER},
    # the excavators, complete; their mechanism is also in the zoo
    "excavators.linkage_mechanism": {"formats", "model", "structures", "zoo.published"},
    "excavators": {"cockpit", "ground", "record", "sim", "zoo", *GENERAL, *MECHANICS},
    # interfaces for machine learning and foreign arrays
    "gym": {"excavators", "formats", "graph", "model", "sim", "zoo"},
    **{part: {"build", "emit"} for part in ("jax", "torch")},
    # papers: a leaf, which only the command line and the public names import
    "papers": {
        *("build", "excavators", "formats", "record", "sim", "view", "zoo"), *GENERAL, *MECHANICS, *COMPILER,
    },
    # helpers of the command line
    "cli.screen": set(),
    "cli.timing": {"build", "dynamics", "emit", "model", "sim"},
}  # fmt: skip
ABOVE = {"__init__", "__main__", "cli", "registration"}  # may import anything
CORE = {"numpy", "llvmlite", "typer", "rich", "defusedxml"}  # required at run time
EXTRAS = {
    "cockpit": {"starlette", "uvicorn"},
    "gym": {"gymnasium"},
}  # modules that need an optional dependency; others import them on demand
HEAVY = (
    "llvmlite", "typer", "rich", "mujoco", "pinocchio", "defusedxml", "hypothesis", "scipy",
    "control", "matplotlib", "pyarrow", "mcap", "starlette", "uvicorn", "websockets", "gymnasium", "jax", "torch",
    "dask", "distributed",
)  # fmt: skip


def part_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    inner = ".".join(parts)
    return inner if inner in BELOW else parts[0]


@cache
def imports(path: Path) -> tuple[tuple[int, str], ...]:
    """Return (line, module) for every import, also in functions and under TYPE_CHECKING."""
    return tuple(_imports(path))


def imports_of(part: str) -> Iterator[tuple[str, str]]:
    """Return (file and line, module) for every import of a package."""
    return ((f"{path}:{line}", module) for path in FILES if part_of(path) == part for line, module in imports(path))


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import; write the whole name"
            module = node.module or ""
            # `from bellcrank import zoo` imports bellcrank.zoo
            yield from ((node.lineno, f"bellcrank.{a.name}" if module == "bellcrank" else module) for a in node.names)


FILES = sorted(ROOT.rglob("*.py"))
PARTS = sorted({part_of(path) for path in FILES})


@pytest.mark.parametrize("part", [part for part in PARTS if part not in ABOVE])
def test_imports_point_down(part: str) -> None:
    allowed = BELOW[part] | NEUTRAL | {part}
    for where, module in imports_of(part):
        if module.startswith("bellcrank."):
            target = module.removeprefix("bellcrank.")
            target = target if target in allowed else target.split(".")[0]
            assert target in allowed, f"{where}: {part} imports {target}, and may import {sorted(allowed)}"
        else:
            assert module != "bellcrank", f"{where}: imports the whole package, and with it what is above"


@pytest.mark.parametrize("part", PARTS)
def test_third_parties_are_the_core_dependencies(part: str) -> None:
    for where, module in imports_of(part):
        top = module.split(".")[0]
        if top in sys.stdlib_module_names or top == "bellcrank":
            continue
        assert top in CORE | EXTRAS.get(part, set()), f"{where}: {top} is not a core dependency"
        if top == "llvmlite":
            assert part == "emit", f"{where}: LLVM is the business of emit/"
        if top in ("typer", "rich"):
            assert part in ("cli", "cli.screen"), f"{where}: {top} belongs to the command line"


def test_every_part_has_a_place() -> None:
    assert set(PARTS) <= set(BELOW) | ABOVE


# For packages with subpackages: those that each subpackage may import besides itself.
INSIDE: dict[str, dict[str, set[str]]] = {
    "emit": {
        "equations": set(),
        "llvm": set(),
        "c": {"llvm"},
        "cpu": {"llvm"},
        "cores": {"cpu", "llvm"},
        "cuda": {"cpu", "llvm"},
    },
    "sim": {
        "system": set(),
        "program": {"system"},
        "constraints": {"program", "system"},
        "run": {"constraints", "program", "system"},
        "stepper": {"constraints", "program", "run", "system"},
        "realtime": {"program", "run", "system"},
        "linear": {"program", "run", "system"},
    },
    "dynamics": {"historical": set(), "loops": set(), "recursion": set()},
}


@pytest.mark.parametrize("package", INSIDE)
def test_subpackages_import_downwards(package: str) -> None:
    folders = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
    assert folders == set(INSIDE[package])
    faults = []
    for path in sorted((ROOT / package).glob("*/**/*.py")):
        part = path.relative_to(ROOT / package).parts[0]
        for line, module in imports(path):
            names = module.split(".")
            above = folders - {part} - INSIDE[package][part]
            if names[:2] == ["bellcrank", package] and len(names) > 2 and names[2] in above:
                faults.append(f"{path.relative_to(ROOT)}:{line} imports {module}")
    assert faults == []


def test_upward_calls_are_registered() -> None:
    """Every lazy_import names a row of the table, every row is called from there, and its function exists."""
    calls = defaultdict(set)
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "lazy_import":
                (target,) = node.args
                assert isinstance(target, ast.Constant), f"{path}:{node.lineno}: the target is not a text"
                calls[target.value].add(".".join(path.relative_to(ROOT).with_suffix("").parts))
    assert calls == {target: set(callers) for target, callers in UPWARD_CALLS.items()}
    assert all(lazy_import(target) for target in UPWARD_CALLS)


# Files with a table whose rows name modules; all are beside the table, in packages below it, or anywhere for the first.
TABLES_OF_MODULES = {
    *(
        "__init__.py",
        "lazy_import.py",
        "registration.py",
        "build/compilation.py",
        "cli/__init__.py",
        "dynamics/method_table.py",
    ),
    *("papers/__init__.py", "record/formats/__init__.py"),
}


def test_modules_are_imported_by_name_or_from_a_table() -> None:
    computed = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            is_import = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module")
            if is_import and isinstance(node.args[0], ast.JoinedStr):
                computed.add(path.relative_to(ROOT).as_posix())
    assert computed - {"emit/cpu/machine_code.py"} == TABLES_OF_MODULES  # machine_code.py: NumPy's C-API


def test_the_rules_can_fail(tmp_path: Path) -> None:
    """The search finds imports in functions, under TYPE_CHECKING and through `from bellcrank import ...`."""
    code = "import numpy as np\nif TYPE_CHECKING:\n    from bellcrank import emit\n"
    code += "def f():\n    from bellcrank.nodes.node import Node\n"
    (tmp_path / "x.py").write_text(code)
    assert list(imports(tmp_path / "x.py")) == [(1, "numpy"), (3, "bellcrank.emit"), (5, "bellcrank.nodes.node")]


def test_import_is_light(capsys: pytest.CaptureFixture[str]) -> None:
    """Importing loads no compiler, command line or peers.

    The time is printed but not judged, as machines may be busy.
    """
    code = f"import sys, bellcrank; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    times = []
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        times.append(time.perf_counter() - start)
        assert done.stdout.split() == []
    with capsys.disabled():
        print(f"\nimport bellcrank, with the interpreter's own start: {min(times):.2f} s")
