"""Linearisations and equilibria on both sides of every threshold between two code paths.

Small mechanisms take the paths of large ones when thresholds are lowered (large_paths.py), and large ones are on both
sides of the real thresholds. The reference is straight-line code, evaluated by numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.actuators import PD, DCMotor
from bellcrank.build.function_compilation import DEFAULT_TARGET
from bellcrank.dynamics.loops.assembly import consistent_velocity
from bellcrank.sim.linear.linearisation import prepare
from bellcrank.sim.linear.operating_point import dependent_mask, displaced_positions
from large_paths import large_paths
from trees import close

Array = np.ndarray[Any, Any]
Outputs = tuple[str, ...]
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def hanging(n: int, springs: bool = False, mimic: bool = False, base: str = "", loops: int = 0) -> bc.Mechanism:
    """A chain of identical hanging links with springs and damping in the joints."""
    b = bc.Builder(f"hanging{n}", gravity=(0.0, 0.0, 0.0) if base else (0.0, 0.0, -9.81))
    for i in range(n):
        top, kind = (0.0, 0.0, -0.2 * i), base if base and not i else "revolute"
        b.body(f"l{i}", mass=0.5, com=(0.01, 0.02, -0.2 * i - 0.1), inertia=(2e-3, 2e-3, 1e-3))
        passive = {} if base and not i else {"axis": (X, Y)[i % 2], "damping": 0.1, "stiffness": 3.0}
        follows = {"mimic": (f"j{i - 2}", 0.5, 0.01)} if mimic and i % 3 == 2 else {}
        b.joint(f"j{i}", kind, f"l{i - 1}" if i else "ground", f"l{i}", point=top, **passive, **follows)
    for i in range(0, n - 2, 2) if springs else ():
        ends = (0.05, 0.0, -0.2 * i), (0.05, 0.0, -0.2 * i - 0.4)
        b.spring(f"s{i}", f"l{i}", f"l{i + 2}", *ends, stiffness=20.0, length=0.35, damping=0.5)
    for i in range(loops):
        k = n - 1 - 3 * i
        tip = (0.0, 0.0, -0.2 * k)
        b.close(f"tie{i}", "distance", "ground", f"l{k}", point_a=(1.0, 0.3, -0.2 * k), point_b=tip)
    b.frame("tip", f"l{n - 1}", point=(0.0, 0.0, -0.2 * n))
    return b.build()


def commanded(m: bc.Mechanism, kind: Callable[..., Any], *numbers: float) -> bc.System:
    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return [u["push"] * (1.0 + 0.1 * k) for k in range(m.nv)]

    return bc.system(m, [kind(n, *numbers) for n in m.columns[1]], control, inputs={"push": 0.2})


def pulled(t: Any, pose: Any, velocity: Any) -> tuple[list[Any], list[Any]]:
    """A force that depends on the position and the motion of the frame."""
    return [-2.0 * pose[0, 3] - velocity[0], 0.3, -velocity[2]], [0.0, 0.0, 0.0]


PLANTS: dict[str, Callable[[int], Any]] = {
    "tree": hanging,
    "springs": lambda n: hanging(n, springs=True),
    "mimic": lambda n: hanging(n, mimic=True),
    "floating": lambda n: hanging(n, base="floating"),
    "motors": lambda n: commanded(hanging(n), DCMotor, 0.5, 1.0, 0.05),
    "servos": lambda n: commanded(hanging(n), PD, 4.0, 0.5),
    "outputs": lambda n: bc.system(hanging(n), outputs={"sum": lambda t, q, v, x, u: q[0] * v[n - 1] + q[n - 1]}),
    "forces": lambda n: bc.system(hanging(n), forces={"tip": pulled, f"l{n // 2}": pulled}),
    "loops": lambda n: hanging(n, loops=1),
    "loops and springs": lambda n: hanging(n, loops=2, springs=True),
}
MOVES = {"floating"}  # nothing holds the whole mechanism
# On both sides of 1000 graph nodes. (Mimic joints in straight-line code would take a minute to compile at 64.)
SIZES = [(n, name) for n in (64, 65) for name in PLANTS if (n, name) != (64, "mimic")]
SEEN: Outputs = ("tip.x", "tip.speed", "energy")


class Reference:
    """Rates and outputs of a system, from graphs of straight-line code that numpy evaluates."""

    def __init__(self, plant: Any, at: dict[str, Array], outputs: Outputs) -> None:
        made = prepare(plant, where=DEFAULT_TARGET)
        self.system, self.at = made.open.system, at
        y, p = self.start, at["p"]
        self.by = made.dynamics.closure.common_dynamics(y[None], p[None])
        self.graph = made.tangents(self.by, outputs).graph
        self.free = self.by.independent

    @property
    def start(self) -> Array:
        return np.concatenate([self.at["q"], self.at["v"], self.at["x"]])

    def moved(self, z: Array, e: float) -> Array:
        """The state displaced by e times a change of the independent coordinates, speeds and other states."""
        m, k = self.system.mechanism, len(self.free)
        xi, p = np.zeros(m.nv), self.at["p"]
        xi[self.free] = e * z[:k]
        q, v = displaced_positions(self.system, p, self.at["q"], xi, self.free), self.at["v"].copy()
        v[self.free] += e * z[k : 2 * k]
        if m.loops:
            v = consistent_velocity(m.tree, q, v, free=dependent_mask(self.system, self.free))
        return np.concatenate([q, v, self.at["x"] + e * z[2 * k :]])

    def there(self, y: Array, u: Array) -> tuple[Array, Array]:
        """Accelerations of independent joints, rates of other states, and outputs."""
        given = {"t": 0.0, "y": y, "u": u, "p": self.at["p"]}
        found = self.graph.evaluate(**{name: given[name] for name in self.graph.inputs})
        m = self.system.mechanism
        rest = [*self.free, *range(m.nv, m.nv + self.system.nx)]
        return found["after"][m.nq :][rest], found["seen"]


def at_random(plant: Any, seed: int = 1) -> dict[str, Array]:
    """A random moving state near the start."""
    s = bc.system(plant) if isinstance(plant, bc.Mechanism) else plant
    m, rng = s.mechanism, np.random.default_rng(seed)
    q = (
        displaced_positions(s, np.zeros(0), m.neutral(), 0.1 * rng.normal(size=m.nv), range(m.nv))
        if not m.loops
        else None
    )
    q = m.neutral() + 0.05 * rng.normal(size=m.nq) if q is None else q
    return {"q": q, "v": 0.3 * rng.normal(size=m.nv), "x": 0.1 * rng.normal(size=s.nx)}


def checked_linearisation(name: str, n: int, large: bool) -> None:
    """Compare rate, A, B, C and D in one random direction with differences of the reference."""
    plant = PLANTS[name](n)
    outputs: Outputs = (*SEEN, *(("sum",) if name == "outputs" else ()))
    at = at_random(plant)
    m = plant if isinstance(plant, bc.Mechanism) else plant.mechanism
    if m.loops:
        at["q"], at["v"] = m.assemble(*(dict(zip(m.columns[k], at["qv"[k]], strict=True)) for k in (0, 1)))
    if large:
        with large_paths():
            lin = bc.linearize(plant, at=at, outputs=outputs)
    else:
        lin = bc.linearize(plant, at=at, outputs=outputs)
    reference = Reference(PLANTS[name](n), lin.at, outputs)
    rng, e = np.random.default_rng(3), 1e-5
    z, w = rng.normal(size=len(lin.states)), rng.normal(size=len(lin.inputs))
    k = len(reference.free)
    rate, _ = reference.there(reference.start, lin.at["u"])
    scale = 1.0 + np.abs(rate).max()
    np.testing.assert_allclose(lin.rate[:k], lin.at["v"][reference.free], atol=1e-12)
    np.testing.assert_allclose(lin.rate[k:], rate, atol=1e-9 * scale)
    (after, seen), (before, saw) = (
        reference.there(reference.moved(z, s * e), lin.at["u"] + s * e * w) for s in (1.0, -1.0)
    )
    for found, expected in (
        (lin.A[k:] @ z + lin.B[k:] @ w, (after - before) / (2 * e)),
        (lin.C @ z + lin.D @ w, (seen - saw) / (2 * e)),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * (1.0 + np.abs(expected).max()))


@pytest.mark.parametrize("name", PLANTS)
@pytest.mark.parametrize("n", [6, 9])
def test_small_mechanisms_on_the_paths_of_large_ones(name: str, n: int) -> None:
    checked_linearisation(name, n, large=True)


@pytest.mark.parametrize(("n", "name"), [*SIZES, (63, "tree"), (66, "tree")])
def test_linearisations_around_the_real_thresholds(n: int, name: str) -> None:
    checked_linearisation(name, n, large=False)


def checked_rest(name: str, n: int, large: bool) -> None:
    """Check that nothing accelerates at the equilibrium."""
    plant = PLANTS[name](n)
    if large:
        with large_paths():
            rest = bc.equilibrium(plant)
    else:
        rest = bc.equilibrium(plant)
    assert not rest.failures
    lin = bc.linearize(PLANTS[name](n), at=rest.at)
    reference = Reference(PLANTS[name](n), lin.at, SEEN)
    rate, _ = reference.there(reference.start, lin.at["u"])
    assert np.abs(rate).max() < 1e-5, rate
    assert np.abs(lin.rate).max() < 1e-5


@pytest.mark.parametrize("name", [x for x in PLANTS if x not in MOVES])
def test_small_mechanisms_rest_on_the_paths_of_large_ones(name: str) -> None:
    checked_rest(name, 6, large=True)


@pytest.mark.parametrize(("n", "name"), [(n, name) for n, name in SIZES if name not in MOVES])
def test_rest_around_the_real_thresholds(n: int, name: str) -> None:
    checked_rest(name, n, large=False)


def test_lowered_thresholds_lead_to_other_code() -> None:
    """Otherwise the tests above would check nothing."""
    assert prepare(hanging(6)).dynamics.recursion is None
    with large_paths():
        assert prepare(hanging(6)).dynamics.recursion is not None


def test_a_chain_of_65_has_its_rate() -> None:
    m = bc.zoo.chain(65)
    q, v, _ = m.random(0)
    lin = bc.linearize(m, at={"q": q, "v": v})
    close(lin.rate, np.concatenate([v, m.forward_dynamics(q, v, np.zeros(65))]))
    close(lin.C, np.eye(130), 0.0)
