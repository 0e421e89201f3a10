"""Scene and poses for the page: the shapes of the bodies, and a kernel for the poses of the bodies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bellcrank.build.function_compilation import compile_graph
from bellcrank.graph import trace
from bellcrank.model import Mechanism
from bellcrank.view import scene
from bellcrank.view.machine_shapes import joint_data

Array = np.ndarray[Any, Any]


MAX_TRIANGLES = 120_000  # maximum of all meshes together: 4 MB
RANDOM_POSES = 8  # random poses that determine the extent of a mechanism


def scene_data(m: Mechanism, q: Array, alone: bool) -> dict[str, Any]:
    """Return shapes, names, joints, up direction and extent of `m`: at `q` if `alone`, else also at random poses."""
    m = m.at() if m.parameters else m
    others = [] if alone else [m.random(seed)[0] for seed in range(RANDOM_POSES)]
    return scene.scene(m, np.stack([q, *others]), MAX_TRIANGLES) | {"joints": joint_data(m)}


def pose_kernel(m: Mechanism) -> Callable[[Array], Array]:
    """Return a kernel of `m` from q (..., nq) to (..., bodies, 12), rows of the 3x4 poses of all body frames."""
    placements = scene.placements(m)

    def placed(q: Any) -> dict[str, Any]:
        rows = (zip(R.rows, p, strict=True) for R, p in placements(list(q)))
        return {"poses": [[x for row, t in body for x in (*row, t)] for body in rows]}

    graph = trace(f"{m.name}.stage", placed, {"q": (m.nq,)}, m.parameters)
    kernel: Callable[[Array], Array] = compile_graph(graph, name="poses", parameters=m.parameters)
    return kernel
