"""Valid calls of everything public; wrong_calls.py replaces single arguments of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank import actuators, control, forces, identify
from bellcrank.model.parts import Spring
from bellcrank.record import Column
from bellcrank.structures.beam import Beam
from bellcrank.structures.modes import beam_modes

MAGIC = {
    **{"FNOMIN": 4e3, "PCX1": 1.6, "PDX1": 1.2, "PKX1": 20.0, "PCY1": 1.3, "PDY1": 1.0, "PKY1": -14.0, "PKY2": 1.6},
    **{"UNLOADED_RADIUS": 0.3, "VERTICAL_STIFFNESS": 2e5},
}
DATA = Path(__file__).parent / "unit/data"


def objects(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return the objects whose methods are called, by name; each is made when it is needed."""

    @cache
    def free() -> bc.Mechanism:
        return bc.zoo.chain(2).free("link1.mass")

    @cache
    def plant() -> bc.System:
        push, seen = (lambda t, q, v, x, u: [u[0], 0.0]), {"seen": lambda t, q, v, x, u: q[0]}
        return bc.system(free(), inputs={"push": 0.0}, control=push, outputs=seen)

    def study() -> bc.Study:
        over = {"link1.mass": bc.uniform(1, 2)}
        return bc.study(free(), over, runs=4, seconds=0.01, to=folder / "study", summary=["max(joint1.v)"])

    @cache
    def function() -> bc.Kernel:
        return bc.compile(lambda x, y: x[0] * y + bc.sin(x[1]), inputs={"x": 2, "y": ()})

    return {
        "mechanism": lambda: bc.zoo.chain(2), "looped": bc.zoo.four_bar, "locked": locked, "bodiless": bodiless,
        "free": free, "system": plant,
        "record": lambda: bc.simulate(plant(), 0.02, inputs={"push": 0.0}),
        "records": lambda: bc.simulate(bc.zoo.chain(2), 0.02, batch=2, every=0.01),
        "kernel": function, "graph": lambda: function().graph,
        "of_arm": lambda: bc.kernel(bc.zoo.chain(2), "forward_dynamics"), "steel": bc.Material.steel,
        "simulator": lambda: bc.Simulator(plant()), "stepper": lambda: bc.stepper(plant(), batch=2, every=0.02),
        "alone": lambda: bc.stepper(plant(), every=0.02), "linear": lambda: bc.linearize(plant()),
        "rest": lambda: bc.equilibrium(bc.zoo.chain(2)), "builder": built, "study": study,
        "machine": lambda: bc.schedule(bc.zoo.chain(2)).machine, "schedule": lambda: bc.schedule(bc.zoo.chain(2)),
        "adjoint": lambda: bc.Adjoint(plant(), final="seen"), "section": lambda: bc.Section.circle(0.02),
        "drive": lambda: bc.Drive(plant()),
    }  # fmt: skip


def built() -> bc.Builder:
    b = bc.Builder("thing")
    b.body("one", mass=1.0, inertia=np.eye(3))
    b.body("two", mass=1.0, inertia=np.eye(3))
    b.joint("first", "revolute", "ground", "one", axis=(0, 0, 1))
    b.joint("second", "revolute", "one", "two", axis=(0, 0, 1))
    return b


def locked() -> bc.Mechanism:
    """Return a body on a hinge that a loop holds: a mechanism without freedom."""
    b = bc.Builder("locked")
    b.body("one", mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "one", axis=(0, 0, 1))
    b.close("weld", "fixed", "ground", "one", point=(1.0, 0.0, 0.0))
    return b.build()


