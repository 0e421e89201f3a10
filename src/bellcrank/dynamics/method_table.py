"""Table of methods, one row for each algorithm, and selection of those that may compute a quantity.

Every method is a file with a function for each quantity that it solves, f(tree, *inputs, **options), generic
over the scalar type; kinematics.py is the simplest, aba.py the best known. Methods for a single quantity may share a
file; the table then names the function too. docs/methods/family.md explains how the methods are related.

The table names the files without importing them: a cached kernel needs none of them, and any other kernel only those
through which it is traced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import zip_longest
from textwrap import wrap
from types import SimpleNamespace
from typing import Any

from bellcrank.dynamics.operation_counts import WORK
from bellcrank.dynamics.quantities import QUANTITIES, quantity
from bellcrank.errors import InputError, check_known, unknown
from bellcrank.model.tree import Tree
from bellcrank.parameters import has_free
from bellcrank.quoting import name_problem
from bellcrank.text_table import table as table_of  # "table" is the name of this module

# Publications behind the methods, by citation key.
SOURCES: dict[str, str] = {
    "angeles1988": "J. Angeles, O. Ma. Dynamic simulation of n-axis serial robotic manipulators using a natural "
    "orthogonal complement. The International Journal of Robotics Research 7(5), 32-47, 1988.",
    "bae1988": "D. S. Bae, R. S. Hwang, E. J. Haug. A recursive formulation for real-time dynamic simulation. "
    "Advances in Design Automation, ASME DE-Vol. 14, 1988.",
    "bejczy1989": "A. Fijany, A. Bejczy. A class of parallel algorithms for the computation of the manipulator inertia "
    "matrix. IEEE Transactions on Robotics and Automation 5(5), 600-615, 1989.",
    "echeandia2021": "S. Echeandia, P. M. Wensing. Numerical methods to compute the Coriolis matrix and Christoffel "
    "symbols for rigid-body systems. Journal of Computational and Nonlinear Dynamics 16(9), 091004, 2021.",
    "featherstone1983": "R. Featherstone. The calculation of robot dynamics using articulated-body inertias. "
    "The International Journal of Robotics Research 2(1), 13-30, 1983.",
    "featherstone1999": "R. Featherstone. A divide-and-conquer articulated-body algorithm for parallel O(log(n)) "
    "calculation of rigid-body dynamics. The International Journal of Robotics Research 18(9), 867-892, 1999.",
    "featherstone2008": "R. Featherstone. Rigid Body Dynamics Algorithms. Springer, 2008.",
    "fijany1989": "A. Fijany. Serial and parallel computation of Kane's equations for multibody dynamics. "
    "Jet Propulsion Laboratory, California Institute of Technology, 1989.",
    "hemami1982": "H. Hemami. A state space model for interconnected rigid bodies. "
    "IEEE Transactions on Automatic Control AC-27(2), 376-382, 1982.",
    "kane1983": "T. R. Kane, D. A. Levinson. The use of Kane's dynamical equations in robotics. "
    "The International Journal of Robotics Research 2(3), 3-21, 1983.",
    "luh1980": "J. Y. S. Luh, M. W. Walker, R. P. C. Paul. On-line computational scheme for mechanical manipulators. "
    "ASME Journal of Dynamic Systems, Measurement, and Control 102(2), 69-76, 1980.",
    "nikravesh1988": "P. E. Nikravesh. Computer-Aided Analysis of Mechanical Systems. Prentice Hall, 1988.",
    "nikravesh1989": "P. E. Nikravesh, G. Gim, A. Arabyan, U. Rein. Systematic generation of multibody equations of "
    "motion suitable for recursive and parallel manipulation. University of Arizona, NASA N90-22992, 1989.",
    "orin2013": "D. E. Orin, A. Goswami, S.-H. Lee. Centroidal dynamics of a humanoid robot. "
    "Autonomous Robots 35(2-3), 161-176, 2013.",
    "saha2003": "S. K. Saha. Simulation of industrial manipulators based on the UDU^T decomposition of inertia matrix. "
    "Multibody System Dynamics 9(1), 63-85, 2003.",
    "schaefer1992": "P. Schaefer, W. Schiehlen. Application of parallel computing to robot dynamics. "
    "University of Stuttgart, Institute B of Mechanics, 1992.",
    "singh2022": "S. Singh, R. P. Russell, P. M. Wensing. Efficient analytical derivatives of rigid-body dynamics "
    "using spatial vector algebra. IEEE Robotics and Automation Letters 7(2), 1776-1783, 2022.",
    "walker1982": "M. W. Walker, D. E. Orin. Efficient dynamic computer simulation of robotic mechanisms. "
    "ASME Journal of Dynamic Systems, Measurement, and Control 104(3), 205-211, 1982.",
    "wehage1988": "R. A. Wehage. Application of matrix partitioning and recursive projection to O(n) solution of "
    "constraint equations of motion. 20th ASME Mechanisms Conference, Orlando, 1988.",
    "wong1991": "D. Wong. Parallel implementation of multibody dynamics for real-time simulation. "
    "PhD thesis, University of British Columbia, 1991.",
}


TABLE_WIDTH_COLUMNS = 100  # columns of the printed table
# "auto" does not trace a method whose estimate exceeds the least estimate by more than this factor.
ESTIMATE_MARGIN = 1.2
COUPLED_MARGIN = 3.0  # the same factor for joints that share coordinates, which the estimate does not consider
# Operations: below this, tracing every method that may be the fastest takes hardly any time.
QUICK_TRACE_OPERATIONS = 5_000.0
# Often the fastest: tried unless they exceed HOPELESS_LIMITS.
STRONG_METHODS = ("rnea", "crba", "aba", "denoc", "vcrb", "reactions")
# A strong method is dropped if it exceeds both this factor and this number of operations.
HOPELESS_LIMITS = (1.5, 12_000.0)
# Cost of a tangent as a fraction of its graph: many operations do not depend on the differentiated input.
TANGENT_COST_RATIO = 0.4


def _load_module(file: str) -> Any:
    """Import a file of dynamics/ by its name."""
    return import_module(f"bellcrank.dynamics.{file}")


@dataclass(frozen=True)
class MechanismClass:
    """Class of mechanisms to which a method applies, with a predicate and a text for error messages."""

    name: str
    holds: Callable[[Tree], bool]
    but: str = ""  # the cases that are not covered, for error messages


ANY = MechanismClass("trees, couplings", lambda tree: True)
TREES = MechanismClass("trees", lambda tree: not tree.coupled, "mimic joints and flexible bodies are not supported")
NO_MIMIC = MechanismClass("trees", lambda tree: not tree.has_mimics, "mimic joints are not supported")
SOLID = MechanismClass(
    "trees, massive bodies",
    lambda tree: not tree.coupled and all(tree.invertible),
    "mimic joints and flexible bodies are not supported, and every body needs mass and extent in all directions, "
    "because it is reduced before the load that it carries is known",
)
MASSIVE = MechanismClass(
    "trees, massive bodies",
    lambda tree: SOLID.holds(tree) and not has_free([link.armature for link in tree.links]),  # it divides by them
    "mimic joints, flexible bodies and free armatures are not supported, and every body needs mass and extent in all "
    "directions",
)
MASSIVE_BODIES = MechanismClass(
    "trees, massive bodies",
    lambda tree: (
        not tree.has_mimics
        and all(m or link.kind.name == "modal" for m, link in zip(tree.invertible, tree.links, strict=True))
        and not has_free([link.armature for link in tree.links])
    ),
    "mimic joints and free armatures are not supported, and every body that is not a node of another one needs mass "
    "and extent in all directions",
)
LOOPS = MechanismClass("loops", lambda tree: bool(tree.loops), "the mechanism has no loops")
UNSPRUNG = MechanismClass(
    "trees, couplings",
    lambda tree: bool(_load_module("derivatives").covered(tree)),
    "loops, springs between bodies, flexible bodies and custom joints whose axes rotate are not supported",
)
FACTORED = MechanismClass(
    "trees, couplings",
    lambda tree: (
        not tree.flexible
        and all(
            known or not has_free(link.inertia.I_centre)
            for known, link in zip(tree.invertible, tree.links, strict=True)
        )
    ),
    "a body whose central inertia is a free parameter needs a nominal extent in all directions, because the method "
    "divides by it; flexible bodies are not supported",
)


@dataclass(frozen=True)
class Method:
    """One method: the quantities it solves, the mechanisms it covers, and its source."""

    name: str
    module: Any  # a function for each quantity: a file in dynamics/, "file:function", or any object with attributes
    solves: tuple[str, ...]
    covers: MechanismClass
    source: str  # key of SOURCES, or a citation
    regrouped: bool = True  # accepts regrouped inertias (model/tree.py); false if it needs centres of mass
    narrower: tuple[tuple[str, MechanismClass], ...] = ()  # quantities for which it covers fewer mechanisms
    bends: bool = False  # handles flexible bodies itself, or does not depend on inertia
    projections: tuple[str, ...] = ()  # frames onto which it can project its equations; the first is the default

    def __post_init__(self) -> None:
        if why := name_problem(self.name):
            raise InputError(f"the method {why}.")

    @property
    def topology(self) -> str:
        """Describe the mechanisms that the method covers, with the quantities for which it covers fewer."""
        less = [f"{name}: {covers.name}" for name, covers in self.narrower if covers.name != self.covers.name]
        return "; ".join([self.covers.name, *less])

    @property
    def citation(self) -> str:
        """Return the publication that the method comes from."""
        return SOURCES.get(self.source, self.source)

    def covered(self, quantity: str) -> MechanismClass:
        """Return the class of mechanisms that the method covers for `quantity`."""
        return dict(self.narrower).get(quantity, self.covers)

    def applies(self, tree: Tree, quantity: str) -> bool:
        """Return True if the method computes `quantity` for `tree`."""
        return quantity in self.solves and self.covered(quantity).holds(tree)

    @property
    def file(self) -> Any:
        """Return the module (or other object) that has the method's functions and its description."""
        if not isinstance(self.module, str):
            return self.module
        name, _, function = self.module.partition(":")
        module = _load_module(name)
        if not function:
            return module
        only = getattr(module, function)
        return SimpleNamespace(**{self.solves[0]: only}, __doc__=only.__doc__)

    def projected(self, projection: str) -> Method:
        """Return this method with its equations projected onto another frame, such as "end".

        Raises
        ------
        InputError
            If the method does not have that frame of projection.
        """
        if not self.projections:
            able = ", ".join(m.name for m in METHODS.values() if m.projections)
            raise InputError(f'method "{self.name}" has no choice of projection; these have one: {able}.')
        check_known("frame of projection", projection, self.projections)
        functions = {name: partial(getattr(self.file, name), projection=projection) for name in self.solves}
        return replace(self, module=SimpleNamespace(**functions, __doc__=self.file.__doc__))

    def function(self, name: str) -> Callable[..., Any]:
        """Return the method's function called `name`: a quantity, or any other function in its file.

        Quantities to which modes contribute are wrapped for trees with flexible bodies, unless the method handles them
        itself.
        """
        method_function: Callable[..., Any] = getattr(self.file, name)
        if self.bends or name not in MODAL_QUANTITIES:
            return method_function

        def with_flexible_layer(tree: Tree, *inputs: Any, **options: Any) -> Any:
            if not tree.flexible:
                return method_function(tree, *inputs, **options)
            layer = _load_module("flexible_layer").FlexibleLayer(partial(getattr, self.file), self.solves)
            return layer.function(name)(tree, *inputs, **options)

        return with_flexible_layer


