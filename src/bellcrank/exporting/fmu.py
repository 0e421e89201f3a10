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

from bellcrank.atomic_file import write_whole
from bellcrank.emit.c.package import Package
from bellcrank.emit.c.stepper import Stepper
from bellcrank.emit.cpu.pool import shared
from bellcrank.errors import InputError
from bellcrank.exporting import costs, fmi_xml
from bellcrank.exporting.compilers import PLATFORMS, chosen, command, here, library
from bellcrank.exporting.things import Export, silent
from bellcrank.exporting.variables import Variables
from bellcrank.graph import Graph, Ports, Recursion
from bellcrank.graph.inline import inlined, moved
from bellcrank.graph.variations import tangent
from bellcrank.nodes.tape import Tape
from bellcrank.sim.amounts import MOST_STEPS_AT_ONCE

SOURCES = Path(__file__).parent / "sources"
MOVED = ("y", "u", "p")  # derivatives exist with respect to these
REMEDY = "Its derivatives are written out: take fewer bodies, or the C package, which has none unless asked."
ACTIONS = ("record", "stop", "switch")  # the index is the code in instance.h
# Arguments of a machine's functions, as the macros of model.h name them.
ARRAYS = {
    "t": "(s)", "y": "((s) + 1)", "s": "(s)", "u": "(u)", "p": "(p)",
    "e": "(e)", "d_y": "(dy)", "d_u": "(du)", "d_p": "(dp)", "w_all": "(w)",
    "g_y": "(gy)", "g_u": "(gu)", "g_p": "(gp)",
}  # fmt: skip


