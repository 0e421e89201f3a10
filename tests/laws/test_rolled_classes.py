"""Link classes compiled as rolled loops give the same results as straight-line code, for any classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bellcrank import simulate, zoo
from bellcrank.build.compilation import Where
from bellcrank.build.function_compilation import compile_graph
from bellcrank.build.graphs import choose_graph, graph
from bellcrank.build.rolled_recursion import rolled_graph
from bellcrank.dynamics import shape_of
from bellcrank.dynamics.quantities import QUANTITIES, Request
from bellcrank.dynamics.recursion.link_classes import link_classes
from bellcrank.errors import InputError, ModelError
from bellcrank.formats.builder import Builder
from bellcrank.graph import Recursion
from bellcrank.graph.loops import recursions
from bellcrank.graph.loops.recursions import MAX_DIRECT_CALLS
from bellcrank.model.mechanism import Mechanism
from bellcrank.model.tree import regrouped
from loop_statements import evaluated

METHODS = [
    ("aba", "forward_dynamics"),
    ("rnea", "inverse_dynamics"),
    ("rnea", "bias"),
    ("rnea", "coriolis_torque"),
    ("rnea", "gravity_torque"),
]
MECHANISMS = {
    "alternate": lambda: zoo.chain(9),
    "parallel": lambda: zoo.chain(8, twist="parallel"),
    "general": lambda: zoo.chain(7, twist="general"),
    "one body": lambda: zoo.chain(1),
    "two bodies": lambda: zoo.chain(2),
    "mixed": lambda: zoo.chain(13, joints=["revolute", "prismatic", "spherical"]),
    "tree": lambda: zoo.tree(15),
    "bush": lambda: zoo.tree(13, branching=4, joints=["revolute", "universal"]),
    "floating": lambda: zoo.chain(6, joints=["floating", "helical", "cylindrical", "planar", "universal"]),
    "random": lambda: zoo.random_tree(5, 14, passive=True),
}


def made(mechanism: Mechanism, method: str, quantity: str, empty: bool = False) -> Recursion:
    """The recursion, for a mechanism of any size."""
    tree = regrouped(mechanism.tree) if empty else mechanism.tree
    inputs = {name: shape_of(name, tree) for name in QUANTITIES[quantity].inputs}
    return rolled_graph(f"{mechanism.name}.{quantity}", tree, method, quantity, inputs)


def arguments(mechanism: Mechanism, quantity: str, batch: Any = ()) -> dict[str, Any]:
    q, v, a = mechanism.random(3, batch)
    given = {"q": q, "v": v, "tau": a, "a": a}
    return {name: given[name] for name in QUANTITIES[quantity].inputs}


def close(a: Any, b: Any, most: float = 1e-11) -> None:
    assert np.abs(a - b).max() <= most * max(1.0, np.abs(b).max())


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("empty", [False, True], ids=["as they are", "emptied"])
def test_recursions_agree_with_straight_line_graphs(name: str, empty: bool) -> None:
    """The definition and its straight-line form equal another method's graph, for one state and a batch."""
    mechanism = MECHANISMS[name]()
    for method, quantity in METHODS:
        r, straight = made(mechanism, method, quantity, empty), graph(mechanism, quantity, method=method)
        for batch in ((), (2, 3)):
            given = arguments(mechanism, quantity, batch)
            expected = straight.evaluate(**given)[quantity]
            close(r.evaluate(**given)[quantity], expected)
            close(r.written.evaluate(**given)[quantity], expected)


@pytest.mark.parametrize("name", ["alternate", "general", "mixed", "bush", "random"])
def test_loops_of_machine_code_agree(name: str) -> None:
    mechanism = MECHANISMS[name]()
    r = made(mechanism, "aba", "forward_dynamics")
    kernel = compile_graph(r)
    for batch in ((), (1,), (11,)):  # one state, fewer states than lanes, and whole blocks with a rest
        given = arguments(mechanism, "forward_dynamics", batch)
        close(kernel(**given), r.evaluate(**given)["forward_dynamics"])


def test_single_precision() -> None:
    mechanism = zoo.chain(12, twist="general")
    r = made(mechanism, "rnea", "inverse_dynamics")
    given = arguments(mechanism, "inverse_dynamics", (9,))
    found = compile_graph(r, Where(dtype="float32"))(**given)
    assert found.dtype == np.float32
    close(found, r.evaluate(**given)["inverse_dynamics"], 1e-4)


