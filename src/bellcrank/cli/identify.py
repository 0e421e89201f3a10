"""Command identify: base parameters of a mechanism, an exciting motion, and estimation from measured forces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bellcrank.cli import BaseOpt, CheckOpt, JsonOpt, MechanismArg, app, mechanism, screen
from bellcrank.cli.screen import Column
from bellcrank.errors import InputError


@app.command()
def identify(
    name: MechanismArg,
    joints: Annotated[
        str | None, typer.Option("--joints", metavar="A,B", help="Also of joints: armature, damping, friction, ...")
    ] = None,
    lock: Annotated[str, typer.Option("--lock", metavar="A,B", help="Joints of a file to lock.")] = "",
    actuated: Annotated[str, typer.Option("--actuated", metavar="A,B", help="Driven joints, for closed loops.")] = "",
    excite: Annotated[
        Path | None, typer.Option("--excite", metavar="FILE", help="Write an exciting motion: .csv")
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", metavar="S", help="Duration of that motion.")] = 20.0,
    rate: Annotated[float, typer.Option("--rate", metavar="HZ", help="Sample rate of that motion.")] = 100.0,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FILE", help="Measurements: t, JOINT.q .v .a .tau, .csv .parquet")
    ] = None,
    base: BaseOpt = "fixed",
    check: CheckOpt = "warn",
    json: JsonOpt = False,
) -> None:
    """Print the parameters of a mechanism that forces identify.

    These are its base parameters: parameters of bodies, joints and springs, and sums of them (docs/identify.md).

    --excite writes a motion within the limits that identifies them best, --data estimates them from measurements.
    \f

    The options `name`, `joints`, `lock`, `actuated`, `excite`, `seconds`, `rate`, `data`, `base`, `check` and `json`
    are described by their help texts.
    """  # noqa: D301
    import bellcrank as bc
    from bellcrank.identify.measurement import measured

    locked = _listed(lock)
    m = bc.read(name, base=base, check=check, lock=locked) if locked else mechanism(name, base, check)
    found = bc.identify.base_parameters(m, _listed(joints) if joints is not None else None, _listed(actuated))
    if excite is not None:
        if excite.suffix.lower() != ".csv":
            raise InputError(f"--excite {excite}: expected the name of a .csv file.")
        with screen.working("looking for a motion"):
            motion = bc.identify.excite(found, seconds, rate)
        screen.note(f"condition {motion.cost:.3g}, wrote {motion.save(excite)}")
    told = bc.identify.estimate(found, *measured(m, data, found.actuated, found.at)) if data is not None else None
    values = told.values if told is not None else found.nominal
    if json:
        rows = [
            {"name": n, "combination": found.combination(k), "value": float(values[k])}
            | ({"error": float(told.errors[k])} if told is not None else {})
            for k, n in enumerate(found.names)
        ]
        screen.data({"mechanism": m.name, "numbers": len(found.numbers), "base": rows})
        return
    screen.line(f"{m.name}: {len(found)} base parameters of {len(found.numbers)} numbers", style="bold")
    screen.line()
    head = [Column("base parameter", wrap=True, least=24), Column("nominal", right=True)]
    cells = [[found.combination(k), f"{x:.6g}"] for k, x in enumerate(found.nominal)]
    if told is not None:
        head += [Column("found", right=True), Column("error", right=True)]
        cells = [[*row, f"{told.values[k]:.6g}", f"{told.errors[k]:.2g}"] for k, row in enumerate(cells)]
    screen.table(head, cells)
    if told is not None:
        for words in told.untold:
            screen.line(f"the motion does not identify {words}", style="yellow")
        if told.lost:
            screen.line(f"lost in the noise: {', '.join(told.lost)}", style="dim")


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
