"""The stack of every exported function stays below its stated bound: as gcc counts it, through all that it calls."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bellcrank as bc
from bellcrank.excavators.machines import MACHINES
from bellcrank.graph import trace
from targets.test_c99 import COMPILERS, run
from targets.test_export_events import sampled_plant

GCC = next((c for c in COMPILERS if "gcc" in Path(c).name), "")
needs_gcc = pytest.mark.skipif(not GCC, reason="only gcc says what stack a chain of calls takes")
Made = Callable[[], tuple[Any, dict[str, Any]]]


def copied(n: int) -> Any:
    """Nothing but reading and writing: an optimiser may read all of it first."""
    return trace("copied", lambda x: {"y": list(x)}, {"x": (n,)})


SMALL: dict[str, Made] = {
    "copies of 10": lambda: (copied(10), {}),
    "copies of 100": lambda: (copied(100), {}),
    "copies of 600": lambda: (copied(600), {}),
    "copies in float32": lambda: (copied(600), {"dtype": "float32"}),
    "pendulum": lambda: (bc.zoo.chain(1), {}),
    "chain of 3": lambda: (bc.zoo.chain(3), {}),
    "chain of 3, abm4": lambda: (bc.zoo.chain(3), {"integrator": "abm4"}),
    "chain of 3, chosen": lambda: (bc.zoo.chain(3), {"integrator": "dopri5", "tolerance": 1e-6, "dtype": "float32"}),
    "four bars": lambda: (bc.zoo.four_bar(), {"form": "projected"}),
    "samples": lambda: (sampled_plant(), {}),
    "functions": lambda: (bc.zoo.puma600(), {"functions": ["mass_matrix", "bias", "pose(link6)"], "dtype": "float32"}),
}
LARGE: dict[str, Made] = {
    "chain of 10": lambda: (bc.zoo.chain(10), {}),
    "chain of 40": lambda: (bc.zoo.chain(40), {}),
    "chain of 100": lambda: (bc.zoo.chain(100), {}),
    "chain of 300": lambda: (bc.zoo.chain(300), {}),
    "tree of 127": lambda: (bc.zoo.tree(127), {}),
    "stewart": lambda: (bc.zoo.stewart(), {"form": "projected"}),
    "puma600": lambda: (bc.zoo.puma600(), {"functions": ["forward_dynamics", "d(bias)/d(q)"]}),
    "excavator": lambda: (MACHINES["excavator"]().system, {}),
}


def deepest(graph: str) -> dict[str, int]:
    """Bytes by the name of each function, with all that it calls, from gcc's graph of calls; libm's count nothing."""
    own = {m[1]: int(m[2]) + 8 for m in re.finditer(r'node: \{ title: "([^"]+)" label: "[^"]*?(\d+) bytes', graph)}
    calls: dict[str, set[str]] = {}
    for m in re.finditer(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"', graph):
        calls.setdefault(m[1], set()).add(m[2])

    def depth(name: str) -> int:
        return own.get(name, 0) + max((depth(other) for other in calls.get(name, ())), default=0)

    return {name.rpartition(":")[2]: depth(name) for name in own}


def over(made: Made, folder: Path, level: str) -> tuple[int, list[str]]:
    """Return the number of functions that state a bound, and the functions that exceed theirs."""
    thing, how = made()
    bc.export(thing, folder / "it", **how)
    (source,) = (p for p in (folder / "it").glob("*.c") if p.name != "main.c")
    text = source.with_suffix(".h").read_text()
    bounds = {m[1]: int(m[2]) for m in re.finditer(r"#define (\w+)_STACK_BYTES (\d+)", text)}
    run(folder / "it", GCC, "-std=c99", level, "-fcallgraph-info=su", "-c", source.name)
    (graph,) = (folder / "it").glob("*.ci")
    taken = {name.upper(): x for name, x in deepest(graph.read_text()).items()}
    assert bounds.keys() <= taken.keys()
    wrong = [f"{name}: {taken[name]} of {bound}" for name, bound in bounds.items() if taken[name] > bound]
    return len(bounds), wrong


@needs_gcc
@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("name", SMALL)
def test_small_machines(name: str, level: str, tmp_path: Path) -> None:
    count, wrong = over(SMALL[name], tmp_path, level)
    assert count > 0
    assert wrong == []


@needs_gcc
@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("name", LARGE)
def test_large_machines(name: str, level: str, tmp_path: Path) -> None:
    count, wrong = over(LARGE[name], tmp_path, level)
    assert count > 0
    assert wrong == []
