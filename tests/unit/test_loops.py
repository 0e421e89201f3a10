"""Closed loops in Python: loop kinds, the choice of cuts, and refused input."""

from __future__ import annotations

import itertools
import json
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from bellcrank.dynamics import kinematics
from bellcrank.errors import ModelError
from bellcrank.formats import Builder
from bellcrank.formats.moving_constraints import BUILDER_METHODS
from bellcrank.model import Loop, Mechanism, Spring, regrouped
from bellcrank.model.parts import EQUATIONS
from bellcrank.parameters import parameter
from bellcrank.record import description as parts

# A four-bar: name -> parent, child, point.
BARS = {
    "R1": ("ground", "crank", (0, 0, 0)),
    "R2": ("crank", "coupler", (0, 1, 0)),
    "R3": ("coupler", "rocker", (2, 1, 0)),
    "R4": ("rocker", "ground", (2, 0, 0)),
}


def bars() -> Builder:
    b = Builder("fourbar", gravity=(0, -9.81, 0))
    b.body("crank", mass=1, com=(0, 0.5, 0), inertia=(0.08, 0.01, 0.08))
    b.body("coupler", mass=2, com=(1, 1, 0), inertia=(0.01, 0.6, 0.6))
    b.body("rocker", mass=1, com=(2, 0.5, 0), inertia=(0.08, 0.01, 0.08))
    return b


def fourbar(order: Sequence[str] = tuple(BARS), **options: Any) -> Mechanism:
    b = bars()
    for name in order:
        parent, child, point = BARS[name]
        b.joint(name, "revolute", parent, child, point=point, **options.get(name, {}))
    return b.build()


def tree() -> Builder:
    """Return the mechanism without its last joint."""
    b = bars()
    for name in ("R1", "R2", "R3"):
        parent, child, point = BARS[name]
        b.joint(name, "revolute", parent, child, point=point)
    return b


def pose(m: Mechanism, q: Any, frame: str) -> np.ndarray[Any, Any]:
    return np.array([[float(x) for x in row] for row in kinematics.pose(m.tree, list(q), frame)])


def test_a_loop_is_two_frames() -> None:
    b = tree()
    b.close("R4", "revolute", "rocker", "ground", point=(2, 0, 0), axis=(0, 0, 1))
    m = b.build()
    assert m.loops == (Loop("R4", "revolute", "R4.a", "R4.b"),)
    assert (m.frames["R4.a"].body, m.frames["R4.b"].body) == ("rocker", "ground")
    np.testing.assert_allclose(pose(m, [0, 0, 0], "R4.a"), pose(m, [0, 0, 0], "R4.b"), atol=1e-15)
    assert m.nq == 3
    assert m.tree.loops == regrouped(m.tree).loops == m.loops
    assert {"R4.a", "R4.b"} <= set(regrouped(m.tree).frames)
    assert "R4" in str(m)
    assert "rocker - ground" in str(m)
    assert "1 loops" in repr(m)


def test_the_axis_is_z_and_the_second_axis_x() -> None:
    b = tree()
    b.loop("U", "universal", "rocker", "ground", point=(2, 0, 0), axis=(0, 1, 0), second_axis=(0, 0, 1))
    X = pose(b.build(), [0, 0, 0], "U.b")
    np.testing.assert_allclose(X[:3, :3], [[0, 1, 0], [0, 0, 1], [1, 0, 0]], atol=1e-15)


def test_a_loop_that_is_open_at_the_zero_configuration() -> None:
    b = tree()
    b.close(
        "R4", "revolute", "rocker", "ground", point_a=(2, 0, 0), point_b=(3, 0, 0), axis=(0, 0, 1), axis_b=(0, 1, 0)
    )
    m = b.build()
    np.testing.assert_allclose(pose(m, [0, 0, 0], "R4.b")[:3, 3], [3, 0, 0])
    np.testing.assert_allclose(pose(m, [0, 0, 0], "R4.b")[:3, 2], [0, 1, 0], atol=1e-15)


