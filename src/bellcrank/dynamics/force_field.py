"""Force fields: one force law for all bodies, acting at their centres of mass, such as wind or buoyancy.

    tau = sum of J_i^T f(p_i, v_i, m_i)

The work is O(n): one forward sweep for positions and velocities and one backward sweep for forces, as in rnea.py. For
mechanisms with large link classes (tree_sweeps.py) the law is part of the class's code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bellcrank.dynamics.tree_sweeps import Body, BodyRecursion, FromParent, Send, Vector, accumulate_subtree, sweep
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, is_zero, step
from bellcrank.spatial.vector import NO_FORCE, NO_MOTION, Force, Mat, Motion, Vec, weighted_sum

# (position, velocity, mass) of a centre of mass, in world axes -> force there, in world axes
ForceLaw = Callable[[Sequence[Scalar], Sequence[Scalar], Scalar], Sequence[Scalar]]


def field_forces(tree: Tree, law: ForceLaw, q: Vector, v: Vector) -> list[Scalar]:
    """Return the generalised forces of the field.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    law
        Force law.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    return sweep(tree, field_recursion(law), {"q": q, "v": v}).by_axis(tree.nv)


def field_recursion(law: ForceLaw) -> Callable[[Body], BodyRecursion]:
    """Return the body recursion of the force law `law`."""

    def work(body: Body) -> BodyRecursion:
        X, ground = body.X, body.ground
        R, p, V = yield FromParent((ground.R, ground.p, NO_MOTION))
        R, p = X.pose(R, p)
        V = weighted_sum(body.S, (body.v[k] for k in body.link.v_index), X.motion(V))
        yield Send((R, p, V))
        (total,) = yield from accumulate_subtree(body, X.force, field=_body_force(body.link, law, R, p, V))
        return [s.dot(total) for s in body.S]

    return work


def _body_force(link: Link, law: ForceLaw, R: Mat, p: Vec, V: Motion) -> Force:
    step("field", link.name)
    m = link.inertia.m
    if is_zero(m):
        return NO_FORCE
    c = link.inertia.h * (1.0 / m)
    place, moving = p + R @ c, R @ (V.lin + V.ang.cross(c))
    f = R.T @ Vec(*law([*place], [*moving], m))
    return Force(c.cross(f), f)
