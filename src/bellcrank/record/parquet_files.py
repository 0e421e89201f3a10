"""Reading of Parquet files with checked sizes and without background threads."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from bellcrank.lazy_import import optional_import
from bellcrank.record.decoding_limits import check_decoded_size, decoding_limit


def open_parquet(stream: IO[bytes], group: str) -> Any:
    """Return a pyarrow ParquetFile whose declared size is within the limits; read it by `read_columns`.

    A thread of Arrow may release the last reference to a Python buffer after the reader has returned. If the
    interpreter exits meanwhile, this aborts the process. So nothing is prefetched (`pre_buffer`).

    Parameters
    ----------
    stream
        The open file.
    group
        Optional dependency of this package that includes pyarrow, for the message if it is missing.
    """
    parquet = optional_import("pyarrow.parquet", group, "reading Parquet")
    file = parquet.ParquetFile(stream, pre_buffer=False, page_checksum_verification=True)
    about = file.metadata
    declared = sum(about.row_group(k).total_byte_size for k in range(about.num_row_groups))
    check_decoded_size(stream, max(declared, 8 * about.num_rows * about.num_columns), "its footer")
    return file


def read_columns(file: Any) -> Any:
    """Return all columns of the ParquetFile `file` as a pyarrow Table, decoded in this thread (see `open_parquet`)."""
    return file.read(use_threads=False)


def read_parquet_table(path: Path, group: str, max_bytes: int | None = None) -> Any:
    """Return the columns of the file `path` as a pyarrow Table of at most `max_bytes`; `group` as in `open_parquet`."""
    with decoding_limit(max_bytes), open(path, "rb") as stream:
        return read_columns(open_parquet(stream, group))
