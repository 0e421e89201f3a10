"""Command identify: base parameters of a mechanism, an exciting motion, and estimation from measured forces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from bellcrank.cli import app, load_mechanism, options, screen
from bellcrank.cli.options import option
from bellcrank.cli.screen import TableColumn, numbers
from bellcrank.errors import InputError


@app.command()
def identify(
    name: options.MechanismArg,
    joints: Annotated[str | None, option("A,B", "Also of joints: armature, damping, friction, ...")] = None,
    lock: Annotated[str, option("A,B", "Joints of a file to lock.")] = "",
    actuated: Annotated[str, option("A,B", "Driven joints, for closed loops.")] = "",
    excite: Annotated[Path | None, option("FILE", "Write an exciting motion: .csv")] = None,
    seconds: Annotated[float, option("S", "Duration of that motion.")] = 20.0,
    rate: Annotated[float, option("HZ", "Sample rate of that motion.")] = 100.0,
    data: Annotated[Path | None, option("FILE", "Measurements: t, JOINT.q .v .a .tau, .csv .parquet")] = None,
    base: options.BaseOpt = "fixed",
    check: options.CheckOpt = "warn",
    json: options.JsonOpt = False,
) -> None:
    """Print the parameters of a mechanism that forces identify.

    These are its base parameters: parameters of bodies, joints and springs, and sums of them (docs/identify.md).

    --excite writes a motion within the limits that identifies them best, --data estimates them from measurements.
    """
    import bellcrank as bc
    from bellcrank.identify.experiments import read_measurement

    locked = _split_names(lock)
    m = bc.read(name, base=base, check=check, lock=locked) if locked else load_mechanism(name, base, check)
    further = None if joints is None else _split_names(joints)
    identifiable = bc.identify.base_parameters(m, further, _split_names(actuated))
    if excite is not None:
        if excite.suffix.lower() != ".csv":
            raise InputError(f"--excite {excite}: expected the name of a .csv file.")
        with screen.progress("looking for a motion"):
            motion = bc.identify.excite(identifiable, seconds, rate)
        screen.note(f"condition {motion.cost:.3g}, wrote {motion.save(excite)}")
    estimated = None
    if data is not None:
        measured = read_measurement(m, data, identifiable.actuated, identifiable.at)
        estimated = bc.identify.estimate(identifiable, *measured)
    values = estimated.values if estimated is not None else identifiable.nominal
    if json:
        rows = [
            {"name": n, "combination": identifiable.combination(k), "value": float(values[k])}
            | ({"error": float(estimated.errors[k])} if estimated is not None else {})
            for k, n in enumerate(identifiable.names)
        ]
        screen.data({"mechanism": m.name, "numbers": len(identifiable.numbers), "base": rows})
        return
    screen.heading(f"{m.name}: {len(identifiable)} base parameters of {len(identifiable.numbers)} numbers")
    head = [TableColumn("base parameter", wrap=True, min_width=24), *numbers("nominal")]
    cells = [[identifiable.combination(k), f"{x:.6g}"] for k, x in enumerate(identifiable.nominal)]
    if estimated is not None:
        head += numbers("found", "error")
        cells = [[*row, f"{estimated.values[k]:.6g}", f"{estimated.errors[k]:.2g}"] for k, row in enumerate(cells)]
    screen.table(head, cells)
    if estimated is not None:
        for words in estimated.untold:
            screen.line(f"the motion does not identify {words}", style="yellow")
        if estimated.lost:
            screen.line(f"lost in the noise: {', '.join(estimated.lost)}", style="dim")


def _split_names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
