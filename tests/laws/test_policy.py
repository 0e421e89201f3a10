"""Decisions of build/policy.py: they are those of a table, and each comes with the numbers that were compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_rolled_shares import beams

import bellcrank as bc
from bellcrank.build import policy
from bellcrank.build.policy import check_request
from bellcrank.dynamics import METHODS, applicable_methods, candidates
from bellcrank.dynamics.method_table import COUPLED_MARGIN, ESTIMATE_MARGIN, STRONG_METHODS, estimate
from bellcrank.dynamics.quantities import QUANTITIES, Request
from bellcrank.errors import InputError
from trees import random_tree

TABLE = Path(__file__).parents[1] / "golden" / "decisions.txt"
SIZES = (
    *("chain:58", "chain:60", "chain:63", "chain:64", "chain:100", "chain:161", "chain:400"),
    *("tree:63", "tree:255", "random_tree:1,63", "random_tree:1,300", "rope:70"),
    *("n_four_bar:4", "four_bars:20", "track:40", "tied_tree:127", "ring:12"),
)
NAMES = (
    *(n for n in bc.zoo.names() if n not in ("chain", "tree", "random_tree", "rope", "track", "tied_tree")),
    *SIZES,
)
SPECIAL: dict[str, dict[str, Any]] = {
    "springs": {"springs": True},
    "mimic joints": {"mimic": True},
    "floating": {"base": "floating"},
    "two ties": {"ties": 2},
}


def hanging(n: int, springs: bool = False, mimic: bool = False, base: str = "", ties: int = 0) -> bc.Mechanism:
    """A chain of identical links."""
    b = bc.Builder(f"hanging{n}", gravity=(0.0, 0.0, 0.0) if base else (0.0, 0.0, -9.81))
    for i in range(n):
        top, kind = (0.0, 0.0, -0.2 * i), base if base and not i else "revolute"
        b.body(f"l{i}", mass=0.5, com=(0.01, 0.02, -0.2 * i - 0.1), inertia=(2e-3, 2e-3, 1e-3))
        given: dict[str, Any] = {} if kind == "floating" else {"axis": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))[i % 2]}
        given |= {"mimic": (f"j{i - 2}", 0.5, 0.01)} if mimic and i % 3 == 2 else {}
        b.joint(f"j{i}", kind, f"l{i - 1}" if i else "ground", f"l{i}", point=top, **given)
    for i in range(0, n - 2, 2) if springs else ():
        ends = (0.05, 0.0, -0.2 * i), (0.05, 0.0, -0.2 * i - 0.4)
        b.spring(f"s{i}", f"l{i}", f"l{i + 2}", *ends, stiffness=20.0, length=0.35, damping=0.5)
    for i in range(ties):
        at = -0.2 * (n - 1 - 3 * i)
        b.close(f"tie{i}", "distance", "ground", f"l{n - 1 - 3 * i}", point_a=(1.0, 0.3, at), point_b=(0.0, 0.0, at))
    return b.build()


def requests(m: bc.Mechanism) -> list[tuple[str, Request]]:
    """All requests that can be answered, each with its name."""
    tip = list(m.frames)[-1]
    found = []
    for name, q in QUANTITIES.items():
        frame = tip if q.option == "frame" else ""
        each = [(name, Request(name, frame=frame))]
        each += [(f"{name}/packed", Request(name, packed=True))] if q.symmetric else []
        each += [(f"{name}/wrenches", Request(name, wrenches=(tip,)))] if q.option == "frames" else []
        for label, request in each:
            try:
                check_request(m, request)
            except InputError:
                continue
            found.append((label, request))
    return found


def decisions(m: bc.Mechanism) -> str:
    """Return what is not straight-line code, by its form."""
    groups: dict[str, list[str]] = {"rolled passes": ["frames"]} if policy.passes(m.tree)[0] else {}
    for label, request in requests(m):
        strategy, q = policy.choose(m, request, cores=True), QUANTITIES[request.quantity]
        for p in strategy.plans:
            if p.form != policy.STRAIGHT:
                groups.setdefault(p.form, []).append(f"{label} by {p.method.name}")
        if strategy.wide:
            groups.setdefault(strategy.wide.form, []).append(label)
        if "/" not in label and q.option != "frame" and policy.columns(m, q):
            groups.setdefault(policy.COLUMNS, []).append(label)
    return (
        "".join(f"    {form}: {', '.join(labels)}\n" for form, labels in groups.items()) or "    straight-line code\n"
    )


def table() -> str:
    """Return the decisions for all mechanisms of the table."""
    found = {name: bc.zoo.load(name) for name in NAMES}
    found |= {f"{n} links, {what}": hanging(n, **kind) for n in (20, 70) for what, kind in SPECIAL.items()}
    return "".join(f"{name}\n{decisions(m)}" for name, m in found.items())


def test_decisions_are_those_of_the_table() -> None:
    """The table was written by the predicates that policy.py replaced; a changed line needs a reason."""
    assert table() == TABLE.read_text("utf-8")


def kinds(kind: str, n: int) -> bc.Mechanism:
    return random_tree(0, [kind] * n, rooted=True)


WIDELY_TRIED = {"6 slides": lambda: kinds("prismatic", 6), "3 balls": lambda: kinds("spherical", 3)}
WIDELY_TRIED |= {f"{n} mimic joints": lambda n=n: hanging(n, mimic=True) for n in (6, 30)}
WIDELY_TRIED |= {"2 beams": lambda: beams(2)}
NARROWLY_TRIED = {f"chain of {n}": lambda n=n: bc.zoo.chain(n) for n in (6, 30)}
NARROWLY_TRIED |= {"30 slides": lambda: kinds("prismatic", 30), "20 balls": lambda: kinds("spherical", 20)}
NARROWLY_TRIED |= {"8 beams": lambda: beams(8)}


@pytest.mark.parametrize("name", [*WIDELY_TRIED, *NARROWLY_TRIED])
@pytest.mark.parametrize("quantity", ["forward_dynamics", "mass_matrix"])
def test_auto_tries_the_methods_whose_estimates_are_near_the_least(name: str, quantity: str) -> None:
    """The estimate is for revolute joints: with others more methods are tried, where little work makes that cheap."""
    tree = (WIDELY_TRIED | NARROWLY_TRIED)[name]().tree
    work = {by.name: estimate(by.name, quantity, tree) for by in applicable_methods(quantity, tree)}
    margin = COUPLED_MARGIN if name in WIDELY_TRIED else ESTIMATE_MARGIN
    near = {by for by, x in work.items() if x <= margin * min(filter(None, work.values()))} - set(STRONG_METHODS)
    assert {by.name for by in candidates(quantity, tree)} - set(STRONG_METHODS) == near


def test_reasons_have_the_numbers() -> None:
    chain = bc.zoo.chain(100)
    (plan,) = policy.choose(chain, Request("forward_dynamics")).plans
    assert (plan.method.name, plan.form) == ("aba", policy.ROLLED)
    work = f"{plan.work:,.0f} operations > 25,000"
    assert plan.reasons == (work, "400 numbers <= 1,000", "25 bodies per link class >= 4")
    packed = policy.plan(chain, Request("mass_matrix", packed=True), METHODS["crba"])
    assert packed.form == policy.STRAIGHT
    assert packed.reasons == ("a packed matrix has no rolled loops",)
    assert policy.passes(bc.zoo.chain(63).tree) == (False, ("63 bodies < 64",))


def test_reasons_follow_the_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The texts are those of the comparisons that decide."""
    chain, request = bc.zoo.chain(70), Request("forward_dynamics")
    monkeypatch.setattr(policy, "MIN_BODIES_PER_CLASS", 40)
    plan = policy.plan(chain, request, METHODS["aba"])
    assert plan.form == policy.STRAIGHT
    assert plan.reasons[-1] == "17.5 bodies per link class < 40"
    monkeypatch.setattr(policy, "MAX_STRAIGHT_OPERATIONS", 10**6)
    assert policy.plan(chain, request, METHODS["aba"]).reasons[-1] == "280 numbers <= 1,000"


def test_cached_kernel_of_mimic_joints_has_its_graph() -> None:
    """The cached method may be rolled aba, which answers for mimic joints only in loops."""
    made = [bc.kernel(hanging(70, mimic=True), "forward_dynamics") for _ in range(2)]
    assert [k.method for k in made] == ["aba", "aba"]
    assert made[1].from_cache
    assert made[1].graph.count() == made[0].graph.count()


def test_choice_is_pure() -> None:
    """Equal arguments give equal strategies, also of a copy, and nothing is traced."""
    m, request = bc.zoo.load("chain:400"), Request("forward_dynamics")
    first, again = policy.choose(m, request, cores=True), policy.choose(bc.zoo.load("chain:400"), request, cores=True)
    assert first.plans == again.plans
    assert first.wide == again.wide
    assert first.wide is not None
    assert first.wide.form == policy.SEGMENTS
