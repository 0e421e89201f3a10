"""Bellcrank: compile a mechanism into verified real-time code, and know what it costs before you run it."""

from __future__ import annotations

import importlib
from functools import partial
from typing import TYPE_CHECKING, Any

from bellcrank import forks as _forks  # noqa: F401  # what is to be done when this process forks
from bellcrank.dynamics import QUANTITIES, MethodTable
from bellcrank.dynamics import loops as closure
from bellcrank.errors import BellcrankError, CompileError, InputError, ModelError, ReadError, TraceError
from bellcrank.formats import Builder, from_dh, from_saha, from_wong, read
from bellcrank.model import Mechanism
from bellcrank.parameters.table import parameter  # now, or a later import would put the package where parameter() is
from bellcrank.scheduling import Machine, Schedule  # now, or a later import would put the module where schedule() is
from bellcrank.version import __version__

if TYPE_CHECKING:
    from bellcrank import actuators, control, zoo
    from bellcrank.build.equations import equations
    from bellcrank.build.kernels import kernel
    from bellcrank.build.schedules import schedule
    from bellcrank.build.targets import Where
    from bellcrank.emit.cpu.kernel import Kernel
    from bellcrank.graph import Graph
    from bellcrank.record import Record, load_record
    from bellcrank.sim import Drive, Event, Saving, Simulator, Solver, System, drive, simulate, system

# Looked up on first use, so that importing bellcrank loads no compiler.
_LAZY = {
    "zoo": ("bellcrank.zoo", ""),
    "kernel": ("bellcrank.build.kernels", "kernel"),
    "compile": ("bellcrank.build.compiling", "compile"),
    "Kernel": ("bellcrank.emit.cpu.kernel", "Kernel"),
    "Graph": ("bellcrank.graph", "Graph"),
    "equations": ("bellcrank.build.equations", "equations"),
    "actuators": ("bellcrank.actuators", ""),
    "control": ("bellcrank.control", ""),
    "papers": ("bellcrank.papers", ""),
    "excavators": ("bellcrank.excavators", ""),
    "simulate": ("bellcrank.sim", "simulate"),
    "Simulator": ("bellcrank.sim", "Simulator"),
    "system": ("bellcrank.sim", "system"),
    "System": ("bellcrank.sim", "System"),
    "Event": ("bellcrank.sim", "Event"),
    "Solver": ("bellcrank.sim", "Solver"),
    "Saving": ("bellcrank.sim", "Saving"),
    "Where": ("bellcrank.build.targets", "Where"),
    "drive": ("bellcrank.sim", "drive"),
    "Drive": ("bellcrank.sim", "Drive"),
    "Record": ("bellcrank.record", "Record"),
    "load_record": ("bellcrank.record", "load_record"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f'module "bellcrank" has no attribute "{name}"')
    module, attribute = _LAZY[name]
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


def methods() -> (
    MethodTable
):  # shadows the subpackage on purpose: `bc.methods()` is the table, `bellcrank.dynamics.aba` the file
    """The table of methods: what each solves, for which mechanisms, and where it was published."""
    return MethodTable()


if not TYPE_CHECKING:

    def schedule(*args: Any, **named: Any) -> Schedule:  # shadows its subpackage, too
        """schedule(mechanism_or_graph, quantity="forward_dynamics", machine="complete", *, kind="ideal",
        method="auto", frame="", level="cluster", strategy="", control="none"): a Schedule; its html() is a page to look
        at. machines.py says what machines there are.
        """
        return importlib.import_module("bellcrank.build.schedules").schedule(*args, **named)


def _quantity(mechanism: Mechanism, name: str) -> Any:
    if name == "assemble":
        return partial(closure.assemble, mechanism)
    if name == "loop_analysis":
        return closure.analysis(mechanism)
    return importlib.import_module("bellcrank.build.kernels").bound(mechanism, name) if name in QUANTITIES else None


Mechanism.quantity = staticmethod(_quantity)

__all__ = [
    "BellcrankError",
    "Builder",
    "CompileError",
    "Drive",
    "Event",
    "Graph",
    "InputError",
    "Kernel",
    "Machine",
    "Mechanism",
    "ModelError",
    "ReadError",
    "Record",
    "Saving",
    "Schedule",
    "Simulator",
    "Solver",
    "System",
    "TraceError",
    "Where",
    "__version__",
    "actuators",
    "control",
    "drive",
    "equations",
    "excavators",
    "from_dh",
    "from_saha",
    "from_wong",
    "kernel",
    "load_record",
    "methods",
    "papers",
    "parameter",
    "read",
    "schedule",
    "simulate",
    "system",
    "zoo",
]
