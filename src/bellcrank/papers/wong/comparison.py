"""Tables and figures of chapters 4 and 5 of wong1991: the mesh beside other parallel algorithms and on transputers.

    inertia_matrix(n), force_vector(n), solver(n), total(n)     counted on the mesh of any arm
    curves("inertia"), curves("total")                          the lines of figures 4.8 and 4.9, in microseconds
    excavator_times()                                           times of one evaluation, computed and printed (5.4)
    tables()                                                    all tables, also of the mesh cycle by cycle

The other algorithms are those of Lee and Chang, Fijany and Bejczy, and Hwang, Bae, Haug and Kuhl, by the printed
polynomials; as in the thesis, Fijany's and Hwang's matrices are solved in 7 n - 5 cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from bellcrank.errors import check_known
from bellcrank.papers.operation_counts import evaluate_formula, published
from bellcrank.papers.wong.atom_programs import Cost
from bellcrank.papers.wong.feed_forward_arrays import feed_forward
from bellcrank.papers.wong.mesh_schedule import mesh, wong_mesh
from bellcrank.papers.wong.serial_baseline import best_serial
from bellcrank.text_table import Table
from bellcrank.view.curves import line_chart
from bellcrank.zoo import excavator, torso

# A cell of the solver does one rotation per cycle, and one division (4.30).
ROTATION, DIVISION = Cost(1, 1), Cost(1, 0)
CURVES = ("inertia", "total")
POLYNOMIAL_SIZES = range(2, 17)
CURVE_SIZES = range(2, 21)
FIGURE_NUMBERS = {"inertia": "4.8", "total": "4.9"}
ALGORITHM_NAMES = {
    "lee": "Lee and Chang",
    "fijany": "Fijany and Bejczy",
    "hwang": "Hwang et al.",
    "wong": "Wong's mesh",
}


@cache
def _matrix_and_force_costs(n: int) -> tuple[Cost, Cost]:
    m = mesh(n, solver=False)
    return m.count(f"S[1,{n},{n}]"), m.count(f"S[0,{n},{n}]")


def inertia_matrix(n: int) -> Cost:
    """Count the operations of the inertia matrix for `n` joints, back from the last sum of row 1 (4.11)."""
    return _matrix_and_force_costs(n)[0]


def force_vector(n: int) -> Cost:
    """Count the operations of the force vector for `n` joints, back from the last sum of row 0 (4.12)."""
    return _matrix_and_force_costs(n)[1]


def solver(n: int) -> Cost:
    """Count the operations of the solver for `n` joints as the thesis does: a rotation per cycle, and a division.

    A cell that divides has a known rotation result, zero, in that cycle and need not multiply: 4 n would suffice.
    """
    cycles = feed_forward([[float(i == j) for j in range(n)] for i in range(n)], [1.0] * n).cycles
    return sum([ROTATION] * cycles, DIVISION)


def total(n: int) -> Cost:
    """Count inertia matrix and solver for `n` joints, as the thesis does.

    The force vector takes longer than the matrix and is left out there; `force_and_solver` includes it.
    """
    return inertia_matrix(n) + solver(n)


def force_and_solver(n: int) -> Cost:
    """Count force vector and solver for `n` joints: the solver waits for the force vector, which is ready last."""
    return force_vector(n) + solver(n)


def published_costs(n: int, figure: str = "total") -> dict[str, Cost]:
    """Return the costs of Lee, Fijany and Hwang by table 4.8.

    Parameters
    ----------
    n
        Number of joints.
    figure
        "inertia" without solver, "total" with it.
    """
    wong = published()["parallel"]["wong"]
    cycles = evaluate_formula(wong["liu_young_solver_cycles"], n)
    costs = {}
    for name, key in (("lee", "lee_total"), ("fijany", "fijany_inertia"), ("hwang", "hwang_total")):
        M, A = (evaluate_formula(wong[key][kind], n) for kind in ("M", "A"))
        solver_cycles = cycles * ((figure == "total") - key.endswith("total"))
        costs[name] = Cost(M + solver_cycles, A + solver_cycles)
    return costs


def curves(
    figure: str = "total", sizes: Sequence[int] = range(2, 21), multiply: float = 1.0, add: float = 0.5
) -> dict[str, list[float]]:
    """Return times by algorithm: "n", "wong", "lee", "fijany" and "hwang".

    Parameters
    ----------
    figure
        "inertia" for figure 4.8, "total" for figure 4.9.
    sizes
        Numbers of joints.
    multiply
        Time of a multiplication, us.
    add
        Time of an addition, us.
    """
    check_known("figure", figure, CURVES)
    ours = inertia_matrix if figure == "inertia" else total
    lines: dict[str, list[float]] = {"n": [float(n) for n in sizes]}
    lines["wong"] = [ours(n).time(multiply, add) for n in sizes]
    for n in sizes:
        for name, cost in published_costs(n, figure).items():
            lines.setdefault(name, []).append(cost.time(multiply, add))
    return lines


def crossover(figure: str = "total", multiply: float = 1.0, add: float = 0.5) -> int:
    """Return the least number of joints for which another algorithm is faster.

    Parameters
    ----------
    figure
        "inertia" or "total".
    multiply
        Time of a multiplication, us.
    add
        Time of an addition, us.
    """
    lines = curves(figure, range(2, 21), multiply, add)
    slower = (k for k, t in enumerate(lines["wong"]) if t > min(lines[name][k] for name in ("lee", "fijany", "hwang")))
    return int(lines["n"][next(slower)])


def excavator_times() -> dict[str, dict[str, float]]:
    """Return the times of one evaluation of the accelerations on transputers, in us, including sines and cosines.

    "one processor" is the work of the mesh, added up, and "best serial" the program of serial_baseline.py. "speedup"
    and "true speedup" are relative to them. The print has its own program for one processor only.

    The first three are computed with the excavator's own parameters, many of which are zero. The next three are for the
    same program with any arm of four joints, which is what the thesis counts. "explicit" follows the thesis' program:
    messages keep both ends busy, and rho x c is computed wherever it is needed. The printed times include hydraulics.
    """
    times = {}
    for arm_spec, name in ((excavator(), "excavator"), (4, "any arm")):
        for kind in ("hidden", "t800", "explicit"):
            s = mesh(arm_spec, passed=kind != "explicit").schedule(kind)
            times[f"{name}, {kind}"] = _times(s.makespan, s.work, best_serial(arm_spec).microseconds)
    printed_times = published()["transputer"]
    times["print, theory"] = _times(
        printed_times["excavator_mesh_theory_us"], 1e3 * printed_times["excavator_one_cpu_theory_ms"]["total"]
    )
    times["print, measured"] = _times(
        1e3 * printed_times["excavator_mesh_ms"], 1e3 * printed_times["excavator_one_cpu_ms"]["total"]
    )
    return times


def _times(mesh_us: float, one_us: float, best_us: float = 0.0) -> dict[str, float]:
    times = {"mesh": mesh_us, "one processor": one_us, "speedup": one_us / mesh_us}
    return times | ({"best serial": best_us, "true speedup": best_us / mesh_us} if best_us else {})


def tables() -> list[Table]:
    """Return all tables."""
    return [
        _cycle_table(0, "Tables 4.3, 4.6 and 4.7: row 0 of the mesh for any arm of four joints, cycle by cycle"),
        _cycle_table(1, "Tables 4.2, 4.5 and 4.7: row 1"),
        _polynomial_table(),
        _curve_table("inertia"),
        _curve_table("total"),
        _excavator_table(),
        _overhead_table(),
    ]


def _cycle_table(row: int, title: str) -> Table:
    """Tabulate a row of the mesh from the first cycle to the last sum, without the solver."""
    return replace(mesh(4, solver=False).cycles(row), title=title)


def _polynomial_table() -> Table:
    wong = published()["parallel"]["wong"]
    parts: dict[str, Callable[[int], Cost]] = {
        "inertia_matrix": inertia_matrix,
        "force_vector": force_vector,
        "solver": solver,
    }
    rows = []
    for n in POLYNOMIAL_SIZES:
        cells = [str(n)]
        for key, ours in parts.items():
            cells += [f"{evaluate_formula(wong[key][kind], n)} / {getattr(ours(n), kind)}" for kind in "MA"]
        rows.append((*cells, str(force_and_solver(n))))
    formulas = [f"{key.replace('_', ' ')}: {wong[key]['M']} M, {wong[key]['A']} A" for key in parts]
    caption = f"In print: {'; '.join(formulas)}.\nAll: force vector and solver, for it is ready after the matrix."
    head = ("n", "matrix M", "A", "force M", "A", "solver M", "A", "all")
    return Table("Table 4.8: multiplications M and additions A of any arm, print / ours", head, rows, range(7), caption)


def _curve_table(figure: str) -> Table:
    series = curves(figure, CURVE_SIZES)
    names = [name for name in series if name != "n"]
    rows = [(f"{n:g}", *(f"{series[name][k]:g}" for name in names)) for k, n in enumerate(series["n"]) if n % 2]
    quantity = "the inertia matrix" if figure == "inertia" else "matrix and solver"
    title = f"Figure {FIGURE_NUMBERS[figure]}: {quantity}, us (a multiplication 1, an addition 0.5)"
    caption = f"Wong's mesh is the fastest below {crossover(figure)} joints."
    return Table(title, ("n", *(ALGORITHM_NAMES[name] for name in names)), rows, range(len(names) + 1), caption)


def _excavator_table() -> Table:
    keys = ("mesh", "one processor", "speedup", "best serial", "true speedup")
    rows = [
        (name, *((f"{x[key]:.2f}" if "speedup" in key else f"{x[key]:.1f}") if key in x else "" for key in keys))
        for name, x in excavator_times().items()
    ]
    methods = [best_serial(arm).method for arm in (excavator(), 4)]
    caption = (
        "hidden: messages cost nothing; t800: they go beside the computation; explicit: they keep both ends busy.\n"
        "its own work: all operations of the mesh, added up, with those that are repeated on several processors.\n"
        f"best serial: the fastest of our programs on one such processor, {' and '.join(dict.fromkeys(methods))}.\n"
        "The print has the hydraulics in it, and measured C programs several times as slow as their operations.\n"
        f"The branched mesh of figure 6.1: torso, t800, {wong_mesh(torso()).makespan:.1f} us."
    )
    head = ("", "mesh", "its own work", "speed-up", "best serial", "speed-up")
    return Table("Table 5.4: the excavator on the mesh, us", head, rows, range(1, 6), caption)


def overhead() -> dict[str, float]:
    """Return measured over theoretical times: of table 5.5, and of one processor and of the mesh in table 5.4."""
    steps = published()["transputer"]["overhead"].values()
    times = excavator_times()
    actual, theory = times["print, measured"], times["print, theory"]
    return {
        "steps of H": sum(us for *_, us in steps) / sum(Cost(M, A).time() for M, A, _ in steps),
        "one processor": actual["one processor"] / theory["one processor"],
        "mesh": actual["mesh"] / theory["mesh"],
    }


def _overhead_table() -> Table:
    """Tabulate table 5.5: the time of a general program for arrays of any size, without any message."""
    steps = published()["transputer"]["overhead"]
    rows = [
        (name, f"{Cost(M, A).time():g}", f"{us}", f"{us / Cost(M, A).time():.1f}") for name, (M, A, us) in steps.items()
    ]
    theory, actual = sum(Cost(M, A).time() for M, A, _ in steps.values()), sum(us for *_, us in steps.values())
    rows.append(("all", f"{theory:g}", f"{actual}", f"{actual / theory:.1f}"))
    factors = overhead()
    caption = (
        f"Table 5.4 has a factor of {factors['one processor']:.2f} for one processor, which sends no message, and of "
        f"{factors['mesh']:.2f} for the mesh.\n"
        "So indices of arrays and calls of subroutines alone cost as much. The share of the messages is not known."
    )
    return Table(
        "Table 5.5: an element of H on one processor, us", ("step", "operations", "measured", "factor"), rows,
        range(1, 4), caption,
    )  # fmt: skip


def _draw_curves(figure: str) -> str:
    lines = curves(figure, CURVE_SIZES)
    series = {title: dict(zip(lines["n"], lines[name], strict=True)) for name, title in ALGORITHM_NAMES.items()}
    quantity = "inertia matrix" if figure == "inertia" else "inertia matrix and solver"
    return line_chart(f"{quantity}: operations on parallel processors", "joints", "us", series)


FIGURES: Mapping[str, Callable[[], str]] = {
    "wong1991_figure_4_8.svg": partial(_draw_curves, "inertia"),
    "wong1991_figure_4_9.svg": partial(_draw_curves, "total"),
    "wong1991_excavator.svg": lambda: wong_mesh(excavator()).svg(),
    "wong1991_excavator.html": lambda: wong_mesh(excavator()).html(),
}