def test_every_kind_of_loop() -> None:
    needs: dict[str, dict[str, Any]] = {
        "universal": {"point": (2, 0, 0), "second_axis": (1, 0, 0)},
        "distance": {"point_a": (2, 1, 0), "point_b": (2, 0, 0)},
        "point_on_line": {"point_a": (2, 0, 0), "point_b": (2, 0, 0), "axis": (1, 0, 0)},
        "gear": {"joints": ("R1", "R2"), "ratio": 2, "offset": 0.1},
    }
    for kind in EQUATIONS:
        if kind == "rack" or kind in BUILDER_METHODS:  # tested elsewhere
            continue
        b = tree()
        ends = () if kind == "gear" else ("rocker", "ground")
        b.close("end", kind, *ends, **needs.get(kind, {"point": (2, 0, 0)}))
        m = b.build()
        assert m.loops[0].kind == kind
        assert pickle.loads(pickle.dumps(m)).fingerprint == m.fingerprint
        assert parts.read_mechanism(json.loads(json.dumps(parts.to_plain(m)))).loops == m.loops
    assert m.loops[0] == Loop("end", "gear", value=2.0, offset=0.1, joints=("R1", "R2"))
    assert "R2 = 2 * R1 + 0.1" in str(m)


def test_rack_and_pinion() -> None:
    b = Builder("rack")
    for name in ("pinion", "slider"):
        b.body(name, mass=1, inertia=(1, 1, 1))
    b.joint("turn", "revolute", "ground", "pinion")
    b.joint("slide", "prismatic", "ground", "slider", axis=(1, 0, 0))
    b.close("mesh", "rack", joints=["turn", "slide"], ratio=0.05)
    assert b.build().loops == (Loop("mesh", "rack", value=0.05, joints=("turn", "slide")),)


def test_distance_defaults_to_the_initial_one() -> None:
    b = tree()
    b.close("rod", "distance", "rocker", "ground", point_a=(2, 0.5, 0), point_b=(3, 0.5, 0))
    b.close("cord", "distance", "rocker", "ground", point_a=(2, 0.4, 0), point_b=(3, 0.5, 0), distance=1.5)
    assert [loop.value for loop in b.build().loops] == [1.0, 1.5]


def test_springs() -> None:
    b = tree()
    b.spring("spring", "ground", "rocker", (0, 0, 0), (2, 1, 0), stiffness=100, damping=3)
    b.spring("other", "ground", "rocker", (0, 0, 0), (2, 1, 0), stiffness=100, length=0.5)
    m = b.build()
    assert m.springs[0] == Spring("spring", "spring.a", "spring.b", 100.0, np.sqrt(5.0), 3.0)
    assert m.springs[1].length == 0.5
    assert m.tree.springs == m.springs
    assert m.frictionless().springs == ()
    assert parts.read_mechanism(json.loads(json.dumps(parts.to_plain(m)))).fingerprint == m.fingerprint


def test_numbers_of_loops_and_springs_may_be_free() -> None:
    b = tree()
    x = parameter("x", 2.0, "m")
    b.close("rod", "distance", "rocker", "ground", point_a=(2, 1, 0), point_b=(x, 0, 0))
    b.spring("spring", "ground", "rocker", (0, 0, 0), (2, 1, 0), stiffness=parameter("k", 100.0), length=1)
    m = b.build()
    assert set(m.parameters) == {"x", "k"}
    there = m.at({"x": 3.0, "k": 7.0})
    assert there.loops[0].value == pytest.approx(np.sqrt(2.0))
    assert there.springs[0].stiffness == 7.0
    freed = there.free("rod.value", "spring.length", "spring.damping")
    assert set(freed.parameters) == {"rod.value", "spring.length", "spring.damping"}
    assert freed.at({"rod.value": 1.25}).loops[0].value == 1.25


def test_ends_on_welded_bodies_are_found() -> None:
    b = tree()
    b.body("tip", mass=0.1, com=(2.5, 1, 0))
    b.joint("weld", "fixed", "coupler", "tip", point=(2.5, 1, 0))
    b.close("end", "spherical", "tip", "ground", point=(2.5, 1, 0))
    m = b.build()
    assert m.frames["end.a"].body == "coupler"
    np.testing.assert_allclose(pose(m, [0, 0, 0], "end.a")[:3, 3], [2.5, 1, 0])


# -- choice of cuts


