"""Wrong arguments of a simulation give a message: what, where, expected, got, what exists."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.actuators import PD, PID
from bellcrank.sim.run_arguments import whole_multiple
from waiting import wait

HERE = __file__


def pendulum() -> bc.Mechanism:
    b = bc.Builder("pendulum")
    b.body("bob", mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0))
    return b.build()


M = pendulum()
FRAME = "bob"


def zero(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
    return [0.0]


def told(error: type[Exception], words: list[str], function: Callable[[], Any]) -> None:
    with pytest.raises(error) as caught:
        function()
    missing = [word for word in words if word not in str(caught.value)]
    assert not missing, f"{caught.value}\nhas no {missing}"


RUNS: list[tuple[dict[str, Any], list[str]]] = [
    ({"seconds": -1}, ["seconds is -1", "above zero"]),
    ({"seconds": "long"}, ["seconds is 'long'", "above zero"]),
    ({"seconds": math.inf}, ["seconds is inf"]),
    ({"step": 0}, ["step is 0", "above zero, in seconds"]),
    ({"step": 0.3}, ["seconds is 1 s", "3.33333 times the step of 0.3 s", "Take seconds 0.9 or a step of 0.333"]),
    ({"step": 5.0}, ["seconds is 1 s", "0.2 times the step of 5 s"]),
    ({"step": 1e-300}, ["too short"]),
    ({"every": 0.0015}, ["every is 0.0015 s", "1.5 times the step of 0.001 s"]),
    ({"every": "row"}, ['every is "row"', '"step"']),
    ({"every": [0.1]}, ["every is [0.1]"]),
    ({"every": -0.1}, ["every is -0.1", "above zero"]),
    ({"q0": [1.0, 2.0]}, ["q0 has the shape (2,)", "(..., 1): hinge"]),
    ({"q0": {"hing": 1.0}}, ['no element "hing"', 'Did you mean "hinge"', "Known: hinge"]),
    ({"q0": [math.nan]}, ["q0[0] is nan", "finite"]),
    ({"q0": "up"}, ["q0 is 'up'", "real numbers"]),
    ({"q0": np.array([1j])}, ["q0 is", "real numbers"]),
    ({"q0": np.zeros((2, 1)), "v0": np.zeros((3, 1))}, ["do not broadcast", "q0 (2, 1)", "v0 (3, 1)"]),
    ({"q0": np.zeros((0, 1))}, ["nothing to run"]),
    ({"x0": [1.0]}, ["x0 has the shape (1,)", "nothing"]),
    ({"integrator": "rk5"}, ['no integrator "rk5"', "dopri5", "rodas4"]),
    (
        {"integrator": "rk4", "tolerance": 1e-6},
        ['"rk4" does not estimate its error', "rkf45, dopri5, abm2, abm4, adams, rodas4"],
    ),
    ({"integrator": "dopri5", "tolerance": -1}, ["tolerance is -1", "above zero"]),
    ({"method": "newton"}, ['no method "newton"', "crba", "aba"]),
    ({"threads": 0}, ["threads is 0", "whole number from 1"]),
    ({"threads": 1.5}, ["threads is 1.5"]),
    ({"progress": "yes"}, ["progress is 'yes'", "True, or False"]),
    ({"inputs": {"push": 1.0}}, ['no input "push"', "Known: none"]),
    ({"inputs": 3.0}, ["inputs is 3.0", "mapping"]),
    ({"input_step": -1.0}, ["input_step is -1.0"]),
    ({"parameters": {"mass": 1.0}}, ['no parameter "mass"', "Known: none"]),
    ({"parameters": 3}, ["parameters is 3", "mapping"]),
    ({"sensitivities": ["mass"]}, ['no parameter or state "mass"', "hinge.q, hinge.v"]),
    ({"sensitivities": "hinge.q"}, ["sensitivities is 'hinge.q'", "list"]),
    ({"events": bc.Event("a", zero)}, ["events is Event", "list"]),
    ({"events": [zero]}, ["is not an event", "bellcrank.Event(name, function, action)"]),
    ({"events": [bc.Event("a", zero), bc.Event("a", zero)]}, ["more than one event called a"]),
    ({"seconds": 1e5, "step": 1e-6}, ["1 runs with 100000000001 rows", "GB", "every=..."]),
]


@pytest.mark.parametrize(("options", "words"), RUNS, ids=[next(iter(o)) + str(k) for k, (o, _) in enumerate(RUNS)])
def test_arguments_of_a_run(options: dict[str, Any], words: list[str]) -> None:
    told(bc.InputError, words, lambda: bc.simulate(M, **{"seconds": 1.0, **options}))


def test_no_mechanism() -> None:
    told(bc.InputError, ["expected a Mechanism, got 3"], lambda: bc.simulate(3, 1.0))  # type: ignore[arg-type]


def test_invalid_quaternion_raises() -> None:
    m = bc.Builder("ball")
    m.body("ball", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
    m.joint("socket", "spherical", "ground", "ball")
    told(
        bc.InputError,
        ["q0", '"socket"', "length 2", "expected 1", "Divide it by its length"],
        lambda: bc.simulate(m.build(), 1.0, [0.0, 0.0, 0.0, 2.0]),
    )


def test_elements_that_do_not_broadcast() -> None:
    m = bc.zoo.chain(2)
    a, b = m.columns[0]
    told(
        bc.InputError,
        ["q0", f"{a} (2,)", f"{b} (3,)"],
        lambda: bc.simulate(m, 1.0, {a: [0.0, 1.0], b: [0.0, 1.0, 2.0]}),
    )


# -- functions of the user: line numbers are those of this file


def branches(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
    if q[0] > 0.0:
        return [1.0]
    return [0.0]


def of_math(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
    y = math.sin(q[0])
    return [y]


def of_float(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
    return [2.0 * float(q[0])]


def of_numpy(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
    return [np.interp(q[0], [0.0, 1.0], [0.0, 2.0])]


def of_max(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
    return [max(v[0], 0.0)]


def of_remainder(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
    return [q[0] % 1.0]


UNTRACEABLE = [
    (branches, 1, "where(condition, a, b)"),
    (of_math, 1, "functions of bellcrank.scalar"),
    (of_float, 1, "cannot become a float"),
    (of_numpy, 1, "cannot become a float"),
    (of_max, 1, "maximum"),
    (of_remainder, 1, "bellcrank.scalar"),
]


@pytest.mark.parametrize(("function", "line", "words"), UNTRACEABLE, ids=[f.__name__ for f, _, _ in UNTRACEABLE])
def test_untraceable_function_is_shown_with_its_line(function: Any, line: int, words: str) -> None:
    lines, first = inspect.getsourcelines(function)
    expected = [HERE, f"line {first + line}", lines[line].strip(), "runs once, on symbols", words]
    told(bc.TraceError, [f"control ({function.__name__})", *expected], lambda: bc.simulate(M, 1.0, control=function))
    told(bc.TraceError, ['event "e"', *expected], lambda: bc.simulate(M, 1.0, events=[bc.Event("e", function)]))
    told(bc.TraceError, ['output "o"', *expected], lambda: bc.simulate(bc.system(M, outputs={"o": function}), 1.0))


class MyOwnError(Exception):
    """An exception class of a user."""


def raises(t: Any, *given: Any) -> Any:
    raise MyOwnError("the battery is empty")


def divides(t: Any, *given: Any) -> Any:
    return [1.0 / 0.0]


def recurses(t: Any, *given: Any) -> Any:
    return recurses(t, *given)


def asserts(t: Any, *given: Any) -> Any:
    assert len(given) > 9


FAILING = [
    (raises, MyOwnError, ["MyOwnError: the battery is empty"]),
    (divides, ZeroDivisionError, ["ZeroDivisionError"]),
    (recurses, RecursionError, ["RecursionError", "write a loop"]),
    (asserts, AssertionError, ["AssertionError"]),
]


@pytest.mark.parametrize(("function", "kind", "words"), FAILING, ids=[f.__name__ for f, _, _ in FAILING])
def test_error_in_a_function_names_the_trace(function: Any, kind: Any, words: list[str]) -> None:
    lines, first = inspect.getsourcelines(function)
    expected = ["while it was traced", HERE, f"line {first + 1}", lines[1].strip(), "runs once, on symbols", *words]
    tries = {
        f"control ({function.__name__})": lambda: bc.simulate(M, 1.0, control=function),
        'output "o"': lambda: bc.simulate(bc.system(M, outputs={"o": function}), 1.0),
        'event "e"': lambda: bc.simulate(M, 1.0, events=[bc.Event("e", function)]),
        f'force on "{FRAME}"': lambda: bc.simulate(bc.system(M, forces={FRAME: function}), 1.0),
    }
    for what, attempt in tries.items():
        told(bc.TraceError, [what, *expected], attempt)
        with pytest.raises(bc.TraceError) as caught:
            attempt()
        assert isinstance(caught.value.__cause__, kind)


RETURNS: list[tuple[Any, list[str]]] = [
    ([1.0, 2.0], ["returned 2 numbers", "expected 1 number: hinge"]),
    ([], ["returned 0 numbers"]),
    (None, ["returned nothing", "expected 1 number: hinge"]),
    ("torque", ["returned 'torque'", "one real number"]),
    (["torque"], ["returned 'torque'"]),
    ([None], ["returned None"]),
    ([[1.0]], ["returned [1.0]", "one real number"]),
    ([1j], ["returned 1j"]),
    ([True], ["returned True"]),
    (math.nan, ['returned nan for "hinge"', "finite"]),
    (np.array([math.inf]), ["returned inf", "finite"]),
    ({"elbow": 1.0}, ['no element "elbow"', "Known: hinge"]),
    ({"hinge": None}, ['returned None for "hinge"']),
]


@pytest.mark.parametrize(("value", "words"), RETURNS, ids=[repr(v) for v, _ in RETURNS])
def test_invalid_results_of_a_control_raise(value: Any, words: list[str]) -> None:
    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return value

    told(bc.InputError, ["control (control)", *words], lambda: bc.simulate(M, 1.0, control=control))


def test_a_comparison_is_no_number() -> None:
    def low(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return q[0] < 0.5

    words = ["returned a comparison", "difference of its two sides", "where(condition, 1.0, 0.0)"]
    told(bc.InputError, ["control (low)", *words], lambda: bc.simulate(M, 1.0, control=low))
    told(bc.InputError, ['event "low"', *words], lambda: bc.simulate(M, 1.0, events=[bc.Event("low", low)]))


def test_functions_with_other_arguments() -> None:
    words = ["takes (t, q)", "5 arguments: (t, q, v, x, u)"]
    told(bc.InputError, ["control", *words], lambda: bc.simulate(M, 1.0, control=lambda t, q: [0.0]))
    told(bc.InputError, ['event "e"', *words], lambda: bc.simulate(M, 1.0, events=[bc.Event("e", lambda t, q: q[0])]))


def test_names_that_do_not_exist() -> None:
    def by(key: Any) -> Callable[[], Any]:
        return lambda: bc.simulate(M, 1.0, control=lambda t, q, v, x, u: [q[key]])

    told(bc.InputError, [HERE, 'no element "hing"', "Known: hinge"], by("hing"))
    told(bc.InputError, [HERE, "q[4]", "1 elements: hinge"], by(4))
    told(bc.InputError, ["u[0]", "is empty"], lambda: bc.simulate(M, 1.0, control=lambda t, q, v, x, u: [u[0]]))


# -- systems


SYSTEMS: list[tuple[dict[str, Any], list[str]]] = [
    ({"control": 5}, ["control is 5", "control(t, q, v, x, u)"]),
    ({"actuators": [3]}, ["3 is not an actuator"]),
    ({"actuators": PD("hinge", 1.0)}, ["actuators is", "list"]),
    ({"actuators": [PD("elbow", 1.0)]}, ["PD", '"pendulum"', 'no joint "elbow"', "Known: hinge"]),
    ({"actuators": [PID("hinge", 1.0), PID("hinge", 2.0)]}, ["more than one state called hinge.integral"]),
    ({"inputs": "push"}, ["inputs is 'push'", "list of names"]),
    ({"inputs": ["a", "a"]}, ["more than one input called a"]),
    ({"outputs": [zero]}, ["outputs is", "by name"]),
    ({"outputs": {"a": 3}}, ['output "a" is 3', "function of (t, q, v, x, u)"]),
    ({"outputs": {"hinge.q": zero}}, ['output "hinge.q"', "another"]),
    ({"states": {"a": "x"}, "control": zero}, ["state \"a\" is 'x'", "real numbers"]),
    ({"states": {"a": math.inf}, "control": zero}, ['state "a" is inf', "finite"]),
    ({"states": ["a"], "control": zero}, ["'a' is not a state"]),
    ({"states": {"a": 1.0}}, ["states (a)", "no control"]),
]


@pytest.mark.parametrize(
    ("options", "words"), SYSTEMS, ids=[next(iter(o)) + str(k) for k, (o, _) in enumerate(SYSTEMS)]
)
def test_systems_that_do_not_fit(options: dict[str, Any], words: list[str]) -> None:
    told(bc.InputError, words, lambda: bc.system(M, **options))


def test_a_system_is_complete() -> None:
    told(bc.InputError, ["already a system"], lambda: bc.simulate(bc.system(M), 1.0, control=zero))


def test_rates_of_a_control() -> None:
    s = bc.system(M, control=zero, states={"a": 1.0})
    told(bc.InputError, ["control (zero)", "states (a)", "the pair (commands, rates"], lambda: bc.simulate(s, 1.0))
    s = bc.system(M, control=lambda t, q, v, x, u: ([0.0], [1.0, 2.0]), states={"a": 1.0})
    told(bc.InputError, ["rates of control", "returned 2 numbers", "1 number: a"], lambda: bc.simulate(s, 1.0))


def test_an_input_is_given_or_has_a_value_of_its_own() -> None:
    def push(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return [u["a"] + u["b"]]

    needed = bc.system(M, control=push, inputs=["a", "b"])
    for some in ({}, {"a": 1.0}, None):
        words = ["nothing is given for", "b", "the inputs a, b", "bellcrank.system(..., inputs={"]
        told(bc.InputError, words, lambda some=some: bc.simulate(needed, 0.01, inputs=some))
    eased = bc.system(M, control=push, inputs={"a": 2.0, "b": 0.0})
    assert eased.inputs == ("a", "b")
    run = bc.simulate(eased, 0.01, inputs={"b": 1.5})
    assert run["hinge.tau"][0] == 3.5
    assert run["input.a"][0] == 2.0
    assert bc.simulate(eased, 0.01)["hinge.tau"][0] == 2.0
    told(bc.InputError, ['input "a" is nan', "finite"], lambda: bc.system(M, control=push, inputs={"a": math.nan}))
    driven = bc.Drive(eased, rate=100.0)
    assert driven.snapshot().u.tolist() == [2.0, 0.0]
    driven.input({"b": 1.0})
    driven.start()
    wait(lambda: driven.snapshot().n > 0)
    driven.stop()
    assert driven.snapshot().u.tolist() == [2.0, 1.0]


INPUTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"inputs": {"c": 1.0}}, ['no input "c"', "Known: a, b"]),
    ({"inputs": {"a": [1, 2, 3], "b": [1, 2]}, "input_step": 0.1}, ["do not broadcast", "a (3,)", "b (2,)", "lines"]),
    ({"inputs": {"a": [1.0, math.nan]}, "input_step": 0.1}, ['input "a"[1] is nan', "finite"]),
    ({"inputs": {"a": []}, "input_step": 0.1}, ["have no lines"]),
    ({"inputs": {"a": "x"}}, ["input \"a\" is 'x'"]),
    ({"inputs": {"a": [1.0, 2.0]}, "input_step": 1e-4}, ["0.0001 s", "shorter than the step of 0.001 s"]),
    ({"inputs": {"a": np.zeros((2, 5))}, "input_step": 0.1, "q0": np.zeros((3, 1))}, ["start (3,)", "inputs (2,)"]),
]


@pytest.mark.parametrize(("options", "words"), INPUTS, ids=[str(k) for k in range(len(INPUTS))])
def test_inputs_that_do_not_fit(options: dict[str, Any], words: list[str]) -> None:
    told(bc.InputError, words, lambda: bc.simulate(bc.system(M, inputs={"a": 0.0, "b": 0.0}), 1.0, **options))


# -- events

EVENTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"function": 3}, ['event "e"', "3 is not a function of (t, q, v, x, u)"]),
    ({"action": "halt"}, ['event "e"', 'no action "halt"', "stop, record, switch"]),
    ({"direction": 2}, ['event "e"', "direction is 2", "-1, 0 or 1"]),
    ({"action": "switch"}, ['event "e"', "then=...", "there is none"]),
    ({"then": zero}, ['event "e"', "then=...", 'the action is "stop"']),
    ({"name": 3}, ["name of an event is 3"]),
]


@pytest.mark.parametrize(("options", "words"), EVENTS, ids=[next(iter(o)) for o, _ in EVENTS])
def test_events_that_do_not_fit(options: dict[str, Any], words: list[str]) -> None:
    told(bc.InputError, words, lambda: bc.Event(**{"name": "e", "function": zero, **options}))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1.0], ["returned [1.0]", '"q", "v" and "x"']),
        ({"w": 1.0}, ['no part of the state "w"', "q, v, x"]),
        ({"q": {"elbow": 1.0}}, ['no element "elbow"', "Known: hinge"]),
        ({"v": [1.0, 2.0]}, ["v returned 2 numbers", "1 number: hinge"]),
    ],
)
def test_invalid_results_of_a_switch_raise(value: Any, words: list[str]) -> None:
    e = bc.Event("e", lambda t, q, v, x, u: q[0], "switch", then=lambda t, q, v, x, u: value)
    told(bc.InputError, ['then of event "e"', *words], lambda: bc.simulate(M, 1.0, events=[e]))


def test_a_switch_has_no_sensitivities() -> None:
    e = bc.Event("e", lambda t, q, v, x, u: q[0], "switch", then=lambda t, q, v, x, u: {})
    told(
        bc.InputError,
        ['event "e"', "sensitivities"],
        lambda: bc.simulate(M, 1.0, events=[e], sensitivities=["hinge.q"]),
    )


def test_counts_must_be_whole_numbers() -> None:
    assert whole_multiple("seconds", 10.0, 0.1, "step") == 100
    assert whole_multiple("seconds", 0.3, 0.1, "step") == 3  # 0.3 / 0.1 is 2.9999999999999996
    assert whole_multiple("seconds", 1e4, 1e-3, "step") == 10_000_000
