"""A policy for the swing-up of a pole, trained with plain PyTorch by gradients through the rollouts.

    python examples/swing_up.py [--rounds 300] [--plot progress.png]

The cart-pole is bellcrank.gym's; an action of it is one kernel (stepper.transition), and PyTorch gets its gradients
from our vjp. What was learned is then tried in the stepper, from starts that the training has not seen. It is a
beginning, and no solution: the cost falls to a third, and about a fifth of new runs stand after 5 s. Needs PyTorch, and
matplotlib for the plot.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch

import bellcrank as bc
from bellcrank.gym import TASKS
from bellcrank.torch import wrap

EVERY, STEP, HORIZON, RUNS = 0.04, 0.02, 70, 64
TASK = TASKS["cart_pole_swing_up"]()


def seen(y: Any, lib: Any = torch) -> Any:
    """What the policy sees of a state: a turn more is the same state."""
    x, angle, dx, turning = (y[..., k] for k in range(4))
    return lib.stack([x, lib.sin(angle), lib.cos(angle), dx, 0.2 * turning], -1)


def policy() -> torch.nn.Module:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(5, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)]
    return torch.nn.Sequential(*layers, torch.nn.Tanh()).double()


def cost(step: Any, decide: torch.nn.Module, y: torch.Tensor) -> torch.Tensor:
    """Of rollouts from these states: far from upright, far from the middle, fast."""
    total = torch.zeros(())
    for k in range(HORIZON):
        y = step(y, decide(seen(y)))
        late = 1.0 + 2.0 * k / HORIZON
        rates = 0.01 * y[:, 2] ** 2 + 0.003 * y[:, 3] ** 2
        total = total + late * (1.0 - torch.cos(y[:, 1]) + 0.1 * y[:, 0] ** 2 + rates).mean()
    return total / HORIZON


def anywhere(random: Any) -> dict[str, Any]:
    """Starts to learn from: hanging, falling, standing."""
    return {
        "hinge.q": random.uniform(0.0, 6.283), "hinge.v": random.normal(0.0, 1.0),
        "slide.q": random.uniform(-0.5, 0.5), "slide.v": random.normal(0.0, 0.5),
    }  # fmt: skip


def train(rounds: int = 300, seed: int = 0) -> tuple[torch.nn.Module, list[float]]:
    """The policy, and the cost of every round."""
    env = bc.stepper(TASK.plant, RUNS, EVERY, step=STEP, start=anywhere, seed=seed, outputs=["slide.q"])
    step, decide = wrap(env.transition), policy()
    by = torch.optim.Adam(decide.parameters(), 1e-2)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(by, rounds)
    torch.set_num_threads(1)  # the tensors are small, and threads would wait for each other
    costs = []
    for _ in range(rounds):
        env.reset()  # other starts
        by.zero_grad()
        found = cost(step, decide, torch.from_numpy(env.state))
        found.backward()
        torch.nn.utils.clip_grad_norm_(decide.parameters(), 1.0)
        by.step()
        falling.step()
        costs.append(float(found.detach()))
    return decide, costs


@torch.no_grad()
def upright(decide: torch.nn.Module, runs: int = 256, seconds: float = 5.0) -> float:
    """The share of new runs whose pole stands at the end."""
    env = bc.stepper(TASK.plant, runs, EVERY, step=STEP, start=TASK.settings["start"], seed=99)
    for _ in range(round(seconds / EVERY)):
        env.step(decide(seen(torch.from_numpy(env.state))))
    return float((np.cos(env.state[:, 1]) > 0.9).mean())


def plot(costs: list[float], path: str) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.5), layout="constrained")
    axes.plot(costs)
    axes.set(xlabel="round", ylabel="cost", title=f"Swing-up, {RUNS} rollouts of {HORIZON * EVERY:g} s a round")
    figure.savefig(path)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--plot", default="")
    args = parser.parse_args()
    began = time.perf_counter()
    decide, costs = train(args.rounds)
    steps = args.rounds * RUNS * HORIZON
    print(f"cost {costs[0]:.2f} to {costs[-1]:.2f} in {time.perf_counter() - began:.0f} s ({steps:.2g} actions)")
    print(f"{100 * upright(decide):.0f} % of new runs stand after 5 s")
    if args.plot:
        plot(costs, args.plot)


if __name__ == "__main__":
    main()
