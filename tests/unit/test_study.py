"""bc.study at small size: rows equal single runs, failures are rows, and a restart computes only what is missing."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.content_digest.libraries import code_versions
from bellcrank.errors import BellcrankError, InputError, ReadError
from bellcrank.studies import dask_engine
from bellcrank.studies import study_folder as folder_module
from bellcrank.studies.dask_engine import StudyError, compute_chunk
from bellcrank.studies.study_folder import StudyFolder
from bellcrank.studies.study_identity import ExpectedDigests
from bellcrank.studies.study_page import _bones, _leaf_centres
from bellcrank.view.scene import poses

distributed = pytest.importorskip("distributed")
pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Return a Dask cluster without processes; test_study_kills.py tests those."""
    with distributed.LocalCluster(processes=False, n_workers=1, dashboard_address="127.0.0.1:0") as made:
        yield made


def pendulum() -> bc.Mechanism:
    b = bc.Builder("pendulum")
    b.body("bob", mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0), damping=0.1)
    return b.build()


def servo() -> bc.System:
    from bellcrank.actuators import PD

    return bc.system(pendulum(), [PD("hinge", 50.0, 5.0)], lambda t, q, v, x, u: {"hinge": u["aim"]}, inputs=["aim"])


OVER = {"bob.mass": bc.uniform(0.5, 2.0), "hinge.q": bc.uniform(-1.0, 1.0)}
ASKED: dict[str, Any] = {"seconds": 0.3, "step": 0.01, "summary": ["max(hinge.v)", "final(energy)"], "chunk": 16}


def test_rows_are_the_runs(cluster: Any, tmp_path: Path) -> None:
    done = bc.study(pendulum(), OVER, 50, to=tmp_path / "s", cluster=cluster, **ASKED)
    asked = {k: ASKED[k] for k in ("step", "summary")}
    alone = bc.simulate(
        pendulum().free("bob.mass"),
        0.3,
        q0=done["hinge.q"][:, None],
        parameters={"bob.mass": done["bob.mass"]},
        **asked,
    )
    assert done["run"].tolist() == list(range(50))
    for name in ASKED["summary"]:
        assert (done[name] == alone[name][:, 0]).all()
    assert done.failures == {}
    assert len(list((tmp_path / "s/runs").iterdir())) == 4
    again = done.replay(17)
    assert again["hinge.v"].max() == done["max(hinge.v)"][17]
    assert done.manifest["seed"] == 0
    assert done.manifest["provenance"]["bellcrank"] == bc.__version__


def test_second_start_computes_missing_runs(cluster: Any, tmp_path: Path) -> None:
    asked = {"to": tmp_path / "s", "cluster": cluster, **ASKED}
    bc.study(pendulum(), OVER, 50, **asked)
    files = sorted((tmp_path / "s/runs").iterdir())
    before = {f: f.read_bytes() for f in files}
    stamps = {f: f.stat().st_mtime_ns for f in files}
    files[1].unlink()
    damaged = bytearray(before[files[2]])
    damaged[len(damaged) // 3] ^= 16
    files[2].write_bytes(bytes(damaged))
    told: list[float] = []
    bc.study(pendulum(), OVER, 50, progress=told.append, **asked)
    assert {f: f.read_bytes() for f in files} == before
    assert [f for f in files if f.stat().st_mtime_ns == stamps[f]] == [files[0], files[3]]
    assert told[-1] == 1.0
    assert json.loads((tmp_path / "s/study.json").read_text())["sessions"] == 2


def test_different_study_in_the_folder_raises(cluster: Any, tmp_path: Path) -> None:
    asked = {"to": tmp_path / "s", "cluster": cluster, **ASKED}
    bc.study(pendulum(), OVER, 10, **asked)
    b = bc.Builder("pendulum")
    b.body("bob", mass=1.0, com=(0, 0, -1.1), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0), damping=0.1)
    with pytest.raises(InputError, match="different study: its plant"):
        bc.study(b.build(), OVER, 10, **asked)
    with pytest.raises(InputError, match="different study: the digest of its values"):
        bc.study(pendulum(), OVER, 10, seed=1, **asked)


def test_failures_are_rows(cluster: Any, tmp_path: Path) -> None:
    over = {"bob.mass": [1.0, -1.0, 2.0], "hinge.v": [0.0, 1e200]}
    done = bc.study(pendulum(), over, to=tmp_path / "s", cluster=cluster, **ASKED)
    assert done["stop"].tolist() == ["end", "not finite", "refused", "refused", "end", "not finite"]
    assert "mass -1" in done["message"][2]
    assert np.isnan(done["final(energy)"][2])
    assert done.failures == {"not finite": 2, "refused": 2}
    page = done.report().read_text("utf-8")
    assert "2 refused" not in page  # the number is in the data, and the page's script shows it
    assert '"refused": 2' in page


