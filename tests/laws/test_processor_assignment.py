"""Parts of the equations on processors that the user assigns: the results are those of one core."""

from __future__ import annotations

from pathlib import Path
from re import escape
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.build.subsystem_tasks import MIN_RELATIVE_EIGENVALUE
from bellcrank.papers.schaefer import figure_8
from bellcrank.zoo import load
from prose import ROOT

MODULES = ("M", "k", "q", "L", "a", "J", "drives", "u", "C", "g", "end")
FIGURE_8 = ROOT / "examples" / "stanford_figure_8.toml"
TREE_KINDS = ("revolute", "prismatic", "universal", "spherical", "floating")


def assigned(subsystems: dict[str, list[str]], **options: Any) -> bc.ProcessorAssignment:
    """Return an assignment with one processor for the coupling, and one for each subsystem."""
    processors = dict.fromkeys(MODULES, 0) | {name: i + 1 for i, name in enumerate(subsystems)}
    return bc.ProcessorAssignment(processors, subsystems, f"complete:{len(subsystems) + 1}", **options)


def difference(m: bc.Mechanism, s: bc.Schedule, force: str = "tau") -> float:
    """Return how far an execution is from the serial kernel, relative to the largest acceleration."""
    s.check()
    q, v, tau = m.random(0)
    done = s.execute(**{"q": q, "v": v, force: tau})
    assert done.makespan == s.makespan
    serial = m.forward_dynamics(q, v, tau)
    return float(np.abs(done.results["forward_dynamics"] - serial).max() / np.abs(serial).max())


