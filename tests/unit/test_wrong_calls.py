"""Wrong calls of everything public raise an error with a message: no internal error, hang or crash (wrong_calls.py)."""

from __future__ import annotations

import datetime
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import gym
from bellcrank.actuators import DCMotor
from bellcrank.actuators.actuator import StateVariable
from bellcrank.argument_errors import explain_argument_errors, misfit_text
from bellcrank.errors import BellcrankError, InputError
from bellcrank.formats.builder import Vector
from bellcrank.identify.output_error import _starting_point as output_error_nominal
from bellcrank.model import Mechanism
from bellcrank.structures.beam import Beam
from bellcrank.structures.modes import beam_modes
from bellcrank.studies.sampling_plans import points as points_of

ROOT = Path(__file__).resolve().parents[1]


def wrong(first: int, count: int, word: str = "") -> list[Any]:
    *found, counts = _reported(str(first), str(count), word)
    assert sum(counts.values()) == count
    assert counts["refused"] > 0.5 * count  # the calls are indeed wrong
    assert counts["made"] > 0.1 * count  # and some pass the check of the first argument
    return found


def _reported(*arguments: str) -> list[Any]:
    """Return the lines that wrong_calls.py prints, the last of which counts the outcomes."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, str(ROOT / "wrong_calls.py"), *arguments]
    before = {file: file.read_bytes() for file in (ROOT / "unit/data").iterdir() if file.is_file()}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert {file: file.read_bytes() for file in before} == before
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_few() -> None:
    assert wrong(0, 400, "forces|actuators|control|builder|section") == []  # callables that need no run


@pytest.mark.long
@pytest.mark.parametrize("part", range(8))
def test_many(part: int) -> None:
    assert wrong(10_000 * (part + 1), 2000) == []


@pytest.mark.long
def test_every_argument_refuses_views_of_matrices_durations_and_arrays_of_text() -> None:
    *found, counts = _reported("every")
    assert found == []
    assert counts["refused"] > 5000


@pytest.mark.parametrize("view", [memoryview(np.ones((2, 2))), memoryview(np.array(1.0)), memoryview(np.eye(4))])
def test_views_of_matrices_are_refused_by_name(view: memoryview) -> None:
    """Python cannot iterate over a memoryview of several dimensions, which once ended in a NotImplementedError."""
    m, b = bc.zoo.chain(2), bc.Builder("thing")
    b.body("one", mass=1.0, inertia=(1.0, 1.0, 1.0))
    calls = {
        "gravity": lambda: bc.Builder("a", gravity=view),  # type: ignore[arg-type]
        "com": lambda: b.body("two", mass=1.0, com=view),  # type: ignore[arg-type]
        "inertia": lambda: b.body("two", mass=1.0, inertia=view),
        "axis": lambda: b.joint("hinge", "revolute", "ground", "one", axis=view),  # type: ignore[arg-type]
        "joints": lambda: b.close("gear", "gear", joints=view, ratio=2.0),  # type: ignore[arg-type]
        "mimic": lambda: b.joint("hinge", "revolute", "ground", "one", mimic=view),  # type: ignore[arg-type]
        "rows": lambda: bc.from_dh("arm", view),  # type: ignore[arg-type]
        "frames": lambda: bc.forces.feet(view),  # type: ignore[arg-type]
        "events": lambda: bc.simulate(m, 0.01, events=view),  # type: ignore[arg-type]
        "outputs": lambda: bc.linearize(m, outputs=view),  # type: ignore[arg-type]
        "hold": lambda: bc.equilibrium(m, hold=view),  # type: ignore[arg-type]
        "fixed": lambda: m.assemble(fixed=view),  # type: ignore[arg-type]
        "wrenches": lambda: bc.kernel(m, "forward_dynamics", wrenches=view),  # type: ignore[arg-type]
        "actuators": lambda: bc.system(m, actuators=view),  # type: ignore[arg-type]
    }
    for argument, call in calls.items():
        with pytest.raises(BellcrankError, match=argument):
            call()


def test_view_of_a_matrix_is_an_inertia() -> None:
    for inertia in (np.diag([1.0, 2.0, 2.5]), memoryview(np.diag([1.0, 2.0, 2.5]))):
        b = bc.Builder("thing")
        b.body("one", mass=1.0, inertia=inertia)
        b.joint("hinge", "revolute", "ground", "one", axis=(0, 0, 1))
        assert b.build().mass_matrix([0.0]) == [[2.5]]


@pytest.mark.parametrize("odd", [None, math.inf, 10**400, datetime.timedelta(days=1), np.array(["a"]), [None]], ids=str)
def test_zoo_and_tables_refuse_values_that_are_not_numbers(odd: Any) -> None:
    m = bc.zoo.chain(2)
    for call in (
        *(lambda name=name: bc.zoo.scissor(3, **{name: odd}) for name in ("angle", "length")),
        *(lambda name=name: bc.zoo.four_bar(**{name: odd}) for name in ("ground", "crank", "coupler", "rocker")),
        *(lambda n=n: bc.zoo.random_tree(1, 4, **{n: odd}) for n in ("kinds", "special", "armature", "passive")),
        lambda: bc.zoo.load(odd),
        lambda: gym.make(odd),
        lambda: bc.interp(0.5, [0.0, odd], [0.0, 1.0]),
        lambda: bc.linearize(m).deviation(q=odd, v=[0.0, 0.0]),
        lambda: bc.forces.Contact("c", "ground", "link2", bc.forces.Plane(), bc.forces.Sphere(0.1), exponent=odd),
    ):
        with pytest.raises(BellcrankError):
            call()


@pytest.mark.parametrize("kind", [bc.Simulator, bc.Drive, bc.Adjoint])
def test_unknown_argument_of_a_class_names_the_class(kind: Any) -> None:
    """Each class passes further arguments to bc.system, which Python's own message named instead."""
    for name in ("step", "tolerance", "nonsense"):
        with pytest.raises(InputError, match=rf'{kind.__name__}: There is no argument "{name}".*Known: .*actuators'):
            kind(bc.zoo.chain(2), **{name: 1e-3})
    with pytest.raises(InputError, match=r"Give solver=bellcrank\.Solver\(step=\.\.\.\)"):
        bc.Simulator(bc.zoo.chain(2), "rk4", step=1e-3)


