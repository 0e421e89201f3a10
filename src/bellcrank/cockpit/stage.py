"""What the page draws: shapes on the bodies, once, and where the bodies are, sixty times a second, by a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bellcrank.build.compiling import of_graph
from bellcrank.dynamics.sweep import poses
from bellcrank.graph import trace
from bellcrank.model import Frame, Mechanism
from bellcrank.model.frames import tree_of
from bellcrank.view import scene
from bellcrank.view.machine_looks import joints

Array = np.ndarray[Any, Any]


TRIANGLES = 120_000  # of all meshes: 4 MB
POSES = 8  # tried at random, to see how much room a mechanism takes


def described(m: Mechanism, q: Array, alone: bool) -> dict[str, Any]:
    """Shapes, names, pins, which way is up, and how much room it takes: at q alone, or wherever it may go."""
    m = m.at() if m.parameters else m
    others = [] if alone else [m.random(seed)[0] for seed in range(POSES)]
    return scene.scene(m, np.stack([q, *others]), TRIANGLES) | {"joints": joints(m)}


def pose_kernel(m: Mechanism) -> Callable[[Array], Array]:
    """q (..., nq) -> (..., bodies, 12), the rows of the 3x4 matrix of each body's frame in the world."""
    marks = {str(i): Frame(str(i), b.name) for i, b in enumerate(m.bodies)}  # the user's names may stand elsewhere
    tree = tree_of(m.bodies, m.joints, marks, m.gravity, m.ground, m.flexible)

    def placed(q: Any) -> dict[str, Any]:
        found, out = poses(tree, list(q)), []
        for mark in marks:
            link, R_FB, p_FB = tree.frames[mark]
            R_WF, p_WF = found[link]
            p, R = p_WF + R_WF @ p_FB, R_WF.times(R_FB)
            out.append([x for row, t in zip(R.rows, p, strict=True) for x in (*row, t)])
        return {"poses": out}

    graph = trace(f"{m.name}.stage", placed, {"q": (m.nq,)}, m.parameters)
    found: Callable[[Array], Array] = of_graph(graph, name="poses", parameters=m.parameters)
    return found
