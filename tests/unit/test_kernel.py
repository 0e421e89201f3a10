"""A kernel's interface: shapes, broadcasting, out=, threads, keywords, and errors for bad input."""

from __future__ import annotations

import copy
import math
import os
import pickle
import select
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build import graphs
from bellcrank.dynamics import singular_mass
from bellcrank.emit.cpu.kernel import Kernel
from bellcrank.errors import BellcrankError, InputError, ModelError
from bellcrank.model import Mechanism
from trees import close, random_tree


@pytest.fixture(scope="module")
def arm() -> Mechanism:
    return random_tree(7, ["revolute", "spherical", "prismatic", "revolute"])


@pytest.fixture(scope="module")
def dynamics(arm: Mechanism) -> Kernel:
    return bc.kernel(arm, "forward_dynamics")


@pytest.fixture(scope="module")
def matrix(arm: Mechanism) -> Kernel:
    return bc.kernel(arm, "mass_matrix")


def expected(k: Kernel, **values: Any) -> Any:
    return next(iter(k.graph.evaluate(**values).values()))


# -- shapes


@pytest.mark.parametrize("batch", [(), (1,), (5,), (2, 3), (1, 1, 4), (0,), (3, 0)])
def test_any_leading_shape(arm: Mechanism, dynamics: Kernel, matrix: Kernel, batch: tuple[int, ...]) -> None:
    q, v, tau = arm.random(0, batch)
    a = dynamics(q, v, tau)
    assert a.shape == (*batch, arm.nv)
    assert a.dtype == np.float64
    close(a, expected(dynamics, q=q, v=v, tau=tau), 1e-12)
    M = matrix(q)
    assert M.shape == (*batch, arm.nv, arm.nv)
    close(M, expected(matrix, q=q), 1e-13)


@pytest.mark.parametrize(
    "shapes",
    [
        ((), (4,), ()),
        ((4,), (), ()),
        ((3, 1), (4,), ()),
        ((1,), (4,), (4,)),
        ((2, 1, 3), (5, 1), (1, 1, 1)),
        ((0, 1), (3,), ()),
    ],
)
def test_leading_axes_broadcast(arm: Mechanism, dynamics: Kernel, shapes: tuple[tuple[int, ...], ...]) -> None:
    q, v, tau = (arm.random(i, s)[i] for i, s in enumerate(shapes))
    a = dynamics(q, v, tau)
    assert a.shape == (*np.broadcast_shapes(*shapes), arm.nv)
    close(a, expected(dynamics, q=q, v=v, tau=tau), 1e-12)


def test_scalar_outputs_are_scalars(arm: Mechanism) -> None:
    q, v, _ = arm.random(0)
    T = arm.kinetic_energy(q, v)
    assert isinstance(T, float)
    assert arm.kinetic_energy(np.stack([q, q]), v).shape == (2,)


def test_a_kernel_is_pure(arm: Mechanism, dynamics: Kernel) -> None:
    """A kernel is pure: single and joint calls in any order give the same bits, and the inputs stay unchanged."""
    q, v, tau = arm.random(3, (37,))
    copies = q.copy(), v.copy(), tau.copy()
    together = dynamics(q, v, tau)
    assert all(np.array_equal(a, b) for a, b in zip((q, v, tau), copies))
    assert np.array_equal(dynamics(q, v, tau), together)
    order = np.random.default_rng(0).permutation(37)
    assert np.array_equal(dynamics(q[order], v[order], tau[order]), together[order])


LAYOUTS = ["strided", "reversed", "fortran", "columns", "lists", "integers", "big-endian", "float32", "read-only"]


