"""Assembly of closed loops: mobility, branches, and the error messages where nothing can be assembled."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from bellcrank import zoo
from bellcrank.cli import app
from bellcrank.dynamics.loops import analysis
from bellcrank.dynamics.loops.constraint_values import Array, evaluate_constraints
from bellcrank.errors import InputError, ModelError
from bellcrank.formats import Builder
from bellcrank.model import Mechanism, Tree
from trees import close

# name -> mobility, Gruebler's count, redundant equations
KNOWN = {
    "rod_pendulum": (2, 2, 0),
    "four_bar": (1, -2, 0),
    "n_four_bar": (1, -5, 0),
    "parallel_cranks": (1, -6, 1),
    "andrews": (1, -8, 0),
    "bricard": (1, 0, 1),
    "stewart": (6, 6, 0),
    "delta": (3, 3, 0),
    "double_wishbone": (1, 1, 0),
    "slider_fourbar": (2, -1, 1),
}


def gaps(m: Mechanism, q: Any, v: Any) -> float:
    """Return the largest residual of all equations, in position and in velocity."""
    return float(max(np.abs(m.closure(q)).max(), np.abs(m.closure_jacobian(q) @ v).max()))


@pytest.mark.parametrize("name", KNOWN)
def test_mobility(name: str) -> None:
    m = getattr(zoo, name)()
    found = m.loop_analysis
    assert (found.mobility, found.gruebler, len(found.redundant)) == KNOWN[name]
    assert found is m.loop_analysis
    assert not found.more
    assert f"mobility {found.mobility} (Gruebler counts {found.gruebler})" in str(found)
    for what in found.redundant:
        assert f"{what}" in str(found)
    assert len(found.kept) == len(set(found.kept)) == m.nv - found.mobility


@pytest.mark.filterwarnings("ignore:.*it cannot move:RuntimeWarning")
def test_a_ring_of_seven_moves_and_six_do_not() -> None:
    """A ring of seven hinges has one degree of freedom and one of six has none, as Gruebler's count gives."""
    for n, mobility in ((6, 0), (7, 1), (8, 2)):
        rng = np.random.default_rng(3)
        b = Builder("ring")
        bodies = ["ground", *(f"b{i}" for i in range(n - 1)), "ground"]
        for name in bodies[1:-1]:
            b.body(name, mass=1, com=rng.normal(size=3), inertia=(1, 1, 1))
        for i in range(n):
            ends = (bodies[i], bodies[i + 1]) if i < n - 1 else ("ground", bodies[i])
            axis = rng.normal(size=3)
            b.joint(f"r{i}", "revolute", *ends, point=rng.normal(size=3), axis=axis / np.linalg.norm(axis))
        found = b.build().loop_analysis
        assert (found.mobility, found.gruebler, found.redundant) == (mobility, mobility, ())


def test_without_loops_everything_is_free() -> None:
    m = zoo.puma600()
    assert (m.loop_analysis.mobility, m.loop_analysis.gruebler) == (6, 6)
    given = m.random(0)[:2]
    close(m.assemble(*given), given)


@pytest.mark.parametrize("name", KNOWN)
def test_assembles_from_near_by(name: str) -> None:
    m = getattr(zoo, name)()
    rng = np.random.default_rng(0)
    q0 = m.loop_analysis.samples[0]
    guess = np.array(m.integrate(q0, 0.05 * rng.normal(size=m.nv)))
    q, v = m.assemble(guess, rng.normal(size=m.nv))
    assert gaps(m, q, v) < 1e-9
    assert np.abs(q - guess).max() < 1.0
    assert np.abs(v).max() > 0.01


def test_fixed_joints_stay_and_keep_their_speed() -> None:
    m = zoo.four_bar()
    q, v = m.assemble({"A": 1.0}, {"A": 10.0}, fixed=["A"])
    assert (q[0], v[0]) == (1.0, 10.0)
    assert gaps(m, q, v) < 1e-9
    again, _ = m.assemble(q, v, fixed=["A"])
    close(again, q)