def test_inputs_files_seeds_variants_and_methods(cluster: Any, tmp_path: Path) -> None:
    for name, level in (("low.csv", 0.1), ("high.csv", 0.4)):
        (tmp_path / name).write_text("t,aim\n" + "".join(f"{0.1 * k},{level}\n" for k in range(3)))
    files = [str(tmp_path / n) for n in ("low.csv", "high.csv")]
    asked: dict[str, Any] = {"seconds": 0.3, "step": 0.01, "cluster": cluster}
    made = bc.study(servo(), {"aim": files, "hinge.q": [0.0, 0.2]}, to=tmp_path / "a", input_step=0.1, **asked)
    plain = bc.study(servo(), {"aim": [0.1, 0.4], "hinge.q": [0.0, 0.2]}, to=tmp_path / "b", **asked)
    for name in ("final(hinge.q)", "final(hinge.v)"):
        assert (made[name] == plain[name]).all()
        assert len(np.unique(made[name])) == 4
    noise = {"aim": lambda t, rng: rng.normal(size=t.size)}
    drawn = bc.study(servo(), {"seed": [1, 2, 1]}, to=tmp_path / "c", inputs=noise, input_step=0.1, **asked)
    assert drawn["final(hinge.v)"][0] == drawn["final(hinge.v)"][2] != drawn["final(hinge.v)"][1]
    two = {"light": pendulum(), "driven": servo()}
    varied = {"variant": ["light", "light"], "integrator": ["rk4", "euler"], "hinge.q": [0.5, 0.5]}
    both = bc.study(two, None, points=varied, to=tmp_path / "d", **asked)
    assert 0 < abs(np.diff(both["final(hinge.v)"])[0]) < 0.1


def test_the_end_of_a_start_that_varies_is_not_its_start(cluster: Any, tmp_path: Path) -> None:
    done = bc.study(pendulum(), {"hinge.q": [0.5]}, to=tmp_path / "s", cluster=cluster, seconds=0.3, step=0.01)
    assert done["hinge.q"].tolist() == [0.5]
    assert done["final(hinge.q)"][0] == bc.simulate(pendulum(), 0.3, q0=[0.5], step=0.01).q[-1, 0]


def test_rows_are_kept_as_lists(cluster: Any, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"seconds": 0.3, "step": 0.01, "keep": "rows", "every": 0.1, "cluster": cluster}
    over = {"hinge.q": [0.1, 0.2, 0.3], "hinge.v": [0.0, 1e200], "bob.mass": [1.0, -1.0]}
    done = bc.study(pendulum(), over, to=tmp_path / "s", **asked)
    found, alone = done["rows(hinge.q)"], done.replay(8, every=0.1)
    assert done["hinge.q"][8] == 0.3
    np.testing.assert_array_equal(found[8], alone["hinge.q"].ravel())
    np.testing.assert_array_equal(done["rows(t)"][8], alone.t.ravel())
    refused = done["stop"] == "refused"
    assert refused.sum() == 6
    assert np.isnan(found[refused]).all()
    failed = done["stop"] == "not finite"
    assert failed.sum() == 3
    assert np.isfinite(found[failed][:, 0]).all()
    assert np.isnan(found[failed][:, -1]).all()
    assert "rows(hinge.q)" not in done.results
    assert list(StudyFolder(done.folder).missing_chunks(done.manifest)) == []
    with pytest.raises(InputError, match="a summary is one number"):
        bc.study(pendulum(), over, to=tmp_path / "t", summary=["max(hinge.v)"], **asked)
    with pytest.raises(InputError, match="no rows are kept"):
        bc.study(pendulum(), over, to=tmp_path / "t", **{**asked, "keep": None})


def test_a_replay_shows_where_the_mass_at_the_end_is() -> None:
    m = pendulum()
    posed = poses(m, np.array([[0.3], [-1.0]]))
    assert _bones(m) == [-1, 0]
    np.testing.assert_allclose(
        _leaf_centres(m, posed)[:, 0], [[-np.sin(q), 0, -np.cos(q)] for q in (0.3, -1.0)], atol=1e-15
    )


