"""Thresholds between code paths, each with a value that leads small mechanisms along the path of large ones.

TABLE is the only list of them: tests/crossing/thresholds.py makes the paths that crossed cases take of it, and
large_paths.py what lets one mechanism take all large paths at once. test_thresholds.py reads the sources and fails
where a constant that decides something is neither here nor in not_lowered.py.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import bellcrank

SOURCES = Path(bellcrank.__file__).parent
PACKAGES = ("build", "graph", "sim", "dynamics", "emit")


@dataclass(frozen=True)
class Lowered:
    """The value of a threshold in tests, and the groups that it belongs to."""

    value: float
    groups: frozenset[str]


def _row(value: float, *groups: str) -> Lowered:
    return Lowered(value, frozenset(groups))


# "module.CONSTANT": from so many bodies, numbers, operations or nodes on, or so many bodies of a class.
# bodies: alike bodies share their code. calls: linear systems are solved by functions that are called. columns: columns
# of a matrix are loops. chunks: code is cut into functions, and workspaces leave the stack. strips: alike operations
# are loops. classes: similar bodies are taken as alike. few: mass matrices of few freedoms. projected: closed loops.
# segments: long branches are cut. large: part of large_paths, too.
TABLE: dict[str, Lowered] = {
    "dynamics.requests.MOST_STRAIGHT": _row(1, "bodies", "segments"),
    "dynamics.requests.MOST_NUMBERS": _row(1, "bodies", "segments", "large"),
    "build.sharing.ALIKE": _row(0, "bodies", "segments", "large"),
    "build.by_tangents.MOST_WRITTEN": _row(1, "bodies"),
    "build.beneath.MOST_STRAIGHT": _row(1, "bodies", "large"),
    "build.beneath.ALIKE": _row(0, "bodies", "large"),
    "build.beneath.WASTE": _row(1e9, "bodies"),
    "sim.frame_passes.MANY": _row(1, "bodies", "large"),
    "sim.frame_passes.ALIKE": _row(0, "bodies", "large"),
    "sim.everywhere.MANY": _row(1, "bodies", "large"),
    "sim.everywhere.ALIKE": _row(0, "bodies", "large"),
    "sim.element_passes.FEW": _row(1, "bodies", "large"),
    "sim.element_passes.SLOTS": _row(1, "bodies"),
    "sim.tree_dynamics.MANY": _row(1, "bodies", "calls", "large"),
    "dynamics.alike.MANY_CLASSES": _row(1, "classes"),
    "dynamics.alike.FEW": _row(100, "classes"),
    "sim.implicit_systems.FEWEST": _row(1, "calls", "large"),
    "sim.looped_slopes.LARGE": _row(1, "calls", "large"),
    "sim.implicit_forces.MOST_WORK": _row(1, "calls"),
    "dynamics.immobility.LARGE": _row(1, "calls"),
    "graph.inline.LIMIT": _row(0, "calls"),
    "graph.columns.FEWEST": _row(2, "columns"),
    "graph.columns.SIDE": _row(2, "columns"),
    "emit.cpu.llvm.SPARED": _row(0, "columns", "large"),
    "sim.loop_form.MANY_PAIRS": _row(1, "few"),
    "sim.loop_form.CHEAPER": _row(0, "few"),
    "sim.loop_form.LARGE": _row(0, "projected"),
    "emit.cpu.llvm.CHUNK": _row(40, "chunks"),
    "emit.cpu.routine.CHUNK": _row(40, "chunks"),
    "emit.cpu.llvm.STACK": _row(1, "chunks", "large"),
    "emit.cpu.llvm.NEAR": _row(1, "chunks"),
    "emit.cpu.rolled_code.MOST_CALLS": _row(1, "chunks"),
    "emit.cpu.input_rows.LONG_ROW": _row(0, "chunks"),
    "emit.cpu.renewal.FAR": _row(60, "chunks"),
    "emit.cpu.plan.MATRIX": _row(3, "chunks"),
    "emit.cpu.plan.WHOLE": _row(8, "chunks"),
    "emit.cpu.action.LONG": _row(1, "chunks"),
    "sim.stepper_code.SEVERAL": _row(1, "chunks"),
    "sim.run.TOGETHER": _row(1, "chunks"),
    "sim.run.LARGE": _row(1, "chunks"),
    "emit.cuda.straight.TILE": _row(0, "chunks"),
    "emit.cuda.wave_team.LEAST": _row(1, "chunks"),
    "dynamics.shares.MOST_OPEN": _row(0, "few"),
    "emit.c.c99.MOST_STATEMENTS": _row(60, "chunks"),
    "emit.c.stepper.SHORT": _row(0, "chunks"),
    "emit.wasm.module.CHUNK": _row(60, "chunks"),
    "emit.cpu.llvm.LARGE": _row(1, "strips", "large"),
    "graph.strip_parts.FEWEST": _row(1, "strips", "large"),
    "graph.strip_parts.LONG": _row(2, "strips", "large"),
    "graph.strip_parts.SHARE": _row(0.05, "strips", "large"),
    "graph.strip_parts.LONG_SUM": _row(4, "strips"),
    "graph.strip_units.SHORTEST": _row(4, "strips"),
    "graph.strips.LARGEST": _row(10, "strips"),
    "emit.cpu.target.SEGMENT": _row(1, "segments"),
    "emit.cuda.target.SEGMENT": _row(1, "segments"),
    "emit.cores.abreast.WORTH": _row(1, "segments"),
}


def of_groups(*groups: str) -> dict[str, float]:
    """Return the lowered values of all thresholds of some groups."""
    return {name: row.value for name, row in TABLE.items() if row.groups & set(groups)}


def lower(patch: pytest.MonkeyPatch, values: Mapping[str, float]) -> None:
    """Set constants, also in the modules that have imported them by name.

    Such a module is loaded before: else it would take the lowered value with it for good.
    """
    for name in values:
        for module, _ in importers(name):
            import_module(f"bellcrank.{module}")
    for name, value in values.items():
        patch.setattr(f"bellcrank.{name}", value)
        for module, called in importers(name):
            patch.setattr(sys.modules[f"bellcrank.{module}"], called, value)


# -- what the sources have


@cache
def texts() -> dict[str, str]:
    """Return the sources of all modules by their names behind "bellcrank."."""
    found = {}
    for file in sorted(SOURCES.rglob("*.py")):
        parts = file.relative_to(SOURCES).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = file.read_text(encoding="utf-8")
    return found


@cache
def importers(constant: str) -> tuple[tuple[str, str], ...]:
    """Return which modules have a constant under a name of their own."""
    home, _, name = constant.rpartition(".")
    likely = {m: text for m, text in texts().items() if f"from bellcrank.{home} import" in text and name in text}
    each = ((m, called, known) for m, text in likely.items() for called, known in _imports(ast.parse(text)).items())
    return tuple((module, called) for module, called, known in each if known == constant)


@cache
def modules() -> dict[str, ast.Module]:
    """Return the syntax trees of all modules."""
    return {name: ast.parse(text) for name, text in texts().items()}


def numeric(value: ast.expr) -> bool:
    """Whether an expression is a number, or made of numbers and of names."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, (int, float)) and not isinstance(value.value, bool)
    if isinstance(value, ast.UnaryOp):
        return numeric(value.operand)
    if isinstance(value, ast.BinOp):
        sides = value.left, value.right
        return any(map(numeric, sides)) and all(numeric(x) or isinstance(x, (ast.Name, ast.Attribute)) for x in sides)
    return False