def bodiless() -> bc.Mechanism:
    """Return a mechanism whose only body is fixed to the ground."""
    b = bc.Builder("bodiless")
    b.body("one", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("weld", "fixed", "ground", "one")
    return b.build()


@cache
def strangers() -> list[Any]:
    """Return valid values that belong to other machines than those above."""
    m, looped = bc.zoo.pendulum(), bc.zoo.parallel_cranks(2)
    pushed = bc.system(m, inputs={"twist": 0.0}, control=lambda t, q, v, x, u: [u[0]])
    env = bc.stepper(pushed, batch=3, every=0.02)
    rng = np.random.default_rng(2)
    moved = {key: rng.normal(size=(40, 1)) for key in "qva"}
    base = identify.base_parameters(m)
    return [
        *(m, looped, pushed, env, env.snapshot(), base, identify.numbers_of(m), looped.loops[0], looped.loops),
        *(identify.estimate(base, **moved, tau=m.inverse_dynamics(*moved.values())), m.tree, m.limits, m.columns),
        *(bc.simulate(m, 0.02), bc.simulate(m, 0.02, batch=2), bc.simulate(m, 0.02).columns, looped.neutral()),
        *(bc.kernel(m, "mass_matrix"), bc.kernel(m, "mass_matrix").graph, bc.linearize(m), bc.schedule(m).machine),
        *(
            built(),
            locked(),
            bodiless(),
            bc.Builder("empty").build(),
            m.free("bob.mass"),
            bc.parameter("width", 1.0),
            forces.Sphere(0.2),
            forces.JointSpring("spring", ("hinge",), lambda x: x),
        ),
        *(bc.Section.tube(0.1, 0.01), bc.uniform(2, 3), bc.Event("late", lambda t, q, v, x, u: t - 1.0)),
        *(bc.Adjoint(pushed, final=lambda t, q, v, x, u: q[0]), bc.equilibrium(m), bc.Simulator(pushed)),
    ]


def good(folder: Path, cheap: bool = False) -> dict[str, Any]:
    """Return valid values by the name of an argument, or by CALLABLE.ARGUMENT where they differ.

    cheap: leave out what runs.
    """
    m, q = bc.zoo.chain(2), np.zeros(2)
    free = m.free("link1.mass")
    n = 3
    # a wrong call may write a file, which must stay in this folder
    robot = Path(shutil.copy(DATA / "arm.urdf", folder))
    K = np.kron(np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]]), np.eye(3))
    return {
        "mechanism": m, "plant": m, "what": m, "thing": m, "seconds": 0.01, "q": q, "v": q, "a": q, "tau": q, "h": 0.01,
        "frame": "link2", "x": 0.5, "name": "mass_matrix", "path": folder / "file", "function": lambda *a: 0.0,
        "rate": 100.0, "every": 0.02, "joint": "joint1", "joints": ("joint1", "joint2"), "b": "link2",
        "kernel.name": "mass_matrix", "compile.function_or_graph": lambda x: x[0], "compile.inputs": {"x": 2},
        "EndStop.joints": ("joint1",), "JointSpring.joints": ("joint1",), "stiffness": 10.0, "Between.a": "ground",
        "Bushing.stiffness": (1.0,) * 6, "shape_a": forces.Plane(), "shape_b": forces.Sphere(0.1), "radius": 0.1,
        "length": 1.0, "size": (1.0, 1.0, 1.0), "height": 0.0, "Terrain.height": lambda x, y: 0.0, "ratio": 2.0,
        "lower": (0.0, 0.0, 0.0), "upper": (1.0, 1.0, 1.0), "EndStop.lower": -1.0, "EndStop.upper": 1.0, "low": 0.1,
        "high": 0.9, "parts": (forces.Pad(),), "slope_x": 0.0, "slope_y": 0.0, "square": 1.0, "linear": 1.0,
        "constant": 1.0, "radius_a": 0.1, "radius_b": 0.1, "radius_worm": 0.1, "radius_wheel": 0.1, "lead": 0.1,
        "points": [(0.0, 0.0), (1.0, 1.0)], "restitution": 0.5, "speed": 1.0, "damping": 1.0, "frames": ["link2"],
        "xs": [0.0, 1.0], "ys": [0.0, 1.0], "heights": np.zeros((2, 2)), "kp": 1.0, "kd": 1.0, "ki": 1.0, "k": 1.0,
        "d": 1.0, "R": 1.0, "L": 1.0, "n": 1.0, "limit": 1.0, "mean": 1.0, "deviation": 0.1, "quantum": 0.1,
        "condition": 1.0, "yes": 1.0, "no": 0.0, "value": 1.0, "at": None, "E": 2e11, "nu": 0.3, "density": 7800.0,
        "K": K, "M": np.eye(9), "nodes": np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0]]),
        "flexible.interfaces": {"a": 0, "b": 2},
        "read_fem.interfaces": {"a": 1}, "read_sid.interfaces": {"a": 1}, "modes": 1, "integrator": "rk4",
        "fit.plant": free, "fit.free": ["link1.mass"],
        "minimize.plant": free, "minimize.least": "max(joint1.v)", "minimize.over": {"link1.mass": bc.uniform(1, 2)},
        "study.plant": free, "study.over": {"link1.mass": bc.uniform(1, 2)}, "study.runs": 2, "study.to": folder / "s2",
        "study.summary": ["max(joint1.v)"], "gradient.final": lambda t, q, v, x, u: q[0], "export.step": 1e-3,
        "export.path": folder / "out", "Adjoint.final": lambda t, q, v, x, u: q[0], "tries": 2,
        "values": {"link1.mass": 1.0}, "parameters": {"link1.mass": 1.0}, "read.path": robot,
        "rows": [(0.1, 0.0, 0.0, 0.0)], "alpha": [0.0, 0.0], "mass": [1.0, 1.0], "from_saha.a": [0.1, 0.1],
        "from_saha.b": [0.1, 0.1], "r": [(0.1, 0, 0)] * 2, "inertia": [np.eye(3)] * 2, "l": [(1.0, 0, 0)],
        "shape": "circle", "dimensions": (0.01,), "thickness": 0.005, "width": 0.1, "kind": "linear",
        "inputs": {"push": 0.0}, "columns": ["joint1.q"], "seed": 1, "u": np.zeros((2, 1)), "start": 0.0,
        "begin": 0.0, "end": 0.01, "from_": 0, "structure": None, "body": "one", "parent": "one", "child": "two",
        "axis": (0, 0, 1), "collisions.path": robot, "count": n, "pinocchio_order.model": _model(m), **_parts(),
        "zoo.chain.n": 3, "zoo.tree.n": 3, "zoo.ring.n": 4, "zoo.data.name": "andrews", "zoo.load.spec": "chain:2",
        "zoo.start.mechanism": bc.zoo.four_bar(), "gym.make.task": "cart_pole",
        **({} if cheap else _own(folder)),
    }  # fmt: skip


