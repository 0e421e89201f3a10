"""Output of the command line: tables that fit the terminal, JSON, progress, errors, and files.

Results go to stdout and everything else to stderr, so that stdout can always be piped. A table never shortens a number:
if it is too wide, its text columns wrap, then its optional columns are left out one by one, then each row becomes a
block. Pages and pictures never replace files of other programs.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bellcrank.errors import InputError
from bellcrank.files import write_text
from bellcrank.quoting import visible
from bellcrank.text_table import Table as TextTable

COLUMN_GAP = 2
UNLIMITED_WIDTH = 100_000
MIN_WIDTH = 10  # characters; in a narrower terminal the lines run over the edge
HEADING_RULE = box.Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)
PAGE_MARKS = ("bellcrank schedule", "bellcrank chart")  # marks at the top of our pages and pictures


@dataclass(frozen=True)
class TableColumn:
    """Column of a table."""

    name: str
    right: bool = False  # a number, aligned right
    wrap: bool = False  # text that may take several lines
    min_width: int = 12  # minimum width of wrapped text, characters
    optional: bool = False  # may be left out of a narrow table


def numbers(*names: str) -> list[TableColumn]:
    """Return columns of numbers with these `names`."""
    return [TableColumn(name, right=True) for name in names]


def texts(*names: str) -> list[TableColumn]:
    """Return columns of texts that may wrap with these `names`."""
    return [TableColumn(name, wrap=True) for name in names]


def stdout_console() -> Console:
    """Return the console of stdout: as wide as the terminal or $COLUMNS, and unlimited in a pipe."""
    piped = not sys.stdout.isatty() and not _columns()
    return _console(sys.stdout, UNLIMITED_WIDTH if piped else None)


def stderr_console() -> Console:
    """Return the console of stderr."""
    return _console(sys.stderr, None)


class PipeAwareConsole(Console):
    """Console that leaves the handling of a closed pipe to the command line."""

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError."""
        raise BrokenPipeError


def _console(file: TextIO, width: int | None) -> Console:
    columns, lines = _terminal()
    wide = max(width or _columns() or columns, MIN_WIDTH)
    # With both numbers rich does not read $COLUMNS itself: it takes "²" for a number, and fails.
    return PipeAwareConsole(file=file, highlight=False, markup=False, emoji=False, width=wide, height=lines)


def _terminal() -> tuple[int, int]:
    """Return columns and lines of the first standard stream that is a terminal."""
    for stream in (0, 1, 2):
        with suppress(OSError):
            return os.get_terminal_size(stream)
    return 80, 25


def _columns() -> int:
    """Return $COLUMNS where it is a positive number; else 0, which some shells write for "unknown"."""
    text = os.environ.get("COLUMNS", "")
    return min(int(text), UNLIMITED_WIDTH) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def line(text: str = "", style: str = "") -> None:
    """Print the line `text` in the rich `style`, wrapped to the width of the terminal."""
    console = stdout_console()
    console.print(Text(_wrapped(visible(text), console.width), style=style))


def heading(text: str) -> None:
    """Print the heading `text` and an empty line."""
    line(text, style="bold")
    line()


def wrote(paths: Iterable[Any]) -> None:
    """Print the `paths` of files that were written."""
    for path in paths:
        line(f"wrote {path}", style="dim")


def lines(text: str) -> None:
    """Print `text` as it is, without wrapping."""
    for part in visible(text).split("\n"):
        stdout_console().print(Text(part), soft_wrap=True)


def table(columns: Sequence[TableColumn], rows: Sequence[Sequence[str]]) -> None:
    """Print the cells of `rows` under the headings of `columns`, in the widest form that fits the terminal."""
    console = stdout_console()
    rows = [[visible(cell) for cell in row] for row in rows]
    natural = [max(_width(cell) for cell in (c.name, *(row[i] for row in rows))) for i, c in enumerate(columns)]
    for keep in _column_selections(columns):
        widths = _fitted_widths([columns[i] for i in keep], [natural[i] for i in keep], console.width)
        if widths is not None:
            break
    else:
        _print_blocks(console, columns, rows)
        return
    _print_table(console, [columns[i] for i in keep], [[row[i] for i in keep] for row in rows], widths)
    left_out = [" ".join(c.name.split()) for i, c in enumerate(columns) if i not in keep]
    if left_out:
        line(f"(no room for {', '.join(left_out)}: widen the terminal or use --json)", style="dim")


