"""study.html: distributions, sensitivities with error bars, and a scatter whose points replay their runs.

One file, which loads nothing else. Names reach it as JSON and are put on the page as text, never as markup. A replay is
the positions of the bodies, frame by frame.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.files import write_page
from bellcrank.model import Mechanism
from bellcrank.parameters.parameter_table import nominal
from bellcrank.record.contents import plain
from bellcrank.sim.run.simulator import Simulator
from bellcrank.studies.dask_engine import REFUSED
from bellcrank.studies.run_batches import run_batch, run_groups
from bellcrank.studies.sampling_plans import Array, sobol_indices
from bellcrank.studies.study_setup import StudySetup
from bellcrank.view.scene import in_world, poses
from bellcrank.view.self_contained_page import page

if TYPE_CHECKING:
    from bellcrank.studies.study import Study

SCATTER_POINTS = 400  # points of the scatter; each can be replayed
HISTOGRAM_BINS = 40
FRAMES_PER_RUN = 40
MAX_COORDINATES = 1_000_000  # coordinates of all replays together: 2 MB
DEFAULT_STEP = 1e-3  # s; default of a run without a step
MAX_RESULTS = 40  # results with a distribution; the page reports how many are left out


def write_study_page(study: Study, path: Path) -> Path:
    """Write the page of `study` to `path`."""
    return write_page(path, study_html(study), "The study itself is complete: call report(...) again", ".html", ".htm")


def study_html(study: Study) -> str:
    """Return the page of `study`."""
    title = " and ".join(study.manifest["mechanisms"].values())
    data = json.dumps(plain(page_data(study)), allow_nan=False)
    return page("studies/web", f"study of {title}", "bellcrank study", ("page.js",), data)


def page_data(study: Study) -> dict[str, Any]:
    """Return all data of the page of `study`."""
    table = study.table()
    columns = {n: table.column(n) for n in table.column_names}
    results = list(study.results)[:MAX_RESULTS]
    numbers = {n: np.asarray(columns[n].to_numpy(), float) for n in results}
    runs = _scatter_runs(len(study), numbers)
    with np.errstate(all="ignore"):  # diverged runs may have any numbers
        result_data = [{"name": n, **_distribution(x), "indices": _indices(study, n, x)} for n, x in numbers.items()]
    stops = np.array([columns["stop"][int(r)].as_py() for r in runs])
    varied = {n: _json_values(x[runs]) for n, x in study.points.columns.items()}
    return {
        "title": " and ".join(study.manifest["mechanisms"].values()),
        "facts": _facts(study),
        "failures": study.failures,
        "left_out": max(0, len(study.results) - MAX_RESULTS),
        "results": result_data,
        "runs": runs.tolist(),
        "varied": varied,
        "numbers": {n: _json_values(x[runs]) for n, x in numbers.items()},
        "stops": stops.tolist(),
        "messages": [columns["message"][int(r)].as_py() for r in runs],
        "replays": replays(study, runs[stops != REFUSED]),
    }


def _facts(study: Study) -> dict[str, str]:
    m = study.manifest
    over = m["over"]
    text = ", ".join(f"{k} {x}" for k, x in over.items()) if isinstance(over, dict) else str(over)
    return {
        "over": text, "points": f"{m['points']}, seed {m['seed']}", "runs": f"{m['runs']} of {m['seconds']:g} s",
        "computed in": f"{m['wall']:.1f} s, {m['sessions']} session(s)", "by": f"bellcrank {m['bellcrank']}",
    }  # fmt: skip


def _scatter_runs(n: int, numbers: dict[str, Array]) -> Array:
    """Select runs for the scatter: evenly over all, and those with the least and the greatest value of each result."""
    even = np.linspace(0, n - 1, min(n, SCATTER_POINTS)).astype(int)
    ends = [f(x) for x in numbers.values() if np.isfinite(x).any() for f in (np.nanargmin, np.nanargmax)]
    return np.unique(np.concatenate([even, np.array(ends, int)]))


def _json_values(x: Array) -> list[Any]:
    if x.dtype.kind not in "fiu":
        return [str(v) for v in x]
    return [float(v) if np.isfinite(v) else None for v in x]


def _distribution(x: Array) -> dict[str, Any]:
    good = x[np.isfinite(x)]
    if not len(good):
        return {"missing": len(x), "bins": [], "edges": []}
    counts, edges = np.histogram(good, bins=HISTOGRAM_BINS if np.ptp(good) > 0 else 1)
    cuts = np.quantile(good, (0.05, 0.5, 0.95))
    return {
        "missing": len(x) - len(good), "bins": counts.tolist(), "edges": edges.tolist(), "mean": float(good.mean()),
        "deviation": float(good.std(ddof=1)) if len(good) > 1 else 0.0, "cuts": cuts.tolist(),
    }  # fmt: skip


def _indices(study: Study, name: str, x: Array) -> list[dict[str, Any]]:
    try:
        indices = sobol_indices(study.points, x, name)
    except InputError:  # a grid or a table, which is not a random sample
        return []
    columns = (indices.first, indices.first_error, indices.total, indices.total_error)
    return [
        {"name": n, **{k: None if np.isnan(c[i]) else float(c[i]) for k, c in zip(("s", "se", "t", "te"), columns)}}
        for i, n in enumerate(indices.names)
    ]


# -- replays


def replays(study: Study, runs: Array) -> list[dict[str, Any]]:
    """Return the replays of `runs` of `study`: for each group with a common mechanism, runs, bones and positions.

    Positions have the axes (run, frame, body).
    """
    setup = replace(study.setup, summary=())
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
    return in_world(posed[:, ends], np.array([m.bodies[i].com for i in ends], float))


def _pack_positions(places: Array) -> dict[str, Any]:
    """Return places as 16-bit integers between their smallest and largest value; missing ones are -32768."""
    good = np.isfinite(places)
    low, high = float(places[good].min(initial=0.0)), float(places[good].max(initial=1.0))
    scale = (high - low or 1.0) / 65000.0
    whole = np.where(good, np.round((np.where(good, places, low) - low) / scale) - 32500, -32768).astype("<i2")
    return {
        "shape": list(places.shape), "low": low, "scale": scale, "data": base64.b64encode(whole.tobytes()).decode()
    }  # fmt: skip
