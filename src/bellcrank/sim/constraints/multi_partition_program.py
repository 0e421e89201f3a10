"""Coordinate partitioning in one self-contained Program, for closed loops in steppers, drives and exports.

A run (batch_execution.py) that leaves the range of its coordinate partition stops and continues with other graphs. A
stepper or an exported model cannot stop, so its Program contains all partitions that the workspace of the mechanism
requires: the field `part` of the state selects the active one, and each tick calls its graphs. A step after which
another partition is better changes it, and a failed step is repeated with the best one. A state that no partition can
handle is NOT_CLOSED, as in a run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.dynamics.loops import constrained_dynamics
from bellcrank.dynamics.loops.constraint_values import evaluate_constraints
from bellcrank.dynamics.loops.coordinate_partitioning import choose_pivots, is_stable
from bellcrank.dynamics.loops.equation_analysis import reachable_configurations
from bellcrank.graph import Graph, Layout, Node, Program
from bellcrank.graph.inline import inline_small
from bellcrank.graph.program import NEVER_TIME, NOT_CLOSED, REPARTITION, RUNNING
from bellcrank.integrate.problem import select
from bellcrank.scalar import Scalar, maximum, where
from bellcrank.sim.constraints.loop_closure import MAX_E, MAX_E_GROWTH, SUFFICIENT_E, SUFFICIENT_E_RATIO, WEAK_PIVOT
from bellcrank.sim.constraints.looped_dynamics import LoopedDynamics

LARGEST_PARTITION_COUNT = 8  # limit; configurations without a good partition then use the best of these
LARGEST_CANDIDATE_COUNT = 32  # considered partitions: those that are best most often
NEGLIGIBLE_SHARE = 0.02  # share of configurations without a good partition that does not justify another one
SINGULAR_SIZE = 1e30  # size of E of a partition that is singular


def chosen_partitions(dynamics: LoopedDynamics) -> list[LoopedDynamics]:
    """Choose a few partitions such that almost every sampled configuration has a good one among them.

    The criterion is that of runs, and so is the first partition, which runs keep wherever it suffices. The choice of
    the others is greedy: each step adds the partition that is good for most of the configurations that have none yet.

    Parameters
    ----------
    dynamics
        Dynamics in the minimal form, with the sampled configurations in its analysis.
    """
    m, rank = dynamics.system.mechanism, dynamics.rank
    tree = m.at().tree if m.parameters else m.tree
    q = reachable_configurations(tree, dynamics.analysis)
    Cs = evaluate_constraints(tree, q).C[:, list(rank.rows)] * rank.natural(m.nv)
    best = [tuple(choose_pivots(C, dynamics.analysis.pattern, rank)) for C in Cs]
    frequent = Counter(order for order in best if len(order) == rank.rank).most_common(LARGEST_CANDIDATE_COUNT)
    orders = list(dict.fromkeys([dynamics.part.order, *(order for order, _ in frequent)]))
    cost = dynamics.closure.partition_cost
    sizes = np.array([[cost(C, x) if is_stable(C, x) else np.inf for x in orders] for C in Cs])
    good = sizes <= np.maximum(SUFFICIENT_E, SUFFICIENT_E_RATIO * sizes.min(axis=1, keepdims=True))
    uncovered, chosen_indices = np.isfinite(sizes).any(axis=1) & ~good[:, 0], [0]
    while len(chosen_indices) < LARGEST_PARTITION_COUNT and uncovered.mean() > NEGLIGIBLE_SHARE:
        chosen_indices.append(int(np.argmax(good[uncovered].sum(axis=0))))
        uncovered &= ~good[:, chosen_indices[-1]]
    return [dynamics.with_partition(orders[k]) for k in chosen_indices]


def partition_selector(parts: Sequence[LoopedDynamics]) -> Graph:
    """Return the graph (y, p) -> index of a partition of `parts` and the bound of its E; called if `go` > 0.

    The rule is that of a run (loop_closure.py): the first partition where it suffices, otherwise the best one.
    """
    dynamics = parts[0]

    def measured(y: Any, go: Any) -> dict[str, Any]:
        q, _, _ = dynamics.system.split(list(y))
        index: Scalar = 0.0
        least: Scalar = SINGULAR_SIZE
        first: Scalar = SINGULAR_SIZE
        for k, other in enumerate(parts):
            reduced = constrained_dynamics.reduce_to_null_space(other.tree, other.mass_operator, other.part, list(q))
            size = maximum(reduced.largest, WEAK_PIVOT / reduced.conditioning) if other.rank.groups else reduced.largest
            better = size < least  # false for NaN, which a singular partition may give
            index, least = where(better, float(k), index), where(better, size, least)
            first = least if k == 0 else first
        suffices = first <= maximum(SUFFICIENT_E, SUFFICIENT_E_RATIO * least)
        index, size = where(suffices, 0.0, index), where(suffices, first, least)
        return {"index": index, "bound": maximum(MAX_E, MAX_E_GROWTH * size)}

    return replace(dynamics.trace("partition", measured, {"y": (dynamics.size,), "go": ()}), only="go")


def _guarded(graph: Graph) -> Graph:
    """Return the graph with the additional input `go`: it is called only if `go` is positive."""
    inner = inline_small(graph)
    return Graph(inner.name, {**inner.inputs, "go": ()}, inner.outputs, inner.tape, only="go")


class JoinedPartitions:
    """One Program made of Programs that differ only in their partitions."""

    def __init__(self, parts: Sequence[LoopedDynamics], programs: Sequence[Program]) -> None:
        self.parts, self.programs, self.inner_layout = parts, programs, programs[0].layout
        self.layout = Layout({**self.inner_layout.fields, "part": 1})
        self.is_single = len(parts) == 1  # no selection is needed
        names = [name for name in programs[0].graphs if name != "observe"]
        graphs = {name: [p.graphs[name] for p in programs] for name in names}
        self.graphs = graphs if self.is_single else {name: [*map(_guarded, some)] for name, some in graphs.items()}

    @cached_property
    def selector(self) -> Graph:
        """Return the graph that selects a partition."""
        return partition_selector(self.parts)

    def program(self) -> Program:
        """Return the joined Program."""
        one = self.programs[0]
        anywhere = self.parts[0].without_partition
        return replace(
            one,
            layout=self.layout,
            tick=self._traced("tick", self._tick),
            start=self._traced("start", self._start),
            locate=self._traced("locate", self._apply_active) if one.locate else None,
            renew=self._traced("renew", self._apply_active) if one.renew else None,
            ports=replace(one.ports, make_rate=lambda: anywhere.f),
        )

    def _traced(self, name: str, function: Any) -> Graph:
        one = self.programs[0].graphs[name]
        shapes = {"s": (self.layout.size,)} | ({"u": one.inputs["u"]} if "u" in one.inputs else {})

        def made(s: Any, u: Any = ()) -> dict[str, Any]:
            return {"s": self.layout.to_list(function(name, self.layout.read(s), u))}

        return self.parts[0].trace(one.name.partition(".")[2], made, shapes)

    def selected_at(self, y: Sequence[Scalar], go: Scalar) -> tuple[Scalar, Scalar]:
        """Return index and bound of the partition that suits a state.

        Parameters
        ----------
        y
            State.
        go
            Positive if the result is needed; otherwise index and bound are 0.
        """
        if self.is_single:
            return 0.0, NEVER_TIME
        selection = self.parts[0].call_with(self.selector, {"y": list(y), "go": go})
        is_needed = go > 0.0 if isinstance(go, Node) else bool(go)
        index, bound = selection["index"].item(), selection["bound"].item()
        return (where(is_needed, index, 0.0), where(is_needed, bound, 0.0)) if isinstance(go, Node) else (index, bound)

    def _apply(self, name: str, old: dict[str, Any], u: Any, part: Scalar, go: Scalar = 1.0) -> dict[str, Any]:
        """Return the state made by the graph `name` of the selected partition; arbitrary values if `go` is 0."""
        s, selected = self.inner_layout.to_list(old), None
        if self.is_single:
            (graph,) = self.graphs[name]
            return self.inner_layout.read(list(self.parts[0].call_with(graph, {"s": s, "u": u})["s"]))
        for k, graph in enumerate(self.graphs[name]):
            is_active = where((part - float(k)) * (part - float(k)) < 0.25, go, 0.0)
            result = self.parts[0].call_with(graph, {"s": s, "u": u, "go": is_active})["s"]
            fields = self.inner_layout.read(list(result))
            if selected is not None:
                fields = {key: select(is_active > 0.0, x, selected[key]) for key, x in fields.items()}
            selected = fields
        assert selected is not None
        return selected

    def _apply_active(self, name: str, fields: dict[str, Any], u: Any) -> dict[str, Any]:
        return self._apply(name, fields, u, fields["part"]) | {"part": fields["part"]}

    def _start(self, name: str, fields: dict[str, Any], u: Any) -> dict[str, Any]:
        part, bound = self.selected_at(fields["y"], 1.0)
        return self._apply(name, fields | {"bound": bound}, u, part) | {"part": part}

    def _tick(self, name: str, old: dict[str, Any], u: Any) -> dict[str, Any]:
        first = self._apply(name, old, u, old["part"])
        if self.is_single:
            return first | {"part": 0.0}
        failed = _has_status(first["status"], NOT_CLOSED)
        needs_choice = where(old["live"] > 0.0, maximum(failed, _has_status(first["status"], REPARTITION)), 0.0)
        part, bound = self.selected_at(first["y"], needs_choice)
        repeats = where((part - old["part"]) * (part - old["part"]) < 0.25, 0.0, where(needs_choice > 0.0, failed, 0.0))
        second = self._apply(name, old | {"bound": bound}, u, part, repeats)
        new_fields = {key: select(repeats > 0.0, second[key], x) for key, x in first.items()}
        continues = where(needs_choice > 0.0, _has_status(new_fields["status"], REPARTITION), 0.0) > 0.0
        changed = where(continues, 1.0, repeats) > 0.0
        return new_fields | {
            "status": where(continues, float(RUNNING), new_fields["status"]),
            "live": where(continues, 1.0, new_fields["live"]),
            "part": where(changed, part, old["part"]), "bound": where(changed, bound, new_fields["bound"]),
        }  # fmt: skip


def _has_status(status: Scalar, code: int) -> Scalar:
    return where((status - float(code)) * (status - float(code)) < 0.25, 1.0, 0.0)
