"""From a mechanism to a kernel: the file that knows both towers. A list of stages, each with input and output.

    Mechanism --tree--> Tree --traced--> Graph --source--> text --compiled--> object code --Library--> Kernel

Every stage can be had alone: `graph`, `source`, `kernel`. Object code is kept on disk.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from bellcrank.emit import cache as store
from bellcrank.emit import threads as cores
from bellcrank.emit.host import host
from bellcrank.emit.kernel import Kernel, Signature
from bellcrank.emit.load import Library, code_size, compiled
from bellcrank.errors import InputError, unknown
from bellcrank.graph import Graph, trace
from bellcrank.methods import QUANTITIES, Method, Quantity, able, candidates, method, movable, quantity, shape_of
from bellcrank.methods.closure import analysis
from bellcrank.methods.closure.actuation import actuated
from bellcrank.methods.closure.layer import Layer
from bellcrank.model import Mechanism, Tree, regrouped
from bellcrank.schedule import Machine, Schedule

TARGETS = ("cpu", "cuda")
DTYPES = ("float64", "float32")
EVEN = 1.05  # predicted times that are as good as equal


@dataclass(frozen=True)
class Request:
    """What is asked for: everything that decides the graph, and nothing that does not."""

    quantity: str
    method: str = "auto"
    frame: str = ""
    wrenches: tuple[str, ...] = ()
    actuated: tuple[str, ...] = ()  # joints that are driven; the others of a mechanism with loops are not


def check(mechanism: Mechanism, request: Request) -> None:
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"expected a Mechanism, got {mechanism!r}; bellcrank.read(file) makes one.")
    q = quantity(request.quantity)
    if q.option == "frame":
        if not request.frame:
            names = ", ".join(list(mechanism.frames)[:30])
            raise InputError(
                f'{q.name} needs a frame: {q.name}(..., frame="NAME") or --frame NAME. There are: {names}.'
            )
        mechanism.frame(request.frame)
    elif request.frame:
        raise InputError(f'{q.name} takes no frame; got "{request.frame}".')
    if request.wrenches and q.option != "frames":
        those = ", ".join(name for name, row in QUANTITIES.items() if row.option == "frames")
        raise InputError(f"{q.name} takes no wrenches; {those} do.")
    for name in request.wrenches:
        mechanism.frame(name)
    if request.actuated and not (q.driven and mechanism.loops):
        what = f'"{mechanism.name}" has no loops, so that all joints can be' if q.driven else "inverse_dynamics does"
        raise InputError(f"{q.name}: actuated is {list(request.actuated)}, but {what}. Leave it out.")
    if not mechanism.bodies:
        raise InputError(f'mechanism "{mechanism.name}" has no moving body; there is nothing to compute.')
    if not able(q.name, mechanism.tree):
        raise InputError(f'{q.name} is about loops, and mechanism "{mechanism.name}" has none.')
    if request.method != "auto":
        method(request.method, q.name, mechanism.tree)


# -- stages


def tree(mechanism: Mechanism, name: str, by: Method) -> Tree:
    """Mechanism -> Tree, with emptied bodies where quantity and method allow."""
    return regrouped(mechanism.tree) if quantity(name).regrouped and by.regrouped else mechanism.tree


def layer(mechanism: Mechanism, request: Request, by: Method) -> Method | Layer:
    """What answers: the method itself, or, where there are loops or springs, the layer on top of it."""
    if not mechanism.loops:
        return Layer(by, ()) if mechanism.springs else by
    found = analysis(mechanism)
    driven = quantity(request.quantity).driven
    return Layer(by, found.kept, actuated(mechanism, found, request.actuated) if driven else ())


def traced(mechanism: Mechanism, request: Request, by: Method) -> Graph:
    """Tree -> Graph, by one method."""
    q = quantity(request.quantity)
    form = tree(mechanism, q.name, by)
    function = layer(mechanism, request, by).function(q.name)
    inputs = {name: shape_of(name, form) for name in q.inputs}
    if request.wrenches:
        inputs["wrench"] = shape_of("wrench", form, request.wrenches)

    def body(**symbols: Any) -> dict[str, Any]:
        wrench = symbols.pop("wrench", None)
        options: dict[str, Any] = {"frame": request.frame} if request.frame else {}
        if wrench is not None:
            options |= {"frames": request.wrenches, "wrench": wrench}
        return {q.name: function(form, *symbols.values(), **options)}

    return trace(f"{mechanism.name}.{q.name}", body, inputs, mechanism.parameters)


def graph(
    mechanism: Mechanism,
    name: str,
    method: str = "auto",
    frame: str = "",
    wrenches: tuple[str, ...] = (),
    actuated: Sequence[str] = (),
) -> Graph:
    """The data-flow graph of a quantity."""
    return chosen(mechanism, Request(name, method, frame, tuple(wrenches), tuple(actuated)))[1]


def chosen(mechanism: Mechanism, request: Request, dtype: str = "float64", target: str = "cpu") -> tuple[Method, Graph]:
    """The method asked for, or by "auto" the one whose graph will take the least time on this computer."""
    check(mechanism, request)
    if quantity(request.quantity).inverts:
        movable.check(mechanism)
    if request.method != "auto":
        by = method(request.method, request.quantity, mechanism.tree)
        return by, traced(mechanism, request, by)
    graphs = [(m, traced(mechanism, request, m)) for m in candidates(request.quantity, mechanism.tree)]
    if target == "cuda":
        from bellcrank.emit.cuda import straight

        return straight.cheapest(graphs, dtype)
    return cheapest(graphs, dtype)


def cheapest(graphs: Sequence[tuple[Method, Graph]], dtype: str = "float64") -> tuple[Method, Graph]:
    """By predicted time; of those within the model's own noise, the one with the fewest operations.

    What has no less of anything than another is out before it is asked what things cost here.
    """
    from bellcrank.emit.costs import costs, parts  # what comes from the cache needs no choice

    has = [parts(g) for _, g in graphs]
    graphs = [pair for pair, mine in zip(graphs, has, strict=True) if not any(mine.exceeds(other) for other in has)]
    if len(graphs) == 1:
        return graphs[0]
    times = [costs(dtype).predicted(g) for _, g in graphs]
    even = [pair for pair, t in zip(graphs, times, strict=True) if t <= EVEN * min(times)]
    return min(even, key=lambda pair: pair[1].count().arithmetic)


def rows_per_thread(g: Graph, dtype: str) -> int:
    """States that take about 100 us: below that, waking a thread costs more than it brings."""
    from bellcrank.emit.costs import costs

    return max(16, round(1e-4 / costs(dtype).predicted(g)))


def source(g: Graph, dtype: str = "float64", threads: int = 1, schedule: Schedule | None = None) -> str:
    """Graph -> LLVM IR with the Python entry."""
    from bellcrank.emit import entry, llvm  # nor any spelling

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
    """A compiled quantity. From the cache where this mechanism was compiled before: then nothing is traced.

    threads= shares out the states of a batch; machine="threads" shares out the work on each state. actuated= names the
    joints that are driven, for inverse_dynamics of a mechanism with loops.
    """
    if target not in TARGETS:
        raise InputError(unknown("target", target, TARGETS))
    dtype = str(getattr(dtype, "name", getattr(dtype, "__name__", dtype)))  # np.float32 and its dtype are welcome
    if dtype not in DTYPES:
        raise InputError(unknown("dtype", dtype, DTYPES))
    if not isinstance(threads, int | np.integer) or threads < 1:
        raise InputError(f"threads is {threads!r}; expected a whole number from 1 to {os.cpu_count()}.")
    request = Request(name, method, frame, tuple(wrenches), _names(name, actuated))
    check(mechanism, request)
    if processors is not None and not machine:
        raise InputError('processors= goes with machine="threads".')
    if target == "cuda":
        if machine or threads > 1:
            raise InputError('threads= and machine= are of the CPU; target="cuda" has a thread for every state.')
        recipe = (mechanism, name, method, target, dtype, 1, frame, tuple(wrenches))
        if there := _on_gpu(mechanism, request, dtype, recipe):
            return there
        target = "cpu"
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

    facts, code, cached = _recalled(index)
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
        store.save(f"{index}.json", json.dumps(facts).encode())
    signature = _signature(mechanism, name, facts, dtype)
    extend = None
    if quantity(name).option == "frames" and not wrenches:
        extend = _wrench_kernels(
            mechanism, name=name, method=method, target=target, dtype=dtype, threads=threads, machine=machine,
            processors=processors, actuated=request.actuated,
        )  # fmt: skip
    settings = (
        *(mechanism, name, method, target, dtype, int(threads), frame, tuple(wrenches), machine, processors),
        request.actuated,
    )
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


def _on_gpu(mechanism: Mechanism, request: Request, dtype: str, settings: tuple[Any, ...]) -> Kernel | None:
    """The kernel on the GPU; where there is none, one line says so and the CPU does it."""
    from bellcrank.emit.cuda import device, straight
    from bellcrank.emit.cuda.kernel import CudaKernel

    if why := device.missing():
        warnings.warn(f"{why} The CPU computes {request.quantity} instead.", RuntimeWarning, stacklevel=3)
        return None
    index = store.key(
        mechanism.fingerprint, json.dumps(asdict(request)), dtype, "cuda", host().llvm, store.package_fingerprint()
    )

    @cache
    def made() -> tuple[Method, Graph]:
        return chosen(mechanism, request, dtype, "cuda")

    found = store.load(f"{index}.json")
    facts = json.loads(found) if found is not None else None
    if facts is None:
        by, g = made()
        facts = {
            "method": by.name,
            "inputs": {key: list(shape) for key, shape in g.inputs.items()},
            "outputs": {key: list(array.shape) for key, array in g.outputs.items()},
            "texts": straight.texts(g, dtype),
        }
        store.save(f"{index}.json", json.dumps(facts).encode())
    extend = None
    if quantity(request.quantity).option == "frames" and not request.wrenches:
        extend = _wrench_kernels(
            mechanism, name=request.quantity, method=request.method, target="cuda", dtype=dtype, threads=1, machine="",
            processors=None,
        )  # fmt: skip
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


def _wrench_kernels(
    mechanism: Mechanism, **settings: Any
) -> Callable[[Mapping[str, Any]], tuple[Kernel, dict[str, Any]] | None]:
    """Lets a dynamics kernel understand `wrenches={"tool": [force, moment]}`: each set of frames is a kernel of its
    own.
    """

    @cache
    def made(frames: tuple[str, ...]) -> Kernel:
        return kernel(mechanism, wrenches=frames, **settings)

    def extend(named: Mapping[str, Any]) -> tuple[Kernel, dict[str, Any]] | None:
        if "wrenches" not in named:
            return None
        wrenches = named["wrenches"]
        if not isinstance(wrenches, Mapping):
            raise InputError(
                f'{settings["name"]}: wrenches is {wrenches!r}; expected {{"frame": [force, moment]}}, six numbers.'
            )
        rest = {key: x for key, x in named.items() if key != "wrenches"}
        if not wrenches:
            return made(()), rest
        arrays = {frame: _wrench(settings["name"], frame, w) for frame, w in sorted(wrenches.items())}
        try:
            stacked = np.stack(np.broadcast_arrays(*arrays.values()), axis=-2)
        except ValueError:
            shown = ", ".join(f"{frame} {w.shape[:-1]}" for frame, w in arrays.items())
            raise InputError(f"{settings['name']}: leading axes of the wrenches do not broadcast: {shown}.") from None
        return made(tuple(arrays)), rest | {"wrench": stacked}

    return extend


def _wrench(name: str, frame: str, value: Any) -> Any:
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape[-1:] != (6,):
        raise InputError(
            f'{name}: the wrench on "{frame}" is {value!r}; expected [force, moment], six numbers, in any batch shape.'
        )
    return array
