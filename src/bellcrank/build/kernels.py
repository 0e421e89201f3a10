"""From a mechanism to a kernel: the file that knows both towers. A list of stages, each with input and output.

    Mechanism --tree--> Tree --traced--> Graph --source--> text --compiled--> object code --Library--> Kernel

Every stage can be had alone: `graph`, `source`, `kernel`. Object code is kept on disk.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache, partial
from typing import Any

import numpy as np

from bellcrank.build.request import EVEN, Request, cheapest, check, chosen, graph, layer, traced, tree
from bellcrank.emit import cache as store
from bellcrank.emit.cores import kernel as cores
from bellcrank.emit.cpu.host import host
from bellcrank.emit.cpu.kernel import Kernel, Signature
from bellcrank.emit.cpu.library import Library, code_size, compiled
from bellcrank.errors import InputError, unknown
from bellcrank.graph import Graph
from bellcrank.dynamics import QUANTITIES, Method, Quantity, quantity
from bellcrank.model import Mechanism
from bellcrank.scheduling import Machine, Schedule
from bellcrank.build.shipped import untouched
from bellcrank.build.wrenches import extension

__all__ = [
    "DTYPES", "EVEN", "TARGETS", "Request", "bound", "cheapest", "check", "chosen", "graph", "kernel", "layer",
    "rows_per_thread", "source", "traced", "tree",
]  # fmt: skip
TARGETS = ("cpu", "cuda")
DTYPES = ("float64", "float32")
WRENCHES = 7  # their place among the arguments of `kernel`


def rows_per_thread(g: Graph, dtype: str) -> int:
    """States that take about 100 us: below that, waking a thread costs more than it brings."""
    from bellcrank.emit.cpu.costs import costs

    return max(16, round(1e-4 / costs(dtype).predicted(g)))


def source(g: Graph, dtype: str = "float64", threads: int = 1, schedule: Schedule | None = None) -> str:
    """Graph -> LLVM IR with the Python entry."""
    from bellcrank.emit.cpu import entry, llvm  # nor any spelling

    text = cores.source(g, schedule, dtype) if schedule else llvm.source(g, host().lanes(dtype), dtype)
    outputs = [array.shape for array in g.outputs.values()]
    if len(outputs) == 1 and g.inputs:
        limit = 2**62 if threads == 1 else 2 * rows_per_thread(g, dtype)
        text += "\n" + entry.definition(list(g.inputs.values()), outputs[0], dtype, limit)
    return text


def kernel(
    mechanism: Mechanism,
    name: str,
    method: str = "auto",
    target: str = "cpu",
    dtype: str = "float64",
    threads: int = 1,
    frame: str = "",
    wrenches: tuple[str, ...] | list[str] = (),
    machine: str | Machine = "",
    processors: int | None = None,
    actuated: Sequence[str] = (),
) -> Kernel:
    """A compiled quantity. From the cache where this mechanism was compiled before: then nothing is traced. (With a
    method or a joint type of your own in the tables it is traced, and the code found by what came out.)

    threads= shares out the states of a batch; machine="threads" shares out the work on each state. actuated= names the
    joints that are driven, for inverse_dynamics of a mechanism with loops.
    """
    if target not in TARGETS:
        raise InputError(unknown("target", target, TARGETS, "cuda" if target == "gpu" else ""))
    dtype = str(getattr(dtype, "name", getattr(dtype, "__name__", dtype)))  # np.float32 and its dtype are welcome
    if dtype not in DTYPES:
        raise InputError(unknown("dtype", dtype, DTYPES))
    if not isinstance(threads, int | np.integer) or threads < 1:
        raise InputError(f"threads is {threads!r}; expected a whole number from 1 to {os.cpu_count()}.")
    request = Request(name, method, frame, tuple(wrenches), _names(name, actuated))
    check(mechanism, request)
    settings = (
        *(mechanism, name, method, target, dtype, int(threads), frame, tuple(wrenches), machine, processors),
        request.actuated,
    )
    if processors is not None and not machine:
        raise InputError('processors= goes with machine="threads".')
    if target == "cuda":
        if machine or threads > 1:
            raise InputError('threads= and machine= are of the CPU; target="cuda" has a thread for every state.')
        if there := _on_gpu(request, settings):
            return there
        settings = (*settings[:3], "cpu", *settings[4:])
    team = cores.machine(machine, processors, dtype) if machine else None
    if team is not None and threads > 1:
        raise InputError("threads= and machine= exclude each other: one shares out states, the other each state.")
    h = host()
    index = store.key(
        mechanism.fingerprint,
        json.dumps(asdict(request)),
        dtype,
        str(min(threads, 2)),  # decides only how large a batch the Python entry keeps to itself
        h.cpu,
        h.features,
        h.llvm,
        store.package_fingerprint(),
        cores.key(team) if team is not None else "",
    )

    @cache
    def made() -> tuple[Method, Graph]:
        return chosen(mechanism, request, dtype)

    @cache
    def layout() -> Schedule:
        assert team is not None
        return cores.planned(made()[1], team, dtype)

    @cache
    def text() -> str:
        return source(made()[1], dtype, threads, layout() if team is not None else None)

    known = untouched()
    facts, code, cached = _recalled(index) if known else (None, b"", False)
    if facts is None:
        by, g = made()
        code, cached, where = compiled(text())
        facts = {
            "code": where,
            "method": by.name,
            "inputs": {key: list(shape) for key, shape in g.inputs.items()},
            "outputs": {key: list(array.shape) for key, array in g.outputs.items()},
            "rows_per_thread": rows_per_thread(g, dtype) if threads > 1 else 0,
            "code_size": code_size(code),
            "used": layout().used if team is not None else 1,
        }
        if known:
            store.save(f"{index}.json", json.dumps(facts).encode())
    signature = _signature(mechanism, name, facts, dtype)
    extend = None
    if quantity(name).option == "frames" and not wrenches:
        extend = extension(name, partial(_with_wrenches, settings))
    kind = Kernel if team is None else partial(cores.ParallelKernel, layout=layout, machine=team, used=facts["used"])
    return kind(
        signature,
        Library(code),
        method=facts["method"],
        threads=int(threads),
        recipe=(kernel, settings),
        graph=lambda: made()[1],
        source=text,
        cached=cached,
        code_size=facts["code_size"],
        extend=extend,
        parameters=mechanism.parameters,
    )


def _with_wrenches(settings: Sequence[Any], frames: tuple[str, ...]) -> Kernel:
    """The same kernel, with forces on these frames."""
    given = list(settings)
    given[WRENCHES] = frames
    return kernel(*given)


def _signature(mechanism: Mechanism, name: str, facts: Mapping[str, Any], dtype: str) -> Signature:
    q, v = mechanism.columns
    columns = {"q": q, "v": v, "tau": v, "a": v, "dv": v, "p": tuple(mechanism.parameters)}
    return Signature(
        name,
        {key: tuple(shape) for key, shape in facts["inputs"].items()},
        {key: tuple(shape) for key, shape in facts["outputs"].items()},
        dtype,
        facts.get("rows_per_thread") or Signature.rows_per_thread,
        {key: columns[key] for key in facts["inputs"] if key in columns},
    )


def _on_gpu(request: Request, settings: tuple[Any, ...]) -> Kernel | None:
    """The kernel on the GPU; where there is none, one line says so and the CPU does it. settings: those of `kernel`."""
    from bellcrank.emit.cuda import device, straight
    from bellcrank.emit.cuda.kernel import CudaKernel

    mechanism, dtype = settings[0], settings[4]
    if why := device.missing():
        warnings.warn(f"{why} The CPU computes {request.quantity} instead.", RuntimeWarning, stacklevel=3)
        return None
    index = store.key(
        mechanism.fingerprint, json.dumps(asdict(request)), dtype, "cuda", host().llvm, store.package_fingerprint()
    )

    @cache
    def made() -> tuple[Method, Graph]:
        return chosen(mechanism, request, dtype, "cuda")

    known = untouched()
    found = store.load(f"{index}.json") if known else None
    facts = json.loads(found) if found is not None else None
    if facts is None:
        by, g = made()
        facts = {
            "method": by.name,
            "inputs": {key: list(shape) for key, shape in g.inputs.items()},
            "outputs": {key: list(array.shape) for key, array in g.outputs.items()},
            "texts": straight.texts(g, dtype),
        }
        if known:
            store.save(f"{index}.json", json.dumps(facts).encode())
    extend = None
    if quantity(request.quantity).option == "frames" and not request.wrenches:
        extend = extension(request.quantity, partial(_with_wrenches, settings))
    return CudaKernel(
        _signature(mechanism, request.quantity, facts, dtype),
        facts["texts"],
        method=facts["method"],
        recipe=(kernel, settings),
        graph=lambda: made()[1],
        cached=found is not None,
        extend=extend,
        parameters=mechanism.parameters,
    )


def _recalled(index: str) -> tuple[dict[str, Any] | None, bytes, bool]:
    """What an earlier process made for the same request, code and computer."""
    found = store.load(f"{index}.json")
    facts = json.loads(found) if found is not None else None
    code = store.load(facts["code"]) if facts is not None else None
    return (facts, code, True) if code is not None else (None, b"", False)


# -- quantities as attributes of a mechanism


def bound(mechanism: Mechanism, name: str) -> Callable[..., Any] | None:
    """What `mechanism.<name>` is: a kernel's own entry, or, where a frame is needed, a function that picks one."""
    if name not in QUANTITIES:
        return None
    q = QUANTITIES[name]
    if q.driven and mechanism.loops:
        return _of_actuated(mechanism, q)
    if q.option != "frame":
        return kernel(mechanism, name).function

    @cache
    def made(frame: str) -> Callable[..., Any]:
        return kernel(mechanism, name, frame=frame).function

    def of_frame(*args: Any, frame: str = "", **named: Any) -> Any:
        if not frame and args and isinstance(args[-1], str):
            args, frame = args[:-1], args[-1]
        return made(frame)(*args, **named)

    of_frame.__name__ = name
    of_frame.__doc__ = f"{name}({', '.join(q.inputs)}, frame): {q.what}"
    return of_frame


def _of_actuated(mechanism: Mechanism, q: Quantity) -> Callable[..., Any]:
    """A function that takes the names of the driven joints: each set of them is a kernel of its own."""

    @cache
    def made(joints: tuple[str, ...]) -> Callable[..., Any]:
        return kernel(mechanism, q.name, actuated=joints).function

    def of_actuated(*args: Any, actuated: Sequence[str] = (), **named: Any) -> Any:
        return made(_names(q.name, actuated))(*args, **named)

    of_actuated.__name__ = q.name
    of_actuated.__doc__ = f"{q.name}({', '.join(q.inputs)}, actuated=[joints]): {q.what}"
    return of_actuated


def _names(name: str, actuated: Any) -> tuple[str, ...]:
    if isinstance(actuated, str) or not all(isinstance(joint, str) for joint in actuated):
        raise InputError(f'{name}: actuated is {actuated!r}; expected a list of joints, as in actuated=["crank"].')
    return tuple(actuated)
