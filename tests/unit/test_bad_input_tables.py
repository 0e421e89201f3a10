"""Broken tables, in TOML and in Python, each raise one clear error."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellcrank.errors import BellcrankError, InputError, ModelError, ReadError
from bellcrank.formats import DhRow, from_dh, from_saha, from_wong, read

TEXT = (Path(__file__).parent / "data/arm_modified.toml").read_text()

FILES: dict[str, tuple[str, str, type[BellcrankError], str]] = {
    "not TOML": ('name = "arm"', "name = ", ReadError, "not TOML.*line 2"),
    "no links": ("[[link]]", "[[lnk]]", ReadError, 'no entry "lnk". Did you mean "link"'),
    "links a number": (TEXT, "link = 3", ReadError, "no \\[\\[link\\]\\] table"),
    "empty": (TEXT, "", ReadError, "no \\[\\[link\\]\\] table"),
    "unknown key": ("damping", "dampign", ModelError, 'row 1: There is no entry "dampign". Did you mean "damping"'),
    "unknown convention": ('"modified"', '"modern"', ModelError, 'no convention "modern". Known: classic, modified'),
    "unknown unit": ('"degrees"', '"grads"', ReadError, 'expected "degrees" or "radians"'),
    "unknown joint": ('joint = "P"', 'joint = "S"', ModelError, 'row 3 .*no joint "S".*R turns, P slides'),
    "joint a number": ('joint = "P"', "joint = 3", ModelError, "row 3: joint is 3; expected a text"),
    "a text for a number": ("a = 0.05", 'a = "0.05"', ModelError, "row 2 .*a is '0.05'; expected a number"),
    "nan": ("a = 0.05", "a = nan", ModelError, "row 2 .*a is nan; expected a finite number"),
    "true": ("a = 0.05", "a = true", ModelError, "expected a number"),
    "com of two": ("com = [0.2, 0.01, 0.02]", "com = [0.2]", ModelError, "com is .*three numbers"),
    "inertia of four": ("inertia = [0.01, 0.08, 0.08]", "inertia = [1, 1, 1, 1]", ModelError, "has 4 numbers"),
    "triangle": ("inertia = [0.01, 0.08, 0.08]", "inertia = [0.01, 0.08, 0.8]", ModelError, "triangle"),
    "mass zero": ("mass = 3.0", "mass = 0", ModelError, "mass is 0 kg"),
    "mass missing": ("mass = 3.0", "", ModelError, "a com or an inertia but no mass"),
    "same name": ('joint = "P"', 'joint = "P"\nname = "shoulder"', ModelError, '"shoulder" is used twice'),
    "limits swapped": ("lower = -2.0", "lower = 3", ModelError, "above the upper limit"),
}


@pytest.mark.parametrize("case", FILES)
def test_files(case: str, tmp_path: Path) -> None:
    old, new, error, message = FILES[case]
    assert old in TEXT
    file = tmp_path / "arm.toml"
    file.write_text(TEXT.replace(old, new))
    with pytest.raises(error, match=message) as caught:
        read(file, check="error")
    assert str(caught.value).startswith(str(file))


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "arm.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(ReadError, match="not UTF-8"):
        read(tmp_path / "arm.toml")


def test_a_table_has_no_base_to_free(tmp_path: Path) -> None:
    (tmp_path / "arm.toml").write_text(TEXT)
    with pytest.raises(InputError, match="starts at the ground"):
        read(tmp_path / "arm.toml", base="floating")


@given(st.integers(0, len(TEXT) - 1), st.integers(0, 30), st.text(max_size=6))
def test_any_damage_is_either_read_or_reported(
    tmp_path_factory: pytest.TempPathFactory, at: int, length: int, patch: str
) -> None:
    file = tmp_path_factory.mktemp("fuzz") / "arm.toml"
    file.write_bytes((TEXT[:at] + patch + TEXT[at + length :]).encode("utf-8", "replace"))
    try:
        read(file)
    except BellcrankError as error:
        said = str(error)
    else:
        said = "arm.toml"
    assert "arm.toml" in said


def test_rows_in_python() -> None:
    with pytest.raises(ModelError, match="the table has no rows"):
        from_dh("x", [])
    with pytest.raises(ModelError, match=r'no entry "thta"\. Did you mean "theta"'):
        from_dh("x", [{"thta": 1}])
    with pytest.raises(ModelError, match='no option "torque"'):
        from_dh("x", [DhRow(mass=1, options={"torque": 1})])
    with pytest.raises(ModelError, match=r"moves on joint .* but its mass is 0"):
        from_dh("x", [DhRow(mass=0)])


WONG: dict[str, Any] = {
    "alpha": [0, 1],
    "mass": [1, 1],
    "k": [[0, 0, 0]] * 2,
    "l": [[1, 0, 0]],
    "inertia": [[1, 1, 1]] * 2,
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"alpha": [0]}, "alpha has 1 entries and mass has 2"),
        ({"names": ["a"]}, "names has 1 entries"),
        ({"l": []}, "there is no l\\[1, 2\\]"),
        ({"l": {(2, 1): [1, 0, 0]}}, "there is no l\\[1, 2\\]"),
        ({"parent": [0, 2]}, "its parent is 2; expected 0"),
        ({"parent": [1, 1]}, "its parent is 1; expected 0"),
        ({"k": [[0, 0, 0], [0, 0]]}, "k is .*three numbers"),
        ({"alpha": [0, math.nan]}, "alpha is nan"),
    ],
)
def test_wong(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        from_wong("x", **(WONG | changed))


SAHA: dict[str, Any] = {"a": [0], "b": [0], "alpha": [0], "mass": [1], "r": [[0, 0, 0]], "inertia": [[1, 1, 1]]}


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"a": []}, "a has 0 entries"), ({"r": [[0, 0]]}, "r is .*three numbers"), ({"joints": ["X"]}, 'no joint "X"')],
)
def test_saha(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        from_saha("x", **(SAHA | changed))
