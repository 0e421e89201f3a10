"""Several threads that use the package for the first time at once never see a half-made table or module."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bellcrank import process_state as once_module
from bellcrank.process_state import evaluated_once


def python(code: str, cache: Path) -> str:
    """Return the output of a fresh process with an empty cache and the shortest thread switch interval."""
    head = "import sys, threading\nsys.setswitchinterval(1e-6)\n"
    environment = os.environ | {"BELLCRANK_CACHE": str(cache), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", head + code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


COMPILING = """
import numpy as np
import bellcrank as bc

ASKED = [("chain:3", "forward_dynamics"), ("puma600", "mass_matrix"), ("four_bar", "forward_dynamics"),
         ("planar3r", "inverse_dynamics"), ("tree:7", "bias"), ("four_bar", "mass_matrix"),
         ("stanford", "gravity_torque"), ("planar3r", "inverse_dynamics_derivatives")]
start, failed = threading.Barrier(len(ASKED)), []

def ask(first):
    start.wait()
    for name, quantity in ASKED[first:] + ASKED[:first]:
        try:
            k = bc.kernel(bc.zoo.load(name), quantity)
            given = [0.3 * np.ones(shape) for shape in k.signature.inputs.values()]
            found, expected = k(*given), k.graph.evaluate(**dict(zip(k.signature.inputs, given)))
            for x, y in zip(found.values() if isinstance(found, dict) else [found], expected.values()):
                np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)
        except BaseException as error:
            failed.append(f"{name} {quantity}: {type(error).__name__}: {error}")

threads = [threading.Thread(target=ask, args=(k,)) for k in range(len(ASKED))]
[t.start() for t in threads]
[t.join() for t in threads]
print(*failed, sep=" | ")
"""


@pytest.mark.parametrize("attempt", range(2))
def test_threads_compile_concurrently(attempt: int, tmp_path: Path) -> None:
    assert python(COMPILING, tmp_path / "cache").strip() == ""


ADDING = """
import time
import bellcrank as bc
from bellcrank import plugins
from bellcrank.build import compilation
from bellcrank.dynamics.method_table import METHODS


def mass_matrix(tree, q):
    return [[1.0]]

arm, failed, until = bc.zoo.planar3r(), [], time.monotonic() + 1.0
bc.kernel(arm, "mass_matrix")

def work(step):
    while time.monotonic() < until:
        try:
            step()
        except BaseException as error:
            failed.append(f"{type(error).__name__}: {error}")
            return

def add():
    for k in range(50):
        plugins.entries["actuator", f"row{k}"] = METHODS[f"row{k}"] = METHODS["crba"]
    for k in range(50):
        del plugins.entries["actuator", f"row{k}"], METHODS[f"row{k}"]

def forget():
    bc.zoo.pendulum().mass_matrix
    bc.register("method", f"mine{len(METHODS)}_{time.monotonic_ns()}", mass_matrix)

threads = [threading.Thread(target=work, args=(step,))
           for step in (add, compilation.tables_as_shipped, compilation.tables_as_shipped, forget)]
[t.start() for t in threads]
[t.join() for t in threads]
print(*failed, sep=" | ")
"""


def test_tables_may_grow_meanwhile(tmp_path: Path) -> None:
    assert python(ADDING, tmp_path / "cache").strip() == ""


LOADING = """
import importlib.metadata, json, time
import bellcrank
import bellcrank.formats.builder
from dataclasses import replace
from bellcrank.integrate import INTEGRATORS

class Point:
    name, value, module, dist = "slow", "json:slow", "json", None
    def load(self):
        time.sleep(0.3)
        return replace(INTEGRATORS["rk4"], name="slow")

class Points:
    groups = ["bellcrank.integrator"]
    def select(self, group):
        return [Point()]

importlib.metadata.entry_points = Points
seen = []

def look():
    bellcrank.Builder
    seen.append("slow" in INTEGRATORS)

