"""Feasible set of the numbers that wong1991 does not print for its excavator runs (section 5.5.2).

The figures of section 5.5.2 are not in the scan, but the text makes statements about them. Each statement is an
inequality: a margin that must be positive. The numbers that the text needs and does not print are sampled. Both runs
are simulated for every sample with the printed step of 0.01 s, and all inequalities are evaluated. A sample that
satisfies all of them is feasible. For stiff spools that step is too long, so all is repeated with a shorter one.

No threshold is tuned. A statement such as "lags" has the margin of its sign, and "not present" means less than a tenth
of the same quantity of the joint that it is compared with.

Sampled are the opening of the spool per volt, the height of the bucket's hinge and the bucket's angle. The rates of
JOINT mode, which came from a file, lead from the first to the last pose of RESOLVED mode at constant speed. The rate at
which the control reads the machine is not printed either: it is tried as continuous, at every step, and every 0.05 s,
the printed rate of the display. A sampled control takes differences of angles for velocities, adds its rates to its
desired angles once a sample, and holds its voltages, as section 5.4.3 describes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from math import radians
from typing import Any

import numpy as np

from bellcrank.actuators import RotaryHydraulics
from bellcrank.excavators import spool_control
from bellcrank.excavators.spool_control import JOINTS, MOTION_SECONDS, REST_SECONDS, SECONDS, JointMode, SpoolControl
from bellcrank.papers.open_loop import Array
from bellcrank.parameters import parameter
from bellcrank.record import Record
from bellcrank.scalar import Scalar
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.settings import Solver
from bellcrank.sim.system.sampling import Sampled
from bellcrank.sim.system.systems import system
from bellcrank.text_table import Table
from bellcrank.zoo import data, excavator

SAMPLES, SEED = 512, 1991
STEP, SHORT_STEP, EVERY = 0.01, 0.0025, 0.02  # s; the first is printed, and with the second all samples are resolved
CONTROL_PERIODS = (0.0, 0.01, 0.05)  # s; 0 is a continuous control, 0.05 s the printed rate of the display
# Range of each number that is not printed: cm/V, m, rad.
RANGES = {"opening": (0.02, 1.0), "height": (0.0, 4.0), "bucket": (-np.pi, 0.0)}
UNITS = {"opening": "cm/V", "height": "m", "bucket": "rad"}
NOT_PRESENT = 0.1  # share of the compared quantity that counts as nothing
QUIET_WAVE = 0.5  # share of the cab's oscillation that counts as smooth
RUN_LIMIT = 10.0  # rad; a joint farther away has left the machine


@dataclass(frozen=True)
class Runs:
    """Both runs of all samples; arrays have the samples first and then the rows."""

    joint: Record
    resolved: Record
    volts: str  # ending of the columns of the voltages

    def error(self, mode: Record, joint: str, t: float) -> Array:
        """Return the desired minus the actual angle of a `joint` in a run (`mode`) at the time `t`, rad."""
        k = round(t / EVERY)
        return np.asarray(mode[f"{joint}_d"][:, k] - mode[f"{joint}.q"][:, k])

    def lag(self, mode: Record, joint: str, t: float) -> Array:
        """Return by how much a `joint` is behind in the direction of its motion, in a run (`mode`) at the time `t`."""
        way = mode[f"{joint}_d"][:, -1] - mode[f"{joint}_d"][:, 0]
        return np.asarray(self.error(mode, joint, t) * np.sign(way))

    def swing(self, joint: str, t0: float, t1: float) -> Array:
        """Return the range of a velocity in JOINT mode, without its drift, between two times `t0` and `t1`, rad/s.

        Parameters
        ----------
        joint
            Name of the joint.
        t0, t1
            Times, s.
        """
        rows = slice(round(t0 / EVERY), round(t1 / EVERY))
        v = np.asarray(self.joint[f"{joint}.v"][:, rows])
        t = np.linspace(-1.0, 1.0, v.shape[1])
        drift = np.polynomial.polynomial.polyval(t, np.polynomial.polynomial.polyfit(t, v.T, 3))
        return np.asarray(np.ptp(v - drift, axis=1))


Margin = Callable[[Runs], Array]
# Statements of the text, by mode, with the margin that must be positive.
STATEMENTS: Mapping[str, Margin] = {
    "JOINT: boom sags while pressure builds up": lambda r: r.error(r.joint, "boom", 4.9),
    "JOINT: stick sags while pressure builds up": lambda r: r.error(r.joint, "stick", 4.9),
    "JOINT: this error is not present in the cab": lambda r: (
        NOT_PRESENT * r.error(r.joint, "boom", 4.9) - abs(r.error(r.joint, "cab", 4.9))
    ),
    "JOINT: the bucket drops less than the stick": lambda r: (
        r.error(r.joint, "stick", 4.9) - abs(r.error(r.joint, "bucket", 4.9))
    ),
    "JOINT: boom's v > 0 before the motion": lambda r: r.joint[f"boom{r.volts}"][:, _rows(3.0, 4.9)].min(axis=1),
    "JOINT: but its spool is shut": lambda r: -abs(r.joint["boom.spool"][:, _rows(3.0, 4.9)]).max(axis=1) + 1e-9,
    "JOINT: boom oscillates at the start, the cab does not": lambda r: (
        NOT_PRESENT * r.swing("boom", 0.0, 1.0) - r.swing("cab", 0.0, 1.0)
    ),
    "JOINT: stick oscillates at the start": lambda r: (
        NOT_PRESENT * r.swing("stick", 0.0, 1.0) - r.swing("cab", 0.0, 1.0)
    ),
    "JOINT: all joints lag at the end": lambda r: np.min([r.lag(r.joint, j, SECONDS) for j in JOINTS], axis=0),
    "JOINT: a negative v of the boom at the end": lambda r: -r.joint[f"boom{r.volts}"][:, -1],
    "JOINT: the cab oscillates at the end, the boom is smooth": lambda r: (
        QUIET_WAVE * r.swing("cab", 13.0, SECONDS) - r.swing("boom", 13.0, SECONDS)
    ),
    "RESOLVED: the cab lags at the end of the motion": lambda r: (
        r.lag(r.resolved, "cab", 10.0) - NOT_PRESENT * radians(15.0)
    ),
    "RESOLVED: the height sags at the start": lambda r: -_height_error(r, 4.9),
    "RESOLVED: the height errs upwards later": lambda r: _height_error(r, 12.0),
    "RESOLVED: the bucket sags, and lags at the end": lambda r: np.minimum(
        r.error(r.resolved, "bucket", 4.9), r.lag(r.resolved, "bucket", SECONDS)
    ),
    "RESOLVED: boom and stick spools open wider": lambda r: np.min(
        [_widening(r, j) for j in ("boom", "stick")], axis=0
    ),
}


def _rows(t0: float, t1: float) -> slice:
    return slice(round(t0 / EVERY), round(t1 / EVERY))


def _height_error(r: Runs, t: float) -> Array:
    """Return the actual minus the desired height of the bucket's hinge, m."""
    k, arm = round(t / EVERY), spool_control.arm()
    actual, wanted = (
        np.asarray(arm.forward([r.resolved[f"{j}{kind}"][:, k] for j in JOINTS])[2]) for kind in (".q", "_d")
    )
    return np.asarray(actual - wanted)


