"""A schedule as C: a file for each processor, without warnings and races, and with the results of the graph."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import zoo
from bellcrank.errors import InputError
from bellcrank.exporting.compilers import poison_flags
from bellcrank.papers.schaefer import figure_8
from bellcrank.papers.wong import wong_mesh
from bellcrank.scheduling import Schedule, fixed_order_schedule, machine, tasks
from targets.test_c99 import COMPILERS, TOLERANCE, needs_cc, run

STRICT = ["-std=c11", "-pthread", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
STATES = 4
pytestmark = [needs_cc, pytest.mark.skipif(os.name != "posix", reason="POSIX threads")]


def on_two() -> Schedule:
    return bc.schedule(zoo.planar3r(), machine="complete:2", kind="ideal", level="cluster", method="aba")


def on_three() -> Schedule:
    return figure_8("computed_torque").three


def on_fourteen() -> Schedule:
    return wong_mesh(zoo.excavator())


def compiled(folder: Path, *flags: str) -> Path:
    """Compile all files by the first compiler, and read them by the others."""
    sources = sorted(p.name for p in folder.glob("*.c"))
    run(folder, COMPILERS[0], *STRICT, *poison_flags(COMPILERS[0]), *flags, *sources, "-o", "it", "-lm")
    for compiler in COMPILERS[1:]:
        if Path(compiler).resolve() != Path(COMPILERS[0]).resolve():
            run(folder, compiler, *[f for f in STRICT if f != "-pthread"], "-fsyntax-only", *sources)
    return folder / "it"


def printed(program: Path, s: Schedule, seconds: float = 60.0) -> tuple[dict[str, list[np.ndarray]], str]:
    """Return the results that the program prints for some states, by name, and what it reports."""
    g = s.tasks.graph
    assert g is not None
    inputs = states(s)
    rows = [[float(x) for array in inputs.values() for x in array[k].ravel()] for k in range(STATES)]
    text = "\n".join(" ".join(map(repr, row)) for row in rows)
    done = subprocess.run([program], input=text, capture_output=True, text=True, timeout=seconds)
    lines = [line.split() for line in done.stdout.splitlines()]
    names = list(g.shapes)
    assert len(lines) == STATES * len(names), done.stderr[:2000]
    found = {
        name: [np.array(lines[k * len(names) + i][1:], float).reshape(g.shapes[name]) for k in range(STATES)]
        for i, name in enumerate(names)
    }
    return found, done.stderr


def states(s: Schedule) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    assert s.tasks.graph is not None
    return {name: rng.uniform(-1.0, 1.0, (STATES, *shape)) for name, shape in s.tasks.graph.inputs.items()}


def agrees(program: Path, s: Schedule, dtype: str = "float64") -> None:
    found, _ = printed(program, s)
    assert s.tasks.graph is not None
    for name, x in s.tasks.graph.evaluate(**states(s)).items():
        np.testing.assert_allclose(found[name], x, rtol=0, atol=TOLERANCE[dtype] * max(1.0, np.abs(x).max()))


@pytest.mark.parametrize("make", [on_two, on_three, on_fourteen])
def test_results_are_those_of_the_graph(make: Callable[[], Schedule], tmp_path: Path) -> None:
    s = make()
    folder = bc.export(s, tmp_path / "it", to="c")
    assert len(list(folder.glob("*_processor_*.c"))) == s.used
    for path in folder.glob("*.[ch]"):  # the other files are for a controller without an operating system
        headers = set(re.findall(r"#include <(.*)>", path.read_text()))
        assert "_threads" in path.name or path.name == "main.c" or headers <= {"math.h", "stdatomic.h"}
    agrees(compiled(folder), s)


@cache
def has_sanitizer() -> bool:
    probe = [COMPILERS[0], "-fsanitize=thread", "-x", "c", "-", "-o", os.devnull]
    return subprocess.run(probe, input=b"int main(void) { return 0; }", capture_output=True).returncode == 0


@pytest.mark.parametrize("make", [on_two, on_three, on_fourteen])
def test_threads_have_no_races(make: Callable[[], Schedule], tmp_path: Path) -> None:
    if not has_sanitizer():
        pytest.skip("the C compiler has no thread sanitizer (libtsan)")
    s = make()
    program = compiled(bc.export(s, tmp_path / "it"), "-fsanitize=thread", "-g")
    _, reported = printed(program, s)
    assert reported == ""
    agrees(program, s)


def test_single_precision_and_messages_that_overtake(tmp_path: Path) -> None:
    s = on_two()
    agrees(compiled(bc.export(s, tmp_path / "single", dtype="float32")), s, "float32")
    g = s.tasks.graph
    assert g is not None
    todo = tasks(g, "node")
    where = np.random.default_rng(1).integers(3, size=len(todo)).tolist()
    spread = fixed_order_schedule(todo, machine("complete:3", "t800"), where)
    folder = bc.export(spread, tmp_path / "spread")
    agrees(compiled(folder), spread)


# -- planted errors


def planted(s: Schedule, folder: Path, file: str, change: Callable[[str], str]) -> Path:
    """Export the schedule with a change in one file."""
    folder = bc.export(s, folder)
    path = next(folder.glob(file))
    text = path.read_text()
    assert change(text) != text
    path.write_text(change(text))
    return folder


def test_a_missing_word_gives_wrong_results(tmp_path: Path) -> None:
    def lose(text: str) -> str:
        return re.sub(r"(sent_\d+\[(\d+)\] = \{)[^,}]+", r"\g<1>0.0", text, count=1)

    s = on_two()
    folder = planted(s, tmp_path / "it", "*_processor_1.c", lose)
    sources = sorted(p.name for p in folder.glob("*.c"))
    run(folder, COMPILERS[0], "-std=c11", "-pthread", *sources, "-o", "it", "-lm")
    with pytest.raises(AssertionError):
        agrees(folder / "it", s)


SEND = re.compile(r"sent_\d+\[\d+\] = (\{.*?\});\s+\w+_send\(machine, &machine->channels\[(\d+)\], \w+, (\d+)\);")


def swapped(text: str) -> str:
    """Return a program in which two messages of equal length leave by each other's channels."""
    found = list(SEND.finditer(text))
    for one, other in pairwise(found):
        if one[3] == other[3] and one[2] != other[2] and one[1] != other[1]:
            a, b = one.span(2), other.span(2)
            return text[: a[0]] + other[2] + text[a[1] : b[0]] + one[2] + text[b[1] :]
    return text