@pytest.mark.parametrize("change", LAYOUTS)
def test_any_memory_layout(arm: Mechanism, dynamics: Kernel, change: str) -> None:
    q, v, tau = arm.random(1, (6,))
    wide = np.zeros((6, 40))
    wide[:, 5 : 5 + arm.nq] = q
    read_only = q.copy()
    read_only.flags.writeable = False
    same = {
        "strided": lambda: (np.repeat(q, 2, axis=0)[::2], v, tau),
        "reversed": lambda: (q[::-1].copy()[::-1], v, tau),
        "fortran": lambda: (np.asfortranarray(q), np.asfortranarray(v), tau),
        "columns": lambda: (wide[:, 5 : 5 + arm.nq], v, tau),
        "lists": lambda: (q.tolist(), tuple(v.tolist()), tau),
        "integers": lambda: (q, np.ones(v.shape, int), np.zeros(tau.shape, bool)),
        "big-endian": lambda: (q.astype(">f8"), v, tau),
        "float32": lambda: (q, v.astype(np.float32), tau),
        "read-only": lambda: (read_only, v, tau),
    }[change]()
    reference = dynamics(*(np.ascontiguousarray(x, dtype=float) for x in same))
    assert np.array_equal(dynamics(*same), reference)


@pytest.mark.parametrize("shape", [(2**31,), (2**40,), (2**20, 2**20)])
def test_more_states_than_fit_into_memory(arm: Mechanism, dynamics: Kernel, shape: tuple[int, ...]) -> None:
    q, v, tau = arm.random(1)
    first = np.broadcast_to(q, (shape[0], *[1] * (len(shape) - 1), arm.nq))
    last = np.broadcast_to(v, (*[1] * (len(shape) - 1), shape[-1], arm.nv))
    with pytest.raises(bc.InputError, match=r"states needs .* GB .* are free; take a smaller batch"):
        dynamics(first, last, tau)


def test_memoryviews(arm: Mechanism, dynamics: Kernel) -> None:
    q, v, tau = arm.random(1, (5,))
    right = dynamics(q, v, tau)
    assert np.array_equal(dynamics(memoryview(q), memoryview(v), memoryview(tau)), right)
    assert np.array_equal(dynamics(memoryview(q[2]), v[2], tau[2]), dynamics(q[2], v[2], tau[2]))
    with pytest.raises(bc.InputError, match='input "q" has shape'):
        dynamics(memoryview(bytearray(4)).cast("B", (2, 2)), v, tau)


# -- out=, keywords, threads


def test_out_of_another_shape_raises_with_a_remedy(arm: Mechanism) -> None:
    q, v, _ = arm.random(1)
    out = np.zeros(1)
    with pytest.raises(bc.InputError, match=r"of shape \(\); got float64 \(1,\)\..*out\.reshape\(\(\)\)"):
        arm.kinetic_energy(q, v, out=out)
    arm.kinetic_energy(q, v, out=out.reshape(()))
    assert out[0] == arm.kinetic_energy(q, v)


def test_out_takes_the_result(arm: Mechanism, dynamics: Kernel) -> None:
    for batch in [(), (9,), (2, 3)]:
        q, v, tau = arm.random(2, batch)
        out = np.full((*batch, arm.nv), np.nan)
        assert dynamics(q, v, tau, out=out) is out
        assert np.array_equal(out, dynamics(q, v, tau))


def test_out_may_be_an_input_or_a_view_of_one(arm: Mechanism, dynamics: Kernel) -> None:
    q, v, tau = arm.random(2, (21,))
    right = dynamics(q, v, tau)
    x = tau.copy()
    assert np.array_equal(dynamics(q, v, x, out=x), right)
    # Shifted by one row either way: a kernel that wrote while it reads would read its own results.
    for source, target in ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None))):
        shifted = np.empty((22, arm.nv))
        shifted[source] = tau
        dynamics(q, v, shifted[source], out=shifted[target])
        assert np.array_equal(shifted[target], right)
    backwards = np.empty((21, arm.nv))
    dynamics(q, v, tau, out=backwards[::-1])
    assert np.array_equal(backwards[::-1], right)
    one = tau[0].copy()
    dynamics(q[0], v[0], one, out=one)
    close(one, right[0], 1e-12)


