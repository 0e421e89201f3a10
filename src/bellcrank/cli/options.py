"""Options and arguments that several commands have, what their texts name, and the examples of each command's help.

A Python file of the user is run only if it is given with the name of an object, `bellcrank drive crane.py:crane`, so
that a file from another person is not run by mistake (SECURITY.md).
"""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

import bellcrank as bc
from bellcrank.emit.target import DTYPES
from bellcrank.errors import BellcrankError, InputError, check_known, unknown
from bellcrank.formats import SUFFIXES, Builder
from bellcrank.model import Mechanism

FILE_AND_NAME = re.compile(r"(?P<path>.+\.py):(?P<name>\w+)", re.IGNORECASE | re.DOTALL)

# {command: lines} in the order of --help; "" is `bellcrank` alone.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "": (
        "bellcrank show excavator                        its joints, bodies and frames",
        "bellcrank count robot.urdf --all                the cost of every method, before it runs",
        "bellcrank simulate puma600 --report run.html    a run, and a page that replays it",
        "bellcrank drive excavator                       in real time, with two sticks",
        "bellcrank doctor                                check this computer",
    ),
    "show": ("bellcrank show excavator", "bellcrank show robot.urdf --report", "bellcrank show four_bar --json"),
    "zoo": ("bellcrank zoo", "bellcrank zoo --json"),
    "count": (
        "bellcrank count excavator --all",
        "bellcrank count robot.urdf --base floating",
        "bellcrank count chain:8 -q mass_matrix -m crba",
    ),
    "schedule": (
        "bellcrank schedule excavator --machine triangle",
        "bellcrank schedule puma600 --machine mesh:2,2 --kind t800",
        "bellcrank schedule tree:31 --machine threads",
    ),
    "papers": ("bellcrank papers", "bellcrank papers wong-3.5.1"),
    "emit": (
        "bellcrank emit planar3r --target latex",
        "bellcrank emit pendulum --target c -q forward_dynamics",
        "bellcrank emit pendulum --target svg --out pendulum.svg",
    ),
    "export": (
        "bellcrank export excavator --to fmu3 --out excavator.fmu",
        "bellcrank export puma600 --to c --function mass_matrix --out puma_c",
    ),
    "bench": ("bellcrank bench robot.urdf", "bellcrank bench excavator -q forward_dynamics"),
    "simulate": (
        "bellcrank simulate puma600 --seconds 5 --start joint2=0.5",
        "bellcrank simulate excavator --scenario resolved-mode --report run.html",
        "bellcrank simulate robot.urdf --out run.parquet",
    ),
    "linearize": (
        "bellcrank linearize planar3r --rest",
        "bellcrank linearize four_bar --rest --report mode.html",
        "bellcrank linearize puma600 --at joint2=0.5 --hold q --json",
    ),
    "equilibrium": (
        "bellcrank equilibrium four_bar",
        "bellcrank equilibrium puma600 --at joint2=0.5 --hold q",
        "bellcrank equilibrium four_bar --hold D=0.1 --free A.tau",
    ),
    "study": ("bellcrank study wear.toml --workers 8", "bellcrank study wear.toml --run 17"),
    "identify": ("bellcrank identify puma600", "bellcrank identify robot.urdf --excite motion.csv --seconds 10"),
    "report": ("bellcrank report run.parquet --out run.html",),
    "drive": (
        "bellcrank drive excavator",
        "bellcrank drive excavator_linkage --pilot dig",
        "bellcrank drive robot.urdf --by torque",
    ),
    "loads": ("bellcrank loads excavator_linkage", "bellcrank loads excavator_linkage --json"),
    "costs": ("bellcrank costs", "bellcrank costs --again"),
    "cache": ("bellcrank cache", "bellcrank cache --clear"),
    "methods": ("bellcrank methods", "bellcrank methods --json"),
    "cite": ("bellcrank cite excavator --bibtex", "bellcrank cite robot.urdf -m aba"),
    "doctor": ("bellcrank doctor", "bellcrank doctor --json"),
}


def epilog(command: str, more: str = "") -> str:
    """Return the examples of `command`, followed by the paragraph `more`; Click does not wrap the examples."""
    lines = EXAMPLES.get(command, ())
    shown = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines) if lines else ""
    return "\n\n".join(part for part in (shown, more) if part)


def complete_mechanism(incomplete: str) -> list[str]:
    """Return the completions of `incomplete`: built-in mechanisms, folders and mechanism files."""
    folder = Path(incomplete if incomplete.endswith("/") else Path(incomplete).parent)
    try:
        paths = sorted(p for p in folder.iterdir() if p.is_dir() or p.suffix.lower() in SUFFIXES)
    except OSError:
        paths = []
    files = [f"{p}/" if p.is_dir() else str(p) for p in paths if not p.name.startswith(".")]
    return [name for name in (*bc.zoo.names(), *files) if name.startswith(incomplete)]