def test_all_the_way_round() -> None:
    m = zoo.four_bar()
    q = m.neutral()
    for angle in np.linspace(0.0, 2 * np.pi, 25):
        q, v = m.assemble([angle, *q[1:]], {"A": 1.0}, fixed=["A"])
        assert gaps(m, q, v) < 1e-9


def test_impossible_assembly_names_the_open_loop() -> None:
    m = zoo.four_bar()
    with pytest.raises(InputError) as error:
        m.assemble({"A": 1.0, "D": 3.0}, fixed=["A", "D"])
    text = str(error.value)
    assert text.startswith('assemble "four_bar": these equations are not satisfied: C: ')
    assert "Without fixed joints it closes, with A at " in text
    q, _ = m.assemble()
    with pytest.raises(InputError, match="do not allow the velocities of A, D: they would open at C: "):
        m.assemble(q, {"A": 1.0}, fixed=["A", "D"])


def impossible() -> Mechanism:
    b = Builder("short")
    for i, name in enumerate(("left", "right")):
        b.body(name, mass=1, com=(i, 0, 0), inertia=(1, 1, 1))
        b.joint(f"pin{i}", "revolute", "ground", name, point=(3.0 * i, 0, 0))
    b.close("meet", "revolute", "left", "right", point_a=(1, 0, 0), point_b=(2, 0, 0), axis=(0, 0, 1))
    return b.build()


def test_loops_that_never_close() -> None:
    """Two cranks of one metre with pivots three metres apart raise an error."""
    m = impossible()
    with pytest.raises(ModelError, match=r"the loops cannot be closed.*these equations are not satisfied: meet: x"):
        m.loop_analysis  # noqa: B018
    with pytest.raises(ModelError, match="meet: x"):
        m.forward_dynamics  # noqa: B018
    with pytest.raises(InputError, match=r"meet: x .*No configuration around the guess closes them either"):
        m.assemble()


def far_away() -> tuple[Mechanism, list[float]]:
    """Return six joints in a row whose end is held at a pose that they reach far from zero only."""
    rng = np.random.default_rng(5)
    b, names = Builder("far"), ["ground", *(f"b{i}" for i in range(6))]
    for i in range(6):
        b.body(names[i + 1], mass=1, com=(0.1, 0.2, 0), inertia=(1, 1, 1))
        b.joint(f"j{i}", "revolute", names[i], names[i + 1], point=rng.uniform(-1, 1, 3), axis=rng.normal(size=3))
    q = rng.uniform(-3, 3, 6)
    at = b.build().pose(q, frame="b5")
    b.close("hold", "spherical", "ground", "b5", point_a=at[:3, 3], point_b=(0, 0, 0))
    return b.build(), q.tolist()


def test_analysis_starts_at_the_assembled_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """The analysis starts at the configuration that assemble found, where nothing closes near zero.

    Kernels are not shared with a mechanism that was analysed elsewhere.
    """
    m, q = far_away()

    def only(tree: Tree, guess: Array, *given: Any, **named: Any) -> tuple[Array, Array, bool]:
        residual = evaluate_constraints(tree, guess).value
        return guess, residual, bool(np.abs(residual).max() < 1e-9)

    monkeypatch.setattr("bellcrank.dynamics.loops.equation_analysis.search_assembly", only)
    with pytest.raises(ModelError, match=r"assemble\(q_guess\) finds it and stores it in the mechanism"):
        m.loop_analysis  # noqa: B018
    found, _ = m.assemble(q)
    assert m.loop_analysis.from_given_configuration
    assert m.loop_analysis.mobility == 3
    a = m.forward_dynamics(found, np.zeros(6), np.zeros(6))
    np.testing.assert_allclose(evaluate_constraints(m.tree, found).C @ a, 0.0, atol=1e-9)


@pytest.mark.parametrize("name", ["four_bar", "stewart", "bricard"])
def test_one_of_a_batch_is_as_many_are(name: str) -> None:
    """A single configuration gives the same bits as a batch, so that a run does not depend on the runs beside it."""
    m = zoo.load(name)
    q, v, _ = m.random(0, 4)
    many = evaluate_constraints(m.tree, q, v)
    for k in range(4):
        one = evaluate_constraints(m.tree, q[None, k : k + 1], v[k])
        for x, y in ((one.value, many.value), (one.C, many.C), (one.bias, many.bias)):
            np.testing.assert_array_equal(x, y[None, k : k + 1])


