"""bc.read_matrix: a dense matrix from a file of a finite-element program."""

from __future__ import annotations

import os
from pathlib import Path

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import ReadError
from bellcrank.files import check_last_line, read_bytes, report_damaged
from bellcrank.structures.mtx_files import Array, abaqus_matrix, matrix_market
from bellcrank.structures.nastran_op4 import binary_op4, op4


@explain_argument_errors
def read_matrix(path: str | os.PathLike[str], name: str | None = None) -> Array:
    """Read the matrix in a file; its format is recognised by the content.

    Parameters
    ----------
    path : path
        Matrix Market (.mtx), Nastran's OUTPUT4 (.op4, formatted or not) or Abaqus (*MATRIX OUTPUT, .mtx).
    name : str, optional
        Name of a matrix in an OUTPUT4 file; not needed if there is only one.

    Returns
    -------
    ndarray, shape (rows, columns)
        The matrix, dense. Abaqus' nodes are in the order of their labels, with three or six displacements each.

    Raises
    ------
    ReadError
        If the file cannot be read.
    """
    where, file, raw = read_bytes(path, "matrix file")
    with report_damaged(where):
        A = _read(where, file, raw, name)
    if b"\0" not in raw:
        check_last_line(where, raw)
    return A


def _read(where: str, file: Path, raw: bytes, name: str | None) -> Array:
    if file.suffix.lower() == ".op4" and b"\0" in raw:
        return binary_op4(where, raw, name)
    if b"\0" in raw:
        raise ReadError(f"{where}: is binary; expected text, or Nastran's OUTPUT4 in a file that ends in .op4.")
    lines = raw.decode("ascii", errors="replace").splitlines()
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%"):
        return matrix_market(where, lines)
    if file.suffix.lower() == ".op4":
        return op4(where, lines, name)
    if first.startswith("*") or "," in first:
        return abaqus_matrix(where, lines)
    return matrix_market(where, lines)
