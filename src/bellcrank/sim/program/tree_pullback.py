"""Pullback (reverse-mode derivative) of the rate of a tree, at known accelerations.

The accelerations a solve R = tau - ID(q, v, a) = 0, where ID is inverse dynamics. The chain rule therefore need not
differentiate the method that computed them: weights w of the rate h(t, y, u, a) give those of h at fixed a, and those
of R by

    mu = M^-1 (w dh/da),     w dh + mu dR

which is one solution with the mass matrix and the chain rule through the Newton-Euler equations, the shortest
formulation. It is exact if inverse and forward dynamics are inverse to each other at any y; inside a step quaternions
are not of unit length, and there they are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.build import graphs
from bellcrank.dynamics import METHODS, crba
from bellcrank.graph import Graph, Node, derivative
from bellcrank.scalar import Scalar

if TYPE_CHECKING:
    from bellcrank.sim.program.tree_dynamics import TreeDynamics

NodeWeights = dict[int, Any]  # weights by the serial of a node


def pullback(dynamics: TreeDynamics) -> Graph:
    """Return the graph (t, y, u, p, r_dy, w_dy) -> g_t, g_y, g_u, g_p of `dynamics`."""
    m, f, n = dynamics.system.mechanism, dynamics.f, dynamics.plain_size
    rate_inputs = {name: shape for name, shape in f.inputs.items() if name != "p"}

    def residual(t: Scalar, y: Any, r_dy: Any, u: Any = (), **_: Any) -> dict[str, Any]:
        y, a = list(y), list(r_dy[m.nq : m.nq + m.nv])
        residual_forces = dynamics.force_residual(t, y, u, a)
        return {"h": dynamics.rate(t, y, u, a), "R": residual_forces}

    plain = dynamics.trace("residual", residual, {**rate_inputs, "r_dy": (n,), "w_dy": (n,)})
    tape, names = plain.tape, list(f.inputs)
    rate_weights = _weights(plain.outputs["h"], tape.inputs("w_dy", (n,)))
    # w dh/da: mostly the weights of the rates of the velocities.
    acceleration_weights = derivative.reverse_sweep(
        Graph("h", plain.inputs, {"h": plain.outputs["h"]}, tape).nodes, rate_weights
    )
    a = tape.inputs("r_dy", (n,))[m.nq : m.nq + m.nv]
    q = list(tape.inputs("y", (n,))[: m.nq])
    tree = graphs.quantity_tree(m, "forward_dynamics", METHODS["crba"])
    mu = crba.accelerations(tree, q, [acceleration_weights.get(x.serial, 0.0) for x in a])
    input_weights = derivative.reverse_sweep(plain.nodes, _weights(plain.outputs["R"], mu, rate_weights))
    outputs = {}
    for name in names:
        shape = f.inputs[name]
        array = np.empty(shape, dtype=object)
        for k, index in enumerate(np.ndindex(*shape)):
            array[index] = input_weights.get(tape.node("input", name, k).serial, 0.0)
        outputs[f"g_{name}"] = array
    inputs = {name: f.inputs[name] for name in names} | {"r_dy": (n,), "w_dy": (n,)}
    return Graph(f"{f.name}.pullback", inputs, outputs, tape)


def _weights(rows: Iterable[Any], weights: Iterable[Any], further: NodeWeights | None = None) -> NodeWeights:
    total = dict(further or {})
    for x, w in zip(rows, weights, strict=True):
        if isinstance(x, Node):
            total[x.serial] = total[x.serial] + w if x.serial in total else w
    return total
