"""Environments of gymnasium: for any plant, and some ready tasks.

It needs gymnasium: pip install "bellcrank[learn]".

from bellcrank.gym import VectorEnv, make

envs = make("cart_pole", batch=4096)                     one of TASKS
envs = VectorEnv(plant, 4096, every=0.02, reward=..., ends=..., limit=10.0, low=-1.0, high=1.0)
y, _ = envs.reset(seed=1)
y, reward, terminated, truncated, info = envs.step(u)
"""

from __future__ import annotations

from typing import Any

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import check_known
from bellcrank.lazy_import import optional_import

optional_import("gymnasium", "learn", "bellcrank.gym")

from bellcrank.gym.environments import Env, VectorEnv  # noqa: E402  # they need gymnasium
from bellcrank.gym.tasks import TASKS, Task  # noqa: E402

__all__ = ["TASKS", "Env", "Task", "VectorEnv", "make"]


@explain_argument_errors
def make(task: str | Task, batch: int | None = None, **settings: Any) -> Env | VectorEnv:
    """Return the environment of a task: gymnasium's Env for one run, or its VectorEnv for a batch.

    Parameters
    ----------
    task : str or Task
        Name of a task in TASKS, or a task.
    batch : int, optional
        Number of runs; without it, one run.
    **settings
        Arguments of `bellcrank.stepper` that replace those of the task, such as threads or limit.

    Returns
    -------
    Env or VectorEnv
        One run, or a batch of runs.
    """
    if isinstance(task, str):
        check_known("task", task, TASKS, "gym")
        task = TASKS[task]()
    arguments: dict[str, Any] = {"low": task.low, "high": task.high, **task.settings, **settings}
    return Env(task.plant, **arguments) if batch is None else VectorEnv(task.plant, batch, **arguments)
