"""Every buffer that generated code writes comes from an allocator that can fill it with NaN, and the tests do so."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import bellcrank
from bellcrank import buffers

ROOT = Path(bellcrank.__file__).resolve().parent
ALLOCATORS = {"empty", "empty_like", "new_empty"}
FOLDERS = ("emit", "sim", "gym", "studies", "identify", "build", "graph")  # packages that hold or call kernels
# Arrays that Python fills, not generated code: number by file.
FILLED_BY_PYTHON = {
    "sim/stepper/stepper_actions.py": 3,  # rows of a run that Python steps
    "sim/run/batch_execution.py": 1,  # kept for reuse, and filled with NaN by its next user
    "emit/cuda/register_pressure.py": 1,  # positions in an order of nodes
    "identify/closed_loops.py": 1,  # filled sample by sample by the assembly
    "graph/linear_solve.py": 1,  # the definition, in numpy
    "graph/interpreter.py": 1,  # the definition, in numpy
    "graph/recursion_interpreter.py": 1,  # lengths of paths
    "build/kernel_selection.py": 1,  # an empty default
    "torch.py": 2,  # one filled with NaN in place, one of a tensor without memory
}
NUMBERS_OF_PYTHON = {"object", "int", "bool"}  # types that no generated code writes


def unpoisoned(path: Path) -> Iterator[int]:
    """Return lines that allocate an array of floats without filling it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ALLOCATORS:
            types = {x.id for x in (*node.args, *(k.value for k in node.keywords)) if isinstance(x, ast.Name)}
            if (node.args or node.keywords) and not types & NUMBERS_OF_PYTHON:
                yield node.lineno


def test_generated_code_gets_no_other_memory() -> None:
    """A new buffer comes from bellcrank.buffers, or is listed here with a reason."""
    files = [ROOT / "torch.py", ROOT / "jax.py", *(f for name in FOLDERS for f in (ROOT / name).rglob("*.py"))]
    found = {f.relative_to(ROOT).as_posix(): list(unpoisoned(f)) for f in files}
    other = {name: lines for name, lines in found.items() if len(lines) != FILLED_BY_PYTHON.get(name, 0)}
    assert not other, f"allocate with bellcrank.buffers.empty_buffer, or list the file above: {other}"


def test_the_rule_can_fail(tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text("a = np.empty(3)\nb = np.empty(3, object)\nc = cp.empty((2, n), self.dtype)\nd = queue.empty()\n")
    assert list(unpoisoned(file)) == [1, 3]


def test_the_suite_runs_poisoned() -> None:
    assert buffers.POISONED
    assert np.isnan(buffers.empty_buffer((2, 3))).all()
    assert np.isnan(buffers.empty_buffer(4, "float32")).all()


# Machine code that writes nothing, so that its buffer shows the previous contents.
SILENT = """
import ctypes
import numpy as np
from bellcrank.emit.cpu import python_entry, kernel
from bellcrank.emit.cpu.machine_code import Library, poisoning
from bellcrank.emit.llvm.host import compile_text
from bellcrank.sim.run.lane_blocks import aligned_zeros

TEXT = '''
declare ptr @malloc(i64)
define i64 @one(ptr %in, ptr %out) {
  ret i64 0
}
define i64 @many(i64 %n, ptr %in, i64 %in.stride, ptr %out, i64 %out.stride) {
  ret i64 0
}
define double @fresh() {
  %p = call ptr @malloc(i64 640)
  %at = getelementptr double, ptr %p, i64 79
  %x = load double, ptr %at
  ret double %x
}
define double @stack() noinline {
  %p = alloca [512 x double]
  %at = getelementptr double, ptr %p, i64 7
  %x = load volatile double, ptr %at
  ret double %x
}
'''
library = Library(compile_text(TEXT + python_entry.definition([(3,)], (2, 2), "float64", 100)))


def refuses(*args, **named):
    raise AssertionError("not plain")


call = kernel.make_builtin(library.address, "silent", "silent(x)", refuses)
number = ctypes.CFUNCTYPE(ctypes.c_double)
out = np.zeros((5, 2, 2))
filled = call(np.ones((5, 3)), out=out)
poisoning().stain()
found = [
    call(np.ones(3)), call(np.ones((5, 3))), filled, number(library.address("fresh"))(),
    number(library.address("stack"))(), aligned_zeros(3, 8),
]
assert filled is out
print(*(np.isnan(x).all() for x in found))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the stack is laid out differently")
def test_memory_of_machine_code_is_nan() -> None:
    """Results, out=, workspaces from malloc and on the stack, and states are filled with NaN, if that is requested."""
    says = {}
    for on in ("1", "0"):
        environment = os.environ | {buffers.POISON_VARIABLE: on, "PYTHONPATH": os.pathsep.join(sys.path)}
        code = SILENT if on == "1" else "from bellcrank import buffers\nprint(buffers.POISONED)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        says[on] = done.stdout.split()
    assert says == {"1": ["True"] * 6, "0": ["False"]}
