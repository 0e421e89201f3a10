"""Record construction: columns, units and derived columns from the rows that a run wrote, and reasons for its end.

A message about a failure names the coordinate that diverged, or the reason for very short steps. Warnings are about
runs that ended but may be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.emit.llvm.host import host
from bellcrank.errors import InputError, warn
from bellcrank.graph import Layout
from bellcrank.graph.program import EVENT, FINISHED, NOT_CLOSED, NOT_FINITE, REPARTITION, RUNNING, TOO_MANY, TOO_SMALL
from bellcrank.integrate import Integrator
from bellcrank.record import Column, Record, Stops
from bellcrank.record.contents import rate_column_name, rate_unit, state_columns
from bellcrank.sim.program.events import Event
from bellcrank.sim.program.summary import EMPTY_SUMMARY, Summary
from bellcrank.sim.program.system_graphs import Dynamics, sensitivity_name
from bellcrank.sim.run.batch_execution import RunResults
from bellcrank.sim.run_arguments import whole_multiple
from bellcrank.sim.system.element_forces import partial_contacts, warn_unfelt_overlaps
from bellcrank.sim.system.latch_equations import MAX_GAP, latch_gaps
from bellcrank.sim.system.observed_columns import observable_units
from bellcrank.sim.system.prescribed_motions import lost_motion
from bellcrank.sim.system.systems import System
from bellcrank.version import __version__

Array = np.ndarray[Any, Any]
LONG_SPAN_STEPS = 100_000  # a proposed step has so many digits that it divides spans of so many steps
MIN_STEP_SHARE = 0.02  # a proposed step is not shorter than this part of the present one, since it is a guess
STEP_DIVISORS = sorted(2**a * 5**b for a in range(8) for b in range(4))  # numbers by which a step is divided
STIFF_STEP_RATE = 1.0  # step times fastest rate above which stability, not accuracy, limits an explicit step


def failure_message(o: Outcome, code: int, t: float, y: Array, run: int) -> str:
    """Return why a run failed, naming the coordinate whose rate is the first not finite, or else the largest.

    Parameters
    ----------
    o
        Outcome of the runs.
    code
        Status of the failed run.
    t
        Time of its last good state, s.
    y
        Its last good state.
    run
        Number of the run.
    """
    line = int(o.final_value("input")[run]) if o.system.inputs else 0
    values = {"t": t, "y": y, "u": o.inputs[run, line], "p": o.parameters[run]}
    h = float(o.final_value("h")[run])
    start = dy = np.zeros(y.shape)
    for ahead in (0.0, 0.5 * h, h):  # the state is the last good one, and the failure may lie ahead of it
        values |= {"t": t + ahead, "y": y + ahead * start}
        dy = o.dynamics.f.evaluate(**{key: values[key] for key in o.dynamics.f.inputs})["dy"]
        start = dy if ahead == 0.0 else start
        if not np.isfinite(dy).all():
            if jam := _jam_text(o, values):
                return f"{jam} after {t:.6g} s"
            break
    bad = np.flatnonzero(~np.isfinite(dy))
    k = int(bad[0]) if len(bad) else int(np.argmax(np.abs(dy)))
    elements = o.dynamics.elements
    names = elements + [sensitivity_name(element, w) for w in o.dynamics.wrt for element in elements]
    rate = f"its rate is {dy[k]:.3g}, its value {y[k]:.3g}"
    near = _near_text(o, y, run)
    if code == NOT_FINITE:
        stiff = "at which its equations have a solution" if o.integrator.stiff else "a stiff integrator (rodas4)"
        advice = f"take a smaller step, {stiff}, or look at the control"
        return f'"{names[k]}" diverges after {t:.6g} s ({rate}){near}; {advice}'
    advice = "the tolerance may be too tight, or the motion has a jump there: describe it as an event"
    around = f'the step shrinks to nothing at {t:.6g} s around "{names[k]}" ({rate})'
    return f"{around}{near}; {advice}"


def _jam_text(o: Outcome, values: Mapping[str, Any]) -> str:
    """Return that friction has no sure solution in a state, or an empty text."""
    if not o.system.bearings:
        return ""
    graph = o.dynamics.friction_margin
    margin = float(graph.evaluate(**{key: values[key] for key in graph.inputs})["margin"])
    if margin > 0.0:
        return ""
    names = ", ".join(f'"{e.name}"' for e in o.system.bearings)
    return (
        f"the friction of bearings ({names}) changes the loads that cause it by more than themselves (margin "
        f"{margin:.2g}, expected above 0), so that it has several values or none: a joint jams. Reduce the "
        "coefficient, or increase the span of the bearing; this happens"
    )


def step_limit_message(o: Outcome, t: float, y: Array, run: int) -> str:
    """Return why a run was given up after the largest number of steps.

    Parameters
    ----------
    o
        Outcome of the runs.
    t
        Time that the run reached, s.
    y
        Its state.
    run
        Number of the run.
    """
    tried, h = int(o.final_value("tried")[run]), float(o.final_value("h")[run])
    progress = f"after {tried} steps it is at {t:.6g} s of {o.settings['seconds']:g} s, and the step is {h:.2g} s"
    if o.settings.get("step") is not None:
        return (
            f"{progress}: events that change the state follow each other without end. Stop the run, or switch to rest, "
            "when they become small; or give max_steps=..."
        )
    fastest = _fastest_rate(o, t, y, run)
    near = _near_text(o, y, run)
    if not o.integrator.stiff and h * fastest > STIFF_STEP_RATE:
        return (
            f"{progress}{near}. It is stiff: its fastest time constant is {1 / fastest:.1g} s, and {o.integrator.name} "
            "must take steps as short as that, however smooth the motion is. Take integrator=rodas4, reduce the fast "
            "terms (gains, stiffness, friction, baumgarte), or give max_steps=..."
        )
    return (
        f"{progress}{near}. The tolerance may be too tight, or the motion is discontinuous there: describe jumps as "
        "events, or give max_steps=..."
    )


def _near_text(o: Outcome, y: Array, run: int) -> str:
    near = o.dynamics.closure.near_singular_text(y, o.parameters[run])
    return f"; {near}: close to a singular configuration" if near else ""


def unresolved_message(o: Outcome, element: str, run: int) -> str:
    """Return why a finished run with fixed steps is not resolved, and which step would be short enough.

    Parameters
    ----------
    o
        Outcome of the runs.
    element
        Element of the state with the largest error.
    run
        Number of the run.
    """
    step_error, tolerance, h = (float(o.final_value(name)[run]) for name in ("step_error", "resolve", "h"))
    worst_time = float(o.final_value("step_error_time")[run])
    changed = f"by {100 * step_error:.2g} % of its way" if step_error < 1.0 else "by more than its way"
    # Steps that are implicit in forces which they do not resolve are of first order with any method.
    order = o.integrator.order if o.dynamics.implicit is None else 1
    share = max((0.5 * tolerance / step_error) ** (1 / order), MIN_STEP_SHARE)
    spans = (o.settings.get(name) for name in ("seconds", "every"))  # which steps must divide
    shorter = _shorter_step(h, share, [float(x) for x in spans if isinstance(x, int | float)])
    return (
        f'the step of {h:g} s is too long: step by step, halving it changes "{element}" {changed}, most at '
        f"{worst_time:.6g} s. Take a step of {shorter} s or less, a tolerance (integrator=dopri5, or rodas4 for what "
        f"is stiff), or solver=bc.Solver(resolve=...), which allows {100 * tolerance:.2g} %, for a larger share"
    )


def _shorter_step(h: float, share: float, spans: list[float]) -> str:
    """Return the longest h/k up to the share of h with k = 2^a 5^b, written so that it divides the spans.

    A whole part of h divides all that h divides: the run, the time between rows, and the periods of samples. Such k
    keep decimal fractions short.
    """
    parts = min(p for p in STEP_DIVISORS if p * share >= 1.0 - 1e-9)
    step = h / parts
    spans = [*spans, LONG_SPAN_STEPS * step]  # periods and delays of samples, which are not known here
    for digits in range(1, 17):
        text = f"{step:.{digits}g}"
        if abs(float(text) / step - 1.0) < 1e-9 and all(_divides(float(text), span) for span in spans):
            return text
    return repr(step)


def _divides(step: float, span: float) -> bool:
    try:
        return whole_multiple("span", span, step, "step") > 0
    except InputError:
        return False


def _fastest_rate(o: Outcome, t: float, y: Array, run: int) -> float:
    """Return the largest magnitude of an eigenvalue of df/dy, 1/s, by differences; 0 if df/dy is not finite."""
    line = int(o.final_value("input")[run]) if o.system.inputs else 0
    e = 1e-7 * np.maximum(np.abs(y), 1.0)
    values = {"t": t, "u": o.inputs[run, line], "p": o.parameters[run]}
    other_inputs = {name: values[name] for name in o.dynamics.f.inputs if name != "y"}
    with np.errstate(all="ignore"):
        f = o.dynamics.f.evaluate(y=np.concatenate([[y], y + np.diag(e)]), **other_inputs)["dy"]
        J = (f[1:] - f[:1]).T / e
    return float(np.abs(np.linalg.eigvals(J)).max()) if np.isfinite(J).all() else 0.0


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run; the attribute `record` holds the rows written before it."""

    def __init__(self, record: Record) -> None:
        super().__init__("interrupted; the record so far is in the attribute .record of this exception")
        self.record = record

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.record,)