def _widening(r: Runs, joint: str) -> Array:
    """Return the least increase of a spool's opening from 7 to 8, 9 and 9.9 s, cm."""
    openings = np.abs(np.stack([r.resolved[f"{joint}.spool"][:, round(t / EVERY)] for t in (7.0, 8.0, 9.0, 9.9)]))
    return np.asarray(np.min(np.diff(openings, axis=0), axis=0))


def samples(count: int = SAMPLES) -> dict[str, Array]:
    """Return `count` samples of the numbers that are not printed, uniform in their ranges; the opening in its log."""
    rng = np.random.default_rng(SEED)
    cells = {name: (rng.permutation(count) + rng.random(count)) / count for name in RANGES}  # Latin hypercube
    out = {name: low + (high - low) * cells[name] for name, (low, high) in RANGES.items()}
    low, high = np.log(RANGES["opening"])
    return out | {"opening": np.exp(low + (high - low) * cells["opening"])}


def _simulator(control: SpoolControl, every: float) -> Simulator:
    """Return the simulator of a control that is continuous, or sampled `every` so many seconds if that is not 0."""
    drives = spool_control.hydraulics(opening=parameter("opening", spool_control.OPENING, "cm/V"))
    inputs = {} if control.profile is not None else dict.fromkeys(control.inputs, 0.0)
    outputs: dict[str, Any] = {}
    for j, drive, spool in zip(JOINTS, drives, spool_control.spool_outputs(control, drives), strict=True):
        outputs[f"{j}.spool"] = partial(_held_spool, drive, j) if every else spool
    law = _sampled(control, every) if every else control
    return Simulator(system(excavator(), drives, law, inputs=inputs, outputs=outputs), solver=Solver(resolve=0.0))