def write_fmu(
    found: Export, path: Path, version: int, platforms: Sequence[str] | str, tell: Callable[[str], None] = silent
) -> Path:
    """Write a machine as an FMU.

    Parameters
    ----------
    found
        Export with a machine that takes steps.
    path
        File to write.
    version
        FMI version, 2 or 3.
    platforms
        Platforms to compile for, or "all".
    tell
        Called with a text for each stage.

    Returns
    -------
    Path
        The written file.
    """
    if found.stepper is None:
        raise InputError("an FMU is a machine that takes steps; give a Mechanism without functions=, or a System.")
    targets = [t for t in chosen(platforms) if version == 3 or PLATFORMS[t][1]]
    for target in (t for t in targets if t != here()):
        command(target)  # raises before any work if its compiler is missing
    if not rolled(found.stepper):
        work = costs.BOTH_WAYS * found.stepper.slope.count().arithmetic * -(-len(targets) // (os.cpu_count() or 1))
        costs.announce(f"export of {found.name} as an FMU", work, REMEDY)
    files = contents(found, version, targets, tell)

    def zipped(stream: IO[bytes]) -> None:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(zipfile.ZipInfo(name, (2000, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)

    return write_whole(path, zipped, "Export")


def contents(
    found: Export, version: int, targets: Sequence[str], tell: Callable[[str], None] = silent
) -> dict[str, bytes | str]:
    """Return all files of the FMU by name; its binaries are compiled in parallel.

    Parameters
    ----------
    found, version, tell
        As in write_fmu.
    targets
        Platforms to compile for.
    """
    assert found.stepper is not None
    package = Package(found.name, derivatives(found.stepper, version), found.stepper)
    own = {name: text for name, text in package.files.items() if name.endswith((".c", ".h")) and name != "main.c"}
    text = {name: (SOURCES / name).read_text("utf-8") for name in ("instance.h", f"fmi{version}.c")}
    token = hashlib.sha256("".join([*own.values(), *text.values()]).encode()).hexdigest()[:32]
    sources = {**own, **text, "model.h": model_header(package, token, version)}
    variables = Variables(found.stepper)
    about = fmi_xml.About(found.name, package.name, token, found.stepper, tuple(sources))
    made: dict[str, bytes | str] = {"modelDescription.xml": fmi_xml.description(about, variables, version)}
    made |= {f"sources/{name}": text for name, text in sources.items()}
    if version == 3:
        made["sources/buildDescription.xml"] = fmi_xml.build_description(about)
    left = list(targets)

    def binary(target: str) -> bytes:
        code = library(sources, target, portable=True)
        left.remove(target)
        tell(f"compiling for {', '.join(left)}" if left else "writing")
        return code

    tell(f"compiling for {', '.join(left)}")
    codes = shared(lambda k: binary(targets[k]), len(targets), os.cpu_count() or 1)
    for target, code in zip(targets, codes, strict=True):
        _, old, suffix = PLATFORMS[target]
        made[f"binaries/{target if version == 3 else old}/{package.name}{suffix}"] = code
    return made


def unknowns(s: Stepper) -> Graph:
    """Return the graph (t, y, u, p) -> rates, outputs and event functions of the stepper `s`, concatenated.

    They have nearly all operations in common, and so have their derivatives.
    """
    graphs = [s.slope, s.observe, *([s.indicate] if s.program.ports.events else [])]
    if not rolled(s):
        graphs = [inlined(g) for g in graphs]
    tape, inputs = Tape(), {name: shape for g in graphs for name, shape in g.inputs.items()}
    given = {at: tape.node("input", *at) for g in graphs for at in g.elements}
    found = [x for g in graphs for array in moved(g, tape, given).values() for x in array.flat]
    every = np.empty(len(found), dtype=object)
    every[:] = found
    return Graph(f"{s.slope.name}.all", inputs, {"all": every}, tape)


def rolled(s: Stepper) -> bool:
    """Return whether link classes of the stepper `s` are rolled loops; then those of its derivatives are, too."""
    called = [*s.slope.calls, *s.observe.calls]
    return any(isinstance(g, Recursion) for g in called) and not any(g.only for g in called)


def derivatives(s: Stepper, version: int) -> dict[str, Graph]:
    """Return the graphs of all unknowns' directional derivatives and adjoints, for a stepper `s` and an FMI `version`.

    For rolled loops, instance.h computes adjoints from the derivatives along all directions.
    """
    graph = unknowns(s)
    wrt = [x for x in MOVED if x in graph.inputs]
    if rolled(s):
        return {"along": tangent(graph, wrt)}
    along = graph.jvp(wrt)
    found = {"along": Graph(along.name, along.inputs, {"d_all": along.outputs["d_all"]}, along.tape)}
    return found | ({"back": graph.vjp(wrt)} if version == 3 else {})


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
        "MOST_STEPS": repr(MOST_STEPS_AT_ONCE), "REMEMBERS": int(bool(s.fields.get("memory"))),
    }  # fmt: skip
    step = "step" if s.watched else "h"
    fields = {
        "steps": "n",
        "begin": "begin",
        "step": step,
        "next_step": "h",
        "fresh": "fresh",
        "phases": "phases",
        "grid": "grid",
    }
    fields |= {"rtol": "rtol", "atol": "atol"}
    places = {f"AT_{word.upper()}": s.places[field] for word, field in fields.items() if field in s.places}
    lines = [f"#define {word} {n}" for word, n in (sizes | places).items()]
    lines += tables(ports)
    usual = ", ".join(repr(float(x)) for x in [*ports.nominals, 1.0])  # one extra element, as C has no empty arrays
    lines.append(f"#define MODEL_NOMINALS {{{usual}}}")
    lines += [f'#define MODEL_TOKEN "{token}"', *(["#define WITH_ADJOINT"] if version == 3 else [])]
    rest = ", ".join(f"({x})" for x in package.handed)
    lines.append(f"#define MODEL_REST(s, u, p) {package.name}_rest({rest})")
    lines.append(f"#define MODEL_ADVANCE(s, u, p) {package.name}_advance({rest})")
    calls: Mapping[str, tuple[str, Sequence[str]]] = {
        "begin": ("s, u, p, next", ["(next)"]),
        "renew": ("s, u, p, next", ["(next)"]),
        "switch": ("s, u, p, e, out", ["(out)"]),
        **dict.fromkeys(("slope", "observe", "indicate"), ("s, u, p, out", ["(out)"])),
        "along": ("s, u, p, dy, du, dp, out", ["(out)"]),
        "back": ("s, u, p, w, gy, gu, gp", []),
    }
    for text in package.texts:
        word = text.name.removeprefix(f"{package.name}_")
        if word not in calls:
            continue
        head, results = calls[word]
        given = [ARRAYS[x] for x in text.graph.inputs]
        filled = results or [ARRAYS[x] for x in text.graph.outputs]
        lines.append(f"#define MODEL_{word.upper()}({head}) {text.name}({', '.join([*given, *filled])})")
    return "\n".join([f"/* {package.title} */", f'#include "{package.name}.h"\n', *lines, ""])


def tables(ports: Ports) -> list[str]:
    """Return the macros for the `ports` of a program: event actions, crossing directions and sample clocks."""
    found = list[str]()
    if ports.events:
        actions = ", ".join(str(float(ACTIONS.index(e.action))) for e in ports.events)
        directions = ", ".join(str(float(e.direction)) for e in ports.events)
        found += [f"#define MODEL_ACTIONS {{{actions}}}", f"#define MODEL_DIRECTIONS {{{directions}}}"]
    if ports.clocks:
        rows = ", ".join(f"{{{each!r}, {late!r}}}" for each, late in ports.clocks)
        found.append(f"#define MODEL_CLOCKS {{{rows}}}")
    return found
