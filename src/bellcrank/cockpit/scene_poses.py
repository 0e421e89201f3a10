"""Scene for the page and its motion: shapes, a kernel for the poses of the bodies, and replay data of a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bellcrank.build.function_compilation import compile_graph
from bellcrank.graph import trace
from bellcrank.ground.field import CELL_SIZE, Array, Ground
from bellcrank.model import Mechanism
from bellcrank.record import Record
from bellcrank.record.dug_ground import dug_ground
from bellcrank.view import scene

MAX_TRIANGLES = 120_000  # maximum of all meshes together: 4 MB
RANDOM_POSES = 8  # random poses that determine the extent of a mechanism
MAX_ROWS = 3600  # maximum number of rows: a minute at the rate of a screen
NO_CELL = 2**32 - 1


def scene_data(m: Mechanism, q: Array, alone: bool) -> dict[str, Any]:
    """Return shapes, names, joints, up direction and extent of `m`: at `q` if `alone`, else also at random poses."""
    m = m.at() if m.parameters else m
    others = [] if alone else [m.random(seed)[0] for seed in range(RANDOM_POSES)]
    return scene.scene(m, np.stack([q, *others]), MAX_TRIANGLES) | {"joints": scene.joint_data(m)}


def pose_kernel(m: Mechanism) -> Callable[[Array], Array]:
    """Return a kernel of `m` from q (..., nq) to (..., bodies, 12), rows of the 3x4 poses of all body frames."""
    placements = scene.placements(m)

    def placed(q: Any) -> dict[str, Any]:
        rows = (zip(R.rows, p, strict=True) for R, p in placements(list(q)))
        return {"poses": [[x for row, t in body for x in (*row, t)] for body in rows]}

    graph = trace(f"{m.name}.stage", placed, {"q": (m.nq,)}, m.parameters)
    kernel: Callable[[Array], Array] = compile_graph(graph, name="poses", parameters=m.parameters)
    return kernel


def pack_replay(run: Record, names: Sequence[str], poses: Callable[[Array], Array], ground: Ground | None) -> bytes:
    """Pack a record as little-endian binary data.

    The layout is: u32 number of rows, their width, number of ground changes, number of ground heights; f64 times of the
    rows, times of the changes; f32 rows, initial heights, and height, load and dug volume of each change; u32 cell of
    each change. A change without a cell (2^32 - 1) is a change of the load only.

    Parameters
    ----------
    run
        Record.
    names
        Columns that follow the poses in a row; names that the record lacks are left out.
    poses
        Function from positions (rows, nq) to poses of the bodies (rows, bodies, 12).
    ground
        Ground of the machine, if it has one.
    """
    rows_kept = np.arange(len(run))[:: max(1, -(-len(run) // MAX_ROWS))]
    t = np.ascontiguousarray(run.t[rows_kept], "<f8")
    rows, span = np.empty((0, 0)), (0.0, 0.0)
    if len(rows_kept):
        pose_rows = poses(np.ascontiguousarray(run.q[rows_kept])).reshape(len(rows_kept), -1)
        columns = [run[name][rows_kept] for name in names if name in run.names]
        rows, span = np.concatenate([pose_rows, np.stack(columns, -1)], axis=1), (float(t[0]), float(t[-1]))
    base, patches = ground.history(*span) if ground is not None else (np.empty(0), [])
    changed = [(p, cell, height) for p in patches for cell, height in (p.cells or {NO_CELL: 0.0}).items()]
    changes = [(p.t, height, p.load, p.dug, cell) for p, cell, height in changed]
    when, *numbers, cells = zip(*changes, strict=True) if changes else ([], [], [], [], [])
    head = np.array([len(rows_kept), rows.shape[1], len(changes), base.size], "<u4")
    floats = [rows.ravel(), base.ravel(), *numbers]
    parts = [head, t, np.array(when, "<f8"), *(np.asarray(x, "<f4") for x in floats), np.array(cells, "<u4")]
    return b"".join(part.tobytes() for part in parts)


def with_ground(run: Record, ground: Ground | None) -> Record:
    """Return `run` with the changes of `ground` added as facts, for a file."""
    if ground is None or not len(run):
        return run
    base, patches = ground.history(float(run.t[0]), float(run.t[-1]))
    dug = dug_ground(ground.level, CELL_SIZE, base, [(patch.t, patch.cells) for patch in patches])
    return run.noting({"ground": dug.plain, "soil": ground.soil.name})