def _held_spool(drive: RotaryHydraulics, joint: str, t: Scalar, q: Any, v: Any, x: Any, u: Any) -> Scalar:
    return drive.spool(x[f"{joint}.held"])


def _sampled(control: SpoolControl, every: float) -> Sampled:
    """Return `control` as section 5.4.3 computes it: differences for velocities, sums for desired angles."""
    start = {f"{j}_d": q for j, q in zip(JOINTS, control.start, strict=True)}
    last = {f"{j}_last": q for j, q in zip(JOINTS, control.start, strict=True)}

    def function(t: Scalar, q: Any, v: Any, x: Any, u: Any) -> tuple[dict[str, Scalar], dict[str, Scalar]]:
        theta_d, rates = control.desired(t, x, u)
        volts: dict[str, Scalar] = {}
        after: dict[str, Scalar] = {}
        for i, j in enumerate(JOINTS):
            speed = (q[i] - x[f"{j}_last"]) * (1.0 / every)
            volts[j] = control.kv[i] * (rates[i] - speed) + control.kp[i] * (theta_d[i] - q[i])  # 5.5
            after |= {f"{j}_d": theta_d[i] + every * rates[i], f"{j}_last": q[i]}
        return volts, after

    return Sampled(function, every=every, states=start | last)


def simulate(values: Mapping[str, Array], step: float = STEP, every: float = 0.0) -> Runs:
    """Simulate both runs for all samples.

    Parameters
    ----------
    values
        Samples, by the names in `RANGES`.
    step
        Step of RK4, s.
    every
        Period of the control, s; 0 for a continuous one.
    """
    first, last = (poses(values, radius, swing) for radius, swing in ((5.0, 0.0), (6.5, radians(15.0))))
    gains, numbers = data("excavator")["control"], {"opening": values["opening"]}
    names = ("_d", "_last") if every else ("_d",)
    start = {f"{j}{name}": first[:, i] for i, j in enumerate(JOINTS) for name in names}
    # JOINT mode: at rest, at constant rates, at rest, for 5 s each.
    rates = {j: np.outer((last - first)[:, i] / MOTION_SECONDS, [0.0, 1.0, 0.0]) for i, j in enumerate(JOINTS)}
    joint = _simulator(JointMode(gains["kp"], gains["kv"], spool_control.poses()[0]), every).run(
        SECONDS, q0=first, x0=start, parameters=numbers, inputs=rates, input_step=REST_SECONDS, step=step, every=EVERY
    )
    resolved = _simulator(spool_control.resolved_mode(), every).run(
        SECONDS, q0=first, x0=start, parameters=numbers, step=step, every=EVERY
    )
    return Runs(joint, resolved, ".held" if every else ".command")


def poses(values: Mapping[str, Array], radius: float, swing: float) -> Array:
    """Return the joint angles of all samples with the tip at a radius and a swing, (samples, 4).

    Parameters
    ----------
    values
        Samples.
    radius
        Radius of the bucket's hinge, m.
    swing
        Angle of the cab, rad.
    """
    arm = spool_control.arm()
    pairs = zip(values["height"], values["bucket"], strict=True)
    return np.array([[float(x) for x in arm.inverse((radius, swing, h, b))] for h, b in pairs])


