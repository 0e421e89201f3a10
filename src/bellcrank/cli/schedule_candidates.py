"""Tables of the search for the shortest schedule: its candidates, and the map of the best methods of a family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from bellcrank import quoting
from bellcrank.cli import screen
from bellcrank.cli.screen import TableColumn, numbers, page_path, texts, write_pages
from bellcrank.dynamics.quantities import Request
from bellcrank.errors import InputError
from bellcrank.progress import bar

if TYPE_CHECKING:
    from bellcrank.build.schedule_map import MapCell
    from bellcrank.build.schedule_search import Candidate
    from bellcrank.model import Mechanism

MAX_LISTED_CANDIDATES = 12  # candidates in the printed table


def print_candidates(candidates: Sequence[Candidate], unit: str) -> None:
    """Print the best `candidates` of a search with their makespans in a `unit`."""
    head = [TableColumn("candidate"), TableColumn("task"), *numbers("tasks", "operations", "bound", f"makespan {unit}")]
    rows = []
    for c in candidates[:MAX_LISTED_CANDIDATES]:
        makespan = "" if c.makespan is None else number_text(c.makespan)
        bound = number_text(c.bound) if c.bound else ""
        rows.append((c.name, c.level, str(c.tasks) if c.tasks else "", str(c.operations), bound, makespan, c.remark))
    screen.table([*head, *texts("")], rows)
    if more := candidates[MAX_LISTED_CANDIDATES:]:
        limited = sum("limit" in c.remark for c in more)
        why = f"{limited} not tried because of the limit of work" if limited else "none is shorter, by their bounds"
        screen.line(f"({len(more)} more candidates with --json; {why})", style="dim")


def print_map(
    family: str,
    sizes: str,
    request: Request,
    machine: tuple[str, str, str],
    out: Path | None,
    svg: bool,
    json: bool,
) -> None:
    """Print the best method of a family for each number of bodies and processors, and draw the map.

    Parameters
    ----------
    family
        Name of a family of mechanisms, such as "chain".
    sizes
        Numbers of bodies and of processors: "4,8,16/1,4,16".
    request
        The quantity and its options.
    machine
        Name of the machine without its number, cost model, and size of the tasks.
    out
        Picture to write.
    svg
        Whether to write the picture without a path.
    json
        Whether to print JSON.
    """
    from bellcrank import zoo
    from bellcrank.build.schedule_map import winner_map

    bodies, processors = _sizes(sizes)
    layout, kind, level = machine
    text = f"comparing schedules of {request.quantity} of {family}"
    with screen.progress(text) as show:
        cells = winner_map(
            lambda n: zoo.load(f"{family}:{n}"), request, bodies, processors, layout, kind, level,
            lambda share: show(f"{text} {bar(share)}"),
        )  # fmt: skip
    title = f"{family}: {request.quantity} on {layout} machines ({kind}), methods with the shortest schedule"
    stem = quoting.stem(f"{family}_{request.quantity}_{layout}_map")
    path = page_path(out, Path(f"{stem}.svg"))
    written = write_pages({path: _picture(title, cells)}) if svg or out is not None else []
    if json:
        facts = [asdict(c.winner) | {"bodies": c.bodies, "processors": c.processors} for c in cells]
        screen.data({"family": family, "quantity": request.quantity, "layout": layout, "kind": kind, "cells": facts,
                     "written": written})  # fmt: skip
        return
    screen.heading(title)
    by_size = {(c.bodies, c.processors): f"{c.winner.name} {number_text(c.schedule.makespan)}" for c in cells}
    rows = [(str(n), *(by_size[n, p] for p in processors)) for n in bodies]
    screen.table([*numbers("bodies"), *texts(*(f"p = {p}" for p in processors))], rows)
    screen.wrote(written)


def print_coordinates(m: Mechanism, machine_name: str, kind: str, level: str, json: bool) -> None:
    """Print the sets of independent coordinates of a mechanism with loops, the shortest critical path first.

    Parameters
    ----------
    m
        The mechanism.
    machine_name, kind, level
        Machine, cost model and size of the tasks; without a machine there are no schedules.
    json
        Whether to print JSON.
    """
    from bellcrank.build import schedules
    from bellcrank.build.coordinate_search import MAX_E, coordinate_sets

    text = f"comparing sets of coordinates of {m.name}"
    with screen.progress(text) as show:
        result = coordinate_sets(m, progress=lambda share: show(f"{text} {bar(share)}"))
        machine = schedules.machine(machine_name, kind, m.nv) if machine_name else None
        planned = result.schedule(machine, level) if machine else None
    makespans: dict[str, float] = {}
    for c in planned.candidates if planned else ():
        if c.makespan is not None:
            makespans[c.method] = min(c.makespan, makespans.get(c.method, c.makespan))
    if json:
        keys = ("independent", "mass_matrix", "largest", "operations", "span")
        facts = [{k: getattr(s, k) for k in keys} | {"makespan": makespans.get(s.name)} for s in result.sets]
        screen.data({"mechanism": m.name, "machine": machine.name if machine else None, "sets": facts,
                     "singular": result.singular, "omitted": result.omitted})  # fmt: skip
        return
    screen.heading(f"{m.name}: forward_dynamics in the minimal form, by independent coordinates")
    unit = f"makespan {machine.unit}" if machine else ""
    head = [*texts("independent coordinates"), TableColumn("mass matrix")]
    head += numbers("largest E", "operations", "span", *([unit] if machine else []))
    shown = sorted(result.sets, key=lambda s: (makespans.get(s.name, float("inf")), s.span, s.operations))
    rows = []
    for s in shown[:MAX_LISTED_CANDIDATES]:
        row = [", ".join(s.independent), s.mass_matrix, f"{s.largest:.2f}", str(s.operations), number_text(s.span)]
        rows.append(row + ([number_text(makespans[s.name]) if s.name in makespans else ""] if machine else []))
    screen.table(head, rows)
    if machine:
        screen.line(f"(on {machine}; where there is no makespan, its bound is not shorter)", style="dim")
    if (more := len(shown) - MAX_LISTED_CANDIDATES) > 0:
        screen.line(f"({more} more with --json)", style="dim")
    if result.singular or result.omitted:
        why = f"{result.singular} sets have elements of E above {MAX_E:g} in some configuration"
        screen.line(f"({why}; {result.omitted} others are beyond the limit of work)", style="dim")


def _picture(title: str, cells: Sequence[MapCell]) -> str:
    from bellcrank.view import winner_map

    unit = cells[0].schedule.machine.unit
    texts_by_size = {
        (c.bodies, c.processors): (c.winner.name, f"{number_text(c.schedule.makespan)} {unit}") for c in cells
    }
    return winner_map.svg(title, texts_by_size)


def _sizes(text: str) -> tuple[list[int], list[int]]:
    parts = [[x.strip() for x in part.split(",")] for part in text.split("/")]
    if len(parts) != 2 or not all(x.isdecimal() and 0 < int(x) < 10**6 for part in parts for x in part):
        raise InputError(f"--map {text}: expected numbers of bodies and of processors, such as 4,8,16/1,4,16.")
    return [int(x) for x in parts[0]], [int(x) for x in parts[1]]


def number_text(x: float) -> str:
    """Return `x` with one decimal, without a trailing zero."""
    return f"{x:.1f}".removesuffix(".0")
