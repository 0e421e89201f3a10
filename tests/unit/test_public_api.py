"""The public interface of bellcrank: names, signatures, help, and what a type checker reports on user files."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import pickle
import pkgutil
import pydoc
import rlcompleter
import subprocess
import sys
import types
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import generated
from bellcrank.build import graphs
from bellcrank.dynamics import QUANTITIES
from bellcrank.dynamics.quantities import SHIPPED

ROOT = Path(__file__).resolve().parents[2]
UPDATE = bool(os.environ.get("BELLCRANK_UPDATE"))


def python(code: str) -> str:
    """Return what a fresh process prints."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return done.stdout


# -- names


def test_dir_has_the_public_names_and_nothing_else() -> None:
    printed = python(
        "import bellcrank; print(*dir(bellcrank)); bellcrank.simulate; print(*dir(bellcrank))"
    ).splitlines()
    assert printed[0].split() == printed[1].split() == sorted(bc.__all__)  # before and after lazy loading
    assert {"simulate", "kernel", "zoo", "where", "register", "compile"} <= set(bc.__all__)
    assert not any(name.startswith("_") for name in set(bc.__all__) - {"__version__"})
    assert "importlib" not in dir(bc)


@pytest.mark.parametrize("name", bc.__all__)
def test_public_names_exist_and_have_docstrings(name: str) -> None:
    found = getattr(bc, name)
    if name != "__version__":
        assert (inspect.getdoc(found) or "").strip(), f"bc.{name} has no docstring"
    assert getattr(bc, name) is found


def members(name: str) -> Iterator[tuple[str, Any]]:
    """Return the public methods and properties of a public class that are defined in this package."""
    found = getattr(bc, name)
    for leaf in dir(found) if inspect.isclass(found) and not issubclass(found, BaseException) else ():
        owner = next((base for base in found.__mro__ if leaf in vars(base)), object)
        thing = vars(owner).get(leaf)
        kinds = property | cached_property | staticmethod | classmethod | types.FunctionType
        if not leaf.startswith("_") and owner.__module__.startswith("bellcrank") and isinstance(thing, kinds):
            yield f"{name}.{leaf}", thing


@pytest.mark.parametrize("name", bc.__all__)
def test_public_members_have_docstrings(name: str) -> None:
    found = getattr(bc, name)
    if is_dataclass(found):
        assert not (found.__doc__ or "").startswith(f"{name}("), f"bc.{name} has the docstring of its fields only"
    silent = [told for told, thing in members(name) if not (inspect.getdoc(thing) or "").strip()]
    assert silent == [], "a sentence: what it gives, in which shape and unit"


def test_examples_in_docstrings_run() -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    finder = doctest.DocTestFinder(recurse=False)
    for name in bc.__all__:
        for test in finder.find(getattr(bc, name), f"bc.{name}", globs={"bc": bc}):
            runner.run(test)
    assert runner.tries >= 15
    assert runner.failures == 0


def test_star_and_completion() -> None:
    scope: dict[str, Any] = {}
    exec("from bellcrank import *", scope)
    assert set(bc.__all__) <= set(scope)
    completer = rlcompleter.Completer({"bc": bc, "arm": bc.zoo.pendulum()})
    assert completer.complete("bc.simul", 0) == "bc.simulate("
    assert str(completer.complete("arm.forward_dyn", 0)).startswith("arm.forward_dynamics")


def test_a_misspelt_name_is_an_error_with_a_hint() -> None:
    with pytest.raises(AttributeError, match=r'"bellcrank" has no attribute "simulat"') as error:
        _ = bc.simulat  # type: ignore[attr-defined]
    assert (error.value.name, error.value.obj) == ("simulat", bc)  # Python uses both for its suggestion
    with pytest.raises(AttributeError):
        _ = bc.zoo.pendulum().forward_dynamcis  # type: ignore[attr-defined]