def test_contradictions_are_named() -> None:
    """A contradiction is reported by name.

    A crank held at one distance by a rod, and at another one by a second rod.
    """
    b = Builder("contradiction")
    b.body("crank", mass=1, com=(0.5, 0, 0), inertia=(1, 1, 1))
    b.joint("pin", "revolute", "ground", "crank", axis=(0, 0, 1))
    b.close("one", "distance", "ground", "crank", point_a=(2, 0, 0), point_b=(1, 0, 0), distance=1.5)
    b.close("two", "distance", "ground", "crank", point_a=(2.2, 0, 0), point_b=(1, 0, 0), distance=1.2)
    with pytest.raises(ModelError) as error:
        analysis(b.build())
    assert "one: length" in str(error.value)
    assert "two: length" in str(error.value)


def test_singular_start_is_detected() -> None:
    """A parallelogram whose bars all lie in one line is reported as singular."""
    b = Builder("flat")
    for name, x in (("left", 0.0), ("right", 2.0)):
        b.body(name, mass=1, com=(x + 0.5, 0, 0), inertia=(1, 1, 1))
        b.joint(f"pin_{name}", "revolute", "ground", name, point=(x, 0, 0))
    b.body("top", mass=1, com=(2, 0, 0), inertia=(1, 1, 1))
    b.joint("knee", "revolute", "left", "top", point=(1, 0, 0))
    b.close("end", "revolute", "top", "right", point=(3, 0, 0), axis=(0, 0, 1))
    found = b.build().loop_analysis
    assert (found.mobility, found.more) == (1, 1)
    assert "the start is singular, with 1 more" in str(found)