@dataclass(frozen=True, eq=False)
class Outcome:
    """Results of runs, with all that is needed to interpret them."""

    dynamics: Dynamics
    integrator: Integrator
    layout: Layout
    done: RunResults
    batch: tuple[int, ...]
    inputs: Array  # (runs, lines, nu)
    parameters: Array  # (runs, np)
    events: Sequence[Event]
    settings: Mapping[str, Any]
    summary: Summary = EMPTY_SUMMARY
    tuned_parameters: Array | None = None  # (runs, rows, np), if parameters were changed during the run

    @property
    def system(self) -> System:
        """Return the system that was simulated."""
        return self.dynamics.system

    @cached_property
    def runs(self) -> int:
        """Return the number of runs."""
        return math.prod(self.batch)

    @property
    def row_parameters(self) -> Array:
        """Return the parameters of each row, (batch, rows or 1, np)."""
        constant = self.parameters.reshape((*self.batch, 1, -1))
        return constant if self.tuned_parameters is None else self.tuned_parameters[0]

    def final_value(self, name: str) -> Array:
        """Return the scalar or counter `name` of the final state of each run."""
        value: Array = self.layout.count(self.done.state, name)
        return value


def build_record(o: Outcome) -> Record:
    """Return the Record of an outcome `o`."""
    s, m = o.system, o.system.mechanism
    rows, event_rows, known_same_times = _rows(o)  # (runs, rows, columns), NaN after the end of a run
    shaped = np.moveaxis(np.moveaxis(rows, -1, 0).reshape((rows.shape[-1], *o.batch, rows.shape[1])), 0, -1)
    t, y = shaped[..., 0], shaped[..., 1 : 1 + o.dynamics.size]
    same_times = o.runs > 1 and (known_same_times or bool((rows[:, :, 0] == rows[:1, :, 0]).all()))
    columns = state_columns(m, rows[0, :, 0] if same_times else t, q=y[..., : m.nq], v=y[..., m.nq : m.nq + m.nv])
    for k, z in enumerate(s.states, m.nq + m.nv):
        columns[z.name] = Column(z.name, z.unit, y[..., k])
    for j, w in enumerate(o.dynamics.wrt, 1):
        for i, element in enumerate(o.dynamics.elements):
            name = sensitivity_name(element, w)
            columns[name] = Column(name, "", y[..., j * o.dynamics.plain_size + i])
    if s.inputs:
        valid = shaped[..., 1 + o.dynamics.size]
        values = _input_values(o, rows[:, :, 1 + o.dynamics.size]).reshape((*valid.shape, len(s.inputs)))
        for k, name in enumerate(s.inputs):
            columns[f"input.{name}"] = Column(f"input.{name}", "", values[..., k])
    for k, name in enumerate(s.parameters):
        values_p = np.broadcast_to(o.row_parameters[..., k], y.shape[:-1])
        columns[f"parameter.{name}"] = Column(f"parameter.{name}", s.parameters.unit(name), values_p)
    columns |= _summary_columns(o, t.shape)
    derived = _DerivedColumns(o, t, y, values if s.inputs else None)
    return Record(
        columns,
        mechanism=m,
        provenance=_provenance(o, event_rows),
        stops=_stops(o),
        states=[z.name for z in s.states],
        derived=derived.column,
        derivable=derived.names,
    )


