"""The command line. Thin: each command makes one noun of the design and stops there.

    Mechanism: show, zoo     Graph: count     Schedule: schedule     Source: emit     Kernel: bench
    Record: simulate, report, drive     Study: study

And the papers: experiment, papers, methods, cite. Here is what they share; each file beside has a command or two.
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
from bellcrank.cli import examples, screen
from bellcrank.cli.python_objects import from_python, named_in_python
from bellcrank.errors import BellcrankError, InputError, unknown
from bellcrank.formats import SUFFIXES
from bellcrank.model import Mechanism

# Files, in the order of --help.
COMMANDS = (
    *(
        "show",
        "count",
        "schedule",
        "papers",
        "emit",
        "export",
        "bench",
        "simulate",
        "linearize",
        "study",
        "identify",
        "report",
        "drive",
        "loads",
    ),
    "costs",
    "cache",
    "cite",
    "doctor",
)


class CommandGroup(TyperGroup):
    """Turns what may go wrong into an exit code and at most one short message."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BellcrankError as error:
            screen.fail(str(error))
            raise typer.Exit(2) from None
        except MemoryError:
            screen.fail("there is not enough memory for this; ask for less of it: fewer rows, bodies or columns.")
            raise typer.Exit(2) from None
        except OSError as error:
            raise typer.Exit(_unwritten(error)) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


class Command(TyperCommand):
    """Takes an option once, unless it may be given several times: the last one would win without a word."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:  # as the Tab key does, which completes what is not finished
            order = self.make_parser(ctx).parse_args(args=list(args))[2]
            for param in self.get_params(ctx):
                single = not getattr(param, "multiple", True) and not getattr(param, "is_flag", True)
                if single and (times := order.count(param)) > 1:
                    called = max(param.opts, key=len)
                    raise InputError(f"{called} is given {times} times, and one is taken. Ask once for each.")
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=CommandGroup,
    name="bellcrank",
    help="Compile a mechanism into verified real-time code, and know what it costs before you run it.",
    epilog=examples.epilog(
        "", "MECHANISM is a file (.urdf, .xml, .toml) or built in (see `bellcrank zoo`): excavator, chain:8."
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

MechanismArg = Annotated[
    str,
    typer.Argument(
        metavar="MECHANISM", help="A file, or built in.", show_default=False, autocompletion=examples.mechanisms
    ),
]
BaseOpt = Annotated[str, typer.Option("--base", metavar="fixed|floating", help="What the root link of a file is.")]
CheckOpt = Annotated[str, typer.Option("--check", metavar="warn|error", help="On impossible inertias in a file.")]
JsonOpt = Annotated[bool, typer.Option("--json", help="Print JSON.")]
QuantityOpt = Annotated[
    str,
    typer.Option("--quantity", "-q", metavar="NAME", help="What to compute.", autocompletion=examples.quantities),
]
MethodOpt = Annotated[
    str,
    typer.Option(
        "--method", "-m", metavar="NAME", help="How; auto takes the cheapest.", autocompletion=examples.methods
    ),
]
FrameOpt = Annotated[str, typer.Option("--frame", "-f", metavar="NAME", help="For pose, jacobian and the like.")]
DtypeOpt = Annotated[str, typer.Option("--dtype", metavar="float64|float32", help="Numbers of the generated code.")]


def main() -> None:
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed, as by >&-: whoever did that wants to see nothing
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name in another script is no reason to fail
    try:
        app(prog_name="bellcrank", standalone_mode=True)
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.exit(_unwritten(error))
    finally:
        try:
            sys.stdout.flush()
        except OSError as error:
            sys.exit(_unwritten(error))


def _unwritten(error: OSError) -> int:
    """Says why, and gives the exit code. Nothing more is written, so that Python does not complain when it ends."""
    with contextlib.suppress(OSError, ValueError):  # what a test has put there may be no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):  # the reader has seen enough
        return 141
    with contextlib.suppress(OSError):
        what = "the output cannot be written" if error.filename is None else str(error.filename)
        screen.fail(f"{what}: {error.strerror or error}.")
    return 1


def _version(asked: bool) -> None:
    if asked:
        print(f"bellcrank {bc.__version__}")
        raise typer.Exit


VersionOpt = Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")]


@app.callback()
def _options(version: VersionOpt = False) -> None:
    pass


def mechanism(name: str, base: str = "fixed", check: str = "warn", quiet: bool = False) -> Mechanism:
    """A built-in mechanism by its name ("excavator", "chain:8", "chain(8)"), the one in a file, or what a Python
    file makes ("crane.py:crane").

    quiet: says nothing of a file's warnings, for the caller will.
    """
    built_in = re.fullmatch(r"(\w+)\s*(\(.*\)|:.*)?", name)
    if built_in and built_in[1] in bc.zoo.names() and not name.lower().endswith(SUFFIXES):
        if base != "fixed":
            raise InputError(f'"{name}" is built in and stands on the ground; --base {base} is for files.')
        return bc.zoo.load(name)
    if named_in_python(name):
        return from_python(name)
    if os.sep in name or Path(name).suffix or Path(name).exists():
        found = bc.read(name, base=base, check=check)
        doubts = found.report.warnings
        if doubts and not quiet:
            told = f"{name}: {len(doubts)} warning{'s' if len(doubts) > 1 else ''}, which `bellcrank show` prints"
            screen.note(f"{told}. {doubts[0].element}: {doubts[0].outcome}")
        return found
    told = unknown("mechanism", name, bc.zoo.names(), bc.zoo.meant(name))
    raise InputError(f"{told} A file ends in {', '.join(SUFFIXES)}.")


for _file in COMMANDS:  # last, for they use what is above
    importlib.import_module(f"bellcrank.cli.{_file}")
for _command in app.registered_commands:
    _command.cls = Command
    _command.epilog = examples.epilog(str(_command.name or getattr(_command.callback, "__name__", "")))