def test_many_runs_are_gone_through_by_a_table() -> None:
    """For bodies in irregular order the loops are called from a table, whose length does not affect the code."""
    rng = np.random.default_rng(0)
    mechanism = zoo.chain(200, joints=list(rng.choice(["revolute", "prismatic"], 200)))
    r = made(mechanism, "aba", "forward_dynamics")
    assert len(r.tree.runs) > MAX_DIRECT_CALLS
    given = arguments(mechanism, "forward_dynamics", (3,))
    close(
        compile_graph(r)(**given),
        graph(mechanism, "forward_dynamics", method="aba").evaluate(**given)["forward_dynamics"],
    )


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("special", [0.0, 0.7, 1.0])
def test_classes_have_the_numbers_of_their_members_and_no_others(seed: int, special: float) -> None:
    """Every link of a random tree is in one class, and its row of the table restores the link.

    The trees have few or many classes.
    """
    n = int(np.random.default_rng(seed).integers(1, 60))
    mechanism = zoo.random_tree(seed, n, special=special, passive=bool(seed % 2))
    tree = mechanism.tree
    groups = link_classes(tree)
    assert sorted(i for g in groups for i in g.members.tolist()) == list(range(n))
    for g in groups:
        for i, row in zip(g.members.tolist(), g.table.tolist(), strict=True):
            assert (tree.links[i].parent < 0) == g.on_ground
            assert sum(link.parent == i for link in tree.links) == g.children
            inertia = [_at(x, row) for x in g.link.inertia.numbers]
            assert inertia == list(tree.links[i].inertia.numbers)
    given = arguments(mechanism, "inverse_dynamics")
    expected = graph(mechanism, "inverse_dynamics", method="rnea").evaluate(**given)["inverse_dynamics"]
    close(made(mechanism, "rnea", "inverse_dynamics").evaluate(**given)["inverse_dynamics"], expected)


def _at(x: Any, row: list[float]) -> float:
    return x if isinstance(x, float) else row[int(x.args[0].removeprefix("k"))]


def test_tables_of_two_mechanisms_never_mix() -> None:
    """For the same classes with other numbers, each kernel has its own tables."""
    one, two = zoo.chain(12, twist="general", seed=1), zoo.chain(12, twist="general", seed=2)
    given = arguments(one, "inverse_dynamics")
    kernels = [compile_graph(made(m, "rnea", "inverse_dynamics"), name=f"id{i}") for i, m in enumerate((one, two))]
    for m, k in zip((one, two, one), (*kernels, kernels[0]), strict=True):
        expected = graph(m, "inverse_dynamics", method="rnea").evaluate(**given)["inverse_dynamics"]
        close(k(**given), expected)


def test_small_mechanisms_stay_straight_line_code() -> None:
    assert not isinstance(graph(zoo.chain(60), "forward_dynamics"), Recursion)
    assert isinstance(graph(zoo.chain(400), "forward_dynamics"), Recursion)
    assert not isinstance(graph(zoo.chain(50), "poses"), Recursion)
    assert isinstance(graph(zoo.chain(400), "poses"), Recursion)


def test_forward_and_inverse_dynamics_of_a_long_chain_undo_each_other() -> None:
    """Inverse dynamics of the accelerations of 1000 bodies returns the torques, by independent equations."""
    chain = zoo.chain(1000)
    q, v, tau = chain.random(0)
    a = chain.forward_dynamics(q, v, tau)
    needed = chain.inverse_dynamics(q, v, a)
    assert np.abs(needed - tau).max() <= 1e-8 * np.abs(chain.bias(q, v)).max()


def test_operations_grow_by_the_body() -> None:
    """Twice as many bodies need twice as many operations and no additional kind of part."""
    small, large = (choose_graph(zoo.chain(n), Request("forward_dynamics"))[1] for n in (400, 800))
    assert isinstance(small, Recursion)
    assert isinstance(large, Recursion)
    assert len(small.cells) == len(large.cells)
    each = (large.count().arithmetic - small.count().arithmetic) / 400
    assert large.count().arithmetic - 800 * each == small.count().arithmetic - 400 * each
    assert large.work() > 1.9 * small.work()
    assert "400 places" in repr(small)


@pytest.mark.parametrize("name", ["general", "mixed", "bush", "random"])
def test_the_span_is_that_of_all_written_out(name: str) -> None:
    """Straight-line code may fold constants that its class does not share.

    Without further folds both spans are equal.
    """
    mechanism = MECHANISMS[name]()
    for method, quantity in METHODS[:2]:
        r = made(mechanism, method, quantity)
        assert r.written.span() <= r.span() <= 1.3 * r.written.span()
    if name == "general":
        assert r.span() == r.written.span()