def test_lengths_that_do_not_fit_are_named() -> None:
    with pytest.raises(InputError, match=r"four_bar does not exist with ground 0\.4, crank 9\.0, .*lengths that fit"):
        bc.zoo.four_bar(crank=9.0)


@explain_argument_errors
def _told(m: Mechanism, count: int, names: list[str], weights: Any = None, path: str | None = None) -> Any:
    return [m.nv * count, *(len(n) for n in names), 1.0 / weights if weights is not None else 0.0]


def test_the_argument_that_does_not_fit_is_named() -> None:
    m = bc.zoo.chain(2)
    assert _told(m, 2, ["a"]) == [4, 1, 0.0]
    for args, words in (
        ((None, 2, []), "_told: m is None; expected a Mechanism."),
        ((m, "x", 3), "_told: count is 'x'; expected a whole number."),
        ((m, 2, 7), "_told: names is 7; expected a list."),
        ((m, 2, [3]), r"_told: names is \[3\]; expected a list."),
    ):
        with pytest.raises(InputError, match=words) as said:
            _told(*args)
        assert said.value.__cause__ is not None  # the cause of the error is kept
    with pytest.raises(ZeroDivisionError):
        _told(m, 2, [], 0)  # where all arguments are valid, an error stays unchanged
    with pytest.raises(TypeError, match="missing"):
        _told(m)
    assert misfit_text(_told, (m, np.int64(2), ("a",)), {"path": None}) is None


def test_sources_catch_values_without_a_float() -> None:
    """A value without a float is refused where numbers are read.

    10**400 raises an OverflowError in Python instead of a ValueError.
    """
    sources = Path(bc.__file__).parent.rglob("*.py")
    assert [
        str(p) for p in sources if re.search(r"except \((TypeError, ValueError|ValueError, TypeError)\)", p.read_text())
    ] == []


