"""Schaefer and Schiehlen 1992: the equations (5), (6), (7), and the graph's view of section 3.

The paper prints no operation counts. It prints times on transputers for the Stanford arm: 1596 us on one, 1141 us on
three, a speed-up of 1.4 by strategies 2 and 3 together, and 1.8 with about 500 us of control on the third. Times here
are the operations of the traced graph with the costs of Wong 1991 for the same processor (published.toml: 1 us a
multiplication, 0.5 us an addition, 7 us a sine or cosine, 12 us to send three numbers), without fetching and storing.
Modules are the nodes that an output needs. The paper's arm is Kane and Levinson's; ours, Saha's, has the same five
hinges and one slide.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build.graphs import graph
from bellcrank.dynamics import aba
from bellcrank.dynamics.historical import newton_euler_symbolic
from bellcrank.dynamics.historical.free_bodies import applied_forces, body_jacobians, place_bodies
from bellcrank.dynamics.historical.orthogonal_complement import inertia_matrix, project_forces
from bellcrank.dynamics.ltl_factorisation import coordinate_names, full_matrix, solve
from bellcrank.graph import Graph, trace
from bellcrank.model import Mechanism
from bellcrank.nodes.node import Node
from bellcrank.nodes.ops import OPS
from bellcrank.papers import operation_counts as papers
from trees import ALL, close, random_tree, state

TRANSPUTER = papers.published()["transputer"]
PRICE = {"sin": TRANSPUTER["sincos_us"], "cos": TRANSPUTER["sincos_us"]} | {
    "mul": TRANSPUTER["multiply_us"],
    "div": TRANSPUTER["multiply_us"],
    "add": TRANSPUTER["add_us"],
    "sub": TRANSPUTER["add_us"],
    "neg": 0.0,
}
# Labels of free_bodies.py: positions and axes of the bodies, the paper's J (B there) and I (J there).
FREE = {"pose", "r", "u", "B", "J"}
GENERAL = random_tree(7, [*ALL, "revolute"], [0, 0, 1, 1, 2, 3, 5, 4])


# -- section 2: the equations


def global_form(m: Mechanism, q: Any, v: Any, tau: Any) -> dict[str, Any]:
    """J, Mbar, kbar, qbar, Qbar of (4) and (5) as matrices of numbers."""
    bodies, n = place_bodies(m.tree, q, v), len(m.bodies)
    J, Mbar = np.zeros((6 * n, m.nv)), np.zeros((6 * n, 6 * n))
    for i, (body, columns) in enumerate(zip(bodies, body_jacobians(m.tree, bodies))):
        for k, column in columns.items():
            J[6 * i : 6 * i + 6, k] = [*column.lin, *column.ang]
        Mbar[6 * i : 6 * i + 3, 6 * i : 6 * i + 3] = body.M.m * np.eye(3)
        Mbar[6 * i + 3 : 6 * i + 6, 6 * i + 3 : 6 * i + 6] = [[*row] for row in body.M.I.rows]
    kbar, qbar = newton_euler_symbolic.coriolis(m.tree, bodies, v), applied_forces(m.tree, q, bodies)
    held, N, _, _ = newton_euler_symbolic.equations(m.tree, q, v, tau, bodies)
    Qbar = np.zeros((6 * n, len(held)))
    for column, one in enumerate(held):
        for i, f in one.T.items():
            Qbar[6 * i : 6 * i + 6, column] = [*f.lin, *f.ang]
    stacked = {"kbar": kbar, "qbar": qbar}
    vectors = {name: np.array([x for f in fs for x in (*f.lin, *f.ang)]) for name, fs in stacked.items()}
    return {"J": J, "Mbar": Mbar, "Qbar": Qbar, "N": np.array(full_matrix(N)), **vectors}


def test_constraint_forces_do_no_work() -> None:
    """Qbar^T J = 0, and the directions are complete: f + q = 6 p."""
    g = global_form(GENERAL, *state(GENERAL))
    assert np.abs(g["Qbar"].T @ g["J"]).max() < 1e-14
    both = np.hstack([g["Qbar"], g["J"]])
    assert both.shape == (6 * len(GENERAL.bodies),) * 2
    assert np.linalg.matrix_rank(both) == len(both)


def test_the_newton_euler_equations_of_all_bodies_hold() -> None:
    """(5) holds with constraint forces from (7) and accelerations by another method; so do (6) and (2)."""
    q, v, tau = state(GENERAL)
    tau = [0.0] * GENERAL.nv  # so that qbar is gravity alone
    g = global_form(GENERAL, q, v, tau)
    a = np.array(aba.forward_dynamics(GENERAL.tree, q, v, tau))
    held, N, right, _ = newton_euler_symbolic.equations(GENERAL.tree, q, v, tau, place_bodies(GENERAL.tree, q, v))
    forces = solve(N, right, [""] * len(held))
    close(g["Mbar"] @ g["J"] @ a + g["kbar"], g["qbar"] + g["Qbar"] @ forces, 1e-10)
    M = g["J"].T @ g["Mbar"] @ g["J"]
    close(newton_euler_symbolic.mass_matrix(GENERAL.tree, q), M, 1e-13)
    close(M @ a + g["J"].T @ g["kbar"], g["J"].T @ g["qbar"], 1e-10)
    close(newton_euler_symbolic.bias(GENERAL.tree, q, v), g["J"].T @ (g["kbar"] - g["qbar"]), 1e-12)


@pytest.mark.parametrize("armature", [False, True])
def test_the_matrix_of_reactions_is_symmetric_and_positive_definite(armature: bool) -> None:
    m = random_tree(3, [*ALL, "revolute"], [0, 0, 1, 1, 2, 3, 5, 4], armature=armature)
    g = global_form(m, *state(m))
    rotors = np.diag(g["N"] - g["Qbar"].T @ np.linalg.inv(g["Mbar"]) @ g["Qbar"])
    close(g["N"] - np.diag(rotors), g["Qbar"].T @ np.linalg.inv(g["Mbar"]) @ g["Qbar"], 1e-12)
    assert np.linalg.eigvalsh(g["N"]).min() > 0
    assert rotors.max() > 1 if armature else np.abs(rotors).max() < 1e-10


def test_only_joints_on_the_same_body_meet_in_the_matrix_of_reactions() -> None:
    m = bc.zoo.chain(8, twist="general")
    q, v, tau = state(m)
    _, N, _, _ = newton_euler_symbolic.equations(m.tree, q, v, tau, place_bodies(m.tree, q, v))
    assert [sorted({column // 5 for column in row}) for row in N[::5]] == [[0]] + [[i, i + 1] for i in range(7)]


def test_the_equations_of_reaction_do_not_wait_for_those_of_motion() -> None:
    """Section 3: completely independent. In a graph of both, (7) uses no computed element of M.

    It uses neither the factors of M nor an acceleration; both share the free bodies, kbar and qbar.
    """
    m = bc.zoo.stanford()

    def both(q: Any, v: Any, tau: Any) -> dict[str, Any]:
        M = newton_euler_symbolic.mass_matrix(m.tree, q)
        ydd = newton_euler_symbolic.forward_dynamics(m.tree, q, v, tau)
        return {"M": M, "ydd": ydd, "reactions": newton_euler_symbolic.reactions(m.tree, q, v, tau)}

    g = trace("both", both, {"q": (6,), "v": (6,), "tau": (6,)})
    parts = modules(g)
    shared = {s: n for s, n in parts["reactions"].items() if s in parts["ydd"]}
    assert letters(shared.values()) <= FREE | {"k", "g", "passive", "M"}
    assert not shared.keys() & {x.serial for x in g.outputs["M"].flat if isinstance(x, Node)}
    by_accident = [n for n in shared.values() if n.label.startswith("M")]  # products that occur in both by coincidence
    assert len(by_accident) < 0.05 * len(shared)


# -- section 3: the strategies in the graph


def modules(g: Graph) -> dict[str, dict[int, Node]]:
    """The operations that each output needs, by serial."""
    parts = {name: Graph(name, g.inputs, {name: array}, g.tape) for name, array in g.outputs.items()}
    return {name: {n.serial: n for n in part.nodes if n.op != "input"} for name, part in parts.items()}


def motion(m: Mechanism) -> Graph:
    """(6) with its parts as outputs."""
    t = m.tree

    def parts(q: Any, v: Any, tau: Any) -> dict[str, Any]:
        bodies = place_bodies(t, q, v)
        J = body_jacobians(t, bodies)
        kbar, qbar = newton_euler_symbolic.coriolis(t, bodies, v), applied_forces(t, q, bodies)
        M, k = inertia_matrix(t, J, [body.M for body in bodies]), project_forces(t, J, kbar, "k")
        qa = [x + u for x, u in zip(project_forces(t, J, qbar, "q"), tau)]
        ydd = solve(M, [x - y for x, y in zip(qa, k)], coordinate_names(t))
        flat = {"kbar": kbar, "qbar": qbar}
        columns = [[*column.lin, *column.ang] for row in J for column in row.values()]
        vectors = {name: [[*f.lin, *f.ang] for f in fs] for name, fs in flat.items()}
        return {"J": columns, "M": full_matrix(M), "k": k, "q": qa, "ydd": ydd, **vectors}

    return trace(f"{m.name}.motion", parts, {"q": (t.nq,), "v": (t.nv,), "tau": (t.nv,)})


def microseconds(nodes: Iterable[Node]) -> float:
    return sum(PRICE[n.op] for n in nodes)


def letters(nodes: Iterable[Node]) -> set[str]:
    return {n.label.partition("[")[0] for n in nodes}


def inputs_needed(g: Graph) -> dict[int, set[tuple[str, int]]]:
    """The inputs on which every node depends."""
    needs: dict[int, set[tuple[str, int]]] = {}
    for n in g.nodes:
        needs[n.serial] = {n.args} if n.op == "input" else set().union(*(needs[a.serial] for a in n.operands))
    return needs


def factors(g: Graph, parts: dict[str, dict[int, Node]]) -> dict[int, Node]:
    """The factorisation: the part of the solution of (6) that needs neither velocities nor forces."""
    needs = inputs_needed(g)
    solution = {s: n for s, n in parts["ydd"].items() if n.label.startswith("L[")}
    return {s: n for s, n in solution.items() if {name for name, _ in needs[s]} == {"q"}}


@pytest.mark.parametrize("make", [bc.zoo.stanford, bc.zoo.puma600, bc.zoo.torso], ids=lambda f: f.__name__)
def test_strategy_2_the_global_vectors_share_where_the_bodies_are_and_nothing_else(make: Any) -> None:
    """J, kbar and qbar share only positions and are computed completely concurrently; M, k and q also share J."""
    parts = modules(motion(make()))

    def shared(a: str, b: str) -> set[str]:
        return letters(n for s, n in parts[a].items() if s in parts[b])

    assert shared("J", "kbar") <= {"pose", "r", "u", "B"}  # B: differences of positions
    assert shared("J", "qbar") <= {"pose", "r"}
    assert shared("kbar", "qbar") <= {"pose", "r"}
    assert shared("M", "k") <= FREE
    assert shared("M", "q") <= {"pose", "r", "u", "B"}
    assert shared("k", "q") <= {"pose", "r", "u", "B"}
    # Less than 0.6 of M and k is shared, so one processor for each is worthwhile.
    assert all(len(parts["M"].keys() & parts["k"].keys()) < 0.6 * len(parts[name]) for name in "Mk")


def test_strategy_3_the_factorisation_runs_beside_the_force_vectors() -> None:
    g = motion(bc.zoo.stanford())
    parts = modules(g)
    L = factors(g, parts)
    assert L
    assert not L.keys() & (parts["M"].keys() | parts["k"].keys() | parts["q"].keys())
    # If this one runs beside k and q, only two triangular solutions remain for the end.
    end = parts["ydd"].keys() - L.keys() - parts["M"].keys() - parts["k"].keys() - parts["q"].keys()
    assert microseconds(parts["ydd"][s] for s in end) < 0.05 * microseconds(parts["ydd"].values())


def test_strategy_1_branches_of_a_tree_share_the_trunk_alone() -> None:
    """Head and arms of the torso share only results of the trunk's angle and speed."""
    m = bc.zoo.torso()
    g, head_and_arms = motion(m), [i for i, up in enumerate(m.parent) if up == 0]
    assert len(head_and_arms) == 3
    needs = inputs_needed(g)
    branch = {}
    for root in head_and_arms:
        rows = [i for i in range(len(m.bodies)) if i == root or m.parent[i] == root]
        branch[root] = modules(Graph("branch", g.inputs, {"x": g.outputs["kbar"][rows]}, g.tape))["x"]
    for a in head_and_arms:
        for b in head_and_arms:
            if a < b:
                shared = branch[a].keys() & branch[b].keys()
                assert set().union(*(needs[s] for s in shared)) <= {("q", 0), ("v", 0)}
                assert len(shared) < 0.15 * (len(branch[a]) + len(branch[b]))


