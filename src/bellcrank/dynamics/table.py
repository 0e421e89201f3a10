"""The table of methods: one row for each way to a quantity, by the seeds and by others.

Every method is a file (or two) with a function for each quantity that it solves, f(tree, *inputs, **options), over any
scalar; kinematics.py is the simplest, aba.py the best known. docs/methods/family.md tells how they belong together.

The table names the files and does not load them: a kernel that comes from the cache needs none, and any other only
those by which it is traced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import zip_longest
from textwrap import wrap
from typing import Any

from bellcrank.dynamics.sources import SOURCES
from bellcrank.errors import InputError, unknown
from bellcrank.model.tree import Tree
from bellcrank.parameters import depends
from bellcrank.quoting import refused
from bellcrank.text import table as table_of  # this file is called so

WIDTH = 100  # of the printed table


def _loaded(file: Any) -> Any:
    """A file of dynamics/ by its name; whatever else has functions is there already."""
    return import_module(f"bellcrank.dynamics.{file}") if isinstance(file, str) else file


@dataclass(frozen=True)
class Topology:
    name: str
    holds: Callable[[Tree], bool]
    but: str = ""  # what it does not cover, for messages


ANY = Topology("trees, couplings", lambda tree: True)
TREES = Topology("trees", lambda tree: not tree.coupled, "no joint may follow another, and no body may bend")
BENT = Topology("trees", lambda tree: not tree.following, "no joint may follow another")
MASSIVE = Topology(
    "trees, massive bodies",
    lambda tree: (
        not tree.coupled
        and all(tree.invertible)
        and not depends([link.armature for link in tree.links])  # it divides by them
    ),
    "no joint may follow another, no body may bend, every body needs mass and extent in all directions, and no "
    "armature may be free",
)
SOLID = Topology(
    "trees, massive bodies",
    lambda tree: not tree.coupled and all(tree.invertible),
    "no joint may follow another, no body may bend, and every body needs mass and extent in all directions: it is "
    "reduced before anybody knows what it carries",
)
LOOPS = Topology("loops", lambda tree: bool(tree.loops), "it has no loops")
UNSPRUNG = Topology(
    "trees, couplings",
    lambda tree: bool(_loaded("derivatives").covered(tree)),
    "loops, springs between bodies, bodies that bend and joints of your own whose axes turn are not in it",
)
FACTORED = Topology(
    "trees, couplings",
    lambda tree: (
        not tree.flexible
        and all(
            known or not depends(link.inertia.I_centre) for known, link in zip(tree.invertible, tree.links, strict=True)
        )
    ),
    "a body whose central inertia is free needs, nominally, extent in all directions: it is divided by; none may bend",
)


@dataclass(frozen=True)
class Method:
    name: str
    module: Any  # has a function for each quantity: a file of dynamics/ by its name, or whatever has attributes
    solves: tuple[str, ...]
    covers: Topology
    source: str  # key of SOURCES, or a citation
    regrouped: bool = True  # may be given emptied bodies (model/tree.py); not where it asks for centres of mass
    also: Any = None  # a second file of the method
    narrower: tuple[tuple[str, Topology], ...] = ()  # quantities for which it covers less
    bends: bool = False  # knows bodies that bend by itself, or has nothing to do with inertia

    def __post_init__(self) -> None:
        if why := refused(self.name):
            raise InputError(f"the method {why}.")

    @property
    def topology(self) -> str:
        less = [f"{name}: {covers.name}" for name, covers in self.narrower if covers.name != self.covers.name]
        return "; ".join([self.covers.name, *less])

    @property
    def citation(self) -> str:
        return SOURCES.get(self.source, self.source)

    def covered(self, quantity: str) -> Topology:
        return dict(self.narrower).get(quantity, self.covers)

    def applies(self, tree: Tree, quantity: str) -> bool:
        return quantity in self.solves and self.covered(quantity).holds(tree)

    @property
    def file(self) -> Any:
        """What has the functions."""
        return _loaded(self.module)

    def function(self, name: str) -> Callable[..., Any]:
        """Of a quantity, or any other that the method's files have."""
        file = self.file if self.also is None or hasattr(self.file, name) else _loaded(self.also)
        found: Callable[..., Any] = getattr(file, name)
        if self.bends or name not in MODAL:
            return found

        def over_bodies_that_bend(tree: Tree, *inputs: Any, **options: Any) -> Any:
            by = found
            if tree.flexible:
                by = _loaded("bent").Bent(lambda own: getattr(self.file, own), self.solves).function(name)
            return by(tree, *inputs, **options)

        return over_bodies_that_bend


# Quantities to which the modes of bodies that bend add something: bent.py says what.
MODAL = (
    "mass_matrix", "mass_matrix_factors", "inverse_mass_matrix",
    "forward_dynamics", "inverse_dynamics", "bias", "gravity_torque", "coriolis_torque",
)  # fmt: skip

M = ("mass_matrix",)
MF = ("forward_dynamics", "mass_matrix")
B = ("bias", "gravity_torque", "coriolis_torque")
MFB = ("forward_dynamics", "mass_matrix", "bias")
MFU = ("forward_dynamics", "mass_matrix", "mass_matrix_factors", "inverse_mass_matrix")
REST = (
    "passive_torque", "kinetic_energy", "potential_energy", "pose", "velocity", "jacobian", "com", "momentum", "rate",
    "integrate", "difference",
)  # fmt: skip