@pytest.mark.parametrize("huge", [10**400, [10**400], np.array([10**400])], ids=["number", "list", "array"])
def test_numbers_that_are_no_floats(huge: Any) -> None:
    m = bc.zoo.chain(2)
    for call in (
        lambda: bc.flexible(huge, huge, huge, {"a": [0]}),
        lambda: bc.interp(0.5, huge, huge),
        lambda: m.forward_dynamics(huge, [0.0, 0.0], [0.0, 0.0]),
        lambda: bc.simulate(m, 0.01, q0=huge),
        lambda: bc.simulate(m, 0.01, events=huge),
        lambda: bc.equilibrium(m, huge),
        lambda: bc.register(huge, "a", None),
        lambda: bc.Where(target=huge),
        lambda: bc.kernel(m, "forward_dynamics", machine=huge),
    ):
        with pytest.raises(bc.BellcrankError):
            call()


@pytest.mark.parametrize("quantum", [0.0, -1.0, np.nan, np.inf, None, "x"])
def test_a_quantum_is_above_zero(quantum: Any) -> None:
    with pytest.raises(InputError, match="expected a number above zero"):
        bc.quantised(1.0, quantum)


@pytest.mark.parametrize("x", [[1.0], {}, np.array(["a"]), None])
def test_quantised_needs_a_number(x: Any) -> None:
    with pytest.raises(InputError, match="expected numbers or symbols"):
        bc.quantised(x, 0.5)


def test_a_class_is_no_number_and_a_drive_has_one_state() -> None:
    with pytest.raises(InputError, match=r"height is .*; expected a number"):
        bc.control.Trot({}, "base", 0.2, int)  # type: ignore[arg-type]
    drive = bc.Drive(bc.zoo.chain(2), rate=100)
    with pytest.raises(InputError, match="several states; a drive has one"):
        drive.reset(np.ones((2, 2)))
    for factor in (1e-300, 1e300):
        with pytest.raises(InputError, match="expected 1 ns to an hour"):
            drive.slow(factor)


def test_a_name_that_stands_for_anything_is_believed() -> None:
    b = bc.Builder("thing")
    b.body("one", mass=1.0, inertia=np.eye(3))
    with pytest.raises(bc.BellcrankError, match="direction is array"):
        b.rolling("wheel", "one", 0.1, centre=(0.0, 0.0, 1.0), axle=np.zeros(0))


def test_gravity_is_three_numbers() -> None:
    circle: list[Any] = []
    circle.append(circle)
    for gravity in (np.zeros((3, 3)), circle, [circle] * 3, [0.0, 0.0], ["x", "y", "z"], [[1.0], 0.0, 0.0]):
        with pytest.raises(bc.ModelError, match="expected three numbers"):
            bc.from_wong("arm", alpha=[0.0], mass=[1.0], k=[(0.1, 0, 0)], l=[], inertia=[np.eye(3)], gravity=gravity)


def test_numbers_of_another_mechanism() -> None:
    """Numbers of another mechanism are refused; they were once ignored silently, or ended in a KeyError."""
    m, foreign = bc.zoo.chain(2), bc.identify.numbers_of(bc.zoo.pendulum())
    values = np.ones(len(foreign))
    for call in (
        lambda: bc.identify.mechanism_with(m, foreign, values),
        lambda: bc.identify.values_of(m, foreign),
        lambda: bc.identify.regressor(m, np.zeros((1, 2)), np.zeros((1, 2)), np.zeros((1, 2)), foreign),
        lambda: bc.identify.energy_regressor(m, np.zeros((1, 2)), np.zeros((1, 2)), foreign),
    ):
        with pytest.raises(InputError, match=r'"bob\.mass" is not a number of "chain2": There is no part "bob"'):
            call()
    with pytest.raises(InputError, match="expected one for each of 0 numbers"):
        bc.identify.mechanism_with(m, (), values)
    with pytest.raises(InputError, match='no number of a joint "mass"'):
        bc.identify.numbers_of(m, ["mass"])


