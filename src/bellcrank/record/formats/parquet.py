"""Parquet files of records: one column each, byte-stream-split and zstd; batches in long form.

The schema has the units (`unit` of each field) and the description of the record (`bellcrank`). A batch has a first
column `run`, the number of the run; the rows of one run follow those of another.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import numpy as np

from bellcrank.errors import ReadError
from bellcrank.lazy_import import optional_import
from bellcrank.record import description
from bellcrank.record.formats import check_decoded_size, open_parquet, read_columns

if TYPE_CHECKING:
    from bellcrank.record.record import Record

WHAT, MAGIC = "a Parquet file of a bellcrank record", b"PAR1"
KEY = b"bellcrank"


def write(run: Record, stream: IO[bytes]) -> None:
    """Write `run` to `stream`."""
    pa, pq = (optional_import(name, "record", "saving Parquet") for name in ("pyarrow", "pyarrow.parquet"))
    fields, arrays = [], []
    if run.batch:
        fields.append(pa.field("run", pa.int32(), nullable=False))
        arrays.append(pa.array(description.run_numbers(run.t.shape)))
    for name in run.columns:
        fields.append(pa.field(name, pa.float64(), nullable=False, metadata={"unit": run.column(name).unit}))
        arrays.append(pa.array(np.ravel(run[name])))
    schema = pa.schema(fields, metadata={KEY: description.describe(run)})
    pq.write_table(
        pa.Table.from_arrays(arrays, schema=schema),
        stream,
        compression="zstd",
        use_dictionary=False,
        use_byte_stream_split=list(run.columns),
        write_page_checksum=True,
    )


def read(stream: IO[bytes]) -> Record:
    """Read a record from `stream`."""
    file = open_parquet(stream, "record")
    text = (file.schema_arrow.metadata or {}).get(KEY)
    names = file.schema_arrow.names
    if text is None:
        raise ReadError(
            f'its schema has no "{KEY.decode()}": it is a Parquet file of another program, with the columns '
            f"{', '.join(names[:8])}."
        )
    described = description.parse_description(text)
    missing = [name for name in described.names if name not in names]
    if missing:
        raise ReadError(f"the columns {missing[:8]} are described but missing.")
    if file.metadata.num_rows != described.size:
        raise ReadError(f"it has {file.metadata.num_rows} rows and describes {described.size}. The file is damaged.")
    check_decoded_size(stream, described.bytes, "its description")
    table = read_columns(file)
    return described.record([table.column(name).to_numpy() for name in described.names])
