"""A machine, or functions, as WebAssembly: a module, JavaScript that calls it, and TypeScript types.

NAME.wasm needs nothing but JavaScript's Math. NAME.js (sources/machine.js below a description of the module) loads it
in a browser, in a worker or in Node. NAME.d.ts declares the names as types, so that an editor completes them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.emit.c.stepper import FIXED, Stepper
from bellcrank.emit.wasm.module import Wasm, module
from bellcrank.exporting.folder import write_folder
from bellcrank.exporting.things import Export
from bellcrank.graph import Graph
from bellcrank.quoting import comment, stem
from bellcrank.sim.amounts import MOST_STEPS_AT_ONCE
from bellcrank.version import __version__

SOURCES = Path(__file__).parent / "sources"
TYPES = """/** {title} */
export type State = {states};
export type Input = {inputs};
export type Parameter = {parameters};
export type Output = {outputs};
export type Function = {functions};

/** From the file beside this one, or from bytes, a URL or a compiled module. Each call makes another instance. */
export declare function load(source?: string | URL | BufferSource | WebAssembly.Module): Promise<Machine>;

export declare class Machine {{
  /** s */
  readonly t: number;
  readonly names: (State | Input | Parameter | Output)[];
  /** Back to the beginning, with the usual inputs and parameters. */
  reset(): void;
  /** To be called after the state was changed by hand. */
  start(): void;
  get(name: State | Input | Parameter | Output): number;
  /** A state (then call start), an input or a parameter. */
  set(name: State | Input | Parameter, value: number): void;
  /** So many steps, 0 to 1e8; another count is a RangeError.
   *  Gives 0, or why it stopped before: 2 a number is not finite, 4 an event, 6 loops cannot be closed. */
  step(count?: number): number;
  /** All outputs, in the order of their names. */
  observe(): Float64Array;
  /** How fast the states change, in their order. */
  rates(): Float64Array;
  /** All that it remembers, and back to it, to the bit. */
  save(): Float64Array[];
  restore(saved: Float64Array[]): void;
  /** Numbers and arrays in, arrays out by name, row by row; they are overwritten by the next call. */
  call(name: Function, ...given: (number | ArrayLike<number>)[]): Record<string, Float64Array>;
}}
"""


def write_wasm(found: Export, path: Path) -> Path:
    """Write the export `found` into the folder `path`."""
    return write_folder(path, files(found))


def files(found: Export) -> dict[str, bytes]:
    """Return the files of the export `found` by name."""
    name, (code, about) = stem(found.name), made(found)
    title = f"{comment(found.name)} as WebAssembly; made by bellcrank {__version__}"
    script = (
        f"// {title}. Do not edit: make it anew.\nconst about = {json.dumps(about | {'file': f'./{name}.wasm'})};\n"
    )
    texts = {
        f"{name}.js": script + (SOURCES / "machine.js").read_text("utf-8"),
        f"{name}.d.ts": types(title, about),
    }
    return {f"{name}.wasm": code, **{file: text.encode() for file, text in texts.items()}}


def made(found: Export) -> tuple[bytes, dict[str, Any]]:
    """Return the module of the export `found`, and the description of it that a caller needs."""
    s = found.stepper
    own = {"slope": s.slope, "see": s.observe} if s is not None else {}
    symbols = {f"call_{k}": graph for k, graph in enumerate(found.graphs.values())}
    numbers = sum(_sizes(g) for g in found.graphs.values()) + (_room(s) if s is not None else 0)
    code = module(s.program if s is not None else None, {**own, **symbols}, 8 * numbers + 4096)
    functions = [
        {"name": name, "symbol": symbol, **_arrays(graph)}
        for (name, graph), symbol in zip(found.graphs.items(), symbols, strict=True)
    ]
    about = {"heap": code.heap, "slots": code.slots, "functions": functions}
    return code.code, about | ({"machine": _machine(s, own, code)} if s is not None else {})


def _arrays(graph: Graph) -> dict[str, list[dict[str, Any]]]:
    return {
        "inputs": [{"name": x, "size": math.prod(shape)} for x, shape in graph.inputs.items()],
        "outputs": [{"name": x, "size": int(array.size)} for x, array in graph.outputs.items()],
    }


def _sizes(graph: Graph) -> int:
    return sum(max(1, x["size"]) for part in _arrays(graph).values() for x in part)


def _room(s: Stepper) -> int:
    return 2 * s.program.size + len(s.inputs) + len(s.parameters) + len(s.outputs) + s.size + 8


def _machine(s: Stepper, graphs: Mapping[str, Graph], code: Wasm) -> dict[str, Any]:
    places = s.program.layout.places
    wanted = ("live", "status", "step", "begin", "end", "tried", "grid")
    return {
        "states": list(s.program.ports.elements), "inputs": [m.name for m in s.inputs],
        "parameters": [m.name for m in s.parameters], "outputs": [m.name for m in s.outputs],
        "usual": [m.value for m in s.inputs], "nominal": [m.value for m in s.parameters], "first": first(s),
        "watched": s.watched, "fresh": places["fresh"] if s.program.renew is not None else -1,
        "places": {word: places[word] for word in wanted if word in places},
        "arguments": {word: list(graph.inputs) for word, graph in graphs.items()}, "step": s.step,
        "most": MOST_STEPS_AT_ONCE,
    }  # fmt: skip


def first(s: Stepper) -> list[float]:
    """Return the initial state of the whole program of the stepper `s`."""
    layout, out = s.program.layout, np.zeros(s.program.size)
    for place, x in layout.constants(FIXED | {"hit": 0.0}).items():
        out[place] = x
    members = iter(s.state)
    for places in s.fields.values():
        for place in places:
            out[place] = next(members).value
    return [float(x) for x in out]


def types(title: str, about: Mapping[str, Any]) -> str:
    """Return the TypeScript declarations of the module described by `about`, under `title`."""
    own = about.get("machine", {})
    kinds = {word: union(own.get(word, [])) for word in ("states", "inputs", "parameters", "outputs")}
    return TYPES.format(title=title, **kinds, functions=union([f["name"] for f in about["functions"]]))


def union(names: Sequence[str]) -> str:
    """Return the TypeScript union of `names` as string literals."""
    return " | ".join(json.dumps(name) for name in names) or "never"