def test_names_and_shapes_of_variations() -> None:
    graph = bc.compile(lambda x, y: x[0] * y + bc.sin(x[1]), inputs={"x": 2, "y": ()}).graph
    assert graph.along({"x": np.eye(2)}, ["function"])["function"].shape == (1, 2)
    for call, words in (
        (lambda: graph.along({}, ["function"]), "no directions given"),
        (lambda: graph.along({"x": np.eye(2)}, ["x"]), 'no output "x"'),
        (lambda: graph.along({"z": np.eye(2)}, ["function"]), 'no input "z"'),
        (lambda: graph.along({"x": np.eye(3)}, ["function"]), r"x have shape \(3, 3\); expected \(2, directions\)"),
        (lambda: graph.along({"x": np.zeros(2)}, ["function"]), r"the directions of x have shape \(2,\)"),
        (lambda: graph.varied("z", 1), 'no input "z"'),
        (lambda: graph.varied("x", 1, y=[0, 0]), "1 directions"),
        (lambda: graph.varied("x", 2, y=[-1, 1]), "y has 1 elements"),
    ):
        with pytest.raises(InputError, match=words):
            call()


def test_seeds_are_whole_numbers() -> None:
    """A seed must be a whole number; a list that contains itself, given as a seed, ended the process inside numpy."""
    circle: list[Any] = []
    circle.append(circle)
    m = bc.zoo.chain(2)
    for seed in (circle, -1, 0.5, "x", [1, 2], True, object()):
        for call in (
            lambda seed=seed: m.random(seed),
            lambda seed=seed: bc.identify.base_parameters(m, seed=seed),
            lambda seed=seed: bc.zoo.random_tree(seed, 3),
            lambda seed=seed: bc.study(m, {}, runs=1, seconds=1.0, to="nowhere", summary=[], seed=seed),
        ):
            with pytest.raises(InputError, match="seed is"):
                call()
    np.testing.assert_array_equal(m.random(np.int64(3))[0], m.random(3)[0])


def test_no_message_fills_the_screen() -> None:
    with pytest.raises(bc.BellcrankError) as caught:
        raise InputError("x is " + "1.0 " * 5000 + "; expected another.")
    assert len(str(caught.value)) < 2600
    assert str(caught.value).endswith("; expected another.")


def test_numbers_may_be_those_of_numpy() -> None:
    """Numpy numbers are accepted and converted to floats, because integers of numpy overflow silently."""
    E = np.int64(210_000_000_000)
    steel = bc.Material(E, np.float32(0.25), np.int32(7850))  # type: ignore[arg-type]
    assert steel == bc.Material(2.1e11, 0.25, 7850.0)
    assert all(type(x) is float for x in (steel.E, steel.nu, steel.density))
    assert bc.Section.box(np.int64(1), np.float64(2.0), 0.125) == bc.Section("box", [1, 2, 0.125])  # type: ignore[arg-type]
    block = bc.forces.Block(np.zeros(3), np.ones(3))  # type: ignore[arg-type]
    assert bc.forces.Block((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)) == block


@pytest.mark.parametrize("design", [np.full((2, 2), np.nan), [1.0], {1}, 3, b"grid"], ids=str)
def test_a_design_is_a_word(design: Any) -> None:
    with pytest.raises(InputError, match="no design"):
        points_of({"bob.mass": [1.0, 2.0]}, 2, design, 0)


@pytest.mark.parametrize("trajectory", [lambda: None, lambda t: t / 0, lambda t: 3, None, math.sin])
def test_invalid_trajectory_is_named(trajectory: Any) -> None:
    with pytest.raises(InputError, match="trajectory"):
        bc.control.InverseDynamics(bc.zoo.chain(2), trajectory)


@pytest.mark.parametrize("mask", [[[1.0], [2.0, 3.0]], [1.0, 0.0], "x", {}, [True], [True, None]], ids=str)
def test_mask_of_another_shape_raises(mask: Any) -> None:
    stepper = bc.stepper(bc.zoo.chain(2), every=0.01, step=0.01, batch=2)
    with pytest.raises(InputError, match="mask has the shape"):
        stepper.reset(mask=mask)


def test_kernel_class_cannot_be_called() -> None:
    with pytest.raises(InputError, match="Kernel: about is None; expected an About"):
        bc.Kernel(None, None)  # type: ignore[arg-type]


def test_failing_progress_callback_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'progress\("tracing"\) failed: ValueError: invalid literal'):
        bc.export(bc.zoo.chain(2), tmp_path / "out", progress=int)  # type: ignore[arg-type]


