"""The programs of a schedule compute what its graph computes, in the time of the timetable; bad ones are refused."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank import zoo
from bellcrank.build import graphs
from bellcrank.build.checked_execution import checked_execution, random_inputs
from bellcrank.errors import InputError
from bellcrank.graph import trace
from bellcrank.model import Mechanism
from bellcrank.papers.fijany import ARRAYS, schedule_on_array
from bellcrank.papers.schaefer import combinations, figure_8
from bellcrank.papers.wong import wong_mesh
from bellcrank.scheduling import Machine, Schedule, ScheduleError, fixed_order_schedule, machine, schedule, tasks
from bellcrank.scheduling.processor_programs import ProcessorPrograms
from bellcrank.scheduling.program_steps import Compute, Receive, Send, Step
from bellcrank.scheduling.program_translation import processor_programs
from trees import few, trees

MACHINES = (
    "single", "complete:2", "complete:5", "pipeline:3", "mesh:2,3", "triangle:3", "hypercube:3", "bus:4", "cone:3",
    "warp:4",
)  # fmt: skip
CHEAP = {"start": 0.2, "word": 0.05}  # messages so cheap that small graphs are divided


def machines() -> st.SearchStrategy[Machine]:
    made = st.builds(machine, st.sampled_from(MACHINES), st.sampled_from(["ideal", "t800", "hidden"]))
    costs = st.sampled_from([{}, {"overlapped": False}, CHEAP, {"overlapped": False, **CHEAP}])
    return st.builds(lambda m, c: m if m.topology.lockstep else m.with_costs(**c), made, costs)


def inputs_of(s: Schedule, seed: int = 0, batch: tuple[int, ...] = ()) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    assert s.tasks.graph is not None
    return {name: rng.uniform(-1.0, 1.0, (*batch, *shape)) for name, shape in s.tasks.graph.inputs.items()}


def follows(s: Schedule, **more: Any) -> None:
    """Results are those of the graph, and the observed timetable is the planned one, to the last bit."""
    inputs = inputs_of(s)
    assert s.tasks.graph is not None
    wanted = s.tasks.graph.evaluate(**inputs)
    done = s.execute(**inputs)
    for name, x in wanted.items():
        np.testing.assert_array_equal(done.results[name], x)
    done.observed.check()
    assert done.observed == s
    assert (done.makespan, done.idle) == (s.makespan, s.idle)


@few(6)
@given(trees(max_bodies=3), machines(), st.sampled_from(["cluster", "node", "auto"]), st.sampled_from(["crba", "aba"]))
def test_any_schedule_is_executed_as_planned(m: Mechanism, on: Machine, level: str, method: str) -> None:
    with pytest.MonkeyPatch.context() as patch:  # a schedule need not be the shortest
        patch.setattr("bellcrank.scheduling.list_scheduling.EFFORT_LOOKUPS", 10_000)
        patch.setattr("bellcrank.scheduling.list_scheduling.EFFORT_LOOKUPS_ROUND", 30_000)
        follows(schedule(graphs.graph(m, "forward_dynamics", method), on, level))


@few(4)
@given(trees(max_bodies=3), st.sampled_from(["pipeline:4", "mesh:2,3", "bus:3", "hypercube:2"]), st.integers(0, 99))
def test_messages_that_keep_processors_busy_are_passed_on(m: Mechanism, name: str, seed: int) -> None:
    """Tasks anywhere on the machine: messages cross processors that have other things to do."""
    on = machine(name, "t800").with_costs(overlapped=False, **CHEAP)
    todo = tasks(graphs.graph(m, "forward_dynamics", "aba"))
    where = np.random.default_rng(seed).integers(on.processors, size=len(todo)).tolist()
    s = fixed_order_schedule(todo, on, where)
    s.check()
    assert len(todo) < 3 or s.messages
    follows(s)


@pytest.mark.parametrize("kind", ["ideal", "t800", "hidden", "explicit"])
@pytest.mark.parametrize("name", ["excavator", "chain:3"])
def test_wongs_program_runs_on_his_mesh(name: str, kind: str) -> None:
    m = zoo.load(name)
    s = wong_mesh(m, kind)
    follows(s)
    q, v, tau = m.random(1)
    np.testing.assert_allclose(s.run(q, v, tau, carrier="events"), m.forward_dynamics(q, v, tau), rtol=1e-11)


def test_no_processor_of_the_mesh_uses_a_number_that_it_did_not_receive() -> None:
    """Constants of two bodies used to be multiplied across a message, by a processor that had neither factor."""
    for parents in (4, [0, 1, 1, 2]):
        follows(wong_mesh(parents))


@pytest.mark.parametrize("state", [True, False])
def test_schaefers_transputers_run(state: bool) -> None:
    s = figure_8("computed_torque", state).three
    follows(s)
    programs = processor_programs(s)
    assert len(programs.owned_inputs) == (12 if state else 0)
    m = zoo.stanford()
    q, v, w = m.random(2)
    y = s.run(q, v, w, carrier="events")
    np.testing.assert_allclose(y["M"], m.mass_matrix(q), rtol=0, atol=1e-11 * np.abs(y["M"]).max())
    np.testing.assert_allclose(y["ydd"], m.forward_dynamics(q, v, y["u"]), rtol=0, atol=1e-10 * np.abs(y["ydd"]).max())


def test_all_strategies_and_fijanys_arrays_run() -> None:
    for _, _, s in combinations(zoo.torso()):
        follows(s)
    for array in ARRAYS:
        follows(schedule_on_array(array, 3))


def test_results_are_those_of_a_serial_kernel() -> None:
    """The difference has the scale of all outputs: the Coriolis forces of a pendulum are zero but for rounding."""
    s = bc.schedule(zoo.pendulum(), strategy="modules")
    done, difference = checked_execution(s, random_inputs(s))
    assert done.observed == s
    assert difference < 1e-12


def test_a_batch_is_computed_at_once() -> None:
    s = bc.schedule(zoo.excavator(), machine="mesh:2,2", kind="t800", level="cluster")
    x = inputs_of(s, 3, (2, 5))
    assert s.tasks.graph is not None
    wanted = s.tasks.graph.evaluate(**x)["forward_dynamics"]
    np.testing.assert_array_equal(s.run(*x.values(), carrier="events"), wanted)
    np.testing.assert_array_equal(s.execute(x["q"], tau=x["tau"], v=x["v"]).results["forward_dynamics"], wanted)


# -- other machines


def test_a_plan_with_free_messages_is_late_where_they_cost_time() -> None:
    g = graphs.graph(zoo.excavator(), "forward_dynamics", "aba")
    plan = schedule(g, machine("mesh:2,2", "hidden"), "cluster")
    done = plan.execute(**inputs_of(plan), machine=machine("mesh:2,2", "t800"))
    done.observed.check()
    assert done.observed.tasks == plan.tasks
    assert done.makespan > 1.5 * plan.makespan
    assert done.message_time == pytest.approx(sum(len(m.hops) * (5.0 + m.words * 7.0 / 3.0) for m in plan.messages))
    assert done.waiting_time > 0.0


def test_channels_that_serve_the_first_ready_message_change_the_order() -> None:
    g = graphs.graph(zoo.load("tree:7"), "forward_dynamics", "aba")
    plan = schedule(g, machine("mesh:2,2", "t800"), "cluster")
    done = plan.execute(**inputs_of(plan), links="fifo")
    done.observed.check()
    assert done.makespan > plan.makespan
    assert done.message_time == pytest.approx(plan.execute(**inputs_of(plan)).message_time)
    assert "planned:" in str(done)


# -- planted errors


@pytest.fixture(scope="module")
def good() -> ProcessorPrograms:
    g = graphs.graph(zoo.stanford(), "forward_dynamics", "aba")
    programs = processor_programs(schedule(g, machine("complete:3", "t800"), "cluster"))
    assert len(programs.used) == 3
    return programs


def changed(programs: ProcessorPrograms, p: int, steps: list[Step]) -> ProcessorPrograms:
    return replace(programs, steps=(*programs.steps[:p], tuple(steps), *programs.steps[p + 1 :]))


def place(programs: ProcessorPrograms, kind: type) -> tuple[int, int]:
    return next((p, i) for p, steps in enumerate(programs.steps) for i, x in enumerate(steps) if isinstance(x, kind))


def test_a_late_receive_is_refused(good: ProcessorPrograms) -> None:
    p, i = place(good, Receive)
    steps = list(good.steps[p])
    steps.append(steps.pop(i))
    with pytest.raises(ScheduleError, match=f"processor {p} cannot compute .* it has no value of"):
        changed(good, p, steps)


def test_an_early_send_is_refused(good: ProcessorPrograms) -> None:
    p, i = place(good, Send)
    steps = list(good.steps[p])
    steps.insert(0, steps.pop(i))
    with pytest.raises(ScheduleError, match=f"processor {p} cannot send"):
        changed(good, p, steps)


@pytest.mark.parametrize("kind", [Send, Receive, Compute])
def test_a_missing_or_repeated_step_is_refused(good: ProcessorPrograms, kind: type) -> None:
    p, i = place(good, kind)
    steps = list(good.steps[p])
    with pytest.raises(ScheduleError, match=f"processor {p} never comes to"):
        changed(good, p, [*steps[:i], *steps[i + 1 :]])
    with pytest.raises(ScheduleError, match=f"processor {p} must not"):
        changed(good, p, [*steps, steps[i]])


def test_a_missing_word_is_refused(good: ProcessorPrograms) -> None:
    s = good.schedule
    j = s.messages[0].task
    short = replace(s.tasks[j], values=s.tasks[j].values[1:])
    every = (*s.tasks.tasks[:j], short, *s.tasks.tasks[j + 1 :])
    with pytest.raises(ScheduleError, match="words in the timetable, but its task gives"):
        processor_programs(replace(s, tasks=replace(s.tasks, tasks=every)))
    longer = tuple(replace(m, words=m.words - 1) if m.task == j else m for m in s.messages)
    with pytest.raises(ScheduleError, match="it has no value of"):
        processor_programs(replace(s, tasks=replace(s.tasks, tasks=every), messages=longer))


def crossing() -> Schedule:
    """Return two processors that exchange two values each way."""

    def body(x: Any) -> dict[str, Any]:
        a, b = x[0] * x[1], x[0] + x[1]
        return {"y": [b * x[0], a + x[1]]}

    todo = tasks(trace("crossing", body, {"x": (2,)}), "node")
    where = [0 if n.op == "mul" else 1 for task in todo for n in task.nodes]
    return fixed_order_schedule(todo, machine("complete:2", "t800"), where)


def test_a_deadlock_is_refused() -> None:
    programs = processor_programs(crossing())
    steps = [sorted(row, key=lambda x: not isinstance(x, Receive)) for row in programs.steps]
    with pytest.raises(ScheduleError, match=r"would deadlock: .*processor [01] \(receive .*processor [01] \(receive"):
        replace(programs, steps=tuple(map(tuple, steps)))


def test_two_that_both_send_first_deadlock_if_they_must_meet() -> None:
    """A send waits for its receiver if a message keeps both processors busy."""
    s = crossing()
    posted = processor_programs(s)
    assert all(_first(row, Send) < _first(row, Receive) for row in posted.steps)
    met = processor_programs(fixed_order_schedule(s.tasks, s.machine.with_costs(overlapped=False), s.where))
    p = next(p for p, row in enumerate(met.steps) if _first(row, Receive) < _first(row, Send))
    steps = list(met.steps[p])
    i, j = _first(steps, Receive), _first(steps, Send)
    steps[i], steps[j] = steps[j], steps[i]
    with pytest.raises(ScheduleError, match="would deadlock"):
        changed(met, p, steps)


def _first(steps: Sequence[Step], kind: type) -> int:
    return next(i for i, step in enumerate(steps) if isinstance(step, kind))


def test_two_messages_in_the_wrong_order_have_a_channel_each(good: ProcessorPrograms) -> None:
    for channel in good.channels:
        sent = [x.message for x in good.steps[channel.source] if isinstance(x, Send)]
        received = [x.message for x in good.steps[channel.target] if isinstance(x, Receive)]
        assert list(channel.messages) == [k for k in sent if k in channel.messages]
        assert list(channel.messages) == [k for k in received if k in channel.messages]
    assert sorted(k for c in good.channels for k in c.messages) == list(range(len(good.schedule.messages)))


# -- bad input


def test_bad_input_is_explained() -> None:
    s = bc.schedule(zoo.planar3r(), machine="complete:2", level="cluster")
    q, v, tau = zoo.planar3r().random(0)
    for call, match in (
        (lambda: s.run(q, v, tau, carrier="transputers"), 'carrier "transputers"'),
        (lambda: s.execute(q, v, tau, links="lifo"), 'links "lifo"'),
        (lambda: s.execute(q, v), 'input "tau" is missing'),
        (lambda: s.execute(q, v, tau, tau), "takes 3 arrays; got 4"),
        (lambda: s.execute(q, v, tau, q=q), '"q" is given twice'),
        (lambda: s.execute(q[:2], v, tau), "has shape"),
        (lambda: s.execute(q, v, tau, machine=machine("complete:3")), "Expected the same topology"),
    ):
        with pytest.raises(InputError, match=match):
            call()
    assert pickle.loads(pickle.dumps(s)).makespan == s.makespan


def test_a_schedule_without_operations_is_refused() -> None:
    s = bc.schedule(zoo.load("chain:600"), machine="single", level="place", method="aba")
    with pytest.raises(ScheduleError, match="cannot be executed"):
        s.execute()
    unknown = crossing()
    with pytest.raises(ScheduleError, match="cannot be executed"):
        replace(unknown, tasks=replace(unknown.tasks, graph=None)).execute(x=[1.0, 2.0])
