"""Build the system of a case: its mechanism, a start that closes all loops, and everything that acts on it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.dynamics import kinematics
from bellcrank.model import Mechanism
from bellcrank.sim.system.prescribed_motions import free_shares
from crossing.files import by_file
from crossing.mechanisms import TAIL, on_body, tree, with_loops
from crossing.pairwise import Case
from crossing.parts import EVENTS, SLIDES, STEP, actuator, between_frames, control, element, gap
from crossing.thresholds import SEGMENTED

Array = np.ndarray[Any, Any]
STEPS = 24
SECONDS = STEPS * STEP
MOTION_ACCELERATION = 0.2  # rad/s^2 or m/s^2, of prescribed motions


@dataclass(frozen=True, eq=False)
class World:
    """The system of a case, with the settings of bc.simulate."""

    case: Case
    seed: int = 0
    kept: dict[str, Any] = field(default_factory=dict)

    def of(self, dimension: str) -> tuple[str, ...]:
        """Return the values of a dimension; an empty tuple for "none"."""
        return tuple(value for name, value in self.case if name == dimension and value != "none")

    def one(self, dimension: str) -> str:
        """Return the single value of a dimension, or an empty string."""
        return next(iter(self.of(dimension)), "")

    @cached_property
    def bare(self) -> Mechanism:
        """Return the mechanism without the frames of force elements."""
        kinds = [*self.of("joint"), *("prismatic" for a in self.of("actuator") if a in SLIDES)]
        name = f"case{self.seed}"
        source, tail = self.one("source") or "built", TAIL if self.one("path") == SEGMENTED else 0
        parts = tree(name, kinds, self.of("closure"), self.of("trait"), self.seed, source, tail)
        m = with_loops(parts.build(), self.of("closure"), self.seed)
        m = m if source == "built" else by_file(source, parts, m)
        return m.free("b0.mass", "b0.com.x", "gravity.z") if "free numbers" in self.of("trait") else m

    @cached_property
    def start(self) -> tuple[Array, Array]:
        """Return positions and velocities that close all loops, away from zero and from singular configurations."""
        found = [self._near_zero(k) for k in range(8 if self.bare.loops else 1)]
        return min(found, key=lambda at: self._condition(at[0]))

    def _near_zero(self, k: int) -> tuple[Array, Array]:
        m, rng = self.bare, np.random.default_rng((self.seed, k))
        dq, v = 0.15 * rng.normal(size=m.nv), 0.5 * rng.normal(size=m.nv)
        flexible = [i for i, name in enumerate(m.columns[1]) if name.startswith("beam.")]
        dq[flexible], v[flexible] = 1e-3 * dq[flexible], 1e-2 * v[flexible]
        q = m.integrate(m.neutral(), dq)
        if not m.loops:
            return q, v
        # One more Newton step: contacts are so stiff that the remaining gap would change accelerations by 1e-7.
        q, v = m.assemble(q, v)
        q = m.integrate(q, -np.linalg.lstsq(m.closure_jacobian(q), m.closure(q), rcond=1e-8)[0])
        return q, m.assemble(q, v)[1]

    def _condition(self, q: Array) -> float:
        m = self.bare
        if not m.loops:
            return 1.0
        found = np.linalg.svd(m.closure_jacobian(q)[list(m.loop_analysis.kept)], compute_uv=False)
        return float(found[0] / found[-1])

    @cached_property
    def mechanism(self) -> Mechanism:
        """Return the mechanism with two frames for each force element, placed at the start configuration."""
        m, q = self.bare, self.start[0].tolist()
        frames = dict(m.frames)
        for k, name in enumerate(self.of("element")):
            if between_frames(name):
                held = m.frames["tool"].body
                other = next(x.name for x in m.bodies if x.name != held)
                a, b = ((m.ground, held), (other, held), (m.ground, other))[k % 3]
                X = np.array(kinematics.pose(m.tree, q, "tool"), dtype=float)
                X[:3, 3] = np.random.default_rng(self.seed + k).uniform(-0.5, 0.5, 3)
                Y = X.copy()
                Y[:3, 3] += X[:3, :3] @ (0.01, 0.02, gap(name))
                for end, body, pose in (("a", a, X), ("b", b, Y)):
                    frames[f"e{k}.{end}"] = on_body(m, q, f"e{k}.{end}", body, pose)
        return replace(m, frames=frames) if len(frames) > len(m.frames) else m

    @cached_property
    def single(self) -> list[str]:
        """Return the names of revolute joints with one independent coordinate, the last first."""
        m = self.mechanism
        return [
            j.name for j in reversed(m.joints) if j.kind == "revolute" and j.mimic is None and j.name in m.columns[1]
        ]

    @cached_property
    def system(self) -> bc.System:
        """Return the mechanism with everything that acts on it."""
        m, parts = self.mechanism, dict[str, Any]()
        turning, sliding = self.single, [j.name for j in m.joints if j.kind == "prismatic"]
        found = []
        for name in self.of("actuator"):
            joint = sliding.pop() if name in SLIDES else turning[len(found) % len(turning)]
            found.append(actuator(name, joint))
        commanded = tuple(a.joint for a in found if a.commanded) if found else tuple(m.columns[1][-2:])
        if self.one("control") and commanded:
            parts |= control(self.one("control"), commanded) | {"inputs": {"push": 0.1}}
        elements = []
        for k, name in enumerate(self.of("element")):
            ends = (f"e{k}.a", f"e{k}.b") if between_frames(name) else tuple(self.single[:2])
            elements.append(element(name, f"el{k}", *ends))
        traits = self.of("trait")
        if "force on a frame" in traits:
            parts["forces"] = {
                "tool": lambda t, X, V: ([1.0 - V[0], X[1, 3], 0.0], [0.0, 0.2 * bc.sin(t), -0.1 * V[5]])
            }
        if "force everywhere" in traits:
            parts["everywhere"] = lambda place, velocity, mass: [-0.3 * velocity[0], 0.0, 0.1 * mass * place[2]]
        if "motion" in traits and (name := self._movable(turning)):
            at, speed = (x[m.columns[k].index(name)] for k, x in enumerate(self.start))
            parts["motions"] = {name: lambda t: float(at) + float(speed) * t + 0.5 * MOTION_ACCELERATION * t * t}
        if "outputs" in traits:
            parts["outputs"] = {"speed": lambda t, q, v, x, u: v[0] * v[0] + bc.sin(q[0])}
        return bc.system(m, found, elements=elements, **parts)

    def _movable(self, names: list[str]) -> str:
        """Return the first of these joints that the loops leave movable; empty if there is none."""
        m, y = self.mechanism, np.concatenate(self.start)
        plain = m.at() if m.parameters else m
        shares = ((name, dict(free_shares(plain, {name: float}, y))[name]) for name in names)
        return next((name for name, share in shares if share > 1e-3), "")

    @property
    def events(self) -> list[bc.Event]:
        found = EVENTS[self.one("event") or "none"]()
        latched = "Latch" in self.of("element")
        return [replace(e, then=bc.attach()) if latched and e.action == "switch" else e for e in found]

    @property
    def how(self) -> dict[str, Any]:
        """Return the settings of a run: integrator, step size, and how loops stay closed."""
        found: dict[str, Any] = {"integrator": self.one("integrator") or "rk4"}
        chosen = self.one("steps") == "chosen"
        found |= {"tolerance": 1e-9} if chosen else {"step": STEP}
        return found | ({"form": self.one("form")} if self.of("form") else {})

    @cached_property
    def begin(self) -> dict[str, Any]:
        """Return the start of a run."""
        q, v = self.start
        return {"q0": q, "v0": v}

    def run(self, **other: Any) -> bc.Record:
        """Simulate the case."""
        given = {"events": self.events, "every": 4 * STEP, **self.begin, **self.how, **other}
        return bc.simulate(self.system, SECONDS, **given)

    @cached_property
    def record(self) -> bc.Record:
        """Return the reference run that all other uses must agree with."""
        return self.run()