def test_bad_states_are_named() -> None:
    mechanism = zoo.chain(300)
    q, v, tau = mechanism.random(0)
    v[17] = np.nan
    with pytest.raises(InputError, match=r'v\[17\] \("joint18"\) is nan'):
        mechanism.forward_dynamics(q, v, tau)
    with pytest.raises(InputError, match=r"v\[2, 17\]"):
        mechanism.forward_dynamics(
            np.tile(q, (5, 1)), np.tile(mechanism.random(1)[1], (5, 1)) * [[1]] * 2 + _nan(300), tau
        )


def _nan(n: int) -> Any:
    found = np.zeros((5, n))
    found[2, 17] = np.nan
    return found


def test_body_without_inertia_is_found_among_many() -> None:
    b = Builder("rope")
    for i in range(200):
        spins = i == 120  # a rod without thickness, spinning about its axis
        b.body(f"b{i}", mass=1.0, com=(0.0, 0.0, -0.1), inertia=(0.01, 0.01, 0.0 if spins else 0.01))
        axis = (0.0, 0.0, 1.0) if spins else (0.0, 1.0, 0.0)
        b.joint(f"j{i}", "revolute", f"b{i - 1}" if i else "ground", f"b{i}", axis=axis, point=(0.0, 0.0, -0.2))
    whole = b.build()
    q, v, tau = whole.random(0)
    whole.forward_dynamics(q, v, tau)  # the bodies that it carries rotate, too
    b = Builder("rope and rod")
    for i in range(200):
        b.body(f"b{i}", mass=1.0, com=(0.0, 0.0, -0.1), inertia=(0.01, 0.01, 0.0 if i == 199 else 0.01))
        axis = (0.0, 0.0, 1.0) if i == 199 else (0.0, 1.0, 0.0)
        b.joint(f"j{i}", "revolute", f"b{i - 1}" if i else "ground", f"b{i}", axis=axis, point=(0.0, 0.0, -0.2))
    with pytest.raises(ModelError, match='"j199" can move'):
        b.build().forward_dynamics(q, v, tau)


@pytest.mark.parametrize("direct_calls", [0, 40])
def test_loops_do_the_same(direct_calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statements that targets print, executed one by one, give the same numbers."""
    monkeypatch.setattr(recursions, "MAX_DIRECT_CALLS", direct_calls)
    for name in ("mixed", "bush", "floating"):
        mechanism = MECHANISMS[name]()
        r, given = made(mechanism, *METHODS[0]), arguments(mechanism, METHODS[0][1])
        found = evaluated(r, recursions.recursion_loops(r), once=True, **given)
        for key, array in r.evaluate(**given).items():
            close(found[key], array, 1e-12)


def test_oversized_recursion_raises_when_written_out() -> None:
    r = made(zoo.chain(20), "aba", "forward_dynamics")
    assert r.written.nodes
    huge = choose_graph(zoo.chain(400), Request("forward_dynamics"))[1]
    huge.__dict__["counts"] = [10**6] * len(huge.cells)  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="one by one"):
        _ = huge.nodes


def test_nothing_is_written_out_for_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first call of 10,000 bodies would take ten times as long.

    Checked for one state, a batch, and steps of a run.
    """

    def written(self: Recursion) -> Any:
        raise AssertionError("written out")

    monkeypatch.setattr(Recursion, "written", property(written))
    rope = zoo.chain(203)  # no other test compiles this one
    state = rope.random(0, (9,))
    of_many = rope.forward_dynamics(*state)
    close(rope.forward_dynamics(*(x[3] for x in state)), of_many[3], 1e-12)
    assert np.isfinite(simulate(rope, seconds=0.002, q0=state[0][0]).q).all()


def test_runs_go_through_the_same_loops() -> None:
    """A released rope of 70 bodies: a run with loops, and one with straight-line code of another method."""
    rope = zoo.chain(70)
    start = {"q0": np.full(70, 0.01), "v0": np.zeros(70), "integrator": "rk4", "step": 1e-3}
    found = simulate(rope, seconds=0.005, **start)
    expected = simulate(rope, seconds=0.005, method="denoc", **start)
    close(found.q, expected.q, 1e-12)
    close(found.v, expected.v, 1e-10)
