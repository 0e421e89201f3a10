"""Every way to a number of a mechanism whose loop analysis has doubts issues them, once for each mechanism object."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.model import Mechanism
from loops import four_bar_tower


def bars(tilt: float = 0.0, masses: tuple[float, ...] = (1.0,)) -> Mechanism:
    return four_bar_tower([1.0] * len(masses), masses, tilt)


DOUBTFUL: dict[str, tuple[Callable[[], Mechanism], str]] = {
    "open": (lambda: bars(1e-5), "numbers are not exact"),
    "immovable": (lambda: bars(1e-3), "it cannot move"),
    "lost digits": (lambda: bars(masses=(1e-6, 1.0, 1e6)), "accelerations and the forces of loops are not"),
}


def state(m: Mechanism) -> tuple[Any, ...]:
    return tuple(np.zeros((3, m.nv)))


WAYS: dict[str, Callable[[Mechanism], Any]] = {
    "loop_analysis": lambda m: m.loop_analysis,
    "assemble": lambda m: m.assemble(),
    "forward_dynamics": lambda m: m.forward_dynamics(*state(m)),
    "loop_forces": lambda m: m.loop_forces(*state(m)),
    "reactions": lambda m: m.reactions(*state(m)),
    "kernel": lambda m: bc.kernel(m, "forward_dynamics"),
    "kernel with wrenches": lambda m: bc.kernel(m, "forward_dynamics", wrenches=["crank0"]),
    "batch": lambda m: m.forward_dynamics(*(np.repeat(x[None], 5, axis=0) for x in state(m))),
    "free parameter": lambda m: m.free("crank0.mass").forward_dynamics(*state(m)),
    "simulate": lambda m: bc.simulate(m, 0.01, step=1e-3),
}


def issued(function: Callable[[Mechanism], Any], m: Mechanism, text: str) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(m)
    return [x for x in caught if text in str(x.message)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("doubt", ["open", "immovable"])
def test_doubtful_loops_warn_in_every_way_to_a_number(doubt: str, way: str) -> None:
    make, text = DOUBTFUL[doubt]
    for _ in range(2):  # the second mechanism finds its kernel in the cache
        (warning,) = issued(WAYS[way], make(), text)
        assert warning.filename == __file__  # not a line of the package, nor of functools


@pytest.mark.parametrize("doubt", DOUBTFUL)
def test_doubtful_loops_warn_once_for_each_mechanism(doubt: str) -> None:
    make, text = DOUBTFUL[doubt]
    m, other = make(), make()
    ways = ("forward_dynamics", "loop_forces", "assemble", "loop_analysis", "kernel")
    assert len(issued(lambda m: [WAYS[way](m) for way in ways], m, text)) == 1
    assert not issued(WAYS["simulate"], m, text)
    assert len(issued(WAYS["forward_dynamics"], other, text)) == 1


def test_doubts_raised_as_errors_are_raised_by_every_kernel() -> None:
    m = bars(1e-3)
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeWarning, match="it cannot move"):
                bc.kernel(m, "forward_dynamics")


@pytest.mark.parametrize("way", ["forward_dynamics", "loop_forces", "kernel", "loop_analysis", "simulate"])
def test_exact_loops_give_no_warning(way: str) -> None:
    m = bars()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WAYS[way](m)


PROCESS = """
import sys, warnings
import numpy as np
import bellcrank as bc
from test_loop_warnings import DOUBTFUL

for make, text in DOUBTFUL.values():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        m = make()
        kernel = bc.kernel(m, "forward_dynamics")
        m.forward_dynamics(*np.zeros((3, m.nv)))
    print(kernel.from_cache, sum(text in str(x.message) for x in caught), len(caught))
print("bellcrank.dynamics.loops" in sys.modules)
"""


def test_doubtful_kernel_from_the_cache_warns_in_a_second_process_without_an_analysis(tmp_path: Path) -> None:
    folders = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = {**os.environ, "BELLCRANK_CACHE": str(tmp_path / "cache"), "PYTHONPATH": folders}
    command = [sys.executable, "-c", PROCESS]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.split()
        for _ in range(2)
    )
    assert first == [*["False", "1", "1"] * 3, "True"]
    assert second == [*["True", "1", "1"] * 3, "False"]
