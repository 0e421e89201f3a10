"""Operating points: state, inputs, free parameters and time, of one point or of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.dynamics.loops.assembly import assemble_batch
from bellcrank.dynamics.loops.constraint_values import displace
from bellcrank.errors import InputError, unknown
from bellcrank.model import Mechanism
from bellcrank.sim.run_arguments import RunArguments, real_array, vector_argument
from bellcrank.sim.system.systems import System

Array = np.ndarray[Any, Any]
VECTOR_NAMES = ("q", "v", "x", "u", "p")


@dataclass(frozen=True, eq=False)
class OperatingPoint:
    """One operating point or a batch of them.

    Attributes
    ----------
    system
        The system that the point belongs to.
    y
        States, (points, size).
    u
        Inputs, (points, nu).
    p
        Free parameters, (points, np).
    t
        Times, (points,).
    shape
        Shape of the batch, () for one point.
    """

    system: System
    y: Array
    u: Array
    p: Array
    t: Array
    shape: tuple[int, ...]

    @property
    def vectors(self) -> dict[str, Array]:
        """Return q, v, x, u, p and t in the shape of the batch, as the argument `at` takes them."""
        m = self.system.mechanism
        q, v, x = np.split(self.y, [m.nq, m.nq + m.nv], axis=-1)
        vectors = {"q": q, "v": v, "x": x, "u": self.u, "p": self.p}
        return {key: a.reshape((*self.shape, a.shape[-1])) for key, a in vectors.items()} | {
            "t": self.t.reshape(self.shape)
        }


def element_places(s: System) -> dict[str, tuple[str, int]]:
    """Return group and index of every element of a point of the system `s`, by all its names, those of records too."""
    q, v = s.mechanism.columns
    input_names = {"u": list(s.inputs), "p": list(s.parameters)}
    names = {"q": [f"{n}.q" for n in q], "v": [f"{n}.v" for n in v], "x": [z.name for z in s.states], **input_names}
    places = {name: (key, i) for key, group_names in names.items() for i, name in enumerate(group_names)}
    prefixes = {"u": "input", "p": "parameter"}
    return places | {
        f"{prefixes[key]}.{name}": (key, i)
        for key, group_names in input_names.items()
        for i, name in enumerate(group_names)
    }


def operating_point(s: System, given: Mapping[str, Any]) -> OperatingPoint:
    """Return an operating point from a mapping such as {"q": [...], "elbow.v": 0.3, "target": 1.0}.

    Defaults: neutral positions, velocities 0, initial values of states, default inputs, nominal parameters.

    Parameters
    ----------
    s
        System.
    given
        Whole vectors by q, v, x, u (inputs) and p (free parameters), the time by t, single elements by their names.
    """
    known = element_places(s)
    for name in given:
        if name not in known and name not in (*VECTOR_NAMES, "t"):
            raise InputError(f'at, of "{s.mechanism.name}": {unknown("element", name, [*VECTOR_NAMES, "t", *known])}')
    m, free = s.mechanism, s.parameters
    q = _vector("q", given, known, m.columns[0], m.neutral())
    v = _vector("v", given, known, m.columns[1], np.zeros(m.nv))
    x = _vector("x", given, known, [z.name for z in s.states], [z.initial for z in s.states])
    u = _vector("u", given, known, s.inputs, [s.defaults.get(n, np.nan) for n in s.inputs])
    p = _vector("p", given, known, list(free), list(free.values()))
    given_inputs = {n: u[..., i] for i, n in enumerate(s.inputs) if not np.isnan(u[..., i]).any()}
    t = real_array("at: t", given.get("t", 0.0))
    q, v, x = (np.broadcast_to(a, (*np.broadcast_shapes(a.shape[:-1], t.shape), a.shape[-1])) for a in (q, v, x))
    batch = RunArguments(s, q, v, x, given_inputs, None, {n: p[..., i] for i, n in enumerate(free)}, None)
    times = np.broadcast_to(t, batch.shape).reshape(-1)
    return OperatingPoint(s, batch.y, batch.table[:, 0], batch.parameters, times, batch.shape)


def mechanism_at(s: System, p: Array) -> Mechanism:
    """Return the mechanism of the system `s` with the values `p` of the free parameters of the system."""
    m, names = s.mechanism, list(s.parameters)
    return m.at({n: float(p[names.index(n)]) for n in m.parameters}) if m.parameters else m


def displaced_positions(s: System, p: Array, q: Array, xi: Array, independent: Sequence[int]) -> Array:
    """Return positions after a displacement, with the dependent joints solved so that the loops close.

    Parameters
    ----------
    s
        System.
    p
        Values of its free parameters.
    q
        Positions, (..., nq).
    xi
        Displacements along v, (..., nv).
    independent
        Elements of v that keep their displacement.
    """
    tree = mechanism_at(s, p).tree
    moved_there = displace(tree, np.broadcast_to(q, (*xi.shape[:-1], q.shape[-1])), xi)
    if not tree.loops:
        return moved_there
    return assemble_batch(tree, moved_there, free=dependent_mask(s, independent))[0]


def dependent_mask(s: System, independent: Sequence[int]) -> Array:
    """Return a mask over v of the system `s`: 0 for the `independent` elements, 1 for the others."""
    return np.array([0.0 if i in independent else 1.0 for i in range(s.mechanism.nv)])


def _vector(
    key: str, given: Mapping[str, Any], known: Mapping[str, tuple[str, int]], names: Any, default: Any
) -> Array:
    """Return one of the vectors: given as a whole, overridden by single elements."""
    vector = vector_argument(f"at: {key}", given.get(key), list(names), default)
    single = {known[n][1]: real_array(f'at: "{n}"', x) for n, x in given.items() if n in known and known[n][0] == key}
    try:
        shape = np.broadcast_shapes(vector.shape[:-1], *(x.shape for x in single.values()))
    except ValueError:
        shapes = ", ".join(f"{names[i]} {x.shape}" for i, x in single.items())
        raise InputError(f"at: elements of {key} do not broadcast: {shapes}, with {vector.shape[:-1]}.") from None
    out = np.array(np.broadcast_to(vector, (*shape, len(names))))
    for i, x in single.items():
        out[..., i] = x
    return out
