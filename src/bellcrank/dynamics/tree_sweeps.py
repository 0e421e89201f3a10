"""Sweeps over the tree: poses, forces on the bodies, generalised forces; and methods written as the work of one body.

A body recursion is a generator, the work of one body, that requests the values of its neighbours and sends values:

    w = yield FromParent(ZERO)         the value that the parent sent; bodies on the ground get this default
    yield Send(w)                      the value that this body sends, in the direction of the last request
    parts = yield FromChildren()       the values that the children sent
    (f,) = yield Sum(name, {"f": f})   the sum of what the children sent and of the body's own

The code between two requests belongs to one sweep over the tree. The generator returns the body's elements of the
result. It is traced in two ways: `sweep` runs it for every body, which writes straight-line code, and in large
mechanisms it runs once for each link class, as the cell of a rolled loop (build/cell_tracing.py).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bellcrank.dynamics.frame_pairs import spring_torque
from bellcrank.model.flexible_body import FlexibleBody
from bellcrank.model.tree import Link, Tree
from bellcrank.process_state import evaluated_once
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import IDENTITY, NO_FORCE, NO_MOTION, ZERO, Force, Mat, Motion, Vec, vec, weighted_sum

Vector = Sequence[Scalar]
Wrenches = Sequence[Vector] | None  # one [force, moment] for each frame on which an external force acts


def subspace_motion(S: Sequence[Motion], rates: Vector) -> Motion:
    """Return S v, the motion due to `rates` along the columns of `S`."""
    return weighted_sum(S, rates, NO_MOTION)


def joint_elements(link: Link, x: Vector) -> list[Scalar]:
    """Return the elements of the velocity-like vector `x` that belong to the joint of `link`."""
    return [x[i] for i in link.v_index]


def external_forces(tree: Tree, q: Vector, frames: Sequence[str], wrench: Wrenches) -> list[Force]:
    """Return the external force on each body about its F.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    frames
        Names of the frames on which wrenches act.
    wrench
        [force, moment] for each of these frames, in world axes at its origin.
    """
    forces = [NO_FORCE] * len(tree.links)
    if not frames or wrench is None:
        return forces
    R_WF = [R for R, _ in poses(tree, q)]
    for name, w in zip(frames, wrench, strict=True):
        step("wrench", name)
        body, _, p = tree.frames[name]
        if body >= 0:
            f, n = R_WF[body].T @ vec(w[:3]), R_WF[body].T @ vec(w[3:])
            forces[body] = forces[body] + Force(n + p.cross(f), f)
    return forces


def poses(tree: Tree, q: Vector) -> list[tuple[Mat, Vec]]:
    """Return R_WF and p_WF of every body of `tree` at positions `q`."""
    ground = tree.ground.pose(IDENTITY, ZERO)
    body_poses: list[tuple[Mat, Vec]] = []
    for link in tree.links:
        step("pose", link.name)
        body_poses.append(link.transform(q).pose(*(body_poses[link.parent] if link.parent >= 0 else ground)))
    return body_poses


def rate(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Return dq/dt, joint by joint.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    return apply_joint_function(tree, "rate", q, v)


def apply_joint_function(tree: Tree, function: str, q: Vector, v: Vector, index: str = "v_index") -> list[Scalar]:
    """Apply a function of the joint types to the coordinates of each joint, except mimic joints.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    function
        Name of a method of the joint types.
    q
        Positions, nq elements.
    v
        Velocities, nv elements, or other positions.
    index
        "v_index", or "q_index" for positions.
    """
    out: list[Scalar] = []
    for link in tree.links:
        if link.joint.mimic is None:
            step(function, link.name)
            out += getattr(link.kind, function)([q[i] for i in link.q_index], [v[i] for i in getattr(link, index)])
    return out


def passive_torque(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Return damping, friction and springs, in joints and between points, as generalised forces.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    out = spring_torque(tree, q, v) if tree.springs else [0.0] * tree.nv
    for body in tree.flexible:
        for i, f in zip(body.v_index, body.passive(q, v), strict=True):
            out[i] = out[i] + f
    for link in tree.links:
        step("passive", link.name)
        for i, f in zip(link.v_index, link.passive(q, v), strict=True):
            out[i] = out[i] + f
    return out


def generalised_forces(tree: Tree, q: Vector, forces: Sequence[Force]) -> list[Scalar]:
    """Return J^T f, the generalised forces due to forces on the bodies.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    forces
        Force on each body, about its own frame.
    """
    return sweep(tree, body_generalised_forces, {"q": q}, forces).by_axis(tree.nv)


def right_hand_side(
    tree: Tree, q: Vector, v: Vector, tau: Vector, C: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """Return tau + passive + J^T wrench - C.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    tau
        Joint forces and moments, nv elements.
    C
        Bias forces, nv elements.
    frames
        Names of the frames on which wrenches act.
    wrench
        [force, moment] for each of these frames, in world axes at its origin.
    """
    passive, outer = passive_torque(tree, q, v), [0.0] * tree.nv
    if frames:
        outer = generalised_forces(tree, q, external_forces(tree, q, frames, wrench))
    step("tau - C")
    return [t + p + o - c for t, p, o, c in zip(tau, passive, outer, C, strict=True)]


# -- the work of one body


@dataclass(frozen=True)
class FromParent:
    """Request for the value that the parent sent; `ground` is its value for bodies on the ground."""

    ground: Any

    @staticmethod
    def received(value: Any) -> Any:
        """Return what the body receives for this `value`."""
        return value


@dataclass(frozen=True)
class FromChildren:
    """Request for the values that the children sent."""

    @staticmethod
    def received(values: Any) -> Any:
        """Return what the body receives for these `values`."""
        return values

    @staticmethod
    def add(before: Sequence[Any], sent: Send) -> list[Any]:
        """Return the values of the children `before` with what one more, which comes first, has `sent`."""
        return [sent.value, *before]


@dataclass(frozen=True)
class Sum:
    """Request for sums over the body and its children, which send as many values.

    `own` has the body's own terms, by the labels of their steps.
    """

    body: str
    own: Mapping[str, Any]

    def received(self, values: Sequence[Any]) -> Any:
        """Return what the body receives if its children sent these `values`."""
        total = tuple(self.own.values())
        for value in values:
            total = self.add(total, Send(value))
        return total

    def add(self, total: Sequence[Any], sent: Send | SendInwards) -> tuple[Any, ...]:
        """Return `total` plus what one child has `sent`."""
        sums, terms = [], sent.values() if isinstance(sent, SendInwards) else sent.value
        for label, x, y in zip(self.own, total, terms, strict=True):
            step(label, self.body)
            sums.append([a + b for a, b in zip(x, y, strict=True)] if isinstance(x, list) else x + y)
        return tuple(sums)


@dataclass(frozen=True)
class Send:
    """A value to send, in the direction of the last request."""

    value: Any


@dataclass(frozen=True)
class SendInwards:
    """Values for the parent, computed one after another, and only if there is a parent."""

    values: Callable[[], Iterable[Any]]

    @property
    def value(self) -> Any:
        """Return all values."""
        return tuple(self.values())


Exchange = FromParent | FromChildren | Sum | Send | SendInwards
BodyRecursion = Generator[Exchange, Any, list[Scalar]]


@dataclass(frozen=True)
class Ground:
    """Gravity, in the ground's own axes, and the pose of these axes in the world."""

    gravity: Vec
    R: Mat
    p: Vec


