"""Cached object code is found again, verified before use, and never a reason to fail."""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build import compilation, policy
from bellcrank.dynamics.method_table import ANY, METHODS, SHIPPED, Method
from bellcrank.emit import cache, constant_changes
from bellcrank.model import Loop, Mechanism, Spring
from bellcrank.model.joints import KINDS
from trees import random_tree


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BELLCRANK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def arm() -> Mechanism:
    return random_tree(11, ["revolute", "prismatic"])


def files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if not p.name.startswith("."))


def test_a_second_kernel_comes_from_the_cache_and_is_the_same(folder: Path, arm: Mechanism) -> None:
    q, v, tau = arm.random(0, (13,))
    first = bc.kernel(arm, "forward_dynamics")
    # an equal mechanism, built again
    second = bc.kernel(random_tree(11, ["revolute", "prismatic"]), "forward_dynamics")
    assert not first.from_cache
    assert second.from_cache
    assert np.array_equal(first(q, v, tau), second(q, v, tau))
    assert first.method == second.method
    assert first.signature == second.signature
    assert str(first.graph) == str(second.graph)
    assert first.source == second.source


def test_kernel_found_by_its_request_is_not_traced(
    folder: Path, arm: Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that is found by its request is not traced, because tracing would slow every start of a process."""
    assert compilation.tables_as_shipped()
    first = bc.kernel(arm, "mass_matrix")

    def traced(*_: Any) -> Any:
        raise AssertionError("it was traced again")

    monkeypatch.setattr("bellcrank.build.graphs.choose_graph", traced)
    assert bc.kernel(arm, "mass_matrix").method == first.method


FILES = """
import sys
import bellcrank as bc

arm = bc.zoo.puma600()
bc.kernel(arm, "forward_dynamics"), arm.mass_matrix, arm.inverse_dynamics
print(*sorted(name for name in sys.modules if name.startswith(("bellcrank.dynamics", "bellcrank.graph"))))
"""


def test_cached_kernel_imports_no_method(folder: Path) -> None:
    """Loading a kernel from the cache imports neither the modules of methods nor those that trace.

    Importing them took longer than all the rest.
    """
    runs = [subprocess.run([sys.executable, "-c", FILES], capture_output=True, text=True, check=True) for _ in range(2)]
    first, second = ({x.removeprefix("bellcrank.") for x in run.stdout.split()} for run in runs)
    assert {"dynamics.aba", "dynamics.crba", "dynamics.rnea", "graph.graph"} <= first
    tables = {"quantities", "method_table", "operation_counts"}
    assert second <= {"dynamics", *(f"dynamics.{name}" for name in tables)}


def test_the_table_of_methods_names_functions_that_are_there() -> None:
    for method in SHIPPED.values():
        assert all(callable(method.function(name)) for name in method.solves), method.name


def test_every_part_of_a_mechanism_counts(arm: Mechanism) -> None:
    other = random_tree(12, ["revolute", "prismatic"])
    changes = {
        "gravity": (0.0, 0.0, -1.6),
        "ground": "floor",
        "bodies": other.bodies,
        "joints": (replace(arm.joints[0], damping=0.1), arm.joints[1]),
        "frames": other.frames,
        "loops": (Loop("gears", "gear", value=2.0, joints=("a", "b")),),
        "springs": (Spring("spring", "a", "b", stiffness=1.0),),
    }
    prints = {replace(arm, **{key: value}).fingerprint for key, value in changes.items()} | {arm.fingerprint}
    assert len(prints) == len(changes) + 1
    assert replace(arm, name="another").fingerprint == arm.fingerprint


def test_inputs_of_the_code_change_the_key(folder: Path, arm: Mechanism) -> None:
    bc.kernel(arm, "mass_matrix")
    assert not bc.kernel(random_tree(12, ["revolute", "prismatic"]), "mass_matrix").from_cache
    assert not bc.kernel(arm, "mass_matrix", dtype="float32").from_cache
    assert not bc.kernel(arm, "bias").from_cache
    bc.kernel(arm, "pose", frame="b0")
    assert not bc.kernel(arm, "pose", frame="b1").from_cache
    bc.kernel(arm, "forward_dynamics", method="aba")
    assert not bc.kernel(arm, "forward_dynamics", method="crba").from_cache


OWN = """
import sys, types
import numpy as np
import bellcrank as bc
from bellcrank.dynamics.method_table import ANY, METHODS, Method
import own

METHODS["own"] = Method("own", own, ("gravity_torque",), ANY, "luh1980")
arm = bc.zoo.planar3r()
k = bc.kernel(arm, "gravity_torque", method="own")
print(*k(np.zeros(3)), k.from_cache)
"""


def own_method(folder: Path, factor: float) -> list[str]:
    """Return what a process prints that uses a method from a file of the user."""
    (folder / "own.py").write_text(f"def gravity_torque(tree, q): return [{factor} + x for x in q]")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run([sys.executable, "-c", OWN], capture_output=True, text=True, env=environment, check=True)
    return done.stdout.split()


def test_changed_custom_method_compiles_again(folder: Path, tmp_path: Path) -> None:
    assert own_method(tmp_path, 1.0) == ["1.0"] * 3 + ["False"]
    assert own_method(tmp_path, 1.0) == ["1.0"] * 3 + ["True"]  # the same text, hence the same code
    assert own_method(tmp_path, 2.0) == ["2.0"] * 3 + ["False"]


def test_two_methods_of_one_name_in_one_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arm = bc.zoo.planar3r()
    found = []
    for factor in (1.0, 2.0):
        module = ModuleType("own")
        module.gravity_torque = lambda tree, q, factor=factor: [factor + x for x in q]  # type: ignore[attr-defined]
        monkeypatch.setitem(METHODS, "own", Method("own", module, ("gravity_torque",), ANY, "luh1980"))
        found.append(bc.kernel(arm, "gravity_torque", method="own")(np.zeros(3)).tolist())
    assert found == [[1.0] * 3, [2.0] * 3]


HALVES = """
import sys
import numpy as np
import bellcrank as bc

m = bc.zoo.chain(24)
q = m.random(1, (8,))[0]
k = bc.kernel(m, "mass_matrix")
one = k(q[0])
if sys.argv[1] == "registered":

    @bc.register("method", "light")
    def mass_matrix(tree, q):
        return [[1.0 if i == j else 0.0 for j in range(tree.nv)] for i in range(tree.nv)]

if sys.argv[1] == "exchanged":
    from bellcrank.dynamics import crba

    crba.mass_matrix = lambda tree, q: [[1.0] * tree.nv] * tree.nv
if sys.argv[1] != "first":
    try:
        print(k.from_cache, np.abs(k(q)[0] - one).max() < 1e-9)
    except bc.CompileError as error:
        print("changed since" in str(error))
"""


@pytest.mark.parametrize(("then", "told"), [("registered", "True True"), ("exchanged", "True")])
def test_deferred_batch_code_uses_the_graph_of_the_kernel(folder: Path, then: str, told: str) -> None:
    """The code for batches has the same graph as the code for one state, whatever was registered meanwhile.

    One state comes from the cache. The first batch is traced after a faster method was registered, or after the method
    was removed.
    """
    said = []
    for which in ("first", then, "after"):
        run = subprocess.run([sys.executable, "-c", HALVES, which], capture_output=True, text=True, check=True)
        said.append(run.stdout.strip())
    assert said == ["", told, "True True"]


def test_replaced_method_and_joint_change_the_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaced rows in the tables of methods and joints are noticed, and the original result comes back afterwards."""
    arm = bc.zoo.planar3r()
    right = bc.kernel(arm, "gravity_torque", method="rnea")(np.zeros(3))
    assert bc.kernel(arm, "gravity_torque", method="rnea").from_cache
    crba = SHIPPED["crba"]
    for table, key, row in ((METHODS, "rnea", crba), (KINDS, "revolute", type("Own", (KINDS["revolute"],), {}))):
        with monkeypatch.context() as patch:
            patch.setitem(table, key, row)
            assert not compilation.tables_as_shipped()
        assert compilation.tables_as_shipped()
    assert np.array_equal(bc.kernel(arm, "gravity_torque", method="rnea")(np.zeros(3)), right)


@pytest.mark.parametrize("damage", ["truncated", "empty", "foreign", "one bit", "longer", "a folder"])
def test_damaged_file_is_compiled_again(folder: Path, arm: Mechanism, damage: str) -> None:
    q, _, _ = arm.random(0, (3,))
    right = bc.kernel(arm, "mass_matrix")(q)
    for path in files(folder):
        data = path.read_bytes()
        if damage == "a folder":
            path.unlink()
            path.mkdir()
            continue
        flipped = bytearray(data)
        flipped[len(data) // 2] ^= 1
        path.write_bytes(
            {
                "truncated": data[: len(data) // 2],
                "empty": b"",
                "foreign": b"\x7fELF" + os.urandom(len(data)),
                "one bit": bytes(flipped),
                "longer": data + b"more",
            }[damage]
        )
    again = bc.kernel(arm, "mass_matrix")
    assert not again.from_cache
    assert np.array_equal(again(q), right)
    if damage != "a folder":  # the damaged entry is replaced
        assert bc.kernel(arm, "mass_matrix").from_cache


def test_folder_that_cannot_be_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arm: Mechanism) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    monkeypatch.setenv("BELLCRANK_CACHE", str(in_the_way / "cache"))
    q, _, _ = arm.random(0)
    with pytest.warns(RuntimeWarning, match="compiled code cannot be cached: .* cannot be written"):
        assert bc.kernel(arm, "mass_matrix")(q).shape == (2, 2)
    assert cache.save("x", b"payload") is False
    assert cache.load("x") is None


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arm: Mechanism) -> None:
    tmp_path.chmod(0o500)
    monkeypatch.setenv("BELLCRANK_CACHE", str(tmp_path))
    q, _, _ = arm.random(0)
    with pytest.warns(RuntimeWarning, match="compiled code cannot be cached: .* cannot be written"):
        assert bc.kernel(arm, "mass_matrix")(q).shape == (2, 2)


def test_payloads_are_checked(folder: Path) -> None:
    assert cache.load("x") is None
    assert cache.save("x", b"payload")
    assert cache.load("x") == b"payload"
    assert cache.save("x", b"another")
    assert cache.load("x") == b"another"
    assert cache.save("empty", b"")
    assert cache.load("empty") == b""
    assert [p.name for p in folder.iterdir() if p.name.startswith(".new")] == []  # no half-written file stays


def test_keys_keep_their_parts_apart() -> None:
    assert cache.key("ab", "c") != cache.key("a", "bc")
    assert cache.key("a") != cache.key("a", "")
    assert cache.key("a", "b") == cache.key("a", "b")


def test_only_the_owner_may_read_or_write(folder: Path) -> None:
    """Only the owner may read or write the cache, because machine code that others replace would run as the user."""
    cache.save("x", b"payload")
    if os.name == "posix":
        assert folder.stat().st_mode & 0o077 == 0


RACE = """
import sys
import numpy as np
import bellcrank as bc
from trees import random_tree
m = random_tree(11, ["revolute", "prismatic"])
q, v, tau = m.random(0, (5,))
print("ready", flush=True)
sys.stdin.readline()
for name in ("mass_matrix", "bias"):
    k = bc.kernel(m, name)
    print(np.asarray(k(*(q, v)[: len(k.signature.inputs)])).tobytes().hex())
"""


def test_two_processes_at_once(folder: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).resolve().parent.parent), *sys.path])}
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for r in racers:
        assert r.stdout is not None
        assert r.stdout.readline() == "ready\n"
    results = []
    for r in racers:
        assert r.stdin is not None
        r.stdin.write("go\n")
        r.stdin.flush()
    for r in racers:
        results.append(r.communicate()[0])
        assert r.returncode == 0
    assert len(results[0].split()) == 2
    assert results[0] == results[1] == results[2]
    assert bc.kernel(random_tree(11, ["revolute", "prismatic"]), "mass_matrix").from_cache


