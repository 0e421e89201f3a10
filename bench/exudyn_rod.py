"""A slider-crank with a flexible rod, of solid elements and eight modes: here and in Exudyn, with the same reduced
model.

The rod is a bar of eight-node bricks. Its stiffness and mass matrices and its modes are made once, and both programs
use them. In Exudyn the rod is an object of the floating frame of reference (FFRFreducedOrder), joined by points that
are the means of the bar's end faces, which are rigid in our reduction. Its integrator is the generalised-alpha method
without numerical damping.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.structures.modes import Moments

Array = np.ndarray[Any, Any]
CRANK, ROD, WIDE, HIGH = 0.15, 0.6, 0.01, 0.006  # m
SPEED = 30.0  # rad/s, of the crank at the start
SLIDER, MODES = 0.3, 8
CUBE = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)
CRANK_BODY = {"mass": 0.4, "inertia": (1e-5, 1e-3, 1e-3)}


@dataclass(frozen=True, eq=False)
class Bar:
    nodes: Array
    K: Array
    M: Array
    ends: tuple[tuple[int, ...], tuple[int, ...]]


def bar(along: int = 16, E: float = 2.1e11, nu: float = 0.3, rho: float = 7850.0) -> Bar:
    """Return bricks in a row, two by two across it."""
    steps = np.array([along, 2, 2])
    size = np.array([ROD, WIDE, HIGH]) / steps
    grid = {place: i for i, place in enumerate(np.ndindex(*(steps + 1)))}
    nodes = np.array([size * place - [0, WIDE / 2, HIGH / 2] for place in grid])
    k, m = brick(size, E, nu, rho)
    n = 3 * len(nodes)
    K, M = np.zeros((n, n)), np.zeros((n, n))
    for cell in np.ndindex(*steps):
        rows = np.array([3 * grid[tuple(np.add(cell, corner).astype(int))] + d for corner in CUBE for d in range(3)])
        K[np.ix_(rows, rows)] += k
        M[np.ix_(rows, rows)] += m
    faces = [tuple(i for place, i in grid.items() if place[0] == x) for x in (0, along)]
    return Bar(nodes, K, M, (faces[0], faces[1]))


def brick(size: Array, E: float, nu: float, rho: float) -> tuple[Array, Array]:
    """Return stiffness and consistent mass of a trilinear brick, by two points per direction, three for the mass."""
    lame, G = E * nu / ((1 + nu) * (1 - 2 * nu)), E / (2 * (1 + nu))
    C = np.diag([2 * G] * 3 + [G] * 3)
    C[:3, :3] += lame
    volume, k, m = float(np.prod(size)), np.zeros((24, 24)), np.zeros((24, 24))
    for order in (2, 3):
        points, weights = np.polynomial.legendre.leggauss(order)
        for i, j, l in np.ndindex(order, order, order):
            s = (points[[i, j, l]] + 1) / 2
            w = float(np.prod(weights[[i, j, l]]) / 8 * volume)
            each = np.where(CUBE == 1, s, 1 - s)
            N = each.prod(axis=1)
            if order == 3:
                m += w * rho * np.kron(np.outer(N, N), np.eye(3))
                continue
            slope = np.where(CUBE == 1, 1.0, -1.0) / size
            B = np.zeros((6, 24))
            for a in range(8):
                x, y, z = (slope[a, d] * np.delete(each[a], d).prod() for d in range(3))
                B[:, 3 * a : 3 * a + 3] = [[x, 0, 0], [0, y, 0], [0, 0, z], [y, x, 0], [0, z, y], [z, 0, x]]
            k += w * B.T @ C @ B
    return k, m


@cache
def rod() -> tuple[Bar, Moments]:
    """Return the bar, and its eight lowest modes in the plane of the crank."""
    made = bar()
    at = {"eye": made.ends[0], "end": made.ends[1]}
    reach = bc.flexible(made.K, made.M, made.nodes, at, modes=MODES, directions=(0, 2, 4))
    below = float(np.mean(reach.reduction.hertz[MODES - 1 : MODES + 1]))
    return made, bc.flexible(made.K, made.M, made.nodes, at, modes=MODES, directions=(0, 2, 4), below=below)


def ours(slider: Any = SLIDER) -> Any:
    b = bc.Builder("slider_crank", gravity=(0, 0, -9.81))
    b.body("crank", com=(CRANK / 2, 0, 0), **CRANK_BODY)
    b.joint("shaft", "revolute", "ground", "crank", axis=(0, -1, 0))
    b.flexible("rod", rod()[1], point=(CRANK, 0, 0))
    b.joint("pin", "revolute", "crank", "rod", point=(CRANK, 0, 0), axis=(0, -1, 0))
    b.body("slider", mass=slider, com=(CRANK + ROD, 0, 0), inertia=(1e-4, 1e-4, 1e-4))
    b.joint("rail", "prismatic", "ground", "slider", axis=(1, 0, 0))
    b.close("eye", "revolute", "rod.end", "slider", point=(CRANK + ROD, 0, 0), axis=(0, -1, 0))
    return b.build()


def start(m: Any) -> tuple[Array, Array]:
    """Return the start: the crank turns, and the rod is straight and does not vibrate."""
    q, v = m.neutral(), np.zeros(m.nv)
    names = list(m.columns[1])
    v[names.index("shaft")] = SPEED
    v[names.index("pin")] = -SPEED * (1 + CRANK / ROD)  # its far end stays on the rail
    return q, v


@dataclass(frozen=True, eq=False)
class Theirs:
    """Exudyn's run: positions of the slider, and seconds of its solver per step."""

    t: Array
    slider: Array
    middle: Array  # height of the middle of the rod
    seconds: float


