"""Bodies of a mechanism as the mesh sees them, one column per coordinate (wong1991, chapter 3 and section 6.4.1).

Initial data of the processors are parameters of the bodies, and positions and velocities of the joints:

    A_i  transforms parent coordinates into those of body i       k_i  from the centre of mass to the joint
    l_i  from the parent's centre of mass to joint i              z_i, d_i  angular and linear part of an axis
    J_i  inertia about the centre of mass                         m_i  mass

A joint with several coordinates has one axis for each (table 6.1), and its body is in the column of the last one. The
axes are those of the joint's motion subspace in the coordinates of body i.

`general_arm` builds an arm with arbitrary parameters: every number is an input, also the axis, as in a program for any
arm. It uses only the structure that table 3.1 uses: the two zeros of A_i, and that w x z has two products. `arm_of`
takes the parameters of a mechanism as constants, so that operations with zeros and constants are folded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bellcrank.errors import InputError
from bellcrank.graph import Node, Tape
from bellcrank.model import Mechanism
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, cos, is_zero, sin
from bellcrank.spatial.vector import AXES, IDENTITY, NO_MOTION, ZERO, Mat, Motion, SymMat, Vec, weighted_sum


@dataclass(frozen=True)
class MeshAxis:
    """Coordinate of a joint: a column of H-bar, its force, and the inertia of its rotor."""

    column: int
    motion: Callable[[], Motion]  # angular and linear velocity of the joint's frame for a unit of the coordinate
    turns: bool
    slides: bool
    force: Callable[[], Scalar]  # tau plus passive forces of springs and friction
    rotor: Scalar = 0.0


@dataclass(frozen=True)
class JointMotion:
    """Velocity of a joint with its bias dS/dt v, both in the coordinates of the body."""

    velocity: Callable[[], Motion]
    bias: Callable[[], Motion]


@dataclass(frozen=True)
class MeshBody:
    """Body of an arm; its number is its column, and 0 is the ground."""

    number: int
    parent: int
    rotation: Callable[[], Mat]  # A_i, computed on every processor that needs it
    k: Vec
    l: Vec | Callable[[], Vec]  # a function where the joint slides
    axes: tuple[MeshAxis, ...]
    J: SymMat
    m: Scalar
    rate: Scalar = 0.0  # of a hinge about z
    motion: JointMotion | None = None  # of any other joint

    @property
    def first(self) -> int:
        """Column of the first coordinate of the joint."""
        return self.number - len(self.axes) + 1

    @property
    def turns(self) -> bool:
        """Return true if the joint turns about any axis."""
        return any(axis.turns for axis in self.axes)

    @property
    def slides(self) -> bool:
        """Return true if the joint slides along any axis."""
        return any(axis.slides for axis in self.axes)


@dataclass(frozen=True)
class MeshArm:
    """Tree of bodies with its inputs on the tape."""

    name: str
    bodies: tuple[MeshBody, ...]
    gravity: Vec
    ground_motion: tuple[Vec, Vec]  # angular velocity and acceleration of the ground: zero, but inputs of a general arm
    zero_sum: Scalar  # partial sum that enters the last column: zero, but an input of a general arm
    inputs: dict[str, tuple[int, ...]]
    coordinates: tuple[int, ...] = ()  # index in v of each column; empty: the same order

    @property
    def n(self) -> int:
        """Number of coordinates, each with a column."""
        return self.bodies[-1].number

    def body(self, number: int) -> MeshBody:
        """Return the body in the column `number`."""
        return next(b for b in self.bodies if b.number == number)

    def axis(self, column: int) -> MeshAxis:
        """Return the coordinate of a `column`."""
        return next(axis for b in self.bodies for axis in b.axes if axis.column == column)

    def carriers(self, i: int) -> list[MeshBody]:
        """Return the bodies from body `i` to the ground, itself first."""
        bodies = []
        while i:
            bodies.append(self.body(i))
            i = bodies[-1].parent
        return bodies

    def path(self, i: int) -> list[int]:
        """Return the columns of the coordinates from body `i` to the ground, its own first: a row of (3.14).

        A column without a body has none.
        """
        if all(b.number != i for b in self.bodies):
            return []
        return [axis.column for b in self.carriers(i) for axis in reversed(b.axes)]

    @property
    def branches(self) -> list[tuple[int, int]]:
        """Columns of a parent and of its child that are not connected by the row between them (section 6.4.2)."""
        return [(b.parent, b.number) for b in self.bodies if b.parent not in (0, b.first - 1)]

    def way(self, row: int, a: int, b: int) -> list[tuple[int, int]]:
        """Return the processors of a `row` from body `a` to body `b`, one of which carries the other."""
        if (a, b) in self.branches or (b, a) in self.branches:
            return [(row, a), (row, b)]
        return [(row, i) for i in (range(a, b + 1) if a <= b else range(a, b - 1, -1))]


def hinge_axis(column: int, z: Vec, force: Callable[[], Scalar], rotor: Scalar = 0.0) -> MeshAxis:
    """Return the coordinate of a hinge about `z`.

    Parameters
    ----------
    column
        Column of the coordinate.
    z
        Axis in the coordinates of the body.
    force
        Force on the coordinate.
    rotor
        Inertia of the rotor.
    """
    return MeshAxis(column, lambda: Motion(z, ZERO), True, False, force, rotor)


def general_arm(tape: Tape, parents: Sequence[int]) -> MeshArm:
    """Return an arm of hinges whose parameters are inputs of the tape.

    Parameters
    ----------
    tape
        Tape that gets the inputs.
    parents
        Parent of each body; 0 is the ground.
    """
    n = len(parents)
    inputs: dict[str, tuple[int, ...]] = {"q": (n,), "v": (n,), "tau": (n,), "number": (18 * n + 10,)}
    q, v, tau, number = (tape.inputs(name, shape) for name, shape in inputs.items())
    numbers = iter(number)

    def vec() -> Vec:
        return Vec(next(numbers), next(numbers), next(numbers))

    def turn(angle: Scalar, c: Scalar, s: Scalar) -> Callable[[], Mat]:
        def rotation() -> Mat:  # 3.18; c and s are cosine and sine of the twist
            C, S = cos(angle), sin(angle)
            return Mat(Vec(C, c * S, s * S), Vec(-S, c * C, s * C), Vec(0.0, -s, c))

        return rotation

    bodies = []
    for i, parent in enumerate(parents):
        A = turn(q[i], next(numbers), next(numbers))
        k, l, z = vec(), vec(), vec()
        J, m = SymMat(*(next(numbers) for _ in range(6))), next(numbers)
        if not 0 <= parent <= i:
            raise InputError(f"body {i + 1} has parent {parent}; expected 0 to {i}.")
        axis = hinge_axis(i + 1, z, partial(tau.__getitem__, i))
        bodies.append(MeshBody(i + 1, parent, A, k, l, (axis,), J, m, v[i]))
    return MeshArm(f"any arm of {n} joints", tuple(bodies), vec(), (vec(), vec()), next(numbers), inputs)


@dataclass(frozen=True)
class MechanismSymbols:
    """Inputs of a mechanism on a tape."""

    tree: Tree
    q: Sequence[Node]
    v: Sequence[Node]
    tau: Sequence[Scalar]
    inputs: dict[str, tuple[int, ...]]
    friction_apart: bool = False  # friction and springs of the joints are not computed with their bodies


def symbols_of(
    tape: Tape, mechanism: Mechanism, driven: bool = False, friction_apart: bool = False
) -> MechanismSymbols:
    """Return the inputs q, v and tau of a mechanism.

    Parameters
    ----------
    tape
        Tape that gets the inputs.
    mechanism
        Rigid bodies on any joints.
    driven
        If True, actuators drive the mechanism, and there is no input tau.
    friction_apart
        If True, friction and springs of the joints are not computed with their bodies.
    """
    tree = mechanism.tree
    if tree.flexible:
        raise InputError(
            f'{mechanism.name}: body "{mechanism.flexible[0].body}" is flexible; Wong\'s mesh is for rigid bodies '
            "(section 1.1.3 of the thesis). Schedule the graph on a machine instead."
        )
    inputs: dict[str, tuple[int, ...]] = {"q": (tree.nq,), "v": (tree.nv,)}
    if not driven:
        inputs["tau"] = (tree.nv,)
    q, v, *forces = (list(tape.inputs(name, shape)) for name, shape in inputs.items())
    return MechanismSymbols(tree, q, v, forces[0] if forces else [0.0] * tree.nv, inputs, friction_apart)


def arm_of(mechanism: Mechanism, symbols: MechanismSymbols) -> MeshArm:
    """Return the bodies of a tree, with its parameters as constants.

    Parameters
    ----------
    mechanism
        Tree without mimic joints.
    symbols
        Its inputs on a tape.
    """
    tree = symbols.tree
    numbers, bodies = [0], []
    for i, link in enumerate(tree.links):
        numbers.append(numbers[-1] + len(link.v_index))
        columns = range(numbers[-2] + 1, numbers[-1] + 1)
        bodies.append(body_of(symbols, i, numbers[-1], numbers[link.parent + 1], columns))
    order = tuple(k for link in tree.links for k in link.v_index)
    return MeshArm(mechanism.name, tuple(bodies), tree.gravity, (ZERO, ZERO), 0.0, symbols.inputs, order)


def body_of(symbols: MechanismSymbols, index: int, number: int, parent: int, columns: Sequence[int]) -> MeshBody:
    """Return one body of a mechanism.

    Parameters
    ----------
    symbols
        Inputs of the mechanism.
    index
        Index of its link.
    number
        Column of the body.
    parent
        Column of its parent.
    columns
        Columns of the coordinates of its joint.
    """
    tree, q, v = symbols.tree, symbols.q, symbols.v
    link = tree.links[index]
    centre = link.inertia.centre
    axes = _axes(symbols, link, columns)
    hinge = link.kind.name == "revolute" and link.joint.mimic is None
    motion = None if hinge else JointMotion(lambda: _velocity(link, q, v), lambda: link.bias(q, v))
    rate = v[link.v_index[0]] if hinge else 0.0
    length = _joint_position(symbols, index)
    rotation = partial(_rotation, link, q)
    return MeshBody(
        number, parent, rotation, -centre, length, axes, link.inertia.I_centre, link.inertia.m, rate, motion
    )


def _rotation(link: Link, q: Sequence[Scalar]) -> Mat:
    x, y, z = (link.transform(q).down(axis) for axis in AXES)
    return Mat(x, y, z).T


def _velocity(link: Link, q: Sequence[Scalar], v: Sequence[Scalar]) -> Motion:
    return weighted_sum(link.subspace(q), [v[k] for k in link.v_index], NO_MOTION)


def _joint_position(symbols: MechanismSymbols, index: int) -> Vec | Callable[[], Vec]:
    """Return l: constant where the joint does not slide."""
    tree = symbols.tree
    link = tree.links[index]

    def position() -> Vec:
        from_parent = link.transform(symbols.q).pose(IDENTITY, ZERO)[1]
        return from_parent - tree.links[link.parent].inertia.centre if link.parent >= 0 else from_parent

    constant = position()
    return position if any(isinstance(x, Node) for x in constant) else constant


def _axes(symbols: MechanismSymbols, link: Link, columns: Sequence[int]) -> tuple[MeshAxis, ...]:
    q, v, axes = symbols.q, symbols.v, []
    for a, (k, s) in enumerate(zip(link.v_index, link.subspace(q), strict=True)):
        turns, slides = (not all(is_zero(x) for x in part) for part in (s.ang, s.lin))

        def motion(a: int = a) -> Motion:
            return link.subspace(q)[a]

        def force(a: int = a, k: int = k) -> Scalar:
            if link.joint.mimic is not None:
                return link.passive(q, v)[a]
            return symbols.tau[k] if symbols.friction_apart else symbols.tau[k] + link.passive(q, v)[a]

        axes.append(MeshAxis(columns[a], motion, turns, slides, force, link.armature))
    return tuple(axes)