def _model(m: bc.Mechanism) -> SimpleNamespace:
    """Return the coordinate layout of a pinocchio.Model of a chain of hinges."""
    joints = [SimpleNamespace(nq=int(i >= 0), nv=int(i >= 0), idx_q=i, idx_v=i) for i in range(-1, m.nv)]
    return SimpleNamespace(names=["universe", *(j.name for j in m.joints)], joints=joints, nq=m.nq, nv=m.nv)


def _parts() -> dict[str, Any]:
    """Return valid values for forces, actuators, controls and a builder."""
    steel, valve = bc.Material.steel(), actuators.ProportionalValve(1e-3, 2e7, 3e7)
    structure = beam_modes(Beam(2.0, bc.Section.circle(0.05), steel, 4), ("bend_z",), {"end": 1.0}, 1, False, np.inf)
    return {
        "forces.EndStop.stiffness": 1.0, "HydraulicCylinder.valve": valve, "actuators.HydraulicCylinder.bore": 0.1,
        "actuators.HydraulicCylinder.stroke": 1.0, "HydraulicMotor.valve": valve, "structure": structure,
        "actuators.HydraulicMotor.displacement": 1e-4, "actuators.HydraulicMotor.volume": 1e-3, "flow": 1e-3,
        "p_pump": 2e7, "relief": 3e7, "F_c": 1.0, "F_s": 2.0, "P_s": 2000.0, "G": 1.0, "beta_m": 1.0, "T": 1.0,
        "control.start": (0.0, 0.0), "control.end": (1.0, 1.0), "control.wong.n": 2, "trajectory": control.wong(2),
        "control.Trot.height": 0.3, "link": 0.2, "legs": {}, "base": "base", "forces.MagicTyre.coefficients": MAGIC,
        "builder.name": "other", "builder.section": bc.Section.circle(0.02), "joint.kind": "revolute",
        "builder.joint.axis": (0, 0, 1), "builder.joint.child": "two", "lift": lambda x: bc.sin(x),
        "close.kind": "revolute", "loop.kind": "revolute", "builder.joints": ("first", "second"), "weights": (1.0, 2.0),
        "point": (0.0, 0.0, 0.0), "along": (1.0, 0.0, 0.0), "centre": (0.0, 0.0, 1.0), "surface": lambda x, y, z: z,
        "curve": (lambda x, y, z: x, lambda x, y, z: y), "body_a": "one", "body_b": "two", "point_a": (0, 0, 0),
        "point_b": (1, 0, 0), "builder.beam.material": steel, "builder.close.a": "one", "builder.close.b": "two",
        "builder.loop.a": "one", "builder.loop.b": "two",
    }  # fmt: skip