def ground_of(tree: Tree) -> Ground:
    """Return gravity and pose of the ground of `tree`."""
    return Ground(tree.gravity, *tree.ground.pose(IDENTITY, ZERO))


@dataclass(frozen=True)
class BodyFrames:
    """Frames of a body: their origins in the body, and their axes where needed."""

    points: Sequence[Vec]
    axes: Sequence[Mat] = ()


NO_FRAMES = BodyFrames(())


@dataclass(frozen=True)
class LinkShare:
    """Relations of one link to shared coordinates.

    axes has the slot of each axis of its joint, -1 if its coordinate is not shared; closes tells if the coordinate ends
    with the axis. modes are the slots of the modes of its body; ends those of coordinates that end in its body, before
    its joint; open those that are sent to its parent. slots is the number of slots.
    """

    axes: tuple[int, ...]
    closes: tuple[bool, ...]
    modes: tuple[int, ...]
    ends: tuple[int, ...]
    open: tuple[int, ...]
    slots: int


@evaluated_once
def unshared(axes: int) -> LinkShare:
    """Return the share of a link with this number of `axes`, none of whose coordinates is shared."""
    return LinkShare((-1,) * axes, (True,) * axes, (), (), (), 0)


@dataclass(frozen=True)
class SharingLink(Link):
    """A link with its share, and the modes of its body, whose coordinates follow those of its joint."""

    share: LinkShare
    bending: FlexibleBody | None


