"""Systems whose mechanism has closed loops: the rate in one of the forms, and the correction after each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bellcrank import build
from bellcrank.graph import Graph
from bellcrank.integrate.problem import Problem, State
from bellcrank.methods import METHODS, kinematics
from bellcrank.methods.closure import forms
from bellcrank.methods.closure.rows import equations
from bellcrank.scalar import Scalar, fabs, maximum, step
from bellcrank.sim.traced import Traced

STAGE, FINAL = 2, 3  # Newton rounds inside a step and at its end


@dataclass(frozen=True, eq=False)
class Looped(Traced):
    form: str = "minimal"
    part: forms.Partition | None = None
    alpha: float = 0.0

    @cached_property
    def f(self) -> Graph:
        s, m = self.system, self.system.mechanism

        def rate(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
            y = self.closed(list(y), STAGE)[0] if self.form == "minimal" else list(y)
            step("control")
            commands, own = s.commanded(t, y, u)
            step("actuators")
            tau, rates = s.forces(t, y, commands)
            a = self._accelerations(y, tau)
            step("rate")
            q, v, _ = s.split(y)
            return {"dy": [*kinematics.rate(m.tree, list(q), list(v)), *a, *rates, *own]}

        return self._varied(self.trace("rate", rate, self._plain))

    def closed(self, y: State, rounds: int) -> tuple[State, Scalar, Scalar]:
        """The state with its dependent coordinates solved for, the largest of E, and the smallest pivot."""
        assert self.part is not None
        s, m = self.system, self.system.mechanism
        q, v, x = s.split(y)
        moved = forms.corrected(build.tree(m, 'forward_dynamics', METHODS['crba']), self.part, list(q), rounds)
        tree = build.tree(m, "forward_dynamics", METHODS["crba"])
        mass = METHODS["crba"].function("mass_matrix")
        turned, found = forms.velocities(tree, mass, self.part, moved, list(v))
        return [*moved, *turned, *x, *y[s.size :]], found.largest, found.sound

    def _accelerations(self, y: Sequence[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
        m = self.system.mechanism
        q, v, _ = self.system.split(y)
        if self.form == "minimal":
            assert self.part is not None
            tree = build.tree(m, "forward_dynamics", METHODS["crba"])
            inverse = METHODS["rnea"].function("inverse_dynamics")
            mass = METHODS["crba"].function("mass_matrix")
            return forms.minimal(tree, inverse, mass, self.part, list(q), list(v), list(tau))
        tree = build.tree(m, "forward_dynamics", self.method)
        forward = self.method.function("forward_dynamics")
        return forms.lagrange(tree, forward, self.part.kept, list(q), list(v), list(tau), self.alpha)[0]

    @cached_property
    def correction(self) -> Graph:
        m = self.system.mechanism

        def correct(y: Any) -> dict[str, Any]:
            new, largest, smallest = self.closed(list(y), FINAL)
            q, v, _ = self.system.split(new)
            worst: Scalar = 0.0
            for e in equations(m.tree, list(q), list(v)):
                worst = maximum(worst, fabs(e.value))
            return {"y": new, "measure": [worst, largest, smallest]}

        return self.trace("correction", correct, {"y": (self.size,)})

    def problem(self, u: Sequence[Scalar] = ()) -> Problem:
        from dataclasses import replace

        plain = super().problem(u)
        if self.form != "minimal":
            return plain

        def project(y: State) -> State:
            return list(self.correction.call(y=y)["y"])

        return replace(plain, project=project)
