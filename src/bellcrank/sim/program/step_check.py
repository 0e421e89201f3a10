"""Error check of fixed steps during a run: some steps are repeated as two half steps, and the differences add up.

    change_i             = sum over the steps of |y_i by one step - y_i by two half steps|
    travelled_distance_i = sum over the steps of |y_i after a step - y_i before it|
    step_error           = max over i of change_i / (travelled_distance_i + STILL_SHARE nominal_i)

`step_error` is a relative error: the share of the distance travelled that halving the step would change, step by step.
It is a local measure, so a chaotic motion of any length counts as resolved if its steps are. The Program computes
it on every backend (lanes, threads, a GPU); sim/run/record_builder.py compares it with the tolerance (Solver.resolve).

Regular checks happen at the steps 1, 2, 4, 8 ... and then every CHECK_INTERVAL_STEPS steps; each stands for all steps
since the previous one. Impacts and reversals of friction fall between them, so a step in which the acceleration changes
much more than on average of the last steps (a spike of the second difference of a velocity or further state) is checked
as well, and stands for itself. Each element is compared with its own mean, so that a large motion of one part hides no
impact of another.

If the error of a single step is too large, a reference run decides: from there it takes half steps beside the run for
WINDOW_STEPS steps, and the mean difference over the last LATE_STEPS of them counts. An error that decays before, as in
the fast decay of stiff friction, does not count; one that persists, as after an impact, does. The first bad window
stands for itself, and those that confirm it stand for all steps since the last good one.

The repetition is part of the graph `locate` of the Program, called if the flag `hit` is set: it costs as much as two
steps. The tick itself adds up the second differences and the distance travelled. The distance includes all steps,
because an estimate from few of them misses most of the motion that an impact causes between two checks. A converged run
would then appear to have a large error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from bellcrank.graph import Graph
from bellcrank.graph.layout import list_width
from bellcrank.graph.program import STATE_LIMIT
from bellcrank.integrate import Integrator, State
from bellcrank.integrate.problem import select
from bellcrank.scalar import Scalar, fabs, maximum, minimum, where
from bellcrank.sim.program.system_graphs import Dynamics
from bellcrank.sim.system.observed_columns import nominals

CHECK_INTERVAL_STEPS = 251  # steps between regular checks; a prime, so that no sampling period coincides with it
WINDOW_STEPS, LATE_STEPS = 32.0, 24.0  # steps of a reference run; and the last of them, whose mean counts
LONGEST_WAIT_STEPS = 2048.0  # largest number of steps from a window to the next regular check
CONFIRM_STEPS = 128.0  # steps from the first bad window to the next check
SPIKE_RATIO = 16.0  # multiple of the mean second difference of an element above which a step is checked out of turn
RECENT_SHARE = 1.0 / 32.0  # weight of a step in the mean of the last steps, which follows a motion that begins or grows
# Limit of such checks: a constant, plus a share of the steps. An element exceeds SPIKE_RATIO times its mean in about
# one step in SPIKE_RATIO at most, so stepped inputs do not use up the checks; `missed` counts spikes beyond the limit.
SPIKE_BUDGET, SPIKE_SHARE = 16.0, 1.0 / SPIKE_RATIO
SINGLE_STEP_SHARE = 0.5  # of the tolerance: error of single steps above which a reference run decides
IMPACT_STEPS = 16.0  # expected number of steps with the error of a spike
REGULAR, SPIKED, REFERENCE, EVENTS = 1.0, 2.0, 3.0, 4.0  # values of the flag `hit`; events add theirs
STILL_SHARE = 0.01  # of the nominal size of a state: shorter distances count as that long
# Spike so small, per nominal size and tolerance, that the error of the step cannot matter even if all of it is wrong.
NEGLIGIBLE_SPIKE = SINGLE_STEP_SHARE * STILL_SHARE / IMPACT_STEPS
ROUNDING_UNITS = 16.0  # of the larger state: differences below are rounding errors
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23}

# For the record: size, element, time of the largest growth, and spikes that were not checked.
RESULT_FIELDS = "step_error", "step_error_element", "step_error_time", "missed"
_COUNTERS = "resolve", "check", "checked", "until", "share", "regular", "suspect", "spikes", "largest"
_LISTS = "spike_limit", "y_old", "reference_run", "change", "travelled_distance"
KEPT_FIELDS = *RESULT_FIELDS, *_COUNTERS[1:], *_LISTS  # fields that a stepper keeps between actions
Fields = Mapping[str, Any]


class StepCheck:
    """The parts of a Program that check its fixed steps."""

    def __init__(self, dynamics: Dynamics, integrator: Integrator, dtype: str = "float64") -> None:
        self.dynamics, self.integrator, self.dtype = dynamics, integrator, dtype
        self.size = dynamics.system.size  # of the state without integrals and sensitivities
        sampled = sum(len(c.variables) for c in dynamics.system.sampled)
        self.sampled_elements = range(self.size - sampled, self.size)  # that only samples change, between steps

    @property
    def fields(self) -> dict[str, int | tuple[int]]:
        """Return the sizes of the fields that the check adds to the state of a Program, with the flag `hit`."""
        sizes = len(self._moving_elements), self.dynamics.size, self.dynamics.size, self.size, self.size
        single = dict.fromkeys(("hit", *RESULT_FIELDS, *_COUNTERS), 1)
        return {**single, **dict(zip(_LISTS, map(list_width, sizes), strict=True))}

    @cached_property
    def _moving_elements(self) -> range:
        """Return the elements whose second differences show impacts: velocities and integrated further states."""
        return range(self.dynamics.system.mechanism.nq, self.sampled_elements.start)

    @cached_property
    def _per_nominal(self) -> list[float]:
        return [float(1.0 / x) for x in nominals(self.dynamics.system)]

    # -- in the tick

    def after_tick(self, old: Fields, n: Scalar, y: Sequence[Scalar], go: Scalar) -> dict[str, Any]:
        """Return new values of fields after a step; `hit` is set if the step is to be checked.

        Parameters
        ----------
        old
            Fields before the step.
        n
            Number of the step.
        y
            State after the step.
        go
            Condition: the step was taken.
        """
        differences = self._second_differences(old["y_old"], old["y"], y)
        is_defined = where(go, where(n > 1.5, 1.0, 0.0), 0.0) > 0.0  # not in the first step
        excess: Scalar = 0.0
        for difference, limit in zip(differences, old["spike_limit"], strict=True):
            excess = maximum(excess, difference - limit)
        spike = where(is_defined, where(excess > NEGLIGIBLE_SPIKE * old["resolve"], SPIKED, 0.0), 0.0)
        missed = where(old["spikes"] < SPIKE_BUDGET + n * SPIKE_SHARE, 0.0, spike)
        spike = spike - missed
        regular = where(n > old["check"], REGULAR, 0.0)
        kind = maximum(regular, spike)
        moved = zip(old["travelled_distance"], y[: self.size], old["y"][: self.size], strict=True)
        return {
            "hit": where(go, where(n < old["until"], REFERENCE, kind), 0.0),
            "spike_limit": self._spike_limits(old["spike_limit"], differences, is_defined),
            "missed": where(go, old["missed"] + missed * (1.0 / SPIKED), old["missed"]),
            "travelled_distance": [
                where(go, travelled_distance + fabs(after - before), travelled_distance)
                for travelled_distance, after, before in moved
            ],
            "y_old": old["y"],
        }

    def after_event(self, fields: Fields, y: State) -> dict[str, Any]:
        """Return new values of fields if an event ends the last step.

        The differences of an open window so far stand for all of it, and the second difference restarts.

        Parameters
        ----------
        fields
            Fields after the step.
        y
            State that the event ends with.
        """
        reference_run, before = fields["reference_run"][: self.size], fields["y_old"][: self.size]
        change = [self._change(a, a, b) for a, b in zip(before, reference_run, strict=True)]
        left = minimum(maximum(fields["until"] - fields["n"].value, 0.0) / LATE_STEPS, 1.0)
        added = _weighted_sum(fields["change"], change, fields["share"] * left)
        step_error, element = self._step_error(added, fields["travelled_distance"])
        return {"change": added, "step_error": step_error, "step_error_element": element, "y_old": y, "until": 0.0}

    def _second_differences(self, before: State, now: State, after: Sequence[Scalar]) -> State:
        """Return second differences of velocities and further states, relative to their nominal magnitudes."""
        return [self._per_nominal[i] * fabs((after[i] - now[i]) - (now[i] - before[i])) for i in self._moving_elements]

    def _spike_limits(self, limits: State, differences: State, is_defined: Scalar) -> State:
        """Return the second differences above which the next step is a spike: SPIKE_RATIO times the running means."""
        kept = where(is_defined, 1.0 - RECENT_SHARE, 1.0)
        added = where(is_defined, RECENT_SHARE * SPIKE_RATIO, 0.0)
        return [kept * limit + added * difference for limit, difference in zip(limits, differences, strict=True)]

    # -- after the tick, if `hit` is set

    def after_repetition(self, fields: Fields, h: Scalar, u: Any) -> dict[str, Any]:
        """Return new values of fields after repeating the last step as two half steps.

        Parameters
        ----------
        fields
            Fields after the step.
        h
            Length of the step.
        u
            Inputs.
        """
        sign = fields["hit"] - where(fields["hit"] < EVENTS, 0.0, EVENTS)
        n, after, before = fields["n"].value, fields["y"][: self.size], fields["y_old"][: self.size]
        is_reference = where(sign > 0.5 * (SPIKED + REFERENCE), 1.0, 0.0) > 0.0
        is_spike = where(sign > 0.5 * (REGULAR + SPIKED), where(is_reference, 0.0, 1.0), 0.0) > 0.0
        start = select(is_reference, self._reference_start(fields), fields["y_old"])
        reference_run = self._two_half_steps(fields, start, h, u)
        change = [self._change(a, b, c) for a, b, c in zip(after, before, reference_run[: self.size], strict=True)]
        gap = n - fields["checked"]  # steps that a regular check stands for
        expected = where(is_spike, IMPACT_STEPS, gap)
        impact = where(is_spike, IMPACT_STEPS, 0.0)
        expected_distance = [
            x + impact * fabs(a - b) for x, a, b in zip(fields["travelled_distance"], after, before, strict=True)
        ]
        step_error, _ = self._step_error(_weighted_sum(fields["change"], change, expected), expected_distance)
        doubtful = where(step_error > SINGLE_STEP_SHARE * fields["resolve"], 1.0, 0.0)
        opens_window = where(is_reference, 0.0, doubtful) > 0.0
        is_open = where(is_reference, where(n < fields["until"] - 1.0, 1.0, 0.0), where(opens_window, 1.0, 0.0)) > 0.0
        share = where(fields["suspect"] > 0.0, (gap + (WINDOW_STEPS - 1.0)) * (1.0 / WINDOW_STEPS), 1.0)
        share = where(is_reference, fields["share"], where(is_spike, 1.0, where(opens_window, share, gap)))
        # Steps of the window.
        remaining_steps = where(is_open, where(opens_window, WINDOW_STEPS, fields["until"] - n) - 1.0, 0.0)
        late_weight = where(remaining_steps < LATE_STEPS, 1.0 / LATE_STEPS, 0.0)
        weight = where(is_reference, late_weight, where(opens_window, 0.0, 1.0))
        changes = _weighted_sum(fields["change"], change, share * weight)
        guess = _weighted_sum(changes, change, share * minimum(remaining_steps / LATE_STEPS, 1.0))  # of an open window
        step_error, element = self._step_error(guess, fields["travelled_distance"])
        largest: Scalar = 0.0
        for x, per_nominal in zip(change, self._per_nominal, strict=True):
            largest = maximum(largest, per_nominal * x)
        # A bad window may have met a rare event by chance: it stands for itself, unless the next is bad as well.
        regular = where(is_reference, fields["regular"], where(is_spike, 0.0, 1.0))
        closed = where(is_open, 0.0, regular) > 0.0
        window_changes = _weighted_sum(changes, change, gap * (1.0 / WINDOW_STEPS))
        window_error, _ = self._step_error(window_changes, fields["travelled_distance"])
        bad = where(is_reference, where(window_error > fields["resolve"], 1.0, 0.0), 0.0)
        needs_confirmation = where(closed, bad * (1.0 - fields["suspect"]), 0.0) > 0.0
        usual_wait = where(is_reference, LONGEST_WAIT_STEPS, float(CHECK_INTERVAL_STEPS))
        wait = minimum(n, where(needs_confirmation, CONFIRM_STEPS, usual_wait))
        new: dict[str, Any] = {
            "change": changes,
            "reference_run": reference_run,
            "step_error": step_error,
            "step_error_element": element,
            "step_error_time": where(largest > fields["largest"], fields["t"], fields["step_error_time"]),
            "largest": maximum(largest, fields["largest"]),
            "until": where(opens_window, n + WINDOW_STEPS, where(is_open, fields["until"], 0.0)),
            "share": share,
            "regular": regular,
            "suspect": where(closed, bad, fields["suspect"]),
            "checked": where(closed, where(needs_confirmation, fields["checked"], n), fields["checked"]),
            "check": where(closed, n + wait - 0.5, fields["check"]),
            "spikes": where(is_spike, fields["spikes"] + 1.0, fields["spikes"]),
        }
        return {key: select(sign > 0.0, x, fields[key]) for key, x in new.items()} | {"hit": 0.0}

    def _reference_start(self, fields: Fields) -> State:
        """Return the state of the reference run at the start of the step, with the sampled elements of the run."""
        reference_run = list(fields["reference_run"])
        for i in self.sampled_elements:
            reference_run[i] = fields["y_old"][i]
        return reference_run

    @cached_property
    def half_step(self) -> Graph:
        """Return the graph (t, y, h, memory, measurements, u, p) -> y and memory after a step of length h.

        `measurements` holds the fields that `step_end_state` measures.
        """
        measured, memory = self.dynamics.measured_fields, self.integrator.memory(self.dynamics.problem())
        shapes: dict[str, tuple[int, ...]] = {"t": (), "y": (self.dynamics.size,), "h": ()}
        shapes |= {"memory": (memory,)} if memory else {}
        shapes |= {"measurements": (len(measured),)} if measured else {}
        shapes |= self.dynamics.input_shapes

        def stepped(t: Scalar, y: Any, h: Scalar, memory: Any = (), measurements: Any = (), u: Any = ()) -> Any:
            step = self.integrator.step(self.dynamics.problem(u, h), t, list(y), h, list(memory))
            before = {"y": list(y), **dict(zip(measured, measurements, strict=True))}
            after, _, _ = self.dynamics.step_end_state(step, before)
            return {"y": after, **({"memory": step.memory} if len(memory) else {})}

        return self.dynamics.trace(f"{self.integrator.name}.half", stepped, shapes)

    def _two_half_steps(self, fields: Fields, y: State, h: Scalar, u: Any) -> State:
        """Return the state after the last step, computed as two half steps from y, without memory of earlier steps."""
        half, begin, memory = 0.5 * h, fields["t"] - h, dict[str, Any]()
        if "memory" in self.half_step.inputs:
            memory["memory"] = list(self.integrator.begin(self.dynamics.problem(u, half), begin, y, half))
        measurements = [fields[name] for name in self.dynamics.measured_fields]
        for t in (begin, begin + half):
            result = self.dynamics.call(self.half_step, t, y, u, h=half, measurements=measurements, **memory)
            y = list(result["y"])
            memory = {key: list(result[key]) for key in memory}
        return y

    def _change(self, after: Scalar, before: Scalar, halved: Scalar) -> Scalar:
        """Return the difference between one step and two half steps beyond rounding; STATE_LIMIT if it is NaN."""
        rounding = ROUNDING_UNITS * EPSILON[self.dtype] * maximum(fabs(after), fabs(before))
        difference = fabs(after - halved) - rounding
        return where(difference < STATE_LIMIT, maximum(difference, 0.0), STATE_LIMIT)

    def _step_error(self, change: State, travelled_distance: State) -> tuple[Scalar, Scalar]:
        """Return the largest relative change and the index of its element."""
        step_error: Scalar = 0.0
        element: Scalar = 0.0
        for i, (x, distance, per_nominal) in enumerate(zip(change, travelled_distance, self._per_nominal, strict=True)):
            relative = x / (distance + STILL_SHARE / per_nominal)
            larger = relative > step_error
            step_error, element = where(larger, relative, step_error), where(larger, float(i), element)
        return step_error, element


def _weighted_sum(total: State, change: State, times: Scalar) -> State:
    """Return total + times * change, element by element."""
    return [x + times * y for x, y in zip(total, change, strict=True)]
