"""Invalid exports raise an error with a message, and change no file."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.exporting import casadi_library
from bellcrank.exporting.export_content import export_content
from bellcrank.graph import Graph, trace


@pytest.fixture(scope="module")
def arm() -> bc.Mechanism:
    return bc.zoo.chain(1)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"step": 0.0}, "step is 0.0; expected a number above zero"),
        ({"step": -1.0}, "step is -1.0"),
        ({"step": float("nan")}, "step is nan"),
        ({"step": float("inf")}, "step is inf"),
        ({"step": "x"}, "step is 'x'"),
        (
            {"solver": bc.Solver(tolerance=1e-6)},
            "so it cannot keep a tolerance; give step=",
        ),
        ({"form": "projectd"}, 'no form "projectd"'),
        ({"functions": 5}, "functions is 5; expected a list"),
        ({"functions": None}, "functions is None"),
        ({"functions": "d(" * 1000 + "bias" + ")/d(q)" * 1000}, "derivative of order .* too high"),
        ({"name": 5}, "name: 5 is of type int; expected a name"),
        ({"to": "fmu3", "platforms": 5}, "platforms is 5; expected a list"),
        ({"path": 5}, "path is 5; expected the path"),
        ({"path": None}, "path is None"),
        ({"path": b"x"}, "path is b'x'"),
        ({"path": ""}, "path is ''"),
        ({"path": "a\0b"}, r"path is 'a\\x00b'"),
        ({"path": "\ud800"}, "path is "),
        ({"path": "."}, "the current working directory"),
        ({"path": ".."}, "the current working directory"),
    ],
)
def test_invalid_export_input_raises(
    arm: bc.Mechanism, how: dict[str, Any], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(bc.InputError, match=says):
        bc.export(arm, **{"path": "out", **how})
    assert not any((tmp_path / "here").iterdir())


def test_other_files_are_kept(arm: bc.Mechanism, tmp_path: Path) -> None:
    """A pipe, a link to nowhere and a link to a folder are things of others, as files are."""
    folder = bc.export(arm, tmp_path / "arm", functions=["bias"])
    bc.export(arm, folder, functions=["bias"])  # an earlier export is replaced
    others = {"pipe": os.mkfifo, "dead": lambda p: os.symlink("nowhere", p), "elsewhere": lambda p: os.symlink("/", p)}
    for name, make in others.items():
        make(folder / name)  # type: ignore[operator]
        with pytest.raises(bc.InputError, match=f"{name} in it is not part of this export"):
            bc.export(arm, folder, functions=["bias"])
        (folder / name).unlink()


def test_a_very_long_name(arm: bc.Mechanism, tmp_path: Path) -> None:
    """Functions of an FMU are found by the part of their names that follows the name of the machine."""
    for to in ("fmu2", "fmu3"):
        assert bc.export(arm, tmp_path / f"{to}.fmu", to=to, name="x" * 10_000).stat().st_size > 1000


def doubled(name: str) -> Graph:
    return trace(name, lambda x: {"y": [2.0 * a for a in x]}, {"x": (2,)})


@pytest.mark.parametrize(
    "other", [f"f{tail}" for tail in casadi_library.NAME_SUFFIXES if tail] + ["jac_f", "jac_f_work"]
)
def test_functions_called_like_the_parts_of_another(other: str, tmp_path: Path) -> None:
    text = casadi_library.casadi_source(
        export_content([doubled("f"), doubled(other), doubled("round")], (), "", bc.Solver())
    )
    (tmp_path / "f.c").write_text(text)
    subprocess.run(["cc", "-std=c99", "-Werror", "-fsyntax-only", "f.c"], cwd=tmp_path, check=True)


@pytest.mark.parametrize("given", [5, None, b"x.npz", "a\0b.npz", "\ud800.npz"])
def test_paths_of_records(given: Any) -> None:
    run = bc.simulate(bc.zoo.chain(1), 0.002)
    for call in (run.save, run.report, bc.load_record):
        with pytest.raises(bc.BellcrankError, match=r"path is .*; expected the path"):
            call(given)


def test_a_record_in_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.npz")
    with pytest.raises(bc.ReadError, match="is not a regular file"):
        bc.load_record(tmp_path / "run.npz")


@pytest.mark.skipif(os.name == "nt", reason="names of files are bytes where this matters")
def test_names_of_files_that_are_no_utf8(arm: bc.Mechanism, tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    run = bc.simulate(arm, 0.002)
    for kind in ("npz", "csv", "parquet", "mcap"):
        kept = run.save(odd / f"{odd.name}.{kind}")
        np.testing.assert_array_equal(bc.load_record(kept).q, run.q)
    assert run.report(odd / f"{odd.name}.html").exists()
    assert bc.export(arm, odd / odd.name, to="c").is_dir()
    assert bc.export(arm, odd / f"{odd.name}.fmu", to="fmu2").exists()


@pytest.mark.parametrize("path", ["/", "/".join(["d" * 100] * 50), "x" * 300, "/proc/nothing", "/dev/full"])
def test_folders_that_cannot_be(path: str, arm: bc.Mechanism, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(bc.InputError):
        bc.export(arm, path, to="c")
    assert not list(tmp_path.iterdir())


def test_an_export_that_fails_at_the_last_moment(
    arm: bc.Mechanism, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The previous export is restored."""
    there = bc.export(arm, tmp_path / "out", to="c")
    before = {p.name: p.read_bytes() for p in there.iterdir()}
    renamed, real = [], os.replace

    def once(a: Any, b: Any) -> None:
        renamed.append(a)
        if len(renamed) > 1 and ".part" in str(a):
            raise OSError(28, "No space left on device")
        real(a, b)

    monkeypatch.setattr(os, "replace", once)
    with pytest.raises(bc.InputError, match="No space left"):
        bc.export(arm, tmp_path / "out", to="c")
    assert {p.name: p.read_bytes() for p in there.iterdir()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("to", ["fmu2", "fmu3", "casadi"])
def test_unwritable_path_raises_before_compilation(arm: bc.Mechanism, to: str, tmp_path: Path) -> None:
    told = list[str]()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for path in ("no/such/it.fmu", "folder", "pipe", "x" * 300):
        with pytest.raises(bc.InputError, match="cannot be written"):
            bc.export(arm, tmp_path / path, to=to, progress=told.append)
    assert told == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "pipe"]