# Quantities to which the modes of flexible bodies contribute (flexible_layer.py).
MODAL_QUANTITIES = (
    "mass_matrix", "mass_matrix_factors", "inverse_mass_matrix",
    "forward_dynamics", "inverse_dynamics", "bias", "gravity_torque", "coriolis_torque",
)  # fmt: skip

MASS_QUANTITIES = ("mass_matrix",)
FORWARD_AND_MASS = ("forward_dynamics", "mass_matrix")
BIAS_QUANTITIES = ("bias", "gravity_torque", "coriolis_torque")
FORWARD_MASS_BIAS = ("forward_dynamics", "mass_matrix", "bias")
FORWARD_AND_FACTORS = ("forward_dynamics", "mass_matrix", "mass_matrix_factors", "inverse_mass_matrix")
KINEMATIC_QUANTITIES = (
    "passive_torque", "kinetic_energy", "potential_energy", "pose", "velocity", "jacobian", "com", "momentum", "rate",
    "integrate", "difference",
)  # fmt: skip

FRAME_QUANTITIES = ("poses", "acceleration", "spatial_acceleration", "jacobian_rate")
CENTROIDAL_QUANTITIES = (
    "com", "com_velocity", "com_acceleration", "com_jacobian", "momentum", "momentum_rate", "momentum_matrix",
    "momentum_matrix_rate",
)  # fmt: skip

