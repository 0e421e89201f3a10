"""Discrete adjoint of a fixed-step run: programs of the forward and the backward pass, and sweeps through them.

A forward step is y1, memory1 = F(t, y, memory, u, p). Its note holds all that the backward pass needs: t, y, memory, u
and the results of the graphs that F calls (the rates of the stages), so that nothing is computed twice. The rows of
the forward program are the table of inputs of the backward program, which reads them from the last to the first:
w <- w dF/dy, g_p <- g_p + w dF/dp, and g_u likewise until the first step with the same inputs, where g_u is written as
a row.

F contains all that a run does from one step to the next: samples that are due are taken before it, and loops are closed
after it. Loops may leave the region where one coordinate partition is valid. That is recorded as trouble, with the
state in which it began, and the caller chooses another partition.

If the notes of all steps fit into memory, one sweep writes them and one pulls the weights back. Otherwise the first
sweep notes only the first step of each stretch; then, from the last stretch to the first, the steps are computed again
with notes, and the weights are pulled back through them. All numbers are the same either way.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.buffers import empty_buffer
from bellcrank.emit.cuda.device import cupy, free_bytes, to_numpy
from bellcrank.graph import Graph, Layout, Program
from bellcrank.graph.autodiff import with_known_values
from bellcrank.graph.inline import inline_small
from bellcrank.graph.layout import list_width
from bellcrank.integrate import Integrator
from bellcrank.integrate.problem import select
from bellcrank.nodes import Node
from bellcrank.scalar import Scalar, floor, maximum, where
from bellcrank.sim.program.fixed_steps import EARLY_STEPS, input_line
from bellcrank.sim.program.system_graphs import Dynamics
from bellcrank.sim.run.batch_execution import PARTS_PER_THREAD
from bellcrank.sim.run.gpu_runs import MEMORY_SHARE
from bellcrank.sim.run.lane_blocks import LaneBlocks
from bellcrank.sim.run_arguments import count
from bellcrank.sim.system.sampling import any_due, phases_at, sampled_state

Shape = tuple[int, ...]
# Largest element of the null-space basis E: above it, fast dependent coordinates cost too many digits.
MAX_NULL_SPACE_ELEMENT = 30.0


@dataclass(frozen=True, eq=False)
class AdjointSteps:
    """Forward and backward programs of a system with an integrator."""

    dynamics: Dynamics
    integrator: Integrator

    @property
    def nu(self) -> int:
        """Number of inputs."""
        return len(self.dynamics.system.inputs)

    @cached_property
    def memory_size(self) -> int:
        """Number of elements of the integrator's memory."""
        return self.integrator.memory(self.dynamics.problem())

    @property
    def has_loops(self) -> bool:
        """True if the mechanism has closed loops."""
        return bool(self.dynamics.system.mechanism.loops)

    @cached_property
    def start_pullback(self) -> Graph:
        """(y, p, w_y) -> g_y, g_p: pull weights of a start back to its independent elements and the parameters."""

        def determined(y: Any) -> dict[str, Any]:
            return {"y": self.dynamics.consistent_state(list(y))}

        plain = self.dynamics.trace("start", determined, {"y": (self.dynamics.plain_size,)})
        return plain.vjp([name for name in ("y", "p") if name in plain.inputs])

    # -- one step

    @cached_property
    def step(self) -> Graph:
        """(t, y, memory, fresh, u, h, p) -> y and memory one step later, and trouble with loops.

        Where inputs or samples are fresh, the integrator's memory begins again.
        """
        dynamics = self.dynamics

        def stepped(t: Scalar, y: Any, h: Scalar, u: Any = (), memory: Any = (), fresh: Scalar = 1.0) -> dict[str, Any]:
            problem, y, old = dynamics.problem(u, h), list(y), list(memory)
            if dynamics.system.sampled:
                n = floor(t / h + 0.5)
                phases = phases_at(dynamics.system, n, h)
                y, fresh = sampled_state(dynamics.system, t, y, u, phases), maximum(fresh, any_due(phases))
            if old:
                old = select(fresh > 0.0, list(self.integrator.begin(problem, t, y, h)), old)
            integrated = self.integrator.step(problem, t, y, h, old)
            before = {"y": y, "bound": MAX_NULL_SPACE_ELEMENT, "open": 0.0, "noise": 0.0}
            settled, trouble, _ = dynamics.step_end_state(integrated, before)
            result = {"y": settled} | ({"memory": integrated.memory} if old else {})
            return result | ({"trouble": trouble} if self.has_loops else {})

        shapes: dict[str, Shape] = {"t": (), "y": (self.dynamics.plain_size,), "h": (), **dynamics.input_shapes}
        memory_shapes: dict[str, Shape] = {"memory": (self.memory_size,), "fresh": ()} if self.memory_size else {}
        return self.dynamics.trace(f"{self.integrator.name}.step", stepped, shapes | memory_shapes)

    @cached_property
    def _noted_and_pullback(self) -> tuple[list[Node], Graph]:
        """The results of called graphs that the backward pass of a step needs, and the graph of that pass."""
        wrt = [name for name in ("y", "memory", "u", "p") if name in self.step.inputs]
        smooth = {name: x for name, x in self.step.outputs.items() if name != "trouble"}
        moved = Graph(self.step.name, self.step.inputs, smooth, self.step.tape)
        pullback = moved.vjp(wrt)
        call_results = [node for node in moved.nodes if node.op == "result"]
        short = inline_small(with_known_values(pullback, "all", call_results))
        used_results = [node for node in short.nodes if node.op == "input" and node.args[0] == "all"]
        short = with_known_values(short, "told", used_results)
        inputs = {name: shape for name, shape in short.inputs.items() if name != "all" and shape != (0,)}
        noted = [call_results[node.args[1]] for node in used_results]
        return noted, Graph(short.name, inputs, short.outputs, short.tape)

    @property
    def step_pullback(self) -> Graph:
        """Graph that pulls weights back through one step.

        (t, y, ..., told, w_y, w_memory) -> g_y, g_memory, g_u, g_p
        """
        return self._noted_and_pullback[1]

    @cached_property
    def noting_step(self) -> Graph:
        """The graph of a step that also returns the results for its note."""
        noted_results = np.empty(len(self._noted_and_pullback[0]), dtype=object)
        noted_results[:] = self._noted_and_pullback[0]
        outputs = dict(self.step.outputs) | ({"told": noted_results} if len(noted_results) else {})
        return Graph(f"{self.step.name}.noting", self.step.inputs, outputs, self.step.tape)

    @cached_property
    def note_layout(self) -> Layout:
        """Layout of the note of one step."""
        noted = len(self._noted_and_pullback[0])
        fields = {"y": self.dynamics.plain_size, "memory": self.memory_size, "u": self.nu, "told": noted}
        return Layout({"t": 1, "fresh": 1, "line": 1, **{name: list_width(width) for name, width in fields.items()}})

    def _program(self, places: Layout, name: str, tick: Callable[..., Any], row: int, fed: int) -> Program:
        shapes: dict[str, Shape] = {"s": (places.size,)}
        shapes |= {"u": (fed,)} if fed else {}

        def start(s: Any, u: Any = ()) -> dict[str, Any]:
            return {"s": list(s)}

        begun = self.dynamics.trace(f"{name}.start", start, shapes)
        return Program(places, tick=self.dynamics.trace(f"{name}.tick", tick, shapes), start=begun, row=row)

    # -- all steps

    @cached_property
    def forward_program(self) -> Program:
        """Program of the forward pass: a lane takes steps of size h until there are `last` of them.

        It writes every stride-th step as a row; the first one is the step after `next` steps.
        """
        state_size, note = self.dynamics.plain_size, self.note_layout
        counters = ("live", "due", "n", "last", "next", "stride", "h")
        clock = ("input", "input_steps", "input_last") if self.nu else ()
        places = Layout({
            "note": list_width(note.size), "y": list_width(state_size), "memory": list_width(self.memory_size),
            "fresh": 1, **dict.fromkeys((*counters, *clock), 1),
            **({"trouble": 1, "stuck": list_width(state_size)} if self.has_loops else {}),
        })  # fmt: skip

        def tick(s: Any, u: Any = ()) -> dict[str, Any]:
            old = places.read(s)
            values = {name: old[name] for name in ("y", "memory", "fresh", "h")}
            values |= {"t": old["n"] * old["h"], "u": list(u), "line": old["input"] if self.nu else 0.0}
            stepped = self.dynamics.call_with(self.noting_step, values)
            noted, n = old["n"] >= old["next"], old["n"] + 1.0
            new = {
                "note": note.to_list(values | {"told": list(stepped.get("told", ()))}),
                "y": list(stepped["y"]),
                "memory": list(stepped.get("memory", ())),
                "fresh": 0.0,
                "n": n,
                "live": where(n >= old["last"], 0.0, 1.0),
                "due": where(noted, 1.0, 0.0),
                "next": where(noted, old["next"] + old["stride"], old["next"]),
            }
            if self.has_loops:  # keep the first trouble
                smooth = old["trouble"] < 0.5
                new["trouble"] = where(smooth, stepped["trouble"], old["trouble"])
                new["stuck"] = select(smooth, old["y"], old["stuck"])
            # A lane that has stopped keeps its state: other lanes of its block may still be running.
            fields = {key: select(old["live"] > 0.0, new[key], old[key]) for key in new if key != "note"}
            fields |= {"due": where(old["live"] > 0.0, new["due"], 0.0), "note": new["note"]}
            if self.nu:
                fields |= input_line(old["input"], old["input_last"], fields["n"], old["input_steps"], EARLY_STEPS)
            return {"s": places.to_list(old | fields)}

        return self._program(places, f"{self.integrator.name}.forwards", tick, note.size, self.nu)

    @cached_property
    def backward_program(self) -> Program:
        """Program of the backward pass: a lane goes from the line `input` of its table to the first."""
        state_size, note = self.dynamics.plain_size, self.note_layout
        fields = {"g_u": self.nu, "w_y": state_size, "w_memory": self.memory_size}
        fields |= {"g_p": len(self.dynamics.system.parameters), "sum_u": self.nu}
        widths: dict[str, Any] = {name: list_width(width) for name, width in fields.items()}
        places = Layout(widths | dict.fromkeys(("live", "due", "input", "h"), 1))

        def tick(s: Any, u: Any) -> dict[str, Any]:
            old, noted = places.read(s), note.read(u)
            weights = self.dynamics.call_with(self.step_pullback, old | noted)
            continues, line_begins = old["input"] > 0.0, noted["fresh"] > 0.0
            total = [a + b for a, b in zip(old["sum_u"], weights.get("g_u", ()), strict=True)]
            new = {
                "g_u": total,
                "sum_u": [where(line_begins, 0.0, x) for x in total],
                "w_y": list(weights["g_y"]),
                "w_memory": list(weights.get("g_memory", ())),
                "g_p": [a + b for a, b in zip(old["g_p"], weights.get("g_p", ()), strict=True)],
                "live": where(continues, 1.0, 0.0),
                "due": where(line_begins, 1.0, 0.0) if self.nu else 0.0,
                "input": where(continues, old["input"] - 1.0, 0.0),
            }
            fields = {key: select(old["live"] > 0.0, new[key], old[key]) for key in new}
            fields["due"] = where(old["live"] > 0.0, new["due"], 0.0)
            return {"s": places.to_list(old | fields)}

        return self._program(places, f"{self.integrator.name}.backwards", tick, max(1, self.nu), note.size)