def test_swapped_messages_give_wrong_results(tmp_path: Path) -> None:
    s = on_fourteen()
    folder = bc.export(s, tmp_path / "it")
    path = next(p for p in sorted(folder.glob("*_processor_*.c")) if swapped(p.read_text()) != p.read_text())
    path.write_text(swapped(path.read_text()))
    with pytest.raises(AssertionError, match="Not equal"):
        agrees(compiled(folder), s)


def test_the_sanitizer_sees_a_relaxed_flag(tmp_path: Path) -> None:
    if not has_sanitizer():
        pytest.skip("the C compiler has no thread sanitizer (libtsan)")
    s = on_two()
    folder = planted(s, tmp_path / "it", "*_channels.c", lambda text: text.replace("_release)", "_relaxed)"))
    _, reported = printed(compiled(folder, "-fsanitize=thread", "-g"), s)
    assert "data race" in reported


# -- names and options


def test_names_do_not_reach_the_code(tmp_path: Path) -> None:
    b = bc.Builder('arm"; #error */ \\')
    b.body('link*/ "x" ??/', mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    b.joint("machine", "revolute", "ground", 'link*/ "x" ??/', axis=(0, 1, 0))
    b.body("done", mass=1.0, com=(0, 0.1, -0.5), inertia=(0.1, 0.2, 0.1))
    b.joint("state", "revolute", 'link*/ "x" ??/', "done", point=(0, 0, -1.0), axis=(0, 1, 0))
    s = bc.schedule(b.build(), machine="complete:2", kind="ideal", level="cluster", method="aba")
    assert s.used == 2
    agrees(compiled(bc.export(s, tmp_path / "it", name="threads.h */")), s)


def test_other_formats_and_options_are_refused(tmp_path: Path) -> None:
    s = on_two()
    for options, match in (
        ({"to": "fmu3"}, 'got to="fmu3", expected to="c"'),
        ({"step": 1e-3}, "leave out functions="),
        ({"functions": ["mass_matrix"]}, "leave out functions="),
        ({"dtype": "float16"}, 'dtype "float16"'),
        ({"name": "a\nb"}, "expected a name without"),
    ):
        with pytest.raises(InputError, match=match):
            bc.export(s, tmp_path / "it", **options)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