_ROWS = (
    # the fastest methods, in bellcrank's own frames and inertias
    Method("rnea", "rnea", ("inverse_dynamics", *BIAS_QUANTITIES), ANY, "luh1980", bends=True),
    Method("crba", "crba", FORWARD_AND_FACTORS, ANY, "walker1982", bends=True),
    Method("aba", "aba", ("forward_dynamics",), NO_MIMIC, "featherstone1983", bends=True),
    Method("dca", "dca", ("forward_dynamics",), SOLID, "featherstone1999", regrouped=False),
    Method("reactions", "reactions", ("reactions",), ANY, "luh1980", bends=True),
    # wong1991, and the methods it is compared with
    Method("ness", "historical.ness", FORWARD_MASS_BIAS, ANY, "wong1991", regrouped=False),
    Method("hemami", "historical.hemami", FORWARD_MASS_BIAS, ANY, "hemami1982", regrouped=False),
    Method("angeles", "historical.angeles", FORWARD_MASS_BIAS, FACTORED, "angeles1988", regrouped=False),
    Method("walker_orin", "historical.walker_orin", FORWARD_AND_MASS, ANY, "walker1982", regrouped=False),
    Method("featherstone", "historical.inertial_frame", ("forward_dynamics",), TREES, "featherstone1983"),
    Method("bae_hwang", "historical.inertial_frame", MASS_QUANTITIES, ANY, "bae1988"),
    # saha2001
    Method(
        "denoc", "denoc", (*FORWARD_AND_FACTORS, "inverse_dynamics", "coriolis_matrix"), NO_MIMIC, "saha2003",
        narrower=(("coriolis_matrix", TREES),),
    ),
    # nikravesh1989
    Method(
        "joint_coordinates", "historical.joint_coordinates", FORWARD_MASS_BIAS, ANY, "nikravesh1989", regrouped=False,
    ),
    Method(
        "joint_coordinates_recursive", "historical.joint_coordinates_recursive", ("forward_dynamics",), NO_MIMIC,
        "wehage1988", regrouped=False, bends=True,
    ),
    Method(
        "absolute", "historical.absolute_coordinates", ("forward_dynamics", "reactions", "multipliers"), MASSIVE_BODIES,
        "nikravesh1988", regrouped=False, bends=True,
    ),
    # fijany1989; its original composite-body method is that of Walker and Orin, so ocrb and walker_orin share a file
    Method("oke", "historical.mass_matrix.kane:oke", MASS_QUANTITIES, ANY, "kane1983", regrouped=False),
    Method("vke", "historical.mass_matrix.kane:vke", MASS_QUANTITIES, ANY, "fijany1989", regrouped=False),
    Method("oneb", "historical.mass_matrix.newton_euler:oneb", MASS_QUANTITIES, ANY, "walker1982", regrouped=False),
    Method("vneb", "historical.mass_matrix.newton_euler:vneb", MASS_QUANTITIES, ANY, "fijany1989"),
    Method("ocrb", "historical.walker_orin", MASS_QUANTITIES, ANY, "walker1982", regrouped=False),
    Method("vcrb", "historical.mass_matrix.composite_bodies:vcrb", MASS_QUANTITIES, ANY, "bejczy1989"),
    Method(
        "oke_parallel", "historical.mass_matrix.kane:oke_parallel", MASS_QUANTITIES, ANY, "fijany1989",
        regrouped=False, projections=("base", "end"),
    ),
    Method(
        "vneb_parallel", "historical.mass_matrix.newton_euler:vneb_parallel", MASS_QUANTITIES, ANY, "fijany1989",
        projections=("base", "end", "body"),
    ),
    Method(
        "vcrb_parallel", "historical.mass_matrix.composite_bodies:vcrb_parallel", MASS_QUANTITIES, ANY, "bejczy1989",
        projections=("base", "end", "body"),
    ),
    # schaefer1992
    Method(
        "newton_euler_symbolic", "historical.newton_euler_symbolic", (*FORWARD_AND_MASS, *BIAS_QUANTITIES, "reactions"),
        ANY, "schaefer1992",
        regrouped=False, narrower=(("reactions", MASSIVE),),
    ),
    # derivatives; those of other methods come from tangents of their graphs (build/graphs.py)
    Method(
        "derivatives", "derivatives", ("forward_dynamics_derivatives", "inverse_dynamics_derivatives"), UNSPRUNG,
        "singh2022",
    ),
    # the loop equations; the dynamics of loops is a layer on the methods above
    Method(
        "closure", "loops.constraint_equations", ("closure", "closure_jacobian", "closure_bias"), LOOPS,
        "nikravesh1989",
    ),
    # quantities for robot control
    Method("coriolis", "coriolis", ("coriolis_matrix",), ANY, "echeandia2021"),
    Method("centroidal", "centroidal", CENTROIDAL_QUANTITIES, ANY, "orin2013", regrouped=False),
    Method("frame_motion", "frame_motion", FRAME_QUANTITIES, ANY, "featherstone2008"),
    # everything without dynamics
    Method("kinematics", "kinematics", KINEMATIC_QUANTITIES, ANY, "featherstone2008"),
)  # fmt: skip

