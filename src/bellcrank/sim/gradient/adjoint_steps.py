"""Discrete adjoint of a fixed-step run: one program for the forward pass and one for the backward pass.

A forward step is y1, memory1 = F(t, y, memory, u, p). Its note holds all that the backward pass needs: t, y, memory, u
and the results of the graphs that F calls (the rates of the stages), so that nothing is computed twice. The rows of
the forward program are the table of inputs of the backward program, which reads them from the last to the first:
w <- w dF/dy, g_p <- g_p + w dF/dp, and g_u likewise until the first step with the same inputs, where g_u is written as
a row.

F contains all that a run does from one step to the next: samples that are due are taken before it, and loops are closed
after it. Loops may leave the region where one coordinate partition is valid. That is recorded as trouble, with the
state in which it began, and the caller chooses another partition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

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

    @property
    def parameter_count(self) -> int:
        """Number of free parameters."""
        return len(self.dynamics.system.parameters)

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
            settled, trouble, _ = dynamics.step_end_state(
                integrated, {"y": y, "bound": MAX_NULL_SPACE_ELEMENT, "open": 0.0, "noise": 0.0}
            )
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
        return [call_results[node.args[1]] for node in used_results], Graph(
            short.name, inputs, short.outputs, short.tape
        )

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
        fields = {
            "y": self.dynamics.plain_size,
            "memory": self.memory_size,
            "u": self.nu,
            "told": len(self._noted_and_pullback[0]),
        }
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
            values = {name: old[name] for name in ("y", "memory", "fresh", "h")} | {
                "t": old["n"] * old["h"],
                "u": list(u),
            }
            values["line"] = old["input"] if self.nu else 0.0
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
        fields = {
            "g_u": self.nu,
            "w_y": state_size,
            "w_memory": self.memory_size,
            "g_p": self.parameter_count,
            "sum_u": self.nu,
        }
        places = Layout({name: list_width(width) for name, width in fields.items()} | dict.fromkeys(
            ("live", "due", "input", "h"), 1
        ))  # fmt: skip

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
