"""Wong 1991, section 4.7: the rival algorithms as programs, their matrices, counts, messages and crossovers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from bellcrank import zoo
from bellcrank.dynamics import crba, rnea
from bellcrank.errors import InputError
from bellcrank.papers import operation_counts as papers
from bellcrank.papers.wong.comparison import published_costs
from bellcrank.papers.wong.rival_times import crossover, matrix_time, solver_cycle, total_time
from bellcrank.papers.wong.rivals import RIVALS, program_graph, rival_schedule, traced_program
from bellcrank.scheduling import machine
from bellcrank.scheduling.machines import KINDS, complete, hypercube, machine_of_kind, single
from trees import close, random_tree

TRIG_US = 14.0  # sine and cosine of a joint, which the thesis does not count


@pytest.mark.parametrize("name", [*RIVALS, "force"])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_programs_agree_with_other_methods_on_random_chains(name: str, n: int) -> None:
    m = random_tree(n, ["revolute"] * n)
    rng = np.random.default_rng(n)
    q, v = rng.uniform(-3.0, 3.0, n), rng.uniform(-1.0, 1.0, n)
    values = {"q": q} | ({"v": v} if name == "force" else {})
    (found,) = traced_program(name, m.tree).evaluate(**values).values()
    given = q.tolist(), v.tolist()
    wanted = rnea.bias(m.tree, *given) if name == "force" else crba.mass_matrix(m.tree, given[0])
    armature = 0.0 if name in ("force", "fijany") else np.diag([link.armature for link in m.tree.links])
    close(np.array(found, float) + armature, wanted, 1e-11)


@pytest.mark.parametrize("name", [*RIVALS, "force"])
def test_schedules_can_be_followed_on_every_machine(name: str) -> None:
    for kind in KINDS:
        s = rival_schedule(name, 5, kind)
        s.check()
        assert s.used == (15 if name == "fijany" else 5)


@pytest.mark.parametrize("name", ["lee", "fijany", "hwang"])
def test_programs_are_not_longer_than_the_print(name: str) -> None:
    """Without messages, sines and cosines; the print is the polynomial of table 4.8."""
    for n in (4, 7, 9, 12):
        assert matrix_time(name, n, "hidden") - TRIG_US <= published_costs(n, "inertia")[name].time()


def test_time_of_fijany_grows_by_a_constant_for_each_doubling() -> None:
    times = [matrix_time("fijany", n, "hidden") for n in (8, 16, 32)]
    one, two = (b - a for a, b in pairwise(times))
    assert one == pytest.approx(two, rel=0.05)
    assert matrix_time("wong", 16, "hidden") - matrix_time("wong", 8, "hidden") > 3 * one


def test_exchanges_on_a_hypercube_take_one_hop() -> None:
    """Amin-Javaheri and Orin: duplicated products save the further hops that Lee's doubling needs on the same cube."""

    def longest(name: str, part: str) -> int:
        s = rival_schedule(name, 8, "t800", hypercube(3))
        names = [(s.tasks[m.task].name, len(m.hops)) for m in s.messages]
        return max(hops for text, hops in names if text.startswith(part))

    assert longest("amin", "total A") == 1
    assert longest("lee", "A1(") > 1  # from processor 1 to 3, 2 to 4, 3 to 5, ...
    work = {name: sum(papers.tally(program_graph(name, 8))) for name in ("lee", "amin")}
    assert work["amin"] > work["lee"]
    s = rival_schedule("lee", 8, "t800", complete(8))
    assert {len(m.hops) for m in s.messages} == {1}


def test_rows_are_shared_evenly() -> None:
    """Lee: at most ceil((n + 1) / 2) rows for each processor; without sharing, the last processor has nearly n."""
    for name, most in (("lee", range(4, 6)), ("amin", range(7, 9))):
        rows: dict[int, int] = {}
        for task, processor in zip((s := rival_schedule(name, 8, "hidden")).tasks, s.where, strict=True):
            if task.name.startswith("M,"):
                rows[processor] = rows.get(processor, 0) + 1
        assert max(rows.values()) in most


def test_crossovers_without_messages() -> None:
    """12 and 14 joints by our programs, where the thesis has 13 and 15 by its polynomials."""
    assert crossover("hidden", False, (11, 12)) == 12
    assert crossover("hidden", True, (13, 14)) == 14


def test_crossovers_with_messages() -> None:
    assert crossover("t800", False, (17, 18)) == 18
    for kind in ("t800", "explicit", "multicore", "h200"):
        assert crossover(kind, True, (16,)) is None


def test_solver_cycles() -> None:
    t800, hidden, explicit = (machine_of_kind(single(), kind) for kind in ("t800", "hidden", "explicit"))
    assert solver_cycle(hidden) == 1.5
    assert solver_cycle(t800) == t800.message(1)
    assert solver_cycle(explicit) == pytest.approx(1.5 + 2 * t800.message(1))
    assert total_time("wong", 5, "hidden") - matrix_time("wong", 5, "hidden") == 20 * 1.5
    assert total_time("lee", 5, "hidden") - matrix_time("lee", 5, "hidden") == 30 * 1.5


def test_only_serial_chains() -> None:
    for m in (zoo.tree(3), zoo.stanford()):
        with pytest.raises(InputError, match="serial chain"):
            traced_program("lee", m.tree)


def test_machines_of_today() -> None:
    """Relative to its multiplication, a message costs most on a multicore processor and least on a transputer."""
    ratio = {}
    for kind in ("t800", "multicore", "h200"):
        on = machine("complete:2", kind)
        ratio[kind] = on.message(1) / on.cost["mul"]
        assert on.cost["neg"] == 0.0
        assert on.cost["add"] <= on.cost["mul"] < on.cost["div"] + 1e-9 < on.cost["sin"]
    assert ratio["t800"] < ratio["h200"] < ratio["multicore"]