def three(m: Mechanism) -> tuple[float, list[float], float]:
    """Times on one processor, and on three with strategies 2 and 3.

    On three: [M and its factors, k, q], each with its own kinematics; and the end, after the vector k has been sent.
    """
    g = motion(m)
    parts = modules(g)
    L = factors(g, parts)
    end = parts["ydd"].keys() - L.keys() - parts["M"].keys() - parts["k"].keys() - parts["q"].keys()
    beside = [
        microseconds([*parts["M"].values(), *L.values()]),
        microseconds(parts["k"].values()),
        microseconds(parts["q"].values()),
    ]
    send = TRANSPUTER["send_3_floats_us"] * m.nv / 3
    return microseconds(parts["ydd"].values()), beside, send + microseconds(parts["ydd"][s] for s in end)


def test_the_speed_up_of_the_stanford_arm_on_three_transputers() -> None:
    one, beside, end = three(bc.zoo.stanford())
    assert one / (max(beside) + end) == pytest.approx(TRANSPUTER["stanford_speedup"], rel=0.1)
    # As in figure 8 the third processor, with q, is idle for most of the cycle ...
    assert beside[2] < 0.2 * max(beside)
    # ... and the other two are equally busy.
    assert beside[0] == pytest.approx(beside[1], rel=0.15)
    # The computed time at the processor's own speed is below the measured one, but not by far.
    assert 0.5 < one / TRANSPUTER["stanford_one_transputer_us"] < 1.0


