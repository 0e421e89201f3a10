"""Loops that cannot be closed at the start or kept closed: the error of a run, and the rows that it keeps."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import zoo
from bellcrank.errors import InputError, ModelError
from bellcrank.sim.settings import FORMS

FLAT = {"A0": -np.pi / 2, "B0": np.pi / 2, "A1": -np.pi / 2}  # of two cranks and a bar: all in a line


def test_unassembled_start_names_its_loop() -> None:
    m = zoo.four_bar()
    with pytest.raises(InputError, match=r'q0 does not close the loops of "four_bar": C: x 0\.\d+.*assemble'):
        bc.simulate(m, 1.0, q0=[1.0, 0.0, 0.0])
    with pytest.raises(InputError, match=r'v0 opens the loops of "four_bar": C: y .*assemble'):
        bc.simulate(m, 1.0, v0=[1.0, 0.0, 0.0])
    good = m.neutral()
    with pytest.raises(InputError, match=r"q0 \(run 1\) does not close"):
        bc.simulate(m, 1.0, q0=[good, np.add(good, [0.3, 0.0, 0.0])])


def test_small_gaps_of_a_start_are_closed() -> None:
    m = zoo.four_bar()
    run = bc.simulate(m, 0.01, q0=m.neutral() + 1e-8)
    assert np.abs(m.closure(run.q)).max() < 1e-12


@pytest.mark.parametrize("form", FORMS)
def test_a_singular_start(form: str) -> None:
    m = zoo.parallel_cranks(2)
    q, v = m.assemble(FLAT, {"A0": 1.0, "B0": -1.0, "A1": 1.0})
    with pytest.raises(InputError, match=r'q0 is a singular configuration .*condition number of C is .*loop "B1: x"'):
        bc.simulate(m, 1.0, q, v, form=form)
    beside, v = m.assemble(FLAT | {"A0": -1.5, "A1": -1.5}, fixed=["A0"])
    assert bc.simulate(m, 0.1, beside, v, form=form).stops[0].reason == "end"


def test_loops_that_cannot_close_and_contradictions_never_get_that_far() -> None:
    b = bc.Builder("apart")
    for name, x in (("one", 0.0), ("two", 5.0)):
        b.body(name, mass=1.0, com=(x, 0.5, 0), inertia=(0.1, 0.1, 0.1))
        b.joint(f"hinge_{name}", "revolute", "ground", name, point=(x, 0, 0), axis=(0, 0, 1))
    b.close("gap", "spherical", "one", "two", point_a=(0, 1, 0), point_b=(5, 1, 0))
    with pytest.raises(ModelError, match=r"cannot be closed.*gap: x"):
        bc.simulate(b.build(), 1.0)


@pytest.mark.parametrize("form", ["minimal", "projected"])
def test_a_singularity_that_cannot_be_passed(form: str) -> None:
    """A delta robot without drives, with steps that are too long for it, stops there and keeps its recorded rows."""
    m = zoo.delta()
    q, v = m.assemble(zoo.start(m)[0], {"shoulder1": 2.0, "shoulder2": -1.0})
    run = bc.simulate(m, 5.0, q, v, step=1e-3, form=form)
    (stop,) = run.stops
    assert stop.reason == "not closed"
    said = re.search(r'step after ([\d.]+) s: .*C is ([\d.e+]+), worst in loop "S\d[ab]: \w", for "(\w+)', stop.message)
    assert said is not None, stop.message
    assert float(said[1]) == pytest.approx(stop.time)
    assert float(said[2]) > 1e3
    assert "singular configuration" in stop.message
    assert said[3] in {j.name for j in m.joints}
    assert run.t[-1] == pytest.approx(stop.time)
    assert len(run.t) > 100
    assert np.isfinite(run.q).all()
    assert np.abs(m.closure(run.q)).max() < 1e-9


@pytest.mark.parametrize(
    ("form", "integrator", "steps"),
    [
        ("minimal", "rk4", {"step": 1e-3}),
        ("minimal", "rk4", {"step": 2e-4}),
        ("projected", "rk4", {"step": 1e-3}),
        ("minimal", "dopri5", {"tolerance": 1e-6}),
        ("minimal", "dopri5", {"tolerance": 1e-8}),
        ("minimal", "dopri5", {"tolerance": 1e-10}),
    ],
)
def test_singularity_is_crossed_with_energy_kept_or_reported(form: str, integrator: str, steps: Any) -> None:
    """A delta robot without drives falls through singular configurations, and past some that it only just misses.

    Its rods turn over there in a tenth of a millisecond.
    """
    m = zoo.delta()
    s = bc.Simulator(m, integrator, form=form)
    for pushed in ({"shoulder1": 0.5}, {"shoulder1": 2.0, "shoulder2": -1.0}):
        run = s.run(10.0, *m.assemble(zoo.start(m)[0], pushed), every=0.01, **steps)
        (stop,) = run.stops
        assert stop.reason == "end" or "a singular configuration; the record ends before it" in stop.message
        assert run.residuals()["energy"] < 1e-3
        assert np.abs(m.closure(run.q)).max() < 1e-10
        assert run.t[-1] > 0.3  # the first is at 0.4 s


@pytest.mark.parametrize("form", ["minimal", "projected"])
@pytest.mark.parametrize("integrator", ["dopri5", "rodas4"])
def test_random_starts_keep_their_energy_across_singularities_or_stop(form: str, integrator: str) -> None:
    """The result of a run must not lose energy by the partitions that earlier runs of the simulator have left."""
    m, rng = zoo.delta(), np.random.default_rng(34)
    s = bc.Simulator(m, integrator, form=form)
    for _ in range(8):
        pushed = {f"shoulder{k}": float(x) for k, x in enumerate(rng.uniform(-3.0, 3.0, 3), 1)}
        tolerance = float(10.0 ** rng.uniform(-11.0, -6.0))
        run = s.run(3.0, *m.assemble(zoo.start(m)[0], pushed), every=0.01, tolerance=tolerance)
        (stop,) = run.stops
        assert stop.reason == "end" or "a singular configuration; the record ends before it" in stop.message
        assert run.residuals()["energy"] < 1e-3


def test_adaptive_steps_cross_the_singularity() -> None:
    """With adaptive steps it swings for ten seconds and meets a singularity every second."""
    m = zoo.delta()
    run = bc.simulate(m, 10.0, *m.assemble({}, {"shoulder1": 0.5}), integrator="dopri5", tolerance=1e-8)
    assert run.stops[0].reason == "end"
    assert run.residuals()["energy"] < 1e-6
    signs = np.sign(np.linalg.det(m.closure_jacobian(run.q)[:, :, [k for k in range(m.nv) if k % 6]]))
    assert np.count_nonzero(np.diff(signs)) > 10


def stiff(target: float) -> Any:
    """A servo on the first joint, given by a function, so that no step is implicit in its damping."""
    return lambda t, q, v, x, u: [200.0 * (target - q[0]) - 20.0 * v[0], *[0.0] * (len(v) - 1)]


@pytest.mark.parametrize("form", FORMS)
def test_steps_that_are_too_long_are_not_called_singular(form: str) -> None:
    s = bc.system(zoo.four_bar(), control=stiff(1.0))
    (stop,) = bc.simulate(s, 3.0, form=form).stops
    assert stop.reason == "not closed"
    assert "not a singular configuration" in stop.message
    assert "smaller step" in stop.message


def test_failed_run_does_not_stop_others() -> None:
    s = bc.system(zoo.four_bar().free("crank.mass"), control=stiff(1.0))
    stops = bc.simulate(s, 0.05, parameters={"crank.mass": np.array([0.2, 1e3, 2e3])}).stops
    assert [stop.reason for stop in stops] == ["not closed", "end", "end"]


def test_a_motion_without_inertia() -> None:
    """A massless link between two links with mass can spin about its own axis."""
    b = bc.Builder("idle")
    for name, x in (("left", 0.0), ("right", 1.0)):
        b.body(name, mass=1.0, com=(x, 0.5, 0), inertia=(0.1, 0.1, 0.1))
        b.joint(f"{name}_hinge", "revolute", "ground", name, point=(x, 0, 0), axis=(0, 0, 1))
    b.body("link")
    b.joint("ball", "spherical", "left", "link", point=(0, 1, 0))
    b.close("end", "spherical", "link", "right", point=(1, 1, 0))
    with pytest.raises(ModelError, match=r'the loops allow a motion, mostly of "ball.\d", that moves no inertia'):
        bc.simulate(b.build(), 0.1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("integrator", "steps"), [("rodas4", {"tolerance": 1e-6}), ("dopri5", {"tolerance": 1e-8})])
def test_windows_are_crossed_correctly_or_reported(form: str, integrator: str, steps: Any) -> None:
    """Two windows of five bars are flat ten times in ten seconds; every recorded row has the initial energy."""
    m = zoo.n_four_bar(2)
    run = bc.simulate(m, 10.0, *zoo.start(m), form=form, integrator=integrator, every=0.01, **steps)
    assert run.stops[0].reason == "end" or "singular configuration" in run.stops[0].message
    assert run.residuals()["energy"] < 1e-3


@pytest.mark.parametrize("bodies", [0, 1, 3])
def test_mechanism_without_moving_body_is_refused_by_name(bodies: int) -> None:
    b = bc.Builder("still")
    for i in range(bodies):
        b.body(f"block{i}", mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(f"weld{i}", "fixed", f"block{i - 1}" if i else "ground", f"block{i}")
    m = b.build()
    for call in (lambda: m.loop_analysis, m.assemble, lambda: bc.simulate(m, 1.0), lambda: bc.equilibrium(m)):
        with pytest.raises(InputError, match='"still" has no moving body'):
            call()