def complete_quantity(incomplete: str) -> list[str]:
    """Return the quantities whose names begin with `incomplete`."""
    from bellcrank.dynamics import QUANTITIES

    return [name for name in QUANTITIES if name.startswith(incomplete)]


def complete_method(incomplete: str) -> list[str]:
    """Return the methods whose names begin with `incomplete`."""
    from bellcrank.dynamics import METHODS

    return [name for name in ("auto", *METHODS) if name.startswith(incomplete)]


def option(metavar: str, help_text: str, *names: str, **more: Any) -> Any:
    """Return an option with a value.

    Parameters
    ----------
    metavar
        Name of the value in the help.
    help_text
        The help.
    names
        Names of the option; by default that of its parameter.
    more
        Further arguments of typer.Option.
    """
    return typer.Option(*names, metavar=metavar, help=help_text, **more)


def argument(metavar: str, help_text: str, **more: Any) -> Any:
    """Return an argument, shown as `metavar` with `help_text`; `more` are further arguments of typer.Argument."""
    return typer.Argument(metavar=metavar, help=help_text, show_default=False, **more)


def _checked_dtype(dtype: str) -> str:
    check_known("dtype", dtype, DTYPES)
    return dtype


MechanismArg = Annotated[str, argument("MECHANISM", "A file, or a built-in name.", autocompletion=complete_mechanism)]
BaseOpt = Annotated[str, option("fixed|floating", "How the root link of a file is attached.", "--base")]
CheckOpt = Annotated[str, option("warn|error", "Reaction to impossible inertias in a file.", "--check")]
JsonOpt = Annotated[bool, typer.Option("--json", help="Print JSON.")]
QuantityOpt = Annotated[
    str,
    option("NAME", "Quantity to compute.", "--quantity", "-q", autocompletion=complete_quantity),
]
MethodOpt = Annotated[
    str,
    option("NAME", "Method; auto takes the cheapest.", "--method", "-m", autocompletion=complete_method),
]
FrameOpt = Annotated[str, option("NAME", "Frame, for pose, jacobian and similar.", "--frame", "-f")]
DtypeOpt = Annotated[
    str, option("float64|float32", "Number type of the generated code.", "--dtype", callback=_checked_dtype)
]


def assignments_of(m: Mechanism, option: str, texts: list[str], unit: str) -> dict[str, float]:
    """Return the values by name that `texts`, NAME=NUMBER, give; `m`, `option` and `unit` are for errors."""
    values = {}
    for text in texts:
        name, sign, value = text.rpartition("=")
        if not sign:
            raise InputError(f'{option} is "{text}"; expected NAME=NUMBER, as in {option} {m.columns[0][0]}=1.5.')
        values[name] = checked_number(f"{option} {name}", value, unit)
    return values


def checked_number(what: str, text: str, unit: str) -> float:
    """Return the number `text`; `what` and `unit` are for errors."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f'{what}: "{text}" is not a number; expected {unit}.') from None


def closed(m: Mechanism, q: Any, moved: Iterable[str]) -> Any:
    """Return the positions of `m` nearest to `q` that close its loops; joints with `moved` coordinates keep theirs."""
    names = list(moved)
    fixed = [j.name for j in m.own_joints if any(x == j.name or x.startswith(f"{j.name}.") for x in names)]
    return m.assemble(q, fixed=fixed)[0]


def is_python_object(text: str) -> bool:
    """Return whether `text` has the form FILE.py:NAME."""
    return FILE_AND_NAME.fullmatch(text) is not None


def load_python_object(text: str) -> Mechanism:
    """Run the file of `text`, FILE.py:NAME, and return NAME: a mechanism, a Builder, or a function that returns one."""
    match = FILE_AND_NAME.fullmatch(text)
    assert match is not None
    path, name = Path(match["path"]), match["name"]
    if not path.is_file():
        raise InputError(f"{path} does not exist. Expected FILE.py:NAME, a mechanism in a Python file.")
    sys.path.insert(0, str(path.parent.resolve()))  # as Python does for a script, so that files beside it are found
    try:
        namespace = runpy.run_path(str(path), run_name="bellcrank.file")
        if name not in namespace:
            raise InputError(f"{path}: {unknown('name', name, _candidates(namespace))}")
        thing = namespace[name]() if callable(namespace[name]) else namespace[name]
    except BellcrankError:
        raise
    except Exception as error:
        raise InputError(f"{path}: running it failed: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    built = thing.build() if isinstance(thing, Builder) else thing
    if not isinstance(built, Mechanism):
        raise InputError(
            f"{path}: {name} is a {type(thing).__name__}; expected a mechanism, a Builder, or a function of one."
        )
    return built


def _candidates(namespace: dict[str, Any]) -> list[str]:
    return [x for x, y in namespace.items() if isinstance(y, Mechanism | Builder) and not x.startswith("_")]
