"""The target "cores": each state computed by several cores of this computer together, where that is faster.

A schedule adds up work, as if a core always had an instruction to execute. A recursion along a chain breaks that
assumption: each result waits for the one before, and two cores that share such a chain both stall. So the run time of a
schedule is predicted for out-of-order cores (`forecast`): a core issues instructions at its rate, and more slowly where
values must come from memory; each completes a latency after its operands, and at most REORDER_WINDOW are in flight. A
message arrives after its cost.
"""

from __future__ import annotations

import ctypes
import json
import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from bellcrank.buffers import POISONED
from bellcrank.emit.cores import streams
from bellcrank.emit.cores.calibration import CoreTimes, core_times, threads_machine
from bellcrank.emit.cores.handover_worker import LINGER_NS
from bellcrank.emit.cores.thread_team import ThreadTeam, allowed_cpus
from bellcrank.emit.cpu.costs import FARTHEST_USE_OPERATIONS
from bellcrank.emit.cpu.kernel import Kernel
from bellcrank.emit.cpu.machine_code import Library, poisoning
from bellcrank.emit.cpu.target import Cpu
from bellcrank.emit.llvm.host import code_size, compile_cached, host
from bellcrank.emit.llvm.scheduling import LATENCY_CYCLES, order
from bellcrank.emit.target import About, By
from bellcrank.errors import CompileError, InputError, unknown
from bellcrank.graph import Graph, Node, Recursion
from bellcrank.graph.recursion import has_parallel_runs
from bellcrank.nodes.ops import OPS
from bellcrank.scheduling import Machine, Schedule
from bellcrank.scheduling.partitioning import partitioned_schedule, single_processor

if TYPE_CHECKING:
    from bellcrank.emit.cores.wave_cores import WaveSharing

REORDER_WINDOW = 130  # operations in flight; loads and stores take the rest of the reorder buffer
ARITHMETIC = ("add", "sub", "mul", "select")
MACHINES = ("threads",)
START_SECONDS = 60.0  # s until threads that wait for each other give up
# ns of idle time before a thread of a given schedule sleeps: there may be more threads than cores, which take turns.
PLAN_LINGER_NS = 200_000_000
MIN_SPEEDUP = 1.25  # least predicted speed-up that justifies several cores: the forecast is no more accurate than that


class CoreModel:
    """One out-of-order core."""

    def __init__(self, times: CoreTimes, now: float) -> None:
        self.times, self.now, self.retired = times, now, now
        self.in_flight: deque[float] = deque()
        self.last_use: dict[int, int] = {}
        self.count = 0

    def issue(self, node: Node, cost: float) -> None:
        """Issue `node` at its `cost`; operands that were last used long ago are reloaded from memory."""
        far = 0
        for a in node.operands:
            far += self.count - self.last_use.get(a.serial, self.count) > FARTHEST_USE_OPERATIONS
            self.last_use[a.serial] = self.count
        self.last_use[node.serial] = self.count
        self.count += 1
        self.now += (self.times.dense if OPS[node.op].kind in ARITHMETIC else cost) + far * self.times.recall

    def complete(self, ready: float, latency: float) -> float:
        """Return the completion time of the issued operation.

        Parameters
        ----------
        ready
            Time at which the operands are available.
        latency
            Time from start to completion.
        """
        if len(self.in_flight) == REORDER_WINDOW:
            self.now = max(self.now, self.in_flight.popleft())
        done = max(self.now, ready) + latency
        self.retired = max(self.retired, done)
        self.in_flight.append(self.retired)
        return done

    @property
    def end(self) -> float:
        """Time at which everything has completed."""
        return max(self.now, self.retired)


def forecast(graph: Graph, schedule: Schedule, stays: Mapping[int, int], times: CoreTimes) -> float:
    """Return the predicted ns of a state.

    Parameters
    ----------
    graph
        Graph of one state.
    schedule
        Assignment of its tasks to cores.
    stays
        Nodes that are fused into their user.
    times
        Measured times of this computer.
    """
    machine = schedule.machine
    position = {node.serial: i for i, node in enumerate(order(graph))}
    cores = [CoreModel(times, machine.start if p else 0.0) for p in range(machine.processors)]
    done: dict[int, float] = {}
    sent: dict[int, float] = {}
    home = {n.serial: t.index for t in schedule.tasks for n in t.nodes}
    for i in sorted(range(len(schedule.tasks)), key=lambda i: (schedule.start[i], schedule.finish[i], i)):
        task, p = schedule.tasks[i], schedule.where[i]
        for node in sorted(task.nodes, key=lambda n: position[n.serial]):
            ready = 0.0
            for a in node.operands:
                if a.op != "input":
                    j = home[a.serial]
                    ready = max(ready, done[a.serial] if schedule.where[j] == p else sent[j])
            cores[p].issue(node, machine.cost[node.op])
            if node.serial in stays:  # fused into its sum
                done[node.serial] = ready
            else:
                latency = times.latency * LATENCY_CYCLES.get(node.op, 10.0) / LATENCY_CYCLES["add"]
                done[node.serial] = cores[p].complete(ready, latency)
        last = max((done[n.serial] for n in task.nodes), default=cores[p].now)
        sent[i] = last + machine.message(task.gives)
    return max(cores[p].end + (machine.start if p else 0.0) for p in {0, *schedule.where})


