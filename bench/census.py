"""`python -m bench.census`: a fingerprint of everything that the package generates.

    python -m bench.census                  write bench/census.json (some minutes)
    python -m bench.census --check          compare with it, print what differs, exit with 1 if anything does
    python -m bench.census --only chain     only the groups whose names begin like this
    python -m bench.census --exact --out before.json    keep every bit of the constants: for two commits on one computer

A census shows that a refactoring changed nothing. It holds, for built-in mechanisms, every quantity and every method,
the number of operations, the critical path and a hash of the LLVM IR, C and PTX text in both precisions; for systems,
the same of the program of every integrator and form; equations, schedules and counts as the command line prints them;
and the public names with their parameters.

Texts depend neither on the processor (code is made for x86-64-v3) nor on a calibration (of methods that compute the
same, the one with the fewest operations is taken). The position in which loops are closed comes from linear algebra
whose last bits differ between computers, so constants are rounded to five digits before they are hashed. A quantity
that is refused is listed with the class of the error; its message is not part of the census.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import os
import re
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

MANIFEST = Path(__file__).with_name("census.json")
CPU = "x86-64-v3"
DTYPES = ("float64", "float32")
LANES = {"float64": 4, "float32": 8}
LARGEST_PTX = 1_200  # operations: PTX of larger graphs takes seconds each, and is printed by the same code
LARGEST_SOURCE = 60_000  # operations: beyond, only counts are compared
FORMS = ("minimal", "projected", "lagrange")

# Built-in mechanisms by their names on the command line; several sizes where another code path begins.
MECHANISMS = (
    *("pendulum", "planar3r", "puma600", "puma_saha", "stanford", "torso", "excavator", "slider_fourbar", "four_bar"),
    *("n_four_bar:2", "four_bars:3", "parallel_cranks:4", "ring:6", "track:12", "rope:8", "scissor:3", "rod_pendulum"),
    *("andrews", "bricard", "stewart", "delta", "double_wishbone", "excavator_linkage"),
    *("chain:8", "chain:70", "tree:15", "tree:127", "tied_tree:31", "random_tree:12"),
)
# Mechanisms small enough for every method and every schedule.
SMALL = ("pendulum", "planar3r", "puma600", "stanford", "torso", "four_bar", "chain:8", "tree:7")
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.census", description="Fingerprint of all generated text.")
    parser.add_argument("--check", action="store_true", help="compare with the manifest instead of writing it")
    parser.add_argument("--only", default="", metavar="NAME", help="only the groups whose names begin like this")
    parser.add_argument("--out", type=Path, default=MANIFEST, metavar="FILE", help="the manifest")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), metavar="N", help="processes")
    parser.add_argument("--exact", action="store_true", help="do not round constants; needs --out")
    args = parser.parse_args()
    if args.exact and args.out == MANIFEST:
        parser.error("--exact holds on one computer only: name another file with --out")
    os.environ["CENSUS_EXACT"] = str(int(args.exact))
    start_time = time.perf_counter()
    census = collect(args.only, args.workers)
    print(f"{len(census):,} entries in {time.perf_counter() - start_time:.0f} s")
    if args.check:
        sys.exit(print_differences(json.loads(args.out.read_text()), census, args.only))
    other_groups = json.loads(args.out.read_text()) if args.only and args.out.exists() else {}
    lines = [f"{json.dumps(key)}: {json.dumps(row)}" for key, row in sorted((other_groups | census).items())]
    args.out.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def collect(only: str, workers: int) -> dict[str, Row]:
    """Return all entries of the groups whose names begin with `only`."""
    groups = {name: job for name, job in jobs().items() if name.startswith(only)}
    census: dict[str, Row] = {}
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_prepare) as pool:
        for rows in pool.map(_run, groups, groups.values()):
            census |= rows
    return census


def _prepare() -> None:
    os.environ["BELLCRANK_CPU"] = CPU


def _run(name: str, job: Callable[[], dict[str, Row]]) -> dict[str, Row]:
    start_time = time.perf_counter()
    rows = {f"{name}/{key}" if key else name: row for key, row in job().items()}
    print(f"  {name}: {len(rows)} in {time.perf_counter() - start_time:.1f} s", file=sys.stderr, flush=True)
    return rows


def print_differences(before: dict[str, Row], now: dict[str, Row], only: str) -> int:
    """Print every entry that differs; return 1 where any does."""
    before = {key: row for key, row in before.items() if key.startswith(only)}
    differing = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
    for key in differing:
        print(f"{key}\n  before {before.get(key, 'missing')}\n  now    {now.get(key, 'missing')}")
    print(f"{len(differing)} of {len(before.keys() | now.keys()):,} entries differ")
    return int(bool(differing))


def jobs() -> dict[str, Callable[[], dict[str, Row]]]:
    """Return the groups of the census, slow ones first."""
    quantities = {f"{name}/{dtype}": partial(quantities_of, name, dtype) for name in MECHANISMS for dtype in DTYPES}
    slow = ("chain:70", "tree:127", "stewart", "delta", "excavator_linkage")
    return {
        **{key: job for key, job in quantities.items() if key.startswith(slow)},
        **{f"programs/{name}": partial(programs_of, name) for name in systems()},
        **{key: job for key, job in quantities.items() if not key.startswith(slow)},
        **{f"methods/{name}": partial(methods_of, name) for name in SMALL},
        **{f"equations/{name}": partial(equations_of, name) for name in ("pendulum", "planar3r", "four_bar")},
        "command line": command_line,
        "public names": public_names,
    }


COMMENTS = {
    "llvm": re.compile(r";[^\n]*"),
    "c": re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL),
    "ptx": re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL),
}


CONSTANT = re.compile(
    r"\b0x(?P<llvm>[0-9A-F]{16})\b|\b0d(?P<double>[0-9A-F]{16})\b|\b0f(?P<single>[0-9A-F]{8})\b"
    r"|(?<![\w.])(?P<decimal>\d+\.\d*(?:e[+-]?\d+)?)f?\b"
)
NOISE = 1e-11  # constants that are zero except for rounding


def rounded_constant(found: re.Match[str]) -> str:
    """Return a floating-point constant of generated code with five digits."""
    if bits := found["llvm"] or found["double"]:
        value = struct.unpack(">d", bytes.fromhex(bits))[0]
    elif found["single"]:
        value = struct.unpack(">f", bytes.fromhex(found["single"]))[0]
    else:
        value = float(found["decimal"])
    return f"{value:.4e}" if abs(value) > NOISE else "0"


def digest(text: str, target: str = "") -> str:
    """Return a hash of a text; comments of code are left out, and constants of code are rounded."""
    code = COMMENTS[target].sub("", text) if target else text
    if target and os.environ["CENSUS_EXACT"] == "0":
        code = CONSTANT.sub(rounded_constant, code)
    return hashlib.sha256("\n".join(line.rstrip() for line in code.splitlines() if line.strip()).encode()).hexdigest()[
        :16
    ]


def mechanism(name: str) -> Any:
    """Return a built-in mechanism by the name that the command line takes."""
    from bellcrank.cli import load_mechanism as mechanism_by_name

    return mechanism_by_name(name)


# -- quantities


def fewest_operations(graphs: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Return the graph with the fewest operations; the first of equals."""
    return min(graphs, key=lambda pair: pair[1].count().arithmetic)