def test_a_table_of_points_that_does_not_fit_is_refused_before_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bellcrank.buffers.free_memory", lambda: 2e10)
    m = bc.zoo.chain(2).free("link1.mass")
    with pytest.raises(InputError, match=r"2,147,483,648 points needs 51.5 GB .* take fewer runs"):
        bc.study(m, {"link1.mass": bc.uniform(1, 2)}, runs=2**31, seconds=0.01, to=tmp_path / "s")


def test_invalid_transform_is_named() -> None:
    graph = bc.kernel(bc.zoo.chain(2), "forward_dynamics").graph
    with pytest.raises(InputError, match=r"the directions of q have shape \(\); expected \(2, directions\)"):
        graph.along({"q": 1.0}, ["forward_dynamics"])


def test_recursive_lists_are_rejected_with_free_parameters() -> None:
    """A list that contains itself is refused although parts are searched for parameters recursively."""
    circle: list[Any] = []
    circle.append(circle)
    b = bc.Builder("m")
    b.body("one", mass=bc.parameter("one.mass", 1.0), inertia=(1.0, 1.0, 1.0))
    for call in (
        lambda: b.frame("crank", "one", rotation=circle),
        lambda: b.frame("crank", "one", point=circle),
        lambda: b.body("two", mass=1.0, com=circle),
        lambda: b.body("two", mass=1.0, inertia=circle),
    ):
        with pytest.raises(BellcrankError):
            call()


@pytest.mark.parametrize("v", [[[1.0], [2.0]], [None, 1.0], ["a", 1.0], [{1}, {2}], np.ones((2, 1))])
def test_a_deviation_is_of_numbers(v: Any) -> None:
    m = bc.zoo.chain(2)
    lin = bc.linearize(bc.system(m), at={"q": [0.0, 0.0]})
    with pytest.raises(InputError, match=r"deviation: v is (.|\n)*; expected 2 numbers"):
        lin.deviation([0.0, 0.0], v)
    assert len(lin.deviation([0.0, 0.0], [np.float64(0.1), 0])) == 4


@explain_argument_errors
def _listed(names: Sequence[str], weights: Sequence[float], places: Sequence[Vector] = ()) -> int:
    return len(names or ["none"]) + len(weights[0]) + len(places)  # type: ignore[arg-type]


def test_a_row_of_numbers_is_no_list_of_names() -> None:
    """An array in place of a list of names is refused; the truth value of an empty array is undefined in numpy."""
    none = np.array([])
    for args, words in (
        ((none, [1.0]), r"names is array\(\[\].*; expected a list"),
        ((["a"], 1.0), "weights is 1.0; expected a list"),
        ((["a"], [1.0], none), r"places is array\(\[\].*; expected a list"),
    ):
        with pytest.raises(InputError, match=words):
            _listed(*args)
    with pytest.raises(TypeError):  # no message for arguments that fit
        _listed(np.array(["a"]), np.ones(2), np.ones((2, 3)))
    with pytest.raises(InputError, match=r"elements is array\(\[\].*; expected a list"):
        bc.system(bc.zoo.chain(2), elements=none)  # type: ignore[arg-type]


def test_numbers_beyond_all_use() -> None:
    m = bc.zoo.chain(2)
    for rate in (1e-300, 1e-5, 1e10, 1e300):
        with pytest.raises(InputError, match=r"rate is .*; expected .* periods a second"):
            bc.Drive(m, rate)
    graph = bc.kernel(m, "gravity_torque").graph
    with pytest.raises(InputError, match="directions is 1000000000"):
        graph.varied("q", 10**9)


def test_feet_have_names_already() -> None:
    for name in ("name", "frame_a", "shape_b", "stifness"):
        with pytest.raises(InputError, match=f'feet: There is no number of a contact "{name}"'):
            bc.forces.feet(["tool"], **{name: 1.0})
    assert bc.forces.feet(["tool"], stiffness=1e4)[0].stiffness == 1e4


def test_right_angles_are_nearly_right() -> None:
    rows = [{"joint": "R", "a": 1.0, "mass": 1.0, "com": (0.5, 0, 0)}]
    for bad in (-1, 0.2, math.nan, "0"):
        with pytest.raises(InputError, match=r"right_angles is .*expected a small angle"):
            bc.from_dh("m", rows=rows, right_angles=bad)  # type: ignore[arg-type]


