"""bc.register: user definitions stand beside those of the package, and never return outdated numbers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest

import bellcrank as bc
import tables
from bellcrank import registration
from bellcrank.actuators import ACTUATORS, Actuator
from bellcrank.build import compilation, graphs
from bellcrank.build.schedules import MethodSchedule
from bellcrank.dynamics import METHODS, Method, Quantity, candidates, crba, kinematics
from bellcrank.dynamics.loops.constraint_equations import CLOSURES
from bellcrank.dynamics.method_table import TREES
from bellcrank.integrate.runge_kutta import explicit
from bellcrank.integrate.tableaus import Tableau
from bellcrank.model.joint_laws import check_joint_type
from bellcrank.model.joints import KINDS
from bellcrank.model.kind import FORCES, SLIDE_Z, TURN_Z, Kind, shift_z, turn_z
from bellcrank.scheduling.machines import complete, ideal, pipeline
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import Force, Motion


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    with tables.restored():
        yield
    assert compilation.tables_as_shipped()


def times(factor: float) -> Any:
    """Return a method for mass matrices that are wrong by a factor."""

    def mass_matrix(tree: Any, q: Any) -> Any:
        """Return the mass matrix times the factor."""
        return [[factor * x for x in row] for row in crba.mass_matrix(tree, q)]

    return mass_matrix


# -- methods and quantities


def test_custom_method() -> None:
    arm = bc.zoo.planar3r()
    q, _, _ = arm.random(0, (5,))
    right = arm.mass_matrix(q)
    mine = times(2.0)
    assert bc.register("method", "mine", mine) is mine
    assert not compilation.tables_as_shipped()  # hence everything is traced
    k = bc.kernel(arm, "mass_matrix", method="mine")
    assert k.method == "mine"
    np.testing.assert_allclose(k(q), 2.0 * right, rtol=1e-14)
    assert bc.methods()["mine"].citation == "Return the mass matrix times the factor."
    assert METHODS["mine"].solves == ("mass_matrix",)
    assert "mine" in str(bc.methods())


def test_auto_considers_a_custom_method() -> None:
    arm = bc.zoo.planar3r()

    @bc.register("method", "free_of_charge")
    def mass_matrix(tree: Any, q: Any) -> Any:
        return np.eye(tree.nv).tolist()

    assert "free_of_charge" in [m.name for m in candidates("mass_matrix", arm.tree)]
    assert bc.kernel(arm, "mass_matrix").method == "free_of_charge"
    assert bc.kernel(arm, "bias").method == "rnea"


def test_a_method_of_several_functions_and_a_row_of_the_table() -> None:
    class both:
        """Return two at once."""

        def mass_matrix(tree: Any, q: Any) -> Any:  # noqa: N805
            return crba.mass_matrix(tree, q)

        @staticmethod
        def pose(tree: Any, q: Any, frame: str) -> Any:
            return kinematics.pose(tree, q, frame)

    bc.register("method", "both", both)
    assert METHODS["both"].solves == ("mass_matrix", "pose")
    arm = bc.zoo.planar3r()
    q, _, _ = arm.random(0)
    for name, frame in (("mass_matrix", ""), ("pose", "link3")):
        right = bc.kernel(arm, name, method="crba" if not frame else "kinematics", frame=frame)(q)
        np.testing.assert_allclose(bc.kernel(arm, name, method="both", frame=frame)(q), right, rtol=1e-13, atol=1e-15)
    row = Method("row", SimpleNamespace(mass_matrix=crba.mass_matrix), ("mass_matrix",), TREES, "a paper, 2031")
    assert bc.register("method", "row", row) is row
    assert METHODS["row"] is row


def test_a_changed_method_gives_new_numbers_in_one_process() -> None:
    arm = bc.zoo.planar3r()
    q, _, _ = arm.random(0)
    right = arm.mass_matrix(q)
    rest = set(METHODS) - {"kinematics"}
    found = []
    for factor in (2.0, 3.0):
        bc.register("method", "mine", times(factor), replace=True)
        by_name = bc.kernel(arm, "mass_matrix", method="mine")(q)
        with pytest.MonkeyPatch.context() as patch:  # "auto" has one candidate, and the attribute must follow
            for name in rest:
                patch.delitem(METHODS, name)
            bc.register("method", "mine", times(factor), replace=True)
            found.append((by_name, arm.mass_matrix(q)))
    for factor, both in zip((2.0, 3.0), found, strict=True):
        for got in both:
            np.testing.assert_allclose(got, factor * right, rtol=1e-14)


OWN = """
import sys
import bellcrank as bc

@bc.register("method", "mine")
def gravity_torque(tree, q):
    return [FACTOR + x for x in q]