def quantities_of(name: str, dtype: str) -> dict[str, Row]:
    """Return a row for each quantity of a mechanism."""
    from bellcrank.dynamics.quantities import QUANTITIES

    m = mechanism(name)
    return {quantity: row_of(m, quantity, "auto", dtype) for quantity in QUANTITIES}


def methods_of(name: str) -> dict[str, Row]:
    """Return a row for each method and each quantity that it solves."""
    from bellcrank.dynamics import METHODS
    from bellcrank.dynamics.quantities import QUANTITIES

    m = mechanism(name)
    return {
        f"{by}/{quantity}": row_of(m, quantity, by, "float64")
        for by, method in METHODS.items()
        for quantity in QUANTITIES
        if quantity in method.solves
    }


def row_of(m: Any, quantity: str, method: str, dtype: str) -> Row:
    """Return counts, critical path and hashes of one graph; or the class of the error that refuses it."""
    import bellcrank as bc
    from bellcrank.build import graphs
    from bellcrank.dynamics.quantities import QUANTITIES, Request

    frame = list(m.frames)[-1] if QUANTITIES[quantity].option == "frame" else ""
    try:
        by, graph = graphs.choose_graph(m, Request(quantity, method, frame), fewest_operations)
    except bc.BellcrankError as error:
        return {"refused": type(error).__name__}
    return {"method": by.name, **counts_of(graph), **texts_of(graph, dtype)}


