"""Examples at the end of each command's help, and completions for the Tab key."""

from __future__ import annotations

from pathlib import Path

import bellcrank as bc
from bellcrank.formats import SUFFIXES

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