def titled_table(t: TextTable) -> None:
    """Print the text table `t` with its title above and its text below."""
    heading(t.title)
    table([TableColumn(name, right=i in t.right) for i, name in enumerate(t.head)], t.rows)
    if t.below:
        line()
        lines(t.below)


def _column_selections(columns: Sequence[TableColumn]) -> Iterator[list[int]]:
    """Yield the indices of columns to try: all, then without the last optional one, and so on."""
    keep = list(range(len(columns)))
    yield keep
    for i in reversed(range(len(columns))):
        if columns[i].optional:
            keep = [k for k in keep if k != i]
            yield keep


def _width(text: str) -> int:
    return max(len(part) for part in text.split("\n"))


def _fitted_widths(columns: Sequence[TableColumn], natural: Sequence[int], room: int) -> list[int] | None:
    """Return widths of the columns: numbers as needed, texts share the rest; None where the rest is too little."""
    widths = [min(w, c.min_width) if c.wrap else w for c, w in zip(columns, natural, strict=True)]
    room -= COLUMN_GAP * (len(widths) - 1) + sum(widths)
    texts = sorted((natural[i] - widths[i], i) for i, c in enumerate(columns) if c.wrap)
    for k, (wanted, i) in enumerate(texts):
        more = min(wanted, max(room, 0) // (len(texts) - k))
        widths[i], room = widths[i] + more, room - more
    return widths if room >= 0 else None


def _wrapped(text: str, width: int) -> str:
    """Break lines at spaces; a word longer than the line, at its last separator that fits."""
    lead = text[: len(text) - len(text.lstrip(" "))]
    lines, current = [], lead
    for word in text.lstrip(" ").split(" "):
        if current.strip() and len(current) + 1 + len(word) > width:
            lines.append(current)
            current = lead
        current = f"{current} {word}" if current.strip() else current + word
        while len(current) > width:
            cut = max(current.rfind(c, 0, width) for c in "_/-.") + 1 or width
            lines.append(current[:cut])
            current = current[cut:]
    return "\n".join([*lines, current])


def _print_table(
    console: Console, columns: Sequence[TableColumn], rows: Sequence[Sequence[str]], widths: Sequence[int]
) -> None:
    rule = box.SIMPLE_HEAD if console.is_terminal else HEADING_RULE
    rich_table = Table(
        box=rule, show_edge=False, pad_edge=False, padding=(0, COLUMN_GAP - 1, 0, 0), header_style="bold"
    )
    for c, width in zip(columns, widths, strict=True):
        name = c.name if _width(c.name) <= width else _wrapped(c.name, width)
        rich_table.add_column(Text(name), justify="right" if c.right else "left", no_wrap=True, width=width)
    for row in rows:
        cells = (_wrapped(x, w) if c.wrap else x for x, c, w in zip(row, columns, widths, strict=True))
        rich_table.add_row(*map(Text, cells))
    if console.is_terminal:
        console.print(rich_table)
        return
    with console.capture() as captured:
        console.print(rich_table)
    for text in captured.get().splitlines():
        console.file.write(text.rstrip() + "\n")


def _print_blocks(console: Console, columns: Sequence[TableColumn], rows: Sequence[Sequence[str]]) -> None:
    names = [" ".join(c.name.split()) for c in columns]
    width = max(map(len, names))
    for row in rows:
        for name, cell in zip(names, row, strict=True):
            if not cell:
                continue
            console.print(Text(name.ljust(width + COLUMN_GAP), style="bold"), Text(cell), sep="")
        console.print()


def data(value: Any) -> None:
    """Print `value` as JSON, with null for numbers that are not finite."""
    print(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(x) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(x) for x in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def note(text: str) -> None:
    """Print the remark `text` to stderr."""
    stderr_console().print(Text(visible(text), style="dim"), soft_wrap=True)


def fail(message: str) -> None:
    """Print the error `message` to stderr."""
    stderr_console().print(Text.assemble(("error: ", "bold red"), (visible(message), "red")), soft_wrap=True)


@contextmanager
def progress(text: str) -> Iterator[Callable[[str], None]]:
    """Show the progress `text` on a terminal's stderr during the context; call the result to change the text."""
    console = stderr_console()
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(Text(visible(text), style="dim")) as status:
        yield lambda changed: status.update(Text(visible(changed), style="dim"))


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