arm = bc.zoo.planar3r()
k = bc.kernel(arm, "gravity_torque", method="mine")
print(*k([0.0, 0.0, 0.0]), k.from_cache)
"""


def test_a_changed_method_gives_new_numbers_across_processes(tmp_path: Path) -> None:
    def run(factor: str) -> list[str]:
        (tmp_path / "own.py").write_text(OWN.replace("FACTOR", factor))
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(sys.path),
            "BELLCRANK_CACHE": str(tmp_path / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, str(tmp_path / "own.py")]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout.split()

    assert run("1.0") == ["1.0"] * 3 + ["False"]
    assert run("1.0") == ["1.0"] * 3 + ["True"]  # the same graph, hence the same code
    assert run("2.0") == ["2.0"] * 3 + ["False"]


def test_custom_quantity() -> None:
    arm = bc.zoo.planar3r()
    assert not hasattr(arm, "total_mass")
    bc.register("quantity", "total_mass", Quantity("total_mass", ("q",), "all that is lifted", "(...)"))
    with pytest.raises(bc.InputError, match=r'no method computes total_mass\. .*register\("method"'):
        arm.total_mass(arm.neutral())  # type: ignore[attr-defined]

    @bc.register("method", "scales")
    def total_mass(tree: Any, q: Any) -> Any:
        return sum(link.inertia.m for link in tree.links) + 0.0 * q[0]

    right = sum(b.mass for b in arm.bodies)
    assert arm.total_mass(np.zeros((4, 3))) == pytest.approx([right] * 4)  # type: ignore[attr-defined]
    assert bc.Mechanism.total_mass(arm, arm.neutral()) == pytest.approx(right)  # type: ignore[attr-defined]
    assert "total_mass" in dir(arm)
    assert "All that is lifted" in (arm.total_mass.__doc__ or "")  # type: ignore[attr-defined]


# -- parts


class Geared(Kind):
    """A hinge that turns half as far as its coordinate."""

    name, nq, nv = "geared", 1, 1
    coordinates = ("angle",)

    def transform(self, q: Sequence[Any]) -> Transform:
        return Transform([*shift_z(self.distance0), turn_z(0.5 * q[0], self.angle0)])

    def subspace(self, q: Sequence[Any]) -> list[Motion]:
        return [TURN_Z * 0.5]

    def forces(self, q: Sequence[Any]) -> tuple[list[Force], list[Force]]:
        return [FORCES[2] * 2.0], [f for i, f in enumerate(FORCES) if i != 2]


def pendulum(kind: str) -> bc.Mechanism:
    b = bc.Builder("swing")
    b.body("bob", mass=2.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.05))
    b.joint("hinge", kind, "ground", "bob", axis=(0, 1, 0))
    return b.build()


def test_custom_joint() -> None:
    with pytest.raises(bc.ModelError, match='no joint type "geared"'):
        pendulum("geared")
    bc.register("joint", "geared", Geared)
    m, plain = pendulum("geared"), pendulum("revolute")
    q = np.array([0.8])
    np.testing.assert_allclose(m.mass_matrix(q), 0.25 * plain.mass_matrix(0.5 * q), rtol=1e-14)
    np.testing.assert_allclose(m.gravity_torque(q), 0.5 * plain.gravity_torque(0.5 * q), rtol=1e-14)
    np.testing.assert_allclose(m.pose(q, "bob"), plain.pose(0.5 * q, "bob"), rtol=1e-14)
    assert bc.simulate(m, seconds=0.1, q0=q)["energy"].std() < 1e-6
    assert KINDS["geared"] is Geared


def test_custom_integrator() -> None:
    heun = explicit("heun", 2, Tableau(a=((), (1.0,)), b=(0.5, 0.5), c=(0.0, 1.0)), "K. Heun, 1900")
    bc.register("integrator", "heun", heun)
    m = pendulum("revolute")
    right = bc.simulate(m, seconds=1.0, q0=[1.0], step=1e-3).q[-1]
    errors = [
        float(np.abs(bc.simulate(m, seconds=1.0, q0=[1.0], step=h, integrator="heun").q[-1] - right)[0])
        for h in (0.02, 0.01)
    ]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.2)


@dataclass(frozen=True)
class Magnet(Actuator):
    strength: float = 1.0

    def __call__(self, t: Any, q: Any, v: Any, x: Sequence[Any], command: Any) -> tuple[Any, list[Any]]:
        return self.strength * command * bc.cos(q), []


def test_custom_actuator() -> None:
    bc.register("actuator", "Magnet", Magnet)
    assert ACTUATORS["Magnet"] is Magnet
    plant = bc.system(pendulum("revolute"), [Magnet("hinge", 20.0)], lambda t, q, v, x, u: [1.0])
    assert bc.simulate(plant, seconds=0.05).q[-1, 0] > 0.0


def test_custom_closure() -> None:
    bc.register("closure", "ball", CLOSURES["spherical"])
    found = []
    for kind in ("spherical", "ball"):
        b = bc.Builder("strut")
        b.body("bar", mass=1.0, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
        b.body("rod", mass=1.0, com=(1.5, 0, 0), inertia=(0.01, 0.1, 0.1))
        b.joint("foot", "revolute", "ground", "bar", axis=(0, 1, 0))
        b.joint("slide", "planar", "ground", "rod", point=(1, 0, 0), axis=(0, 1, 0))
        b.close("pin", kind, "bar", "rod", point=(1, 0, 0))
        m = b.build()
        found.append(m.closure(np.full(m.nq, 0.1)))
    assert found[0].size == 3
    assert np.array_equal(*found)


# -- machines, files, text


def test_custom_machines() -> None:
    arm = bc.zoo.planar3r()
    bc.register("machine", "ring", lambda p: complete(p))
    right = bc.schedule(arm, "mass_matrix", "complete:3").makespan
    assert bc.schedule(arm, "mass_matrix", "ring:3").makespan == right
    bc.register("processor", "slow", lambda topology: ideal(topology).with_costs(start=5.0))
    assert bc.schedule(arm, "mass_matrix", "complete:3", kind="slow").makespan >= right
    made = bc.schedule(arm, "mass_matrix", "single")
    bc.register("program", "mine", lambda mechanism, numbers, kind: MethodSchedule("mine", made))
    assert bc.schedule(arm, machine="mine") is made
    bc.register("cut", "whole", lambda mechanism, names, control: [made.tasks])
    assert bc.schedule(arm, strategy="whole", machine=ideal(pipeline(1))).makespan == pytest.approx(made.makespan)


def test_custom_file_formats(tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    @bc.register("format", ".swing")
    def reader(data: bytes, source: str, gravity: Any = None) -> bc.Mechanism:
        seen.update(data=data, source=source, gravity=gravity)
        return pendulum("revolute")

    path = tmp_path / "my.SWING"
    path.write_bytes(b"hello")
    assert bc.read(path).name == "swing"
    assert seen == {"data": b"hello", "source": str(path), "gravity": None}
    bc.read(path, gravity=(0, 0, -1.6))
    assert seen["gravity"] == (0.0, 0.0, -1.6)

    kept: list[bc.Record] = []
    form = SimpleNamespace(
        WHAT="a test",
        MAGIC=b"T",
        write=lambda run, stream: (kept.append(run), stream.write(b"T"))[1],
        read=lambda stream: kept[0],
    )
    bc.register("record", ".test", form)
    run = bc.simulate(pendulum("revolute"), seconds=0.01)
    run.save(tmp_path / "run.test")
    assert (tmp_path / "run.test").read_bytes() == b"T"
    with pytest.warns(UserWarning, match="no seal"):
        assert bc.load_record(tmp_path / "run.test") is run


def test_custom_mechanisms_and_languages() -> None:
    bc.register("mechanism", "swing", lambda: pendulum("revolute"))
    assert bc.zoo.load("swing").name == "swing"
    bc.register("language", "brief", lambda sheet, digits: f"{sheet.title} ({digits})")
    assert bc.equations(bc.zoo.pendulum(), "brief").startswith("pendulum: equations of motion")


# -- invalid definitions


def test_the_kinds_are_those_of_the_signature_and_of_the_docstring() -> None:
    assert list(get_args(registration.Kind)) == list(registration.KINDS)
    for kind, row in registration.KINDS.items():
        assert f"\n        {kind} " in (bc.register.__doc__ or "")
        assert isinstance(row.table(), dict)


@pytest.mark.parametrize(
    ("kind", "name", "thing", "words"),
    [
        ("methd", "mine", times(1.0), 'Did you mean "method"?'),
        ("method", "my own", times(1.0), "expected a name such as my_own"),
        ("method", 3, times(1.0), "the name of a method is 3"),
        ("format", "swing", times(1.0), 'such as ".robot"'),
        ("format", ".Swing", times(1.0), "lower case"),
        ("method", "crba", times(1.0), "which is part of bellcrank"),
        ("joint", "revolute", Geared, "which is part of bellcrank"),
        ("machine", "threads", complete, "which is part of bellcrank"),
        ("joint", "other", Geared, "has the attribute name = 'geared'"),
        ("joint", "geared", 3, "is 3; expected a subclass of bellcrank.model.kind.Kind"),
        ("joint", "kind", Kind, "has no transform"),
        ("method", "mine", 3, "expected a function with the name of the quantity which it solves"),
        ("method", "mine", lambda tree, q: q, "Quantities: forward_dynamics"),
        ("method", "mine", SimpleNamespace(mass_matrix=lambda q: q), "will be called as (tree, q)"),
        ("method", "mine", SimpleNamespace(pose=lambda tree, q: q), "will be called as (tree, q, frame)"),
        ("quantity", "mine", "x", "expected a bellcrank.dynamics.Quantity"),
        ("quantity", "nq", Quantity("nq", ("q",), "x"), "has another attribute named"),
        ("quantity", "mine", Quantity("other", ("q",), "x"), "has the attribute name = 'other'"),
        ("quantity", "mine", Quantity("mine", ("x",), "x"), 'no input "x"'),
        ("integrator", "mine", lambda: 0, "expected a bellcrank.integrate.Integrator"),
        ("actuator", "mine", int, "expected a subclass of bellcrank.actuators.Actuator"),
        ("actuator", "mine", Actuator, "has no __call__"),
        ("machine", "mine", 3, "expected a function of the numbers that follow its name"),
        ("program", "mine", lambda m: m, "will be called as (mechanism, numbers, kind)"),
        ("mechanism", "mine", 3, "expected a function of the numbers that follow its name"),
        ("format", ".mine", 3, "expected a function (data, source)"),
        ("record", ".mine", 3, "has no WHAT, MAGIC, write, read"),
        ("closure", "mine", 3, "expected (names of its equations, function(a, b, loop))"),
        ("language", "mine", lambda sheet: "", "will be called as (sheet, digits)"),
    ],
)
def test_invalid_registrations_raise(kind: Any, name: Any, thing: Any, words: str) -> None:
    with pytest.raises(bc.InputError) as error:
        bc.register(kind, name, thing)
    assert words in str(error.value)
    assert compilation.tables_as_shipped()  # nothing stays registered


@pytest.mark.parametrize("name", sorted(KINDS))
def test_our_joints_keep_the_laws(name: str) -> None:
    check_joint_type(KINDS[name])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"nv": 2}, "nq 1 and nv 2, but subspace(q) has 1 elements; expected 2"),
        ({"coordinates": ("a", "b")}, "coordinates has 2 elements; expected 1"),
        ({"subspace": lambda self, q: [TURN_Z]}, "Subspace(q)[0] is how transform(q) changes: it is [0.0, 0.0, 1.0"),
        ({"subspace": lambda self, q: [SLIDE_Z]}, "contradicts itself"),
        ({"bias": lambda self, q, v: TURN_Z}, "Bias(q, v) is how subspace(q) v changes"),
        ({"rate": lambda self, q, v: [2.0 * v[0]]}, "Rate(q, v) is how integrate(q, dv) begins"),
        ({"difference": lambda self, q0, q1: [q0[0] - q1[0]]}, "Difference(q, integrate(q, dv)) is dv"),
        ({"difference": lambda self, q0, q1: [*q0, *q1]}, "difference(q0, q1) has 2 elements; expected 1"),
        ({"subspace_rate": lambda self, q, v: [TURN_Z]}, "Subspace_rate(q, v)[0] is how subspace(q)[0] changes"),
        ({"neutral": lambda self: [0.1]}, "Transform(neutral()) is no motion"),
        ({"forces": Kind.forces}, "define its forces(q), too"),
        ({"forces": lambda self, q: ([FORCES[2]], list(FORCES[:2]))}, "Forces(q) are six"),
        ({"transform": lambda self, q: Transform([turn_z(0.5 * q[0], self.angle0)])}, "shifts by distance0 along it"),
    ],
)
def test_a_joint_that_contradicts_itself(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(bc.InputError) as error:
        bc.register("joint", "wrong", type("Wrong", (Geared,), {"name": "wrong", **changes}))
    assert words in str(error.value)
    assert "wrong" not in KINDS


def test_a_name_is_given_once() -> None:
    bc.register("method", "mine", times(2.0))
    with pytest.raises(bc.InputError, match=r"which you registered\. replace=True replaces it"):
        bc.register("method", "mine", times(3.0))
    bc.register("method", "mine", times(3.0), replace=True)
    bc.register("joint", "geared", Geared)
    for replace in (False, True):
        with pytest.raises(bc.InputError, match="mechanisms may contain it"):
            bc.register("joint", "geared", Geared, replace=replace)
    with pytest.raises(bc.InputError, match="which is part of bellcrank"):
        bc.register("method", "crba", times(3.0), replace=True)


def test_custom_method_checks_its_mechanisms() -> None:
    bc.register("method", "mine", Method("mine", SimpleNamespace(mass_matrix=times(1.0)), ("mass_matrix",), TREES, ""))
    m = bc.zoo.random_tree(3, mimic=1.0, kinds=["revolute"])
    with pytest.raises(bc.InputError, match="mimic joints and flexible bodies are not supported"):
        graphs.graph(m, "mass_matrix", "mine")
