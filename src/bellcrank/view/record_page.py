"""Report page of a record in one self-contained file: facts, plots and the replay; and its figure by Matplotlib.

A long record is decimated: the page has at most MAX_ROWS rows, every k-th of the record and the last, and states this.

Pages draw built-in machines with detailed shapes by the scripts of the cockpit's page. Such a machine is recognised by
the name of its mechanism and by its bodies, because a user's mechanism may have the same name. The scripts are bundled
from web/ and are not in git: without them a machine is drawn by simple shapes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.files import path_of, write_atomically
from bellcrank.lazy_import import optional_import
from bellcrank.model.parts import Array
from bellcrank.quoting import mathtext
from bellcrank.record.contents import ENERGIES, plain, sections
from bellcrank.record.evaluation import is_conservative, quadrature_error, residuals, value_text
from bellcrank.view import scene
from bellcrank.view.mechanism_picture import checked_lane
from bellcrank.view.self_contained_page import css_variables, packed, page

if TYPE_CHECKING:
    from bellcrank.model import Mechanism
    from bellcrank.record.record import Record

GENERATOR = "bellcrank report"  # mark of our files
SCRIPTS = ("data.js", "space.js", "shapes.js", "terrain.js", "beams.js", "stage.js", "world.js", "plots.js", "page.js")
MAX_ROWS = 2000
EXPLAINED_ERROR = 1e-3  # relative energy error above which the page explains it
MAX_REPLAY_VALUES = 1_000_000  # maximum number of values in the replay, 4 MB; a humanoid gets fewer frames
TITLES = {
    "q": "Positions", "v": "Velocities", "a": "Accelerations",
    "tau": "Forces of drives", "passive": "Passive forces", "external": "Forces from outside",
}  # fmt: skip
MOMENTS = ("T", "My", "Mz")
PREFIXES = {"input": "Inputs", "parameter": "Parameters"}
BY_UNIT = {
    "rad": "Angles", "deg": "Angles", "m": "Lengths", "rad/s": "Rates", "m/s": "Speeds", "N": "Forces",
    "N m": "Torques", "Pa": "Pressures", "psi": "Pressures", "bar": "Pressures", "J": "Energies", "W": "Powers",
    "s": "Times", "A": "Currents",
}  # fmt: skip
# Line colours on white and on black.
LINE_COLOURS = (
    ("#2563c9", "#7db1ff"), ("#d9480f", "#ff9a5c"), ("#2b8a3e", "#69db7c"), ("#ae3ec9", "#e599f7"),
    ("#0c8599", "#3bc9db"), ("#c2255c", "#faa2c1"), ("#846400", "#ffd43b"), ("#5f3dc4", "#b197fc"),
    ("#5c940d", "#a9e34b"), ("#495057", "#ced4da"),
)  # fmt: skip
MAX_RUNS = 50  # maximum number of runs of a batch that are drawn
LEGEND_ROWS = 12  # entries in one column of the legend
ARM = ("cab", "boom", "stick", "bucket")
CYLINDERS = tuple(f"{name}_{part}" for name in ARM[1:] for part in ("barrel", "rod"))
HINT = "The record is still in memory: plot again"


def html(run: Record, lane: int | Sequence[int]) -> str:
    """Return the page of run `lane` of the record `run`."""
    name = run.mechanism.name if run.mechanism is not None else str(run.provenance.get("mechanism", "record"))
    content = page_data(run, lane, name)
    world = script() if content["replay"] and content["replay"]["world"] else ""
    data = json.dumps(plain(content), allow_nan=False)
    return page("view/record_web", name, GENERATOR, SCRIPTS, data, _colours, WORLD=world)


def _colours(dark: bool) -> str:
    lines = (f"--line{i}: {pair[dark]};" for i, pair in enumerate(LINE_COLOURS))
    return " ".join([css_variables(dark), *lines])


def page_data(run: Record, run_index: int | Sequence[int], name: str) -> dict[str, Any]:
    """Return the data of the page titled `name`, for the run `run_index` of the batch `run`."""
    lane = checked_lane(run, run_index)
    rows = np.flatnonzero(np.isfinite(run.t[lane]))
    shown_rows = decimated(rows, MAX_ROWS)
    if not shown_rows.size:
        raise InputError("the record has no rows; there is nothing to report.")
    m = run.mechanism
    places = len(m.bodies) if m is not None else 0
    panel_list = panels(run)
    columns = list(dict.fromkeys(c for panel in panel_list for c in panel["columns"]))
    data: dict[str, Any] = {
        "name": name,
        "about": subtitle(run, lane, rows.size, shown_rows.size),
        "facts": facts(run, lane),
        "stops": stop_lines(run, lane),
        "warnings": [f"{w.element}: {w.outcome}" for w in m.report.warnings] if m is not None else [],
        "provenance": [[key, value_text(value)] for key, value in run.provenance.items()],
        "joints": joint_table(run),
        "t": packed(run.t[lane][shown_rows], "<f8"),
        "columns": [_column(run, c, lane, shown_rows) for c in columns],
        "panels": [p | {"columns": [columns.index(c) for c in p["columns"]]} for p in panel_list],
        "replay": None,
        "ground": ground(run),
    }  # fmt: skip
    if m is not None and places and run.has_state("q"):
        q = run.q[lane]
        good = rows[np.isfinite(q[rows]).all(axis=-1)]
        frames = decimated(good, max(2, min(MAX_ROWS, MAX_REPLAY_VALUES // (7 * places))))
        if frames.size:
            data["replay"] = replay_scene(m, q[frames]) | {
                "t": packed(run.t[lane][frames], "<f8"),
                "poses": packed(scene.poses(m, q[frames]), "<f4"),
                "stress": scene.largest_stress(m, q[frames]),
            }
            data["replay"]["bends"] = packed(q[frames][:, data["replay"]["bent"]], "<f4")
            data["warnings"] += data["replay"].pop("notes")
    return data


def replay_scene(m: Mechanism, q: Array) -> dict[str, Any]:
    """Return the scene of `m` for positions `q`; its entry "world" is for drawing as in the cockpit, or None."""
    look, bundled = shape_of(m), bool(script())
    scene_data = scene.scene(m, q, scene.MAX_TRIANGLES if bundled else 6000)
    meshed = any(s["kind"] == "mesh" for s in scene_data["shapes"])
    world = {
        "look": look.name if look else "", "ground": look.ground_level if look else None,
        "full": look.full_load if look else 1.0, "joints": scene.joint_data(m),
    }  # fmt: skip
    if look and not bundled:
        note = "drawn with simple shapes: the page's scripts are not built (make page)"
        scene_data["notes"] = [*scene_data["notes"], note]
    return scene_data | {"world": world if bundled and (look or meshed) else None}


@dataclass(frozen=True)
class MachineShape:
    """Detailed shape: its name in web/src/view.ts, ground level in m, required bodies, and full bucket load in kg."""

    name: str
    ground_level: float
    bodies: tuple[str, ...]
    full_load: float = 1500.0


LINKAGE = MachineShape("linkage", 0.0, (*ARM, "lever", "link", *CYLINDERS))
MACHINE_SHAPES = {
    "excavator": MachineShape("excavator", -1.0, ARM),
    "excavator_linkage": LINKAGE,
    "excavator_flexible": LINKAGE,
    "excavator_tracked": LINKAGE,
}


def shape_of(m: Mechanism) -> MachineShape | None:
    """Return the detailed shape of `m`, if it has one."""
    shape = MACHINE_SHAPES.get(m.name)
    names = [b.name for b in m.bodies]
    if shape is None or not set(shape.bodies) <= set(names):
        return None
    return shape if shape.name != "excavator" or tuple(names[:4]) == ARM else None


def script() -> str:
    """Return the scripts that draw detailed shapes; "" if they are not bundled."""
    path = files("bellcrank") / "cockpit" / "static" / "report.js"
    return path.read_text("utf-8").replace("</script", "<\\/script") if path.is_file() else ""


def decimated(rows: Array, most: int) -> Array:
    """Return at most `most` of `rows`: every k-th, and the last."""
    k = max(1, -(-(rows.size - 1) // (most - 1)))
    return rows if k == 1 else np.append(rows[:-1:k], rows[-1])


def ground(run: Record) -> dict[str, Any] | None:
    """Return the dug heights of `run` for the replay."""
    dug = run.ground
    if dug is None:
        return None
    types = {"first": "<f4", "t": "<f8", "cells": "<u4", "heights": "<f4"}
    numbers = {name: packed(getattr(dug, name), dtype) for name, dtype in types.items()}
    return {"level": dug.level, "cell": dug.cell, "rows": dug.rows, **numbers}


# -- texts


def subtitle(run: Record, lane: tuple[int, ...], rows: int, shown: int) -> str:
    """Return the subtitle for run `lane` of `run`, with its number of `rows` and of rows `shown` on the page."""
    parts = [f"{rows} rows over {np.nanmax(run.t[lane]) - np.nanmin(run.t[lane]):.6g} s"]
    parts += [f"run {', '.join(map(str, lane))} of the batch {' x '.join(map(str, run.batch))}"] if lane else []
    parts += [f"{shown} of them are on this page"] if shown < rows else []
    return "; ".join(parts)


def facts(run: Record, lane: tuple[int, ...]) -> list[list[str]]:
    """Return value, unit and label of the main facts about run `lane` of `run`."""
    m, provenance = run.mechanism, run.provenance
    duration = f"{np.nanmax(run.t[lane]) - np.nanmin(run.t[lane]):.6g}"
    out = [[duration, "s", "shown" if "part" in provenance else "simulated"]]
    if m is not None:
        freedom = m.loop_analysis.mobility if m.loops else m.nv
        out += [[str(len(m.bodies)), "", "moving bodies"], [str(freedom), "", "degrees of freedom"]]
    out += [[str(provenance["integrator"]), "", "integrator"]] if "integrator" in provenance else []
    out += [[value_text(provenance["step"]), "s", "step"]] if isinstance(provenance.get("step"), (int, float)) else []
    worst: dict[str, float] = {}
    for key, value in residuals(run).items():
        # The balance accounts for the supplied and dissipated energy.
        drift = "energy drift" if is_conservative(run) else "energy balance"
        label = drift if key == "energy" else f"{key.split()[0]} error"
        worst[label] = max(worst.get(label, 0.0), float(np.asarray(value)[lane]))
    balance_error = worst.get("energy balance", 0.0)
    if balance_error > EXPLAINED_ERROR and float(np.asarray(quadrature_error(run))[lane]) > 0.1 * balance_error:
        del worst["energy balance"]  # this error comes from the spacing of the rows, not from the run
        out.append(["?", "", "energy balance: rows too far apart"])
    return out + [[f"{size:.1e}" if size else "0", "", label] for label, size in worst.items()]


def stop_lines(run: Record, lane: tuple[int, ...]) -> list[list[str]]:
    """Return reason, time and message of the end of run `lane` of `run`."""
    if not run.stops:
        return []
    s = run.stops[int(np.ravel_multi_index(lane, run.batch)) if lane else 0]
    return [[s.reason, f"{s.time:.6g} s", s.message]]


def joint_table(run: Record) -> list[list[str]]:
    """Return a table of the joints of the mechanism of `run`."""
    m = run.mechanism
    if m is None:
        return []
    return [[j.name, j.kind, j.parent, b.name, f"{b.mass:.5g} kg"] for j, b in zip(m.joints, m.bodies, strict=True)]


# -- plots


def panels(run: Record) -> list[dict[str, Any]]:
    """Return the panels of `run`: columns of the same kind (end of the name) and unit, then energies."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name in run.columns[1:]:
        if name not in ENERGIES:
            unit = run.column(name).unit
            groups.setdefault((title_of(name, unit), unit), []).append(name)
    out = [{"title": title, "unit": unit, "columns": names} for (title, unit), names in groups.items()]
    cuts = sections(run.mechanism) if run.mechanism is not None and run.has_state("q") else {}
    for title, unit, what in (("Stresses at sections", "Pa", ("stress",)), ("Moments at sections", "N m", MOMENTS)):
        names = [name for name in cuts if name.rpartition(".")[2] in what and name not in run.columns]
        out += [{"title": title, "unit": unit, "columns": names}] if names else []
    if "energy" in run:
        parts = [n for n in reversed(ENERGIES) if n in run]
        out.append({"title": "Energies", "unit": "J", "columns": parts})
        out.append({"title": "Change of energy", "unit": "J", "columns": [CHANGE]})
    return out


