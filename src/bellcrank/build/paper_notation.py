"""Quantities in the notation of nikravesh1989 as graphs: Psi, C, E, Mr, fr of closed loops, and B, G, H of any tree.

    bellcrank emit four_bar --target latex                   the minimal equations of motion (19) with all their terms
    bellcrank emit four_bar --target latex -q E              the null-space matrix, in terms of C

They are not quantities of the public table: their rows and columns depend on the chosen independent coordinates. A
graph of them is a kernel by `bc.compile`, and text by build/equations.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bellcrank.build import graphs
from bellcrank.build.policy import check_request
from bellcrank.dynamics import METHODS, method, shape_of
from bellcrank.dynamics.historical import velocity_transformation
from bellcrank.dynamics.quantities import Request
from bellcrank.errors import InputError
from bellcrank.graph import Graph, Node, trace
from bellcrank.model import Mechanism, Tree
from bellcrank.scalar import Scalar
from bellcrank.spatial.vector import ZERO


@dataclass(frozen=True)
class Term:
    """A term of the equations: description, inputs, and the terms that it is computed from."""

    what: str
    inputs: tuple[str, ...]
    uses: tuple[str, ...] = ()


# In the order of computation.
TERMS: Mapping[str, Term] = {
    "B": Term("velocity transformation, rows r' and w of each body (5)", ("q",)),
    "G": Term("propagation of velocities from parent to child, with G B = H (27)", ("q",)),
    "H": Term("columns of each body's own joint (27)", ("q",)),
    "Psi": Term("loop equations without redundant ones (11)", ("q",)),
    "C": Term("Jacobian of the loop equations (12)", ("q",)),
    "Cv": Term("rate of C times v, C a + Cv = 0 (13)", ("q", "v")),
    "E": Term("null space, v = E v_i (23)", ("q",), ("C",)),
    "Ev": Term("rate of E times v_i, a = E a_i + Ev (25)", ("q", "v"), ("C", "Cv")),
    "M": Term("mass matrix", ("q",)),
    "h": Term("Coriolis and centrifugal forces", ("q", "v")),
    "g": Term("gravity forces", ("q",)),
    "f": Term("damping, friction and springs of the joints", ("q", "v")),
    "Mr": Term("reduced mass matrix (20)", ("q",), ("C", "E", "M")),
    "fr": Term("reduced force (21)", ("q", "v", "tau"), ("C", "Cv", "E", "Ev", "M", "h", "g", "f")),
}
MOTION_TERMS = ("M", "h", "g", "f")  # of a tree
CLOSED_TERMS = tuple(TERMS)[3:]  # of a mechanism with loops
LOOP_TERMS = ("Psi", "C", "Cv", "E", "Ev", "Mr", "fr")
TREE_RELATION, CLOSED_RELATION = "M a + h + g = tau + f", "Mr a_i = fr"


def term_graph(mechanism: Mechanism, names: Sequence[str], independent: Sequence[str] = ()) -> Graph:
    """Return terms of the equations of motion as the outputs of one graph.

    Parameters
    ----------
    mechanism
        The mechanism.
    names
        Keys of `TERMS`.
    independent
        Names of the independent coordinates of a mechanism with loops; empty for those chosen here.
    """
    check_request(mechanism, Request("bias"))
    check_terms(mechanism, names, independent)
    values = _functions(mechanism, independent)
    used = {x for name in names for x in (name, *TERMS[name].uses)}
    inputs = [x for x in ("q", "v", "tau") if any(x in TERMS[name].inputs for name in names)]

    def body(**symbols: Any) -> dict[str, Any]:
        known: dict[str, Any] = dict(symbols)
        for name in (name for name in TERMS if name in used):
            known[name] = values[name](known)
        return {name: known[name] for name in TERMS if name in names}

    shapes = {name: shape_of(name, mechanism.tree) for name in inputs}
    title = names[0] if len(names) == 1 else "equations"
    return trace(f"{mechanism.name}.{title}", body, shapes, mechanism.parameters)


def readable_graph(mechanism: Mechanism, names: Sequence[str], independent: Sequence[str] = ()) -> Graph:
    """Return terms and all terms that they are computed from, for printing: E as a function of C, not of q.

    A term that others use is an input of the graph as well as an output; its elements that are plain numbers stay so.

    Parameters
    ----------
    mechanism, names, independent
        As in `term_graph`.
    """
    used = {x for name in names for x in (name, *TERMS[name].uses)}
    wanted = [name for name in TERMS if name in used]
    traced = term_graph(mechanism, wanted, independent)
    values = _functions(mechanism, independent)
    again = [name for name in wanted if any(name in TERMS[other].uses for other in wanted)]

    def body(**symbols: Any) -> dict[str, Any]:
        known = {name: _opaque(traced.outputs[name], x) if name in again else x for name, x in symbols.items()}
        known.pop("p", None)
        return {name: values[name](known) for name in wanted}

    shapes = {name: array.shape for name, array in traced.outputs.items() if name in again}
    plain = {name: shape for name, shape in traced.inputs.items() if name != "p"}
    return trace(traced.name, body, plain | shapes, mechanism.parameters)


def _opaque(computed: Any, symbols: Any) -> Any:
    """Return a term with its numbers as they are, and symbols elsewhere; one symbol for equal elements of a matrix."""
    if computed.ndim == 1:
        return [s if isinstance(x, Node) else x for x, s in zip(computed, symbols, strict=True)]
    first: dict[int, Any] = {}
    return [
        [first.setdefault(x.serial, s) if isinstance(x, Node) else x for x, s in zip(row, line, strict=True)]
        for row, line in zip(computed, symbols, strict=True)
    ]


def motion_graph(mechanism: Mechanism, independent: Sequence[str] = ()) -> Graph:
    """Return the equations of motion of `mechanism` for printing; with loops, the minimal ones.

    Parameters
    ----------
    mechanism, independent
        As in `term_graph`.
    """
    if not mechanism.loops:
        return term_graph(mechanism, MOTION_TERMS, independent)
    return readable_graph(mechanism, CLOSED_TERMS, independent)


def check_terms(mechanism: Mechanism, names: Sequence[str], independent: Sequence[str]) -> None:
    """Raise an InputError if terms `names` or names of `independent` coordinates do not fit the `mechanism`."""
    of_loops = [name for name in names if name in LOOP_TERMS]
    if of_loops and not mechanism.loops:
        raise InputError(
            f'"{mechanism.name}" has no closed loops; {", ".join(LOOP_TERMS)} are terms of loops. Trees have '
            f"{', '.join(name for name in TERMS if name not in LOOP_TERMS)}."
        )
    if independent and not mechanism.loops:
        raise InputError(f'"{mechanism.name}" has no closed loops: all its coordinates are independent.')


def independent_names(mechanism: Mechanism, independent: Sequence[str] = ()) -> list[str]:
    """Return the names of the independent coordinates, given or chosen.

    Parameters
    ----------
    mechanism, independent
        As in `term_graph`.
    """
    from bellcrank.dynamics.loops.closed_form import closed_form

    return [mechanism.columns[1][k] for k in closed_form(mechanism, independent).independent]


def _functions(mechanism: Mechanism, independent: Sequence[str]) -> dict[str, Callable[[dict[str, Any]], Any]]:
    """Return the function of each term: it takes the inputs and terms that are known already, by name."""
    true_tree = mechanism.tree
    functions = {
        "B": lambda x: velocity_transformation.velocity_transformation(true_tree, x["q"]),
        "G": lambda x: velocity_transformation.propagation_matrix(true_tree, x["q"]),
        "H": lambda x: velocity_transformation.joint_blocks(true_tree, x["q"]),
        **_tree_functions(mechanism),
    }
    return functions | (_loop_functions(mechanism, true_tree, independent) if mechanism.loops else {})


def _tree_functions(mechanism: Mechanism) -> dict[str, Callable[[dict[str, Any]], Any]]:
    tree = graphs.quantity_tree(mechanism, "bias", METHODS["rnea"])
    weightless = replace(tree, gravity=ZERO)
    M = method("crba", "mass_matrix", tree).function("mass_matrix")
    bias = method("rnea", "bias", tree).function("bias")
    passive = method("kinematics", "passive_torque", tree).function("passive_torque")
    return {
        "M": lambda x: M(tree, x["q"]),
        "h": lambda x: bias(weightless, x["q"], x["v"]),
        "g": lambda x: bias(tree, x["q"], [0.0] * tree.nv),
        "f": lambda x: passive(tree, x["q"], x["v"]),
    }


def _loop_functions(
    mechanism: Mechanism, tree: Tree, independent: Sequence[str]
) -> dict[str, Callable[[dict[str, Any]], Any]]:
    from bellcrank.dynamics.loops import closed_form as closed

    form = closed.closed_form(mechanism, independent)

    def force(x: dict[str, Any]) -> list[Scalar]:
        parts = zip(x["tau"], x["f"], x["h"], x["g"], strict=True)
        return [tau + f - h - g for tau, f, h, g in parts]

    return {
        "Psi": lambda x: closed.loop_residuals(tree, form, x["q"]),
        "C": lambda x: closed.constraint_jacobian(tree, form, x["q"]),
        "Cv": lambda x: closed.constraint_bias(tree, form, x["q"], x["v"]),
        "E": lambda x: closed.null_space(form, x["C"]),
        "Ev": lambda x: closed.null_space_rate(form, x["C"], x["Cv"]),
        "Mr": lambda x: closed.reduced_mass(x["E"], x["M"]),
        "fr": lambda x: closed.reduced_force(x["E"], x["M"], force(x), x["Ev"]),
    }
