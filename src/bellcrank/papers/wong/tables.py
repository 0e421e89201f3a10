"""Tables and figures of chapters 4 and 5 of wong1991: the mesh cycle by cycle, beside the printed values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from bellcrank.papers.operation_counts import evaluate_formula, published
from bellcrank.papers.wong import Cost, comparison, mesh, wong_mesh
from bellcrank.papers.wong.systolic_solvers import SystolicSolution, back_substitution, feed_forward
from bellcrank.text_table import Table
from bellcrank.view.curves import line_chart
from bellcrank.zoo import excavator, torso

POLYNOMIAL_SIZES = range(2, 17)
CURVE_SIZES = range(2, 21)
FIGURE_NUMBERS = {"inertia": "4.8", "total": "4.9"}
ALGORITHM_NAMES = {
    "lee": "Lee and Chang",
    "fijany": "Fijany and Bejczy",
    "hwang": "Hwang et al.",
    "wong": "Wong's mesh",
}


def tables() -> list[Table]:
    """Return all tables."""
    return [
        _cycle_table(0, "Tables 4.3, 4.6 and 4.7: row 0 of the mesh for any arm of four joints, cycle by cycle"),
        _cycle_table(1, "Tables 4.2, 4.5 and 4.7: row 1"),
        _polynomial_table(),
        _curve_table("inertia"),
        _curve_table("total"),
        _solver_table(),
        _excavator_table(),
    ]


def _cycle_table(row: int, title: str) -> Table:
    """Tabulate a row of the mesh from the first cycle to the last sum, without the solver."""
    cycle_table = mesh(4, solver=False).cycles(row)
    return Table(title, cycle_table.head, cycle_table.rows, cycle_table.right)


def _polynomial_table() -> Table:
    wong = published()["parallel"]["wong"]
    parts: dict[str, Callable[[int], Cost]] = {
        "inertia_matrix": comparison.inertia_matrix,
        "force_vector": comparison.force_vector,
        "solver": comparison.solver,
    }
    rows = []
    for n in POLYNOMIAL_SIZES:
        cells = [str(n)]
        for key, ours in parts.items():
            cells += [f"{evaluate_formula(wong[key][kind], n)} / {getattr(ours(n), kind)}" for kind in "MA"]
        rows.append((*cells, str(comparison.force_and_solver(n))))
    formulas = [f"{key.replace('_', ' ')}: {wong[key]['M']} M, {wong[key]['A']} A" for key in parts]
    caption = f"In print: {'; '.join(formulas)}.\nAll: force vector and solver, for it is ready after the matrix."
    head = ("n", "matrix M", "A", "force M", "A", "solver M", "A", "all")
    return Table("Table 4.8: multiplications M and additions A of any arm, print / ours", head, rows, range(7), caption)


def _curve_table(figure: str) -> Table:
    series = comparison.curves(figure, CURVE_SIZES)
    names = [name for name in series if name != "n"]
    rows = [(f"{n:g}", *(f"{series[name][k]:g}" for name in names)) for k, n in enumerate(series["n"]) if n % 2]
    quantity = "the inertia matrix" if figure == "inertia" else "matrix and solver"
    title = f"Figure {FIGURE_NUMBERS[figure]}: {quantity}, us (a multiplication 1, an addition 0.5)"
    caption = f"Wong's mesh is the fastest below {comparison.crossover(figure)} joints."
    return Table(title, ("n", *(ALGORITHM_NAMES[name] for name in names)), rows, range(len(names) + 1), caption)


def _solver_table(sizes: Sequence[int] = (2, 4, 8, 16)) -> Table:
    """Simulate both solvers cell by cell on random positive definite systems."""
    rows = []
    for name, solve, formula in (("feed-forward (Jainandunsing)", feed_forward, "4 n"),
                                 ("back-substitution (Liu and Young)", back_substitution, "7 n - 5")):  # fmt: skip
        solutions = [_solve_random(solve, n) for n in sizes]
        correct = all(error < 1e-12 for _, error in solutions)
        rows.append((name, formula, *(str(s.cycles) for s, _ in solutions), "yes" if correct else "NO"))
    head = ("cycles", "print", *(f"n = {n}" for n in sizes), "A x = b")
    return Table("Section 4.5: systolic solvers, simulated cell by cell", head, rows, range(2, 3 + len(sizes)))


def _solve_random(solve: Callable[..., SystolicSolution], n: int) -> tuple[SystolicSolution, float]:
    """Solve a random system of n equations; return the solution and its largest residual."""
    rng = np.random.default_rng(n)
    B = rng.normal(size=(n, n))
    A, b = B @ B.T + n * np.eye(n), rng.normal(size=n)
    s = solve(A.tolist(), b.tolist())
    return s, float(np.abs(A @ np.array(s.x) - b).max())


def _excavator_table() -> Table:
    rows = [(name, f"{x['mesh']:.1f}", f"{x['one processor']:.1f}", f"{x['speedup']:.2f}")
            for name, x in comparison.excavator_times().items()]  # fmt: skip
    caption = (
        "hidden: messages cost nothing; t800: they go beside the computation; explicit: they keep both ends busy.\n"
        "The print has the hydraulics in it, and measured an OCCAM program seven times as slow as its operations.\n"
        f"The branched mesh of figure 6.1: torso, t800, {wong_mesh(torso()).makespan:.1f} us."
    )
    return Table(
        "Table 5.4: the excavator on the mesh, us", ("", "mesh", "one cpu", "speed-up"), rows, (1, 2, 3), caption
    )


def _draw_curves(figure: str) -> str:
    curves = comparison.curves(figure, CURVE_SIZES)
    series = {ALGORITHM_NAMES[name]: dict(zip(curves["n"], curves[name], strict=True)) for name in ALGORITHM_NAMES}
    quantity = "inertia matrix" if figure == "inertia" else "inertia matrix and solver"
    return line_chart(f"{quantity}: operations on parallel processors", "joints", "us", series)


FIGURES: Mapping[str, Callable[[], str]] = {
    "wong1991_figure_4_8.svg": partial(_draw_curves, "inertia"),
    "wong1991_figure_4_9.svg": partial(_draw_curves, "total"),
    "wong1991_excavator.svg": lambda: wong_mesh(excavator()).svg(),
    "wong1991_excavator.html": lambda: wong_mesh(excavator()).html(),
}
