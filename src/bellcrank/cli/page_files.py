"""Pages and pictures that commands write, which never replace files of other programs."""

from __future__ import annotations

from pathlib import Path

from bellcrank.errors import InputError
from bellcrank.files import write_text

PAGE_MARKS = ("bellcrank schedule", "bellcrank chart")  # marks at the top of our pages and pictures


def page_path(out: Path | None, default: Path) -> Path:
    """Return the path of a page: `out` if it is given, inside of it if it is a folder, else `default`."""
    target = out if out is not None else default
    return target / default.name if target.is_dir() else target


def check_ours(path: Path, what: str, *marks: str) -> None:
    """Raise an InputError if there is a file at `path` that has none of the `marks` of `what`, such as a page."""
    try:
        foreign = path.is_dir() or (
            path.exists() and not any(mark.encode() in path.read_bytes()[:2000] for mark in marks)
        )
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}. Choose another --out.") from None
    if foreign:
        raise InputError(f"{path} exists and is not a {what} of bellcrank; move it away or choose another --out.")


def write_pages(files: dict[Path, str]) -> list[str]:
    """Write the texts of `files` to their paths, and return the paths; existing files are replaced only if ours."""
    for path in files:  # before any of them is written
        check_ours(path, "page", *PAGE_MARKS)
    return write_files(files, "Choose another place with --out, or --no-page for the table alone")


def write_files(files: dict[Path, str], hint: str) -> list[str]:
    """Write the texts of `files` to their paths, whose folders are made, and return the paths; `hint` is for errors."""
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}. {hint}.") from None
        write_text(path, text, "Try again")
    return [str(path) for path in files]