def judge(values: Mapping[str, Array], step: float = STEP, every: float = 0.0) -> dict[str, Array]:
    """Return the truth of each statement for each sample; a sample whose run diverges satisfies none.

    Parameters
    ----------
    values, step, every
        As in `simulate`.
    """
    runs = simulate(values, step, every)
    calm = np.ones(len(values["opening"]), bool)
    for run in (runs.joint, runs.resolved):
        calm &= (np.abs(np.nan_to_num(run.q, nan=np.inf)) < RUN_LIMIT).all(axis=(1, 2))
    with np.errstate(invalid="ignore"):
        return {name: (margin(runs) > 0.0) & calm for name, margin in STATEMENTS.items()}


@cache
def evaluate(count: int = SAMPLES, step: float = STEP, every: float = 0.0) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return (samples, truth of each statement) of the reachable among `count` samples, for this `step` and `every`."""
    values = samples(count)
    reachable = np.isfinite(poses(values, 5.0, 0.0)).all(axis=1) & np.isfinite(poses(values, 6.5, 0.0)).all(axis=1)
    values = {name: x[reachable] for name, x in values.items()}
    return values, judge(values, step, every)


def all_true(truth: Mapping[str, Array]) -> Array:
    """Return which samples satisfy every statement of `truth`."""
    return np.asarray(np.all(list(truth.values()), axis=0))


def tables(count: int = SAMPLES) -> list[Table]:
    """Tabulate how many of `count` samples satisfy each statement, and the ranges of the feasible set."""
    (values, truth), (_, resolved) = evaluate(count), evaluate(count, SHORT_STEP)
    rows = []
    for name, holds in truth.items():
        others = all_true({other: x for other, x in truth.items() if other != name})
        rows.append((name, f"{holds.sum()}", f"{(others & ~holds).sum()}", f"{resolved[name].sum()}"))
    rows.append(("all", f"{all_true(truth).sum()}", "", f"{all_true(resolved).sum()}"))
    head = ("statement", "true in", "alone excludes", f"true, {SHORT_STEP:g} s")
    title = f"Statements about both runs, {len(values['opening'])} samples, RK4 at {STEP:g} s"
    below = "alone excludes: samples that satisfy all other statements, but not this one."
    ranges = _range_table(values, all_true(truth), all_true(resolved))
    return [Table(title, head, rows, (1, 2, 3), below), ranges, _rate_table(count)]


def _rate_table(count: int) -> Table:
    """Tabulate for each rate of the control how many samples are feasible, and what the best ones violate."""
    rows = []
    for every in CONTROL_PERIODS:
        _, truth = evaluate(count, STEP, every)
        score = np.sum(list(truth.values()), axis=0)
        best = score == score.max()
        violated = [name.partition(": ")[2] for name, holds in truth.items() if not holds[best].all()]
        rate = f"every {every:g} s" if every else "continuous"
        rows.append((rate, f"{all_true(truth).sum()}", f"{score.max()} of {len(truth)}", "; or: ".join(violated)))
    head = ("control", "feasible", "true in the best", "what the best violate")
    return Table("The rate at which the control reads the machine", head, rows, (1, 2))


def _range_table(values: Mapping[str, Array], printed: Array, short: Array) -> Table:
    chosen = {"opening": spool_control.OPENING, "height": spool_control.HEIGHT, "bucket": spool_control.BUCKET}
    rows = []
    for name, (low, high) in RANGES.items():
        spans = (_span(values[name][inside]) for inside in (printed, short))
        rows.append((name, UNITS[name], f"{low:.2g} to {high:.2g}", *spans, f"{chosen[name]:.2g}"))
    head = ("number", "unit", "sampled", "feasible", f"feasible, {SHORT_STEP:g} s", "chosen")
    return Table("Numbers that are not printed", head, rows)


def _span(x: Array) -> str:
    return f"{x.min():.2g} to {x.max():.2g}" if len(x) else "none"
