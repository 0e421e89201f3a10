"""A machine, or functions, as WebAssembly: a module, JavaScript that calls it, and TypeScript types.

NAME.wasm needs nothing but JavaScript's Math. NAME.js (sources/machine.js below a description of the module) loads it
in a browser, in a worker or in Node. NAME.d.ts declares the names as types, so that an editor completes them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.emit.c.exported_program import CONSTANT_FIELDS, ExportedProgram
from bellcrank.emit.wasm import LinkedModule, wasm_module
from bellcrank.exporting.compilers import SOURCES
from bellcrank.exporting.export_content import Export
from bellcrank.graph import Graph
from bellcrank.quoting import comment, stem
from bellcrank.sim.run_arguments import MAX_STEPS_PER_CALL
from bellcrank.version import __version__

TYPES_TEMPLATE = """/** {title} */
export type State = {states};
export type Input = {inputs};
export type Parameter = {parameters};
export type Output = {outputs};
export type Function = {functions};

/** Load the module from the file beside this one, or from bytes, a URL or a compiled module. Each call creates another
 *  instance. */
export declare function load(source?: string | URL | BufferSource | WebAssembly.Module): Promise<Machine>;

export declare class Machine {{
  /** s */
  readonly t: number;
  readonly names: (State | Input | Parameter | Output)[];
  /** Reset to the initial state, default inputs and default parameters. */
  reset(): void;
  /** Reset the integrator's memory; call it after you changed the state. */
  start(): void;
  get(name: State | Input | Parameter | Output): number;
  /** Set a state (then call start), an input or a parameter. */
  set(name: State | Input | Parameter, value: number): void;
  /** Take `count` steps, 0 to 1e8; another count is a RangeError.
   *  Return 0, or a status code: 2 a number is not finite, 4 an event, 6 the loops cannot be closed. */
  step(count?: number): number;
  /** Compute all outputs, in the order of their names. */
  observe(): Float64Array;
  /** Compute the time derivatives of the states, in their order. */
  rates(): Float64Array;
  /** Copy the complete state, inputs and parameters; restore sets them again, exactly. */
  save(): Float64Array[];
  restore(saved: Float64Array[]): void;
  /** Call a function with numbers and arrays. Return arrays by name, stored by rows; the next call overwrites them. */
  call(name: Function, ...given: (number | ArrayLike<number>)[]): Record<string, Float64Array>;
}}
"""


def wasm_files(content: Export) -> dict[str, bytes]:
    """Return the files of the export `content` by name."""
    name, (code, about) = stem(content.name), compile_module(content)
    title = f"{comment(content.name)} as WebAssembly; made by bellcrank {__version__}"
    script = (
        f"// {title}. Generated file. Do not edit; generate it again.\n"
        f"const about = {json.dumps(about | {'file': f'./{name}.wasm'})};\n"
    )
    texts = {
        f"{name}.js": script + (SOURCES / "machine.js").read_text("utf-8"),
        f"{name}.d.ts": type_declarations(title, about),
    }
    return {f"{name}.wasm": code, **{file: text.encode() for file, text in texts.items()}}


def compile_module(content: Export) -> tuple[bytes, dict[str, Any]]:
    """Return the module of the export `content`, and the description of it that a caller needs."""
    s = content.stepper
    machine_graphs = {"slope": s.slope, "see": s.observe} if s is not None else {}
    symbols = {f"call_{k}": graph for k, graph in enumerate(content.graphs.values())}
    numbers = sum(max(1, x["size"]) for g in content.graphs.values() for part in _arrays(g).values() for x in part)
    if s is not None:
        numbers += 2 * s.program.size + len(s.inputs) + len(s.parameters) + len(s.outputs) + s.size + 8
    wasm = wasm_module(s.program if s is not None else None, {**machine_graphs, **symbols}, 8 * numbers + 4096)
    functions = [
        {"name": name, "symbol": symbol, **_arrays(graph)}
        for (name, graph), symbol in zip(content.graphs.items(), symbols, strict=True)
    ]
    about = {"heap": wasm.heap, "slots": wasm.slots, "functions": functions}
    return wasm.code, about | ({"machine": _machine(s, machine_graphs, wasm)} if s is not None else {})


def _arrays(graph: Graph) -> dict[str, list[dict[str, Any]]]:
    return {
        "inputs": [{"name": x, "size": math.prod(shape)} for x, shape in graph.inputs.items()],
        "outputs": [{"name": x, "size": int(array.size)} for x, array in graph.outputs.items()],
    }


def _machine(s: ExportedProgram, graphs: Mapping[str, Graph], code: LinkedModule) -> dict[str, Any]:
    places = s.program.layout.places
    wanted = ("live", "status", "step", "begin", "end", "tried", "grid")
    return {
        "states": list(s.program.ports.elements), "inputs": [m.name for m in s.inputs],
        "parameters": [m.name for m in s.parameters], "outputs": [m.name for m in s.outputs],
        "usual": [m.value for m in s.inputs], "nominal": [m.value for m in s.parameters], "first": initial_state(s),
        "watched": s.multi_tick, "fresh": places["fresh"] if s.program.renew is not None else -1,
        "places": {word: places[word] for word in wanted if word in places},
        "arguments": {word: list(graph.inputs) for word, graph in graphs.items()}, "step": s.step,
        "most": MAX_STEPS_PER_CALL,
    }  # fmt: skip


def initial_state(s: ExportedProgram) -> list[float]:
    """Return the initial state of the whole program of the stepper `s`."""
    layout, out = s.program.layout, np.zeros(s.program.size)
    for place, x in layout.constants(CONSTANT_FIELDS | {"hit": 0.0}).items():
        out[place] = x
    members = iter(s.state)
    for places in s.kept_indices.values():
        for place in places:
            out[place] = next(members).value
    return [float(x) for x in out]


def type_declarations(title: str, about: Mapping[str, Any]) -> str:
    """Return the TypeScript declarations of the module described by `about`, under `title`."""
    machine = about.get("machine", {})
    kinds = {word: literal_union(machine.get(word, [])) for word in ("states", "inputs", "parameters", "outputs")}
    return TYPES_TEMPLATE.format(title=title, **kinds, functions=literal_union([f["name"] for f in about["functions"]]))


def literal_union(names: Sequence[str]) -> str:
    """Return the TypeScript union of `names` as string literals."""
    return " | ".join(json.dumps(name) for name in names) or "never"
