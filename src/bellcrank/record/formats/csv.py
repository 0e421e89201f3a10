"""CSV files of records: comment lines (#) with the provenance, a header with units, and the rows.

Numbers are written such that reading restores the same bits. A batch has a first column `run`. Spreadsheets evaluate
text that begins like a formula, so such names are prefixed by an apostrophe; the description has the original names.
"""

from __future__ import annotations

import csv
import io
from typing import IO, TYPE_CHECKING

import numpy as np

from bellcrank.errors import ReadError
from bellcrank.quoting import cell, cells, json_cells, single_line
from bellcrank.record import description
from bellcrank.record.evaluation import value_text

if TYPE_CHECKING:
    from bellcrank.record.record import Record

WHAT = "a CSV file of a bellcrank record"
FIRST_LINE = f"# {description.FORMAT} {description.VERSION}"
MAGIC = FIRST_LINE.encode()


class EncodedText:
    """Text stream without buffer: closing a TextIOWrapper would write again to a full disk."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write `text` in UTF-8."""
        return self.stream.write(text.encode())


def write(run: Record, stream: IO[bytes]) -> None:
    """Write `run` to `stream`."""
    text = EncodedText(stream)
    notes = [cells(single_line(f"{key}: {value_text(value)}")) for key, value in run.provenance.items()]
    # The last comment is the complete description; the others are for people.
    comments = [FIRST_LINE, *(f"# {note}" for note in notes), f"# {json_cells(description.describe(run))}"]
    for comment in comments:
        text.write(f"{comment}\n")
    out = csv.writer(text, lineterminator="\n")
    lead = ["run"] if run.batch else []
    out.writerow([*lead, *(cell(f"{name} [{run.column(name).unit}]") for name in run.columns)])
    columns = [description.run_numbers(run.t.shape).tolist()] if run.batch else []
    out.writerows(zip(*columns, *(np.ravel(run[name]).tolist() for name in run.columns), strict=True))


def read(stream: IO[bytes]) -> Record:
    """Read a record from `stream`."""
    text = io.StringIO(stream.read().decode(), newline="")
    comment, line = "", text.readline()
    while line.startswith("#"):
        comment, line = line, text.readline()
    described = description.parse_description(comment[1:])
    lead = len(described.shape) > 1
    body = line + text.read()
    if not body.endswith("\n"):
        raise ReadError("the last line is cut off: the file is truncated.")
    rows = list(csv.reader(io.StringIO(body, newline="")))[1:]
    row_count = described.size
    if len(rows) != row_count:
        raise ReadError(f"it has {len(rows)} rows; expected {row_count}. It is truncated or was edited.")
    width = lead + len(described.names)
    for i, row in enumerate(rows):
        if len(row) != width:
            raise ReadError(f"row {i} has {len(row)} values; expected {width}.")
    values = np.array(rows, dtype=object).reshape(row_count, width)[:, lead:].astype(np.float64)
    return described.record(list(values.T))