def counts_of(graph: Any) -> Row:
    """Return the operations of a graph and its critical path, which graphs with rolled loops do not have."""
    row: Row = {"operations": dict(graph.count().by_kind)}
    try:
        row["span"] = graph.span()
    except Exception as error:
        row["span"] = type(error).__name__
    return row


def texts_of(graph: Any, dtype: str) -> Row:
    """Return a hash of the text of each target."""
    from bellcrank.emit.c import c99
    from bellcrank.emit.cpu.target import Cpu
    from bellcrank.emit.cuda.target import Cuda

    operations = graph.count().arithmetic
    sources: dict[str, Callable[[], str]] = {}
    if operations <= LARGEST_SOURCE:
        sources["llvm"] = lambda: Cpu(dtype).source(graph)
        sources["c"] = lambda: "".join(c99.source(graph, dtype, "census", {}).values())
    if operations <= LARGEST_PTX:
        sources["ptx"] = lambda: Cuda(dtype).source(graph)
    return {target: digest_or_error(text, target) for target, text in sources.items()}


def digest_or_error(text: Callable[[], str], target: str) -> str:
    """Return the hash of the text that a function returns, or the class of the error that it raises."""
    import bellcrank as bc

    try:
        return digest(text(), target)
    except bc.BellcrankError as error:
        return type(error).__name__


# -- programs of systems


def systems() -> dict[str, Callable[[], Any]]:
    """Return small systems that cover the parts of a run: controllers, samples, contacts, closed loops."""

    def controlled(t: Any, q: Any, v: Any, x: Any, u: Any) -> list[Any]:
        return [-20.0 * a - 2.0 * b for a, b in zip(q, v, strict=True)]

    def bare(name: str) -> Any:
        return lambda: _system(name)

    return {
        **{name: bare(name) for name in ("pendulum", "puma600", "four_bar", "slider_fourbar", "bricard", "rope:4")},
        "puma600 with control": lambda: _system("puma600", control=controlled),
        "planar3r with samples": lambda: _sampled("planar3r"),
        "ball on the ground": _ball,
        "excavator": _excavator,
    }


def _system(name: str, **parts: Any) -> Any:
    import bellcrank as bc

    return bc.system(mechanism(name), **parts)


def _sampled(name: str) -> Any:
    import bellcrank as bc

    m = mechanism(name)
    hold = bc.Sampled(lambda t, q, v, x, u: dict.fromkeys(m.columns[1], -5.0 * next(iter(q.values()))), every=0.01)
    return bc.system(m, control=hold)


def _ball() -> Any:
    import bellcrank as bc

    build = bc.Builder("ball")
    build.body("ball", mass=1.0, inertia=(0.004, 0.004, 0.004))
    build.joint("free", "floating", "ground", "ball")
    floor = bc.forces.Contact("floor", "ground", "ball", bc.forces.Plane(), bc.forces.Sphere(0.1), friction=0.3)
    return bc.system(build.build(), elements=[floor])


def _excavator() -> Any:
    from bellcrank.excavators.rotary_machine import machine

    return machine().system


def programs_of(name: str) -> dict[str, Row]:
    """Return a row for each integrator and form of a system."""
    import bellcrank as bc
    from bellcrank.integrate import INTEGRATORS

    plant = systems()[name]()
    forms = FORMS if plant.mechanism.loops else ("",)
    rows: dict[str, Row] = {}
    for integrator in INTEGRATORS:
        for form in forms:
            settings = {"form": form} if form else {}
            key = f"{integrator}/{form}" if form else integrator
            try:
                simulator = bc.Simulator(plant, integrator=integrator, **settings)
                rows |= {f"{key}/{mode}": row for mode, row in program_rows(simulator)}
            except bc.BellcrankError as error:
                rows[key] = {"refused": type(error).__name__}
    rows["c"] = c_package(plant)
    return rows