Array = np.ndarray[Any, Any]
# bytes for notes: of one block, and of all runs of one sweep, which stay in the cache.
NOTE_BYTES, CACHE_BYTES = 2**28, 2**21


@dataclass(frozen=True, eq=False)
class AdjointTask:
    """Runs that are computed together: their starts, inputs, parameters and steps."""

    y: Array  # (runs, n)
    table: Array  # of inputs, (runs, lines, nu)
    parameters: Array  # (runs, np)
    h: float
    steps: int
    input_steps: float  # steps that a line of inputs holds
    stretch: int  # steps between checkpoints

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.y)

    def run_groups(self, group_size: int) -> list[Any]:
        """Return the indices of the runs of each group, with `group_size` runs in every group.

        The last group is filled by repeating the last run.
        """
        if group_size == self.runs:
            return [slice(None)]
        runs = np.minimum(np.arange(-(-self.runs // group_size) * group_size), self.runs - 1)
        return [runs[k : k + group_size] for k in range(0, len(runs), group_size)]

    @property
    def note_count(self) -> int:
        """Number of notes of a run that are in memory at once."""
        return self.steps if self.stretch >= self.steps else self.stretch + self.stretch_count

    @property
    def stretch_count(self) -> int:
        """Number of stretches between checkpoints."""
        return -(-self.steps // self.stretch)

    def subset(self, runs: Any) -> AdjointTask:
        """Return the task for the selected `runs`."""
        return replace(self, y=self.y[runs], table=self.table[runs], parameters=self.parameters[runs])


@dataclass(frozen=True, eq=False)
class Weights:
    """A scalar of each run and its derivatives at the end of the run or, after the backward pass, at its start.

    After the backward pass it also has derivatives with respect to the free parameters and to each line of inputs.
    trouble is nonzero for runs whose loops could not be followed; stuck is the state in which that began.
    """

    value: Array  # (runs,)
    y: Array  # (runs, n)
    p: Array  # (runs, np)
    u: Array  # (runs, nu), or (runs, lines, nu)
    trouble: Array  # (runs,)
    stuck: Array  # (runs, n); of a tree (runs, 0)


FinalWeights = Callable[[Array, Array, Array], Weights]  # arguments: y at the end, inputs there, parameters


@dataclass(frozen=True, eq=False)
class SweepResult:
    """Result of a sweep.

    It holds the state (size, runs), the rows in the layout of the backend, and how many rows each run wrote.
    """

    state: Any
    rows: Any
    count: int


@dataclass(eq=False)
class SweepBackend(ABC):
    """Backend of the sweeps: CPU lanes or the GPU. `code` compiles a program; rows have the layout of the backend."""

    code: Callable[[Program], Any]

    @property
    def array_options(self) -> tuple[Any, str]:
        """Module and type of the arrays of the backend."""
        return np, "float64"

    def initial_state(self, program: Program, runs: int, values: Mapping[str, Any]) -> Any:
        """Return an initial state of `runs` runs of `program`, with `values` by field."""
        return program.layout.array(runs, values, *self.array_options)

    def to_host(self, x: Any) -> Array:
        """Return the array `x` of the backend as a float64 array on the host."""
        return np.asarray(x, float)

    @abstractmethod
    def note_capacity(self, note: int) -> int:
        """Return how many notes of a run fit into memory; `note` is the number of elements of one note."""

    @abstractmethod
    def concurrent_runs(self, task: AdjointTask, note: int) -> int:
        """Return how many runs of `task` are computed at once; `note` is the number of elements of one note."""

    @abstractmethod
    def transferred_inputs(self, task: AdjointTask) -> tuple[Any, Any]:
        """Return the table of inputs and the parameters of `task` in the layout of the backend."""

    @abstractmethod
    def sweep(self, program: Program, state: Any, table: Any, parameters: Any, room: int) -> SweepResult:
        """Run all lanes to their ends and return the final state and the rows.

        Parameters
        ----------
        program
            The forward or the backward program.
        state
            Initial state, (size, runs).
        table
            Inputs as returned by `transferred_inputs`, or the rows of an earlier sweep.
        parameters
            Free parameters as returned by `transferred_inputs`.
        room
            Capacity, in rows of each run.
        """

    @abstractmethod
    def row(self, rows: Any, k: int) -> Any:
        """Return the `k`-th row of all runs from `rows`, (row, runs), in the layout of the backend."""

    @abstractmethod
    def rows(self, result: SweepResult) -> Array:
        """Return all rows of the sweep `result` on the host, the last first, (runs, count, row)."""


def pull_back(steps: AdjointSteps, backend: SweepBackend, task: AdjointTask, weigh: FinalWeights) -> Weights:
    """Return the scalar of each run and the weights of its start, parameters and inputs.

    Parameters
    ----------
    steps
        Forward and backward programs.
    backend
        Backend that computes them.
    task
        The runs.
    weigh
        Function that returns the weights at the end of the runs.
    """
    has_checkpoints = task.stretch < task.steps
    table, parameters = backend.transferred_inputs(task)
    clock = {"h": task.h, "live": 1.0, "input_steps": task.input_steps, "input_last": task.table.shape[1] - 1.0}

    def run_forwards(initial_fields: Mapping[str, Any], room: int) -> SweepResult:
        state = backend.initial_state(steps.forward_program, task.runs, {**clock, **initial_fields})
        return backend.sweep(steps.forward_program, state, table, parameters, room)

    def recomputed_notes(k: int) -> Any:
        """Return the notes of the k-th stretch, computed again from the note of its first step."""
        note, n, end = backend.row(notes.rows, k), k * task.stretch, min((k + 1) * task.stretch, task.steps)
        fields = {key: note[steps.note_layout.places[key]].T for key in ("y", "memory", "fresh", "line")}
        fields |= {"input": fields["line"], "n": n, "next": n, "stride": 1.0, "last": end}
        return run_forwards(fields, end - n).rows

    begin = {"y": task.y, "fresh": 1.0, "last": task.steps, "stride": task.stretch if has_checkpoints else 1.0}
    notes = run_forwards(begin, task.stretch_count if has_checkpoints else task.steps)
    places = steps.forward_program.layout.places
    y = backend.to_host(notes.state[places["y"]]).T
    line, fresh = (int(backend.to_host(notes.state[places[key]])[0]) if steps.nu else 0 for key in ("input", "fresh"))
    trouble, stuck = np.zeros(task.runs), np.zeros((task.runs, 0))
    if steps.has_loops:
        trouble, stuck = (backend.to_host(notes.state[places[key]]).T for key in ("trouble", "stuck"))
        y = np.where(trouble[:, None] > 0.5, np.nan, y)
    last = weigh(y, task.table[:, line], task.parameters)
    # A line that begins at the very end belongs to no step, and its weights are complete.
    initial_fields = {"w_y": last.y, "g_p": last.p, "sum_u": np.zeros_like(last.u) if fresh else last.u, "h": task.h}
    state = backend.initial_state(steps.backward_program, task.runs, initial_fields)
    places, stretch_rows = steps.backward_program.layout.places, []
    for k in reversed(range(task.stretch_count)):
        noted = recomputed_notes(k) if has_checkpoints else notes.rows
        count = min(task.stretch, task.steps - k * task.stretch)
        for key, value in (("live", 1.0), ("due", 0.0), ("input", count - 1.0)):
            state[places[key]] = value
        swept = backend.sweep(steps.backward_program, state, noted, parameters, min(count, task.table.shape[1]))
        state = swept.state
        stretch_rows += [backend.rows(swept)] if steps.nu else []
    w, p = (backend.to_host(state[places[key]]).T for key in ("w_y", "g_p"))
    u = _joined_input_weights(task, stretch_rows, line, last.u if fresh else None)
    return Weights(last.value, w, p, u, trouble, stuck)


def stretch_length(steps: int, fit: int, checkpoints: int | None) -> int:
    """Return the number of steps between checkpoints.

    Parameters
    ----------
    steps
        Steps of a run.
    fit
        Notes that fit into memory.
    checkpoints
        Number of checkpoints the user wants; None for as few as the memory allows.
    """
    if checkpoints is not None:
        return -(-steps // min(count("checkpoints", checkpoints), steps))
    return steps if steps <= fit else max(math.isqrt(steps), fit - steps // max(1, fit))


def _joined_input_weights(task: AdjointTask, stretch_rows: list[Array], line: int, last: Array | None) -> Array:
    """Join the rows of the stretches (the last stretch first); a line that no step used has weight zero."""
    runs, lines, nu = task.table.shape
    blank = np.zeros((runs, lines - sum(x.shape[1] for x in stretch_rows), nu))
    parts = [*stretch_rows[::-1], blank]
    all_rows = parts[0] if len(parts) == 2 and not blank.size else np.concatenate(parts, axis=1)
    if last is not None:
        all_rows[:, line] = last
    return all_rows


# -- on the CPU


@dataclass(eq=False)
class LaneSweeps(SweepBackend):
    """CPU backend: blocks of lanes, one after the other."""

    lanes: int
    threads: int = 1

    def note_capacity(self, note: int) -> int:
        """Return how many notes of a run fit into memory; `note` is the number of elements of one note."""
        return NOTE_BYTES // (8 * note * self.lanes)

    def concurrent_runs(self, task: AdjointTask, note: int) -> int:
        """Return how many runs of `task` are computed at once; `note` is the number of elements of one note.

        These are whole blocks, few enough for their notes to stay in the cache, and several groups for each thread.
        """
        blocks, needed_blocks = CACHE_BYTES // (8 * note * task.note_count * self.lanes), -(-task.runs // self.lanes)
        blocks = min(blocks, needed_blocks if self.threads == 1 else needed_blocks // (PARTS_PER_THREAD * self.threads))
        return max(1, blocks) * self.lanes

    def transferred_inputs(self, task: AdjointTask) -> tuple[Any, Any]:
        """Return the table of inputs and the parameters of `task`."""
        return task.table, task.parameters.T

    def sweep(self, program: Program, state: Any, table: Any, parameters: Any, room: int) -> SweepResult:
        """Run all lanes to their ends and return the final state and the rows.

        Parameters
        ----------
        program
            The forward or the backward program.
        state
            Initial state, (size, runs).
        table
            Inputs, (runs, lines, nu).
        parameters
            Free parameters, (np, runs).
        room
            Capacity, in rows of each run.
        """
        rows = empty_buffer((state.shape[1], room, program.row))
        blocks = LaneBlocks(self.code(program), state, parameters, table, rows)
        while not blocks.done:
            blocks.advance()
        return SweepResult(blocks.state, blocks.rows, int(blocks.counts[0]))

    def row(self, rows: Any, k: int) -> Any:
        """Return the `k`-th row of all runs from `rows`, (row, runs)."""
        return rows[:, k].T

    def rows(self, result: SweepResult) -> Array:
        """Return all rows of the sweep `result`, the last first, (runs, count, row)."""
        rows: Array = result.rows[:, : result.count][:, ::-1]
        return rows


# -- on the GPU

BUSY_RUNS = 2**14  # runs at once that keep a GPU busy; recomputing steps is better than launching fewer
UNLIMITED_TICKS = 2**40  # ticks: more than any run has, so that a launch ends when every run has stopped


@dataclass(eq=False)
class GpuSweeps(SweepBackend):
    """GPU backend of the adjoint sweeps (`SweepBackend` in adjoint_sweeps.py).

    A table of inputs is a pair: its numbers, and the distances in memory between neighbouring runs and between
    neighbouring lines of one run.
    """

    dtype: str
    runs: int

    @property
    def _free_numbers(self) -> int:
        """Floating-point numbers for which there is free GPU memory."""
        return int(MEMORY_SHARE * free_bytes()) // (8 if self.dtype == "float64" else 4)

    def note_capacity(self, note: int) -> int:
        """Return how many notes of a run fit into memory; `note` is the number of elements of one note."""
        return self._free_numbers // (note * min(self.runs, BUSY_RUNS))

    def concurrent_runs(self, task: AdjointTask, note: int) -> int:
        """Return how many runs of `task` fit into memory at once; `note` is the number of elements of one note."""
        numbers_per_run: int = task.table[0].size + task.parameters.shape[1]
        return max(1, min(task.runs, self._free_numbers // (note * (task.note_count + 4) + numbers_per_run)))

    @property
    def array_options(self) -> tuple[Any, str]:
        """Module and type of the arrays on the GPU."""
        return cupy(), self.dtype

    def transferred_inputs(self, task: AdjointTask) -> tuple[Any, Any]:
        """Return the inputs and the parameters of `task` on the GPU.

        They are transposed there, which is faster than on the CPU; a table that all runs share is copied once.
        """
        parameters = self._transposed(task.parameters)
        if task.table.strides[0] == 0:
            return (cupy().asarray(np.ascontiguousarray(task.table[0]), self.dtype), (0, 1)), parameters
        return (self._transposed(task.table), (1, task.runs)), parameters

    def _transposed(self, x: Array) -> Any:
        cp = cupy()
        return cp.ascontiguousarray(cp.moveaxis(cp.asarray(np.ascontiguousarray(x), self.dtype), 0, -1))

    def sweep(self, program: Program, state: Any, table: Any, parameters: Any, room: int) -> SweepResult:
        """Run all lanes to their ends and return the final state and the rows.

        Parameters
        ----------
        program
            The forward or the backward program.
        state
            Initial state, (size, runs).
        table
            Inputs, as `transferred_inputs` or an earlier sweep leaves them.
        parameters
            Free parameters, (np, runs).
        room
            Capacity, in rows of each run.
        """
        cp, runs, (lines, steps) = cupy(), state.shape[1], table
        rows, counts = empty_buffer((room, program.row, runs), self.dtype, cp), cp.zeros(runs, cp.int64)
        self.code(program).launch(UNLIMITED_TICKS, state, parameters, lines, steps, rows, room, counts)
        return SweepResult(state, (rows, (1, runs)), int(cp.asnumpy(counts)[0]))

    def row(self, rows: Any, k: int) -> Any:
        """Return the `k`-th row of all runs from `rows`, (row, runs), on the GPU."""
        return rows[0][k]

    def rows(self, result: SweepResult) -> Array:
        """Return all rows of the sweep `result` on the host, the last first, (runs, count, row)."""
        cp = cupy()
        device_rows = cp.ascontiguousarray(cp.moveaxis(result.rows[0][: result.count][::-1], -1, 0))
        array: Array = to_numpy(device_rows).astype(float, copy=False)
        return array

    def to_host(self, x: Any) -> Array:
        """Return `x` as a float64 array on the host."""
        return super().to_host(to_numpy(x))