@dataclass(kw_only=True, eq=False, slots=True)
class Body:
    """Everything that the work of one body depends on, besides the values of its neighbours.

    The inputs are the body's own elements of those of the mechanism: of its joint, then of its modes. `tau` is that of
    the coordinates that end at the body.
    """

    link: Link
    ground: Ground = Ground(ZERO, IDENTITY, ZERO)
    q: Vector = ()
    v: Vector = ()
    a: Vector = ()
    tau: Vector = ()
    q0: Vector = ()
    q1: Vector = ()
    dv: Vector = ()
    x: Vector = ()  # a vector that a matrix multiplies
    c: Vector = ()  # centre of mass of the mechanism, in the world
    dc: Vector = ()  # its velocity
    wrench: Vector = ()  # [force, moment] on each pushed frame, one after another, in world axes
    pushed: BodyFrames | None = None  # frames on which wrenches act; None if there are none in the whole mechanism
    seen: BodyFrames = NO_FRAMES  # frames at which the result is wanted
    reference: str = ""  # "aligned", "local" or "world"
    external: Force = NO_FORCE  # further force on the body about the origin of its frame
    passive: bool = True  # forward and inverse dynamics add the springs and friction of the joint and of the modes

    @property
    def share(self) -> LinkShare:
        """Relations to shared coordinates; without any, every coordinate ends at its own joint."""
        return self.link.share if isinstance(self.link, SharingLink) else unshared(len(self.link.v_index))

    @property
    def modes(self) -> FlexibleBody | None:
        """Modes of the body, if it is flexible."""
        return self.link.bending if isinstance(self.link, SharingLink) else None

    @property
    def inertia(self) -> Inertia:
        """Inertia in the present shape."""
        return self.link.inertia if self.modes is None else self.link.inertia + self.modes.inertia(self.q)

    @property
    def X(self) -> Transform:
        """Transform from the parent's frame."""
        return self.link.transform(self.q)

    @property
    def S(self) -> list[Motion]:
        """Motion subspace, one column for each axis."""
        return self.link.subspace(self.q)

    @property
    def joint_velocity(self) -> Motion:
        """Velocity of the body relative to its parent."""
        return subspace_motion(self.S, joint_elements(self.link, self.v))

    @property
    def seen_poses(self) -> list[tuple[Mat, Vec]]:
        """Axes and origin in the body of each of the frames `seen`."""
        return list(zip(self.seen.axes, self.seen.points, strict=True))


# -- straight-line code


@dataclass(frozen=True)
class LocalLink:
    """A link with its own coordinates only, and their indices in q and v (SharedCoordinates explains them)."""

    link: Link
    parent: int
    q: tuple[int, ...]
    v: tuple[int, ...]
    answers: tuple[int, ...]

    def elements(self, name: str, vector: Sequence[Scalar]) -> list[Scalar]:
        """Return the elements of `vector`, the input called `name`, that the link reads."""
        rows = {"tau": self.answers, "q": self.q, "q0": self.q, "q1": self.q}.get(name, self.v)
        return [vector[k] for k in rows]