METHODS: dict[str, Method] = {row.name: row for row in _ROWS}
SHIPPED = dict(METHODS)  # the table without registered methods


class MethodTable:
    """Mapping-like view of all methods; prints as a table and iterates over the methods."""

    def __iter__(self) -> Iterator[Method]:
        return iter(METHODS.values())

    def __len__(self) -> int:
        return len(METHODS)

    def __getitem__(self, name: str) -> Method:
        if name not in METHODS:
            raise InputError(unknown("method", name, METHODS))
        return METHODS[name]

    def __str__(self) -> str:
        """Format the table, wrapped to its width without cutting text."""
        cells = [(m.name, wrap(", ".join(m.solves), 20), wrap(m.topology, 10), m.citation) for m in self]
        names = max(map(len, METHODS))
        left = TABLE_WIDTH_COLUMNS - names - 3 * 2 - sum(max(len(line) for c in cells for line in c[k]) for k in (1, 2))
        rows: list[tuple[str, ...]] = []
        for name, solves, topology, citation in cells:
            rows += zip_longest([name], solves, topology, wrap(citation, left, break_on_hyphens=False), fillvalue="")
        return table_of(("method", "solves", "topology", "source"), rows)

    __repr__ = __str__


def methods() -> MethodTable:
    """Return the table of methods: what each solves, for which mechanisms, and where it was published.

    Returns
    -------
    MethodTable
        Prints as a table, iterates over the methods, and is indexed by a method's name.
    """
    return MethodTable()