def title_of(name: str, unit: str) -> str:
    """Return the title of a panel of columns like `name`, in `unit`."""
    kind = name.rpartition(".")[2]
    if (kind, unit) == ("q", "1"):
        return "Orientation"
    prefix = name.partition(".")[0] if "." in name else ""
    known = PREFIXES.get(prefix) or (TITLES.get(kind) if prefix else None) or BY_UNIT.get(unit)
    return known or f"{kind[:1].upper()}{kind[1:]}"


CHANGE = "energy - energy(0)"


def _column(run: Record, name: str, lane: tuple[int, ...], rows: Array) -> dict[str, Any]:
    is_change = name == CHANGE and name not in run.columns
    values = run["energy"] - run["energy"][..., :1] if is_change else run[name]
    unit = "J" if is_change else run.column(name).unit
    return {"name": name, "unit": unit, "values": packed(values[lane][rows], "<f8")}


def plot(run: Record, names: tuple[str, ...], path: str | Path | None) -> Any:
    """Draw the columns `names` of `run`; also write the figure to `path` (.png, .pdf, .svg, ...) if given."""
    figures = optional_import("matplotlib.figure", "plot", "plotting")
    shown = _chosen_panels(run, names)
    size = (9.0, 0.8 + 2.4 * len(shown))
    if path is None:  # registered in pyplot, so that plt.show() and notebooks show it
        figure = optional_import("matplotlib.pyplot", "plot", "plotting").figure(figsize=size, layout="constrained")
        figure._ipython_display_ = partial(_display_closed, figure)
    else:
        figure = figures.Figure(figsize=size, layout="constrained")
    axes = np.atleast_1d(figure.subplots(len(shown), 1, sharex=True))
    lanes = list(np.ndindex(*run.batch))
    drawn = [lanes[i] for i in np.unique(np.linspace(0, len(lanes) - 1, min(MAX_RUNS, len(lanes))).astype(int))]
    for ax, panel in zip(axes, shown, strict=True):
        for k, name in enumerate(panel["columns"]):
            for lane in drawn:
                label = mathtext(name) if lane == drawn[0] else None
                thin = {"linewidth": 1.2} if len(drawn) == 1 else {"linewidth": 0.7, "alpha": 0.6}
                ax.plot(run.t[lane], run[name][lane], color=f"C{k % 10}", label=label, **thin)
        title = " ".join(filter(None, [panel["title"], f"[{panel['unit']}]" if panel["unit"] else ""]))
        ax.set_ylabel(mathtext(title))
        ax.grid(alpha=0.3)
        lines, labels = ax.get_legend_handles_labels()
        if len(labels) > 2 * LEGEND_ROWS:
            labels = [*labels[: 2 * LEGEND_ROWS - 1], f"... and {len(labels) - 2 * LEGEND_ROWS + 1} more"]
        beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False, "fontsize": "small"}
        if labels:
            ax.legend(lines[: len(labels)], labels, ncols=1 + (len(labels) > LEGEND_ROWS), **beside)
    axes[-1].set_xlabel("t [s]")
    figure.align_ylabels(axes)
    run_text = (
        f", {len(drawn)} of {run.runs} runs" if len(drawn) < run.runs else f", {run.runs} runs" if run.batch else ""
    )
    figure.suptitle(mathtext(f"{repr(run)[1:].partition(':')[0]}{run_text}"))
    if path is not None:
        _write(figure, path_of(path))
    return figure


def _display_closed(figure: Any) -> None:
    """Display the figure in a notebook, unless pyplot does.

    At the end of a cell, the notebook shows all open figures of pyplot, so this one must not be shown a second time.
    When pyplot has closed it, it is shown here.
    """
    if not optional_import("matplotlib.pyplot", "plot", "plotting").fignum_exists(figure.number):
        shown = import_module("IPython.display")
        stream = io.BytesIO()
        figure.savefig(stream, format="png")
        shown.display(shown.Image(data=stream.getvalue()))


def _chosen_panels(run: Record, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return panels of the named columns by unit; without names, of positions, velocities and energies."""
    if not names:
        return [p for p in panels(run) if p["columns"] != [CHANGE]]
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(run.column(name).unit, []).append(name)
    return [{"title": "", "unit": unit, "columns": columns} for unit, columns in groups.items()]


def _write(figure: Any, path: Path) -> None:
    kind = path.suffix.lower().lstrip(".")
    known = figure.canvas.get_supported_filetypes()
    if kind not in known:
        raise InputError(f'{path}: a figure can be written as {", ".join(sorted(known))}; got "{path.suffix}".')
    write_atomically(path, lambda stream: figure.savefig(stream, format=kind), HINT)