def machine(requested: str | Machine, processors: Any, dtype: str) -> Machine:
    """Return the machine that a kernel is planned for: threads(p) as measured here, or the given Machine.

    Parameters
    ----------
    requested
        Name of a machine, or a Machine with custom costs.
    processors
        Number of cores; None for all that this process may use.
    dtype
        Type of the numbers.
    """
    if isinstance(requested, Machine):
        return requested
    if not isinstance(requested, str) or requested not in MACHINES:
        raise InputError(unknown("machine", str(requested), MACHINES))
    if processors is None:
        processors = len(allowed_cpus())
    if isinstance(processors, bool) or not hasattr(processors, "__index__") or processors < 1:
        raise InputError(
            f"processors is {processors!r}; expected an integer of at least 1 (this process may use "
            f"{len(allowed_cpus())})."
        )
    if os.name != "posix":
        raise InputError('machine="threads" needs a POSIX system; omit machine= to compute a state on one core.')
    return threads_machine(int(processors), dtype)


def speedup(g: Graph, schedule: Schedule, dtype: str) -> float:
    """Return the predicted speed-up against one core, including latency and memory.

    Parameters
    ----------
    g
        Graph of one state.
    schedule
        Assignment of its tasks to cores.
    dtype
        Type of the numbers.
    """
    if has_parallel_runs(g):
        return schedule.speedup
    stays = streams.fused_into(g, dtype)
    one = single_processor(g, schedule.machine, stays)
    times = core_times(dtype)
    return forecast(g, one, stays, times) / forecast(g, schedule, stays, times)