def test_the_folder_follows_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BELLCRANK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    if sys.platform.startswith("linux"):
        assert cache.folder() == Path("/somewhere/bellcrank")
    assert cache.folder().name == "bellcrank"


def test_pickles_travel_without_machine_code(folder: Path, arm: Mechanism) -> None:
    import pickle

    q, _, _ = arm.random(0)
    M = arm.mass_matrix(q)
    copy = pickle.loads(pickle.dumps(arm))
    assert "mass_matrix" not in vars(copy)
    assert copy.fingerprint == arm.fingerprint
    assert np.array_equal(copy.mass_matrix(q), M)


def test_a_good_file_in_anothers_place_is_not_trusted(folder: Path) -> None:
    one, two = bc.zoo.pendulum(1.0), bc.zoo.pendulum(2.0)
    bc.kernel(one, "gravity_torque")
    first = set(folder.iterdir())
    right = bc.kernel(two, "gravity_torque")(np.array([1.0]))
    for mine in set(folder.iterdir()) - first:
        for other in first:
            if mine.suffix == other.suffix:
                mine.write_bytes(other.read_bytes())
    again = bc.kernel(bc.zoo.pendulum(2.0), "gravity_torque")
    assert not again.from_cache
    assert np.array_equal(again(np.array([1.0])), right)


