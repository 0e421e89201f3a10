"""Laws of every system, whatever its parts: each way to compute a motion gives the same motion.

`LAWS` has a function for every value of the dimension "way"; a test checks that none is missing.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np

import bellcrank as bc
from bellcrank.dynamics.loops.assembly import consistent_velocity
from bellcrank.dynamics.loops.constraint_values import evaluate_constraints
from bellcrank.sim.linear.operating_point import dependent_mask, displaced_positions, mechanism_at
from bellcrank.sim.program import step_check
from bellcrank.sim.system.observed_columns import nominals
from bellcrank.studies.dask_engine import chunk_table
from bellcrank.studies.sampling_plans import points as points_of
from bellcrank.studies.study_setup import study_setup
from crossing import exports
from crossing.energy import balance
from crossing.features import SYSTEM_SUITE
from crossing.pairwise import Case
from crossing.schedules import follows
from crossing.systems import SECONDS, STEP, STEPS, World
from crossing.thresholds import SEGMENTED

Array = np.ndarray[Any, Any]
Law = Callable[[World, Path], None]
LAWS: dict[str, Law] = {}
RESOLVED = bc.Solver().resolve  # change by half the step from which a run is not resolved
DIFFERENCES = (1e-6, 1e-7)  # of a coordinate: the edge of a contact may be as round as a micrometre


def law(name: str) -> Callable[[Law], Law]:
    """Enter a function into LAWS."""

    def entered(function: Law) -> Law:
        LAWS[name] = function
        return function

    return entered


def agreement(w: World, rounding: float) -> float:
    """Return how near two runs must be that may have chosen other independent coordinates: to the error of the steps.

    In the minimal form only independent coordinates are integrated, so that another choice has other errors. Runs and
    steppers begin with the same choice, but a stepper, or a run in a batch, may later change to another one.
    """
    return 1e-7 if w.mechanism.loops and w.how.get("form", "auto") in ("auto", "minimal") else rounding


def same(found: Any, expected: Any, tolerance: float, what: str) -> None:
    """Check that two arrays are equal up to a part of the largest element, and finite."""
    a, b = np.asarray(found, float), np.asarray(expected, float)
    assert a.shape == b.shape, f"{what}: shape {a.shape}, expected {b.shape}"
    assert np.isfinite(b).all(), f"{what}: not finite"
    scale = max(1.0, float(np.abs(b).max(initial=0.0)))
    worst = float(np.abs(a - b).max(initial=0.0))
    assert worst <= tolerance * scale, f"{what}: off by {worst:.2e}, {worst / scale:.2e} of the largest element"


def same_records(found: bc.Record, expected: bc.Record, tolerance: float) -> None:
    """Check that two runs have the same columns, rows, events and reasons to stop."""
    assert found.columns == expected.columns
    for name in expected.columns:
        a, b = np.asarray(found[name]), np.asarray(expected[name])
        known = ~np.isnan(b)
        assert (np.isnan(a) == ~known).all(), f"{name}: not a number in other rows"
        same(a[known], b[known], tolerance, name)
    assert [s.reason for s in found.stops] == [s.reason for s in expected.stops]
    happened, wanted = (run.provenance.get("events", []) for run in (found, expected))
    assert [e["event"] for e in happened] == [e["event"] for e in wanted]


def rates(w: World, t: float, y: Array, solved: Any = 0.0) -> Array:
    """Return the accelerations at a state, by forward dynamics under all forces that the system says it has.

    solved: forces that are solved together with the accelerations.
    """
    m = w.mechanism
    given = y[: m.nq], y[m.nq : m.nq + m.nv], applied_forces(w, t, y) + solved
    if w.one("path") == SEGMENTED:
        return np.asarray(bc.kernel(m, "forward_dynamics", "dca")(*given))
    return np.asarray(m.forward_dynamics(*given))


def solved_forces(w: World, run: bc.Record, k: int) -> Array:
    """Return the recorded forces of prescribed motions, latches and bearings in one row."""
    names = w.mechanism.columns[1]
    forces = np.zeros(len(names))
    if w.system.motions:
        forces += [run[f"{n}.motion"][k] for n in names]
    if w.system.solved_elements:
        t, y = float(run.t[k]), states(run, w)[k]
        forces += [run[f"{n}.element"][k] for n in names] - element_forces(w, t, y)
    return forces


def element_forces(w: World, t: float, y: Array) -> Array:
    """Return the generalised forces of the elements that depend on the state alone."""
    s = replace(w.system, mechanism=mechanism_at(w.system, w.system.parameters.nominal))
    return np.array(s.summed(s.acts(t, y.tolist()), y.tolist()), float)


def applied_forces(w: World, t: float, y: Array) -> Array:
    """Return the generalised forces of everything that acts on the mechanism, computed with floats."""
    s = replace(w.system, mechanism=mechanism_at(w.system, w.system.parameters.nominal))
    commands, _ = s.commanded(t, list(y), [s.defaults[name] for name in s.inputs])
    tau, _ = s.forces(t, list(y), commands)
    return np.array(s.pushed(t, list(y), tau), dtype=float)


def states(run: bc.Record, w: World) -> Array:
    """Return the rows of a run as states y."""
    return np.column_stack([run.q, run.v, *(run[z.name] for z in w.system.states)])


@law("rows")
def rows(w: World, folder: Path) -> None:
    """Accelerations of a record are forward dynamics under the forces at that row; loops stay closed."""
    run = w.record
    ends = ("event",) if "stop" in w.of("event") else ("end",) if "tolerance" in w.how else ("end", "not resolved")
    assert run.stops[0].reason in ends, run.stops[0]
    m, y = w.mechanism, states(run, w)
    for k in (0, len(run) - 1):
        same(run.a[k], rates(w, float(run.t[k]), y[k], solved_forces(w, run, k)), 1e-8, f"accelerations of row {k}")
    if m.loops:
        tolerance = 1e-3 if w.one("form") == "lagrange" else 1e-8
        assert np.abs(m.closure(run.q)).max() < tolerance


def slowest(w: World) -> float:
    """Return the least scale of the velocities of a batch."""
    return 1.0 if "motion" in w.of("trait") else 0.7


def batch(w: World, many: int, **other: Any) -> bc.Record:
    """Simulate several starts at once: velocities that close the loops, scaled; with a prescribed motion all alike."""
    faster = np.linspace(1.0, slowest(w), many)[:, None]
    return w.run(q0=np.tile(w.start[0], (many, 1)), v0=faster * w.start[1], **other)


@law("lanes")
def lanes(w: World, folder: Path) -> None:
    """A run in a batch is that run alone."""
    many = batch(w, 5)
    for k, part in ((0, 1.0), (4, slowest(w))):
        alone = w.run(v0=part * w.start[1])
        n = len(alone)
        same(many.q[k][:n], alone.q, agreement(w, 1e-11), f"positions of run {k}")
        same(many.v[k][:n], alone.v, agreement(w, 1e-10), f"velocities of run {k}")


@law("threads")
def threads(w: World, folder: Path) -> None:
    """Two threads give what one gives, to the last bit."""
    one, two = batch(w, 20, threads=1), batch(w, 20, threads=2)
    for name in one.columns:
        np.testing.assert_array_equal(np.asarray(one[name]), np.asarray(two[name]), err_msg=name)


@law("gpu")
def gpu(w: World, folder: Path) -> None:
    """The code of the GPU, on this processor, gives what the CPU gives."""
    same_records(batch(w, 3, target="cuda"), batch(w, 3), 1e-8)


@law("stepper")
def stepper(w: World, folder: Path) -> None:
    """Actions of a stepper lead to the rows of a run in which every action is a line of the table of inputs.

    A multistep method restarts after every line, so its step errors differ from those of a run with constant inputs.
    """
    form = {"form": w.how.get("form", "projected")} if w.mechanism.loops else {}
    how = {"integrator": w.how["integrator"], **form}
    if w.mechanism.loops and form["form"] == "auto":
        how["form"] = "projected"
    every, inputs = 4 * STEP, w.system.inputs
    lines = np.array([[w.system.defaults[n] + 0.05 * k for n in inputs] for k in range(STEPS // 4)])
    given = {"inputs": dict(zip(inputs, lines.T, strict=True)), "input_step": every} if inputs else {}
    run = states(bc.simulate(w.system, SECONDS, step=STEP, every=every, **given, **w.begin, **how), w)
    env = bc.stepper(w.system, every=every, step=STEP, **how)
    env.reset(start=run[0])
    tolerance = agreement(w, 1e-11) if how.get("form") == "minimal" else 0.0  # that one carries every choice at once
    for k, line in enumerate(lines):
        env.step(line if inputs else None)
        y = np.asarray(env.state).reshape(-1)
        same(y, run[k + 1], tolerance, f"state after action {k}")


@law("linearize")
def linearized(w: World, folder: Path) -> None:
    """A, B, C and D are central differences; the rate is forward dynamics."""
    s, m, (q, v) = w.system, w.mechanism, w.start
    outputs = ["kinetic_energy"]
    lin = bc.linearize(s, at={"q": q, "v": v}, outputs=outputs)
    n = len([x for x in lin.states if x.endswith(".q") and x.removesuffix(".q") in m.columns[1]])
    free = [m.columns[1].index(x.removesuffix(".q")) for x in lin.states[:n]]
    x = w.record.x[0] if s.nx else np.zeros(0)
    count = len(lin.states)
    assert np.isfinite(lin.A).all()
    assert lin.rate.shape == (count,)
    at = np.concatenate([q, v, x])
    same(lin.rate[n : 2 * n], rates(w, 0.0, at, solved_forces(w, w.record, 0))[free], 1e-8, "rate")
    names = [m.columns[1][i] for i in free] if m.loops else ()
    for h in DIFFERENCES:
        y = np.array([_beside(w, at, free, k, x) for k in range(2 * n) for x in (h, -h, 2.0 * h, -2.0 * h)])
        nearby = bc.linearize(s, at={"q": y[:, : m.nq], "v": y[:, m.nq : m.nq + m.nv]}, outputs=outputs,
                              independent=names)  # fmt: skip
        slope, doubt = _slope(nearby.rate, h)
        if np.abs(lin.A[n:, : 2 * n] - slope[n:]).max() <= 2e-5 * max(1.0, np.abs(slope).max()):
            break
    same(lin.A[n:, : 2 * n], slope[n:], 2e-5 + doubt, "A")
    slope, doubt = _slope(m.kinetic_energy(y[:, : m.nq], y[:, m.nq : m.nq + m.nv])[:, None], h)
    same(lin.C[:, : 2 * n], slope, 1e-5 + doubt, "C")
    if s.inputs:
        pushed = [bc.linearize(s, at={"q": q, "v": v, "push": 0.1 + e}, outputs=outputs).rate for e in (h, -h)]
        same(lin.B[:, 0], (pushed[0] - pushed[1]) / (2 * h), 1e-5, "B")
        same(lin.D, np.zeros((1, 1)), 1e-12, "D")


def _slope(values: Array, h: float) -> tuple[Array, float]:
    """Return differences of fourth order of four values each, and how far those of second order are off, relatively.

    Edges of shapes are rounded at a micrometre: there differences of second order are not exact enough for the law.
    """
    fine, coarse = values[0::4] - values[1::4], (values[2::4] - values[3::4]) / 2.0
    best = (4.0 * fine - coarse) / 3.0
    return best.T / (2 * h), float(np.abs(best - fine).max() / max(1.0, np.abs(best).max()))


def _beside(w: World, at: Array, free: list[int], k: int, h: float) -> Array:
    """A state that closes the loops, displaced along one independent coordinate or velocity."""
    m, s, n = w.mechanism, w.system, len(free)
    q, v = at[: m.nq], np.array(at[m.nq : m.nq + m.nv])
    xi = np.zeros(m.nv)
    if k < n:
        xi[free[k]] = h
    else:
        v[free[k - n]] += h
    there = displaced_positions(s, s.parameters.nominal, q, xi, free)
    v = consistent_velocity(m.tree, there, v, free=dependent_mask(s, free)) if m.loops else v
    return np.concatenate([there, v, at[m.nq + m.nv :]])


@law("equilibrium")
def equilibrium(w: World, folder: Path) -> None:
    """Accelerations are zero at an equilibrium; without one, an error is raised."""
    try:
        found = bc.equilibrium(w.system, {"q": w.start[0]})
    except bc.EquilibriumError:
        return
    y = np.concatenate([found.q, found.v, found.x])
    assert np.abs(rates(w, 0.0, y)).max() < 1e-6


def _cost(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
    return v[0] * v[0] + bc.sin(q[0])


@law("gradient")
def gradient(w: World, folder: Path) -> None:
    """The gradient of a run by a change of its initial velocity is the difference of two runs."""
    adjoint = bc.Adjoint(w.system, _cost, _cost, w.how["integrator"], None, w.how.get("form"))
    q, v = w.start
    try:
        found = adjoint.run(SECONDS, q0=q, v0=v, step=STEP)
    except RuntimeWarning as warning:  # said, and another form is named
        assert "no single choice of independent coordinates" in str(warning), warning  # noqa: PT017
        return
    h, change = 1e-5, _velocity_change(w)
    ends = [adjoint.run(SECONDS, q0=q, v0=v + e * change, step=STEP).value for e in (h, -h)]
    same(found.v0 @ _along(w, found, change), (ends[0] - ends[1]) / (2 * h), 2e-5, "along a change of the velocity")
    if w.system.inputs:
        ends = [adjoint.run(SECONDS, q0=q, v0=v, step=STEP, inputs={"push": 0.1 + e}).value for e in (h, -h)]
        same(found.inputs["push"], (ends[0] - ends[1]) / (2 * h), 2e-5, "by the input")


def _velocity_change(w: World) -> Array:
    """Return a change of the initial velocity that keeps loops closed and prescribed joints on their motions."""
    m, (q, v) = w.mechanism, w.start
    if not w.system.motions:
        return v
    prescribed = np.eye(m.nv)[[m.columns[1].index(name) for name in w.system.motions]]
    rows = np.concatenate([evaluate_constraints(m.tree, q).C, prescribed])
    return np.ones(m.nv) - np.linalg.pinv(rows) @ (rows @ np.ones(m.nv))


def _along(w: World, found: Any, v: Array) -> Array:
    """Return velocities of the independent joints; the others are zero, because they follow."""
    names = w.mechanism.columns[1]
    return np.array(
        [x if not w.mechanism.loops or n in found.independent else 0.0 for n, x in zip(names, v, strict=True)]
    )


@law("sensitivities")
def sensitivities(w: World, folder: Path) -> None:
    """Derivatives along a run are differences of runs."""
    name = next(n for n in w.mechanism.columns[1] if n.startswith("j"))
    k = w.mechanism.columns[1].index(name)
    varied = w.run(sensitivities=[f"{name}.v"], step=STEP, every=SECONDS)
    v, h = w.start[1], 1e-6
    ends = [w.run(v0=v + e * np.eye(len(v))[k], step=STEP, every=SECONDS).v[-1] for e in (h, -h)]
    found = [varied[f"d({n}.v)/d({name}.v)"][-1] for n in w.mechanism.columns[1]]
    same(found, (ends[0] - ends[1]) / (2 * h), 1e-5, "derivatives at the end")


@law("half step")
def half_step(w: World, folder: Path) -> None:
    """With half the step the end of a run changes by no more than the run says of itself."""
    coarse, fine = (w.run(step=h, every="step") for h in (STEP, STEP / 2))
    if "tolerance" in w.how:  # the step is the first one; those after it are chosen
        same(states(fine, w)[-1], states(coarse, w)[-1], 1e-6, "state at the end")
        return
    changed, told = change(w, coarse, fine), coarse.provenance["change by half the step"]["change"]
    if coarse.stops[0].reason == "not resolved":
        assert told > RESOLVED
        return
    assert coarse.stops[0].reason == ("event" if "stop" in w.of("event") else "end"), coarse.stops[0]
    assert changed <= 5.0 * told + 1e-7, f"half the step changes it by {changed:.2e}, told {told:.2e}"


def change(w: World, coarse: bc.Record, fine: bc.Record) -> float:
    """Return how far the ends of two runs are apart, as a share of the way of each element of the state."""
    a, b = states(coarse, w), states(fine, w)
    way = np.abs(np.diff(a, axis=0)).sum(axis=0) + step_check.STILL_SHARE * nominals(w.system)
    return float((np.abs(a[-1] - b[-1]) / way).max())


@law("energy")
def energy(w: World, folder: Path) -> None:
    """The energy changes by the work done, up to the step error, and the record agrees.

    The difference must decrease with half the step, as step errors do; a missing force or power would not.
    """
    chosen = "tolerance" in w.how
    steps = (STEP, STEP / 2)
    runs = [w.run(every=h) if chosen else w.run(step=h, every="step") for h in steps]
    coarse, fine = (balance(w, run) for run in runs)
    least = (1e-7 if chosen else 1e-10) * coarse.scale
    assert coarse.off <= ERRORS * abs(coarse.off - fine.off) + least, (
        f"energy is off by {coarse.off:.2e} J of {coarse.scale:.2e}, with half the step by {fine.off:.2e}"
    )
    said = [run.residuals()["energy"] * _moving(run) for run in runs]
    assert said[0] <= ERRORS * abs(said[0] - said[1]) + least, (
        f"the record says {said[0]:.2e} J of {coarse.scale:.2e}, with half the step {said[1]:.2e}"
    )


ERRORS = 3.0  # an error of first order is twice what half the step changes


def _moving(run: bc.Record) -> float:
    """Return what residuals are a share of, J."""
    return float(np.nanmax(np.abs(run["kinetic_energy"])))


@law("schedule")
def scheduled(w: World, folder: Path) -> None:
    """Processors that follow a schedule of the rates of a system compute those."""
    s = (
        bc.Simulator(w.system, w.how["integrator"], form=w.how.get("form", "auto"))
        if w.mechanism.loops
        else (bc.Simulator(w.system, w.how["integrator"]))
    )
    graph = s.dynamics.f
    known = {"t": 0.0, "y": states(w.record, w)[0], "u": [w.system.defaults[n] for n in w.system.inputs]}
    known["p"] = w.system.parameters.nominal
    found = follows(graph, {name: known[name] for name in graph.inputs}, w.seed)
    assert np.isfinite(found["dy"]).all()


@law("study")
def study(w: World, folder: Path) -> None:
    """A row that a worker of a study computes is the run that it stands for."""
    name, masses = "b0.mass", [1.2, 1.7]
    points = points_of({name: masses}, None, None, 0)
    given = {"q0": w.start[0], "v0": w.start[1], "x0": None, "inputs": None, "input_step": None, "parameters": None}
    asked = ("final(kinetic_energy)", f"max({w.mechanism.columns[1][0]}.v)")
    setup = study_setup(
        w.system, points, w.how, seconds=SECONDS, given=given, summary=asked, keep=None, seed=0, events=tuple(w.events)
    )
    table = chunk_table(pickle.loads(cloudpickle.dumps(setup)), {}, 0, {name: np.array(masses)})
    free = w.mechanism if name in w.mechanism.parameters else w.mechanism.free(name)
    plant = replace(w.system, mechanism=free)
    how = {"events": w.events, **w.begin, **w.how}
    run = bc.simulate(plant, SECONDS, parameters={name: masses}, summary=asked, keep="final", **how)
    for word in asked:
        same(table[word], run[word].reshape(-1), 1e-12, word)
    assert [str(x) for x in table["stop"]] == [x.reason for x in run.stops]


@law("summary")
def summary(w: World, folder: Path) -> None:
    """Extremes and last values of a run that keeps no rows are those of its rows."""
    column = f"{w.mechanism.columns[1][0]}.v"
    asked = (f"max({column})", f"final({column})", "min(kinetic_energy)")
    short, rows = w.run(every=None, keep="final", summary=asked), w.run(every="step")
    found = [float(short[word].reshape(-1)[0]) for word in asked]
    speed, energy = rows[column], rows["kinetic_energy"]
    if "switch" in w.of("event"):
        found, speed, energy = found[1:2], speed[-1:], energy[-1:]
        same(found, [speed[-1]], 1e-12, "last value")
        return
    same(found, [speed.max(), speed[-1], energy.min()], 1e-12, "summary")


@law("count")
def count(w: World, folder: Path) -> None:
    """Counting, printing and describing a system do not fail."""
    g = bc.kernel(w.mechanism, "forward_dynamics").graph
    assert g.count().arithmetic > 0
    assert all(map(str, (g, w.system, w.mechanism, w.record)))
    assert g.span() <= g.work() * (1.0 + 1e-9)


@law("pickle")
def pickled(w: World, folder: Path) -> None:
    """A mechanism and a record that were pickled are the same."""
    m = pickle.loads(pickle.dumps(w.mechanism))
    assert m.fingerprint == w.mechanism.fingerprint
    same_records(pickle.loads(pickle.dumps(w.record)), w.record, 0.0)


def _saved(suffix: str) -> Law:
    def saved(w: World, folder: Path) -> None:
        """A record that was saved and loaded is the same, with its mechanism."""
        again = bc.load_record(w.record.save(folder / f"run{suffix}"))
        same_records(again, w.record, 0.0)
        if again.mechanism is not None:
            assert again.mechanism.fingerprint == w.mechanism.fingerprint
            q, v = w.start
            tau = np.zeros(w.mechanism.nv)
            same(again.mechanism.forward_dynamics(q, v, tau), w.mechanism.forward_dynamics(q, v, tau), 0.0, "dynamics")

    return saved


for _way in SYSTEM_SUITE["way"].values:
    if _way.startswith("."):
        LAWS[_way] = _saved(_way)
    elif _way.startswith("export ") and _way.removeprefix("export ") in exports.AGREE:
        LAWS[_way] = exports.AGREE[_way.removeprefix("export ")]


def holds(world: World, way: str, folder: Path) -> None:
    """Check the law of one way to use a system."""
    folder.mkdir()
    try:
        LAWS[way](world, folder)
    except (AssertionError, bc.BellcrankError) as error:
        raise AssertionError(f"{way} of {described(world.case)}: {type(error).__name__}: {error}") from error


def described(case: Case) -> str:
    """Return a case in words."""
    return ", ".join(f"{name} {value}" for name, value in case if name != "way" and value != "none")
