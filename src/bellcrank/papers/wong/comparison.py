"""Wong's mesh beside other parallel algorithms and on transputers (wong1991, tables 4.8 and 5.4, figures 4.8 and 4.9).

    inertia_matrix(n), force_vector(n), solver(n), total(n)     counted on the mesh of any arm
    curves("inertia"), curves("total")                          the lines of the two figures, in microseconds
    excavator()                                                 times of one evaluation, computed and printed

The other algorithms are those of Lee and Chang, Fijany and Bejczy, and Hwang, Bae, Haug and Kuhl, by the printed
polynomials; as in the thesis, Fijany's and Hwang's matrices are solved in 7 n - 5 cycles.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from bellcrank.errors import InputError, unknown
from bellcrank.papers.operation_counts import evaluate_formula, published
from bellcrank.papers.wong.atom_programs import Cost
from bellcrank.papers.wong.mesh_schedule import mesh
from bellcrank.papers.wong.systolic_solvers import feed_forward
from bellcrank.zoo import excavator as caterpillar

# A cell of the solver does one rotation per cycle, and one division (4.30).
ROTATION, DIVISION = Cost(1, 1), Cost(1, 0)
FIGURES = ("inertia", "total")


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
    if figure not in FIGURES:
        raise InputError(unknown("figure", figure, FIGURES))
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

    The first three are computed with the excavator's own parameters, many of which are zero. The next three are for the
    same program with any arm of four joints, which is what the thesis counts. "explicit" follows the thesis' program:
    messages keep both ends busy, and rho x c is computed wherever it is needed. The printed times include hydraulics.
    """
    times = {}
    for arm_spec, name in ((caterpillar(), "excavator"), (4, "any arm")):
        for kind in ("hidden", "t800", "explicit"):
            s = mesh(arm_spec, passed=kind != "explicit").schedule(kind)
            times[f"{name}, {kind}"] = _times(s.makespan, s.work)
    printed_times = published()["transputer"]
    times["print, theory"] = _times(
        printed_times["excavator_mesh_theory_us"], 1e3 * printed_times["excavator_one_cpu_theory_ms"]["total"]
    )
    times["print, measured"] = _times(
        1e3 * printed_times["excavator_mesh_ms"], 1e3 * printed_times["excavator_one_cpu_ms"]["total"]
    )
    return times


def _times(mesh_us: float, one_us: float) -> dict[str, float]:
    return {"mesh": mesh_us, "one processor": one_us, "speedup": one_us / mesh_us}