def test_names_never_reach_the_page_as_markup(cluster: Any, tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    b = bc.Builder(evil)
    b.body(evil, mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", evil, axis=(0, 1, 0))
    done = bc.study(b.build(), {f"{evil}.mass": bc.uniform(1, 2)}, 50, to=tmp_path / "s", cluster=cluster, **ASKED)
    page = done.report().read_text("utf-8")
    assert "<img" not in page
    assert "default-src 'none'" in page  # the page's own policy: it fetches nothing


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"over": {"bobb.mass": [1.0]}}, 'no parameter, start or input "bobb.mass"'),
        ({"over": {"hinge.q": ["fast"]}}, "has words"),
        ({"over": {"bob.mass": bc.uniform(1, 2, "lb")}, "runs": 3}, "given in lb, but the plant has it in kg"),
        ({"over": {"stop": [1.0]}}, "name of a column of every study"),
        ({"over": {"variant": ["a"]}}, "several plants"),
        ({"summary": ["max(hinge.w)"]}, "no column"),
        ({"summary": "max(hinge.v)"}, "expected a list"),
        ({"seconds": -1.0}, "seconds is -1"),
        ({"keep": "all"}, "keep is 'all'"),
        ({"chunk": 0}, "chunk is 0"),
        ({"cluster": 7}, "cluster is 7"),
        ({"q0": [0.0]}, "q0 must be a mapping"),
        ({"inputs": {"wind": 1.0}}, "no input"),
        ({"to": "/proc/no/such"}, "cannot be made"),
        ({"to": None}, "to is None"),
        ({"to": "a\0b"}, "expected the name of a folder"),
        ({"over": {3: [1.0]}}, "over has 3"),
    ],
)
def test_bad_input_is_named_before_anything_starts(change: dict[str, Any], word: str, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"over": {"hinge.q": [0.1, 0.2]}, "to": tmp_path / "s", **ASKED, **change}
    with pytest.raises(InputError, match=word):
        bc.study(pendulum(), **asked)


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match=r"thesis\.tex"):
        bc.study(pendulum(), {"hinge.q": [0.1]}, to=tmp_path, **ASKED)
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["thesis.tex"]


def test_full_disk_keeps_finished_runs(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"to": tmp_path / "s", "cluster": cluster, **ASKED}
    real, written = folder_module.write_atomically, []

    def full(path: Path, write: Any, hint: str) -> Path:
        if len(written) == 2:

            def fail(stream: Any) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

            return real(path, fail, hint)
        written.append(path)
        return real(path, write, hint)

    monkeypatch.setattr(folder_module, "write_atomically", full)
    with pytest.raises(InputError, match=r"No space left on device.*What is there stays valid"):
        bc.study(pendulum(), OVER, 60, **asked)
    assert sorted((tmp_path / "s/runs").iterdir()) == sorted(written)
    monkeypatch.undo()
    assert bc.study(pendulum(), OVER, 60, **asked)["run"].tolist() == list(range(60))


@pytest.mark.parametrize("name", sorted(code_versions()))
def test_a_worker_with_other_code(name: str) -> None:
    """A worker from another commit is refused by the text of the package, although its version is the same."""
    other = {**code_versions(), name: "9.9.9"}
    found = compute_chunk(b"", ExpectedDigests(other, {}, {}, ""), [], 0, {})
    assert f"it has {name} {code_versions()[name] or 'none'} instead of 9.9.9" in found["error"]


