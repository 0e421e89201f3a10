"""bc.export: write a model for use in other programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.emit.c.package import Package
from bellcrank.emit.c.processor_package import ProcessorPackage
from bellcrank.emit.c.routine import REAL_TYPES
from bellcrank.errors import InputError, check_known
from bellcrank.exporting.casadi_library import write_casadi
from bellcrank.exporting.export_content import export_content, ignore_progress, mechanism_in
from bellcrank.exporting.fmu import write_fmu
from bellcrank.exporting.webassembly import wasm_files
from bellcrank.files import check_writable, path_of, write_folder
from bellcrank.quoting import name_problem
from bellcrank.scheduling import Schedule
from bellcrank.sim.program.events import Event
from bellcrank.sim.run_arguments import duration
from bellcrank.sim.settings import Solver, grouped_settings

EXPORT_FORMATS = ("c", "fmu2", "fmu3", "casadi", "wasm", "page")
FORMAT_BY_SUFFIX = {".fmu": "fmu3", ".so": "casadi"}  # default format by file suffix


@explain_argument_errors
def export(
    thing: Any,
    path: str | Path,
    to: str | None = None,
    functions: Sequence[Any] = (),
    *,
    name: str = "",
    dtype: str = "float64",
    integrator: str | None = None,
    step: float | None = None,
    method: str | None = None,
    form: str | None = None,
    tolerance: float | None = None,
    events: Sequence[Event] = (),
    solver: Solver | None = None,
    platforms: Sequence[str] | str = (),
    progress: Callable[[str], None] | None = None,
) -> Path:
    """Write a model for another program.

        bc.export(plant, "plant", to="c")                   a folder: plant.h, plant.c, CMakeLists.txt, README, main.c
        bc.export(plant, "plant.fmu", to="fmu3")            or "fmu2": Co-Simulation and Model Exchange in one file
        bc.export(arm, "arm", functions=["mass_matrix", "pose(tool0)", "d(forward_dynamics)/d(q)"])
        bc.export(arm, "arm.so", to="casadi", functions=["forward_dynamics"])      for casadi.external, with jac_
        bc.export(schedule, "plant", to="c")                a folder: C11, one file for each processor
        bc.export(plant, "plant", to="wasm")                a folder: WebAssembly, JavaScript that calls it, its types
        bc.export(crane, "crane", to="page")                a folder: the page of bc.drive, with the machine in it

    See docs/export.md for the details of all formats.

    Parameters
    ----------
    thing : System, Simulator, Program, Mechanism, Graph, Kernel, list of Graph or Kernel, or Schedule
        A System, a Simulator or a Program is exported as a machine that takes steps. So is a Mechanism, with a force on
        every joint as its inputs ("elbow.effort"), unless `functions` are given. Graphs and Kernels are exported as
        functions, and a Schedule as one C file for each processor.
    path : path
        File or folder to write.
    to : {"c", "fmu2", "fmu3", "casadi", "wasm", "page"}, optional
        Format. Default by the suffix of `path`: "fmu3" for .fmu, "casadi" for .so, otherwise "c".
    functions : sequence
        Further functions: graphs, kernels, or names of quantities.
    name : str
        Name of files and functions; by default that of the mechanism.
    dtype : {"float64", "float32"}
        Floating-point type; "float32" is available for C.
    integrator, step, method, form
        As in bc.simulate, with fixed steps of 1 ms by default. Closed loops use form="projected" by default.
    tolerance : float, optional
        The integrator chooses its steps, and `step` is the time that each call advances.
    events : sequence of Event
        As in bc.simulate.
    solver : Solver, optional
        The solver settings as one object.
    platforms : sequence of str, or "all"
        Platforms that an FMU has binaries for; by default this computer's. "all" are all supported ones (by ziglang).
    progress : callable, optional
        Called with a text for each stage of the export.

    Returns
    -------
    Path
        The path that was written.

    Raises
    ------
    InputError
        If an argument does not fit, or the path cannot be written.
    CompileError
        If no C compiler is available, or it fails.
    """
    if to is not None:
        check_known("to", to, EXPORT_FORMATS)
    short = {"integrator": integrator, "step": step, "method": method, "form": form, "tolerance": tolerance}
    solver_settings, _, _ = grouped_settings(short, solver)
    if solver_settings.step is not None:
        duration("step", solver_settings.step)
    target_path = path_of(path)
    to = to or FORMAT_BY_SUFFIX.get(target_path.suffix.lower(), "c")
    _check_dtype(dtype, to)
    if isinstance(thing, Schedule):
        return _write_schedule(thing, target_path, to, name, dtype, [*functions, *events], short, solver, platforms)
    if to == "page":
        from bellcrank.exporting.web_page import machine_of, page_files

        return write_folder(target_path, page_files(machine_of(thing), solver_settings))
    m = mechanism_in(thing)
    if m is not None and m.loops and form is None and solver is None:
        solver_settings, _, _ = grouped_settings({"form": "projected"}, solver_settings)
    if why := name_problem(name) if not isinstance(name, str) else "":
        raise InputError(f"export: name: {why}.")
    if to in ("fmu2", "fmu3", "casadi"):
        check_writable(target_path, "Export")
    report = ignore_progress if progress is None else partial(_report_progress, progress)
    report("tracing")
    content = export_content(thing, functions, name, solver_settings, events, dtype)
    if to in ("fmu2", "fmu3"):
        return write_fmu(content, target_path, int(to[-1]), platforms, report)
    report("compiling" if to in ("casadi", "wasm") else "writing")
    if to == "casadi":
        return write_casadi(content, target_path)
    if to == "wasm":
        return write_folder(target_path, wasm_files(content))
    package = Package(content.name, content.graphs, content.stepper, dtype, content.columns)
    return write_folder(target_path, {name: text.encode() for name, text in package.files.items()})


def _write_schedule(
    schedule: Schedule,
    path: Path,
    to: str,
    name: str,
    dtype: str,
    parts: Sequence[Any],
    settings: Mapping[str, Any],
    solver: Solver | None,
    platforms: Sequence[str] | str,
) -> Path:
    """Write the programs of a schedule; options of other exports are refused."""
    if to != "c":
        raise InputError(f'export: a schedule is exported as C; got to="{to}", expected to="c".')
    if parts or platforms or solver is not None or any(x is not None for x in settings.values()):
        raise InputError(
            "export: a schedule has all its operations, and takes no steps; leave out functions=, events=, platforms= "
            "and the settings of a run."
        )
    if why := name_problem(name):
        raise InputError(f"export: name: {why}.")
    files = ProcessorPackage(schedule, name, dtype).files
    return write_folder(path, {file: text.encode() for file, text in files.items()})


def _check_dtype(dtype: str, to: str) -> None:
    check_known("dtype", dtype, REAL_TYPES)
    if dtype != "float64" and to != "c":
        raise InputError(f'export: dtype="{dtype}" is for C; to="{to}" computes in float64.')


def _report_progress(progress: Callable[[str], None], what: str) -> None:
    """Call the user's progress function; an exception in it is reported as its own."""
    try:
        progress(what)
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
        raise InputError(f'export: progress("{what}") failed: {got}. Expected a function of one text.') from error