def _summary_columns(o: Outcome, shape: tuple[int, ...]) -> dict[str, Column]:
    """Return the columns of the summary: one value for each run."""
    if not o.summary.items:
        return {}
    measured, place = observable_units(o.system), o.layout.places["y"]
    cells, y = o.done.state[o.layout.places["summary"]], o.done.state[place]
    elements = {name: y[i] for i, name in enumerate(o.dynamics.elements)}
    columns = {}
    for a in o.summary.items:
        values = o.summary.column(a, o.final_value("t"), cells, elements).reshape(shape)
        columns[a.name] = Column(a.name, a.unit(measured.get(a.column, "")), values)
    return columns


def _rows(o: Outcome) -> tuple[Array, list[dict[str, Any]] | None, bool]:
    """Return the rows of all runs in one array, the extracted event rows, and True if all times are known to agree.

    If only the final states were kept, each row is the head of a run's state, and the events are not known (None).

    With fixed steps the k-th row of every run is at the same time. If all runs have as many rows, the times need no
    comparison, which would read the whole record of a thousand runs once more.
    """
    if o.done.rows is None:
        width = 1 + o.dynamics.size + (1 if o.system.inputs else 0)
        return o.done.state[:width].T[:, None], None, False
    has_events = "dense" in o.layout
    if not has_events and (whole := o.done.rows.single_table) is not None:
        return whole, [], True
    run_rows, event_rows, state = [], [], slice(1, 1 + o.dynamics.size)
    for run, pieces in enumerate(o.done.rows.pieces):
        rows = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        if has_events:  # last column: number of the event, 0 for none; negative for a row that needs polishing
            codes = rows[:, -1].astype(int)
            for i in np.flatnonzero(codes < 0):
                rows[i, state] = o.dynamics.closure.polished(rows[i, state], o.parameters[run])
            for row in rows[codes > 0]:
                name = o.events[int(row[-1]) - 1].name
                event_rows.append({"run": run, "event": name, "time": float(row[0]), "y": row[state].tolist()})
            rows = rows[codes <= 0, :-1]
        run_rows.append(rows)
    if o.runs == 1:
        return run_rows[0][None].copy(), event_rows, False
    padded = np.full((o.runs, max(map(len, run_rows)), run_rows[0].shape[1]), np.nan)
    for k, rows in enumerate(run_rows):
        padded[k, : len(rows)] = rows
    return padded, event_rows, False