class ParallelKernel(Kernel):
    """Kernel that computes one state on several cores.

    `.schedule` is the assignment of tasks to cores, `.machine` describes the cores in use, and `.counts` has the
    numbers of states computed together and by the caller alone.
    """

    def __init__(self, *args: Any, layout: Callable[[], Schedule], machine: Machine, used: int, **kwargs: Any) -> None:
        self._layout, self._machine = layout, machine
        self.team: ThreadTeam | None = None
        self.together_only = False  # True: wait for the workers, and compute no state alone
        super().__init__(*args, **kwargs)
        if used > 1:
            self.team = ThreadTeam(self.library, used)
            arrays = len(self.signature.inputs) + len(self.signature.outputs)
            pairs = [ctypes.c_void_p, ctypes.c_int64] * arrays
            address = self.library.address
            self._anyway = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * arrays)(address("anyway"))
            self._row_by_row = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *pairs)(address("rows"))
            weakref.finalize(self, self.team.stop).atexit = False  # thread_team.py stops all workers at exit

    @property
    def schedule(self) -> Schedule:
        """Assignment of tasks to cores."""
        if "schedule" not in self.__dict__:
            self.__dict__["schedule"] = self._layout()
        schedule: Schedule = self.__dict__["schedule"]
        return schedule

    @property
    def predicted(self) -> float:
        """Predicted seconds of one state: the work at this computer's rate, divided by the predicted speed-up.

        For a schedule in another unit, such as that of a transputer, the time on one core of this computer.
        """
        if self._machine.unit != "ns":
            return super().predicted
        return 1e-9 * self.schedule.work / self.speedup

    @property
    def speedup(self) -> float:
        """Predicted speed-up against one core; for a schedule in another unit, that on its own machine."""
        if self._machine.unit != "ns":
            return self.schedule.speedup
        return speedup(self.graph, self.schedule, self.signature.dtype)

    @property
    def machine(self) -> str:
        """Name of the machine, and the reason if only one core is used."""
        if self.team is None:
            return f"{self._machine.name}, on one core: predicted to be fastest"
        if not self.team.has_enough_cpus:
            return f"{self._machine.name}, on one core: this process may use {len(allowed_cpus())}"
        return self._machine.name

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of states that were computed together, and by the caller alone."""
        return self.team.counts if self.team is not None else (0, 0)

    def __repr__(self) -> str:
        s = self.signature
        return f"<Kernel {s.name} by {self.method}, {s.dtype}, {self.machine}>"

    def _run(self, rows: int, pointers: Sequence[tuple[int, int]], single: bool, keep: object = None) -> int:
        if self.team is None:
            return super()._run(rows, pointers, single, keep)
        self.team.wake()
        if POISONED:
            poisoning().stain()
        if self.together_only:
            with self.team.together_lock:
                addresses = ([p + k * stride for p, stride in pointers] for k in range(rows))
                return max(self._compute_together(self.team, row) for row in addresses)
        if single:
            return int(self._anyway(*(p for p, _ in pointers)))
        return int(self._row_by_row(rows, *(x for pair in pointers for x in pair)))

    def _compute_together(self, team: ThreadTeam, addresses: Sequence[int]) -> int:
        """Compute one state by all threads; a state that the caller had to compute alone is computed again."""
        before, until = team.counts[0], time.monotonic() + START_SECONDS
        while True:
            team.wake()
            while team.awake < team.processors - 1 and time.monotonic() < until:
                time.sleep(0.0)
            status = int(self._anyway(*addresses))
            if team.counts[0] > before:
                return status
            if time.monotonic() > until:
                raise CompileError(
                    f"{self.signature.name}: the {team.processors} threads of {self._machine.name} did not start "
                    f"together within {START_SECONDS:g} s. Other programs keep the cores busy; try again, or use "
                    'carrier="events".'
                )


@dataclass(frozen=True)
class Cores:
    """Compilation target for several cores."""

    machine: Machine
    dtype: str = "float64"
    plan: Schedule | None = None  # the schedule to follow; otherwise the fastest is searched for

    @property
    def _one(self) -> Cpu:
        return Cpu(self.dtype)

    @property
    def segments(self) -> tuple[int, int]:
        """Number of parallel segments of a branch, and the least bodies of one.

        The number is twice the lanes of all cores together, so that the load is balanced.
        """
        lanes, shortest = self._one.segments
        return 2 * lanes * self.machine.processors, shortest

    @property
    def key(self) -> tuple[str, ...]:
        """Cache key of everything that decides the generated code."""
        m = self.machine
        decides = json.dumps([m.name, m.processors, dict(m.cost), m.start, m.word, m.overlapped])
        return *self._one.key, "cores", decides, self.plan.json() if self.plan is not None else ""

    def choose(self, graphs: Sequence[tuple[By, Graph]]) -> tuple[By, Graph]:
        """Return the fastest of `graphs`, pairs of method and graph, on one core."""
        return self._one.choose(graphs)

    def schedule(self, graph: Graph) -> Schedule:
        """Return the assignment of `graph` to cores, with times.

        On the cores of this computer, where latency counts, the predicted speed-up must justify the other cores.
        """
        m = self.machine
        if self.plan is not None:
            return self.plan
        if has_parallel_runs(graph):
            return self._sharing(graph, m.processors).schedule(m)
        stays = streams.fused_into(graph, self.dtype)
        parallel = partitioned_schedule(graph, m, stays)
        if parallel.used == 1 or not m.name.startswith("threads("):
            return parallel
        return parallel if speedup(graph, parallel, self.dtype) > MIN_SPEEDUP else single_processor(graph, m, stays)

    def _sharing(self, graph: Recursion, used: int) -> WaveSharing:
        from bellcrank.emit.cores.wave_cores import WaveSharing  # not needed for small mechanisms

        return WaveSharing(graph, used, self.dtype)

    def source(self, graph: Graph) -> str:
        """Return the LLVM IR of `graph`."""
        return self._text(graph, self.used(graph))

    def used(self, graph: Graph) -> int:
        """Return the number of cores that compute `graph`."""
        if has_parallel_runs(graph):
            return self._sharing(graph, self.machine.processors).used
        return self.schedule(graph).used

    def _text(self, graph: Graph, used: int) -> str:
        """Return the module with the Python entry; the code for one core where that is fastest."""
        if used == 1:
            return self._one.source(graph)
        if has_parallel_runs(graph):
            text = self._sharing(graph, used).source()
        else:
            linger = LINGER_NS if self.plan is None else PLAN_LINGER_NS
            lanes, triple = host().lanes(self.dtype), host().triple
            text = streams.source(graph, self.schedule(graph), lanes, triple, self.dtype, linger)
        return self._one.with_python_entry(text, graph)

    def compile(self, graph: Graph) -> tuple[dict[str, Any], bytes, bool]:
        """Return facts to cache, the machine code of `graph`, and whether it came from the cache."""
        used = self.used(graph)
        code, cached, code_key = compile_cached(self._text(graph, used))
        facts = {"code": code_key, "code_size": code_size(code), "rows_per_thread": 0, "used": used}
        return facts, code, cached

    def recall(self, facts: Mapping[str, Any]) -> bytes | None:
        """Return the machine code from the cached `facts`, if it exists."""
        return self._one.recall(facts)

    def load(self, code: bytes, facts: Mapping[str, Any], about: About) -> ParallelKernel:
        """Return the kernel for `code`, with its `facts` and its description `about`."""
        layout = cache(lambda: self.schedule(about.graph()))
        return ParallelKernel(
            about, Library(code), 1, facts["code_size"], layout=layout, machine=self.machine, used=facts["used"]
        )
