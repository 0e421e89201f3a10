"""The table of methods: name, what it solves, for which topology, citation. One file per published method.

A quantity is a function of a mechanism's state; a method is one way to compute one or several of them. Every function
has the form f(tree, *inputs, **options) over any scalar; see kinematics.py for the simplest and aba.py for the best
known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import wrap
from types import ModuleType
from typing import Any

from bellcrank.errors import InputError, unknown
from bellcrank.methods import (
    aba,
    absolute,
    angeles,
    bae_hwang,
    crba,
    featherstone,
    hemami,
    joint_coordinates,
    joint_coordinates_recursive,
    kinematics,
    ness,
    rnea,
    walker_orin,
)  # fmt: skip
from bellcrank.methods.mass_matrix import ocrb, oke, oneb, vcrb, vcrb_parallel, vke, vneb, vneb_parallel
from bellcrank.methods.quantities import QUANTITIES, Quantity, quantity, shape_of
from bellcrank.model.tree import Tree
from bellcrank.text import table

__all__ = [
    "METHODS", "QUANTITIES", "Method", "MethodTable", "Quantity",
    "candidates", "estimate", "method", "quantity", "shape_of",
]  # fmt: skip


def _trees(tree: Tree) -> bool:
    return True


def _uncoupled(tree: Tree) -> bool:
    return not tree.coupled


@dataclass(frozen=True)
class Method:
    name: str
    module: ModuleType
    solves: tuple[str, ...]
    topology: str
    citation: str
    applies: Callable[[Tree], bool] = _trees
    work: tuple[float, float, float] = (100.0, 0.0, 0.0)  # rough operations by body, pair and triple: see `estimate`
    regrouped: bool = True  # may be given emptied bodies (model/regroup.py); not where it divides by a body's mass

    def function(self, quantity: str) -> Callable[..., Any]:
        return getattr(self.module, quantity)  # type: ignore[no-any-return]


def estimate(by: Method, tree: Tree) -> float:
    """Rough operations, enough to skip the hopeless without tracing them: pairs and triples are along a path."""
    one, two, three = by.work
    total = 0.0
    depth: list[int] = []
    for link in tree.links:
        d = 1 + (depth[link.parent] if link.parent >= 0 else 0)
        depth.append(d)
        total += one + two * d + three * d * d
    return total


WALKER = (
    "M. W. Walker, D. E. Orin. Efficient dynamic computer simulation of robotic mechanisms. "
    "ASME Journal of Dynamic Systems, Measurement, and Control 104(3), 205-211, 1982."
)
FIJANY = (
    "A. Fijany. Serial and parallel computation of Kane's equations for multibody dynamics. "
    "Jet Propulsion Laboratory, California Institute of Technology, 1989."
)
BEJCZY = (
    "A. Fijany, A. Bejczy. A class of parallel algorithms for the computation of the manipulator inertia matrix. "
    "IEEE Transactions on Robotics and Automation 5(5), 600-615, 1989."
)

METHODS: dict[str, Method] = {
    row.name: row
    for row in (
        Method(
            "rnea",
            rnea,
            ("inverse_dynamics", "bias", "gravity_torque"),
            "trees, couplings",
            "J. Y. S. Luh, M. W. Walker, R. P. C. Paul. On-line computational scheme for mechanical manipulators. "
            "ASME Journal of Dynamic Systems, Measurement, and Control 102(2), 69-76, 1980.",
        ),
        Method(
            "crba",
            crba,
            ("forward_dynamics", "mass_matrix"),
            "trees, couplings",
            WALKER,
            work=(100.0, 12.0, 1.0),
        ),
        Method(
            "aba",
            aba,
            ("forward_dynamics",),
            "trees",
            "R. Featherstone. The calculation of robot dynamics using articulated-body inertias. "
            "The International Journal of Robotics Research 2(1), 13-30, 1983.",
            applies=_uncoupled,
            work=(220.0, 0.0, 0.0),
        ),
        Method(
            "walker_orin",
            walker_orin,
            ("forward_dynamics", "mass_matrix"),
            "trees, couplings",
            "M. W. Walker, D. E. Orin. Efficient dynamic computer simulation of robotic mechanisms. "
            "ASME Journal of Dynamic Systems, Measurement, and Control 104(3), 205-211, 1982.",
            work=(150.0, 12.0, 1.0),
            regrouped=False,
        ),
        Method(
            "featherstone",
            featherstone,
            ("forward_dynamics",),
            "trees",
            "R. Featherstone. The calculation of robot dynamics using articulated-body inertias. "
            "The International Journal of Robotics Research 2(1), 13-30, 1983.",
            applies=_uncoupled,
            work=(420.0, 0.0, 0.0),
        ),
        Method(
            "bae_hwang",
            bae_hwang,
            ("mass_matrix",),
            "trees, couplings",
            "D. S. Bae, R. S. Hwang, E. J. Haug. A recursive formulation for real-time dynamic simulation. "
            "Advances in Design Automation, ASME DE-Vol. 14, 1988.",
            work=(200.0, 11.0, 0.0),
        ),
        Method(
            "oke",
            oke,
            ("mass_matrix",),
            "trees, couplings",
            "T. R. Kane, D. A. Levinson. The use of Kane's dynamical equations in robotics. "
            "The International Journal of Robotics Research 2(3), 3-21, 1983.",
            work=(300.0, 40.0, 6.0),
            regrouped=False,
        ),
        Method(
            "vke",
            vke,
            ("mass_matrix",),
            "trees, couplings",
            FIJANY,
            work=(300.0, 70.0, 0.0),
            regrouped=False,
        ),
        Method(
            "oneb",
            oneb,
            ("mass_matrix",),
            "trees, couplings",
            WALKER,
            work=(300.0, 80.0, 0.0),
            regrouped=False,
        ),
        Method("vneb", vneb, ("mass_matrix",), "trees, couplings", FIJANY, work=(300.0, 70.0, 0.0)),
        Method(
            "ocrb",
            ocrb,
            ("mass_matrix",),
            "trees, couplings",
            WALKER,
            work=(350.0, 60.0, 0.0),
            regrouped=False,
        ),
        Method("vcrb", vcrb, ("mass_matrix",), "trees, couplings", BEJCZY, work=(110.0, 17.0, 0.0)),
        Method("vneb_parallel", vneb_parallel, ("mass_matrix",), "trees, couplings", FIJANY, work=(300.0, 120.0, 0.0)),
        Method("vcrb_parallel", vcrb_parallel, ("mass_matrix",), "trees, couplings", BEJCZY, work=(350.0, 60.0, 0.0)),
        Method(
            "ness",
            ness,
            ("forward_dynamics", "mass_matrix", "bias"),
            "trees, couplings",
            "D. Wong. Parallel implementation of multibody dynamics for real-time simulation. "
            "PhD thesis, University of British Columbia, 1991.",
            work=(100.0, 60.0, 6.0),
            regrouped=False,
        ),
        Method(
            "angeles",
            angeles,
            ("forward_dynamics", "mass_matrix", "bias"),
            "trees, couplings",
            "J. Angeles, O. Ma. Dynamic simulation of n-axis serial robotic manipulators using a natural orthogonal "
            "complement. The International Journal of Robotics Research 7(5), 32-47, 1988.",
            work=(150.0, 50.0, 6.0),
            regrouped=False,
        ),
        Method(
            "hemami",
            hemami,
            ("forward_dynamics", "mass_matrix", "bias"),
            "trees, couplings",
            "H. Hemami. A state space model for interconnected rigid bodies. "
            "IEEE Transactions on Automatic Control AC-27(2), 376-382, 1982.",
            work=(200.0, 80.0, 6.0),
            regrouped=False,
        ),
        Method(
            "joint_coordinates",
            joint_coordinates,
            ("forward_dynamics", "mass_matrix", "bias"),
            "trees, couplings",
            "P. E. Nikravesh, G. Gim, A. Arabyan, U. Rein. Systematic generation of multibody equations of motion "
            "suitable for recursive and parallel manipulation. University of Arizona, NASA N90-22992, 1989.",
            work=(300.0, 40.0, 8.0),
            regrouped=False,
        ),
        Method(
            "joint_coordinates_recursive",
            joint_coordinates_recursive,
            ("forward_dynamics",),
            "trees",
            "R. A. Wehage. Application of matrix partitioning and recursive projection to O(n) solution of constraint "
            "equations of motion. 20th ASME Mechanisms Conference, Orlando, 1988.",
            applies=_uncoupled,
            work=(700.0, 0.0, 0.0),
            regrouped=False,
        ),
        Method(
            "absolute",
            absolute,
            ("forward_dynamics",),
            "trees, no point masses",
            "P. E. Nikravesh. Computer-Aided Analysis of Mechanical Systems. Prentice Hall, 1988.",
            applies=absolute.applies,
            work=(1500.0, 0.0, 0.0),
            regrouped=False,
        ),
        Method(
            "kinematics",
            kinematics,
            (
                "passive_torque", "kinetic_energy", "potential_energy", "pose", "velocity", "jacobian",
                "com", "momentum", "rate", "integrate",
            ),
            "trees, couplings",
            "R. Featherstone. Rigid Body Dynamics Algorithms. Springer, 2008.",
        ),
    )
}  # fmt: skip


def method(name: str, quantity_name: str, tree: Tree) -> Method:
    """The named method, if it solves the quantity for this tree."""
    able = [m.name for m in METHODS.values() if quantity_name in m.solves and m.applies(tree)]
    if name not in METHODS:
        raise InputError(unknown("method", name, ["auto", *able]))
    if name not in able:
        found = METHODS[name]
        why = f"it covers {found.topology}" if quantity_name in found.solves else f"it solves {', '.join(found.solves)}"
        raise InputError(
            f'method "{name}" does not give {quantity_name} of this mechanism: {why}. '
            f"Use: {', '.join(['auto', *able])}."
        )
    return METHODS[name]


def candidates(quantity_name: str, tree: Tree) -> list[Method]:
    """What "auto" chooses from: all that apply, less those that a rough estimate puts far behind."""
    able = [m for m in METHODS.values() if quantity_name in m.solves and m.applies(tree)]
    least = min(estimate(m, tree) for m in able)
    return [m for m in able if estimate(m, tree) <= 3.0 * least]


class MethodTable:
    """Prints as a table; iterates over the methods."""

    def __iter__(self) -> Any:
        return iter(METHODS.values())

    def __len__(self) -> int:
        return len(METHODS)

    def __getitem__(self, name: str) -> Method:
        if name not in METHODS:
            raise InputError(unknown("method", name, METHODS))
        return METHODS[name]

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = []
        solves = {m.name: wrap(", ".join(m.solves), 22) for m in METHODS.values()}
        taken = sum(
            max(map(len, column))
            for column in (METHODS, [line for cell in solves.values() for line in cell], [m.topology for m in self])
        )
        for m in METHODS.values():  # wrapped to 100 columns, nothing cut
            source = wrap(m.citation, 100 - taken - 3 * 2, break_on_hyphens=False)
            rows += zip_longest([m.name], solves[m.name], [m.topology], source, fillvalue="")
        return table(("method", "solves", "topology", "source"), rows)

    __repr__ = __str__
