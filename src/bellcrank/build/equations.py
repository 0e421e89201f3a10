"""Equations of motion, or of one quantity, as printed text.

    Mechanism --graph--> Graph --sheet--> Sheet --source--> LaTeX, Python, SymPy or C

This module decides which outputs make up the equations of motion and how their inputs are named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.build import graphs
from bellcrank.build.policy import check_request
from bellcrank.dynamics import METHODS, method, quantity, shape_of
from bellcrank.dynamics.quantities import Request
from bellcrank.emit.equations import c as ctext
from bellcrank.emit.equations import latex, python, sympy
from bellcrank.emit.equations import sheet as page
from bellcrank.emit.equations.formula import Sheet
from bellcrank.errors import InputError, check_known
from bellcrank.graph import Graph, trace
from bellcrank.model import Mechanism
from bellcrank.model.joints import KINDS
from bellcrank.spatial.vector import ZERO
from bellcrank.version import __version__

# The blocks of the equations of motion: description and arguments of each.
MOTION_BLOCKS = {
    "M": ("mass matrix", ("q",)),
    "h": ("Coriolis and centrifugal forces", ("q", "v")),
    "g": ("gravity forces", ("q",)),
    "f": ("damping, friction and springs of the joints", ("q", "v")),
}
MOTION_RELATION = "M a + h + g = tau + f"

TEXT_TARGETS: dict[str, Callable[[Sheet, int], str]] = {
    "latex": latex.source,
    "python": python.source,
    "sympy": sympy.source,
    "c": ctext.source,
}
DEFAULT_DIGITS = {"latex": 6}  # significant digits of numbers that have no shorter form; 13 in other targets


def motion_graph(mechanism: Mechanism) -> Graph:
    """Return the four blocks of the equations of motion of `mechanism` as one graph."""
    check_request(mechanism, Request("bias"))
    if mechanism.loops:
        raise InputError(
            f'the equations of motion of "{mechanism.name}" are printed for trees, and it has loops. Print its terms '
            "one by one: mass_matrix, bias, closure_jacobian, closure_bias."
        )
    tree = graphs.quantity_tree(mechanism, "bias", METHODS["rnea"])
    weightless = replace(tree, gravity=ZERO)
    M = method("crba", "mass_matrix", tree).function("mass_matrix")
    bias = method("rnea", "bias", tree).function("bias")
    passive = method("kinematics", "passive_torque", tree).function("passive_torque")

    def body(q: Any, v: Any) -> dict[str, Any]:
        g = bias(tree, q, [0.0] * tree.nv)
        return {"M": M(tree, q), "h": bias(weightless, q, v), "g": g, "f": passive(tree, q, v)}

    inputs = {name: shape_of(name, tree) for name in ("q", "v")}
    return trace(f"{mechanism.name}.equations", body, inputs, mechanism.parameters)


def formula_sheet(mechanism: Mechanism, g: Graph, frame: str = "", terms: int = page.MAX_ENTRY_TERMS) -> Sheet:
    """Return a graph of the mechanism as formulas.

    Parameters
    ----------
    mechanism
        The mechanism of the graph.
    g
        Graph of its equations of motion or of one quantity.
    frame
        Frame of the quantity, for the title.
    terms
        Longest entry, in terms, that is written in one piece.
    """
    q, v = mechanism.columns
    columns = {"q, v, a, tau": q} if q == v else {"q": q, "v, a, tau": v}
    outputs, relation, what = MOTION_BLOCKS, MOTION_RELATION, "equations of motion"
    if g.outputs.keys() != MOTION_BLOCKS.keys():
        (what,) = g.outputs
        outputs, relation = {what: (quantity(what).what, quantity(what).inputs)}, ""
    if mechanism.parameters:
        columns["p"] = tuple(mechanism.parameters)
        outputs = {key: (description, (*inputs, "p")) for key, (description, inputs) in outputs.items()}
    title = f"{mechanism.name}: {what}{' of ' * bool(frame)}{frame}, printed by bellcrank {__version__}"
    return page.build_sheet(g, mechanism.name, title, outputs, relation, columns, (_units_note(mechanism),), terms)


def _units_note(mechanism: Mechanism) -> str:
    kinds = dict.fromkeys(j.kind for j in mechanism.own_joints)
    turned = [kind for kind in kinds if KINDS[kind].nq > KINDS[kind].nv or kind == "planar"]
    where = f"that of {' and '.join(turned)} joints as seen in the child; elsewhere " if turned else ""
    return f"SI units and radians; v is {where}dq/dt."


def equation_text(
    mechanism: Mechanism,
    g: Graph,
    target: str = "latex",
    digits: int = 0,
    terms: int = page.MAX_ENTRY_TERMS,
    frame: str = "",
    standalone: bool = False,
) -> str:
    """Return a graph of the mechanism as text.

    Parameters
    ----------
    mechanism, g, frame, terms
        As in `formula_sheet`.
    target
        "latex", "python", "sympy" or "c".
    digits
        Significant digits of numbers that have no shorter form; 0 for the default of the target.
    standalone
        Return a complete LaTeX document.
    """
    check_known("target", target, TEXT_TARGETS)
    if digits and not 1 <= digits <= 17:
        raise InputError(f"digits is {digits!r}; expected a whole number from 1 to 17.")
    if terms < 0:
        raise InputError(f"terms is {terms!r}; expected the largest number of terms of an entry, at least 0.")
    source = TEXT_TARGETS[target](formula_sheet(mechanism, g, frame, terms), digits or DEFAULT_DIGITS.get(target, 13))
    return latex.document(source) if standalone and target == "latex" else source


@explain_argument_errors
def equations(
    mechanism: Mechanism,
    target: str = "latex",
    quantity: str = "",
    frame: str = "",
    digits: int = 0,
    terms: int = page.MAX_ENTRY_TERMS,
) -> str:
    """Return the equations of motion, or one quantity, as text to read.

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism; without loops if `quantity` is left out.
    target : str
        "latex", "python", "sympy" or "c".
    quantity : str
        A quantity such as "mass_matrix"; by default the equations of motion.
    frame : str
        Frame of a quantity that takes one.
    digits : int
        Significant digits of numbers that have no shorter form, 1 to 17; 0 for the default of the target.
    terms : int
        An output with an entry of more terms than this is written in steps.

    Returns
    -------
    str
        The source text.

    Raises
    ------
    InputError
        If an argument is not valid, or equations of motion are requested of a mechanism with loops.
    """
    check_known("target", target, TEXT_TARGETS)
    g = graphs.graph(mechanism, quantity, frame=frame) if quantity else motion_graph(mechanism)
    return equation_text(mechanism, g, target, digits, terms, frame)
