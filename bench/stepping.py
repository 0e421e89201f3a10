"""`python -m bench stepping`: actions of steppers, on one pinned core, and kernels inside JAX and PyTorch.

A million cart-poles are compared with the same steps in one uninterrupted run ("theirs" is ours here, so a ratio is the
share of its rate). 4096 Pandas are compared with MuJoCo's own batched rollout of the same mechanism, which must be at
the same state, or nothing is compared. The second bc.simulate of a plant is timed beyond its steps. The overhead of JAX
and PyTorch is the ratio of the kernel alone, called with numpy, to the same kernel inside them.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.gym.tasks import cart_pole
from bench import peers
from bench.row import Row, robot
from bench.simulation import fastest

Array = np.ndarray[Any, Any]
CARTS, ARMS, TICKS, STEP = 1_000_000, 4096, 4, 0.005
RUNS = 100_000  # uninterrupted runs of the cart-pole: the time per step is independent of their number


def rows() -> Iterator[Row]:
    yield carts()
    yield arms()
    yield one()
    yield again()
    for name, made in (("jax", in_jax), ("torch", in_torch)):
        if importlib.util.find_spec(name):
            yield from made()


def carts() -> Row:
    plant = cart_pole().plant
    env = bc.stepper(plant, CARTS, TICKS * STEP, step=STEP)
    u, y = np.random.default_rng(0).uniform(-1, 1, (CARTS, 1)), np.empty((CARTS, 4))
    first = fastest(lambda: env.step(u, out=y), 1.0)
    run, given = bc.Simulator(plant, "rk4"), {"push": u[:RUNS, 0]}

    def steps(n: int) -> float:
        return fastest(lambda: run.run(n * STEP, batch=RUNS, inputs=given, step=STEP, keep="final"), 0.0)

    few, many = 40, 240
    alone = (steps(many) - steps(few)) / (many - few) / RUNS
    ours = min(first, fastest(lambda: env.step(u, out=y), 1.0)) / TICKS / CARTS
    return Row("1e6 cart-poles, step of an action, in one run", 1e9 * ours, 1e9 * alone, "ns", 0.8, 0.95)


def arms() -> Row:
    import mujoco
    from mujoco import rollout

    m = robot("panda")
    q, v, _ = m.random(0, ARMS)
    tau = np.random.default_rng(1).normal(size=(ARMS, m.nv))
    env = bc.stepper(m, ARMS, TICKS * STEP, step=STEP)
    model = mujoco.MjModel.from_xml_string(peers.mjcf(m, STEP))
    data, spec = mujoco.MjData(model), mujoco.mjtState.mjSTATE_FULLPHYSICS
    places = [model.joint(j.name).qposadr[0] for j in m.joints]
    start = np.zeros((ARMS, mujoco.mj_stateSize(model, spec)))
    start[:, 1 + np.array(places)], start[:, 1 + m.nq + np.array(places)] = q, v
    forces = np.zeros((ARMS, TICKS, m.nv))
    forces[:, :, places] = tau[:, None]
    how = {"control_spec": mujoco.mjtState.mjSTATE_QFRC_APPLIED, "nstep": TICKS}
    with rollout.Rollout(nthread=0) as peer:

        def theirs() -> Any:
            return peer.rollout(model, data, start, forces, **how)[0]

        last = theirs()[:, -1]
        env.reset(start=np.concatenate([q, v], axis=-1))
        ours = env.step(tau)
        theirs_last = np.concatenate([last[:, 1 + np.array(places)], last[:, 1 + m.nq + np.array(places)]], axis=-1)
        off = np.abs(ours - theirs_last) / (1.0 + np.abs(ours))
        if not off.max() < 1e-6:
            raise RuntimeError(f"the Pandas of MuJoCo are {off.max():.3g} away after an action: not the same run.")
        slow = fastest(theirs, 1.0)
    out, kept = np.empty_like(ours), env.snapshot()

    def act() -> float:
        env.restore(kept)
        t0 = time.thread_time()
        env.step(tau, out=out)
        return time.thread_time() - t0

    best = min(act() for _ in range(30))
    return Row("4096 Pandas, action of four steps, mujoco.rollout", 1e3 * best, 1e3 * slow, "ms", 15, 40)


def one() -> Row:
    env = bc.stepper(cart_pole().plant, every=STEP, step=STEP)
    u, y = np.zeros(1), np.empty(4)

    def some() -> None:
        for _ in range(1000):
            env.step(u, out=y)

    return Row("one environment, one action, from Python", 1e3 * fastest(some), None, "us", 5.0, 2.0)


def again() -> Row:
    plant = cart_pole().plant

    def steps(n: int) -> float:
        return fastest(lambda: bc.simulate(plant, n * STEP, inputs={"push": 0.0}, step=STEP, progress=False))

    return Row("the second bc.simulate of a plant, beyond its steps", 1e3 * steps(1), None, "ms", 10.0, 2.0)


def _kernel() -> tuple[Any, tuple[Array, ...], Callable[[], float]]:
    m = robot("ur5")
    k, states = bc.kernel(m, "forward_dynamics"), m.random(0, ARMS)
    out = np.empty((ARMS, m.nv))
    return k, states, lambda: wall(lambda: k(*states, out=out))


def wall(call: Callable[[], Any], count: int = 300) -> float:
    """Return wall seconds of the fastest call, because JAX has threads of its own."""
    best = float("inf")
    for _ in range(count):
        t0 = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - t0)
    return best


def in_jax() -> Iterator[Row]:
    import jax

    from bellcrank.jax import wrap

    jax.config.update("jax_enable_x64", True)
    k, states, alone = _kernel()
    f, given = jax.jit(jax.vmap(wrap(k))), [jax.numpy.asarray(x) for x in states]
    f(*given).block_until_ready()
    first = alone()
    inside = wall(lambda: f(*given).block_until_ready())
    yield Row("4096 UR5s inside jax.jit(jax.vmap)", 1e6 * inside, 1e6 * min(first, alone()), "us", 1 / 1.15, 1 / 1.05)


def in_torch() -> Iterator[Row]:
    import torch

    from bellcrank.torch import wrap

    k, states, alone = _kernel()
    f, given = wrap(k), [torch.tensor(x) for x in states]
    first = alone()
    inside = wall(lambda: f(*given))
    yield Row("4096 UR5s inside PyTorch", 1e6 * inside, 1e6 * min(first, alone()), "us", 1 / 1.15, 1 / 1.05)
