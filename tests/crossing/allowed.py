"""Combinations that are excluded from the crossed cases, each with its reason; all others must work.

A rule is a set of terms, (dimension, values); it forbids a case that has one of the values of every term. `REFUSED`
lists combinations that the package refuses by design, with words that the error must contain, so that a test can check
them. `MEANINGLESS` lists combinations without a meaning, `UNWRITTEN` those that a file format cannot express.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.dynamics.quantities import QUANTITIES
from crossing.features import QUANTITY_SUITE, SYSTEM_SUITE
from crossing.files import JOINTS
from crossing.mechanisms import TAIL, freedoms
from crossing.pairwise import Case, Value
from crossing.thresholds import SEGMENTED


@dataclass(frozen=True)
class Rule:
    reason: str
    terms: tuple[frozenset[Value], ...]

    def forbids(self, case: Sequence[Value]) -> bool:
        """Return whether a case has one of the values of every term."""
        return all(not term.isdisjoint(case) for term in self.terms)


def rule(reason: str, **terms: str | tuple[str, ...]) -> Rule:
    """Make a rule: dimension="value" or dimension=("value", "value")."""
    each = {name: (values,) if isinstance(values, str) else values for name, values in terms.items()}
    return Rule(reason, tuple(frozenset((name, x) for x in values) for name, values in each.items()))


def but(dimension: str, *values: str) -> tuple[str, ...]:
    """Return all values of a dimension except these."""
    known = (SYSTEM_SUITE if dimension in SYSTEM_SUITE else QUANTITY_SUITE)[dimension].values
    return tuple(x for x in known if x not in values)


MOST_FREEDOMS, MOST_DIFFERENTIATED = 14, 10  # limits of the degrees of freedom of the tree of a case
HEAVY = {
    *(
        ("way", x)
        for x in ("gradient", "linearize", "equilibrium", "schedule", "export fmu2", "export fmu3", "export casadi")
    ),
    *(("integrator", x) for x in ("rodas4", "midpoint")),
    *(("quantity", x) for x, q in QUANTITIES.items() if q.differentiates),
}
EXPORTS = tuple(x for x in SYSTEM_SUITE["way"].values if x.startswith("export"))
SAMPLED = ("sampled", "sampled outputs")
NONHOLONOMIC = ("ball_on_plane", "wheel_on_plane", "knife_edge")

REFUSED: list[Rule] = [
    rule(
        "only integrators that estimate their error choose steps",
        integrator=("euler", "rk4", "midpoint"),
        steps="chosen",
    ),
    rule("periods of samples are whole numbers of fixed steps", control=SAMPLED, steps="chosen"),
    rule("a start that moves alone leaves closed loops open", way="sensitivities", closure=but("closure", "none")),
    rule("samples change the state at once", way="sensitivities", control=SAMPLED),
    rule("a switch changes the state at once", way="sensitivities", event="switch"),
    rule("a system that holds between samples has no rates", way=("linearize", "equilibrium"), control=SAMPLED),
    rule("equations between velocities have no displacements", way=("linearize", "equilibrium"), closure=NONHOLONOMIC),
    Rule(
        "the mass of a body that bends has no one place",
        (frozenset({("trait", "flexible")}), frozenset({("trait", "force everywhere")})),
    ),
    rule("events cut steps, and samples need whole ones", control=SAMPLED, event=but("event", "none")),
    rule("threads share out states, cores share out each state", threads="2", use="cores"),
]
# Known defects that are not repaired yet: such cases are not run, and a test expects the example to fail.
KNOWN: list[tuple[Rule, Case]] = []
MEANINGLESS: list[Rule] = [
    rule("without loops there is no form", closure="none", form=("minimal", "projected", "lagrange")),
    rule("a switch changes the energy at once", way="energy", event="switch"),
    rule("threads share out kernels, not schedules", threads="2", use="schedule"),
    rule("a schedule is of graphs, which have one precision", dtype="float32", use="schedule"),
    rule("branches that close loops are not cut into segments", path=SEGMENTED, closure=but("closure", "none")),
    rule(
        "branches are cut where each body has coordinates of its own and numbers that are known",
        path=SEGMENTED,
        trait=("mimic", "spring", "free numbers", "flexible"),
    ),
]
UNWRITTEN: list[Rule] = [
    rule("URDF has no such joint", source="urdf", joint=but("joint", *JOINTS["urdf"])),
    rule("MJCF makes such joints of several", source="mjcf", joint=("helical", "cylindrical", "universal", "planar")),
    rule("in MJCF only what hangs on the world is free", source="mjcf", joint="floating"),
    rule("in MJCF a joint that follows another has a coordinate, and a loop holds it", source="mjcf", trait="mimic"),
    rule("neither has springs between two points", source=("urdf", "mjcf"), trait="spring"),
    rule("neither has bodies that bend", source=("urdf", "mjcf"), trait="flexible"),
]


def waits(case: Sequence[Value]) -> bool:
    """Return whether a case, or a part of one, contains a known defect that is not repaired yet."""
    return any(r.forbids(case) for r, _ in KNOWN)


def small(case: Sequence[Value]) -> bool:
    """Return whether a case takes only seconds: derivatives and solvers in code grow with the cube of the freedoms."""
    joints = [value for name, value in case if name == "joint"]
    loops = [value for name, value in case if name == "closure" and value != "none"]
    bends, cut = ("trait", "flexible") in case, ("path", SEGMENTED) in case
    source = next((value for name, value in case if name == "source"), "built")
    return freedoms(joints, loops, source) + 4 * bends + TAIL * cut <= (
        MOST_DIFFERENTIATED if HEAVY & set(case) else MOST_FREEDOMS
    )


def allowed(case: Sequence[Value]) -> bool:
    """Return whether a case, or a part of one, breaks no rule and is small enough for a test."""
    return small(case) and not any(r.forbids(case) for r in (*REFUSED, *MEANINGLESS, *UNWRITTEN))