# -- which methods apply, decided before tracing and therefore without importing their files


def methods_solving(name: str) -> list[Method]:
    """Return all methods that solve the quantity `name`, for some mechanisms at least."""
    return [method for method in list(METHODS.values()) if name in method.solves]


def applicable_methods(quantity_name: str, tree: Tree) -> list[Method]:
    """Return all methods that compute the quantity `quantity_name` for `tree`."""
    q = quantity(quantity_name)
    if q.through and not tree.loops:
        return []
    applicable = [m for m in list(METHODS.values()) if m.applies(tree, q.through or quantity_name)]
    if q.differentiates:  # the graph of any method can be differentiated
        applicable += [m for m in list(METHODS.values()) if m.applies(tree, q.differentiates) and m not in applicable]
    return applicable


def method(name: str, quantity_name: str, tree: Tree) -> Method:
    """Return the named method if it computes the quantity for this tree.

    Parameters
    ----------
    name
        Name of the method.
    quantity_name
        Name of the quantity.
    tree
        Kinematic tree of the mechanism.

    Raises
    ------
    InputError
        If no such method exists or it does not compute the quantity; the message lists those that do.
    """
    method_names = [m.name for m in applicable_methods(quantity_name, tree)]
    if not method_names:
        raise InputError(f"{quantity_name} needs loops, but this mechanism has none.")
    if name not in METHODS:
        raise InputError(unknown("method", name, ["auto", *method_names]))
    if name not in method_names:
        m, q = METHODS[name], quantity(quantity_name)
        needed = q.through or quantity_name
        if q.differentiates in m.solves:  # its graph could be differentiated, but it does not cover the mechanism
            needed = q.differentiates
        why = f"it solves {', '.join(m.solves)}" if needed not in m.solves else m.covered(needed).but
        raise InputError(
            f'method "{name}" cannot compute {quantity_name} of this mechanism: {why}. '
            f"Use: {', '.join(['auto', *method_names])}."
        )
    return METHODS[name]