def test_joints_that_form_a_loop_are_cut_where_the_ways_are_short() -> None:
    m = fourbar()
    assert [j.name for j in m.joints] == ["R1", "R2", "R4"]
    assert m.loops == (Loop("R3", "revolute", "R3.a", "R3.b"),)
    np.testing.assert_allclose(pose(m, [0, 0, 0], "R3.a"), pose(m, [0, 0, 0], "R3.b"), atol=1e-15)
    said = [line for line in m.report.lines if line.element == 'joint "R3"']
    assert len(said) == 1
    assert "closes a loop and is cut" in said[0].outcome
    assert any("turned round" in line.outcome for line in m.report.lines if line.element == 'joint "R4"')


def test_every_order_of_joints_is_the_same_mechanism() -> None:
    """Every order of joints gives the same mechanism: all bodies have the same poses.

    The configuration has a crank angle of 0.3; the other two angles close the parallelogram.
    """
    angles = {"R1": 0.3, "R2": -0.3, "R3": 0.3, "R4": -0.3}
    found = {}
    for order in itertools.permutations(BARS):
        m = fourbar(order)
        assert {j.name for j in m.joints} | {loop.name for loop in m.loops} == set(BARS)
        q = [angles[j.name] for j in m.joints]
        a, b = (pose(m, q, f"{m.loops[0].name}.{end}") for end in "ab")
        np.testing.assert_allclose(a[:3, 3], b[:3, 3], atol=1e-14)
        found[order] = [pose(m, q, body.name)[:3, :3] for body in sorted(m.bodies, key=lambda body: body.name)]
    first = next(iter(found.values()))
    for other in found.values():
        np.testing.assert_allclose(other, first, atol=1e-14)


def test_a_joint_that_is_turned_round_keeps_its_coordinate() -> None:
    def mass(parent: str, child: str, kind: str) -> Mechanism:
        b = Builder("one")
        b.body("x", mass=1, com=(1, 0, 0), inertia=(1, 1, 1))
        b.joint("j", kind, parent, child, point=(0.5, 0, 0), axis=(0, 0, 1), pitch=0.1 if kind == "helical" else 0)
        return b.build()

    for kind, q in {"revolute": [0.4], "prismatic": [0.4], "helical": [0.4], "cylindrical": [0.4, 0.7]}.items():
        given, turned = mass("ground", "x", kind), mass("x", "ground", kind)
        moved = [pose(m, q, "x") @ np.linalg.inv(pose(m, [0] * len(q), "x")) for m in (given, turned)]
        np.testing.assert_allclose(moved[0] @ moved[1], np.eye(4), atol=1e-15)


def test_the_joint_with_the_most_freedom_is_cut() -> None:
    b = bars()
    kinds = {"R1": "revolute", "R2": "spherical", "R3": "spherical", "R4": "revolute"}
    for name, (parent, child, point) in BARS.items():
        b.joint(name, kinds[name], parent, child, point=point)
    m = b.build()
    assert [loop.name for loop in m.loops] == ["R3"]
    assert (m.nv, EQUATIONS[m.loops[0].kind]) == (5, 3)


def test_forces_limits_and_followers_stay() -> None:
    held = {name: {"damping": 0.1} for name in ("R2", "R3")}
    assert [x.name for x in fourbar(**held).loops] == ["R4"]
    assert [x.name for x in fourbar(R3={"lower": -1, "upper": 1}).loops] == ["R2"]
    assert [x.name for x in fourbar(R3={"stiffness": parameter("k", 0.0)}, R2={"mimic": "R4"}).loops] == ["R1"]
    b = bars()
    for name, (parent, child, point) in BARS.items():
        b.joint(name, "revolute", parent, child, point=point)
    b.close("gears", "gear", joints=("R3", "R2"), ratio=-1)
    assert [x.name for x in b.build().loops] == ["R4", "gears"]
    with pytest.raises(ModelError, match=r'none of them can be cut: "R1" has damping; .*close\(\.\.\.\)'):
        fourbar(**{name: {"damping": 0.1} for name in BARS})


def test_a_floating_joint_in_a_loop_holds_nothing() -> None:
    b = bars()
    for name, (parent, child, point) in BARS.items():
        b.joint(name, "revolute", parent, child, point=point)
    b.joint("base", "floating", "ground", "coupler")
    m = b.build()
    assert m.nq == 3
    assert [x.name for x in m.loops] == ["R3"]
    assert any("holds nothing" in line.outcome for line in m.report.lines)


