"""Replays of selected runs for the page of a study: positions of the bodies, frame by frame."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.model import Mechanism
from bellcrank.parameters.parameter_table import nominal
from bellcrank.sim.run.simulator import Simulator
from bellcrank.studies.distributions import Array
from bellcrank.studies.run_batches import run_batch, run_groups
from bellcrank.studies.study_setup import StudySetup
from bellcrank.view.scene import poses

if TYPE_CHECKING:
    from bellcrank.studies.study import Study

FRAMES_PER_RUN = 40
MAX_COORDINATES = 1_000_000  # coordinates of all replays together: 2 MB
DEFAULT_STEP = 1e-3  # s; default of a run without a step


def replays(study: Study, runs: Array) -> list[dict[str, Any]]:
    """Return the replays of `runs` of `study`: for each group with a common mechanism, runs, bones and positions.

    Positions have the axes (run, frame, body).
    """
    setup = StudySetup(**{**study.setup.__dict__, "summary": ()})
    values = {name: x[runs] for name, x in study.points.columns.items()}
    packed = []
    for choice, rows in run_groups(setup, values):
        sim = setup.simulator(choice)
        group_values = {name: x[rows] for name, x in values.items()}
        m = sim.system.mechanism
        max_runs = max(1, MAX_COORDINATES // (FRAMES_PER_RUN * 3 * len(_bones(m))))
        kept_rows = rows[:max_runs]
        places, times = _body_positions(
            setup, sim, runs[kept_rows], {name: x[: len(kept_rows)] for name, x in group_values.items()}
        )
        packed.append({"runs": runs[kept_rows].tolist(), "bones": _bones(m), **_pack_positions(places), "t": times})
    return packed


def _body_positions(
    setup: StudySetup, sim: Simulator, runs: Array, values: dict[str, Array]
) -> tuple[Array, list[float]]:
    h = float(values["step"][0]) if "step" in values else setup.settings.get("step") or DEFAULT_STEP
    steps = max(1, round(setup.seconds / h))
    every = setup.seconds / FRAMES_PER_RUN if sim.integrator.adaptive else h * -(-steps // FRAMES_PER_RUN)
    record = run_batch(setup, sim, runs, values, keep="rows", every=every)
    m = sim.system.mechanism
    q = np.asarray(record.q)
    posed = poses(m, q.reshape(-1, m.nq))
    shown = np.concatenate([posed[..., :3], _leaf_centres(nominal(m), posed)], axis=1)
    placed = shown.reshape(*q.shape[:2], -1, 3)
    t = np.nanmax(record.t, axis=0)
    return placed, [round(float(x), 6) for x in t]


def _leaf_bodies(m: Mechanism) -> list[int]:
    """Return the bodies without children; without their centres of mass a pendulum would be drawn as a point."""
    return [i for i in range(len(m.bodies)) if i not in m.parent]


def _bones(m: Mechanism) -> list[int]:
    """Return the parent of each body (-1: the ground), then the bodies of `_leaf_bodies`, parents of their centres."""
    return [int(p) for p in m.parent] + _leaf_bodies(m)


def _leaf_centres(m: Mechanism, posed: Array) -> Array:
    """Return the centres of mass of the bodies of `_leaf_bodies`, (rows, ends, 3)."""
    ends = _leaf_bodies(m)
    p, u, w = posed[:, ends, :3], posed[:, ends, 3:6], posed[:, ends, 6:]
    com = np.array([[float(x) for x in m.bodies[i].com] for i in ends])
    t = 2.0 * np.cross(u, com)
    return np.asarray(p + com + w * t + np.cross(u, t))


def _pack_positions(places: Array) -> dict[str, Any]:
    """Return places as 16-bit integers between their smallest and largest value; missing ones are -32768."""
    good = np.isfinite(places)
    low, high = float(places[good].min(initial=0.0)), float(places[good].max(initial=1.0))
    scale = (high - low or 1.0) / 65000.0
    whole = np.where(good, np.round((np.where(good, places, low) - low) / scale) - 32500, -32768).astype("<i2")
    return {
        "shape": list(places.shape), "low": low, "scale": scale, "data": base64.b64encode(whole.tobytes()).decode()
    }  # fmt: skip