def _input_values(o: Outcome, valid: Array) -> Array:
    """Return the values of the inputs in each row."""
    line = np.where(np.isfinite(valid), valid, 0).astype(int)
    return np.asarray(np.take_along_axis(o.inputs, line[:, :, None], axis=1))


def _provenance(o: Outcome, event_rows: list[dict[str, Any]] | None) -> dict[str, Any]:
    s = o.system
    counts = {"steps": int(o.final_value("n").sum())}
    if "tried" in o.layout:
        counts["tried"] = int(o.final_value("tried").sum())
    return {
        "mechanism": s.mechanism.name,
        "fingerprint": s.mechanism.fingerprint,
        "method": o.dynamics.method.name,
        "integrator": o.integrator.name,
        **{key: x for key, x in o.settings.items() if x is not None},
        **counts,
        **_step_change(o),
        **o.dynamics.closure.provenance(
            o.final_value("open").max() if "open" in o.layout else 0.0, int(o.done.partition_changes.sum())
        ),
        "actuators": list(s.descriptions),
        **({"control": s.control_name} if s.control is not None else {}),
        **({"forces": {frame: str(f) for frame, f in s.wrenches.items()}} if s.wrenches else {}),
        **({"everywhere": True} if s.everywhere is not None else {}),
        **({"elements": told} if (told := s.element_descriptions) else {}),
        **({"motions": list(s.motions)} if s.motions else {}),
        "version": __version__,
        "machine": f"{host().cpu}, {host().lanes('float64')} lanes",
        **({"events": event_rows} if event_rows is not None else {}),
    }


def unresolved_runs(o: Outcome) -> Array:
    """Return a mask of the unresolved runs of `o`: they ended, but with steps that were too long."""
    if "step_error" not in o.layout:
        return np.zeros(o.runs, bool)
    return np.asarray((o.final_value("status") == FINISHED) & (o.final_value("step_error") > o.final_value("resolve")))


