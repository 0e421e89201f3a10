"""NPZ: arrays by name, in the shape (*batch, rows), for `numpy.load`; and `record.json`, the description."""

from __future__ import annotations

import zipfile
from typing import IO, TYPE_CHECKING

import numpy as np

from bellcrank.errors import ReadError
from bellcrank.quoting import member
from bellcrank.record import meta

if TYPE_CHECKING:
    from bellcrank.record.record import Record

WHAT, MAGIC = "an NPZ file of a bellcrank record", b"PK"
ABOUT = "record.json"


def write(run: Record, stream: IO[bytes]) -> None:
    # Not numpy.savez: there a column may not be called "file".
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(ABOUT, meta.written(run))
        for name in run.columns:
            with archive.open(f"{member(name)}.npy", "w", force_zip64=True) as array:
                np.lib.format.write_array(array, np.ascontiguousarray(run[name]), allow_pickle=False)


def read(stream: IO[bytes]) -> Record:
    with zipfile.ZipFile(stream) as archive:
        members = archive.namelist()
        if ABOUT not in members:
            raise ReadError(f"it has no {ABOUT}: it is another's archive, with {', '.join(members[:8])}.")
        found = meta.read(archive.read(ABOUT))
        arrays = [i for i in archive.infolist() if i.filename != ABOUT]  # in the order of the columns
        if len(arrays) != len(found.names):
            raise ReadError(f"it has {len(arrays)} arrays and describes {len(found.names)}.")
        columns = []
        for info in arrays:
            with archive.open(info) as array:
                columns.append(np.lib.format.read_array(array, allow_pickle=False))
        return found.record(columns)
