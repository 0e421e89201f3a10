"""Coordinate partitioning in one self-contained Program, for closed loops in steppers, drives and exports.

A run (run.py) that leaves the range of its coordinate partition stops and continues with other graphs. A stepper or an
exported model cannot stop, so its Program contains all partitions that the workspace of the mechanism requires: the
field `part` of the state selects the active one, and each tick calls its graphs. A step after which another partition
is better changes it, and a failed step is repeated with the best one. A state that no partition can handle is
NOT_CLOSED, as in a run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.dynamics.loops import forms
from bellcrank.dynamics.loops.equation_analysis import reached
from bellcrank.dynamics.loops.numbers import closed
from bellcrank.dynamics.loops.partition import pivots, stable
from bellcrank.graph import Graph, Layout, Node, Program
from bellcrank.graph.inline import opened
from bellcrank.graph.program import NEVER, NOT_CLOSED, REPARTITION, RUNNING
from bellcrank.scalar import Scalar, maximum, where
from bellcrank.sim.fixed_steps import chosen
from bellcrank.sim.loop_closure import BOUND, EASY, GROWTH, NEARLY, WEAK
from bellcrank.sim.looped_dynamics import LoopedDynamics

MOST_PARTITIONS = 8  # limit; configurations without a good partition then use the best of these
CANDIDATES = 32  # considered partitions: those that are best most often
NEGLIGIBLE = 0.02  # share of configurations without a good partition that does not justify another one
HOPELESS = 1e30  # size of E of a partition that is singular


def carried(by: LoopedDynamics) -> list[LoopedDynamics]:
    """Choose a few partitions such that almost every sampled configuration has a good one among them.

    The criterion is that of runs. The choice is greedy: each step adds the partition that is good for most of the
    configurations that have none yet.

    Parameters
    ----------
    by
        Dynamics in the minimal form, with the sampled configurations in its analysis.
    """
    m, rank = by.system.mechanism, by.rank
    tree = m.at().tree if m.parameters else m.tree
    Cs = closed(tree, reached(tree, by.analysis)).C[:, list(rank.rows)] * rank.natural(m.nv)
    best = [tuple(pivots(C, by.analysis.pattern, rank)[0]) for C in Cs]
    often = Counter(order for order in best if len(order) == rank.rank).most_common(CANDIDATES)
    orders = list(dict.fromkeys([by.part.order, *(order for order, _ in often)]))
    sizes = np.array([[by.closure.size(C, x) if stable(C, x) else np.inf for x in orders] for C in Cs])
    good = sizes <= np.maximum(EASY, NEARLY * sizes.min(axis=1, keepdims=True))
    without, found = np.isfinite(sizes).any(axis=1), list[int]()
    while len(found) < MOST_PARTITIONS and (without.mean() > NEGLIGIBLE or not found):
        found.append(int(np.argmax(good[without].sum(axis=0))))
        without &= ~good[:, found[-1]]
    return [by.by(orders[k]) for k in found]


def suited(parts: Sequence[LoopedDynamics]) -> Graph:
    """Return the graph (y, p) -> index of the best partition of `parts` and the bound of its E; called if `go` > 0."""
    by = parts[0]

    def measured(y: Any, go: Any) -> dict[str, Any]:
        q, _, _ = by.system.split(list(y))
        index: Scalar = 0.0
        least: Scalar = HOPELESS
        for k, other in enumerate(parts):
            found = forms.reduced(other.tree, other.mass, other.part, list(q))
            size = maximum(found.largest, WEAK / found.sound) if other.rank.groups else found.largest
            better = size < least  # false for NaN, which a singular partition may give
            index, least = where(better, float(k), index), where(better, size, least)
        return {"index": index, "bound": maximum(BOUND, GROWTH * least)}

    return replace(by.trace("partition", measured, {"y": (by.size,), "go": ()}), only="go")


def _guarded(graph: Graph) -> Graph:
    """Return the graph with the additional input `go`: it is called only if `go` is positive."""
    inner = opened(graph)
    return Graph(inner.name, {**inner.inputs, "go": ()}, inner.outputs, inner.tape, only="go")


class Joined:
    """One Program made of Programs that differ only in their partitions."""

    def __init__(self, parts: Sequence[LoopedDynamics], programs: Sequence[Program]) -> None:
        self.parts, self.programs, self.inner = parts, programs, programs[0].layout
        self.layout = Layout({**self.inner.fields, "part": 1})
        self.alone = len(parts) == 1  # no selection is needed
        names = [name for name in programs[0].graphs if name != "observe"]
        self.graphs = {
            name: [p.graphs[name] if self.alone else _guarded(p.graphs[name]) for p in programs] for name in names
        }

    @cached_property
    def best(self) -> Graph:
        """Return the graph that selects a partition."""
        return suited(self.parts)

    def program(self) -> Program:
        """Return the joined Program."""
        one = self.programs[0]
        anywhere = self.parts[0].anywhere
        return replace(
            one,
            layout=self.layout,
            tick=self._traced("tick", self._tick),
            start=self._traced("start", self._start),
            locate=self._traced("locate", self._passed) if one.locate else None,
            renew=self._traced("renew", self._passed) if one.renew else None,
            ports=replace(one.ports, rating=lambda: anywhere.f),
        )

    def _traced(self, name: str, function: Any) -> Graph:
        one = self.programs[0].graphs[name]
        shapes = {"s": (self.layout.size,)} | ({"u": one.inputs["u"]} if "u" in one.inputs else {})

        def made(s: Any, u: Any = ()) -> dict[str, Any]:
            return {"s": self.layout.written(function(name, self.layout.read(s), u))}

        return self.parts[0].trace(one.name.partition(".")[2], made, shapes)

    def chosen_at(self, y: Sequence[Scalar], go: Scalar) -> tuple[Scalar, Scalar]:
        """Return index and bound of the partition that suits a state.

        Parameters
        ----------
        y
            State.
        go
            Positive if the result is needed; otherwise index and bound are 0.
        """
        if self.alone:
            return 0.0, NEVER
        found = self.best.call(**self._given(self.best, {"y": list(y), "go": go}))
        asked = go > 0.0 if isinstance(go, Node) else bool(go)
        index, bound = found["index"].item(), found["bound"].item()
        return (where(asked, index, 0.0), where(asked, bound, 0.0)) if isinstance(go, Node) else (index, bound)

    def _given(self, graph: Graph, values: dict[str, Any]) -> dict[str, Any]:
        if "p" in graph.inputs:
            tape = next(x.tape for x in values.get("s", values.get("y", ())) if isinstance(x, Node))
            values = {**values, "p": tape.inputs("p", graph.inputs["p"])}
        return {name: values[name] for name in graph.inputs}

    def _by(self, name: str, now: dict[str, Any], u: Any, part: Scalar, go: Scalar = 1.0) -> dict[str, Any]:
        """Return the state made by the graph `name` of the selected partition; arbitrary values if `go` is 0."""
        s, made = self.inner.written(now), None
        if self.alone:
            (graph,) = self.graphs[name]
            return self.inner.read(list(graph.call(**self._given(graph, {"s": s, "u": u}))["s"]))
        for k, graph in enumerate(self.graphs[name]):
            mine = where((part - float(k)) * (part - float(k)) < 0.25, go, 0.0)
            found = self.inner.read(list(graph.call(**self._given(graph, {"s": s, "u": u, "go": mine}))["s"]))
            made = found if made is None else {key: chosen(mine > 0.0, x, made[key]) for key, x in found.items()}
        assert made is not None
        return made

    def _passed(self, name: str, now: dict[str, Any], u: Any) -> dict[str, Any]:
        return self._by(name, now, u, now["part"]) | {"part": now["part"]}

    def _start(self, name: str, now: dict[str, Any], u: Any) -> dict[str, Any]:
        part, bound = self.chosen_at(now["y"], 1.0)
        return self._by(name, now | {"bound": bound}, u, part) | {"part": part}

    def _tick(self, name: str, old: dict[str, Any], u: Any) -> dict[str, Any]:
        first = self._by(name, old, u, old["part"])
        if self.alone:
            return first | {"part": 0.0}
        failed = _is(first["status"], NOT_CLOSED)
        asked = where(old["live"] > 0.0, maximum(failed, _is(first["status"], REPARTITION)), 0.0)
        part, bound = self.chosen_at(first["y"], asked)
        again = where((part - old["part"]) * (part - old["part"]) < 0.25, 0.0, where(asked > 0.0, failed, 0.0))
        second = self._by(name, old | {"bound": bound}, u, part, again)
        made = {key: chosen(again > 0.0, second[key], x) for key, x in first.items()}
        on = where(asked > 0.0, _is(made["status"], REPARTITION), 0.0) > 0.0
        changed = where(on, 1.0, again) > 0.0
        return made | {
            "status": where(on, float(RUNNING), made["status"]), "live": where(on, 1.0, made["live"]),
            "part": where(changed, part, old["part"]), "bound": where(changed, bound, made["bound"]),
        }  # fmt: skip


def _is(status: Scalar, code: int) -> Scalar:
    return where((status - float(code)) * (status - float(code)) < 0.25, 1.0, 0.0)
