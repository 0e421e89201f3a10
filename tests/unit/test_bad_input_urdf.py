"""Broken and hostile URDF files each raise one error that names the file, the element, the value and the remedy."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellcrank.errors import BellcrankError, InputError, ModelError, ReadError
from bellcrank.formats import read

ARM = Path(__file__).parent / "data/arm.urdf"
TEXT = ARM.read_text()
TOOL = '<link name="tool"/>'
LIFT = '<joint name="lift" type="revolute">'
BOMB = "<!DOCTYPE r [" + "".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 10}">' for i in range(9)) + "]>"

# name: (text to replace, its replacement, the error, parts of its message)
BROKEN: dict[str, tuple[str, str, type[BellcrankError], tuple[str, ...]]] = {
    "mass is a word": ('value="3"', 'value="heavy"', ReadError, ('<mass> of link "column"', "heavy")),
    "mass is nan": ('value="3"', 'value="nan"', ReadError, ("finite",)),
    "mass is infinite": ('value="3"', 'value="1e999"', ReadError, ("finite",)),
    "mass beyond all measure": ('value="3"', 'value="1e300"', ReadError, ("finite number below 1e+50",)),
    "mass with an underscore": ('value="3"', 'value="1_0"', ReadError, ("not a number",)),
    "mass is a xacro expression": ('value="3"', 'value="${m}"', ReadError, ("xacro",)),
    "mass is missing": ('<mass value="3"/>', "", ReadError, ("has no <mass>", "line 25")),
    "mass without value": ('<mass value="3"/>', "<mass/>", ReadError, ('"value" is missing',)),
    "mass is empty": ('value="3"', 'value=" "', ReadError, ('"value" is empty',)),
    "mass is zero on a moving link": ('value="3"', 'value="0"', ModelError, ('"column"', "mass is 0 kg")),
    "mass is negative": ('value="3"', 'value="-3"', ModelError, ('"column"', "mass is -3 kg")),
    "inertia lacks a moment": ('ixx="0.03" ', "", ReadError, ('"ixx" is missing',)),
    "inertia is missing": ('<inertia ixx="0.03"', '<inertja ixx="0.03"', ReadError, ("no <inertia>",)),
    "inertia is not positive": ('ixx="0.03"', 'ixx="-0.03"', ModelError, ('"column"', "positive definite")),
    "energy is not positive": ('izz="0.02"', 'izz="-9"', ModelError, ("negative eigenvalue", "turn", '"column"')),
    "inertia breaks the triangle": ('ixx="0.03"', 'ixx="0.3"', ModelError, ("triangle", 'check="warn"')),
    "two inertials": ("</inertial>", "</inertial><inertial/>", ReadError, ('link "base"', "2 <inertial>")),
    "origin has two numbers": ('xyz="0 0 0.3"', 'xyz="0 0"', ReadError, ('<origin> of joint "turn"', "three")),
    "origin with commas": ('xyz="0 0 0.3"', 'xyz="0,0,0.3"', ReadError, ("three numbers",)),
    "axis is zero": ('xyz="0 0 1"', 'xyz="0 0 0"', ModelError, ('joint "turn"', "no direction")),
    "damping is negative": ('damping="0.5"', 'damping="-0.5"', ModelError, ('joint "turn"', "damping is -0.5")),
    "limit is nan": ('velocity="2"', 'velocity="nan"', ReadError, ("finite",)),
    "joint type is unknown": (LIFT, LIFT.replace("revolute", "revolut"), ReadError, ('Did you mean "revolute"?',)),
    "joint type is missing": (LIFT, '<joint name="lift">', ReadError, ('"type" is missing', "line 31")),
    "joint name is missing": (LIFT, '<joint type="revolute">', ReadError, ('"name" is missing', "line 31")),
    "joint without parent": ('<parent link="column"/>', "", ReadError, ('joint "lift"', "has no <parent>")),
    "parent without link": ('<parent link="column"/>', "<parent/>", ReadError, ('"link" is missing',)),
    "parent is unknown": ('<parent link="column"/>', '<parent link="colum"/>', ReadError, ('"colum"', '"column"?')),
    "link twice": (TOOL, TOOL + '<link name="fore"/>', ReadError, ('link "fore"', "taken by line 53")),
    "joint twice": (LIFT, LIFT.replace("lift", "turn"), ReadError, ('joint "turn"', "taken by line 15")),
    "link without name": (TOOL, TOOL + "<link/>", ReadError, ('"name" is missing',)),
    "two roots": (TOOL, TOOL + '<link name="moon"/>', ReadError, ("2 links have no parent", '"moon"')),
    "two parents": ('<child link="upper"/>', '<child link="fore"/>', ReadError, ("links have no parent",)),
    "a loop": ('<child link="palm"/>', '<child link="upper"/>', ReadError, ("links have no parent",)),
    "joined to itself": ('<parent link="column"/>', '<parent link="upper"/>', ModelError, ('"lift"', "to itself")),
    "mimics nobody": ('mimic joint="left"', 'mimic joint="lefft"', ModelError, ('"right"', '"lefft"', 'mean "left"')),
    "mimics itself": ('mimic joint="left"', 'mimic joint="right"', ModelError, ('"right" mimics itself',)),
    "mimics a fixed joint": ('mimic joint="left"', 'mimic joint="mount"', ModelError, ('no moving joint "mount"',)),
    "entity bomb": ("<robot", BOMB + "<robot", ReadError, ("refused", "DOCTYPE")),
    "external entity": ("<robot", '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///x">]><robot', ReadError, ("refused",)),
    "external DTD": ("<robot", '<!DOCTYPE r SYSTEM "http://127.0.0.1/x.dtd"><robot', ReadError, ("refused",)),
    "no end": ("</robot>", "", ReadError, ("not well-formed",)),
    "bare ampersand": ('value="3"', 'value="&"', ReadError, ("line 27", "not well-formed")),
    "odd encoding": ('<?xml version="1.0"?>', '<?xml version="1.0" encoding="klingon"?>', ReadError, ("encoding",)),
    "nested deeply": (TOOL, "<a>" * 200 + "</a>" * 200, ReadError, ("nested 100 elements deep",)),
    "MuJoCo": ("robot", "mujoco", ReadError, ("MuJoCo",)),
    "something else": ("robot", "html", ReadError, ("<html>", "not URDF")),
}  # fmt: skip


# Faults that check="warn", the default, accepts with a warning.
DOUBTFUL = ("mass is zero on a moving link", "inertia is not positive", "inertia breaks the triangle", "mimics nobody")


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files(case: str, tmp_path: Path) -> None:
    old, new, error, pieces = BROKEN[case]
    assert old in TEXT
    text = TEXT.replace(old, new) if old in ("robot", "</robot>") else TEXT.replace(old, new, 1)
    file = tmp_path / "broken.urdf"
    file.write_text(text)
    for source in [file] if case == "odd encoding" else [text, file]:
        with pytest.raises(error) as caught:
            read(source, check="error" if case in DOUBTFUL else "warn")
        message = str(caught.value)
        assert type(caught.value) is error
        assert all(piece in message for piece in pieces), message
        assert message.startswith(("URDF text", "MJCF text") if source is text else str(file))
        assert caught.value.__cause__ is None
        assert len(message) < 600


def test_a_closed_circle_of_links() -> None:
    text = '<robot name="o"><link name="a"/><link name="b"/>{}</robot>'
    joint = '<joint name="{0}{1}" type="fixed"><parent link="{0}"/><child link="{1}"/></joint>'
    with pytest.raises(ReadError, match="no link is the root"):
        read(text.format(joint.format("a", "b") + joint.format("b", "a")))


def test_one_link_is_a_mechanism_that_does_not_move() -> None:
    m = read('<robot name="stone"><link name="a"/></robot>')
    assert (m.nq, m.ground) == (0, "a")


def test_check_warn_accepts_impossible_inertias_but_no_invalid_values() -> None:
    m = read(TEXT.replace('ixx="0.03"', 'ixx="-0.03"'), check="warn")
    assert any("positive definite" in line.outcome for line in m.report.warnings)
    m = read(TEXT.replace('value="3"', 'value="0"', 1), check="warn")
    assert any("mass 0 kg: massless" in line.outcome for line in m.report.warnings)
    with pytest.raises(ModelError, match="mass is -3 kg"):
        read(TEXT.replace('value="3"', 'value="-3"'), check="warn")


@pytest.mark.parametrize(
    ("name", "pieces"),
    [
        ("arm.urfd", ("arm.urfd does not exist. Did you mean", 'arm.urdf"?')),
        ("nope.urdf", ("nope.urdf does not exist: the folder", "holds arm.urdf, empty.urdf")),
        ("bare/nope.urdf", ("nope.urdf does not exist: the folder", "holds no file ending in .urdf, .xml, .toml")),
        ("nowhere/arm.urdf", ("does not exist, as there is no folder", "nowhere")),
        ("", ("is a folder", "arm.urdf")),
        ("arm.stl", ('ending in ".stl"', ".urdf, .xml, .toml")),
        ("arm.xacro", ("xacro robot.xacro > robot.urdf",)),
        ("empty.urdf", ("not well-formed",)),
        ("a\0b.urdf", ("does not exist",)),
        ("x" * 5000 + ".urdf", ("cannot be read",)),
    ],
)
def test_paths(name: str, pieces: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    for file in ("arm.urdf", "arm.stl", "arm.xacro", "empty.urdf"):
        (tmp_path / file).write_text("" if file == "empty.urdf" else TEXT)
    with pytest.raises(ReadError) as caught:
        read(f"{tmp_path}/{name}")
    assert all(piece in str(caught.value) for piece in pieces), str(caught.value)


@pytest.mark.parametrize(
    "options",
    [{"base": "free"}, {"check": "no"}, {"right_angles": -1.0}, {"right_angles": math.nan}, {"right_angles": "x"}],
)
def test_options(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        read(ARM, **options)


@pytest.mark.parametrize("gravity", [(0, 0), (0, 0, math.nan), (0, 0, 0, 0), "down", 9.81])
def test_gravity(gravity: Any) -> None:
    with pytest.raises(ModelError, match="gravity"):
        read(ARM, gravity=gravity)


def test_not_a_path() -> None:
    with pytest.raises(InputError, match="expected the path of a file"):
        read(42)  # type: ignore[arg-type]


@settings(max_examples=300)
@given(st.integers(0, len(TEXT) - 1), st.integers(0, 60), st.text(max_size=8))
def test_any_damage_is_either_read_or_reported(at: int, length: int, patch: str) -> None:
    """A damaged file never raises a Python exception from outside the package."""
    damaged = TEXT[:at] + patch + TEXT[at + length :]
    try:
        m = read(damaged if damaged.lstrip().startswith("<") else "<" + damaged)
    except BellcrankError as error:
        said = str(error)
    else:
        said = m.report.source
    assert "URDF text" in said


@settings(max_examples=150)
@given(st.sampled_from(sorted(set(TEXT.split('"')[1::2]))), st.text(max_size=12) | st.floats().map(str))
def test_any_value_is_either_read_or_reported(old: str, new: str) -> None:
    escaped = new.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    try:
        said = read(TEXT.replace(f'"{old}"', f'"{escaped}"', 1)).report.source
    except BellcrankError as error:
        said = str(error)
    assert "URDF text" in said
