"""Calls from lower to higher layers: methods that draw or compile load their modules on first use.

A graph thus needs no import of its drawing code, nor a mechanism of the compiler. `UPWARD_CALLS` lists all of these
calls; tests/tools/test_layers.py compares it with the sources.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# The called function, or module, and the modules that call it.
UPWARD_CALLS: dict[str, tuple[str, ...]] = {
    # the mechanism: its loops, and its compiled quantities
    "dynamics.loops:assemble": ("model.mechanism",),
    "dynamics.loops:analysis": ("model.mechanism",),
    "build.kernels:bound": ("compiled_quantity",),
    "dynamics.quantities:class_function": ("compiled_quantity",),
    # derivatives of a kernel are kernels
    "build.function_compilation:compile_alike": ("emit.cpu.kernel",),
    # packages that extend bellcrank, and the digest of their files
    "registration:register_entry": ("plugins",),
    "emit.cache": ("plugins",),
    # pictures and pages
    "view.graph_picture:svg": ("graph.graph",),
    "view.motion:svg": ("record.record",),
    "view.notebook:count": ("graph.graph",),
    "view.notebook:graph": ("graph.graph",),
    "view.notebook:mechanism": ("model.mechanism",),
    "view.notebook:poles": ("sim.linear.linearisation",),
    "view.notebook:record": ("record.record",),
    "view.notebook:schedule": ("scheduling.timetable",),
    "view.record_page:html": ("record.record",),
    "view.record_page:plot": ("record.record",),
    "view.schedule_picture:html": ("scheduling.timetable",),
    "view.schedule_picture:svg": ("scheduling.timetable",),
}


def lazy_import(target: str) -> Any:
    """Import `target`, "module:function" of UPWARD_CALLS, and return the function; without a function, the module."""
    module, _, function = target.partition(":")
    loaded = import_module(f"bellcrank.{module}")
    return getattr(loaded, function) if function else loaded
