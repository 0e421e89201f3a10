"""The Mechanism: bodies on joints, validated, immutable, with no algorithm in it.

The quantities (`arm.forward_dynamics(q, v, tau)` and the rest, quantities.py) are compiled on first use by build/, to
which only stairs.py leads: this tower knows nothing of graphs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import InputError, ModelError, brief, unknown
from bellcrank.misfits import explained_class
from bellcrank.model.check import mass, numbers
from bellcrank.model.frames import tree_of
from bellcrank.model.free import freed
from bellcrank.model.given_values import possible
from bellcrank.model.joints import KINDS
from bellcrank.model.joints.modal import PREFIX
from bellcrank.model.modal import Modal
from bellcrank.model.outline import Outline, check_outlines
from bellcrank.model.parts import COUPLINGS, Array, Body, Frame, Joint, Loop, Report, Spring, Triple, straight
from bellcrank.model.quantities import Quantities
from bellcrank.model.results import LimitVectors
from bellcrank.model.tree import Tree
from bellcrank.parameters import Parameters, evaluated, nominal, replaced
from bellcrank.quoting import line, refused
from bellcrank.seeds import generator
from bellcrank.stairs import above, view
from bellcrank.text import table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# How far `random` moves joints of a type; bodies bend by little.
REACH = {"revolute": np.pi, "helical": np.pi, "universal": np.pi, "modal": 1e-3}


@explained_class("__init__", "assemble", "at", "between", "closing", "frame", "free", "random")
@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(Quantities):
    """Bodies on joints. Prints as a table; `bc.read`, `bc.Builder` and `bc.zoo` make them.

    Any quantity is a method (forward_dynamics, mass_matrix, pose, ...): compiled on first use, kept on disk, for one
    state or a batch. q are positions (nq), v velocities (nv), in the order of `columns`; SI units and radians.
    """

    name: str
    ground: str
    gravity: Triple
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]  # joints[i] moves bodies[i]; a parent stands before its children
    frames: Mapping[str, Frame] = field(default_factory=dict)
    report: Report = field(default_factory=lambda: Report("builder"))
    loops: tuple[Loop, ...] = ()  # what closes loops over the tree of the joints
    springs: tuple[Spring, ...] = ()
    flexible: tuple[Modal, ...] = ()  # what bodies do that bend
    outlines: tuple[Outline, ...] = ()  # what beams look like and carry; they move nothing

    def __post_init__(self) -> None:
        self._check_names()
        object.__setattr__(self, "frames", MappingProxyType(dict(self.frames)))  # read-only, as everything here

    def _check_names(self) -> None:
        """Parts come from files, and from records past all readers: this is the one door that all go through."""
        for what, names in self._given_names():
            for name in names:
                if why := refused(name):
                    raise ModelError(f"the {what} {why}.")
        self._check_columns()
        check_outlines(self.outlines, self.columns[0], {self.ground, *(b.name for b in self.bodies)})

    def _given_names(self) -> tuple[tuple[str, list[str]], ...]:
        """All that somebody has called something, by what it is."""
        return (
            ("mechanism", [self.name, self.ground]),
            ("body", [name for b in self.bodies for name in (b.name, *b.links)]),
            ("joint", [name for j in self.joints for name in (j.name, j.parent, j.child)]),
            ("joint", [j.mimic.joint for j in self.joints if j.mimic is not None]),
            ("frame", [name for key, f in self.frames.items() for name in (key, f.name, f.body)]),
            ("loop", [name for loop in self.loops for name in (loop.name, loop.a, loop.b, *loop.joints)]),
            ("spring", [name for s in self.springs for name in (s.name, s.a, s.b)]),
            ("body", [name for m in self.flexible for name in (m.body, *(node.joint for node in m.nodes))]),
            ("outline", [name for o in self.outlines for name in (o.name, *(x.name for x in o.sections))]),
        )

    def _check_columns(self) -> None:
        """What belongs to a joint of several elements is called after it, and nobody else may be."""
        for elements in self.columns:
            if len(set(elements)) < len(elements):
                twice = next(x for x in elements if elements.count(x) > 1)
                raise ModelError(
                    f'two joints have an element that is called "{twice}": what belongs to a joint is called after it '
                    '("base.x"), and here another joint has that name. Rename one of them.'
                )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the parts, not the compiled code."""
        return Mechanism, (
            self.name,
            self.ground,
            self.gravity,
            self.bodies,
            self.joints,
            dict(self.frames),
            self.report,
            self.loops,
            self.springs,
            self.flexible,
            self.outlines,
        )

    @cached_property
    def own_joints(self) -> tuple[Joint, ...]:
        """The joints with coordinates of their own: all but the mimics."""
        return tuple(j for j in self.joints if j.mimic is None)

    @cached_property
    def nq(self) -> int:
        """How many positions there are."""
        return sum(KINDS[j.kind].nq for j in self.own_joints)

    @cached_property
    def nv(self) -> int:
        """How many velocities there are: less than nq where joints have quaternions."""
        return sum(KINDS[j.kind].nv for j in self.own_joints)

    @cached_property
    def parent(self) -> tuple[int, ...]:
        """Index of each body's parent; -1 is the ground."""
        index = {b.name: i for i, b in enumerate(self.bodies)}
        return tuple(index.get(j.parent, -1) for j in self.joints)

    @cached_property
    def columns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the elements of q and of v. Those of modes are the same: boom.end.mode1."""
        q, v = [], []
        for j in self.own_joints:
            kind = KINDS[j.kind]
            if j.kind.startswith(PREFIX):
                q += [f"{j.name}.{c}" for c in kind.coordinates]
                v += [f"{j.name}.{c}" for c in kind.coordinates]
                continue
            q += [j.name if kind.nq == 1 else f"{j.name}.{c}" for c in kind.coordinates]
            v += [j.name if kind.nv == 1 else f"{j.name}.{k}" for k in range(kind.nv)]
        return tuple(q), tuple(v)

    @cached_property
    def limits(self) -> LimitVectors:
        """Limits of the joints as arrays: lower and upper as q is ordered, velocity and effort as v. Infinite where
        nothing is said, and for quaternions; nominal where a limit is free. They are data and do not act. Those of a
        joint that follows another are its own business, and not in here.
        """
        found = LimitVectors(np.empty(self.nq), np.empty(self.nq), np.empty(self.nv), np.empty(self.nv))
        i = k = 0
        for j in self.own_joints:
            kind, limits = KINDS[j.kind], nominal(j.limits)
            found.lower[i : i + kind.nq], found.upper[i : i + kind.nq] = limits.lower, limits.upper
            found.velocity[k : k + kind.nv], found.effort[k : k + kind.nv] = limits.velocity, limits.effort
            i, k = i + kind.nq, k + kind.nv
            if kind.nq > kind.nv:
                found.lower[i - 4 : i], found.upper[i - 4 : i] = -np.inf, np.inf
        for x in found:
            x.setflags(write=False)
        return found

    def neutral(self) -> Array:
        """The zero configuration: zeros, and unit quaternions."""
        return np.array([x for j in self.own_joints for x in KINDS[j.kind]().neutral()])

    def random(self, seed: int | None = None, batch: int | tuple[int, ...] = ()) -> tuple[Array, Array, Array]:
        """q, v and tau to try things with: angles in +-pi (or inside the limits), unit quaternions, the rest in +-1."""
        rng = generator(seed)
        batch = (int(batch),) if isinstance(batch, (int, np.integer)) else tuple(batch)
        parts = []
        for j in self.own_joints:
            kind = KINDS[j.kind]
            reach = REACH.get(kind.name, 1.0)
            lower, upper = nominal((j.limits.lower, j.limits.upper))
            low, high = max(lower, -reach), min(upper, reach)
            low, high = (low, high) if low < high else (-reach, reach)
            try:
                x = rng.uniform(low, high, (*batch, kind.nq))
            except (MemoryError, OverflowError, ValueError):
                raise InputError(f"random: batch is {brief(batch)}; expected as many as memory can hold.") from None
            if kind.nq > kind.nv:
                x[..., -4:] = rng.normal(size=(*batch, 4))
                x[..., -4:] /= np.linalg.norm(x[..., -4:], axis=-1, keepdims=True)
            parts.append(x)
        q = np.concatenate(parts, axis=-1) if parts else np.zeros((*batch, 0))
        return q, rng.uniform(-1, 1, (*batch, self.nv)), rng.uniform(-1, 1, (*batch, self.nv))

    def assemble(
        self,
        q_guess: ArrayLike | Mapping[str, float] | None = None,
        v_guess: ArrayLike | Mapping[str, float] | None = None,
        fixed: Sequence[str] = (),
    ) -> tuple[Array, Array]:
        """(q, v) that close all loops, the nearest to the guesses that is found.

        Guesses are arrays, or mappings by the names in `columns`; without one it is the zero configuration, at rest.
        fixed: joints that keep what the guesses say.
        """
        found: tuple[Array, Array] = above("dynamics.loops").assemble(self, q_guess, v_guess, fixed)
        return found

    @cached_property
    def loop_analysis(self) -> Any:
        """What the loops do: mobility, which coordinates depend on others, which equations are redundant. Prints as a
        table.
        """
        return above("dynamics.loops").analysis(self)

    def frame(self, name: str) -> Frame:
        """A frame by its name; an error says which there are."""
        if name not in self.frames:
            raise InputError(f'mechanism "{self.name}": {unknown("frame", name, self.frames)}')
        return self.frames[name]

    def frictionless(self) -> Mechanism:
        """The same mechanism without damping, friction and springs (what Pinocchio's algorithms see)."""
        bare = tuple(replace(j, damping=0.0, friction=0.0, stiffness=0.0) for j in self.joints)
        return replace(self, joints=bare, springs=())

    @cached_property
    def tree(self) -> Tree:
        """The form that the methods work on: frames re-chosen so that constants vanish."""
        plain = tree_of(self.bodies, self.joints, self.frames, self.gravity, self.ground, self.flexible)
        return replace(plain, loops=self.loops, springs=self.springs)

    @cached_property
    def parameters(self) -> Parameters:
        """Names and nominal values of the numbers that were left free; they are the input `p` of every kernel."""
        frames = tuple(self.frames.values())
        parts = (self.gravity, self.bodies, self.joints, frames, self.loops, self.springs)
        return Parameters(*parts, judge=partial(possible, self))

    def at(self, parameters: Mapping[str, float] = MappingProxyType({})) -> Mechanism:
        """The same mechanism with plain numbers: these, and nominal ones for the rest."""
        p = self.parameters.vector(parameters, f'mechanism "{self.name}"')
        if p.ndim > 1:
            raise InputError(f'mechanism "{self.name}": at() takes one value for each parameter; got arrays.')
        values = dict(zip(self.parameters, p.tolist(), strict=True))
        found: Mechanism = replaced(self, lambda x: float(evaluated(x, lambda leaf: values[leaf.args[0]])))
        for b in found.bodies:
            numbers(b)
            mass(b)
        pairs = zip(found.joints, self.joints, strict=True)
        return replace(found, joints=tuple(straight(new) if new is not old else new for new, old in pairs))

    def free(self, *names: str) -> Mechanism:
        """The same mechanism with these numbers as parameters of that name.

        "boom.mass", "boom.com.x" or "boom.com" for all three, "gravity.z", "elbow.damping" (model/free.py).
        """
        found: Mechanism = freed(self, names)
        return found

    @cached_property
    def fingerprint(self) -> str:
        """Equal for equal mechanisms, in every process."""
        frames = sorted(self.frames.items())
        parts = (self.gravity, self.ground, self.bodies, self.joints, frames, self.loops, self.springs)
        bent = (self.flexible,) if self.flexible else ()
        return hashlib.sha256(repr((*parts, *bent)).encode()).hexdigest()

    def __repr__(self) -> str:
        loops = f", {len(self.loops)} loops" if self.loops else ""
        return f"<Mechanism {line(self.name)}: {len(self.bodies)} bodies, nq {self.nq}, nv {self.nv}{loops}>"

    def _repr_html_(self) -> str:
        return str(view("notebook").mechanism(self))

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = []
        for i, (b, j) in enumerate(zip(self.bodies, self.joints, strict=True)):
            lim = j.limits
            span = f"{lim.lower:.4g} .. {lim.upper:.4g}" if max(nominal((-lim.lower, lim.upper))) < np.inf else ""
            kind = j.kind if j.mimic is None else f"{j.kind} = {j.mimic.multiplier:g} * {j.mimic.joint}"
            rows.append((str(i), j.name, kind, j.parent, b.name, f"{b.mass:.4g}", span))
        total = sum(nominal(b.mass) for b in self.bodies)
        size = f"{len(self.bodies)} moving bodies, nq {self.nq}, nv {self.nv}, {total:.4g} kg"
        head = f"{line(self.name)}: {size}, gravity {nominal(self.gravity)}"
        joints = table(("#", "joint", "type", "parent", "body", "mass kg", "limits"), rows, right=(0, 5))
        tables = [joints]
        if self.loops:
            tables.append(
                table(("loop", "type", "closes", "value"), [self.closing(loop) for loop in self.loops], right=(3,))
            )
        if self.springs:
            head_of_springs = ("spring", "between", "stiffness", "length", "damping")
            tables.append(table(head_of_springs, [self.between(s) for s in self.springs], right=(2, 3, 4)))
        if self.parameters:
            tables.append(str(self.parameters))
        return f"{head}\n" + "\n\n".join(tables)

    def closing(self, loop: Loop) -> tuple[str, str, str, str]:
        """A loop in words: name, type, what meets, and its number where it has one."""
        if loop.kind in COUPLINGS:
            shift = f" + {loop.offset:g}" if nominal(loop.offset) else ""
            return (
                loop.name,
                loop.kind,
                f"{loop.joints[1]} = {loop.value:g} * {loop.joints[0]}{shift}",
                f"{loop.value:g}",
            )
        if loop.joints:
            return loop.name, loop.kind, ", ".join(loop.joints), ""
        value = f"{loop.value:g} m" if loop.kind == "distance" else ""
        return loop.name, loop.kind, f"{self.frame(loop.a).body} - {self.frame(loop.b).body}", value

    def between(self, s: Spring) -> tuple[str, str, str, str, str]:
        """A spring in words: name, its two bodies, stiffness, length, damping."""
        bodies = f"{self.frame(s.a).body} - {self.frame(s.b).body}"
        return s.name, bodies, f"{s.stiffness:g}", f"{s.length:g}", f"{s.damping:g}"