def warn_doubts(o: Outcome, record: Record) -> None:
    """Warn about steps that were too long, motions that were not followed, and bumps between contact points.

    Parameters
    ----------
    o
        Outcome of the runs.
    record
        Its record.
    """
    _warn_unresolved(o, record)
    _warn_lost_motion(o, record)
    _warn_open_latches(o)
    _warn_overlaps(o, record)


def _warn_unresolved(o: Outcome, record: Record) -> None:
    """Warn about steps that were too long; of several unresolved runs the worst is reported."""
    indices = np.flatnonzero(unresolved_runs(o))
    if not len(indices):
        _warn_unchecked(o)
        return
    worst, count = int(indices[np.argmax(o.final_value("step_error")[indices])]), len(indices)
    run_text = f"run {worst}, the worst of {count} that are not resolved, of {o.runs}: " if o.runs > 1 else ""
    warn(f'"{o.system.mechanism.name}" is not resolved: {run_text}{record.stops[worst].message}.')


def _warn_unchecked(o: Outcome) -> None:
    """Warn if the motion of a run changed abruptly in more steps than are checked."""
    if "missed" not in o.layout or not (missed := o.final_value("missed")).any():
        return
    run = int(np.argmax(missed))
    run_text = f" (run {run})" if o.runs > 1 else ""
    warn(
        f'"{o.system.mechanism.name}"{run_text}: the motion changes abruptly in so many steps that '
        f"{missed[run]:.0f} of them were not checked, so the step may be too long there. Compare with a run of half "
        "the step, or use a tolerance (integrator=dopri5, or rodas4 for what is stiff)."
    )


def _warn_lost_motion(o: Outcome, record: Record) -> None:
    """Warn if a run that came to its end did not follow its prescribed motions."""
    s, m = o.system, o.system.mechanism
    if not s.motions:
        return
    q = np.asarray(record.q).reshape(o.runs, -1, m.nq)
    t, h = np.broadcast_to(record.t, (*o.batch, q.shape[1])).reshape(o.runs, -1), float(o.settings.get("step") or 0.0)
    for run in np.flatnonzero(o.final_value("status") == FINISHED)[:CHECKED_RUNS]:
        known = np.flatnonzero(np.isfinite(t[run]))[[0, -1]]
        text = lost_motion(m, s.motions, t[run, known], q[run, known], o.integrator, h)
        if text:
            run_text = f" (run {run})" if o.runs > 1 else ""
            warn(
                f'"{m.name}"{run_text}: {text}. Its drive may have met a singular configuration, or the steps are too '
                "long."
            )
            return


def _warn_open_latches(o: Outcome) -> None:
    """Warn if a latch that is closed at the end of a run has a gap: what it joins cannot move together."""
    s, m = o.system, o.system.mechanism
    if not s.latches:
        return
    names, place = [z.name for z in s.states], o.layout.places["y"]
    for run in np.flatnonzero(o.final_value("status") == FINISHED)[:CHECKED_RUNS]:
        p = dict(zip(s.parameters, o.parameters[run].tolist(), strict=True))
        plain = m.at({name: p[name] for name in m.parameters}) if m.parameters else m
        for name, gap, _ in latch_gaps(plain, s.latches, names, np.asarray(o.done.state[place, run])):
            if not gap <= MAX_GAP:
                run_text = f" (run {run})" if o.runs > 1 else ""
                warn(
                    f'"{m.name}"{run_text}: latch "{name}" is closed, but its frames are {gap:.3g} apart at the end '
                    f"of the run (m, or 1 for directions; expected at most {MAX_GAP:g}). Other constraints or motions "
                    "hold them apart, or the steps are too long."
                )
                return


def _warn_overlaps(o: Outcome, record: Record) -> None:
    """Warn if a terrain reached into a shape between its contact points, in the rows of a run or at its end."""
    m, runs = o.system.mechanism, min(o.runs, CHECKED_RUNS)
    contacts = partial_contacts(o.system.elements) if o.system.elements else []
    if not contacts:
        return
    if record.has_state("q"):
        q = np.asarray(record.q).reshape(o.runs, -1, m.nq)[:runs]
        t = np.broadcast_to(record.t, (*o.batch, q.shape[1])).reshape(o.runs, -1)[:runs]
    else:
        q = np.asarray(o.done.state[o.layout.places["y"]][: m.nq, :runs]).T[:, None]
        t = o.final_value("t")[:runs, None]
    warn_unfelt_overlaps(m, contacts, t, q)


