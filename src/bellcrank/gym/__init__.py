"""Environments of gymnasium: any plant, and a few of the zoo. Needs gymnasium: pip install "bellcrank[learn]".

from bellcrank.gym import VectorEnv, make

envs = make("cart_pole", batch=4096)                     one of TASKS
envs = VectorEnv(plant, 4096, every=0.02, reward=..., ends=..., limit=10.0, low=-1.0, high=1.0)
y, _ = envs.reset(seed=1)
y, reward, terminated, truncated, info = envs.step(u)
"""

from __future__ import annotations

from typing import Any

from bellcrank.errors import InputError, unknown
from bellcrank.extras import extra

extra("gymnasium", "learn", "bellcrank.gym")

from bellcrank.gym.environments import Env, VectorEnv  # noqa: E402  # they need it to be there
from bellcrank.gym.tasks import TASKS, Task  # noqa: E402

__all__ = ["TASKS", "Env", "Task", "VectorEnv", "make"]


def make(task: str | Task, batch: int | None = None, **settings: Any) -> Env | VectorEnv:
    """The environment of a task: one run, as gymnasium's Env, or a batch, as its VectorEnv.

    settings: arguments of bellcrank.stepper that shall be other than the task's, such as threads= or limit=.
    """
    if isinstance(task, str):
        if task not in TASKS:
            raise InputError(f"gym: {unknown('task', task, list(TASKS))}")
        task = TASKS[task]()
    given: dict[str, Any] = {"low": task.low, "high": task.high, **task.settings, **settings}
    return Env(task.plant, **given) if batch is None else VectorEnv(task.plant, batch, **given)