def test_a_worker_with_other_code_stops_the_study(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bellcrank.studies.study.code_versions", lambda: {**code_versions(), "numpy": "0.1"})
    with pytest.raises(BellcrankError, match=r"a worker would compute different numbers: it has numpy"):
        bc.study(pendulum(), OVER, 10, to=tmp_path / "s", cluster=cluster, **ASKED)


def test_a_worker_with_a_gpu_takes_it(tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    run = bc.Simulator.run

    def noted(self: Any, *args: Any, target: str | None = None, **rest: Any) -> Any:
        asked.append(str(target))
        return run(self, *args, **rest)

    monkeypatch.setattr(bc.Simulator, "run", noted)
    over: dict[str, Any] = {"hinge.q": [0.1, 0.2]}
    how: dict[str, Any] = {"seconds": 0.1, "step": 0.01, "keep": "final", "cluster": cluster, "target": "auto"}
    for reason, place in (("no GPU", "cpu"), ("", "cuda")):
        monkeypatch.setattr("bellcrank.studies.run_batches.unavailable_reason", lambda reason=reason: reason)
        asked.clear()
        bc.study(pendulum(), over, to=tmp_path / place, **how)
        assert set(asked) == {place}


def test_study_without_workers_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no worker can be started, the study ends with a message."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(dask_engine, "NO_WORKER_SECONDS", 0.4)
    points: Any = SimpleNamespace(part=lambda first, last: None)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as nobody,
        distributed.Client(nobody, set_as_default=False) as client,
        pytest.raises(StudyError, match=r"no worker has been there for 0\.4 s"),
    ):
        list(dask_engine.computed_chunks(client, b"", ExpectedDigests({}, {}, {}, ""), points, [(0, 2), (2, 4)], True))


def test_two_at_once_on_one_folder(cluster: Any, tmp_path: Path) -> None:
    """Two studies cannot use one folder at once; a killed one leaves no lock.

    Each would write a manifest and files of its own size.
    """
    with StudyFolder(tmp_path / "s").locked(), pytest.raises(InputError, match="being worked on by another process"):
        bc.study(pendulum(), OVER, 4, to=tmp_path / "s", cluster=cluster, **ASKED)
    assert not (tmp_path / "s/study.json").exists()
    assert len(bc.study(pendulum(), OVER, 4, to=tmp_path / "s", cluster=cluster, **ASKED).table()) == 4


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[" * 100_000, "is not JSON"),
        ("9" * 5000, "is not JSON"),
        ("[1]", "is not a manifest"),
        ('{"sessions": "x", "wall": 0, "chunk": 3}', "is not a manifest"),
        ('{"sessions": 1, "wall": null, "chunk": 3}', "is not a manifest"),
        ('{"sessions": 1, "wall": 0.0, "chunk": [3]}', "is not a manifest"),
        ("\x00\xff", "is not JSON"),
    ],
)
def test_manifests_that_are_none(text: str, word: str, tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(text, "latin-1")
    with pytest.raises(ReadError, match=word) as caught:
        bc.study(pendulum(), OVER, 4, to=tmp_path, **ASKED)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("key", ["chunk", "sessions", "wall"])
@pytest.mark.parametrize("value", [None, True, -1, 1e400, "x", [], 10**30, 0.5])
def test_numbers_of_a_manifest_that_are_none(key: str, value: Any, tmp_path: Path) -> None:
    """Invalid numbers in a manifest are refused; files of no runs each once ended in an error of range()."""
    right = {"chunk": 1, "sessions": 1, "wall": 1.0, "name": "it", "runs": 4}
    StudyFolder(tmp_path).write_manifest(right)
    assert StudyFolder(tmp_path).manifest() == right
    (tmp_path / "study.json").write_text(json.dumps(right | {key: value}))
    if (key, value) == ("wall", 0.5):
        return
    with pytest.raises(bc.ReadError, match="is not a manifest of a study"):
        StudyFolder(tmp_path).manifest()


@pytest.mark.parametrize(
    "change",
    [{"runs": x} for x in (None, 0, -1, True, 0.5, "4", {}, 10**17, 1_000_001)] + [{"name": x} for x in (None, 3, [])],
)
def test_manifest_of_another_program_is_validated(change: dict[str, Any], tmp_path: Path) -> None:
    """A manifest sealed by another program is validated too, because the checksum detects damage but no intent.

    Such manifests once ended in a KeyError, or in a list of 1e17 files.
    """
    folder = StudyFolder(tmp_path)
    folder.write_manifest({"chunk": 1, "sessions": 1, "wall": 1.0, "name": "it", "runs": 4} | change)
    with pytest.raises(ReadError, match=r"is not a manifest of a study: its name is .* and its runs are"):
        folder.manifest()


def test_a_study_of_too_many_files_is_refused_before_it_begins(tmp_path: Path) -> None:
    with pytest.raises(bc.InputError, match=r"chunk is 1, .* at most 1,000,000. Take a chunk of 3 or more"):
        bc.study(pendulum(), OVER, 2_000_001, to=tmp_path / "it", **(ASKED | {"chunk": 1}))
    assert not any((tmp_path / "it").rglob("*.*"))


def test_neither_pipes_nor_links_are_waited_for(tmp_path: Path) -> None:
    for name, error in (("study.json", ReadError), (".lock", InputError)):
        there = tmp_path / name.strip(".")
        there.mkdir()
        os.mkfifo(there / name) if name == "study.json" else (there / name).symlink_to("/dev/zero")
        with pytest.raises(error):
            bc.study(pendulum(), OVER, 4, to=there, **ASKED)


def test_a_damaged_file_of_runs_is_named(cluster: Any, tmp_path: Path) -> None:
    done = bc.study(pendulum(), OVER, 4, to=tmp_path / "s", cluster=cluster, **ASKED)
    (file,) = (tmp_path / "s/runs").glob("*.parquet")
    whole = file.read_bytes()
    for data in (whole[:100], b"", whole[: len(whole) // 2] + b"\xff" * 8 + whole[len(whole) // 2 + 8 :]):
        file.write_bytes(data)
        with pytest.raises(ReadError, match=r"is damaged or not there .*computes it again"):
            done.table()
    again = bc.study(pendulum(), OVER, 4, to=tmp_path / "s", cluster=cluster, **ASKED)
    assert len(again.table()) == 4
