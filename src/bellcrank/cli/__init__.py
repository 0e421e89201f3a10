"""Command line of bellcrank: the application, its error handling, and the mechanism that a command line names.

Each command builds one kind of object of the API and prints it:

    Mechanism: show, zoo     Graph: count     Schedule: schedule     Source: emit     Kernel: bench
    Record: simulate, report, drive     Study: study

The commands papers, methods and cite reproduce and credit publications.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import bellcrank as bc
from bellcrank.cli import screen
from bellcrank.cli.options import EXAMPLES, epilog, is_python_object, load_python_object
from bellcrank.errors import BellcrankError, InputError, unknown
from bellcrank.formats import SUFFIXES
from bellcrank.model import Mechanism

__all__ = ["app", "load_mechanism", "main"]

# Modules with commands; --help lists the commands in the order of EXAMPLES.
COMMANDS = (*("show", "count", "schedule", "papers", "emit", "simulate", "linearize", "drive", "doctor"),)


class CommandGroup(TyperGroup):
    """Command group that turns errors into an exit code and at most one short message."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command of the context `ctx`, and exit with a code where it fails."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BellcrankError as error:
            screen.fail(str(error))
            raise typer.Exit(2) from None
        except MemoryError:
            screen.fail("there is not enough memory for this; use fewer rows, bodies or columns.")
            raise typer.Exit(2) from None
        except OSError as error:
            raise typer.Exit(_report_output_error(error)) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


class Command(TyperCommand):
    """Command that rejects a repeated option, unless the option takes several values.

    By default the last value would silently replace the others.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments `args` in the context `ctx`, and reject options that are given twice."""
        if not ctx.resilient_parsing:  # the Tab key completes commands that are not finished
            order = self.make_parser(ctx).parse_args(args=list(args))[2]
            for param in self.get_params(ctx):
                single = not getattr(param, "multiple", True) and not getattr(param, "is_flag", True)
                if single and (times := order.count(param)) > 1:
                    called = max(param.opts, key=len)
                    raise InputError(
                        f"{called} is given {times} times; expected once. Run the command once for each value."
                    )
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=CommandGroup,
    name="bellcrank",
    help="Compile a mechanism into verified real-time code, and predict its cost before you run it.",
    epilog=epilog(
        "", "MECHANISM is a file (.urdf, .xml, .toml) or built in (see `bellcrank zoo`): excavator, chain:8."
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line of this process, and exit with its code."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed, as by >&-: output is not wanted
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a character that the terminal cannot encode must not fail
    try:
        app(prog_name="bellcrank", standalone_mode=True)
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.exit(_report_output_error(error))
    finally:
        try:
            sys.stdout.flush()
        except OSError as error:
            sys.exit(_report_output_error(error))


def _report_output_error(error: OSError) -> int:
    """Report an output error and return the exit code; discard later output, so that Python exits without complaint."""
    with contextlib.suppress(OSError, ValueError):  # a test may have put an object without descriptor there
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):  # the reader, e.g. head, has closed the pipe
        return 141
    with contextlib.suppress(OSError):
        subject = "the output cannot be written" if error.filename is None else str(error.filename)
        screen.fail(f"{subject}: {error.strerror or error}.")
    return 1


def _version(requested: bool) -> None:
    if requested:
        print(f"bellcrank {bc.__version__}")
        raise typer.Exit


VersionOpt = Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")]


@app.callback()
def _options(version: VersionOpt = False) -> None:
    pass


def load_mechanism(name: str, base: str = "fixed", check: str = "warn", quiet: bool = False) -> Mechanism:
    """Load the mechanism that a command line names.

    Parameters
    ----------
    name
        Name of a built-in mechanism ("excavator", "chain:8", "chain(8)"), path of a file, or an object of a Python
        file ("crane.py:crane").
    base
        Attachment of the root link of a file, "fixed" or "floating".
    check
        Reaction to impossible inertias in a file, "warn" or "error".
    quiet
        Do not print the warnings of a file, because the caller does.
    """
    built_in = re.fullmatch(r"(\w+)\s*(\(.*\)|:.*)?", name)
    if built_in and built_in[1] in bc.zoo.names() and not name.lower().endswith(SUFFIXES):
        if base != "fixed":
            raise InputError(f'"{name}" is built in and has a fixed base; --base {base} applies to files only.')
        return bc.zoo.load(name)
    if is_python_object(name):
        return load_python_object(name)
    if os.sep in name or Path(name).suffix or Path(name).exists():
        loaded = bc.read(name, base=base, check=check)
        warnings = loaded.report.warnings
        if warnings and not quiet:
            counted = f"{len(warnings)} warning{'s' if len(warnings) > 1 else ''}, which `bellcrank show` prints"
            screen.note(f"{name}: {counted}. {warnings[0].element}: {warnings[0].outcome}")
        return loaded
    message = unknown("mechanism", name, bc.zoo.names(), bc.zoo.suggestion(name))
    raise InputError(f"{message} A file ends in {', '.join(SUFFIXES)}.")


def _name(command: Any) -> str:
    return str(command.name or command.callback.__name__)


for _file in COMMANDS:  # last, because these modules import the definitions above
    importlib.import_module(f"bellcrank.cli.{_file}")
app.registered_commands.sort(key=lambda command: list(EXAMPLES).index(_name(command)))
for _command in app.registered_commands:
    _command.cls = Command
    _command.epilog = epilog(_name(_command))
