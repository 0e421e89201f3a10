"""Three arms in free fall and driven along eq 18 (Saha 2001, section 4).

theta_i = 1/2 [2 pi t / T - sin(2 pi t / T)]                                                                18

Stanford arm and PUMA robot are driven by two integrators. The figures are 4 to 7 of the paper, and the growth of errors
that explains why the forced run diverges.

Stanford arm: the printed free fall (theta_2 from 90 degrees through zero "a little after 0.5 sec") does not follow from
the printed numbers. A forearm on a free slide falls almost like a free body, straight down, so that theta_2 approaches
zero slowly instead of swinging through it. The scan below changes every printed number in turn and reports the one that
would reproduce the printed time.

Forced runs: the paper calculates the forces first, and shows them as a history. If the second program reads that
history at intervals, and interpolates between them, the arm gets slightly wrong forces from the start. The rows "forces
sampled" do this by straight lines. For the Stanford arm, intervals of 0.02 to 0.05 s give the printed 2.5 s, while the
printed tolerance of 1e-6 does not. The interval is not printed. For the PUMA robot no interval gives the printed 6 s.

PUMA robot, from 0 to pi: between 3 and 7 s errors stop growing, at a factor of about ten thousand, because the arm
hangs down during that time. Therefore the time at which the arm leaves its path depends strongly on the size of the
first errors: with errors ten times larger it leaves before the pause, with errors ten times smaller well after it. No
printed number and no sampling of the torques explains the difference from the paper: it is open.

Planar arm of three links against its explicit equations of motion: "The results in both the cases, i.e., free-fall and
forced, exactly match." The forced run follows eq 18 with T = 10 s. The paper prints no numbers for this arm; its
lengths and masses are chosen here. On eq 18 the arm passes its upright position, and a small error grows so much in
10 s that two programs agree to the end only if they round identically; the two programs compared here share no code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import pi

import numpy as np

from bellcrank.control import Cycloid, wong
from bellcrank.dynamics.rnea import inverse_dynamics
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.errors import BellcrankError
from bellcrank.formats.locked_joints import lock_joints
from bellcrank.model import Mechanism, mechanism_of
from bellcrank.papers import Result, Row, bound_row, explicit_3r
from bellcrank.papers.open_loop import Array, departure_time, desired_motion, error_growth, growth_panel, simulator
from bellcrank.record import Record
from bellcrank.scalar import Scalar, floor
from bellcrank.sim.run.simulator import Simulator
from bellcrank.view.curves import Line, Panel, figure
from bellcrank.zoo import planar3r, puma_saha, stanford

SECONDS, STEP, TOLERANCE = 10.0, 0.01, 1e-6
PANEL_MARGIN = 0.6  # margin of a panel above and below the path, as a fraction of its range; diverging runs are clipped
VISIBLE_DEVIATION, OBVIOUS_DEVIATION = 0.01, 0.1  # rad or m: width of a line in a plot, and an obvious deviation
STANFORD_START = (0.0, pi / 2, 0.0, 0.0, 0.0, 0.0)
STANFORD_END = (pi / 3, pi / 3, 0.1, pi / 3, pi / 3, pi / 3)  # "theta_i(T) = 60 deg for i != 3, b_3(T) = 0.1 m"
SAMPLING_INTERVALS, SAMPLED_STEP = (0.01, 0.02, 0.05, 0.1), 0.0025  # s
DEPARTURE_TOLERANCE = 0.25  # s, difference from a printed time that was read from a plot of 10 s
PLANAR_STEP, PLANAR_EVERY = 0.002, 5  # s, steps between rows
MATCH = "exactly match"  # the paper's words
COMPARABLE_SECONDS = 7.0  # s; later the forced run depends on the rounding of the computer


@dataclass(frozen=True, eq=False)
class ArmExperiment:
    """Arm with its path from `start` to `end`, and a cache of its forced runs."""

    mechanism: Mechanism
    start: tuple[float, ...]
    end: tuple[float, ...]
    runs: dict[tuple[str, float], Record] = field(default_factory=dict)

    @property
    def path(self) -> Cycloid:
        """Cycloidal path by eq 18."""
        return Cycloid(self.start, self.end, SECONDS)

    def free_fall(self, mechanism: Mechanism | None = None, start: tuple[float, ...] | None = None) -> Record:
        """Simulate free fall by Runge-Kutta-Fehlberg with the printed time step.

        Parameters
        ----------
        mechanism
            Variant of the arm; None for the arm itself.
        start
            Initial coordinates; None for those of the arm.
        """
        fall_simulator = Simulator(mechanism or self.mechanism, "rkf45")
        return fall_simulator.run(SECONDS, q0=list(start or self.start), step=STEP)

    @cached_property
    def simulators(self) -> dict[str, Simulator]:
        """Simulators of the forced motion, by integrator."""
        return {name: simulator(self.mechanism, self.path, name) for name in ("rkf45", "abm4")}

    def forced(self, integrator: str, tolerance: float = TOLERANCE) -> Record:
        """Return the forced run by `integrator` with the error `tolerance`."""
        key = integrator, tolerance
        if key not in self.runs:
            path_simulator = self.simulators[integrator]
            self.runs[key] = path_simulator.run(SECONDS, q0=list(self.start), tolerance=tolerance, every=STEP)
        return self.runs[key]

    def sampled(self, interval: float) -> Record:
        """Return the run with forces of inverse dynamics sampled every `interval` (s), and lines between them."""
        tree, path = self.mechanism.tree, self.path

        def force(t: Scalar) -> list[Scalar]:
            return inverse_dynamics(tree, *path(t))

        def control(t: Scalar, q: Vector, v: Vector, x: object = (), u: object = ()) -> list[Scalar]:
            before = floor(t * (1.0 / interval) + 1e-9) * interval
            share = (t - before) * (1.0 / interval)
            ends = zip(force(before), force(before + interval), strict=True)
            return [a + (b - a) * share for a, b in ends]

        return Simulator(self.mechanism, "rk4", control=control).run(
            SECONDS, q0=list(self.start), step=SAMPLED_STEP, every=STEP
        )

    @cached_property
    def growth(self) -> tuple[Array, Array]:
        """Times, and the growth factor of a small initial error on the path."""
        return error_growth(self.simulators["rkf45"], self.path, SECONDS)

    def departure_rows(self, printed: float) -> list[Row]:
        """Tabulate when the forced run leaves its path: by integrators, tolerances and sampled forces.

        Parameters
        ----------
        printed
            Time in the paper, s.
        """
        rows = []
        for name in ("rkf45", "abm4"):
            run = self.forced(name)
            visible_time, obvious_time = (
                departure_time(run, self.path, deviation) for deviation in (VISIBLE_DEVIATION, OBVIOUS_DEVIATION)
            )
            agrees, off_by = abs(visible_time - printed) <= DEPARTURE_TOLERANCE, f"forced, {name}: off by"
            rows.append(
                Row(f"{off_by} {VISIBLE_DEVIATION} at", f"about {printed:g} s", f"{visible_time:.1f}", "s", agrees)
            )
            rows.append(Row(f"{off_by} {OBVIOUS_DEVIATION} at", "", f"{obvious_time:.1f}", "s"))
        for tolerance in (1e-4, 1e-5, 1e-8, 1e-10):
            visible_time = departure_time(self.forced("rkf45", tolerance), self.path, VISIBLE_DEVIATION)
            when = f"{visible_time:.1f} s" if np.isfinite(visible_time) else "never"
            rows.append(Row(f"forced, rkf45, tolerance {tolerance:g}: off by {VISIBLE_DEVIATION} at", "", when))
        for interval in SAMPLING_INTERVALS:
            time = departure_time(self.sampled(interval), self.path, VISIBLE_DEVIATION)
            what = f"forces sampled every {interval:g} s: off by {VISIBLE_DEVIATION} at"
            agrees = abs(time - printed) <= DEPARTURE_TOLERANCE
            rows.append(Row(what, f"about {printed:g} s", f"{time:.2f}", "s", agrees))
        return rows


# -- figures


def figures(arm: ArmExperiment, free: Record, held: Record | None = None) -> dict[str, str]:
    """Draw all figures of one arm; return SVG text by name.

    Parameters
    ----------
    arm
        Arm with its forced runs.
    free
        Free fall.
    held
        Free fall with the slide fixed, for comparison.
    """
    name = arm.mechanism.name
    return {
        "free-fall": figure(f"{name}, free fall from rest (Saha's fig. 4)", _fall_panels(arm, free, held), 3),
        "torque": figure(f"{name}, forces from inverse dynamics along eq 18 (Saha's fig. 5)", _force_panels(arm), 3),
        "forced": figure(f"{name}, driven by these forces, tolerance 1e-6 (Saha's fig. 6)", _motion_panels(arm), 3),
        "tip": figure(f"{name}, end effector in the forced run (Saha's fig. 7)", _tip_panels(arm), 3),
        "growth": figure(f"{name}, why it leaves its path", _growth_panels(arm), 2),
    }


def _units(arm: ArmExperiment) -> dict[str, str]:
    joints = arm.mechanism.joints
    return {j.name: "m" if j.kind == "prismatic" else "rad" for j in joints}


def _fall_panels(arm: ArmExperiment, free: Record, held: Record | None) -> list[Panel]:
    panels = []
    for name, unit in _units(arm).items():
        lines = [Line("free fall", free.t, free[f"{name}.q"])]
        if held is not None and f"{name}.q" in held:
            lines.append(Line("slide held", held.t, held[f"{name}.q"], dotted=True))
        panels.append(Panel(f"{name} [{unit}]", lines))
    return panels


def _force_panels(arm: ArmExperiment) -> list[Panel]:
    run = arm.forced("rkf45")
    return [
        Panel(f"{name} [{'N' if unit == 'm' else 'N m'}]", [Line("force or torque", run.t, run[f"{name}.tau"])])
        for name, unit in _units(arm).items()
    ]


def _motion_panels(arm: ArmExperiment) -> list[Panel]:
    rkf, abm = arm.forced("rkf45"), arm.forced("abm4")
    wanted = desired_motion(arm.path, rkf.t)[0]
    panels = []
    for i, (name, unit) in enumerate(_units(arm).items()):
        lines = [
            Line("desired", rkf.t, wanted[:, i], wide=True),
            Line("rkf45", rkf.t, rkf[f"{name}.q"]),
            Line("abm4", abm.t, abm[f"{name}.q"], dotted=True),
        ]
        panels.append(Panel(f"{name} [{unit}]", lines, *_panel_range(wanted[:, i])))
    return panels


def _tip_panels(arm: ArmExperiment) -> list[Panel]:
    run, m = arm.forced("rkf45"), arm.mechanism
    last = m.bodies[-1].name
    wanted = m.pose(desired_motion(arm.path, run.t)[0], last)[:, :3, 3]
    panels = []
    for k, axis in enumerate("xyz"):
        lines = [Line("desired", run.t, wanted[:, k], wide=True), Line("rkf45", run.t, run[f"{last}.{axis}"])]
        panels.append(Panel(f"{axis.upper()}1 [m]", lines, *_panel_range(wanted[:, k])))
    return panels


def _panel_range(y: Array) -> tuple[float, float]:
    """Return upper and lower limit of a panel around the path."""
    margin = PANEL_MARGIN * float(np.ptp(y))
    return float(y.max()) + margin, float(y.min()) - margin


def _growth_panels(arm: ArmExperiment) -> list[Panel]:
    errors = []
    for name in ("rkf45", "abm4"):
        run = arm.forced(name)
        off = np.abs(desired_motion(arm.path, run.t)[0] - run.q).max(axis=1)
        errors.append(Line(name, run.t, np.log10(np.where(off > 1e-14, off, np.nan))))
    return [Panel("log10 of the largest error [rad or m]", errors), growth_panel(*arm.growth)]


def run_stanford() -> Result:
    """Run free fall and the forced motion, scan the printed numbers, and compare with the paper."""
    arm = ArmExperiment(stanford(), STANFORD_START, STANFORD_END)
    free = arm.free_fall()
    held = arm.free_fall(_with_locked_slide(arm.mechanism), (*STANFORD_START[:2], *STANFORD_START[3:]))
    theta_2, b_3 = free["joint2.q"], free["joint3.q"]
    sample_index = {t: round(t / 0.01) for t in (0.5, 1.0, 10.0)}
    zero, zero_held = (_crossing_time(r.t, r["joint2.q"]) for r in (free, held))
    changed_number, soonest, runner_up = _scan_numbers(arm.mechanism)
    rows = (
        Row("free fall: theta_2 passes zero at", "a little after 0.5 s", zero, "s", 0.5 < zero < 0.7),
        Row("free fall: theta_2 at 1 s", "", float(theta_2[sample_index[1.0]]), "rad"),
        Row("free fall with the slide held: theta_2 passes zero at", "", zero_held, "s"),
        Row(f"free fall with {changed_number}: theta_2 passes zero at", "", soonest, "s"),
        Row("free fall with any other single number changed: at", "", f"{runner_up:.2g} s or later"),
        Row("free fall: b_3 at 0.5 s", "starts picking up", float(b_3[sample_index[0.5]]), "m", None),
        Row("free fall: b_3 at 10 s", "", float(b_3[sample_index[10.0]]), "m"),
        bound_row(
            "free fall: energy error, relative to the largest kinetic energy", float(free.residuals()["energy"]), 1e-10
        ),
        *arm.departure_rows(2.5),
        Row("growth factor of a small error in 2.5 s", "", float(arm.growth[1][250])),
        Row("rate of its growth at the start", "", float(np.log(arm.growth[1][200] / arm.growth[1][100])), "1/s"),
    )
    records = {"free-fall": free, "slide-held": held, "rkf45": arm.forced("rkf45"), "abm4": arm.forced("abm4")}
    return Result(rows, records, figures(arm, free, held))


def _with_locked_slide(m: Mechanism) -> Mechanism:
    """Return the arm with joint 3 fixed."""
    joints, _ = lock_joints(m.joints, ["joint3"])
    frames = [f for f in m.frames.values() if f.name not in ("ground", *(b.name for b in m.bodies))]
    return mechanism_of("stanford_held", m.bodies, joints, frames, gravity=m.gravity)


def _crossing_time(t: Array, y: Array) -> float:
    """Return the time at which `y` crosses zero; infinity if it never does."""
    past = y < 0.0
    if not past.any():
        return np.inf
    k = int(past.argmax())
    return float(t[k - 1] + (t[k] - t[k - 1]) * y[k - 1] / (y[k - 1] - y[k]))


def _is_possible(m: Mechanism, name: str, value: float) -> bool:
    """Return whether a physical body can have this value; one moment of inertia cannot be chosen independently."""
    try:
        m.at({name: value})
    except BellcrankError:
        return False
    return True


def _scan_numbers(m: Mechanism) -> tuple[str, float, float]:
    """Find the single number whose change makes theta_2 cross zero soonest.

    Masses and moments are halved and doubled, coordinates are moved by 0.1 and 0.3 m. Return a description of the
    change, the time of the crossing, and the soonest crossing with any other number.
    """
    masses = [f"{b.name}.mass" for b in m.bodies]
    moments = [f"{b.name}.inertia.{k}" for b in m.bodies for k in ("xx", "yy", "zz")]
    coordinates = [f"{b.name}.com.{k}" for b in m.bodies for k in "xyz"]
    coordinates += [f"{j.name}.point.{k}" for j in m.joints[1:] for k in "xyz"]
    free = m.free(*masses, *moments, *coordinates)
    nominal = dict(free.parameters)
    variants = [(n, f * nominal[n]) for n in (*masses, *moments) for f in (0.5, 2.0)]
    variants += [(n, nominal[n] + d) for n in coordinates for d in (-0.3, -0.1, 0.1, 0.3)]
    variants = [(n, x) for n, x in variants if _is_possible(free, n, x)]
    values = {n: np.full(len(variants), x) for n, x in nominal.items()}
    for k, (n, x) in enumerate(variants):
        values[n][k] = x
    r = Simulator(free).run(SECONDS, q0=list(STANFORD_START), step=0.005, parameters=values)
    t = r.t if r.t.ndim == 1 else r.t[0]
    times = [(_crossing_time(t, r["joint2.q"][k]), n, x) for k, (n, x) in enumerate(variants)]
    best, name, value = min(times)
    other = min(time for time, n, _ in times if n != name)
    return f"{name} = {value:g} instead of {nominal[name]:g}", best, other


def run_puma() -> Result:
    """Run free fall and the forced motion, and compare them with the paper."""
    arm = ArmExperiment(puma_saha(), (0.0,) * 6, (pi,) * 6)
    free = arm.free_fall()
    theta_2 = free["joint2.q"]
    t, sizes = arm.growth
    rows = (
        Row("free fall: theta_2 at 0.5 s", "positive", float(theta_2[50]), "rad", bool((theta_2[1:51] > 0.0).all())),
        Row("free fall: energy error, relative to the largest kinetic energy", "", float(free.residuals()["energy"])),
        *arm.departure_rows(6.0),
        *(Row(f"growth factor of a small error in {s} s", "", float(np.interp(s, t, sizes))) for s in (3, 6, 10)),
    )
    records = {"free-fall": free, "rkf45": arm.forced("rkf45"), "abm4": arm.forced("abm4")}
    return Result(rows, records, figures(arm, free))


def _difference_of_accelerations(arm: Mechanism) -> float:
    q, v, tau = arm.random(seed=18, batch=1000)
    ours = arm.forward_dynamics(q, v, tau)
    theirs = np.array([explicit_3r.acceleration(*state) for state in zip(q, v, tau, strict=True)])
    return float((np.abs(ours - theirs) / (1.0 + np.abs(theirs))).max())


def run_planar_arm() -> Result:
    """Compare free fall and the forced run with the explicit equations."""
    arm, path = planar3r(), wong(3, SECONDS)
    forced_by = simulator(arm, path)
    free = Simulator(arm).run(SECONDS, step=PLANAR_STEP, every=PLANAR_STEP * PLANAR_EVERY)
    forced = forced_by.run(SECONDS, step=PLANAR_STEP, every=PLANAR_STEP * PLANAR_EVERY)
    torques = {"free": lambda t: np.zeros(3), "forced": lambda t: explicit_3r.torque(*np.array(path(t), float))}
    explicit = {name: explicit_3r.integrate(f, SECONDS, PLANAR_STEP, PLANAR_EVERY) for name, f in torques.items()}
    differences = {name: np.abs(r.q - explicit[name]).max(axis=1) for name, r in (("free", free), ("forced", forced))}
    largest_difference = float(differences["free"].max())
    agreement_time = float(forced.t[(differences["forced"] > 0.01).argmax()])
    sizes = error_growth(forced_by, path, SECONDS)[1]
    a = _difference_of_accelerations(arm)
    rows = (
        bound_row("accelerations of 1000 random states, relative difference", a, 1e-12, "", MATCH),
        bound_row("free fall, largest difference from the explicit equations", largest_difference, 1e-8, "rad", MATCH),
        Row(
            "forced, both are within 0.01 rad until",
            MATCH,
            "7 s or later" if agreement_time > 7.0 else f"{agreement_time:g} s",
            "",
            agreement_time > 7.0,
        ),
        Row("growth factor of a small error in the forced run", "", float(sizes.max())),
        Row("free fall: energy error, relative to the largest kinetic energy", "", float(free.residuals()["energy"])),
    )
    panels = []
    for name, r in (("free", free), ("forced", forced)):
        for i in range(3):
            k = round((SECONDS if name == "free" else COMPARABLE_SECONDS) / PLANAR_STEP / PLANAR_EVERY) + 1
            t, q, theirs = r.t[:k], r.q[:k, i], explicit[name][:k, i]
            lines = [Line("explicit equations", t, theirs, wide=True), Line("bellcrank", t, q)]
            panels.append(Panel(f"{name}, theta {i + 1} [rad]", lines))
    motion_figure = figure("Planar arm of three links, from rest (Saha's section 4; he shows no plots)", panels, 3)
    return Result(rows, {"free-fall": free, "forced": forced}, {"motion": motion_figure})
