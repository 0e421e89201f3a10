"""Small record files that describe more than fits into memory are refused, and so are edited descriptions."""

from __future__ import annotations

import copy
import io
import json
import os
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import BellcrankError
from bellcrank.quoting import json_cells
from bellcrank.record import description

ROWS = 200_000_000


@pytest.fixture(scope="module")
def run() -> bc.Record:
    return bc.simulate(bc.system(bc.zoo.chain(2)), seconds=0.02)


def _description(run: bc.Record, **changed: Any) -> str:
    data = json.loads(description.describe(run)) | changed
    data.pop("seal")
    return json.dumps(data)


def _bomb_npz(run: bc.Record, path: Path) -> None:
    """Write zeros that compress a thousand times, in an archive that gives their size."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("record.json", _description(run, rows=ROWS))
        for name in run.columns:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(member, {"descr": "<f8", "fortran_order": False, "shape": (ROWS,)})
                for _ in range(40):
                    member.write(bytes(1 << 20))


def _bomb_header_npz(run: bc.Record, path: Path) -> None:
    """Write the header of an array without its data."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("record.json", _description(run, rows=10**13))
        for name in run.columns:
            archive.writestr(f"{name}.npy", header.getvalue())


def _bomb_parquet(run: bc.Record, path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    n = 20_000_000
    zeros = pa.array(np.zeros(n))
    schema = pa.schema(
        [pa.field(name, pa.float64(), nullable=False) for name in run.columns],
        metadata={b"bellcrank": _description(run, rows=n)},
    )
    pq.write_table(pa.Table.from_arrays([zeros] * len(run.columns), schema=schema), path, compression="zstd")


def _mcap(run: bc.Record, path: Path, rows: int, message: bytes, times: int) -> None:
    with open(path, "wb") as stream:
        out = pytest.importorskip("mcap.writer").Writer(stream, chunk_size=1 << 30)
        out.start(profile="", library="test")
        out.add_metadata("bellcrank", {"record": _description(run, rows=rows)})
        schema = out.register_schema("x", "jsonschema", b"{}")
        channel = out.register_channel("/q", "json", schema)
        for k in range(times):
            out.add_message(channel, k, message, k, sequence=k)
        out.finish()


def _bomb_metadata_mcap(run: bc.Record, path: Path) -> None:
    _mcap(run, path, ROWS, b"{}", 1)


def _bomb_chunk_mcap(run: bc.Record, path: Path) -> None:
    _mcap(run, path, len(run), b" " * 1_000_000, 600)


BOMBS: dict[str, Callable[[bc.Record, Path], None]] = {
    "zeros.npz": _bomb_npz,
    "header.npz": _bomb_header_npz,
    "zeros.parquet": _bomb_parquet,
    "metadata.mcap": _bomb_metadata_mcap,
    "chunk.mcap": _bomb_chunk_mcap,
}
LOAD = """
import resource, sys
import bellcrank as bc
from bellcrank.record.formats import format_of
format_of("." + sys.argv[1].rpartition(".")[2])
if sys.argv[1].endswith("parquet"):
    import pyarrow.parquet
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (300 << 20),) * 2)
try:
    bc.load_record(sys.argv[1])
except bc.ReadError as error:
    print(error)
"""


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_describes_too_much_is_refused_before_it_is_decoded(
    name: str, run: bc.Record, tmp_path: Path
) -> None:
    """A small file that describes too much is refused before it is decoded, in a process with a limit of 300 MiB."""
    path = tmp_path / name
    BOMBS[name](run, path)
    assert path.stat().st_size < 8_000_000
    done = subprocess.run([sys.executable, "-c", LOAD, path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "are decoded" in done.stdout or "truncated" in done.stdout, done.stdout
    assert "Memory" not in done.stdout


def test_the_limit_can_be_raised_and_lowered(run: bc.Record, tmp_path: Path) -> None:
    path = run.save(tmp_path / "x.npz")
    with pytest.raises(bc.ReadError, match=r"at most 100 bytes are decoded.*max_bytes="):
        bc.load_record(path, max_bytes=100)
    assert len(bc.load_record(path, max_bytes=10**9)) == len(run)
    for wrong in (0, -1, True, 1.5, "1 GB"):
        with pytest.raises(bc.InputError, match="max_bytes is"):
            bc.load_record(path, max_bytes=wrong)  # type: ignore[arg-type]


HOSTILE: list[Any] = [
    *(None, True, False, 0, -1, 1, 3, 1e308, float("inf"), float("nan"), 2**63, 10**400, "", "x", "ground", "nan"),
    *("\x00", "\ud800", "a" * 5000, [], [[]], [None], [1, 2], {}, {"a": 1}, {"free": ["parameter", "x", 1.0, ""]}),
    *({"free": ["+"]}, {"free": ["sin", 1, 2, 3]}, {"free": [[], 1]}, {"free": ["parameter", "", 0, ""]}),
    *([0.0] * 3, [[0] * 3] * 3, {"": {}}),
]


def _places(x: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the paths in nested lists and dictionaries: of a long list the first six elements."""
    inside = list(x) if isinstance(x, dict) else range(min(len(x), 6)) if isinstance(x, list) else ()
    for key in inside:
        yield (*at, key)
        yield from _places(x[key], (*at, key))


def _edited(data: Any, rng: random.Random) -> Any:
    """Return a copy in which one element is replaced, removed or added."""
    data = copy.deepcopy(data)
    *above, last = rng.choice(list(_places(data)))
    inner = data
    for key in above:
        inner = inner[key]
    value, how = rng.choice(HOSTILE), rng.choice("rrrda")
    if how == "r":
        inner[last] = value
    elif how == "d":
        del inner[last]
    elif isinstance(inner, dict):
        inner["odd"] = value
    else:
        inner.append(value)
    return data


def _use(found: bc.Record, folder: Path) -> None:
    """Use a record as a user does after reading it."""
    str(found), repr(found), repr(found.stops), found.names, found.x, str(found.mechanism)
    for act in (
        lambda: found["energy"],
        lambda: found.a,
        lambda: found.loads(),
        lambda: found.between(0.0, 0.01),
        lambda: found.at(0.01),
        lambda: bc.load_record(found.save(folder / "again.npz")),
    ):
        with suppress(BellcrankError):
            act()


def _hostile(run: bc.Record, folder: Path, seed: int, rounds: int) -> int:
    """Return how many edited descriptions were refused; every exception must be an error of this package."""
    rng, refused = random.Random(seed), 0
    lines = run.save(folder / "x.csv").read_text().splitlines(keepends=True)
    at = max(k for k, line in enumerate(lines) if line.startswith("#"))
    plain = json.loads(_description(run))
    for _ in range(rounds):
        lines[at] = f"# {json_cells(json.dumps(_edited(plain, rng)))}\n"
        path = folder / "y.csv"
        path.write_text("".join(lines), encoding="utf-8", errors="surrogatepass")
        try:
            with pytest.warns(UserWarning, match="has no seal"):
                _use(bc.load_record(path), folder)
        except (BellcrankError, pytest.fail.Exception):  # refused before the seal was checked
            refused += 1
    return refused


def test_edited_descriptions_are_refused_or_make_a_sound_record(run: bc.Record, tmp_path: Path) -> None:
    assert 20 < _hostile(run, tmp_path, 0, 100) < 100


@pytest.mark.long
def test_edited_descriptions_by_the_thousand(run: bc.Record, tmp_path: Path) -> None:
    _hostile(run, tmp_path, 1, 3000)


READERS = {
    "record": "bc.load_record(path)",
    "table": "from bellcrank.record.formats import read_parquet_table; read_parquet_table(Path(path), 'study')",
    "points": "from bellcrank.record.table_files import read_table; read_table(Path(path))",
}
THREADS = """
import os, sys
from pathlib import Path
import bellcrank as bc
import pyarrow.parquet
path, before = sys.argv[1], len(os.listdir("/proc/self/task"))
{reads}
print(len(os.listdir("/proc/self/task")) - before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
@pytest.mark.parametrize("reader", READERS)
def test_reading_parquet_starts_no_thread(run: bc.Record, tmp_path: Path, reader: str) -> None:
    """Reading Parquet starts no thread.

    A thread that releases a buffer of Python while the interpreter ends sometimes aborts it.
    """
    pytest.importorskip("pyarrow")
    path = run.save(tmp_path / "r.parquet")
    program = THREADS.format(reads=READERS[reader])
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("0", "")


@pytest.mark.long
def test_reading_parquet_leaves_no_thread_behind_a_hundred_times(run: bc.Record, tmp_path: Path) -> None:
    """Reading Parquet a hundred times leaves no thread behind.

    Arrow's threads aborted 28 of 100 interpreters at exit, and 10 of 100 without read-ahead.
    """
    _ends_well(run, tmp_path, 100)


def _ends_well(run: bc.Record, folder: Path, times: int) -> None:
    pytest.importorskip("pyarrow")
    path = run.save(folder / "r.parquet")
    program = f"import bellcrank as bc; bc.load_record({str(path)!r})"
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range((os.cpu_count() or 1) + 1)]
    try:  # on a busy computer, where threads of a process wait for each other
        codes = [subprocess.run([sys.executable, "-c", program], check=False).returncode for _ in range(times)]
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert codes == [0] * times
