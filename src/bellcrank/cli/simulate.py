"""Commands simulate, study and report: a run of a mechanism, many runs that a file describes, and saved runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import pi
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

import bellcrank as bc
from bellcrank.cli import app, load_mechanism, options, screen
from bellcrank.cli.options import assignments_of, closed, option
from bellcrank.cli.screen import TableColumn, check_ours, numbers, page_path, texts
from bellcrank.errors import InputError, check_known
from bellcrank.files import check_writable
from bellcrank.model import Mechanism
from bellcrank.model.joints import KINDS
from bellcrank.quoting import shell
from bellcrank.record import Record
from bellcrank.record.contents import COMPONENTS

if TYPE_CHECKING:
    from bellcrank.sim.system.systems import System

FileArg = Annotated[Path, typer.Argument(metavar="FILE", help="A saved record.", show_default=False)]
OutOpt = Annotated[Path | None, option("PAGE", "Page to write; by default FILE.html.", "--out", "-o")]
KP, KV = 100.0, 20.0  # 1/s^2, 1/s: errors decay in about half a second
TURN_RAD, SLIDE_M = pi, 0.1  # rad, m: how far inverse dynamics moves a joint (Wong's eq 3.43; Saha's b_3)


@app.command()
def simulate(
    name: options.MechanismArg,
    scenario: Annotated[str, option("NAME", "Start, control and duration.", "--scenario", "-s")] = "free-fall",
    seconds: Annotated[float | None, option("S", "Duration; by default the scenario's.")] = None,
    step: Annotated[float | None, option("H", "Fixed step size, seconds.")] = None,
    integrator: Annotated[str, option("NAME", "Integrator of the steps.", "--integrator", "-i")] = "rk4",
    tolerance: Annotated[float | None, option("T", "Tolerance of adaptive steps.")] = None,
    every: Annotated[str | None, option("S", 'Seconds between rows, or "step".')] = None,
    summary: Annotated[
        list[str] | None,
        option("KIND(COLUMN)", 'Summary of the whole run, without rows: "max(*.v)".'),
    ] = None,
    max_steps: Annotated[int | None, option("N", "With adaptive steps: stop after N steps.")] = None,
    begin: Annotated[list[str] | None, option("JOINT=Q", "Start position, rad or m.", "--start")] = None,
    inputs: Annotated[Path | None, option("FILE", "Inputs over time: columns t and names, .csv or .parquet.")] = None,
    input_step: Annotated[float | None, option("S", "Seconds that each value of --inputs holds.")] = None,
    linear: Annotated[bool, typer.Option("--linear", help="Interpolate --inputs; otherwise values hold.")] = False,
    method: options.MethodOpt = "auto",
    form: Annotated[str, option("FORM", "Form of closed loops: minimal, projected, lagrange.")] = "auto",
    base: options.BaseOpt = "fixed",
    check: options.CheckOpt = "warn",
    out: Annotated[Path | None, option("FILE", "Save: .parquet .csv .npz .mcap", "--out", "-o")] = None,
    plot: Annotated[Path | None, option("FILE", "Draw: .png .svg .pdf")] = None,
    columns: Annotated[str, option("A,B", "Columns to draw.")] = "",
    report: Annotated[Path | None, option("PAGE", "Write a page that replays the run.")] = None,
    rates: Annotated[bool, typer.Option("--rates", help="Also record accelerations and rates of all states.")] = False,
    json: options.JsonOpt = False,
) -> None:
    """Run a mechanism and record it.

    --summary may be given more than once; kinds are min, max, t_min, t_max (when), integral, mean, rms and final.

    --inputs: in free-fall, forces and torques on the joints, by the names of the joints; in joint-mode and
    resolved-mode, the sticks. Inputs that the file does not have are zero.

    Scenarios: free-fall; inverse-dynamics and computed-torque along a smooth path; joint-mode and resolved-mode for the
    excavator. `bellcrank papers` repeats the experiments of the papers.
    """
    from bellcrank.integrate import integrator as integrator_of
    from bellcrank.sim.run.record_builder import Interrupted
    from bellcrank.sim.run.simulator import Simulator
    from bellcrank.sim.settings import Solver

    chosen_scenario, scheme = scenario_of(scenario), integrator_of(integrator)
    for path, what in ((out, "--out"), (plot, "--plot"), (report, "--report")):
        _check_output(path, what)
    m = load_mechanism(name, base, check)
    setup = chosen_scenario(m)
    setup, fed = _with_inputs(setup, scenario, inputs, input_step or (step if linear else None), linear)
    if step is None and tolerance is None and not scheme.adaptive:
        step = setup.step
    q0 = _start_positions(m, setup.q0, begin or [])
    simulator = Simulator(setup.system, integrator, method, form=form, summary=summary or (), solver=Solver(step=step))
    try:
        with warnings.catch_warnings():  # reported at the end, as an error
            warnings.filterwarnings("ignore", ".*is not resolved")
            run = simulator.run(
                seconds if seconds is not None else setup.seconds, q0, step=step, tolerance=tolerance,
                every=_row_interval(every), max_steps=max_steps, **fed,
            )  # fmt: skip
    except Interrupted as stopped:
        screen.note("interrupted; the results until then follow")
        run, interrupted = stopped.record, True
    else:
        interrupted = False
    run = _with_rates(_with_forces(run, setup.system), rates)
    written = _write_outputs(run, out, plot, [c.strip() for c in columns.split(",") if c.strip()], report)
    if json:
        screen.data(_json_data(run, scenario, written))
    else:
        _print_record(run, scenario)
        screen.wrote(written)
    if interrupted:
        raise typer.Exit(130)
    stop = run.stops[0]
    if stop.reason != "end":
        what = "the run is not resolved" if stop.reason == "not resolved" else f"the run stopped at {stop.time:.6g} s"
        screen.fail(f"{what}: {stop.message or stop.reason}")
        raise typer.Exit(1)


def _with_inputs(
    setup: RunSetup, scenario: str, path: Path | None, input_step: float | None, linear: bool
) -> tuple[RunSetup, dict[str, Any]]:
    """Return the scenario with inputs from a file, if there is one, and the arguments of the run."""
    if path is None:
        if linear or input_step is not None:
            raise InputError("--linear and --input-step describe the file of --inputs; add --inputs FILE.")
        return setup, {}
    if setup.with_inputs is None:
        raise InputError(
            f"--inputs: the scenario {scenario} has no inputs; expected free-fall (forces on the joints), joint-mode "
            "or resolved-mode (sticks)."
        )
    given = bc.history(path, kind="linear" if linear else "hold")
    if linear and input_step is None:
        input_step = setup.step
    return replace(setup, system=setup.with_inputs()), {"inputs": given, "input_step": input_step}


def _row_interval(text: str | None) -> float | str | None:
    if text is None or text == "step":
        return text
    try:
        return float(text)
    except ValueError:
        expected = 'expected seconds between rows, or "step" for one row per step'
        raise InputError(f'--every is "{text}"; {expected}.') from None


def _with_forces(run: Record, plant: System) -> Record:
    """Add the columns of forces and outputs, which cannot be derived from a file: it does not hold the controller."""
    if plant.control is None and not plant.actuators and not plant.wrenches:
        return run
    kinds = ("tau", "external") if plant.wrenches else ("tau",)
    columns = [f"{n}.{kind}" for kind in kinds for n in plant.mechanism.columns[1]]
    columns += [f"{frame}.{c}" for frame in plant.wrenches for c in COMPONENTS]
    return run.including(*columns, *(n for n in run.names if n.endswith(".command")), *plant.outputs)


def _with_rates(run: Record, rates: bool) -> Record:
    """Add the columns of accelerations and of the rates of all states, if they are wanted."""
    if not rates or run.mechanism is None:
        return run
    return run.including(*(f"{n}.a" for n in run.mechanism.columns[1]), *run.rate_names)


def _start_positions(m: Mechanism, q0: Any, assignments: list[str]) -> list[float]:
    """Return the start of the scenario, changed by --start; with loops, the nearest start that closes them."""
    names, moved = m.columns[0], assignments_of(m, "--start", assignments, "radians or metres")
    q = [float(x) for x in q0]
    for name, x in moved.items():
        check_known("coordinate", name, names, "--start")
        q[names.index(name)] = x
    return [float(x) for x in closed(m, q, moved)] if m.loops else q


def _check_output(path: Path | None, what: str) -> None:
    """Check before a long run that a file can be written and has a supported suffix."""
    from bellcrank.record.formats import SUFFIXES

    if path is None:
        return
    check_writable(path, f"Give {what}")
    if what == "--out" and path.suffix.lower() not in SUFFIXES:
        raise InputError(f'--out {path}: a record is saved as {", ".join(SUFFIXES)}; got "{path.suffix}".')


def _write_outputs(
    run: Record, out: Path | None, plot: Path | None, columns: list[str], report: Path | None
) -> list[Path]:
    paths = []
    if out is not None:
        paths.append(run.save(out))
    if plot is not None:
        run.plot(*columns, path=plot)
        paths.append(plot)
    if report is not None:
        with screen.progress("drawing the page"):
            paths.append(run.report(report))
    return paths


def _print_record(run: Record, scenario: str) -> None:
    p = run.provenance
    how = f"step {p['step']:g} s" if "step" in p else f"tolerance {p['tolerance']:g}"
    what = f"{p['mechanism']}, {scenario}: {run.t[-1]:g} s by {p['integrator']}"
    screen.heading(f"{what}, {how}, {p['method']}: {p['steps']} steps")
    if len(run) == 1:  # the end, and the summaries of the whole run
        ends = [(name, f"{run[name][0] + 0.0:.6g}", run.column(name).unit) for name in run.columns]
        screen.table([*texts("column"), *numbers("value"), TableColumn("unit")], ends)
        return
    rows = []
    for name in run.columns:
        x = run[name]
        rows.append((name, *(f"{y + 0.0:.6g}" for y in (x[0], x[-1], x.min(), x.max())), run.column(name).unit))
    screen.table([*texts("column"), *numbers("first", "last", "least", "greatest"), TableColumn("unit")], rows)
    screen.line()
    if not run.v.any():
        first = run.columns[1].removesuffix(".q")
        screen.line(f"nothing moved: the start is an equilibrium. Try --start {shell(first + '=1')}", style="yellow")
    elif scenario == "free-fall":
        screen.line(f"energy error: {run.residuals()['energy']:.1e} of the largest kinetic energy", style="dim")


def _json_data(run: Record, scenario: str, written: list[Path]) -> dict[str, Any]:
    shows_energy = scenario == "free-fall" and len(run) > 1
    return {
        **run.provenance,
        "scenario": scenario,
        "rows": len(run),
        "stop": {"reason": run.stops[0].reason, "time": run.stops[0].time, "message": run.stops[0].message},
        "final": {name: float(x) for name, x in run.final.items()},
        "units": {name: run.column(name).unit for name in run.columns},
        "residuals": {name: float(x) for name, x in run.residuals().items() if name != "energy" or shows_energy},
        "files": [str(path) for path in written],
    }


# -- scenarios: start, control and duration of a run, by name


@dataclass(frozen=True, eq=False)
class RunSetup:
    """System, start and duration of a run."""

    system: System
    q0: Sequence[float]
    seconds: float = 10.0
    step: float = 0.001  # s, default for integrators with fixed steps
    with_inputs: Callable[[], System] | None = None  # the system whose inputs come from a file


def published_run(m: Mechanism) -> Mapping[str, Any]:
    """Return start, end and seconds of the run that the paper of `m` prints; empty for a mechanism of no paper."""
    if m.name in bc.zoo.TABLE and m.nq == m.nv:
        try:
            run_data = bc.zoo.data(m.name)
        except InputError:  # the mechanism is from no paper
            return {}
        if m.fingerprint == bc.zoo.TABLE[m.name]().fingerprint:
            return run_data
    return {}


def start_configuration(m: Mechanism) -> list[float]:
    """Return the start configuration that the paper of `m` prints; else the neutral configuration."""
    return [float(x) for x in published_run(m).get("start", m.neutral())]


def _along_path(m: Mechanism, kp: float, kv: float) -> RunSetup:
    from bellcrank.control import Cycloid, InverseDynamics

    if m.nq != m.nv:
        raise InputError(
            f'scenario inverse-dynamics: "{m.name}" has nq {m.nq} and nv {m.nv}; expected one coordinate for each '
            "joint. free-fall takes any mechanism."
        )
    begin = start_configuration(m)
    displacements = [SLIDE_M if KINDS[j.kind].name == "prismatic" else TURN_RAD for j in m.own_joints]
    run_data = published_run(m)
    end = run_data.get("end", [a + w for a, w in zip(begin, displacements, strict=True)])
    seconds = float(run_data.get("seconds", 10.0))
    path = Cycloid(tuple(begin), tuple(end), seconds)
    return RunSetup(bc.system(m, control=InverseDynamics(m, path, kp, kv)), begin, seconds)


def _excavator(m: Mechanism, mode: str) -> RunSetup:
    from bellcrank.excavators import spool_control
    from bellcrank.papers.wong.experiments import RESOLVED_STEP, excavator_system

    if m.fingerprint != bc.zoo.excavator().fingerprint:
        raise InputError(f'scenario {mode} is for the built-in excavator; got "{m.name}". Write: simulate excavator')
    control = spool_control.joint_mode() if mode == "joint-mode" else spool_control.resolved_mode()

    def with_sticks() -> System:
        return excavator_system(replace(control, profile=None))

    start, seconds = spool_control.poses()[0], spool_control.SECONDS
    return RunSetup(excavator_system(control), start, seconds, RESOLVED_STEP, with_sticks)


def _pushed(m: Mechanism) -> System:
    """Return the mechanism with a force on each joint as an input, zero by default."""
    names = m.columns[1]
    return bc.system(m, control=lambda t, q, v, x, u: [u[name] for name in names], inputs=dict.fromkeys(names, 0.0))


# Each sets up a run of a mechanism; in the order a newcomer should meet them.
SCENARIOS: dict[str, Callable[[Mechanism], RunSetup]] = {
    # no force but gravity, from rest
    "free-fall": lambda m: RunSetup(bc.system(m), start_configuration(m), with_inputs=lambda: _pushed(m)),
    # the forces of a smooth path, open loop (Wong 3.5, Saha's forced runs)
    "inverse-dynamics": lambda m: _along_path(m, 0.0, 0.0),
    # the same path with feedback
    "computed-torque": lambda m: _along_path(m, KP, KV),
    # the excavator's sticks are joint rates (Wong 5.5.2)
    "joint-mode": lambda m: _excavator(m, "joint-mode"),
    # the excavator's sticks move the tip (Wong 5.5.2)
    "resolved-mode": lambda m: _excavator(m, "resolved-mode"),
}


def scenario_of(name: str) -> Callable[[Mechanism], RunSetup]:
    """Return the scenario called `name`."""
    check_known("scenario", name, SCENARIOS)
    return SCENARIOS[name]


@app.command()
def study(
    path: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="Study to run.", show_default=False)],
    cluster: Annotated[str | None, option("ADDRESS", "Address of a dask cluster: tcp://...")] = None,
    workers: Annotated[int | None, option("N", "Processes on this computer.")] = None,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Also write study.html.")] = True,
    run: Annotated[int | None, option("N", "Repeat run N, and write its page.")] = None,
    json: options.JsonOpt = False,
) -> None:
    """Run a study, or continue one that was stopped.

    The file has the mechanism, the varied parameters and the results to keep of each run (docs/studies.md). Results are
    Parquet files in its folder. Repeating the command continues the study; finished runs are not computed again.
    """
    from bellcrank.studies.study_setup import read_study

    plant, settings = read_study(path, load_mechanism)
    settings |= {k: x for k, x in {"cluster": cluster, "workers": workers}.items() if x is not None}
    result = bc.study(plant, **settings)
    written = [result.folder / "runs"]
    if run is not None:
        written.append(result.replay(run).report(result.folder / f"run-{run}.html"))
    if page:
        with screen.progress("drawing the page"):
            written.append(result.report())
    table = result.table()
    quantiles = {}
    for name in result.results:
        x = table.column(name).to_numpy()
        finite = x[np.isfinite(x)]
        quantiles[name] = [float(c) for c in np.quantile(finite, (0.0, 0.05, 0.5, 0.95, 1.0))] if len(finite) else []
    if json:
        files = [str(p) for p in written]
        screen.data({**result.manifest, "failures": result.failures, "quantiles": quantiles, "files": files})
        return
    screen.heading(str(result))
    head = [*texts("result"), *numbers("least", "5 %", "median", "95 %", "most")]
    screen.table(head, [(name, *(f"{c:.6g}" for c in (x or [float("nan")] * 5))) for name, x in quantiles.items()])
    screen.wrote(written)


@app.command()
def report(
    file: FileArg,
    out: OutOpt = None,
    lane: Annotated[int, option("N", "Which run of a batch, counted from 0.", "--run")] = 0,
    page: Annotated[bool, typer.Option(help="Write the page.")] = True,
) -> None:
    """Print a saved record, and write a page that replays it.

    FILE is a file of Record.save: .parquet, .csv, .npz or .mcap. The page is one file without dependencies: the
    mechanism in motion, plots of all columns, the origin of the record and the reason why the run stopped.
    """
    from bellcrank.record import load_record
    from bellcrank.view.record_page import GENERATOR

    run = load_record(file)
    if not 0 <= lane < run.runs:
        raise InputError(f"--run {lane}: {file} has {run.runs} runs, 0 to {run.runs - 1}.")
    screen.line(str(run))
    if not page:
        return
    target = page_path(out, file.with_suffix(".html"))
    check_ours(target, "report", GENERATOR)
    with screen.progress(f"drawing {len(run)} rows"):
        run.report(target, lane=tuple(map(int, np.unravel_index(lane, run.batch))) if run.batch else ())
    screen.line()
    screen.line(f"wrote {target}: open it in a browser", style="dim")