NOTHING_GIVEN: dict[str, Any] = {"q0": None, "v0": None, "x0": None, "parameters": None}
PLANNED = bc.Simulator(bc.zoo.chain(2))


@pytest.mark.parametrize("odd", [None, 7, 0.5, "", [], int, np.zeros((3, 3))])
def test_invalid_run_inputs_are_named(odd: Any) -> None:
    with pytest.raises(InputError, match=r"Simulator\.planned: settings is"):
        PLANNED.planned(0.01, odd)
    if not isinstance(odd, type(None) | str | list):
        with pytest.raises(InputError, match=r"parameters|inputs"):
            PLANNED.prepared(0.01, parameters=odd, inputs=odd)


@pytest.mark.parametrize("odd", [np.array([1, 2], object), np.zeros(3), 7, "x", object()])
@pytest.mark.parametrize("part", ["states", "elements", "forces", "motions", "actuators"])
def test_parts_of_a_system_that_are_no_parts(part: str, odd: Any) -> None:
    for of in (bc.zoo.chain(2), bc.system(bc.zoo.chain(2))):
        with pytest.raises(InputError):
            bc.system(of, **{part: odd})


def test_states_may_come_from_a_generator() -> None:
    """States may come from a generator; once the check consumed it, and the system had none."""
    states = (StateVariable(name) for name in ("a", "b"))
    s = bc.system(bc.zoo.chain(2), control=lambda t, q, v, x, u: ([0.0, 0.0], [1.0, 1.0]), states=states)  # type: ignore[arg-type]
    assert [z.name for z in s.states] == ["a", "b"]


def test_tables_whose_rows_are_none() -> None:
    given = {"alpha": [0.0], "mass": [1.0], "k": [(0.1, 0, 0)], "l": [], "inertia": [np.eye(3)]}
    assert bc.from_wong("arm", **given, names=np.zeros(0)).nv == 1
    for names in (np.array([None]), [7], memoryview(b"a"), np.array([1, 2])):
        with pytest.raises(bc.BellcrankError, match="names has"):
            bc.from_wong("arm", **given, names=names)
    for rows in (range(3), np.array(["a"]), np.array([None]), memoryview(b"ab"), bytearray(b"a"), [None]):
        with pytest.raises(bc.BellcrankError, match="expected"):
            bc.from_dh("arm", rows)  # type: ignore[arg-type]


def test_flags_and_numbers_of_other_types() -> None:
    m, row = bc.zoo.chain(2), [0.3, 0.2]
    packed = bc.kernel(m, "mass_matrix", packed=np.True_)  # type: ignore[arg-type]
    assert packed(row).tolist() == bc.kernel(m, "mass_matrix", packed=True)(row).tolist()
    with pytest.raises(InputError, match="packed is 'x'; expected True or False"):
        bc.kernel(m, "mass_matrix", packed="x")  # type: ignore[arg-type]
    assert "k 0.333333" in str(DCMotor("joint1", Fraction(1, 3), 1.0, 1.0))
    bc.system(m, [DCMotor("joint1", Fraction(1, 3), 1.0, 1.0)])
    with bc.Drive(m, spin=np.float16(0.5)):  # type: ignore[arg-type]
        pass
    for x in (10**400, np.timedelta64(5, "s"), "x", None, [1.0]):
        with pytest.raises(InputError, match="begin of"):
            output_error_nominal(bc.system(m.free("link1.mass")), ["link1.mass"], NOTHING_GIVEN, {"link1.mass": x}, [])


@pytest.mark.parametrize("write", [bc.write_fem, bc.write_sid])
@pytest.mark.parametrize("path", ["\ud800", "a\0b"])
def test_paths_that_cannot_be(write: Any, path: str) -> None:
    beam = Beam(2.0, bc.Section.circle(0.05), bc.Material.steel(), 4)
    with pytest.raises(InputError, match="path is"):
        write(path, beam_modes(beam, ("bend_z",), {"end": 1.0}, 1, False, math.inf))