def test_nothing_hides_a_package_or_a_module() -> None:
    """No public name hides a package or a module: `import bellcrank.dynamics.aba` must give that file."""
    for module in pkgutil.walk_packages(bc.__path__, "bellcrank."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except bc.InputError as error:
                assert "pip install" in str(error)  # noqa: PT017  # a room for an extra that is not here
    hidden = set()
    for name, module in list(sys.modules.items()):
        parent, _, leaf = name.rpartition(".")
        if parent.partition(".")[0] == "bellcrank" and getattr(sys.modules[parent], leaf) is not module:
            hidden.add(name.removeprefix("bellcrank."))
    assert not hidden
    rooms = {module.name for module in pkgutil.iter_modules(bc.__path__)}
    for name in rooms & set(bc.__all__):
        assert isinstance(getattr(bc, name), types.ModuleType)


def test_importing_is_quick() -> None:
    """Importing takes less than 60 ms of processor time beyond numpy's own.

    The best of several runs counts, because the computer may be busy.
    """
    code = "import time, numpy; t = time.process_time(); import bellcrank; print(time.process_time() - t)"
    assert min(float(python(code)) for _ in range(5)) < 0.06


def test_importing_loads_nothing() -> None:
    code = "import sys, bellcrank; print(*sorted(m for m in sys.modules if m.startswith('bellcrank') or m == 'numpy'))"
    assert python(code).split() == ["bellcrank", "bellcrank.process_state"]


def test_a_mechanism_that_travels_needs_no_other_import() -> None:
    """A pickled mechanism computes in a process that has not imported bellcrank."""
    arm = bc.zoo.pendulum()
    code = f"import pickle; arm = pickle.loads({pickle.dumps(arm)!r}); print(arm.mass_matrix(arm.neutral()).tolist())"
    assert python(code).strip() == str(arm.mass_matrix(arm.neutral()).tolist())


# -- signatures and help


def test_signatures_are_real() -> None:
    assert list(inspect.signature(bc.schedule).parameters)[:3] == ["what", "quantity", "machine"]
    # equal to the stub
    assert list(inspect.signature(bc.drive).parameters) == ["mechanism", "rate", "seconds", "settings"]
    for name in bc.__all__:
        found = getattr(bc, name)
        if inspect.isroutine(found):
            parameters = inspect.signature(found).parameters.values()
            assert not any(p.kind is p.VAR_POSITIONAL for p in parameters), f"bc.{name} takes *{parameters}"


def text(thing: Any) -> str:
    return pydoc.plain(pydoc.render_doc(thing))


def test_help_of_a_quantity_teaches() -> None:
    arm = bc.zoo.excavator()
    said = text(arm.forward_dynamics)
    assert "forward_dynamics(q, v, tau, *, wrenches=None, out=None)" in said
    for part in (
        "Return the joint accelerations under joint forces.",
        "v : array_like, shape (..., nv)",
        "q: cab, boom, stick, bucket",
        "by ",
        "SI units",
    ):
        assert part in said
    assert "actuated" not in text(arm.inverse_dynamics)  # a tree does not need it
    assert "parameters" not in said
    free = arm.free("boom.mass")
    assert "(q, v, tau, p=None, *, wrenches=None, parameters=None, out=None)" in text(free.forward_dynamics)
    assert "Free parameters: boom.mass" in text(free.forward_dynamics)


def test_help_of_loops_and_of_frames_teaches() -> None:
    m = bc.zoo.four_bar()
    said = text(m.inverse_dynamics)
    assert "inverse_dynamics(q, v, a, *, wrenches=None, actuated=(), out=None)" in said
    assert "mechanism.assemble()" in said
    assert "Names of the actuated joints" in said
    for said in (text(m.pose), text(bc.zoo.excavator().pose)):
        assert "pose(q, frame, *, out=None)" in said
        assert "Frames: ground, " in said
        assert "must close" not in said
    assert "mechanism.assemble()" in text(m.forward_dynamics)


def test_help_needs_no_compiler() -> None:
    code = """
import sys, pydoc, bellcrank as bc
print(pydoc.plain(pydoc.render_doc(bc.Mechanism)))
heavy = ("llvmlite", "bellcrank.build", "bellcrank.emit", "bellcrank.dynamics.rnea")
assert not any(name in sys.modules for name in heavy)
"""
    said = python(code)
    assert "forward_dynamics(self, q, v, tau, p=None" in said
    assert "assemble(self, q_guess" in said


def test_help_of_a_kernel_teaches() -> None:
    k = bc.kernel(bc.zoo.pendulum(), "mass_matrix")
    assert "mass_matrix(q, *, out=None)" in (k.__doc__ or "")
    assert "Return the joint-space inertia matrix M.\n\nParameters\n----------\nq : array_like" in (k.__doc__ or "")


@pytest.mark.parametrize("name", SHIPPED)
def test_shapes_equal_those_of_the_table(name: str) -> None:
    q = QUANTITIES[name]
    of_loops = "loops" in q.shape or "equations" in q.shape
    # more positions than velocities; no rotors, which would add constraints
    m = bc.zoo.four_bar() if of_loops else bc.zoo.random_tree(5, armature=False)
    sizes = {"nq": m.nq, "nv": m.nv, "bodies": len(m.bodies), "constraints": 6 * len(m.bodies) - m.nv}
    if of_loops:
        sizes |= {"loops": len(m.loops), "equations": len(m.loop_analysis.names)}
    (found,) = graphs.graph(m, name, frame=list(m.frames)[-1] if q.option == "frame" else "").outputs.values()
    wanted = [x.strip() for x in q.shape.strip("()").split(",")[1:]]
    several = [] if q.result is None else [len(q.result._fields)]
    assert list(found.shape) == several + [int(x) if x.isdecimal() else sizes[x] for x in wanted]


def test_a_method_of_the_class_computes_too() -> None:
    arm = bc.zoo.excavator().free("boom.mass")
    q, v, tau = arm.random(0)
    assert np.array_equal(bc.Mechanism.forward_dynamics(arm, q, v, tau), arm.forward_dynamics(q, v, tau))
    assert np.array_equal(bc.Mechanism.pose(arm, q, "bucket"), arm.pose(q, "bucket"))
    heavy = bc.Mechanism.bias(arm, q, v, parameters={"boom.mass": 3000.0})
    assert np.array_equal(heavy, arm.bias(q, v, np.array([3000.0])))


def test_none_is_as_if_it_were_left_out() -> None:
    arm = bc.zoo.excavator().free("boom.mass")
    q, v, tau = arm.random(0)
    assert np.array_equal(
        arm.forward_dynamics(q, v, tau, p=None, wrenches=None, parameters=None, out=None),
        arm.forward_dynamics(q, v, tau),
    )
    with pytest.raises(bc.InputError, match="missing tau"):
        arm.forward_dynamics(q, v, tau=None)  # type: ignore[arg-type]


# -- type checkers


@pytest.mark.parametrize("path", generated.FILES, ids=lambda path: path.name)
def test_generated_files_are_current(path: Path) -> None:
    made = generated.FILES[path]()
    if UPDATE:
        path.write_text(made, "utf-8")
    command = "BELLCRANK_UPDATE=1 python -m pytest tests/unit/test_public_api.py"
    assert path.read_text("utf-8") == made, f"{path} differs from the tables; update it: {command}"


USER = '''
import numpy as np
import bellcrank as bc

arm = bc.zoo.puma600()
q, v, tau = arm.random(0, batch=10)
a = arm.forward_dynamics(q, v, tau)
a = arm.forward_dynamics([0.0] * 6, v=v, tau=tau, wrenches={"tool": np.zeros(6)}, parameters={"g": 1.0}, out=a)
forces: np.ndarray = arm.inverse_dynamics(q, v, a, actuated=["crank"])
pose = arm.pose(q, "tool")[..., :3, 3] + arm.pose(q, frame="tool")[..., :3, 3]
q, v = arm.assemble(fixed=["crank"])
record: bc.Record = bc.drive(arm, seconds=1.0)
record = bc.drive(arm, 500.0, 1.0)
live: bc.Drive = bc.drive(arm)
run: bc.Record = bc.simulate(arm, seconds=1)
plan: bc.Schedule = bc.schedule(arm, "mass_matrix", machine="mesh:2,3")
k: bc.Kernel = bc.compile(lambda x: bc.where(x > 0, bc.sin(x), bc.clip(x, -1, 1)), inputs={"x": 3})


@bc.register("method", "mine")
def mass_matrix(tree: object, q: object) -> list[list[float]]:
    """Mine."""
    return [[1.0]]


rows: list[list[float]] = mass_matrix(arm, q)
'''
# A line, and the type checker's message for it.
MISTAKES = {
    "arm.forward_dynamcis(q, v, tau)": 'has no attribute "forward_dynamcis"',
    "arm.forward_dynamics(q, v, taw=tau)": 'Unexpected keyword argument "taw"',
    "arm.forward_dynamics(q, v)": 'Missing positional argument "tau"',
    "arm.mass_matrix(q, frame='tool')": 'Unexpected keyword argument "frame"',
    "arm.pose(q)": 'Missing positional argument "frame"',
    "arm.pose(q, frame=3)": 'incompatible type "int"; expected "str"',
    "names: str = arm.bias(q, v)": 'variable has type "str"',
    "arm.mass_matrix(q).inverted()": '"ndarray[Any, Any]" has no attribute "inverted"',
    "bc.simulat(arm, 1.0)": 'Module has no attribute "simulat"',
    "bc.drive(arm).columns": '"Drive" has no attribute "columns"',
    "bc.drive(arm, seconds=1.0).stop()": '"Record" has no attribute "stop"',
    "bc.register('methd', 'x', arm)": "No overload variant",
    "arm.name = 'another'": "is read-only",
}


def test_a_type_checker_understands_a_users_file(tmp_path: Path) -> None:
    """mypy reports nothing in a correct file, and every mistake in a wrong one, in one run over both."""
    (tmp_path / "good.py").write_text(USER)
    lines = ["import numpy as np", "import bellcrank as bc", "arm = bc.zoo.puma600()", "q, v, tau = arm.random(0)"]
    (tmp_path / "bad.py").write_text("\n".join([*lines, *MISTAKES]))
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--cache-dir",
        str(ROOT / ".mypy_cache"),
        "--config-file=",
        "good.py",
        "bad.py",
    ]
    environment = os.environ | {"MYPYPATH": str(Path(bc.__file__).parents[1])}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert not done.stderr
    said = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line for line in said if not line.startswith("bad.py:")] == []
    found = {}
    for line in said:
        found.setdefault(int(line.split(":")[1]), line)
    for number, (mistake, words) in enumerate(MISTAKES.items(), len(lines) + 1):
        assert words in found.pop(number, ""), f"{mistake}\n{done.stdout}"
    assert found == {}


def test_former_names_work_and_warn() -> None:
    stepper = bc.stepper(bc.zoo.pendulum(), resolve=0.01)
    with pytest.warns(DeprecationWarning, match=r"Stepper.doubt is deprecated .* use Stepper.step_error"):
        assert stepper.doubt.tolist() == stepper.step_error.tolist()
    simulator = bc.Simulator(bc.zoo.pendulum())
    with pytest.warns(DeprecationWarning, match=r"use Simulator.self_contained_program"):
        program = simulator.whole()
    assert program.graphs.keys() == simulator.self_contained_program().graphs.keys()
    with pytest.warns(DeprecationWarning, match=r"use bellcrank.formats.DhRow"):
        assert bc.formats.Row is bc.formats.DhRow