def test_keywords(arm: Mechanism, dynamics: Kernel) -> None:
    q, v, tau = arm.random(2)
    right = dynamics(q, v, tau)
    assert np.array_equal(dynamics(q, v, tau=tau), right)
    assert np.array_equal(dynamics(tau=tau, v=v, q=q), right)
    assert np.array_equal(arm.forward_dynamics(q=q, v=v, tau=tau), right)


@pytest.mark.parametrize(("shares", "more"), [(0, 1), (1, 1), (2, -1), (2, 0), (2, 1), (3, 5), (4, 17)])
def test_threads_share_the_rows_out(arm: Mechanism, dynamics: Kernel, shares: int, more: int) -> None:
    two = bc.kernel(arm, "forward_dynamics", threads=2)
    three = bc.kernel(arm, "forward_dynamics", threads=3)
    share = two.signature.rows_per_thread
    rows, counts, many = share * shares + more, [], two._many
    two._many = lambda n, *rest: counts.append(n) or many(n, *rest)
    q, v, tau = arm.random(2, (rows,))
    two.convert(q, v, tau)
    assert sum(counts) == rows
    assert len(counts) == max(1, min(2, rows // share))
    right = dynamics(q, v, tau)
    assert np.array_equal(two(q, v, tau), right)
    assert np.array_equal(three(q, v, tau), right)
    assert np.array_equal(two(q, v[0], tau, out=np.empty_like(right)), dynamics(q, v[0], tau))


def test_other_threads_run_while_a_batch_does(arm: Mechanism, dynamics: Kernel) -> None:
    """The GIL is released during a batch.

    The switch interval is so long that no thread is forced to release it. Between the two reads of the counter only the
    kernel can release it.
    """
    q, v, tau = arm.random(2, (100_000,))
    counted, stop, started = [0], threading.Event(), threading.Event()

    def count() -> None:
        started.set()
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0)  # releases the GIL

    thread, interval = threading.Thread(target=count), sys.getswitchinterval()
    thread.start()
    started.wait()
    try:
        sys.setswitchinterval(100.0)
        gained = 0
        for _ in range(20):  # a busy machine may not give both threads a core every time
            before = counted[0]
            dynamics(q, v, tau)
            gained += counted[0] - before
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
    assert gained > 0


def test_many_threads_may_call_one_kernel(arm: Mechanism, dynamics: Kernel) -> None:
    q, v, tau = arm.random(2, (500,))
    right = dynamics(q, v, tau)
    results: list[Any] = [None] * 4

    def work(i: int) -> None:
        results[i] = all(np.array_equal(dynamics(q, v, tau), right) for _ in range(20))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [True] * 4


# -- bad input: one clear error each, before machine code runs


def calls(arm: Mechanism) -> dict[str, tuple[tuple[Any, ...], dict[str, Any], str]]:
    q, v, tau = arm.random(0)
    bad_v, bad_q = v.copy(), np.stack([q] * 9)
    bad_v[2], bad_q[7, 1] = math.nan, math.inf
    n = arm.nv
    return {
        "nan in one state": ((q, bad_v, tau), {}, r'v\[2\] \("j1.1"\) is nan; expected finite numbers'),
        "inf in a batch": ((bad_q, v, tau), {}, r'q\[7, 1\] \("j1.qx"\) is inf'),
        "minus inf": ((q, v, np.full(n, -np.inf)), {}, rf"tau\[0\].*is -inf.*{n} of {n}"),
        "inf and minus inf": ((q, v, np.array([np.inf, -np.inf] * n)[:n]), {}, r"tau\[0\]"),
        "short": ((q[:-1], v, tau), {}, rf'"q" has shape \({arm.nq - 1},\); expected \(..., {arm.nq}\)'),
        "long": ((q, np.zeros(n + 1), tau), {}, rf'"v" has shape \({n + 1},\); expected \(..., {n}\)'),
        "scalar": ((1.0, v, tau), {}, r'"q" has shape \(\)'),
        "empty": (([], v, tau), {}, r'"q" has shape \(0,\)'),
        "transposed": ((np.zeros((arm.nq, 8)), v, tau), {}, rf"shape \({arm.nq}, 8\)"),
        "lengths": ((np.stack([q] * 3), np.stack([v] * 2), tau), {}, r"do not broadcast: q \(3,\), v \(2,\), tau \(\)"),
        "a string": (("home", v, tau), {}, r'"q".*expected real numbers'),
        "strings": ((q, ["1"] * n, tau), {}, r'"v" has dtype <U1; expected real numbers'),
        "none": ((q, v, None), {}, r'"tau" has dtype object'),
        "complex": ((q, v, tau + 1j), {}, r'"tau" has dtype complex128'),
        "objects": ((q, v, np.array([None] * n)), {}, "dtype object"),
        "dates": ((q, v, np.zeros(n, "datetime64[s]")), {}, "dtype datetime64"),
        "ragged": (([[1.0], [1.0, 2.0]], v, tau), {}, '"q" is not an array'),
        "a dict": (({"a": 1}, v, tau), {}, '"q" has dtype object'),
        "missing": ((q, v), {}, r"forward_dynamics\(q, v, tau\): missing tau"),
        "nothing": ((), {}, "missing q, v, tau"),
        "too many": ((q, v, tau, tau), {}, "takes 3 arrays; got 4"),
        "unknown keyword": ((q, v), {"torque": tau}, r'"torque".*Known: q, v, tau, out'),
        "twice": ((q, v, tau), {"v": v}, '"v" is given twice'),
        "out too long": ((q, v, tau), {"out": np.empty(n + 1)}, rf"out must be .* \({n},\); got float64 \({n + 1},"),
        "out of the wrong dtype": ((q, v, tau), {"out": np.empty(n, np.float32)}, "got float32"),
        "out that is no array": ((q, v, tau), {"out": [0.0] * n}, "got list"),
        "out that is read only": ((q, v, tau), {"out": np.broadcast_to(0.0, n)}, "writable"),
    }  # fmt: skip


@pytest.mark.parametrize("case", calls(random_tree(7, ["revolute", "spherical", "prismatic", "revolute"])))
def test_bad_calls_are_explained(arm: Mechanism, dynamics: Kernel, case: str) -> None:
    args, named, message = calls(arm)[case]
    with pytest.raises(InputError, match=message) as caught:
        dynamics(*args, **named)
    assert str(caught.value).startswith("forward_dynamics")


def test_nan_is_found_in_every_element(arm: Mechanism, dynamics: Kernel) -> None:
    """A NaN is found in every element of every input, in whole blocks and in the tail, on one thread and on two."""
    two = bc.kernel(arm, "forward_dynamics", threads=2)
    inputs = dict(zip("qvt", arm.random(0, (19,))))
    for name, x in inputs.items():
        for column in range(x.shape[1]):
            for row in (0, 7, 18):
                bad = {**inputs, name: x.copy()}
                bad[name][row, column] = np.nan
                with pytest.raises(InputError, match=rf"\[{row}, {column}\]"):
                    dynamics(*bad.values())
                with pytest.raises(InputError, match=rf"\[{column}\]"):
                    dynamics(*(a[row] for a in bad.values()))
    q, v, tau = arm.random(0, (2000,))
    tau[1999, 0] = np.nan
    with pytest.raises(InputError, match=r"tau\[1999, 0\]"):
        two(q, v, tau)


def test_a_nan_is_found_even_where_nothing_depends_on_it(arm: Mechanism) -> None:
    """A NaN is an error even in an input without influence, such as a later coordinate for the first body's pose."""
    q, _, _ = arm.random(0)
    for i in range(arm.nq):
        bad = q.copy()
        bad[i] = np.nan
        with pytest.raises(InputError, match=rf"q\[{i}\]"):
            arm.pose(bad, "b0")
    with pytest.raises(InputError, match=r"q\[0\]"):
        arm.pose(np.full(arm.nq, np.nan), "ground")


def test_huge_numbers_are_numbers(dynamics: Kernel, arm: Mechanism) -> None:
    """Huge finite inputs are accepted, although sums of them may overflow."""
    q, v, _ = arm.random(0)
    result = dynamics(q, v, np.full(arm.nv, 1e308))
    assert result.shape == (arm.nv,)
    assert dynamics(np.stack([q] * 11), v, np.full(arm.nv, 1e308)).shape == (11, arm.nv)


# -- what to compile


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("forward_dynamic",), 'quantity "forward_dynamic".*Did you mean "forward_dynamics"'),
        (("forward_dynamics", "abba"), 'method "abba".*Did you mean "aba".*auto'),
        (("mass_matrix", "aba"), '"aba" cannot compute mass_matrix.*Use: auto, crba'),
        (("pose",), "needs a frame"),
    ],
)
def test_unknown_requests(arm: Mechanism, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        bc.kernel(arm, *arguments)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"target": "gpu"}, 'target "gpu".*Known: cpu'),
        ({"dtype": "float16"}, 'dtype "float16".*float64, float32'),
        ({"threads": 0}, "threads is 0; expected a whole number"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"threads": "two"}, "threads is 'two'"),
        ({"frame": "b0"}, "takes no frame"),
        ({"wrenches": ("hand",)}, 'no frame "hand"'),
    ],
)
def test_bad_settings(arm: Mechanism, named: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        bc.kernel(arm, "forward_dynamics", **named)


def test_frames_by_name(arm: Mechanism) -> None:
    q, v, _ = arm.random(0, (3,))
    assert arm.pose(q, "f2").shape == (3, 4, 4)
    assert np.array_equal(arm.pose(q, "f2"), arm.pose(q, frame="f2"))
    assert np.array_equal(arm.pose(q=q, frame="f2"), arm.pose(q, "f2"))
    assert arm.velocity(q, v, "f2").shape == (3, 6)
    with pytest.raises(InputError, match=r'frame "f9".*Known:'):
        arm.pose(q, "f9")
    with pytest.raises(InputError, match="needs a frame"):
        arm.pose(q)
    with pytest.raises(InputError, match="mass_matrix takes no wrenches"):
        bc.kernel(arm, "mass_matrix", wrenches=("f2",))


def test_wrenches_by_name(arm: Mechanism) -> None:
    q, v, tau = arm.random(0, (5,))
    w = np.random.default_rng(0).uniform(-1, 1, (5, 6))
    pulled = (
        tau + np.einsum("nij,ni->nj", arm.jacobian(q, "f2"), w) + np.einsum("nij,i->nj", arm.jacobian(q, "f3"), w[0])
    )
    a = arm.forward_dynamics(q, v, tau, wrenches={"f2": w, "f3": w[0]})
    close(a, arm.forward_dynamics(q, v, pulled), 1e-11)
    close(arm.inverse_dynamics(q, v, a, wrenches={"f2": w, "f3": w[0]}), tau, 1e-11)
    assert np.array_equal(arm.forward_dynamics(q, v, tau, wrenches={}), arm.forward_dynamics(q, v, tau))


@pytest.mark.parametrize(
    ("wrenches", "message"),
    [
        ({"f9": [0.0] * 6}, 'no frame "f9"'),
        ({"f2": [0.0] * 5}, "f2.*six numbers"),
        ({"f2": "down"}, "f2"),
        ({"f2": [0.0, 0.0, math.nan, 0.0, 0.0, 0.0]}, "is nan"),
        ({"f2": np.zeros((5, 6)), "f3": np.zeros((4, 6))}, r"do not broadcast: f2 \(5,\), f3 \(4,\)"),
        ([0.0] * 6, "wrenches"),
        ("f2", "wrenches"),
    ],
)
def test_bad_wrenches(arm: Mechanism, wrenches: Any, message: str) -> None:
    q, v, tau = arm.random(0)
    with pytest.raises(InputError, match=message):
        arm.forward_dynamics(q, v, tau, wrenches=wrenches)


def test_mechanism_has_quantities_as_attributes(arm: Mechanism) -> None:
    with pytest.raises(AttributeError, match="no attribute 'inverse_kinematics'"):
        _ = arm.inverse_kinematics
    assert arm.mass_matrix is arm.mass_matrix  # compiled once


def test_kernel_repr_and_attributes(dynamics: Kernel) -> None:
    assert repr(dynamics) == f"<Kernel forward_dynamics by {dynamics.method}, float64, 1 thread>"
    assert dynamics.method in ("aba", "crba")
    assert dynamics.graph.count().arithmetic > 0
    assert "define" in dynamics.source
    assert list(dynamics.signature.inputs) == ["q", "v", "tau"]
    assert dynamics.schedule is None


def test_float32(arm: Mechanism) -> None:
    k = bc.kernel(arm, "mass_matrix", dtype="float32")
    q, _, _ = arm.random(0, (5,))
    M = k(q)
    assert M.dtype == np.float32
    assert k(q.astype(np.float32)).dtype == np.float32
    close(M, arm.mass_matrix(q), 1e-5)


def test_a_massless_leaf_is_explained() -> None:
    """A massless leaf raises an error that names the body, because its acceleration is undetermined."""
    b = bc.Builder("hollow")
    b.body("arm", mass=1.0, com=(0.1, 0, 0))
    b.body("ghost")
    b.joint("hinge", "revolute", "ground", "arm")
    b.joint("wrist", "revolute", "arm", "ghost", point=(1, 0, 0))
    m = b.build()
    q, v, tau = m.random(0)
    assert m.mass_matrix(q).shape == (2, 2)
    with pytest.raises(BellcrankError, match=r"\"wrist\" can move without moving any inertia"):
        m.forward_dynamics(q, v, tau)


def test_a_mechanism_without_moving_bodies_is_explained() -> None:
    with pytest.raises(InputError, match="no moving body"):
        bc.Builder("nothing").build().mass_matrix([])


def test_graph_of_a_quantity_without_compiling(arm: Mechanism) -> None:
    g = graphs.graph(arm, "bias")
    assert list(g.inputs) == ["q", "v"]


@pytest.mark.parametrize(
    ("kind", "inertia"), [("spherical", (0, 0, 0)), ("floating", (0, 0, 0)), ("floating", (0, 0.1, 0.1))]
)
def test_motion_without_inertia_is_rejected(kind: str, inertia: tuple[float, ...]) -> None:
    """Joints that can move without moving inertia are refused: a point on a ball joint, a thin rod in space.

    Rounding would give accelerations of 1e16.
    """
    b = bc.Builder("spinning")
    b.body("load", mass=500.0, com=(1.4, 0.3, -4.0), inertia=inertia)
    b.joint("eye", kind, "ground", "load", point=(1, 0, 0))
    m = b.build()
    with pytest.raises(ModelError, match='"eye" can move without moving any inertia'):
        m.forward_dynamics(*m.random(0))
    for name in ("inverse_mass_matrix", "mass_matrix_factors"):
        with pytest.raises(ModelError, match='"eye" can move without moving any inertia'):
            getattr(m, name)(m.random(0)[0])
    assert np.isfinite(m.mass_matrix(m.random(0)[0])).all()


def test_joints_that_are_singular_only_together_are_named() -> None:
    b = bc.Builder("gimbal")
    for i, axis in enumerate(((1, 0, 0), (0, 1, 0), (0, 0, 1))):
        b.body(f"ring{i}", **({"mass": 1.0, "com": (0.3, 0.2, 0.1)} if i == 2 else {}))
        b.joint(f"j{i}", "revolute", f"ring{i - 1}" if i else "ground", f"ring{i}", axis=axis)
    m = b.build()
    with pytest.raises(ModelError, match='"j0", "j1", "j2" can move together'):
        m.forward_dynamics(*m.random(0))


def dummy_between(inertia: float) -> Mechanism:
    """Return two hinges about one axis with a body of little inertia between them."""
    b = bc.Builder("dummy")
    b.body("dummy", mass=1e-3, inertia=(inertia, inertia, inertia))
    b.body("load", mass=500.0, inertia=(900.0, 900.0, 900.0))
    b.joint("inner", "revolute", "ground", "dummy")
    b.joint("outer", "revolute", "dummy", "load")
    return b.build()


def test_quick_inertia_check_implies_the_full_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mechanism that passes the quick check of bodies also passes the full check of the mass matrix, which is
    skipped.
    """
    for seed in range(20):
        m = random_tree(seed, [("revolute", "prismatic")[seed >> k & 1] for k in range(5)])
        if m.tree.has_massive_bodies:
            singular_mass.check_mass_matrix(m)
    assert not random_tree(0, ["spherical"]).tree.has_massive_bodies  # several axes need the full check
    for m in (bc.zoo.puma600(), bc.zoo.stanford(), bc.zoo.torso(), bc.zoo.excavator()):
        assert m.tree.has_massive_bodies
        singular_mass.check_mass_matrix(m)
    heavy, light = dummy_between(1e-3), dummy_between(1e-12)
    assert heavy.tree.has_massive_bodies
    singular_mass.check_mass_matrix(heavy)
    assert not light.tree.has_massive_bodies  # rounding hides the inertia
    with pytest.raises(ModelError, match=r'joint "inner" the inertia of everything that it moves is 9e\+14 times'):
        light.forward_dynamics([0, 0], [0, 0], [0, 1])
    monkeypatch.setattr(singular_mass, "check_mass_matrix", lambda m: pytest.fail("asked for nothing"))
    assert np.isfinite(heavy.forward_dynamics([0, 0], [0, 0], [0, 1])).all()


def test_kernels_travel(arm: Mechanism) -> None:
    k = bc.kernel(arm, "forward_dynamics", dtype=np.float32, threads=np.int64(2))
    state = arm.random(0, (3,))
    for other in (pickle.loads(pickle.dumps(k)), copy.deepcopy(k)):
        assert other.signature == k.signature
        assert np.array_equal(other(*state), k(*state))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(arm: Mechanism) -> None:
    k = bc.kernel(arm, "forward_dynamics", threads=2)
    state = arm.random(0, (2 * k.signature.rows_per_thread,))
    right = k(*state)
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, b"1" if np.array_equal(k(*state), right) else b"0")
        os._exit(0)
    ready, _, _ = select.select([reader], [], [], 30.0)
    assert ready, "the child hangs"
    assert os.read(reader, 1) == b"1"
    os.wait()


def test_an_interrupt_waits_for_the_other_threads(arm: Mechanism) -> None:
    """An interrupt waits for the other threads, because arrays must not be freed while a thread writes to them."""
    k = bc.kernel(arm, "forward_dynamics", threads=2)
    state = arm.random(0, (2 * k.signature.rows_per_thread,))
    many, finished = k._many, []

    def slow(*args: int) -> int:
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        time.sleep(0.2)
        finished.append(many(*args))
        return 0

    k._many = slow
    with pytest.raises(KeyboardInterrupt):
        k.convert(*state)
    assert finished == [0]


def test_a_symmetric_matrix_packed() -> None:
    m = bc.zoo.puma600()
    q = m.random(0, (5, 2))[0]
    rows, columns = np.triu_indices(6)
    for name in ("mass_matrix", "inverse_mass_matrix"):
        packed, whole = bc.kernel(m, name, packed=True)(q), bc.kernel(m, name)(q)
        np.testing.assert_allclose(packed, whole[..., rows, columns], rtol=1e-12, atol=1e-12)
    with pytest.raises(InputError, match=r"bias is not a symmetric matrix.*; mass_matrix, inverse_mass_matrix can"):
        bc.kernel(m, "bias", packed=True)
