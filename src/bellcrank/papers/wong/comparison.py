"""Tables 4.8 and 5.4, figures 4.8 and 4.9 of wong1991: the mesh beside the parallel algorithms of Lee and Chang, Fijany
and Bejczy, and Hwang, Bae, Haug and Kuhl, and the excavator on transputers.

    inertia_matrix(n), force_vector(n), solver(n), total(n)     counted on our mesh of any arm
    curves("inertia"), curves("total")                          the lines of the two figures, in microseconds
    excavator()                                                 what one evaluation takes, ours and the print's

The other three are the print's polynomials; Fijany's and Hwang's matrices are solved with 7 n - 5 cycles, as there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache

from bellcrank.errors import InputError, unknown
from bellcrank.papers.counts import published
from bellcrank.papers.wong.mesh_program import mesh
from bellcrank.papers.wong.solvers import feed_forward
from bellcrank.papers.wong.tracing import Cost
from bellcrank.zoo import excavator as caterpillar

# The cells of the solver: one rotation in every cycle, and one division each (4.30).
ROTATION, DIVISION = Cost(1, 1), Cost(1, 0)
FIGURES = ("inertia", "total")


@cache
def _formed(n: int) -> tuple[Cost, Cost]:
    m = mesh(n, solver=False)
    return m.count(f"S[1,{n},{n}]"), m.count(f"S[0,{n},{n}]")


def inertia_matrix(n: int) -> Cost:
    """4.11: back from the last sum of row 1."""
    return _formed(n)[0]


def force_vector(n: int) -> Cost:
    """4.12: back from the last sum of row 0."""
    return _formed(n)[1]


def solver(n: int) -> Cost:
    """As many rotations as the array has cycles, and a division, as the print counts. A cell that divides knows what
    the rotation gives in that cycle, zero, and need not multiply: 4 n would do."""
    cycles = feed_forward([[float(i == j) for j in range(n)] for i in range(n)], [1.0] * n).cycles
    return sum([ROTATION] * cycles, DIVISION)


def total(n: int) -> Cost:
    """As the print adds up: inertia matrix and solver. The force vector takes longer than the matrix and is left out
    there; `finished` has it."""
    return inertia_matrix(n) + solver(n)


def finished(n: int) -> Cost:
    """Force vector and solver: nothing can be solved before both are there, and this one is the later."""
    return force_vector(n) + solver(n)


def printed(formula: str, n: int) -> int:
    """A polynomial in n, L = ceil(log2 n) and ceil((n + 1)/2)."""
    what = {"n": n, "L": math.ceil(math.log2(n)), "ceil((n+1)/2)": math.ceil((n + 1) / 2), "": 1}
    terms = re.findall(r"([+-]?)\s*(\d*)\s*(ceil\(\(n\+1\)/2\)|n|L|)(?=\s|$)", formula)
    return sum((-1 if sign == "-" else 1) * int(k or 1) * what[of] for sign, k, of in terms if k or of)


def others(n: int, figure: str = "total") -> dict[str, Cost]:
    """Lee, Fijany and Hwang in table 4.8."""
    wong = published()["parallel"]["wong"]
    cycles = printed(wong["liu_young_solver_cycles"], n)
    out = {}
    for name, key in (("lee", "lee_total"), ("fijany", "fijany_inertia"), ("hwang", "hwang_total")):
        M, A = (printed(wong[key][kind], n) for kind in ("M", "A"))
        more = cycles * ((figure == "total") - key.endswith("total"))
        out[name] = Cost(M + more, A + more)
    return out


def curves(
    figure: str = "total", sizes: Sequence[int] = range(2, 21), multiply: float = 1.0, add: float = 0.5
) -> dict[str, list[float]]:
    """Times by number of joints: "n", "wong", "lee", "fijany" and "hwang". "inertia" is figure 4.8, "total" 4.9."""
    if figure not in FIGURES:
        raise InputError(unknown("figure", figure, FIGURES))
    ours = inertia_matrix if figure == "inertia" else total
    lines: dict[str, list[float]] = {"n": [float(n) for n in sizes]}
    lines["wong"] = [ours(n).time(multiply, add) for n in sizes]
    for n in sizes:
        for name, cost in others(n, figure).items():
            lines.setdefault(name, []).append(cost.time(multiply, add))
    return lines


def crossover(figure: str = "total", multiply: float = 1.0, add: float = 0.5) -> int:
    """The least number of joints with which another algorithm is faster."""
    lines = curves(figure, range(2, 21), multiply, add)
    at = (k for k, t in enumerate(lines["wong"]) if t > min(lines[name][k] for name in ("lee", "fijany", "hwang")))
    return int(lines["n"][next(at)])


def excavator() -> dict[str, dict[str, float]]:
    """One evaluation of the accelerations on transputers, in us, sines and cosines included.

    The first three are ours: the excavator's own numbers, of which many are zero. Then the same program for any arm of
    four joints, which is what the print counts. "explicit" is how the thesis programmed it: messages keep both ends
    busy, and rho x c is computed wherever it is needed. The print has the hydraulics in it too.
    """
    out = {}
    for what, name in ((caterpillar(), "excavator"), (4, "any arm")):
        for kind in ("hidden", "t800", "explicit"):
            s = mesh(what, passed=kind != "explicit").schedule(kind)
            out[f"{name}, {kind}"] = _times(s.makespan, s.work)
    given = published()["transputer"]
    out["print, theory"] = _times(
        given["excavator_mesh_theory_us"], 1e3 * given["excavator_one_cpu_theory_ms"]["total"]
    )
    out["print, measured"] = _times(1e3 * given["excavator_mesh_ms"], 1e3 * given["excavator_one_cpu_ms"]["total"])
    return out


def _times(mesh_us: float, one_us: float) -> dict[str, float]:
    return {"mesh": mesh_us, "one processor": one_us, "speedup": one_us / mesh_us}
