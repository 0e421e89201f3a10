"""Equations of motion, or of one quantity, as printed text.

    Mechanism --graph--> Graph --sheet--> Sheet --source--> LaTeX, Python, SymPy or C

This module decides how the inputs of a sheet are named; paper_notation.py makes the graphs of the equations of motion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.build import graphs
from bellcrank.build.paper_notation import (
    CLOSED_RELATION,
    CLOSED_TERMS,
    MOTION_TERMS,
    TERMS,
    TREE_RELATION,
    independent_names,
    motion_graph,
    readable_graph,
)
from bellcrank.dynamics import quantity
from bellcrank.emit.equations import c as ctext
from bellcrank.emit.equations import latex, python, sympy
from bellcrank.emit.equations import sheet as page
from bellcrank.emit.equations.formula import ElementSymbols, Sheet, Symbol, SymbolNames
from bellcrank.errors import InputError, check_known
from bellcrank.graph import Graph
from bellcrank.model import Mechanism
from bellcrank.model.joints import KINDS
from bellcrank.quoting import identifier
from bellcrank.version import __version__

PARTITION_NOTE = "The terms E, Ev, Mr and fr exist where C has an inverse for the dependent coordinates."
# Letters of free parameters; the index is the number of the body or joint, and a component.
PARAMETER_LETTERS = {
    "mass": "m", "com": "r", "inertia": "J", "point": "l", "length": "l", "axis": "u", "damping": "d",
    "stiffness": "k", "armature": "I", "friction": "mu",
}  # fmt: skip

TEXT_TARGETS: dict[str, Callable[[Sheet, int], str]] = {
    "latex": latex.source,
    "python": python.source,
    "sympy": sympy.source,
    "c": ctext.source,
}
DEFAULT_DIGITS = {"latex": 6}  # significant digits of numbers that have no shorter form; 13 in other targets


def formula_sheet(
    mechanism: Mechanism,
    g: Graph,
    frame: str = "",
    terms: int = page.MAX_ENTRY_TERMS,
    independent: Sequence[str] = (),
) -> Sheet:
    """Return a graph of the mechanism as formulas.

    Parameters
    ----------
    mechanism
        The mechanism of the graph.
    g
        Graph of its equations of motion, of terms of them, or of one quantity.
    frame
        Frame of the quantity, for the title.
    terms
        Longest entry, in terms, that is written in one piece.
    independent
        Names of the independent coordinates that the graph was made with; empty for those chosen by default.
    """
    q, v = mechanism.columns
    columns: dict[str, Sequence[str]] = {"q, v, a, tau": q} if q == v else {"q": q, "v, a, tau": v}
    relation, what, remarks = "", list(g.outputs)[-1], [_units_note(mechanism)]
    if g.outputs.keys() <= TERMS.keys():
        outputs = {key: (TERMS[key].what, TERMS[key].inputs) for key in g.outputs}
        if tuple(g.outputs) in (MOTION_TERMS, CLOSED_TERMS):
            what, relation = "equations of motion", CLOSED_RELATION if mechanism.loops else TREE_RELATION
        if "C" in outputs:
            columns["v_i, a_i"] = independent_names(mechanism, independent)
            remarks.append(PARTITION_NOTE)
    else:
        outputs = {what: (quantity(what).what, quantity(what).inputs)}
    symbols: dict[str, Sequence[Symbol]] = {}
    if mechanism.parameters:
        symbols["p"] = parameter_symbols(mechanism, page.taken_names(g))
        columns["p"] = [f"{name} ({s})" for name, s in zip(mechanism.parameters, symbols["p"], strict=True)]
        outputs = {key: (description, (*inputs, "p")) for key, (description, inputs) in outputs.items()}
    title = f"{mechanism.name}: {what}{' of ' * bool(frame)}{frame}, printed by bellcrank {__version__}"
    return page.build_sheet(
        g, mechanism.name, title, outputs, relation, columns, tuple(remarks), terms, ElementSymbols(g.inputs, symbols)
    )


def parameter_symbols(mechanism: Mechanism, taken: Collection[str] = ()) -> list[Symbol]:
    """Return a symbol for each free parameter: m_1 for the mass of the first body, l_2x for a length at joint 2.

    Parameters
    ----------
    mechanism
        Mechanism with free parameters.
    taken
        Spellings of other symbols.
    """
    owners: dict[str, str] = {}
    groups = (mechanism.loops, mechanism.springs, mechanism.joints, mechanism.bodies)
    for names in ([part.name for part in parts] for parts in groups):
        owners |= {name: str(i + 1) for i, name in enumerate(names)}
    spellings = SymbolNames(taken)
    return [spellings.fresh(_parameter_symbol(name, owners)) for name in mechanism.parameters]


def _parameter_symbol(name: str, owners: Mapping[str, str]) -> Symbol:
    owner = max((x for x in owners if name.startswith(f"{x}.")), key=len, default="")
    if not owner and not name.startswith("gravity."):  # a name of the user: "m_1", "l2" or "rod length"
        short = re.fullmatch(r"([A-Za-z]+)_?(\d+)", name)
        return Symbol(short[1], (short[2],)) if short else Symbol(identifier(name))
    if name.startswith("gravity."):
        return Symbol("g", (name.removeprefix("gravity."),))
    field, *components = name.removeprefix(f"{owner}.").split(".")
    return Symbol(PARAMETER_LETTERS.get(field, identifier(field)), tuple(filter(None, (owners[owner], *components))))


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
    independent: Sequence[str] = (),
) -> str:
    """Return a graph of the mechanism as text.

    Parameters
    ----------
    mechanism, g, frame, terms, independent
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
    sheet = formula_sheet(mechanism, g, frame, terms, independent)
    source = TEXT_TARGETS[target](sheet, digits or DEFAULT_DIGITS.get(target, 13))
    return latex.document(source) if standalone and target == "latex" else source


@explain_argument_errors
def equations(
    mechanism: Mechanism,
    target: str = "latex",
    quantity: str = "",
    frame: str = "",
    digits: int = 0,
    terms: int = page.MAX_ENTRY_TERMS,
    independent: Sequence[str] = (),
) -> str:
    """Return the equations of motion, or one quantity, as text to read.

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism. With loops, its equations of motion are the minimal ones, of the independent coordinates.
    target : str
        "latex", "python", "sympy" or "c".
    quantity : str
        A quantity such as "mass_matrix", or a term of the equations such as "E"; by default the equations of motion.
    frame : str
        Frame of a quantity that takes one.
    digits : int
        Significant digits of numbers that have no shorter form, 1 to 17; 0 for the default of the target.
    terms : int
        An output with an entry of more terms than this is written in steps.
    independent : sequence of str
        Names of the independent coordinates of a mechanism with loops; by default the first ones that determine all
        others.

    Returns
    -------
    str
        The source text.

    Raises
    ------
    InputError
        If an argument is not valid.
    """
    check_known("target", target, TEXT_TARGETS)
    if quantity and quantity not in TERMS:
        g = graphs.graph(mechanism, quantity, frame=frame)
    elif quantity:
        g = readable_graph(mechanism, [quantity], independent)
    else:
        g = motion_graph(mechanism, independent)
    return equation_text(mechanism, g, target, digits, terms, frame, independent=independent)
