"""Masked arrays, text, dates and durations, which numpy converts silently, are refused where numbers are expected."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import forces, identify
from bellcrank.errors import BellcrankError
from bellcrank.identify.experiments import experiments
from bellcrank.record import Column
from bellcrank.scalar import float_array, is_real, is_whole

Given = Callable[[np.ndarray[Any, Any]], Any]
ARM = bc.zoo.chain(2)
FREE = ARM.free("link1.mass")
PUSHED = bc.system(ARM, inputs={"push": 0.0}, control=lambda t, q, v, x, u: [u[0], 0.0])
Q = np.array([[1.0, 2.0]] * 20) * np.arange(1.0, 21.0)[:, None] / 20
BASE = identify.base_parameters(ARM)
MOTION = {"q": Q, "v": np.sin(3 * Q), "a": np.cos(5 * Q)}


def _masked(x: np.ndarray[Any, Any]) -> Any:
    hidden = np.zeros(x.shape, bool)
    hidden.flat[0] = True
    return np.ma.masked_array(x, hidden)


def _columns(x: Any) -> dict[str, Column]:
    return {"t": Column("t", "s", np.array([0.0, 1.0])), "x": Column("x", "m", x)}


KINDS: dict[str, Given] = {
    "masked": _masked,
    "text": lambda x: x.astype(str),
    "bytes": lambda x: x.astype(bytes),
    "dates": lambda x: x.astype("datetime64[s]"),
    "durations": lambda x: x.astype("timedelta64[ms]"),
    "complex": lambda x: x + 1j,
}
TWO = np.array([1.0, 2.0])
CORNERS = np.array([[0.0, 0, 0], [0, 1, 0], [0, 0, 1], [2, 0, 0], [2, 1, 0], [2, 0, 1]])
PAIRS = [(i, j) for j in range(6) for i in range(j)]
ENDS = np.array([np.eye(6)[j] - np.eye(6)[i] for i, j in PAIRS])
BARS = np.array([np.kron(end, end @ CORNERS) for end in ENDS])  # a truss: a bar between any two nodes
K = 1e6 * BARS.T @ BARS
T = np.linspace(0.25, 5.0, 20)
TAKERS: dict[str, Callable[[Given], Any]] = {
    "a quantity": lambda of: ARM.mass_matrix(of(TWO)),
    "a batch": lambda of: ARM.mass_matrix(of(Q)),
    "a graph": lambda of: bc.kernel(ARM, "mass_matrix").graph.evaluate(q=of(TWO)),
    "a start": lambda of: bc.simulate(ARM, 0.01, q0=of(TWO)),
    "a start by name": lambda of: bc.simulate(ARM, 0.01, q0={"joint1": of(TWO)}),
    "inputs": lambda of: bc.simulate(PUSHED, 0.02, inputs={"push": of(TWO)}, input_step=0.01),
    "parameters": lambda of: bc.simulate(FREE, 0.01, parameters={"link1.mass": of(TWO)}),
    "a step": lambda of: bc.stepper(PUSHED, batch=2, every=0.02).step(of(TWO)[:, None]),
    "positions of samples": lambda of: identify.estimate(BASE, **(MOTION | {"q": of(Q)}), tau=Q),
    "forces of samples": lambda of: identify.estimate(BASE, **MOTION, tau=of(Q)),
    "measurements": lambda of: experiments(bc.system(FREE), {"t": T, "joint1.q": of(T)}, None),
    "columns": lambda of: bc.Record(_columns(of(TWO))),
    "a time": lambda of: bc.simulate(ARM, 0.01).at(of(TWO / 1000)),
    "heights": lambda of: forces.grid(TWO, TWO, of(np.eye(2))),
    "a curve": lambda of: bc.interp(0.5, TWO, of(TWO)),
    "a structure": lambda of: bc.flexible(
        nodes=CORNERS, K=of(K), M=np.eye(18), interfaces={"a": [0, 1, 2], "b": [3, 4, 5]}, modes=0
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("taker", TAKERS)
def test_arrays_without_real_numbers_are_rejected(taker: str, kind: str) -> None:
    with pytest.raises(BellcrankError) as said:
        TAKERS[taker](KINDS[kind])
    assert len(str(said.value)) > 15


@pytest.mark.parametrize("taker", TAKERS)
def test_numbers_are_taken_also_where_a_mask_hides_none(taker: str) -> None:
    for kind in (lambda x: x, np.ma.masked_array, lambda x: x.astype(np.float32)):
        TAKERS[taker](kind)


def test_float_array() -> None:
    for x in ([1, 2.5], np.array([1, Fraction(5, 2)], object), np.float32([1.0, 2.5]), [True, 2.5]):
        assert float_array(x).tolist() == [1.0, 2.5]
    for x in ([None], ["1"], np.array([1.0, "1"], object), [1j], np.ma.masked, [object()], {}):
        with pytest.raises(TypeError):
            float_array(x)


def test_a_duration_of_numpy_is_no_number() -> None:
    """A numpy duration is refused, although numpy registers it as an Integral and converts it in its own unit."""
    for x in (np.timedelta64(5, "ms"), np.timedelta64("NaT", "s"), np.datetime64("2020"), True, "1"):
        assert not is_real(x)
        assert not is_whole(x)
    assert is_real(np.float16(0.5))
    assert not is_whole(0.5)
    assert is_whole(np.int8(3))
    for act in (
        lambda x: bc.simulate(ARM, x),
        lambda x: bc.simulate(ARM, 0.01, step=x),
        lambda x: bc.zoo.chain(x),
        lambda x: bc.parameter("x", x),
        lambda x: bc.uniform(0.0, x),
        lambda x: bc.Drive(ARM, substeps=x),
        lambda x: bc.Drive(ARM, spin=x),
        lambda x: bc.Builder("b").body("x", mass=x, inertia=np.eye(3)),
    ):
        with pytest.raises(BellcrankError, match=r"expected|number"):
            act(np.timedelta64(5, "ms"))  # type: ignore[no-untyped-call]
