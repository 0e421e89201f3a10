"""The Mechanism: bodies on joints, validated, immutable, with no algorithm in it.

The quantities (`arm.forward_dynamics(q, v, tau)` and the rest, quantities.py) are compiled on first use by build/,
which is imported only through lazy_import.py: the model layer does not depend on graphs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bellcrank.argument_errors import explain_methods, generator
from bellcrank.errors import InputError, ModelError, brief, unknown, warn
from bellcrank.lazy_import import lazy_import
from bellcrank.model.flexible_body import Modal
from bellcrank.model.free_parameters import free_numbers
from bellcrank.model.internal_frames import tree_of
from bellcrank.model.joints import KINDS
from bellcrank.model.joints.modal import MODAL_PREFIX
from bellcrank.model.outline import Outline, check_outlines
from bellcrank.model.part_checks import check_body_numbers, check_mass, check_values
from bellcrank.model.parts import COUPLINGS, Array, Body, Frame, Joint, Loop, Report, Spring, Triple, with_unit_axes
from bellcrank.model.quantities import Quantities
from bellcrank.model.tree import Tree
from bellcrank.parameters import Parameters, evaluate, nominal, replace_free
from bellcrank.quoting import name_problem, single_line
from bellcrank.text_table import table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# Range of `random` for each joint type, either way; modal coordinates are small.
RANDOM_RANGE = {"revolute": np.pi, "helical": np.pi, "universal": np.pi, "modal": 1e-3}


class LimitVectors(NamedTuple):
    """Joint limits: positions (nq,) from lower to upper, and magnitudes of velocity and effort (nv,)."""

    lower: Array
    upper: Array
    velocity: Array
    effort: Array


@explain_methods("__init__", "assemble", "at", "between", "closing", "frame", "free", "random")
@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(Quantities):
    """Bodies on joints. Prints as a table; `bc.read`, `bc.Builder` and `bc.zoo` make them.

    Any quantity is a method (forward_dynamics, mass_matrix, pose, ...): compiled on first use, cached on disk, for one
    state or a batch. q are positions (nq), v velocities (nv), in the order of `columns`; SI units and radians.

    Parameters
    ----------
    name, ground : str
        Names of the mechanism and of the ground.
    gravity : tuple of 3 floats
        In world axes, m/s^2.
    bodies : tuple of Body
        The moving bodies.
    joints : tuple of Joint
        joints[i] moves bodies[i]; parents come before children.
    frames : mapping of str to Frame
        Frames on bodies, by name.
    report : Report
        Parts that were read, cut or ignored.
    loops : tuple of Loop
        Closures of loops over the tree of the joints.
    springs : tuple of Spring
        Springs and dampers between two points.
    flexible : tuple of Modal
        Modes of flexible bodies.
    outlines : tuple of Outline
        Appearance and loads of beams, without effect on the motion.
    """

    name: str
    ground: str
    gravity: Triple
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    frames: Mapping[str, Frame] = field(default_factory=dict)
    report: Report = field(default_factory=lambda: Report("builder"))
    loops: tuple[Loop, ...] = ()
    springs: tuple[Spring, ...] = ()
    flexible: tuple[Modal, ...] = ()
    outlines: tuple[Outline, ...] = ()

    def __post_init__(self) -> None:
        self._check_names()
        object.__setattr__(self, "frames", MappingProxyType(dict(self.frames)))  # read-only, like all fields

    def _check_names(self) -> None:
        """Check all names: parts come from files and records, and every mechanism passes through this check."""
        for what, names in self._given_names():
            for name in names:
                if why := name_problem(name):
                    raise ModelError(f"the {what} {why}.")
        self._check_columns()
        if self.outlines:
            check_outlines(self.outlines, self.columns[0], {self.ground, *(b.name for b in self.bodies)})

    def _given_names(self) -> tuple[tuple[str, list[str]], ...]:
        """Return all names in the parts, by kind of part."""
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
        """Check that the names of coordinates differ."""
        for elements in self.columns:
            if len(set(elements)) < len(elements):
                twice = next(x for x in elements if elements.count(x) > 1)
                raise ModelError(
                    f'two joints have an element named "{twice}": elements of a joint are named after it '
                    '("base.x"), and another joint has that name. Rename one of them.'
                )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parts, not the compiled code."""
        parts = {f.name: getattr(self, f.name) for f in fields(self)} | {"frames": dict(self.frames)}
        return Mechanism, tuple(parts.values())

    @cached_property
    def own_joints(self) -> tuple[Joint, ...]:
        """The joints with coordinates of their own: all but the mimic joints."""
        return tuple(j for j in self.joints if j.mimic is None)

    @cached_property
    def nq(self) -> int:
        """Number of positions."""
        return sum(KINDS[j.kind].nq for j in self.own_joints)

    @cached_property
    def nv(self) -> int:
        """Number of velocities: less than nq where joints have quaternions."""
        return sum(KINDS[j.kind].nv for j in self.own_joints)

    @cached_property
    def parent(self) -> tuple[int, ...]:
        """Index of each body's parent; -1 is the ground."""
        index = {b.name: i for i, b in enumerate(self.bodies)}
        return tuple(index.get(j.parent, -1) for j in self.joints)

    @cached_property
    def columns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the elements of q and of v; those of modes are equal, as in boom.end.mode1."""
        q, v = [], []
        for j in self.own_joints:
            kind = KINDS[j.kind]
            if j.kind.startswith(MODAL_PREFIX):
                q += [f"{j.name}.{c}" for c in kind.coordinates]
                v += [f"{j.name}.{c}" for c in kind.coordinates]
                continue
            q += [j.name if kind.nq == 1 else f"{j.name}.{c}" for c in kind.coordinates]
            v += [j.name if kind.nv == 1 else f"{j.name}.{k}" for k in range(kind.nv)]
        return tuple(q), tuple(v)

    @cached_property
    def limits(self) -> LimitVectors:
        """Limits of the joints as arrays: lower and upper in the order of q, velocity and effort in the order of v.

        Infinite where none is given, and for quaternions; nominal where a limit is a free parameter. Limits are data
        and do not act on the motion. Limits of mimic joints are not included.
        """
        vectors = LimitVectors(np.empty(self.nq), np.empty(self.nq), np.empty(self.nv), np.empty(self.nv))
        i = k = 0
        for j in self.own_joints:
            kind, limits = KINDS[j.kind], nominal(j.limits)
            vectors.lower[i : i + kind.nq], vectors.upper[i : i + kind.nq] = limits.lower, limits.upper
            vectors.velocity[k : k + kind.nv], vectors.effort[k : k + kind.nv] = limits.velocity, limits.effort
            i, k = i + kind.nq, k + kind.nv
            if kind.nq > kind.nv:
                vectors.lower[i - 4 : i], vectors.upper[i - 4 : i] = -np.inf, np.inf
        for x in vectors:
            x.setflags(write=False)
        return vectors

    def neutral(self) -> Array:
        """Return the zero configuration: zeros, and unit quaternions.

        Returns
        -------
        ndarray, shape (nq,)
            Positions, rad or m.
        """
        return np.array([x for j in self.own_joints for x in KINDS[j.kind]().neutral()])

    def random(self, seed: int | None = None, batch: int | tuple[int, ...] = ()) -> tuple[Array, Array, Array]:
        """Return a random state for experiments.

        Parameters
        ----------
        seed : int, optional
            Seed of the generator.
        batch : int or tuple of int
            Leading axes.

        Returns
        -------
        tuple of ndarray
            q (..., nq): angles in +-pi or inside the limits, unit quaternions, the rest in +-1; v and tau (..., nv) in
            +-1.

        Raises
        ------
        InputError
            If the batch does not fit into memory.
        """
        rng = generator(seed)
        batch = (int(batch),) if isinstance(batch, (int, np.integer)) else tuple(batch)
        parts = []
        for j in self.own_joints:
            kind = KINDS[j.kind]
            reach = RANDOM_RANGE.get(kind.name, 1.0)
            lower, upper = nominal((j.limits.lower, j.limits.upper))
            low, high = max(lower, -reach), min(upper, reach)
            low, high = (low, high) if low < high else (-reach, reach)
            try:
                x = rng.uniform(low, high, (*batch, kind.nq))
            except (MemoryError, OverflowError, ValueError):
                raise InputError(f"random: batch is {brief(batch)}; expected a batch that fits into memory.") from None
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
        """Return positions and velocities that close all loops, near the guesses.

        Parameters
        ----------
        q_guess : array_like, shape (nq,), or mapping of str to float, optional
            Positions to start from, rad or m, or some of them by their names in `columns`; by default the zero
            configuration.
        v_guess : array_like, shape (nv,), or mapping of str to float, optional
            Velocities to start from, rad/s or m/s; by default zero.
        fixed : sequence of str
            Joints that keep the values of the guesses.

        Returns
        -------
        tuple of ndarray
            q (nq,) and v (nv,).
        """
        coordinates: tuple[Array, Array] = lazy_import("dynamics.loops:assemble")(self, q_guess, v_guess, fixed)
        return coordinates

    @cached_property
    def loop_analysis(self) -> Any:
        """Analysis of the loops: mobility, dependent coordinates, redundant equations. Prints as a table."""
        return lazy_import("dynamics.loops:analysis")(self)

    def frame(self, name: str) -> Frame:
        """Return a frame by its name.

        Parameters
        ----------
        name : str
            A body, link or frame.

        Returns
        -------
        Frame
            Its body and its pose there.

        Raises
        ------
        InputError
            If there is no such frame; the message lists the existing ones.
        """
        if name not in self.frames:
            raise InputError(f'mechanism "{self.name}": {unknown("frame", name, self.frames)}')
        return self.frames[name]

    def frictionless(self) -> Mechanism:
        """Return the mechanism without damping, friction and springs (the model of Pinocchio's algorithms).

        Returns
        -------
        Mechanism
            A new mechanism.
        """
        bare = tuple(replace(j, damping=0.0, friction=0.0, stiffness=0.0) for j in self.joints)
        return replace(self, joints=bare, springs=())

    @cached_property
    def tree(self) -> Tree:
        """Internal form for the methods, with frames chosen so that many constants are 0 or 1."""
        plain = tree_of(self.bodies, self.joints, self.frames, self.gravity, self.ground, self.flexible)
        return replace(plain, loops=self.loops, springs=self.springs)

    @cached_property
    def parameters(self) -> Parameters:
        """Names and nominal values of the free parameters, which are the input `p` of every kernel."""
        frames = tuple(self.frames.values())
        parts = (self.gravity, self.bodies, self.joints, frames, self.loops, self.springs)
        return Parameters(*parts, judge=partial(check_values, self))

    def at(self, parameters: Mapping[str, float] = MappingProxyType({})) -> Mechanism:
        """Return the mechanism with plain numbers in place of free parameters.

        Parameters
        ----------
        parameters : mapping of str to float
            Values by name; the other parameters take their nominal values.

        Returns
        -------
        Mechanism
            A new mechanism without free parameters.

        Raises
        ------
        InputError
            If a value is not a single number, or makes a part impossible.
        """
        p = self.parameters.vector(parameters, f'mechanism "{self.name}"')
        if p.ndim > 1:
            raise InputError(f'mechanism "{self.name}": at() takes one value for each parameter; got arrays.')
        values = dict(zip(self.parameters, p.tolist(), strict=True))
        plain_mechanism: Mechanism = replace_free(self, lambda x: float(evaluate(x, lambda leaf: values[leaf.args[0]])))
        for b in plain_mechanism.bodies:
            check_body_numbers(b)
            check_mass(b)
        pairs = zip(plain_mechanism.joints, self.joints, strict=True)
        return replace(
            plain_mechanism, joints=tuple(with_unit_axes(new) if new is not old else new for new, old in pairs)
        )

    def free(self, *names: str) -> Mechanism:
        """Return the mechanism with some of its numbers as free parameters.

        Parameters
        ----------
        *names : str
            "boom.mass", "boom.com.x" or "boom.com" for all three, "gravity.z", "elbow.damping"
            (model/free_parameters.py).

        Returns
        -------
        Mechanism
            A new mechanism; each parameter has the name of its number, and the present value as the nominal one.

        Raises
        ------
        InputError
            If a name is unknown, or its number cannot be free.
        """
        freed: Mechanism = free_numbers(self, names)
        return freed

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the parts: equal for equal mechanisms, in every process."""
        frames = sorted(self.frames.items())
        parts = (self.gravity, self.ground, self.bodies, self.joints, frames, self.loops, self.springs)
        bent = (self.flexible,) if self.flexible else ()
        return hashlib.sha256(repr((*parts, *bent)).encode()).hexdigest()

    def __repr__(self) -> str:
        loops = f", {len(self.loops)} loops" if self.loops else ""
        return f"<Mechanism {single_line(self.name)}: {len(self.bodies)} bodies, nq {self.nq}, nv {self.nv}{loops}>"

    def _repr_html_(self) -> str:
        return str(lazy_import("view.notebook:mechanism")(self))

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = []
        for i, (b, j) in enumerate(zip(self.bodies, self.joints, strict=True)):
            lim = j.limits
            span = f"{lim.lower:.4g} .. {lim.upper:.4g}" if max(nominal((-lim.lower, lim.upper))) < np.inf else ""
            kind = j.kind if j.mimic is None else f"{j.kind} = {j.mimic.multiplier:g} * {j.mimic.joint}"
            rows.append((str(i), j.name, kind, j.parent, b.name, f"{b.mass:.4g}", span))
        total = sum(nominal(b.mass) for b in self.bodies)
        size = f"{len(self.bodies)} moving bodies, nq {self.nq}, nv {self.nv}, {total:.4g} kg"
        head = f"{single_line(self.name)}: {size}, gravity {nominal(self.gravity)}"
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
        """Return a loop as text for a table.

        Parameters
        ----------
        loop : Loop
            A loop of the mechanism.

        Returns
        -------
        tuple of str
            Name, type, the two ends, and its number where it has one.
        """
        if loop.kind in COUPLINGS:
            shift = f" + {loop.offset:g}" if nominal(loop.offset) else ""
            relation = f"{loop.joints[1]} = {loop.value:g} * {loop.joints[0]}{shift}"
            return loop.name, loop.kind, relation, f"{loop.value:g}"
        if loop.joints:
            return loop.name, loop.kind, ", ".join(loop.joints), ""
        value = f"{loop.value:g} m" if loop.kind == "distance" else ""
        return loop.name, loop.kind, f"{self.frame(loop.a).body} - {self.frame(loop.b).body}", value

    def between(self, s: Spring) -> tuple[str, str, str, str, str]:
        """Return a spring as text for a table.

        Parameters
        ----------
        s : Spring
            A spring of the mechanism.

        Returns
        -------
        tuple of str
            Name, the two bodies, stiffness, length and damping.
        """
        bodies = f"{self.frame(s.a).body} - {self.frame(s.b).body}"
        return s.name, bodies, f"{s.stiffness:g}", f"{s.length:g}", f"{s.damping:g}"


def warn_once(mechanism: Mechanism, texts: Iterable[str]) -> None:
    """Issue warnings about the loops of a mechanism, except those that this object has issued before.

    The texts come from the analysis of the loops, or are stored with a compiled kernel, so that a kernel from the cache
    warns without an analysis.

    Parameters
    ----------
    mechanism
        The mechanism, whose name precedes each text.
    texts
        Texts of the warnings, without a full stop.
    """
    issued: set[str] = mechanism.__dict__.setdefault("_issued_warnings", set())
    for text in texts:
        if text not in issued:
            warn(f'"{mechanism.name}": {text}.')
            issued.add(text)  # after the warning: one that is raised as an error is raised again by the next call