@pytest.mark.filterwarnings("ignore:.*it cannot move:RuntimeWarning")  # it is welded to the ground
def test_no_end_is_upside_down() -> None:
    """A weld that is turned by half a turn is not accepted, although its equations hold there too."""
    b = Builder("flipped")
    b.body("top", mass=1, inertia=(1, 1, 1))
    b.joint("free", "floating", "ground", "top")
    b.close("weld", "fixed", "ground", "top", point=(0, 0, 0.3))
    m = b.build()
    for axis in np.eye(3):
        q, v = m.assemble([0.1, 0, 0, *(np.sin(1.5) * axis), np.cos(1.5)])  # turned by 3, which is almost pi
        close(q[:6], np.zeros(6), 1e-9)
        assert gaps(m, q, v) < 1e-9


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"q_guess": [1, 2]}, "q_guess is [1, 2]; expected 3 finite numbers"),
        ({"q_guess": {"X": 1}}, 'q_guess: There is no element "X". Known: A, B, D'),
        ({"q_guess": {"A": np.nan}}, "expected a finite number"),
        ({"v_guess": "fast"}, "expected 3 finite numbers"),
        ({"fixed": ["X"]}, 'fixed: There is no joint "X"'),
        ({"fixed": "A"}, 'expected a list of joints, as in fixed=["A"]'),
    ],
)
def test_bad_guesses(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as error:
        zoo.four_bar().assemble(**given)
    assert says in str(error.value)


def test_a_quaternion_has_the_length_one() -> None:
    m = zoo.double_wishbone()
    with pytest.raises(InputError, match="has length 2; expected 1"):
        m.assemble(2 * m.neutral())


def test_show_prints_the_mobility_of_loops(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")

    def shown(*words: str) -> str:
        with pytest.raises(SystemExit) as end:
            app(["show", *words])
        assert end.value.code == 0
        return capsys.readouterr().out

    text = shown("bricard")
    assert "mobility 1: 5 coordinates, 4 of 5 loop equations are independent (Gruebler counts 0)" in text
    assert "R4: tilt about x" in text
    found = json.loads(shown("slider_fourbar", "--json"))
    assert (found["mobility"], found["gruebler"], found["redundant"]) == (2, -1, ["R5: y"])
    assert found["identically_satisfied"] == ["R5: tilt about y", "R5: tilt about x"]
    assert found["holding_by_themselves"] == found["identically_satisfied"]
    assert not found["singular_start"]


def leg() -> Mechanism:
    """Return a leg of Theo Jansen's walking machine: a crank, and seven bars in three loops."""

    def apex(p: Any, r: float, q: Any, s: float, side: float) -> Any:
        """Return an intersection of two circles about p and q."""
        along = (q - p) / np.linalg.norm(q - p)
        far = (r * r - s * s + (q - p) @ (q - p)) / (2 * np.linalg.norm(q - p))
        return p + far * along + side * np.sqrt(r * r - far * far) * np.array([-along[1], along[0]])

    O, B = np.array([0.0, 0.0]), np.array([-0.38, -0.078])
    C = 0.15 * np.array([np.cos(0.3), np.sin(0.3)])
    D, E = apex(C, 0.5, B, 0.415, 1.0), apex(C, 0.619, B, 0.393, -1.0)
    F = apex(D, 0.558, B, 0.401, 1.0)
    G = apex(F, 0.394, E, 0.367, 1.0)
    b = Builder("leg", gravity=(0, -9.81, 0))
    bars = {"crank": (O, C), "j": (C, D), "k": (C, E), "tri": (B, D, F), "c": (B, E), "f": (F, G), "foot": (E, G)}
    for name, points in bars.items():
        b.body(name, mass=1, com=(*np.mean(points, axis=0), 0), inertia=(0.01, 0.01, 0.01))
    for name, one, other, p in (
        ("O", "ground", "crank", O), ("C1", "crank", "j", C), ("C2", "crank", "k", C), ("B1", "ground", "tri", B),
        ("B2", "ground", "c", B), ("D", "j", "tri", D), ("E1", "k", "c", E), ("E2", "c", "foot", E),
        ("F", "tri", "f", F), ("G", "f", "foot", G),
    ):  # fmt: skip
        b.joint(name, "revolute", one, other, point=(*p, 0), axis=(0, 0, 1))
    return b.build()


@pytest.mark.parametrize("degrees", [10.0, -30.0])
def test_the_branch_is_followed(degrees: float) -> None:
    """Following a branch through a full turn of the crank ends where it began.

    Each configuration starts from the one before.
    """
    m = leg()
    q, crank = m.neutral(), m.columns[0].index("O")
    for _ in range(round(360 / abs(degrees))):
        guess = q.copy()
        guess[crank] += np.radians(degrees)
        new, _ = m.assemble(guess, fixed=["O"])
        assert np.abs(new - q).max() < 3 * np.radians(abs(degrees))
        q = new
    close(np.cos(q), np.cos(m.neutral()), 1e-9)
    close(np.sin(q), np.sin(m.neutral()), 1e-9)


def test_end_of_a_branch_raises() -> None:
    """A crank that narrowly cannot pass the line to the other pivot raises an error.

    The loop closes on both sides of that line, but no path connects them.
    """
    b, turn = Builder("barred"), np.radians(8.0)
    tip, far = np.array([np.cos(turn), np.sin(turn), 0.0]), np.array([2.0, 0.0, 0.0])
    along = (far - tip) / np.linalg.norm(far - tip)
    reach = (2.3**2 - 1.29**2 + (far - tip) @ (far - tip)) / (2 * np.linalg.norm(far - tip))
    top = tip + reach * along + np.sqrt(2.3**2 - reach**2) * np.array([-along[1], along[0], 0.0])
    ends = {"crank": (np.zeros(3), tip), "coupler": (tip, top), "rocker": (far, top)}
    for name, (p, q) in ends.items():
        b.body(name, mass=1, com=(p + q) / 2, inertia=(1, 1, 1))
    b.joint("A", "revolute", "ground", "crank", point=(0, 0, 0))
    b.joint("B", "revolute", "crank", "coupler", point=tip)
    b.joint("D", "revolute", "ground", "rocker", point=far)
    b.close("C", "revolute", "coupler", "rocker", point=top, axis=(0, 0, 1))
    m = b.build()
    m.assemble({"A": 0.1}, fixed=["A"])
    with pytest.warns(RuntimeWarning, match="could not be followed"):
        m.assemble({"A": -2 * turn}, fixed=["A"])