def test_key_covers_every_file_that_generates_code() -> None:
    """No file that counts for the key imports one that does not count, except lazily where nothing is compiled."""
    package = Path(bc.__file__).parent
    counted = {name for name, *_ in cache._source_files(str(package), len(str(package)) + 1)}
    inside = {f.relative_to(package).as_posix() for f in package.rglob("*.py")}
    assert counted == {name for name in inside if name.split("/")[0] not in cache.FINGERPRINT_EXCLUSIONS}
    assert {room for room in cache.FINGERPRINT_EXCLUSIONS if (package / room).is_dir()} == cache.FINGERPRINT_EXCLUSIONS
    outside = re.compile(
        r"^\s*(?:from bellcrank\.|import bellcrank\.|from bellcrank import )"
        rf"({'|'.join(cache.FINGERPRINT_EXCLUSIONS)})\b",
        re.M,
    )
    assert {name for name in counted if outside.search((package / name).read_text("utf-8"))} == {
        "__main__.py"
    }  # the command line


EDITED = """
import sys
from pathlib import Path
import numpy as np
import bellcrank as bc

file = Path(bc.__file__).parent / "dynamics" / "coriolis.py"
m, text = bc.zoo.chain(3), file.read_text()
if sys.argv[1] == "edited":
    bc.kernel(m, "mass_matrix")
    file.write_text(text + "\\n\\ndef coriolis_matrix(tree, q, v):\\n    return [[7.0] * tree.nv] * tree.nv\\n")
k = bc.kernel(m, "coriolis_matrix")
print(k.from_cache, k(np.ones(3), np.ones(3))[0, 0] == 7.0)
file.write_text(text)
"""


