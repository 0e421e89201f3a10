"""Thresholds between code paths, each with a value that leads small mechanisms along the path of large ones.

TABLE is the only list of them: tests/crossing/thresholds.py takes from it the paths of crossed cases, and
large_paths.py lets one mechanism take all large paths at once. test_lowered_thresholds.py reads the sources and fails
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
    "build.policy.MAX_STRAIGHT_OPERATIONS": _row(1, "bodies", "segments"),
    "build.policy.MAX_STRAIGHT_NUMBERS": _row(1, "bodies", "segments", "large"),
    "build.policy.MIN_BODIES_PER_CLASS": _row(0, "bodies", "segments", "large"),
    "build.policy.MAX_MATRIX_OPERATIONS": _row(1, "bodies"),
    "build.policy.MAX_LOOP_OPERATIONS": _row(1, "bodies", "large"),
    "build.policy.MAX_WORK_RATIO": _row(1e9, "bodies"),
    "build.policy.MIN_PASS_BODIES": _row(1, "bodies", "large"),
    "build.policy.MIN_KIND_ELEMENTS": _row(1, "bodies", "large"),
    "build.policy.MAX_BODY_WRENCHES": _row(1, "bodies"),
    "sim.program.tree_dynamics.OPERATOR_FROM_STATES": _row(1, "bodies", "calls", "large"),
    "dynamics.recursion.link_classes.MERGE_ABOVE_CLASSES": _row(1, "classes"),
    "dynamics.recursion.link_classes.FEW_MEMBERS": _row(100, "classes"),
    "sim.program.system_graphs.MIN_CALL_OPERATIONS": _row(1, "calls", "large"),
    "sim.constraints.loop_jacobian.MAX_UNROLLED_OPERATIONS": _row(1, "calls", "large"),
    "sim.program.implicit_forces.MAX_FACTOR_PRODUCTS": _row(1, "calls"),
    "dynamics.singular_mass.MATRIX_CHECK_MAX_NV": _row(1, "calls"),
    "graph.inline.INLINE_LIMIT_OPERATIONS": _row(0, "calls"),
    "graph.columns.MIN_COLUMNS": _row(2, "columns"),
    "graph.columns.MIN_ADJACENT_COLUMNS": _row(2, "columns"),
    "emit.cpu.kernel_module.MIN_SAVED_OPERATIONS": _row(0, "columns", "large"),
    "sim.constraints.looped_dynamics.MIN_PAIRS": _row(1, "few"),
    "sim.constraints.looped_dynamics.PAIRS_PER_COORDINATE": _row(0, "few"),
    "sim.constraints.looped_dynamics.MINIMAL_FORM_OPERATIONS": _row(0, "projected"),
    "emit.cpu.kernel_module.CHUNK_ITEMS": _row(40, "chunks"),
    "emit.llvm.subroutines.CHUNK_ITEMS": _row(40, "chunks"),
    "emit.cpu.module_functions.STACK_BYTES": _row(1, "chunks", "large"),
    "emit.cpu.module_functions.GROUP_BYTES": _row(1, "chunks"),
    "graph.loops.recursions.MAX_DIRECT_CALLS": _row(1, "chunks"),
    "emit.cpu.run_loop.LONG_ROW_NUMBERS": _row(0, "chunks"),
    "emit.llvm.rematerialisation.SPILL_DISTANCE_NODES": _row(60, "chunks"),
    "emit.llvm.scheduling.MATRIX_ELEMENTS": _row(3, "chunks"),
    "emit.llvm.scheduling.WHOLE_STORE_ELEMENTS": _row(8, "chunks"),
    "emit.cpu.action.GIL_RELEASE_RUNS": _row(1, "chunks"),
    "sim.stepper.stepper_actions.LEAST_BLOCKS_PER_THREAD": _row(1, "chunks"),
    "sim.run.batch_execution.BLOCKS_PER_PART": _row(1, "chunks"),
    "sim.run.batch_execution.REUSED_SIZE_NUMBERS": _row(1, "chunks"),
    "emit.cuda.batch_kernel.MAX_TILE_BYTES": _row(0, "chunks"),
    "emit.cuda.wave_team.MIN_TEAM_OPERATIONS": _row(1, "chunks"),
    "dynamics.shared_coordinates.MAX_OPEN_SLOTS": _row(0, "few"),
    "emit.c.c99.MAX_STATEMENTS": _row(60, "chunks"),
    "emit.c.exported_program.MAX_INLINED_OPERATIONS": _row(0, "chunks"),
    "emit.wasm.ITEMS_PER_FUNCTION": _row(60, "chunks"),
    "emit.cpu.kernel_module.ROLLING_NODES": _row(1, "strips", "large"),
    "graph.loop_levels.MIN_GRAPH_NODES": _row(1, "strips", "large"),
    "graph.loop_levels.MIN_LOOP_ELEMENTS": _row(2, "strips", "large"),
    "graph.loop_levels.MIN_ROLLED_FRACTION": _row(0.05, "strips", "large"),
    "graph.loop_levels.MIN_SUM_TERMS": _row(4, "strips"),
    "graph.loop_grouping.MIN_GROUP_ELEMENTS": _row(4, "strips"),
    "graph.loop_rolling.MAX_LOOP_OPERATIONS": _row(10, "strips"),
    "emit.cpu.target.SEGMENT_BODIES": _row(1, "segments"),
    "emit.cuda.target.MIN_SEGMENT_BODIES": _row(1, "segments"),
    "emit.cores.wave_cores.MIN_PLACES": _row(1, "segments"),
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
    """Return whether an expression is a number, or consists of numbers and names."""
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
    """Uses of constants in a module."""

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
