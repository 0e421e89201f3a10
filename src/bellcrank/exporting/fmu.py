"""FMUs (fmi-standard.org), 2.0 or 3.0: Co-Simulation with our own integrator, Model Exchange for any other.

The C code beside the machine's own (emit/c/package.py) is in sources/; model.h connects the two.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from bellcrank.emit.c.exported_program import ExportedProgram
from bellcrank.emit.c.package import Package
from bellcrank.emit.cpu.thread_pool import run_on_threads
from bellcrank.errors import InputError
from bellcrank.exporting import compilers, fmi_xml
from bellcrank.exporting.export_content import FMU_COST_FACTOR, Export, announce_cost, ignore_progress
from bellcrank.files import write_atomically
from bellcrank.graph import Graph, Ports
from bellcrank.graph.autodiff import tangent
from bellcrank.graph.inline import copy_to_tape, inline
from bellcrank.graph.recursion import recursions
from bellcrank.nodes.tape import Tape
from bellcrank.sim.run_arguments import MAX_STEPS_PER_CALL

DERIVATIVE_INPUTS = ("y", "u", "p")  # derivatives exist with respect to these
COST_REMEDY = "Its derivatives are written out: take fewer bodies, or the C package, which has none unless asked."
ACTIONS = ("record", "stop", "switch")  # the index is the code in instance.h
# Arguments of a machine's functions, as the macros of model.h name them.
MACRO_ARGUMENTS = {
    "t": "(s)", "y": "((s) + 1)", "s": "(s)", "u": "(u)", "p": "(p)",
    "e": "(e)", "d_y": "(dy)", "d_u": "(du)", "d_p": "(dp)", "w_all": "(w)",
    "g_y": "(gy)", "g_u": "(gu)", "g_p": "(gp)",
}  # fmt: skip


def write_fmu(
    content: Export,
    path: Path,
    version: int,
    platforms: Sequence[str] | str,
    report: Callable[[str], None] = ignore_progress,
) -> Path:
    """Write a machine as an FMU.

    Parameters
    ----------
    content
        Export with a machine that takes steps.
    path
        File to write.
    version
        FMI version, 2 or 3.
    platforms
        Platforms to compile for, or "all".
    report
        Called with a text for each stage.

    Returns
    -------
    Path
        The written file.
    """
    if content.stepper is None:
        raise InputError("an FMU is a machine that takes steps; give a Mechanism without functions=, or a System.")
    if names := content.stepper.program.ports.commanded:
        raise InputError(
            f'latch "{names[0]}" has a command that is read at the start of steps, and the steps of an FMU may be '
            "those of its importer. Leave the command out, and give events: bc.Event(..., bc.attach(name))."
        )
    targets = [t for t in compilers.chosen_platforms(platforms) if version == 3 or compilers.PLATFORMS[t][1]]
    for target in (t for t in targets if t != compilers.host_platform()):
        compilers.compiler_command(target)  # raises before any work if its compiler is missing
    if not has_rolled_loops(content.stepper):
        rounds = -(-len(targets) // (os.cpu_count() or 1))
        work = FMU_COST_FACTOR * content.stepper.slope.count().arithmetic * rounds
        announce_cost(f"export of {content.name} as an FMU", work, COST_REMEDY)
    files = fmu_files(content, version, targets, report)

    def zipped(stream: IO[bytes]) -> None:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(zipfile.ZipInfo(name, (2000, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)

    return write_atomically(path, zipped, "Export")


def fmu_files(
    content: Export, version: int, targets: Sequence[str], report: Callable[[str], None] = ignore_progress
) -> dict[str, bytes | str]:
    """Return all files of the FMU by name; its binaries are compiled in parallel.

    Parameters
    ----------
    content, version, report
        As in write_fmu.
    targets
        Platforms to compile for.
    """
    assert content.stepper is not None
    package = Package(content.name, derivative_graphs(content.stepper, version), content.stepper)
    model_sources = {
        name: text for name, text in package.files.items() if name.endswith((".c", ".h")) and name != "main.c"
    }
    text = {name: (compilers.SOURCES / name).read_text("utf-8") for name in ("instance.h", f"fmi{version}.c")}
    token = hashlib.sha256("".join([*model_sources.values(), *text.values()]).encode()).hexdigest()[:32]
    sources = {**model_sources, **text, "model.h": model_header(package, token, version)}
    variables = fmi_xml.FmiVariables(content.stepper)
    about = fmi_xml.FmuFacts(content.name, package.name, token, content.stepper, tuple(sources))
    description = fmi_xml.model_description(about, variables, version)
    archive_files: dict[str, bytes | str] = {"modelDescription.xml": description}
    archive_files |= {f"sources/{name}": text for name, text in sources.items()}
    if version == 3:
        archive_files["sources/buildDescription.xml"] = fmi_xml.build_description(about)
    pending_targets = list(targets)

    def binary(target: str) -> bytes:
        code = compilers.compile_library(sources, target, portable=True)
        pending_targets.remove(target)
        report(f"compiling for {', '.join(pending_targets)}" if pending_targets else "writing")
        return code

    report(f"compiling for {', '.join(pending_targets)}")
    codes = run_on_threads(lambda k: binary(targets[k]), len(targets), os.cpu_count() or 1)
    for target, code in zip(targets, codes, strict=True):
        _, old, suffix = compilers.PLATFORMS[target]
        archive_files[f"binaries/{target if version == 3 else old}/{package.name}{suffix}"] = code
    return archive_files


def unknowns_graph(s: ExportedProgram) -> Graph:
    """Return the graph (t, y, u, p) -> rates, outputs and event functions of the stepper `s`, concatenated.

    They have nearly all operations in common, and so have their derivatives.
    """
    graphs = [s.slope, s.observe, *([s.indicate] if s.program.ports.events else [])]
    if not has_rolled_loops(s):
        graphs = [inline(g) for g in graphs]
    tape, inputs = Tape(), {name: shape for g in graphs for name, shape in g.inputs.items()}
    input_nodes = {element: tape.node("input", *element) for g in graphs for element in g.elements}
    results = [x for g in graphs for array in copy_to_tape(g, tape, input_nodes).values() for x in array.flat]
    all_results = np.empty(len(results), dtype=object)
    all_results[:] = results
    return Graph(f"{s.slope.name}.all", inputs, {"all": all_results}, tape)


def has_rolled_loops(s: ExportedProgram) -> bool:
    """Return whether link classes of the stepper `s` are rolled loops; then those of its derivatives are, too."""
    called = [*s.slope.calls, *s.observe.calls]
    return any(map(recursions, called)) and not any(g.only for g in called)


def derivative_graphs(s: ExportedProgram, version: int) -> dict[str, Graph]:
    """Return the graphs of all unknowns' directional derivatives and adjoints, for a stepper `s` and an FMI `version`.

    For rolled loops, instance.h computes adjoints from the derivatives along all directions.
    """
    graph = unknowns_graph(s)
    wrt = [x for x in DERIVATIVE_INPUTS if x in graph.inputs]
    if has_rolled_loops(s):
        return {"along": tangent(graph, wrt)}
    along = graph.jvp(wrt)
    graphs = {"along": Graph(along.name, along.inputs, {"d_all": along.outputs["d_all"]}, along.tape)}
    return graphs | ({"back": graph.vjp(wrt)} if version == 3 else {})


def model_header(package: Package, token: str, version: int) -> str:
    """Return model.h: sizes, layout and functions of `package` under the names that sources/ uses.

    `token` identifies the instance; `version` is that of FMI.
    """
    s = package.stepper
    assert s is not None
    ports = s.program.ports
    sizes = {
        "N_S": len(s.state), "N_Y": s.size, "N_U": len(s.inputs), "N_P": len(s.parameters), "N_OUT": len(s.outputs),
        "N_E": len(ports.events), "N_CLOCKS": len(ports.clocks), "ADAPTIVE": int(s.adaptive),
        "MOST_STEPS": repr(MAX_STEPS_PER_CALL), "REMEMBERS": int(bool(s.kept_indices.get("memory"))),
    }  # fmt: skip
    fields = {"steps": "n", "begin": "begin", "step": "step" if s.multi_tick else "h", "next_step": "h"}
    fields |= {name: name for name in ("fresh", "phases", "grid", "rtol", "atol", "most")}
    offsets = s.field_offsets
    places = {f"AT_{word.upper()}": offsets[field] for word, field in fields.items() if field in offsets}
    nominals = ", ".join(repr(float(x)) for x in [*ports.nominals, 1.0])  # one extra element, as C has no empty arrays
    macros: dict[str, object] = sizes | places | event_macros(ports)
    macros |= {"MODEL_NOMINALS": f"{{{nominals}}}", "MODEL_TOKEN": f'"{token}"'}
    macros |= {"WITH_ADJOINT": ""} if version == 3 else {}
    macros |= step_macros(package)
    calls: Mapping[str, tuple[str, Sequence[str]]] = {
        "begin": ("s, u, p, next", ["(next)"]),
        "renew": ("s, u, p, next", ["(next)"]),
        "switch": ("s, u, p, e, out", ["(out)"]),
        **dict.fromkeys(("slope", "observe", "indicate"), ("s, u, p, out", ["(out)"])),
        "along": ("s, u, p, dy, du, dp, out", ["(out)"]),
        "back": ("s, u, p, w, gy, gu, gp", []),
    }
    for text in package.routines:
        word = text.name.removeprefix(f"{package.name}_")
        if word not in calls:
            continue
        head, results = calls[word]
        given = [MACRO_ARGUMENTS[x] for x in text.graph.inputs]
        result_arguments = results or [MACRO_ARGUMENTS[x] for x in text.graph.outputs]
        macros[f"MODEL_{word.upper()}({head})"] = f"{text.name}({', '.join([*given, *result_arguments])})"
    return f"/* {package.title} */\n{header_text(package, macros)}"


def step_macros(package: Package) -> dict[str, object]:
    """Return the macros that call the two functions of `package` for its start and its steps."""
    arguments = ", ".join(f"({x})" for x in package.struct_parameters)
    functions = ("rest", "advance")
    return {f"MODEL_{word.upper()}(s, u, p)": f"{package.name}_{word}({arguments})" for word in functions}


def header_text(package: Package, macros: Mapping[str, object]) -> str:
    """Return a header that includes that of `package` and defines `macros`."""
    lines = [f"#define {word} {text}".rstrip() for word, text in macros.items()]
    return "\n".join([f'#include "{package.name}.h"\n', *lines, ""])


def event_macros(ports: Ports) -> dict[str, str]:
    """Return the macros for the `ports` of a program: event actions, crossing directions and sample clocks."""
    lists = {
        "MODEL_ACTIONS": [str(float(ACTIONS.index(e.action))) for e in ports.events],
        "MODEL_DIRECTIONS": [str(float(e.direction)) for e in ports.events],
        "MODEL_CLOCKS": [f"{{{each!r}, {late!r}}}" for each, late in ports.clocks],
    }
    return {name: f"{{{', '.join(numbers)}}}" for name, numbers in lists.items() if numbers}