FRAMES = ("poses", "acceleration", "spatial_acceleration", "jacobian_rate")
CENTRE = (
    "com", "com_velocity", "com_acceleration", "com_jacobian", "momentum", "momentum_rate", "momentum_matrix",
    "momentum_matrix_rate",
)  # fmt: skip

_ROWS = (
    # the fastest, in our own frames and inertias
    Method("rnea", "rnea", ("inverse_dynamics", *B), ANY, "luh1980", bends=True),
    Method("crba", "crba", MFU, ANY, "walker1982", bends=True),
    Method("aba", "aba", ("forward_dynamics",), BENT, "featherstone1983", bends=True),
    Method("dca", "dca", ("forward_dynamics",), SOLID, "featherstone1999", regrouped=False),
    Method("reactions", "reactions", ("reactions",), ANY, "luh1980", bends=True),
    # wong1991, and what it compares with
    Method("ness", "ness", MFB, ANY, "wong1991", regrouped=False),
    Method("hemami", "hemami", MFB, ANY, "hemami1982", regrouped=False),
    Method("angeles", "angeles", MFB, FACTORED, "angeles1988", regrouped=False),
    Method("walker_orin", "walker_orin", MF, ANY, "walker1982", regrouped=False),
    Method("featherstone", "featherstone", ("forward_dynamics",), TREES, "featherstone1983"),
    Method("bae_hwang", "bae_hwang", M, ANY, "bae1988"),
    # saha2001
    Method("denoc", "denoc", MFU, BENT, "saha2003"),
    # nikravesh1989
    Method("joint_coordinates", "joint_coordinates", MFB, ANY, "nikravesh1989", regrouped=False),
    Method(
        "joint_coordinates_recursive", "joint_coordinates_recursive", ("forward_dynamics",), TREES, "wehage1988",
        regrouped=False,
    ),
    Method(
        "absolute", "absolute", ("forward_dynamics", "reactions", "multipliers"), MASSIVE, "nikravesh1988",
        regrouped=False,
    ),
    # fijany1989; its original composite bodies are Walker's and Orin's, so that ocrb and walker_orin are one file
    Method("oke", "mass_matrix.oke", M, ANY, "kane1983", regrouped=False),
    Method("vke", "mass_matrix.vke", M, ANY, "fijany1989", regrouped=False),
    Method("oneb", "mass_matrix.oneb", M, ANY, "walker1982", regrouped=False),
    Method("vneb", "mass_matrix.vneb", M, ANY, "fijany1989"),
    Method("ocrb", "walker_orin", M, ANY, "walker1982", regrouped=False),
    Method("vcrb", "mass_matrix.vcrb", M, ANY, "bejczy1989"),
    Method("vneb_parallel", "mass_matrix.vneb_parallel", M, ANY, "fijany1989"),
    Method("vcrb_parallel", "mass_matrix.vcrb_parallel", M, ANY, "bejczy1989"),
    # schaefer1992
    Method(
        "newton_euler_symbolic", "newton_euler_symbolic", (*MF, *B, "reactions"), ANY, "schaefer1992",
        regrouped=False, also="reaction_equations", narrower=(("reactions", MASSIVE),),
    ),
    # derivatives; other methods have them by tangents of their graphs (build/graphs.py)
    Method(
        "derivatives", "derivatives", ("forward_dynamics_derivatives", "inverse_dynamics_derivatives"), UNSPRUNG,
        "singh2022",
    ),
    # closed loops: what the equations are. Dynamics of loops is a layer on the methods above
    Method("closure", "loops.quantities", ("closure", "closure_jacobian", "closure_bias"), LOOPS, "nikravesh1989"),
    # what control of robots asks for
    Method("coriolis", "coriolis", ("coriolis_matrix",), ANY, "echeandia2021"),
    Method("centroidal", "centroidal", CENTRE, ANY, "orin2013", regrouped=False),
    Method("frame_motion", "frame_motion", FRAMES, ANY, "featherstone2008"),
    # everything that has no dynamics in it
    Method("kinematics", "kinematics", REST, ANY, "featherstone2008"),
)  # fmt: skip

METHODS: dict[str, Method] = {row.name: row for row in _ROWS}
SHIPPED = dict(METHODS)  # what the table was before anybody added to it


class MethodTable:
    """Prints as a table; iterates over the methods."""

    def __iter__(self) -> Iterator[Method]:
        return iter(METHODS.values())

    def __len__(self) -> int:
        return len(METHODS)

    def __getitem__(self, name: str) -> Method:
        if name not in METHODS:
            raise InputError(unknown("method", name, METHODS))
        return METHODS[name]

    def __str__(self) -> str:
        """Wrapped to the width, nothing cut."""
        cells = [(m.name, wrap(", ".join(m.solves), 20), wrap(m.topology, 10), m.citation) for m in self]
        names = max(map(len, METHODS))
        left = WIDTH - names - 3 * 2 - sum(max(len(line) for c in cells for line in c[k]) for k in (1, 2))
        rows: list[tuple[str, ...]] = []
        for name, solves, topology, citation in cells:
            rows += zip_longest([name], solves, topology, wrap(citation, left, break_on_hyphens=False), fillvalue="")
        return table_of(("method", "solves", "topology", "source"), rows)

    __repr__ = __str__


def methods() -> MethodTable:
    """The table of methods: what each solves, for which mechanisms, and where it was published."""
    return MethodTable()