def localise(link: Link) -> Link:
    """Return `link` with its own coordinates only."""
    return replace(link, q_index=tuple(range(len(link.q_index))), v_index=tuple(range(len(link.v_index))))


def local_links(tree: Tree) -> tuple[list[LocalLink], list[int]]:
    """Return the links of `tree` for the work of one body each, and the index of each link among them."""
    if tree.coupled:
        from bellcrank.dynamics import shared_coordinates  # a feature that few mechanisms have

        return shared_coordinates.local_coupled_links(tree)
    local = [LocalLink(localise(x), x.parent, x.q_index, x.v_index, x.v_index) for x in tree.links]
    return local, list(range(len(local)))


def sweep(
    tree: Tree,
    work: Callable[[Body], Generator[Exchange, Any, Any]],
    inputs: Mapping[str, Vector],
    external: Sequence[Force] = (),
    **options: Any,
) -> SweepResults:
    """Run the recursion of every body, sweep by sweep, and return their results.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    work
        The work of one body.
    inputs
        Inputs of the whole mechanism by name.
    external
        External force on each body about its frame.
    options
        Further attributes of `Body`, the same for all bodies.
    """
    (links, places), ground = local_links(tree), ground_of(tree)
    forces = dict(zip(places, external, strict=True)) if external else {}
    bodies = []
    for i, local in enumerate(links):
        own: dict[str, Any] = {name: local.elements(name, x) for name, x in inputs.items()} | options
        bodies.append(work(Body(link=local.link, ground=ground, external=forces.get(i, NO_FORCE), **own)))
    results = run_bodies([local.parent for local in links], bodies)
    axes = [local.v[: len(local.link.v_index)] for local in links]
    return SweepResults(results, places, [local.answers for local in links], axes)


def sweep_path(
    tree: Tree,
    work: Callable[[Body], BodyRecursion],
    inputs: Mapping[str, Vector],
    frame: str,
    reference: str = "",
) -> list[tuple[Link, list[Scalar]]]:
    """Run the recursion of every body that carries a frame; return these bodies, the first on the ground, with results.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    work
        The work of one body.
    inputs
        Inputs of the whole mechanism by name.
    frame
        Name of the frame.
    reference
        "aligned", "local" or "world".
    """
    body, R, p = tree.frames[frame]
    links, works, ground = [tree.links[i] for i in reversed(tree.path(body))], [], ground_of(tree)
    for link in links:
        local = LocalLink(localise(link), link.parent, link.q_index, link.v_index, link.v_index)
        own: dict[str, Any] = {name: local.elements(name, x) for name, x in inputs.items()}
        seen = BodyFrames([p], [R]) if link is links[-1] else NO_FRAMES
        works.append(work(Body(link=local.link, ground=ground, seen=seen, reference=reference, **own)))
    return list(zip(links, run_bodies(range(-1, len(links) - 1), works), strict=True))


@dataclass(frozen=True)
class SweepResults:
    """Results of all bodies."""

    of_body: list[Any]
    places: list[int]  # index of each link of the tree in of_body
    answers: list[tuple[int, ...]]  # elements of v that end at each body
    axes: list[tuple[int, ...]]  # elements of v of each joint

    @property
    def by_link(self) -> list[Any]:
        """Return the result of each link of the tree."""
        return [self.of_body[i] for i in self.places]

    def by_axis(self, nv: int) -> list[Scalar]:
        """Return the results, one for each axis of a joint, added up by the `nv` elements of v."""
        out: list[Scalar] = [0.0] * nv
        for axes, values in reversed(list(zip(self.axes, self.of_body, strict=True))):
            for k, x in zip(axes, values, strict=True):
                out[k] = out[k] + x
        return out

    def by_coordinate(self, of: Callable[[Any], Sequence[Scalar]]) -> list[Scalar]:
        """Return the numbers `of` the result of each body, one for each of its coordinates, in the order of v."""
        out: dict[int, Scalar] = {}
        for answers, result in reversed(list(zip(self.answers, self.of_body, strict=True))):
            out |= zip(answers, of(result), strict=True)
        return [out[k] for k in range(len(out))]