def exudyn_run(seconds: float, step: float, record: float, tolerance: float = 1e-8) -> Theirs:
    """Run Exudyn's model. tolerance: of its Newton method; 1e-8 is its default."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of names that change between versions of Exudyn
        return _exudyn_run(seconds, step, record, tolerance)


def _exudyn_run(seconds: float, step: float, record: float, tolerance: float) -> Theirs:
    import exudyn as exu
    from exudyn import itemInterface as item  # noqa: N813
    from exudyn.FEM import FEMinterface, ObjectFFRFreducedOrderInterface
    from scipy import sparse

    made, moments = rod()
    fem = FEMinterface()
    fem.nodes = {"Position": made.nodes}
    fem.massMatrix, fem.stiffnessMatrix = sparse.csr_matrix(made.M), sparse.csr_matrix(made.K)
    fem.modeBasis = {"matrix": moments.shapes.reshape(-1, moments.shapes.shape[2]), "type": "NormalModes"}
    system = exu.SystemContainer()
    mbs = system.AddSystem()
    ground = mbs.AddObject(item.ObjectGround())
    fall = [0.0, 0.0, -9.81]

    crank = mbs.CreateRigidBody(
        inertia=exu.rigidBodyUtilities.RigidBodyInertia(CRANK_BODY["mass"], np.diag(CRANK_BODY["inertia"])),
        referencePosition=[CRANK / 2, 0, 0], initialVelocity=[0, 0, SPEED * CRANK / 2],
        initialAngularVelocity=[0, -SPEED, 0], gravity=fall,
    )  # fmt: skip
    bent = ObjectFFRFreducedOrderInterface(fem)
    turn = -SPEED * CRANK / ROD  # as rad/s about -y of the rod in the world
    placed = bent.AddObjectFFRFreducedOrder(
        mbs, positionRef=[CRANK, 0, 0], initialVelocity=[0, 0, SPEED * CRANK], initialAngularVelocity=[0, -turn, 0],
        gravity=fall,
    )  # fmt: skip
    slider = mbs.CreateMassPoint(referencePosition=[CRANK + ROD, 0, 0], mass=SLIDER, gravity=fall)

    def on(body: Any, place: Any) -> Any:
        return mbs.AddMarker(item.MarkerBodyPosition(bodyNumber=body, localPosition=place))

    def face(nodes: Any) -> Any:
        even = [1 / len(nodes)] * len(nodes)
        return mbs.AddMarker(
            item.MarkerSuperElementPosition(
                bodyNumber=placed["oFFRFreducedOrder"], meshNodeNumbers=list(nodes), weightingFactors=even
            )
        )

    def joined(a: Any, b: Any, axes: Any) -> None:
        mbs.AddObject(item.SphericalJoint(markerNumbers=[a, b], constrainedAxes=axes))

    rigid = mbs.AddMarker(item.MarkerBodyRigid(bodyNumber=crank, localPosition=[-CRANK / 2, 0, 0]))
    base = mbs.AddMarker(item.MarkerBodyRigid(bodyNumber=ground, localPosition=[0, 0, 0]))
    mbs.AddObject(item.GenericJoint(markerNumbers=[rigid, base], constrainedAxes=[1, 1, 1, 1, 0, 1]))
    # the rod's own frame stays in the plane: its y, and turns about x and z
    frame = mbs.AddMarker(item.MarkerNodeRigid(nodeNumber=placed["nRigidBody"]))
    mbs.AddObject(item.GenericJoint(markerNumbers=[frame, base], constrainedAxes=[0, 1, 0, 1, 0, 1]))
    joined(face(made.ends[0]), on(crank, [CRANK / 2, 0, 0]), [1, 0, 1])
    joined(face(made.ends[1]), on(slider, [0, 0, 0]), [1, 0, 1])
    joined(on(slider, [0, 0, 0]), on(ground, [CRANK + ROD, 0, 0]), [0, 1, 1])
    place = {"storeInternal": True, "outputVariableType": exu.OutputVariableType.Position}
    half = int(np.argmin(np.abs(made.nodes - [ROD / 2, 0, 0]).sum(axis=1)))
    seen = mbs.AddSensor(item.SensorBody(bodyNumber=slider, **place))
    whole = placed["oFFRFreducedOrder"]
    mid = mbs.AddSensor(item.SensorSuperElement(bodyNumber=whole, meshNodeNumber=half, **place))
    mbs.Assemble()
    settings = exu.SimulationSettings()
    integration = settings.timeIntegration
    integration.endTime, integration.numberOfSteps = seconds, round(seconds / step)
    integration.generalizedAlpha.spectralRadius = 1.0
    integration.newton.useModifiedNewton = True
    integration.newton.relativeTolerance, integration.newton.absoluteTolerance = tolerance, tolerance
    integration.verboseMode = 0
    settings.solutionSettings.writeSolutionToFile = False
    settings.solutionSettings.sensorsWritePeriod = record
    settings.displayStatistics = settings.displayComputationTime = False
    settings.parallel.numberOfThreads = 1
    begin = time.perf_counter()
    mbs.SolveDynamic(settings)
    spent = time.perf_counter() - begin
    table, middle = mbs.GetSensorStoredData(seen), mbs.GetSensorStoredData(mid)
    return Theirs(table[:, 0], table[:, 1], middle[:, 3], spent / round(seconds / step))