def test_a_joint_that_cannot_be_turned_round() -> None:
    b = Builder("one")
    b.body("x", mass=1, inertia=(1, 1, 1))
    b.joint("ball", "spherical", "x", "ground")
    with pytest.raises(ModelError, match=r'joint "ball".*a spherical joint cannot be reversed. Give "ground" as its'):
        b.build()


def test_cuts_of_many_windows() -> None:
    """For N windows with 2N + 1 rods N joints are cut, and no rod is more than two joints from the ground."""
    n = 12
    b = Builder("windows")
    for i in range(n + 1):
        b.body(f"A{i}", mass=1, com=(i, 0.5, 0), inertia=(1, 1, 1))
        b.joint(f"P{i}", "revolute", "ground", f"A{i}", point=(i, 0, 0))
    for i in range(n):
        b.body(f"B{i}", mass=1, com=(i + 0.5, 1, 0), inertia=(1, 1, 1))
        b.joint(f"L{i}", "revolute", f"A{i}", f"B{i}", point=(i, 1, 0))
        b.joint(f"M{i}", "revolute", f"B{i}", f"A{i + 1}", point=(i + 1, 1, 0))
    m = b.build()
    assert {x.name for x in m.loops} == {f"M{i}" for i in range(n)}
    assert max(len(m.tree.path(i)) for i in range(len(m.bodies))) == 2


# -- refused input