def run_bodies(parents: Sequence[int], bodies: Sequence[Any]) -> list[Any]:
    """Run one recursion for each body and return their results.

    Parameters
    ----------
    parents
        Parent of each body, which comes before it; -1 is the ground.
    bodies
        The recursions, which are generators.
    """
    requests: list[Any] = [next(body) for body in bodies]
    results: list[Any] = [None] * len(bodies)

    def proceed(i: int) -> None:
        """Advance body `i` to its next request, or to its end."""
        try:
            requests[i] = next(bodies[i])
        except StopIteration as end:
            requests[i], results[i] = None, end.value

    outwards_order, inwards_order = range(len(bodies)), range(len(bodies) - 1, -1, -1)
    while any(requests):
        if isinstance(requests[0], FromParent):
            sent: list[Any] = []
            for i in outwards_order:
                received = sent[parents[i]] if parents[i] >= 0 else requests[i].ground
                sent.append(bodies[i].send(received).value)
                proceed(i)
            continue
        gathered = [x.received([]) for x in requests]
        for i in inwards_order:
            answer, up = bodies[i].send(gathered[i]), parents[i]
            if up >= 0:
                gathered[up] = requests[up].add(gathered[up], answer)
        for i in inwards_order:
            proceed(i)
    return results


# -- exchanges that several methods share


def accumulate_subtree(
    body: Body, up: Callable[[Any], Any] = lambda x: x, **own: Any
) -> Generator[Exchange, Any, Sequence[Any]]:
    """Sum quantities over the body and its subtree.

    Parameters
    ----------
    body
        The body.
    up
        Transforms a total into the parent's frame.
    own
        The body's own contributions.
    """
    total: Sequence[Any] = yield Sum(body.link.name, own)

    def carried() -> Iterator[Any]:
        for label, x in zip(own, total, strict=True):
            step(label, body.link.name)
            yield up(x)

    yield SendInwards(carried)
    return total


def orientation(body: Body) -> Generator[Exchange, Any, Mat]:
    """Return the orientation of the `body` in the world."""
    up = yield FromParent(body.ground.R)
    step("pose", body.link.name)
    R: Mat = body.X.pose(up, ZERO)[0]
    yield Send(R)
    return R


def external_force(body: Body) -> Generator[Exchange, Any, Force]:
    """Return the external force on the `body` about the origin of its frame."""
    if body.pushed is None:  # orientations are needed only for wrenches
        return body.external
    return wrench_force(body, (yield from orientation(body)))


def wrench_force(body: Body, R: Mat) -> Force:
    """Return the sum of the wrenches on a body about the origin of its frame.

    Parameters
    ----------
    body
        The body.
    R
        Its orientation in the world.
    """
    total = NO_FORCE
    for i, p in enumerate(body.pushed.points if body.pushed else ()):
        step("wrench", body.link.name)
        f, n = R.T @ vec(body.wrench[6 * i : 6 * i + 3]), R.T @ vec(body.wrench[6 * i + 3 : 6 * i + 6])
        total = total + Force(n + p.cross(f), f)
    return total


def body_generalised_forces(body: Body) -> BodyRecursion:
    """Return J^T wrench for the joint of the `body`: the generalised forces due to forces on frames."""
    pushes = yield from external_force(body)
    (total,) = yield from accumulate_subtree(body, body.X.force, felt=pushes)
    step("felt", body.link.name)
    return [s.dot(total) for s in body.S]