def program_rows(simulator: Any) -> Iterator[tuple[str, Row]]:
    """Yield a row for fixed steps, or for adaptive ones, and one for each part of the program."""
    adaptive = simulator.integrator.adaptive
    for mode in [(True, False), (True, True)] if adaptive else [None]:
        program = simulator.program(mode)
        names = {None: "fixed", (True, False): "adaptive", (True, True): "on a grid"}
        row: Row = {part: graph.count().arithmetic for part, graph in program.graphs.items()}
        for dtype in DTYPES:
            row[dtype] = digest_or_error(partial(_loop_text, program, dtype), "llvm")
        yield names[mode], row


def _loop_text(program: Any, dtype: str) -> str:
    from bellcrank.emit.cpu import run_loop

    text, slots = run_loop.source(program, LANES[dtype], LANES[dtype], dtype)
    return f"{text}\n{slots}"


def c_package(plant: Any) -> Row:
    """Return a hash of the C text of a system's step."""
    import bellcrank as bc

    try:
        with TemporaryDirectory() as folder:
            bc.export(plant, Path(folder) / "package", to="c")
            files = sorted(Path(folder).rglob("*.[ch]"))
            return {file.name: digest(file.read_text(), "c") for file in files}
    except bc.BellcrankError as error:
        return {"refused": type(error).__name__}


# -- texts that people read


def equations_of(name: str) -> dict[str, Row]:
    """Return hashes of the equations of motion, in every language."""
    import bellcrank as bc
    from bellcrank.build import equations, paper_notation

    m = mechanism(name)
    languages = ("latex", "python", "sympy", "c")
    try:
        graph = paper_notation.motion_graph(m)
    except bc.BellcrankError as error:
        return {"": {"refused": type(error).__name__}}
    return {"": {to: digest(equations.equation_text(m, graph, to, 0, 60, "", standalone=True)) for to in languages}}


TIMES = re.compile(r'"(?:measured|predicted|choice)": [^,\n}]*')  # of kernels, on this computer


def command_line() -> dict[str, Row]:
    """Return hashes of the numbers that commands print as JSON."""
    from typer.testing import CliRunner

    from bellcrank.cli import app

    commands = [
        *(["count", name, "--json"] for name in SMALL),
        *(["count", name, "--all", "--json"] for name in ("puma600", "torso")),
        *(["schedule", name, "--json"] for name in ("puma600", "torso", "chain:8")),
    ]
    rows = {}
    for command in commands:
        result = CliRunner().invoke(app, command)
        rows[" ".join(command)] = {"exit": result.exit_code, "output": digest(TIMES.sub("", result.stdout))}
    return rows


def public_names() -> dict[str, Row]:
    """Return the parameters of every public function, and of every public method of every public class."""
    import bellcrank as bc

    rows: dict[str, Row] = {}
    for name in bc.__all__:
        thing = getattr(bc, name)
        rows[name] = parameters(thing)
        if inspect.isclass(thing):
            for method, value in inspect.getmembers(thing):
                if not method.startswith("_"):
                    rows[f"{name}.{method}"] = parameters(value)
        elif inspect.ismodule(thing):
            rows |= {f"{name}.{each}": parameters(getattr(thing, each)) for each in getattr(thing, "__all__", ())}
    return rows


def parameters(thing: Any) -> Row:
    """Return names, kinds and defaults of parameters; annotations may change their spelling."""
    if not callable(thing):
        return {"is": "a module" if inspect.ismodule(thing) else "an attribute"}
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return {"is": "callable"}
    signature_texts = [f"{p.kind.name} {p.name}{_default(p.default)}" for p in signature.parameters.values()]
    return {"parameters": signature_texts}


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return ""
    plain = isinstance(value, str | int | float | bool | tuple | type(None))
    return f" = {value!r}" if plain else f" = a {type(value).__name__}"


if __name__ == "__main__":
    main()