def halves(m: bc.Mechanism) -> dict[str, list[str]]:
    names = [link.name for link in m.tree.links]
    return {"inner": names[: len(names) // 2], "outer": names[len(names) // 2 :]}


def test_figure_8_from_its_file() -> None:
    s = bc.schedule(load("stanford"), assignment=FIGURE_8)
    paper = figure_8().three
    assert (s.makespan, s.work) == (paper.makespan, paper.work)
    assert [t.name for t in s.tasks if t.name not in ("state", "M", "k", "q", "L", "end")] == []
    assert difference(load("stanford"), s) < 1e-12


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(("coordinates", "forces")), st.sampled_from(("copied", "sent")))
def test_random_trees_in_random_subsystems(seed: int, coupling: str, shared: str) -> None:
    m = load(f"random_tree({seed}, 3, {TREE_KINDS}, passive=True, armature={seed % 2 == 0})")
    members = np.random.default_rng(seed).integers(0, 2, len(m.tree.links))
    names = [link.name for link in m.tree.links]
    chosen = {f"s{i}": [n for n, k in zip(names, members, strict=True) if k == i] for i in sorted({*members})}
    s = bc.schedule(m, assignment=assigned(chosen, coupling=coupling, shared=shared))
    assert difference(m, s) < 1e-12


@pytest.mark.parametrize("coupling", ["coordinates", "forces"])
@pytest.mark.parametrize("name", ["andrews", "parallel_cranks:3"])
def test_loops(name: str, coupling: str) -> None:
    m = load(name)
    s = bc.schedule(m, assignment=assigned(halves(m), coupling=coupling))
    assert difference(m, s) < 1e-12
    assert {"C", "g"} <= {t.name for t in s.tasks}


def test_shared_coordinates_and_a_loop_through_a_cut() -> None:
    m = load("random_tree(2, 6, mimic=0.6)")
    assert m.tree.coupled
    assert difference(m, bc.schedule(m, assignment=assigned(halves(m)))) < 1e-12
    with pytest.raises(bc.InputError, match="shared coordinates, which need coupling"):
        bc.schedule(m, assignment=assigned(halves(m), coupling="forces"))


def test_reactions_beside_the_motion() -> None:
    m = load("torso")
    plan = assigned(halves(m))
    plan = bc.ProcessorAssignment({**plan.processors, "reactions": 2}, plan.subsystems, plan.machine)
    q, v, tau = m.random(0)
    found = bc.schedule(m, assignment=plan).execute(q, v, tau).results
    expected = m.reactions(q, v, tau)
    assert np.abs(found["reactions"] - expected).max() < 1e-12 * np.abs(expected).max()
    assert set(found) == {"forward_dynamics", "reactions"}


def test_control_on_its_own_processor() -> None:
    m = load("stanford")
    plan = {"M": 0, "L": 0, "end": 0, "k": 0, "q": 0, "drives": 0, "u": 1}
    s = bc.schedule(m, assignment=bc.ProcessorAssignment(plan, machine="complete:2", control="computed_torque"))
    q, v, w = m.random(0)
    wanted = 100.0 * (w - q) - 20.0 * v  # with computed torque the arm accelerates as requested
    assert np.abs(s.execute(q=q, v=v, w=w).results["forward_dynamics"] - wanted).max() < 1e-10 * np.abs(wanted).max()
    assert s.where[[t.name for t in s.tasks].index("u")] == 1


def test_frames_name_bodies() -> None:
    m = load("excavator_linkage")
    by_frame = {f: m.frames[f].body for f in m.frames}
    frame, body = next((f, b) for f, b in by_frame.items() if f != b and b in [x.name for x in m.tree.links])
    plan = assigned({"one": [frame], "rest": [x.name for x in m.tree.links if x.name != body]})
    members, names = plan.members(m)
    assert names == ("one", "rest")
    assert [x.name for x, k in zip(m.tree.links, members, strict=True) if k == 0] == [body]


def test_a_subsystem_that_moves_without_inertia_is_refused() -> None:
    m = load("four_bar")
    with pytest.raises(bc.InputError, match="can move without inertia once it is cut off"):
        bc.schedule(m, assignment=assigned(halves(m), coupling="forces"))
    assert MIN_RELATIVE_EIGENVALUE > 0.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"subsystems": {"one": ["trunk", "arm"]}}, 'There is no body or frame "arm"'),
        ({"subsystems": {"one": ["trunk", "head"], "two": ["head"]}}, '"head" is in the subsystems "one" and "two"'),
        ({"subsystems": {"one": ["trunk"]}}, '"head", "upper arm A"'),
        ({"subsystems": {"M": ["trunk"]}}, "expected one word that is not the name of a module"),
        ({"subsystems": {"one": "trunk"}}, "expected a list of names of bodies"),
        ({"processors": {"M": 0}}, 'no processor for "k"'),
        ({"processors": {"M": 3}}, 'processor of "M" is 3; T800 complete(3) has 3, from 0 to 2'),
        ({"processors": {"M": -1}}, "expected a whole number from 0 on"),
        ({"processors": {"M": "0"}}, "expected a whole number from 0 on"),
        ({"processors": {"Q": 0}}, 'no module or subsystem "Q"'),
        ({"coupling": "glue"}, 'no coupling "glue"'),
        ({"control": "luck"}, 'no control law "luck"'),
        ({"machine": "cube"}, 'no machine "cube"'),
    ],
)
def test_bad_assignments(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(bc.InputError, match=escape(message)):
        bc.schedule(load("torso"), assignment=bc.ProcessorAssignment(**{"processors": {"M": 0}, **changes}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("M = 0", 'no setting "M"'),
        ("machine = 'single'", "has no table"),
        ("[processors]\nM = 0\nM = 1", "is not TOML"),
        ("[processors]\nM = 1.5", "processor of \"M\" is 1.5; expected a whole number"),
        ("processors = 3", "expected a table of modules"),
    ],
)  # fmt: skip
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(text)
    with pytest.raises(bc.ReadError, match=message):
        bc.schedule(load("torso"), assignment=file)


def test_unsuitable_requests() -> None:
    m, plan = load("torso"), assigned({})
    for options in ({"quantity": "mass_matrix"}, {"method": "aba"}):
        with pytest.raises(bc.InputError, match="divides the forward dynamics"):
            bc.schedule(m, assignment=plan, **options)  # type: ignore[arg-type]
    with pytest.raises(bc.InputError, match="leave out level="):
        bc.schedule(m, assignment=plan, level="node")
    with pytest.raises(bc.InputError, match="expected a ProcessorAssignment"):
        bc.schedule(m, assignment=3)  # type: ignore[arg-type]
