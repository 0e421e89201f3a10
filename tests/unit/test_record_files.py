"""Files of a record: all four formats give back the same bits; what cannot be written or read is explained."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import resource
import stat
import sys
import tempfile
import warnings
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank import files as whole
from bellcrank.model import Mechanism
from bellcrank.quoting import name_problem
from bellcrank.record import Column, Record, Stop, description
from bellcrank.record import description as parts
from bellcrank.record.formats import SUFFIXES
from runs import rk4, same
from trees import few, random_tree, trees

pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
pytest.importorskip("mcap", reason="mcap is not installed")

KINDS = sorted(SUFFIXES)


@pytest.fixture(scope="module")
def run() -> Record:
    return rk4(bc.zoo.excavator(), [0.3, 0.5, -0.9, -0.4], [0.6, 0.0, 0.0, 0.0], 0.1, 1e-3)


@pytest.fixture(scope="module")
def batch() -> Record:
    start = np.random.default_rng(0).uniform(-1, 1, (2, 3, 4))
    return rk4(bc.zoo.excavator(), start, np.zeros((2, 3, 4)), 0.05, 1e-2)


# -- there and back


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(run: Record, batch: Record, tmp_path: Path, kind: str) -> None:
    for r in (run, batch, run.including("bucket.z", "energy")):
        path = r.save(tmp_path / f"run{kind}")
        found = bc.load_record(path)
        same(r, found)
        np.testing.assert_array_equal(found["bucket.z"], r["bucket.z"])  # the mechanism came along
    assert os.listdir(tmp_path) == [f"run{kind}"]  # nothing is left beside


NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=64)
LETTERS = st.characters(exclude_categories=["Cs"])
NAMES = st.text(LETTERS, min_size=1, max_size=8).filter(
    lambda name: name not in ("t", "run") and not name_problem(name)
)


@st.composite
def records(draw: Any) -> Record:
    names = ["t", *draw(st.lists(NAMES, max_size=3, unique=True))]
    shape = (*draw(st.sampled_from([(), (1,), (3,), (2, 2)])), draw(st.integers(0, 4)))
    size = int(np.prod(shape))
    columns = {}
    for name in names:
        values = draw(st.lists(NUMBERS, min_size=size, max_size=size))
        columns[name] = Column(name, draw(st.sampled_from(["rad", "m/s^2", "1", "°", ""])), np.reshape(values, shape))
    runs = int(np.prod(shape[:-1], dtype=int))
    stops = [Stop(draw(st.sampled_from(["end", "not finite"])), draw(NUMBERS), draw(st.text(max_size=5)))] * runs
    provenance = draw(st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), NUMBERS, st.text(max_size=9))))
    return Record(columns, provenance=provenance, stops=stops, states=names[-1:])


@pytest.mark.parametrize("kind", KINDS)
@few(40)
@given(run=records())
def test_any_numbers_and_names(kind: str, run: Record) -> None:
    with tempfile.TemporaryDirectory() as folder:
        same(run, bc.load_record(run.save(Path(folder) / f"x{kind}")))


def test_times_that_are_as_far_apart_as_numbers_can_be(tmp_path: Path) -> None:
    """Found by the above: their difference is no number."""
    run = Record({"t": Column("t", "s", np.array([-1e308, 0.0, 1e308]))}, stops=[Stop("end", 0.0, "")])
    assert bc.load_record(run.save(tmp_path / "x.mcap"))["t"].tolist() == [-1e308, 0.0, 1e308]


@pytest.mark.parametrize("time", [1e300, -1.7976931348623157e308])
def test_stop_times_of_any_size_are_kept(time: float, tmp_path: Path) -> None:
    """Files were written, but not read again, with stop times from 1e300 on."""
    run = Record({"t": Column("t", "s", np.zeros(0))}, stops=[Stop("end", time, "")])
    assert bc.load_record(run.save(tmp_path / "x.mcap")).stops[0].time == time


@few(40)
@given(m=trees(armature=True, passive=True, coupled=True))
def test_mechanisms_come_back_as_they_were(m: Mechanism) -> None:
    back = parts.read_mechanism(json.loads(json.dumps(parts.to_plain(m), allow_nan=False)))
    assert back.fingerprint == m.fingerprint
    assert (back.name, back.ground, back.gravity) == (m.name, m.ground, m.gravity)
    assert back.bodies == m.bodies
    assert back.joints == m.joints
    assert dict(back.frames) == dict(m.frames)
    assert back.report == m.report


@pytest.mark.parametrize("name", bc.zoo.names())
def test_zoo_mechanisms_come_back(name: str) -> None:
    m = bc.zoo.load(name if name not in ("chain", "tree", "random_tree") else f"{name}:5")
    back = parts.read_mechanism(json.loads(json.dumps(parts.to_plain(m))))
    assert back.fingerprint == m.fingerprint
    assert str(back) == str(m)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bodies": 3}, "mechanism.bodies: expected list, found 3"),
        ({"gravity": [0.0, 1.0]}, "mechanism.gravity: expected 3 values, found 2"),
        ({"gravity": [0.0, 1.0, "x"]}, r"mechanism.gravity\[2\]: expected a number, found 'x'"),
        ({"gravity": [0.0, 1.0, True]}, r"mechanism.gravity\[2\]: expected a number, found True"),
        ({"name": None}, "mechanism.name: expected str, found None"),
        ({"wings": []}, 'no field "wings".*A newer bellcrank'),
    ],
)
def test_a_mechanism_that_was_tampered_with(change: dict[str, Any], message: str) -> None:
    data = parts.to_plain(bc.zoo.planar3r()) | change
    with pytest.raises(bc.ReadError, match=message):
        parts.read_mechanism(data)
    del data["joints"]
    with pytest.raises(bc.ReadError):
        parts.read_mechanism(data)


# -- what others see


def test_parquet_for_others(batch: Record, tmp_path: Path) -> None:
    path = batch.save(tmp_path / "run.parquet")
    table = pq.read_table(path)
    assert table.column_names[:3] == ["run", "t", "cab.q"]
    assert table.num_rows == 6 * 6
    assert table.schema.field("boom.v").metadata[b"unit"] == b"rad/s"
    np.testing.assert_array_equal(table["run"].to_numpy(), np.repeat(range(6), 6))
    np.testing.assert_array_equal(table["boom.q"].to_numpy().reshape(2, 3, 6), batch["boom.q"])
    column = pq.ParquetFile(path).metadata.row_group(0).column(2)
    assert column.compression == "ZSTD"
    assert "BYTE_STREAM_SPLIT" in column.encodings


def test_csv_for_others(run: Record, tmp_path: Path) -> None:
    lines = run.save(tmp_path / "run.csv").read_text("utf-8").splitlines()
    comments = [line for line in lines if line.startswith("#")]
    assert comments[0] == "# bellcrank record 1"
    assert "# integrator: rk4" in comments
    assert lines[len(comments)].startswith("t [s],cab.q [rad],boom.q [rad]")
    table = np.loadtxt(tmp_path / "run.csv", delimiter=",", skiprows=len(comments) + 1)
    np.testing.assert_array_equal(table[:, 2], run["boom.q"])


def test_npz_for_others(batch: Record, tmp_path: Path) -> None:
    with np.load(batch.save(tmp_path / "run.npz")) as arrays:
        np.testing.assert_array_equal(arrays["boom.q"], batch["boom.q"])


def test_mcap_for_others(batch: Record, tmp_path: Path) -> None:
    from mcap.reader import make_reader

    with open(batch.save(tmp_path / "run.mcap"), "rb") as stream:
        messages = list(make_reader(stream).iter_messages(topics=["/4/q"]))
    assert len(messages) == 6
    schema, channel, message = messages[2]
    assert (channel.message_encoding, schema.encoding, message.log_time) == ("json", "jsonschema", 20_000_000)
    assert json.loads(message.data)["boom"] == batch["boom.q"][1, 1, 2]
    described = json.loads(schema.data)["properties"]["boom"]
    assert described == {"type": "number", "description": "boom.q in rad"}


# -- saving that fails


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk(run: Record, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    path = tmp_path / f"run{kind}"
    path.write_bytes(b"old")
    with monkeypatch.context() as patch:
        full = os.open("/dev/full", os.O_WRONLY)
        patch.setattr(whole, "open_handle", lambda handle: (os.close(handle), os.fdopen(full, "wb"))[1])
        with pytest.raises(bc.InputError, match=r"cannot be written: No space left on device.*still in memory"):
            run.save(path)
    assert path.read_bytes() == b"old"
    same(run, bc.load_record(run.save(path)))  # the record survived


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_may_not_grow(batch: Record, tmp_path: Path, kind: str) -> None:
    """A real write that stops half way."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, hard))
    try:
        with pytest.raises(bc.InputError, match=r"cannot be written: File too large.*still in memory"):
            batch.save(tmp_path / f"run{kind}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path) == []


def test_no_permission(run: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(handle: int) -> IO[bytes]:
        os.close(handle)
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(whole, "open_handle", forbidden)
        with pytest.raises(bc.InputError, match=r"Permission denied.*still in memory: call save\("):
            run.save(tmp_path / "run.csv")
    if os.geteuid() != 0:  # to root everything is permitted
        (tmp_path / "locked").mkdir(mode=stat.S_IREAD | stat.S_IEXEC)
        with pytest.raises(bc.InputError, match="Permission denied"):
            run.save(tmp_path / "locked" / "run.csv")


def test_bad_places(run: Record, tmp_path: Path) -> None:
    with pytest.raises(bc.InputError, match=r'there is no directory ".*nowhere".*still in memory'):
        run.save(tmp_path / "nowhere" / "run.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(bc.InputError, match=r"it is a directory.*still in memory"):
        run.save(tmp_path / "folder.csv")
    for name in ("run", "run.xls"):
        with pytest.raises(bc.InputError, match=r"saved as .parquet, .csv, .npz, .mcap; got .*still in memory"):
            run.save(tmp_path / name)
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    run.save(tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    same(run, bc.load_record(tmp_path / "real.csv"))


@pytest.mark.parametrize(("kind", "package"), [(".parquet", "pyarrow"), (".mcap", "mcap.writer")])
def test_no_package(run: Record, tmp_path: Path, kind: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(bc.InputError, match=r'pip install "bellcrank\[record\]"'):
        run.save(tmp_path / f"run{kind}")
    assert os.listdir(tmp_path) == []


# -- loading that fails


def test_not_there(tmp_path: Path) -> None:
    with pytest.raises(bc.ReadError, match="cannot be read: No such file"):
        bc.load_record(tmp_path / "none.csv")
    with pytest.raises(bc.ReadError, match=r'records end in .parquet, .csv, .npz, .mcap; got ".xls"'):
        bc.load_record(tmp_path / "none.xls")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(bc.ReadError, match="cannot be read: Is a directory"):
        bc.load_record(tmp_path / "folder.npz")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("content", [b"", b"hello", b"\x00" * 100, bytes(range(256)) * 20, b"t,x\n1,2\n"])
def test_other_files_are_rejected(tmp_path: Path, kind: str, content: bytes) -> None:
    path = tmp_path / f"x{kind}"
    path.write_bytes(content)
    with pytest.raises(bc.ReadError, match=r"x\.\w+: expected an? \w+ file of a bellcrank record, found"):
        bc.load_record(path)


@pytest.mark.parametrize("kind", KINDS)
def test_truncated_anywhere(batch: Record, tmp_path: Path, kind: str) -> None:
    whole = batch.save(tmp_path / f"x{kind}").read_bytes()
    path = tmp_path / f"y{kind}"
    for cut in {*range(0, len(whole), max(1, len(whole) // 60)), len(whole) - 1}:
        path.write_bytes(whole[:cut])
        with pytest.raises(bc.ReadError, match=r"y\.\w+: expected an? \w+ file of a bellcrank record"):
            bc.load_record(path)


def damaged(run: Record, folder: Path, kind: str, rounds: int, seed: int) -> int:
    """Flips bits and overwrites bytes anywhere: what is read then is the same record, or an error that names the file.
    How often it was an error.
    """
    good = run.save(folder / f"x{kind}").read_bytes()
    path, rng, errors = folder / f"y{kind}", np.random.default_rng(seed), 0
    for k in range(rounds):
        bad = bytearray(good)
        for at in rng.integers(0, len(bad), 1 if k % 2 else 8):
            bad[at] = bad[at] ^ 1 << rng.integers(0, 8) if k % 2 else rng.integers(0, 256)
        path.write_bytes(bad)
        found: Any = None
        with suppress(UserWarning):  # the word "seal" itself was hit: then it says that there is none
            try:
                found = bc.load_record(path)
            except bc.ReadError as error:
                said = str(error)
                errors += str(path) in said
                assert "cannot be read" not in said  # it can; it is damaged
                assert "\n" not in said
        if found is not None:
            same(run, found)
    return errors


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_anywhere(run: Record, tmp_path: Path, kind: str) -> None:
    assert damaged(run, tmp_path, kind, 120, 0) > 60


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_anywhere_for_long(run: Record, batch: Record, tmp_path: Path, kind: str) -> None:
    assert damaged(run, tmp_path, kind, 5000, 1) + damaged(batch, tmp_path, kind, 5000, 2) > 5000


@pytest.mark.parametrize("kind", KINDS)
def test_the_seal_is_over_every_number_and_every_name(run: Record, tmp_path: Path, kind: str) -> None:
    """A changed file is detected although the checksums of its format are right, because the file was written again."""
    other = Record({name: run.column(name) for name in run.columns}, provenance=run.provenance)
    values = other["boom.q"].copy()
    values[7] = np.nextafter(values[7], 1.0)
    columns = {name: other.column(name) for name in other.columns}
    changed = Record(columns | {"boom.q": Column("boom.q", "rad", values)}, provenance=run.provenance)
    renamed = Record(columns, provenance={**run.provenance, "step": 1.0})
    told = description.describe(other)
    for wrong in (changed, renamed):
        text = json.dumps(json.loads(description.describe(wrong)) | {"seal": json.loads(told)["seal"]})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(description, "describe", lambda _, text=text: text)
            path = wrong.save(tmp_path / f"x{kind}")
        with pytest.raises(bc.ReadError, match=r"x\.\w+: .*seal made.*damaged or edited\. Use another copy"):
            bc.load_record(path)


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_record_has_a_stop_for_every_run(
    run: Record, batch: Record, tmp_path: Path, kind: str, sealed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file without stops, of another program or of a record built from arrays, also gives a stop for every run."""
    describe = description.describe

    def without_stops(r: Record) -> str:
        told = json.loads(describe(r)) | {"stops": []}
        del told["seal"]
        return json.dumps(told)

    late = batch.t.copy()
    late[0, 0, 3:] = np.nan  # this run ended early
    early = Record({"t": Column("t", "s", late)})
    none = Record({"t": Column("t", "s", np.zeros((0,)))})
    for r in (run, batch, early, none):
        bare = Record({name: r.column(name) for name in r.columns})
        with monkeypatch.context() as patch:
            if not sealed:
                patch.setattr(description, "describe", without_stops)
            path = (bare if sealed else r).save(tmp_path / f"x{kind}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = bc.load_record(path)
        assert found.sealed is sealed
        assert len(found.stops) == found.runs
        times = found.t.reshape(found.runs, -1)
        for stop, t in zip(found.stops, times, strict=True):
            assert (stop.reason, "does not state" in stop.message) == ("unknown", True)
            assert np.array_equal(stop.time, t[np.isfinite(t)][-1] if np.isfinite(t).any() else np.nan, equal_nan=True)
        assert repr(bc.load_record(found.save(tmp_path / f"y{kind}")).stops) == repr(found.stops)  # a time may be NaN


def test_stops_of_excessive_runs_raise(run: Record, tmp_path: Path) -> None:
    told = json.loads(description.describe(run)) | {"batch": [2**40], "rows": 0, "stops": []}
    with pytest.raises(bc.ReadError, match="0 stop reasons for 1099511627776 runs; expected one for each"):
        description.parse_description(json.dumps(told))


def test_a_file_without_a_seal_is_read_with_a_note(run: Record, tmp_path: Path) -> None:
    path = run.save(tmp_path / "x.csv")
    assert bc.load_record(path).sealed is True
    path.write_text(re.sub(r', "seal": "\w+"', "", path.read_text()))
    with pytest.warns(UserWarning, match=r"x\.csv has no seal.*Saving it again seals it"):
        found = bc.load_record(path)
    same(run, found)
    assert found.sealed is False


def test_files_of_others(tmp_path: Path) -> None:
    import pyarrow as pa
    from mcap.writer import Writer

    pq.write_table(pa.table({"speed": [1.0], "time": [2.0]}), tmp_path / "x.parquet")
    np.savez(tmp_path / "x.npz", a=np.zeros(3))
    with open(tmp_path / "x.mcap", "wb") as stream:
        writer = Writer(stream)
        writer.start()
        writer.register_channel("/imu", "json", writer.register_schema("imu", "jsonschema", b"{}"))
        writer.finish()
    for kind, found in ((".parquet", "a Parquet file of another program, with the columns speed, time"),
                        (".npz", "an archive of another program, with a.npy"),
                        (".mcap", "log of another program, with")):  # fmt: skip
        with pytest.raises(bc.ReadError, match=found):
            bc.load_record(tmp_path / f"x{kind}")


def test_a_newer_format(run: Record, tmp_path: Path) -> None:
    path = run.save(tmp_path / "x.csv")
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(bc.ReadError, match="version 2 of the format and this bellcrank reads 1; update"):
        bc.load_record(path)


def test_files_never_execute_code(run: Record, tmp_path: Path) -> None:
    """An array of objects, which would be a pickle, is rejected by numpy."""
    path = run.save(tmp_path / "x.npz")
    bad, hostile = tmp_path / "bad.npz", io.BytesIO()
    np.lib.format.write_array(hostile, np.array([print] * 101, dtype=object), allow_pickle=True)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(bad, "w") as new:
        for i, name in enumerate(old.namelist()):
            new.writestr(name, hostile.getvalue() if i == 1 else old.read(name))
    with pytest.raises(bc.ReadError, match="is object of the shape"):
        bc.load_record(bad)


def test_edited_csv(run: Record, tmp_path: Path) -> None:
    path = run.save(tmp_path / "x.csv")
    lines = path.read_text().splitlines(keepends=True)
    for text, message in (
        ("".join(lines[:-1]), "has 100 rows; expected 101"),
        ("".join([*lines[:-1], "1,2\n"]), "row 100 has 2 values; expected 9"),
        ("".join([*lines[:-1], lines[-1].replace(",", ",x", 1)]), "could not convert string to float"),
    ):
        path.write_text(text)
        with pytest.raises(bc.ReadError, match=message):
            bc.load_record(path)


def test_infinite_limits_and_whole_numbers() -> None:
    m = random_tree(3, ["revolute", "prismatic"])
    odd = replace(m.joints[0], damping=2, limits=replace(m.joints[0].limits, upper=1.5))  # an int, and -inf
    m = replace(m, joints=(odd, *m.joints[1:]))
    assert parts.read_mechanism(json.loads(json.dumps(parts.to_plain(m)))).fingerprint == m.fingerprint