BAD: dict[str, tuple[Any, str]] = {
    "unknown kind": (lambda b: b.close("x", "hinge", "rocker", "ground", point=(0, 0, 0)), 'no loop type "hinge"'),
    "unknown body": (lambda b: b.close("x", "revolute", "rockr", "ground", point=(0, 0, 0)), 'Did you mean "rocker"'),
    "itself": (lambda b: b.close("x", "revolute", "rocker", "rocker", point=(0, 0, 0)), 'joins "rocker" to itself'),
    "no point": (lambda b: b.close("x", "revolute", "rocker", "ground"), "has no point"),
    "no point_b": (lambda b: b.close("x", "distance", "rocker", "ground", point_a=(0, 0, 0)), "has no point_b"),
    "name of a joint": (lambda b: b.close("R1", "revolute", "rocker", "ground", point=(0, 0, 0)), "exists already"),
    "axis of nothing": (
        lambda b: b.close("x", "revolute", "rocker", "ground", point=(0, 0, 0), axis=(0, 0, 0)),
        "no direction",
    ),
    "axis of a sphere": (
        lambda b: b.close("x", "spherical", "rocker", "ground", point=(0, 0, 0), axis=(0, 0, 1)),
        "spherical loop has none",
    ),
    "no second axis": (lambda b: b.close("x", "universal", "rocker", "ground", point=(0, 0, 0)), "need second_axis"),
    "slanted": (
        lambda b: b.close(
            "x", "universal", "rocker", "ground", point=(0, 0, 0), axis=(0, 0, 1), second_axis=(0, 0.6, 0.8)
        ),
        "not perpendicular",
    ),
    "ratio of a hinge": (
        lambda b: b.close("x", "revolute", "rocker", "ground", point=(0, 0, 0), ratio=2),
        "ratio is 2",
    ),
    "distance zero": (
        lambda b: b.close("x", "distance", "rocker", "ground", point_a=(0, 0, 0), point_b=(0, 0, 0)),
        "expected a positive distance",
    ),
    "gear without ratio": (lambda b: b.close("x", "gear", joints=("R1", "R2")), "has no ratio"),
    "gear with a point": (lambda b: b.close("x", "gear", joints=("R1", "R2"), ratio=1, point=(0, 0, 0)), "leave out"),
    "gear of three": (lambda b: b.close("x", "gear", joints=("R1", "R2", "R3"), ratio=1), "the names of two"),
    "gear of a text": (lambda b: b.close("x", "gear", joints="R1", ratio=1), "the names of two"),
    "gear on nothing": (lambda b: b.close("x", "gear", joints=("R1", "R9"), ratio=1), 'no moving joint "R9"'),
    "gear on a ball": (lambda b: b.close("x", "gear", joints=("R1", "ball"), ratio=1), '"ball" is spherical and has 3'),
    "gear on itself": (lambda b: b.close("x", "gear", joints=("R1", "R1"), ratio=1), "two different names"),
    "gear at a stand": (lambda b: b.close("x", "gear", joints=("R1", "R2"), ratio=0), "ratio is 0"),
    "gear on a slide": (lambda b: b.close("x", "gear", joints=("R1", "slide"), ratio=1), 'it is a "rack"'),
    "rack of hinges": (lambda b: b.close("x", "rack", joints=("R1", "R2"), ratio=1), "turns and one that slides"),
    "welded": (lambda b: b.close("x", "revolute", "tip", "coupler", point=(0, 0, 0)), "one rigid body"),
    "spring on itself": (lambda b: b.spring("x", "tip", "tip", (0, 0, 0), (1, 0, 0)), 'ties "tip" to itself'),
    "spring in a body": (lambda b: b.spring("x", "tip", "coupler", (0, 0, 0), (1, 0, 0)), "one rigid body"),
    "damping below zero": (lambda b: b.spring("x", "tip", "ground", (0, 0, 0), (1, 0, 0), damping=-1), "damping is -1"),
    "frame in the way": (
        lambda b: (b.frame("x.a", "tip"), b.spring("x", "tip", "ground", (0, 0, 0), (1, 0, 0))),
        'called "x.a"',
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_loops_are_refused(case: str) -> None:
    b = tree()
    b.body("tip", mass=0.1, com=(2.5, 1, 0))
    b.body("ball", mass=0.1, com=(2.5, 1, 0))
    b.body("slider", mass=0.1, com=(2.5, 1, 0))
    b.joint("weld", "fixed", "coupler", "tip", point=(2.5, 1, 0))
    b.joint("ball", "spherical", "tip", "ball", point=(2.5, 1, 0))
    b.joint("slide", "prismatic", "tip", "slider", point=(2.5, 1, 0))
    make, message = BAD[case]
    with pytest.raises(ModelError, match=message):
        (make(b), b.build())


def test_a_loop_of_fixed_joints() -> None:
    b = Builder("frame")
    for name in "xy":
        b.body(name, mass=1, inertia=(1, 1, 1))
    b.joint("base", "revolute", "ground", "x")
    b.joint("weld", "fixed", "x", "y")
    b.joint("again", "fixed", "y", "x")
    with pytest.raises(ModelError, match=r'loop "again".*one rigid body'):
        b.build()


@pytest.mark.parametrize(
    ("first", "second", "agree"),
    [
        ({"ratio": 2.0, "joints": ("R1", "R2")}, {"ratio": 2.0, "joints": ("R1", "R2")}, True),
        (
            {"ratio": 2.0, "offset": 1.0, "joints": ("R1", "R2")},
            {"ratio": 0.5, "offset": -0.5, "joints": ("R2", "R1")},
            True,
        ),
        ({"ratio": 2.0, "joints": ("R1", "R2")}, {"ratio": 3.0, "joints": ("R1", "R2")}, False),
        ({"ratio": 2.0, "joints": ("R1", "R2")}, {"ratio": 2.0, "offset": 1.0, "joints": ("R1", "R2")}, False),
    ],
)
def test_loops_defined_twice(first: dict[str, Any], second: dict[str, Any], agree: bool) -> None:
    b = tree()
    b.close("one", "gear", **first)
    b.close("two", "gear", **second)
    if agree:
        assert any('equals "one"' in w.outcome for w in b.build().report.warnings)
        return
    with pytest.raises(ModelError, match=r'loop "two" contradicts "one"'):
        b.build()


def test_distances_and_mimics_that_contradict() -> None:
    b = tree()
    b.close("one", "distance", "rocker", "ground", point_a=(2, 1, 0), point_b=(2, 0, 0))
    b.close("two", "distance", "ground", "rocker", point_a=(2, 0, 0), point_b=(2, 1, 0), distance=2)
    with pytest.raises(ModelError, match=r'"two" contradicts "one": .* requires 2 and the other 1'):
        b.build()
    b = bars()
    for name in ("R1", "R2", "R3"):
        parent, child, point = BARS[name]
        b.joint(name, "revolute", parent, child, point=point, mimic=("R1", 2) if name == "R2" else None)
    b.close("gears", "gear", joints=("R1", "R2"), ratio=3)
    with pytest.raises(ModelError, match=r'"gears" contradicts "mimic of R2"'):
        b.build()
