"""Commands linearize, equilibrium and identify: poles at an operating point, equilibria, and base parameters."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import bellcrank as bc
from bellcrank.cli import app, load_mechanism, options, screen
from bellcrank.cli.options import assignments_of, checked_number, closed, option
from bellcrank.cli.screen import TableColumn, numbers, texts
from bellcrank.errors import InputError
from bellcrank.model import Mechanism

if TYPE_CHECKING:
    from bellcrank.sim.linear.linearisation import Linear
    from bellcrank.sim.linear.modes import Mode

UNITS = "radians, metres, or their rates"
AtOpt = Annotated[
    list[str] | None,
    option("NAME=X", "Operating point: joint2=0.5 is a position, joint2.v=1 a speed.", "--at"),
]
HoldOpt = Annotated[list[str] | None, option("NAME[=X]", "Elements to hold: q, joint2, tip.z=0.3.", "--hold")]
FreeOpt = Annotated[list[str] | None, option("NAME", "Further unknowns: joint2.tau, an input.", "--free")]


@app.command()
def linearize(
    name: options.MechanismArg,
    at: AtOpt = None,
    rest: Annotated[bool, typer.Option("--rest", help="At the nearest equilibrium.")] = False,
    hold: HoldOpt = None,
    free: FreeOpt = None,
    step: Annotated[float | None, option("H", "Linearise one step of H seconds.")] = None,
    integrator: Annotated[str | None, option("NAME", "Integrator of that step.", "--integrator", "-i")] = None,
    matrices: Annotated[bool, typer.Option("--matrices", help="Also print A and B.")] = False,
    report: Annotated[Path | None, option("PAGE", "Write a page that shows a mode.")] = None,
    mode: Annotated[int | None, option("K", "Mode that the page shows.")] = None,
    base: options.BaseOpt = "fixed",
    check: options.CheckOpt = "warn",
    json: options.JsonOpt = False,
) -> None:
    """Print poles and damping at an operating point.

    The operating point is the neutral configuration at rest, or given by --at. --rest takes the nearest equilibrium,
    and --hold solves for the forces that hold the mechanism there (--hold q), as `bellcrank equilibrium` does.

    --json has A, B, C and D with the names of states, inputs and outputs.
    """
    if mode is not None and report is None:
        raise InputError("--mode selects the mode of a page; add --report PAGE.")
    m = load_mechanism(name, base, check)
    with screen.progress(f"linearising {m.name}"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        resting = bool(rest or hold or free)
        point: Any = _operating_point(m, at or [], closes=not resting)
        if resting:
            point = bc.equilibrium(m, point, _held_elements(m, hold or []), free or None)
        linear = bc.linearize(m, point, step=step, integrator=integrator)
    for warning in caught:
        screen.note(str(warning.message))
    modes = linear.modes()
    if report is not None:
        shown = _selected_mode(list(modes), mode)
        screen.note(f"wrote {shown.record().report(report)}: {shown}")
    if json:
        screen.data(_json_data(linear, list(modes)))
        return
    what = f"a step of {linear.step:g} s" if linear.step is not None else "the rate"
    screen.heading(f"{m.name}: {what}, {len(linear.states)} states, {len(modes)} modes")
    head = [*numbers("#", "pole 1/s", "Hz", "damping", "time s"), *texts("moves")]
    screen.table(head, [(str(k), _pole_text(x.eigenvalue), *x.row) for k, x in enumerate(modes)])
    if modes.equilibrium_note:
        screen.line(modes.equilibrium_note, style="yellow")
    if matrices:
        screen.line()
        _print_matrix("A", linear.A, linear.states, linear.states)
        _print_matrix("B", linear.B, linear.states, linear.inputs)


@app.command()
def equilibrium(
    name: options.MechanismArg,
    at: AtOpt = None,
    hold: HoldOpt = None,
    free: FreeOpt = None,
    base: options.BaseOpt = "fixed",
    check: options.CheckOpt = "warn",
    json: options.JsonOpt = False,
) -> None:
    """Solve for an equilibrium, or for holding forces.

    The result is the equilibrium nearest to --at (by default the neutral configuration). --hold q solves for the forces
    that hold it there; --hold tip.z=0.3 --free joint2.tau for the force that holds its tip.
    """
    m = load_mechanism(name, base, check)
    with screen.progress(f"solving for an equilibrium of {m.name}"):
        point = _operating_point(m, at or [], closes=False)
        solution = bc.equilibrium(m, point, _held_elements(m, hold or []), free or None)
    if json:
        keys = ("name", "value", "how")
        rows = [dict(zip(keys, row, strict=True)) for row in solution.rows]
        screen.data({"mechanism": m.name, "rounds": solution.rounds, "elements": rows})
        return
    screen.heading(f"{m.name}: equilibrium after {solution.rounds} iterations")
    cells = [(element, f"{x:.6g}", word) for element, x, word in solution.rows]
    screen.table([*texts("element"), *numbers("value"), TableColumn("")], cells)


def _operating_point(m: Mechanism, assignments: list[str], closes: bool) -> dict[str, Any]:
    """Return the operating point for bc.linearize; `closes` moves it to the nearest one that closes the loops."""
    given = assignments_of(m, "--at", assignments, UNITS)
    point: dict[str, Any] = {_element_name(m, name): x for name, x in given.items()}
    if not (m.loops and closes):
        return point
    q, names = m.neutral(), [f"{n}.q" for n in m.columns[0]]
    positions = {n: point.pop(n) for n in names if n in point}
    for n, x in positions.items():
        q[names.index(n)] = x
    return {"q": closed(m, q, positions), **point}


def _held_elements(m: Mechanism, assignments: list[str]) -> list[str] | dict[str, float | None]:
    """Return the held elements, with their values where some are given."""
    pairs = [text.partition("=") for text in assignments]
    if not any(sign for _, sign, _ in pairs):
        return [_element_name(m, name) for name, _, _ in pairs]
    for name, sign, _ in pairs:
        if not sign:
            raise InputError(f'--hold "{name}" has no value, but others have one; write --hold {name}=0.5.')
    return {_element_name(m, name): checked_number(f"--hold {name}", value, UNITS) for name, _, value in pairs}


def _element_name(m: Mechanism, name: str) -> str:
    """Complete the name of a coordinate to that of its position."""
    return f"{name}.q" if name in m.columns[0] else name


def _selected_mode(modes: list[Mode], k: int | None) -> Mode:
    """Return mode `k`; by default the slowest that oscillates, or the first in which joints move."""
    if k is not None:
        if not 0 <= k < len(modes):
            raise InputError(f"--mode is {k}; there are {len(modes)}, from 0.")
        return modes[k]
    moving = [mode for mode in modes if mode.moves]
    if not moving:
        raise InputError("--report: no joint moves in any mode.")
    return next((mode for mode in moving if mode.oscillates), moving[0])


def _pole_text(x: complex) -> str:
    return f"{x.real:.4g} \u00b1 {x.imag:.4g}i" if x.imag else f"{x.real:.4g}"


def _print_matrix(name: str, rows: Any, down: tuple[str, ...], across: tuple[str, ...]) -> None:
    cells = [(state, *(f"{x:.5g}" for x in row)) for state, row in zip(down, rows, strict=True)]
    screen.table([TableColumn(name), *numbers(*across)], cells)
    screen.line()


def _json_data(linear: Linear, modes: list[Mode]) -> dict[str, Any]:
    shown = [
        {
            "pole": [x.eigenvalue.real, x.eigenvalue.imag],
            "frequency": x.frequency,
            "damping": x.damping,
            "moves": {n: [z.real, z.imag] for n, z in x.moves.items()},
        }
        for x in modes
    ]
    return {
        "mechanism": linear.plant.system.mechanism.name,
        "step": linear.step,
        **{key: list(getattr(linear, key)) for key in ("states", "inputs", "outputs")},
        **{key: getattr(linear, key).tolist() for key in "ABCD"},
        "rate": linear.rate.tolist(),
        "modes": shown,
    }


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
