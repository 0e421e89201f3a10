"""NPZ files of records: arrays by name, of shape (*batch, rows), for `numpy.load`, and the description in JSON."""

from __future__ import annotations

import math
import zipfile
from typing import IO, TYPE_CHECKING

import numpy as np

from bellcrank.errors import ReadError
from bellcrank.model.parts import Array
from bellcrank.quoting import member
from bellcrank.record import description
from bellcrank.record.formats import check_decoded_size

if TYPE_CHECKING:
    from bellcrank.record.record import Record

WHAT, MAGIC = "an NPZ file of a bellcrank record", b"PK"
DESCRIPTION_MEMBER = "record.json"


def write(run: Record, stream: IO[bytes]) -> None:
    """Write `run` to `stream`."""
    # Not numpy.savez, which rejects a column named "file".
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(DESCRIPTION_MEMBER, description.describe(run))
        for name in run.columns:
            with archive.open(f"{member(name)}.npy", "w", force_zip64=True) as array:
                np.lib.format.write_array(array, np.ascontiguousarray(run[name]), allow_pickle=False)


def read(stream: IO[bytes]) -> Record:
    """Read a record from `stream`."""
    with zipfile.ZipFile(stream) as archive:
        members = archive.namelist()
        if DESCRIPTION_MEMBER not in members:
            raise ReadError(
                f"it has no {DESCRIPTION_MEMBER}: it is an archive of another program, with {', '.join(members[:8])}."
            )
        check_decoded_size(stream, sum(info.file_size for info in archive.infolist()), "its directory")
        described = description.parse_description(archive.read(DESCRIPTION_MEMBER))
        arrays = [i for i in archive.infolist() if i.filename != DESCRIPTION_MEMBER]  # in the order of the columns
        if len(arrays) != len(described.names):
            raise ReadError(f"it has {len(arrays)} arrays and describes {len(described.names)}.")
        return described.record([_array(archive, info, described.shape) for info in arrays])


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, shape: tuple[int, ...]) -> Array:
    """Read an array whose size and header must agree with the shape in the description."""
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        declared, _, kind = header(member)
        if declared != shape or kind != np.dtype("<f8"):
            raise ReadError(f"{info.filename} is {kind} of the shape {declared}; expected <f8 of {shape}.")
    wanted = 8 * math.prod(shape)
    if info.file_size < wanted:
        raise ReadError(f"{info.filename} has {info.file_size} bytes; expected {wanted}. The file is truncated.")
    with archive.open(info) as member:
        array: Array = np.lib.format.read_array(member, allow_pickle=False)
        return array