threads = [threading.Thread(target=look) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(seen)
"""


def test_threads_wait_for_plugins(tmp_path: Path) -> None:
    """All threads wait for the plugins of installed packages.

    Otherwise the key of a kernel would lack those packages.
    """
    assert python(LOADING, tmp_path / "cache").strip() == "[True, True, True, True]"


ASKING = """
import ctypes, time
import numpy as np
import bellcrank as bc
from bellcrank.emit.cpu import machine_code, poisoning

made, start = [], threading.Barrier(4)

class Slow(poisoning.Poisoning):
    def __init__(self, *args):
        super().__init__(*args)
        made.append(machine_code.poisoning)
        time.sleep(0.1)  # the others are there by now

poisoning.Poisoning = Slow

def ask():
    start.wait()
    machine_code._register_symbols()
    k = bc.kernel(bc.zoo.pendulum(), "mass_matrix")
    k(np.zeros(1))

threads = [threading.Thread(target=ask) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(made))
"""


def test_functions_that_fill_memory_exist_once(tmp_path: Path) -> None:
    """Functions that fill memory exist once.

    Loaded code jumps to their addresses, and a second copy would be unmapped.
    """
    assert python(ASKING, tmp_path / "cache").strip() == "1"


# Modules whose cached values own memory or state of LLVM to which others hold addresses.
OWNERS = ("emit.llvm.host", "emit.cpu.machine_code")
# A number that is the same in every thread.
NUMBERS = {"numpy_function"}


@pytest.mark.parametrize("name", OWNERS)
def test_no_thread_makes_a_second_owner(name: str) -> None:
    module = importlib.import_module(f"bellcrank.{name}")
    cached = {name for name, x in vars(module).items() if hasattr(x, "cache_clear") and x.__module__ == module.__name__}
    assert cached <= NUMBERS, (
        f"{cached - NUMBERS}: functools.cache calls them in several threads; use bellcrank.process_state"
    )


def test_all_threads_wait_for_the_first() -> None:
    calls, start = [], threading.Barrier(8)

    @evaluated_once
    def slow(x: int) -> object:
        calls.append(x)
        time.sleep(0.05)
        return object()

    def ask(_: int) -> list[object]:
        start.wait()
        return [slow(1), slow(2)]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))
    assert calls == [1, 2]
    assert all(pair == found[0] for pair in found)


def test_failed_evaluation_is_repeated() -> None:
    errors = [ValueError("first")]

    @evaluated_once
    def fail_first() -> int:
        if errors:
            raise errors.pop()
        return 1

    with pytest.raises(ValueError, match="first"):
        fail_first()
    assert fail_first() == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_waits_for_values_that_are_being_made() -> None:
    begun = threading.Event()

    @evaluated_once
    def slow() -> int:
        begun.set()
        time.sleep(0.2)
        return 1

    thread = threading.Thread(target=slow)
    thread.start()
    begun.wait()
    child = os.fork()
    if child == 0:  # if the parent's lock were held in the child, it would wait for ever
        os._exit(0 if once_module.EVALUATION_LOCK.acquire(timeout=5.0) and slow() == 1 else 1)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


READING = """
import bellcrank as bc
import bellcrank.build.kernels, bellcrank.sim.run.simulator
from bellcrank.emit import constant_changes

read, slowly = constant_changes._read_constants, threading.Event()

def half(name):
    slowly.wait(0.002)  # others come while a module's text is being read
    return read(name)

constant_changes._read_constants = half
names = constant_changes._loaded_modules()[:60]
found, start = [None] * 4, threading.Barrier(4)

def ask(k):
    start.wait()
    found[k] = {name: dict(constant_changes.shipped_texts(name)) for name in (names, names[::-1])[k % 2]}

threads = [threading.Thread(target=ask, args=(k,)) for k in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
constant_changes._shipped_cache.clear(), constant_changes._module_constants.clear()
alone = {name: dict(constant_changes.shipped_texts(name)) for name in names}
print([of == alone for of in found])
"""


def test_threads_read_complete_tables_of_constants(tmp_path: Path) -> None:
    assert python(READING, tmp_path / "cache").strip() == str([True] * 4)


def test_one_thread_at_a_time_makes_syntax_trees() -> None:
    """Only one thread at a time makes syntax trees.

    CPython 3.11 and 3.12 raise a SystemError if several do (bellcrank/process_state.py).
    """
    root = Path(once_module.__file__).parent
    calling = {
        file.name
        for file in root.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("ast.parse", "ast.PyCF_ONLY_AST")
    }
    assert calling == {"process_state.py"}