def _step_change(o: Outcome) -> dict[str, Any]:
    """Return the largest relative change by halving the steps, with element, time and run."""
    if "step_error" not in o.layout:
        return {}
    step_error = np.nan_to_num(o.final_value("step_error"), nan=np.inf)
    run = int(np.argmax(step_error))
    change = {"change": float(step_error[run]), "of": _doubtful_element(o, run)}
    change |= {"time": float(o.final_value("step_error_time")[run])} | ({"run": run} if o.runs > 1 else {})
    return {"change by half the step": change}


def _doubtful_element(o: Outcome, run: int) -> str:
    """Return the element of the state that halving the step would change most."""
    return o.dynamics.elements[int(o.final_value("step_error_element")[run])]


CHECKED_RUNS = 16  # runs of a batch whose prescribed motions are checked
UNRESOLVED = 1 + TOO_MANY  # not a status of a Program, which computes the step error; the verdict is made here
STOP_REASONS = {
    RUNNING: "interrupted", FINISHED: "end", NOT_FINITE: "not finite", TOO_SMALL: "step too small", EVENT: "event",
    REPARTITION: "interrupted", NOT_CLOSED: "not closed", TOO_MANY: "too many steps",
    UNRESOLVED: "not resolved",
}  # fmt: skip


def _stops(o: Outcome) -> Stops:
    """Return the stop reason of each run; its message is formatted on access."""
    codes, times = o.final_value("status").astype(int), o.final_value("t")
    codes = np.where(unresolved_runs(o), UNRESOLVED, codes)
    is_drive = "realtime" in o.settings
    words = [("end" if is_drive and word == "interrupted" else word) for word in STOP_REASONS.values()]

    def message(run: int) -> str:
        code, t = int(codes[run]), float(times[run])
        y = o.done.state[o.layout.places["y"], run]
        if code == FINISHED:
            return ""
        if code == UNRESOLVED:
            return unresolved_message(o, _doubtful_element(o, run), run)
        if code == EVENT:
            return f'event "{o.events[int(o.final_value("which")[run]) - 1].name}" at {t:.9g} s'
        if code in (NOT_FINITE, TOO_SMALL):
            return failure_message(o, code, t, np.asarray(y), run)
        if code == TOO_MANY:
            return step_limit_message(o, t, np.asarray(y), run)
        if code == NOT_CLOSED:
            return o.dynamics.closure.open_loop_message(y, o.parameters[run], t)
        return "stopped by the operator" if is_drive else f"interrupted at {t:.6g} s"

    return Stops(words, codes, times, message)


class _DerivedColumns:
    """Columns derived from the state: accelerations, forces, commands, outputs of the user, and rates of all states."""

    def __init__(self, o: Outcome, t: Array, y: Array, u: Array | None) -> None:
        self.dynamics, self.ports, p = o.dynamics, o.dynamics.ports, o.row_parameters
        self.arguments = {"t": t, "y": y, "u": u, "p": p}
        elements = self.dynamics.elements[: self.dynamics.plain_size - len(self.dynamics.integrals)]
        self.elements = {rate_column_name(name): name for name in elements}
        self.names = [*self.ports.columns, *self.elements]

    @cached_property
    def values(self) -> dict[str, Array]:
        graph = self.ports.outputs
        return graph.evaluate(**{key: self.arguments[key] for key in graph.inputs})

    @cached_property
    def rates(self) -> Array:
        graph, y = self.dynamics.state_rates, self.arguments["y"]
        arguments = {**self.arguments, "y": None if y is None else y[..., : self.dynamics.plain_size]}
        return graph.evaluate(**{key: arguments[key] for key in graph.inputs})["rate"]

    def column(self, name: str) -> Column | None:
        if name in self.elements:
            unit = rate_unit(self.ports.units.get(self.elements[name], ""))
            return Column(name, unit, self.rates[..., list(self.elements).index(name)])
        if name not in self.ports.columns:
            return None
        key, i = self.ports.columns[name]
        return Column(name, self.ports.units.get(name, ""), self.values[key][..., i])