@cache
def constants() -> frozenset[str]:
    """Return the numeric constants of modules of PACKAGES: "module.CONSTANT"."""
    found = set()
    for module, tree in modules().items():
        if module.partition(".")[0] in PACKAGES:
            found |= {f"{module}.{name}" for name, value in _assigned(tree) if name.isupper() and numeric(value)}
    return frozenset(found)


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            yield node.target.id, node.value
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Name):
                yield target.id, node.value
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=False)
                yield from ((name.id, value) for name, value in pairs if isinstance(name, ast.Name))


def _imports(tree: ast.Module) -> dict[str, str]:
    """Return what names of a module are: "module.NAME" behind "bellcrank."."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bellcrank"):
            module = (node.module or "").removeprefix("bellcrank").lstrip(".")
            found |= {x.asname or x.name: f"{module}.{x.name}".lstrip(".") for x in node.names}
    return found


class _Uses:
    """What a module does with constants."""

    def __init__(self, module: str, tree: ast.Module) -> None:
        self.module, self.nodes, self.names = module, list(ast.walk(tree)), _imports(tree)

    def constant(self, x: ast.AST) -> str:
        """Return which constant an expression is; nothing if it is none."""
        found = ""
        if isinstance(x, ast.Name):
            found = self.names.get(x.id, f"{self.module}.{x.id}")
        elif isinstance(x, ast.Attribute) and isinstance(x.value, ast.Name):
            found = f"{self.names.get(x.value.id, '')}.{x.attr}"
        return found if found in constants() else ""

    def within(self, nodes: Iterable[ast.AST]) -> set[str]:
        return {name for node in nodes for x in ast.walk(node) if (name := self.constant(x))}

    @property
    def deciding(self) -> set[str]:
        """Constants that are compared, divide a size, or are handed on to who may compare them."""
        found = self.defaults
        for x in self.nodes:
            if isinstance(x, ast.Compare):
                order = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
                found |= self.within([x]) if any(isinstance(op, order) for op in x.ops) else set()
            elif isinstance(x, ast.IfExp):
                found |= {self.constant(x.body), self.constant(x.orelse)}
            elif isinstance(x, ast.BinOp) and isinstance(x.op, (ast.Div, ast.FloorDiv)):
                found |= {self.constant(x.right)}
            elif isinstance(x, ast.Call):
                bounds = isinstance(x.func, ast.Name) and x.func.id in ("min", "max")
                given = [*x.args, *(k.value for k in x.keywords)]
                found |= self.within(given) if bounds else set(map(self.constant, given))
        return found - {""}

    @property
    def defaults(self) -> set[str]:
        """Constants that are defaults of arguments: those are looked at when the module is loaded, and never again."""
        each = [x for x in self.nodes if isinstance(x, ast.arguments)]
        return {name for x in each for d in (*x.defaults, *x.kw_defaults) if d and (name := self.constant(d))}


@cache
def _uses() -> list[_Uses]:
    return [_Uses(module, tree) for module, tree in modules().items()]


def deciding() -> set[str]:
    """Return the constants that decide something, somewhere in the package."""
    return {name for module in _uses() for name in module.deciding}


def defaults() -> set[str]:
    """Return the constants that are defaults of arguments."""
    return {name for module in _uses() for name in module.defaults}