def candidates(quantity_name: str, tree: Tree) -> list[Method]:
    """Return the methods that "auto" chooses from.

    These are all methods that compute `quantity_name` for `tree`, except those that a rough estimate puts far behind.
    """
    applicable = applicable_methods(quantity_name, tree)
    if base := quantity(quantity_name).differentiates:
        return [m for m in applicable if quantity_name in m.solves] or candidates(base, tree)
    if len(applicable) < 2:
        return applicable
    work = {m.name: estimate(m.name, quantity_name, tree) for m in applicable}
    least, (times, large) = min((x for x in work.values() if x), default=0.0), HOPELESS_LIMITS
    limit = max(times * least, large)
    strong_methods = {m.name for m in applicable if m.name in STRONG_METHODS and work[m.name] <= limit}
    return [m for m in applicable if m.name in strong_methods or work[m.name] <= _margin(m, tree, least) * least]


def _margin(m: Method, tree: Tree, least: float) -> float:
    """Return how many times the least estimate a method may need and still be tried.

    With flexible bodies, methods for rigid bodies have the same additional layer (flexible_layer.py), so if a strong
    method does not win there, no other does.
    """
    doubtful = tree.coupled and (not tree.flexible or least < QUICK_TRACE_OPERATIONS or m.name in STRONG_METHODS)
    slides = sum(link.kind.name == "prismatic" for link in tree.links)
    # The estimate assumes revolute joints with one axis.
    other = (tree.nv > len(tree.links) or 2 * slides > len(tree.links)) and least < QUICK_TRACE_OPERATIONS
    return COUPLED_MARGIN if doubtful or other else ESTIMATE_MARGIN


def estimate(method: str, quantity: str, tree: Tree) -> float:
    """Estimate the number of operations.

    The estimate is 0 for a method without known operation counts.

    Parameters
    ----------
    method
        Name of the method.
    quantity
        Name of the quantity.
    tree
        Kinematic tree of the mechanism.
    """
    q = QUANTITIES[quantity]
    known = WORK.get(q.through or quantity, {})
    if method not in known:
        tangents = TANGENT_COST_RATIO * len(q.inputs) * tree.nv
        return tangents * estimate(method, q.differentiates, tree) if q.differentiates else 0.0
    ends, one, two, three = known[method]
    n, pairs, triples, tips = tree.work_sizes
    total = one * n + two * pairs + three * triples
    return max(total + ends * tips / 2, total / 10, 1.0)