def test_code_of_files_changed_during_compilation_is_not_stored(folder: Path, tmp_path: Path) -> None:
    """Code that was made while source files changed is not stored, because a file loaded late may not match the key.

    After the files are restored, the key is the same again.
    """
    shutil.copytree(Path(bc.__file__).parent, tmp_path / "src" / "bellcrank")
    said = []
    for which in ("edited", "after", "after"):
        command = [sys.executable, "-B", "-c", EDITED, which]
        env = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
        run = subprocess.run(command, capture_output=True, text=True, check=True, env=env, cwd=tmp_path)
        said.append(run.stdout.strip())
    assert said == ["False True", "False False", "True False"]


def test_package_files_are_read_again_only_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's files are read once, and again after a change of size or time.

    Files written just now are always read.
    """
    package = tmp_path / "bellcrank"
    (package / "emit").mkdir(parents=True)
    for name in ("emit/cache.py", "emit/other.py", "top.py"):
        (package / name).write_text("x = 1\n")
    monkeypatch.setenv("BELLCRANK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "__file__", str(package / "emit/cache.py"))
    monkeypatch.setattr(cache, "SETTLING_TIME_NS", -(10**18))  # all files are old enough
    fingerprint = cache.package_fingerprint.__wrapped__
    first = fingerprint()
    assert len(list((tmp_path / "cache").iterdir())) == 1
    read: list[str] = []
    real = os.path.join
    with monkeypatch.context() as watched:
        watched.setattr(os.path, "join", lambda *parts: read.append(parts[-1]) or real(*parts))
        assert fingerprint() == first
    assert "top.py" not in read
    (package / "emit/other.py").write_text("x = 2\n")
    os.utime(package / "emit/other.py", ns=(1, 1))
    second = fingerprint()
    assert second != first
    (package / "top.py").unlink()
    assert fingerprint() not in (first, second)
    monkeypatch.setattr(cache, "SETTLING_TIME_NS", 10**18)
    (package / "new.py").write_text("")
    known = len(list((tmp_path / "cache").iterdir()))
    assert fingerprint() not in (first, second)
    assert len(list((tmp_path / "cache").iterdir())) == known


# -- constants that are set at run time


def loaded_constants() -> list[tuple[str, str]]:
    """Return the constants of all modules that make code, imported if necessary."""
    root = Path(bc.__file__).parent
    for path in sorted(root.rglob("*.py")):
        rooms = path.relative_to(root).with_suffix("").parts
        if rooms[0] not in cache.FINGERPRINT_EXCLUSIONS and rooms[-1] != "__main__" and "cuda" not in rooms:
            with contextlib.suppress(bc.InputError):  # an extra is not installed
                importlib.import_module(".".join(("bellcrank", *rooms)).removesuffix(".__init__"))
    modules = sorted(name for name in list(sys.modules) if constant_changes._generates_code(name))
    return [(name, constant) for name in modules for constant in constant_changes.shipped_texts(name)]


def test_constants_are_as_their_files_have_them() -> None:
    known = loaded_constants()
    other = [
        (m, c)
        for m, c in known
        if constant_changes.constant_text(vars(sys.modules[m])[c]) != constant_changes.shipped_texts(m)[c]
    ]
    assert other == []
    assert constant_changes.changed_constants() == ""
    some = {("build.policy", "MAX_STRAIGHT_OPERATIONS"), ("emit.cpu.target", "SEGMENT_BODIES")}
    assert {(f"bellcrank.{module}", name) for module, name in some} <= set(known)
    assert len(known) > 500


def test_changed_constant_changes_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Setting a constant at run time changes the key, and restoring it restores the key.

    Numbers and texts get another value; tables change in place.
    """
    rng = random.Random(1)
    for module, constant in rng.sample(loaded_constants(), 100):
        value = getattr(sys.modules[module], constant)
        with monkeypatch.context() as patch:
            if isinstance(value, dict):
                patch.setitem(value, "one more", 1.0)
            elif isinstance(value, set | frozenset):  # what searches for keys iterates over some of them
                patch.setattr(sys.modules[module], constant, value | {"one more"})
            elif isinstance(value, list):
                value.append(1.0)
            else:
                patch.setattr(sys.modules[module], constant, ("another", value))
            assert constant_changes.changed_constants() != "", (module, constant)
        if isinstance(value, list):
            value.pop()
        assert constant_changes.changed_constants() == "", (module, constant)


def test_code_for_another_threshold_is_not_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel for another threshold is not found by the same request, as it once was."""

    def made() -> Any:
        return bc.kernel(bc.zoo.chain(12), "forward_dynamics", method="aba")

    straight = made()
    assert made().from_cache
    with monkeypatch.context() as patch:
        patch.setattr(policy, "MAX_STRAIGHT_OPERATIONS", 300)
        rolled = made()
        assert not rolled.from_cache
        assert type(rolled.graph) is not type(straight.graph)
        assert made().from_cache
    again = made()
    assert again.from_cache
    assert again.source == straight.source