def test_the_printed_speed_ups_are_those_of_the_printed_times() -> None:
    one, cycle = TRANSPUTER["stanford_one_transputer_us"], TRANSPUTER["stanford_three_transputers_us"]
    assert round(one / cycle, 1) == TRANSPUTER["stanford_speedup"]
    assert round((one + 500) / cycle, 1) == TRANSPUTER["stanford_speedup_with_control"]


def test_there_is_far_more_parallelism_than_three_processors_take() -> None:
    """Work over span: fine grain would keep some twenty processors busy, the recursive method five."""
    found = {}
    for name in ("newton_euler_symbolic", "aba"):
        g = graph(bc.zoo.stanford(), "forward_dynamics", method=name)
        found[name] = sum(OPS[n.op].cost for n in g.nodes if n.op != "input") / g.span()
    assert 15 < found["newton_euler_symbolic"] < 30
    assert found["aba"] < 0.4 * found["newton_euler_symbolic"]  # "leads to a coupling of all computations"


# -- operation counts, which the paper does not print: ours, on the general chain of papers.py

COUNTED = [
    (
        papers.PublishedCount("", "schaefer", "newton_euler_symbolic", "mass_matrix", ("q",)),
        "n^3 + 10 n^2 + 63 n - 82",
        "n^3 + 7 n^2 + 42 n - 60",
    ),
    (
        papers.PublishedCount("", "schaefer", "newton_euler_symbolic", "bias", ("q", "v")),
        "13 n^2/2 + 233 n/2 - 148",
        "13 n^2/2 + 201 n/2 - 145",
    ),
    (
        papers.PublishedCount("", "schaefer", "newton_euler_symbolic", "forward_dynamics", ("q", "v", "tau")),
        "7 n^3/6 + 15 n^2 + 677 n/6 - 138",
        "7 n^3/6 + 23 n^2/2 + 292 n/3 - 136",
    ),
    (
        papers.PublishedCount("", "schaefer", "newton_euler_symbolic", "reactions", ("q", "v", "tau")),
        "651 n - 510",
        "545 n - 475",
    ),
]


@pytest.mark.parametrize(("row", "M", "A"), COUNTED, ids=[row.function for row, _, _ in COUNTED])
def test_counts_are_known(row: papers.PublishedCount, M: str, A: str) -> None:
    """O(n^3) for M, as section 2 states for the non-recursive method; O(n) for the sparse equations of reaction."""
    found = papers.compare_counts(row)
    assert (str(found.M), str(found.A)) == (M, A)
    assert found.least_n <= 4
