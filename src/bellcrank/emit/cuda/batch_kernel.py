"""Straight-line kernels for a batch of states: one thread per state, or a team of threads.

    many(i64 n, ptr array, i32 row, i32 column, ...)     n states; strides in elements, inputs first, then outputs

There is one kernel for each memory layout. The tiled variant expects contiguous rows (a column stride of 1); see
array_access.py. Where matrices need more live values than registers and shared memory hold, some go to local memory,
which is slow. Kernels that each compute some columns repeat part of the work, but keep their values in fast memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from bellcrank.emit.cuda.array_access import MAX_PREFETCH_WARPS, StridedArray, TiledArray, prefetch_code
from bellcrank.emit.cuda.occupancy import (
    BANDWIDTH,
    BEST_EFFICIENCY,
    SHARED_BYTES,
    STATES_PER_BLOCK,
    TeamPlan,
    best_plan,
    team_plan,
)
from bellcrank.emit.cuda.ptx import ThreadWriter, ptx
from bellcrank.emit.cuda.register_pressure import HOIST_DISTANCE_UNITS, live_counts, low_pressure_order
from bellcrank.emit.cuda.team import TeamDivision, single_thread_team, work
from bellcrank.emit.cuda.thread_code import Units, emit_member
from bellcrank.emit.llvm.lanes import Writer, indented
from bellcrank.graph import Graph, Node
from bellcrank.graph.graph import Coverage
from bellcrank.quoting import symbol

By = TypeVar("By")
_plans: WeakKeyDictionary[Graph, dict[tuple[int, int], TeamPlan]] = WeakKeyDictionary()
MAX_TILE_BYTES = 40 * 1024  # bytes of a tile at most; larger arrays are accessed directly
HEAD = """@shared = external addrspace(3) global [0 x i8], align 16
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare void @llvm.nvvm.barrier0()
"""
MAX_PARTS = 3  # kernels per graph at most


@dataclass(frozen=True, eq=False)
class BatchKernelText:
    """Kernel of straight-line code, with its launch configuration."""

    graph: Graph
    dtype: str = "float64"
    tiled: bool = False
    distance: int = HOIST_DISTANCE_UNITS
    blocks: int = 0  # resident blocks of a multiprocessor; 0: chosen
    members: int = 0  # members of a team; 0: chosen
    places: Mapping[str, Sequence[int]] | None = None  # for a part: indices of each output's elements in its array

    @property
    def words_per_value(self) -> int:
        """32-bit words of a value."""
        return 2 if self.dtype == "float64" else 1

    @cached_property
    def units(self) -> Units:
        """Units of the graph."""
        return Units(self.graph)

    @cached_property
    def plan(self) -> TeamPlan:
        """Launch configuration: the given one, or the one with the least predicted time."""
        members = self.members or (1 if self.blocks else 0)
        if not members:  # the plan is shared by the comparison of methods and all array layouts
            cached_plans, key = _plans.setdefault(self.graph, {}), (self.words_per_value, self.distance)
            if key not in cached_plans:
                cached_plans[key] = self._shrink_blocks(best_plan(self.units, self.words_per_value, self.distance))
            return cached_plans[key]
        sequence = low_pressure_order(self.units)
        teams = [single_thread_team(sequence, self.distance)]
        if members > 1:
            teams = TeamDivision(self.units, sequence).teams(members, self.distance) or teams
        states = STATES_PER_BLOCK[len(teams[0])]
        if self.blocks:
            plans = [TeamPlan(team, self.words_per_value, states, self.blocks) for team in teams]
        else:
            plans = [team_plan(team, self.words_per_value, states) for team in teams]
        return min(plans, key=lambda p: (not p.fits, p.cost))

    def _shrink_blocks(self, plan: TeamPlan) -> TeamPlan:
        """Use smaller blocks where memory bandwidth is the limit: a block stores while its neighbours compute.

        For the derivatives of a UR5 in float32: 7.0e9 instead of 6.5e9 per s.
        """
        return replace(plan, states=plan.states // 2, blocks=2 * plan.blocks) if self._is_memory_bound(plan) else plan

    def _is_memory_bound(self, plan: TeamPlan) -> bool:
        """Return whether memory bandwidth limits a batch."""
        return len(plan.team) == 1 and plan.per_second * self.bytes_per_state > BANDWIDTH

    @cached_property
    def bytes_per_state(self) -> int:
        """Bytes of a state's inputs and results."""
        values = sum(math.prod(shape) for shape in self.graph.inputs.values())
        values += sum(array.size for array in self.graph.outputs.values())
        return max(1, values * 4 * self.words_per_value)

    @cached_property
    def max_live(self) -> int:
        """Maximum number of live values in a thread."""
        return max(max(live_counts(stream), default=0) for stream in self.plan.team.streams)

    @property
    def cost(self) -> float:
        """Predicted cost, in units that compare methods with each other."""
        return self.plan.cost

    def costs_less_than(self, bound: float) -> bool:
        """Return whether the cost is below `bound`, without a search for the best plan."""
        return best_plan(self.units, self.words_per_value, self.distance, bound).cost < bound

    @property
    def per_second(self) -> float:
        """Predicted states per second on one H200, limited by arithmetic or by memory bandwidth."""
        return min(self.plan.per_second, BANDWIDTH / self.bytes_per_state)

    @property
    def cost_bound(self) -> float:
        """Lower bound of the cost, available at once."""
        return sum((work(unit) for unit in self.units.all), 0.0) / BEST_EFFICIENCY

    @cached_property
    def arrays(self) -> dict[str, StridedArray | TiledArray]:
        """Access to the inputs and outputs, by array name."""
        sizes = {f"in_{symbol(name)}": math.prod(shape) for name, shape in self.graph.inputs.items()}
        sizes |= {f"out_{symbol(name)}": array.size for name, array in self.graph.outputs.items()}
        accesses: dict[str, StridedArray | TiledArray] = {}
        threads = self.plan.threads
        start = self.plan.shared_rows * self.plan.states
        for name, size in sizes.items():
            accesses[name] = StridedArray(name)
            if self.tiled and size > 1 and (size | 1) * threads * 4 * self.words_per_value <= MAX_TILE_BYTES:
                accesses[name] = tile = TiledArray(name, size, threads, start, name.startswith("out_"))
                start += tile.elements
        return accesses

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block."""
        tiles = sum(a.elements for a in self.arrays.values() if isinstance(a, TiledArray))
        return (self.plan.shared_rows * self.plan.states + tiles) * 4 * self.words_per_value

    @cached_property
    def text(self) -> str:
        """The whole kernel as LLVM IR."""
        w, arrays = ThreadWriter(self.dtype, scarce=self.plan.blocks * self.plan.threads < 3 * 128), self.arrays
        stored = set[tuple[str, int]]()
        for a in arrays.values():
            a.emit_entry(w)
        if self.tiled:
            w.do("call void @llvm.nvvm.barrier0()")
        if len(self.plan.team) == 1:
            self._member(w, 0, stored)
        else:
            others = " ".join(f"i32 {k}, label %member{k}" for k in range(1, len(self.plan.team)))
            w.do(f"switch i32 %member, label %member0 [{others}]")
            for k in range(len(self.plan.team)):
                w.do(f"member{k}:")
                self._member(w, k, stored)
                w.do("br label %together")
            w.do("together:")
        self._check(stored)
        if self.tiled:
            w.do("call void @llvm.nvvm.barrier0()")
        for a in arrays.values():
            a.emit_exit(w)
        return HEAD + w.definition() + self._kernel_around(w)

    def _check(self, stored: set[tuple[str, int]]) -> None:
        """Raise CompileError if the code does not store every result, each by some member."""
        wanted = [(name, k) for name, k, _ in self._results()]
        coverage = Coverage(self.graph.name, {"results": (len(wanted),)})
        coverage.note("results", [i for i, result in enumerate(wanted) if result in stored])
        coverage.check()

    def _member(self, w: Writer, member: int, stored: set[tuple[str, int]]) -> None:
        """Emit the code of one thread for its state; add to `stored` the output elements that it stores."""
        arrays = self.arrays

        def read(node: Node) -> str:
            array = arrays[f"in_{symbol(node.args[0])}"]
            # volatile: otherwise LLVM would read the whole tile into registers at once
            word = "load volatile" if isinstance(array, TiledArray) else "load"
            return w.let(f"{word} {w.type}, {array.address(w, node.args[1])}", "x")

        def put(place: tuple[str, int], value: str) -> None:
            stored.add(place)
            w.do(f"store {w.type} {value}, {arrays[place[0]].address(w, place[1])}")

        results = [((name, k), x) for name, k, x in self._results()]
        emit_member(self.plan, member, self.units, w, read, results, put)

    def _results(self) -> Iterator[tuple[str, int, Any]]:
        """Yield array name, index and value of every element of the outputs."""
        for name, array in self.graph.outputs.items():
            indices = self.places[name] if self.places else range(array.size)
            for k, x in zip(indices, array.flat, strict=True):
                yield f"out_{symbol(name)}", k, x

    def _kernel_around(self, w: Writer) -> str:
        """Return the kernel around the code.

        Threads beyond the last row do nothing; in a tiled block and in a team they take part, and repeat the last row.
        """
        parameters = "".join(
            f", ptr addrspace(1) noalias %{a}, i32 %{a}.row, i32 %{a}.column" for a in self.arrays
        )  # fmt: skip
        states, helped = self.plan.states, self.tiled or len(self.plan.team) > 1
        far = f"  %far = alloca [{self.plan.local_values} x {w.type}], align 8\n" if self.plan.local_values else ""
        bounds = f'"nvvm.maxntid"="{self.plan.threads}" "nvvm.minctasm"="{self.plan.blocks}"'
        return f"""define ptx_kernel void @many(i64 %n{parameters}) nounwind {bounds} {{
{far}  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %member = lshr i32 %tid, {states.bit_length() - 1}
  %place = and i32 %tid, {states - 1}
  %place.wide = zext i32 %place to i64
  %block.wide = zext i32 %block to i64
  %before = mul i64 %block.wide, {states}
  %here = add i64 %before, %place.wide
  %last = sub i64 %n, 1
  %mine = icmp ult i64 %here, %n
  %row = select i1 %mine, i64 %here, i64 %last
  %parked = getelementptr {w.type}, ptr addrspace(3) @shared, i32 %place
{self._prefetch(w)}  br i1 {"true" if helped else "%mine"}, label %go, label %done
go:
{indented(w.lines)}  br label %done
done:
  ret void
}}"""

    def _prefetch(self, w: Writer) -> str:
        """Return the prefetch of inputs for later blocks."""
        plan = self.plan
        if self.tiled or not self._is_memory_bound(plan) or plan.blocks * plan.threads > 32 * MAX_PREFETCH_WARPS:
            return ""
        inputs = {f"in_{symbol(name)}": math.prod(shape) for name, shape in self.graph.inputs.items()}
        return prefetch_code(inputs, w.type, w.bytes, plan.states, plan.blocks)

    @cached_property
    def ptx(self) -> str:
        """The kernel as PTX."""
        return ptx(self.text)


def cheapest(graphs: Sequence[tuple[By, Graph]], dtype: str) -> tuple[By, Graph]:
    """Return the graph with the least predicted cost; those whose lower bound is too high are not planned.

    Parameters
    ----------
    graphs
        Pairs of method and graph.
    dtype
        Type of the numbers.
    """
    candidates = sorted(
        ((BatchKernelText(g, dtype), method) for method, g in graphs), key=lambda pair: pair[0].cost_bound
    )
    best_text, best_method = candidates[0]
    for s, method in candidates[1:]:
        if s.cost_bound < best_text.cost and s.costs_less_than(best_text.cost):
            best_text, best_method = s, method
    return best_method, best_text.graph


def best_parts(graph: Graph, dtype: str) -> list[BatchKernelText]:
    """Return the kernels of `graph` for the type `dtype` that compute all outputs in the least predicted time."""
    best = [BatchKernelText(graph, dtype)]
    if not best[0].plan.local_values:
        return best
    cost = best[0].cost
    for split in _splits(graph):
        candidate = [BatchKernelText(part, dtype, places=places) for part, places in split]
        if sum(part.cost_bound for part in candidate) < cost and (total := sum(part.cost for part in candidate)) < cost:
            best, cost = candidate, total
    return best


def _splits(graph: Graph) -> Iterator[list[tuple[Graph, dict[str, list[int]]]]]:
    """Yield ways to partition matrix outputs, by their last and by their first axis."""
    if any(array.ndim < 2 for array in graph.outputs.values()):
        return
    for count in range(2, MAX_PARTS + 1):
        for axis in (-1, 0):
            if all(array.shape[axis] >= count for array in graph.outputs.values()):
                split = [_part(graph, count, axis, k) for k in range(count)]
                coverage = Coverage(graph.name, graph.shapes)
                for name, indices in ((name, indices) for _, places in split for name, indices in places.items()):
                    coverage.note(name, indices)
                coverage.check()
                yield split


def _part(graph: Graph, count: int, axis: int, k: int) -> tuple[Graph, dict[str, list[int]]]:
    outputs, indices = {}, {}
    for name, array in graph.outputs.items():
        part_indices = np.array_split(np.arange(array.size).reshape(array.shape), count, axis=axis)[k].ravel()
        outputs[name], indices[name] = array.ravel()[part_indices], part_indices.tolist()
    return Graph(graph.name, graph.inputs, outputs, graph.tape), indices


def layout_texts(graph: Graph, dtype: str) -> dict[str, list[dict[str, Any]]]:
    """Return PTX and launch facts of the kernels of `graph` for each memory layout of a batch, in the type `dtype`.

    Tiles that leave room for fewer blocks on a multiprocessor cost more than they gain.
    """
    facts_by_layout = {"strided": [_launch_facts(kernel_text) for kernel_text in best_parts(graph, dtype)]}
    tiled = BatchKernelText(graph, dtype, tiled=True)
    if len(tiled.plan.team) == 1 and (tiled.shared + 1024) * tiled.plan.blocks <= SHARED_BYTES:
        facts_by_layout["tiled"] = [_launch_facts(tiled)]
    return facts_by_layout


def _launch_facts(batch: BatchKernelText) -> dict[str, Any]:
    plan = batch.plan
    return {
        "ptx": batch.ptx, "threads": plan.threads, "states": plan.states, "shared": batch.shared,
        "registers": plan.registers, "live": batch.max_live, "blocks": plan.blocks, "local": plan.local_values,
        "members": len(plan.team), "per_second": batch.per_second,
        "tiles": [k for k, array in enumerate(batch.arrays.values()) if isinstance(array, TiledArray)],
    }  # fmt: skip