def _own(folder: Path) -> dict[str, Any]:
    """Return values for single callables, by THING.CALLABLE.ARGUMENT, CALLABLE.ARGUMENT or THING.ARGUMENT."""
    m, looped, q = bc.zoo.chain(2), bc.zoo.four_bar(), np.zeros(2)
    base = identify.base_parameters(m)
    rng = np.random.default_rng(1)
    moved = {key: rng.normal(size=(40, 2)) for key in "qva"}
    found = identify.estimate(base, **moved, tau=m.inverse_dynamics(*moved.values()))
    closed, still, _ = (np.asarray(x) for x in (*looped.assemble(), 0.0))
    short = np.zeros(3)
    corners = np.array([[0.0, 0, 0], [0, 1, 0], [0, 0, 1], [2, 0, 0], [2, 1, 0], [2, 0, 1]])
    K = np.kron(np.array([[1.0, -1], [-1, 1]]), np.eye(9)) * 1e6
    back = bc.simulate(m, 0.02, every=0.01)
    for kind in ("parquet", "csv"):
        back.save(folder / f"kept.{kind}")
    (folder / "kept.mtx").write_text("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n")
    steel = bc.Material.steel()
    bc.write_sid(folder / "kept.SID_FEM", _parts()["structure"])
    (folder / "kept.tir").write_text("".join(f"{name} = {x}\n" for name, x in MAGIC.items()))
    corners4 = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])
    cells = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
    return {
        "fit.data": bc.simulate(m.free("link1.mass"), 0.02, every=0.01),
        "bc.Adjoint.final": lambda t, q, v, x, u: q[0], "bc.gradient.final": lambda t, q, v, x, u: q[0],
        "bc.Record.columns": {"t": Column("t", "s", np.arange(3.0)), "x": Column("x", "m", np.arange(3.0))},
        "bc.compile.inputs": {"x": 2}, "bc.study.over": {"link1.mass": bc.uniform(1, 2)}, "bc.study.runs": 2,
        "bc.flexible.nodes": corners, "bc.flexible.K": K, "bc.flexible.M": np.eye(18),
        "bc.flexible.interfaces": {"a": [0, 1, 2], "b": [3, 4, 5]},
        "bc.from_dh.rows": [{"joint": "R", "a": 1.0, "mass": 1.0, "com": (0.5, 0, 0), "inertia": (0.01, 0.1, 0.1)}],
        "from_wong.k": [(0.1, 0, 0)] * 2, "bc.load_record.path": folder / "kept.parquet",
        "bc.read_matrix.path": folder / "kept.mtx", "record.save.path": folder / "again.csv",
        "records.save.path": folder / "again.npz", "EndStop.stiffness": 1.0,
        "identify.least_squares": base,
        "found": found,
        "identify.m": m, "identify.q": moved["q"], "identify.v": moved["v"], "identify.a": moved["a"],
        "identify.tau": moved["q"], "numbers": identify.numbers_of(m), "identify.moved": {"joint1": q, "joint2": q},
        "between.s": Spring("s", "link1", "link2", 1.0), "closing.loop": looped.loops[0], "q0": q, "q1": q, "dv": q,
        "looped.q": closed, "looped.v": still, "looped.a": short, "looped.tau": short, "looped.frame": "crank",
        "looped.q0": closed, "looped.q1": closed, "looped.dv": short, "frame.name": "crank",
        "mechanism.frame.name": "link2",
        "looped.inverse_dynamics.actuated": ["A"], "looped.inverse_dynamics_derivatives.actuated": ["A"],
        "record.t": 0.01, "records.t": 0.01, "column.name": "joint1.q", "facts": {"who": "me"}, "stacked.kind": "q",
        "kernel.wrt": "x", "graph.wrt": "x", "of_arm.wrt": "q", "graph.of": "function", "along.moves": {"x": np.eye(2)},
        "flat.values": [1.0, 2.0, 3.0], "directions": 2, "evaluate.x": q, "alone.u": np.zeros(1),
        "follow.seconds": 0.04,
        "words": 3, "study.run": 0, "result": "max(joint1.v)", "section.width": 0.1, "section.height": 0.2,
        "wall": 0.01,
        "diameter": 0.1, "area": 1.0, "Iy": 1.0, "Iz": 1.0, "J": 1.0, "other": bc.Section.circle(0.03), "s": 0.5,
        "input.values": {"push": 0.1}, "factor": 0.5, "EA": 1.0, "GAy": 1.0, "GAz": 1.0, "GJ": 1.0, "EIy": 1.0,
        "bc.flexible.modes": 0, "mesh": (corners4, cells), "material": steel, "solid.interfaces": {"a": [0, 1, 2]},
        "coefficients": MAGIC,
        "read_fem.path": folder / "kept.fem", "read_sid.path": folder / "kept.SID_FEM",
        "read_tyre.path": folder / "kept.tir",
        "identify.values": identify.values_of(m, identify.numbers_of(m)), "graph.along.of": ["function"],
        "builder.close.frame_a": "one",
        "looped.between.s": Spring("s", "crank", "rocker", 1.0),
        "EIz": 1.0, "rhoA": 1.0, "rhoIy": 1.0, "rhoIz": 1.0,
    }  # fmt: skip
