"""Execution of chunks through Dask, on this computer's cores or on a given cluster; Dask does the scheduling."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from bellcrank.errors import BellcrankError, InputError
from bellcrank.extras import extra
from bellcrank.studies.chunk import worked
from bellcrank.studies.identity import Expected
from bellcrank.studies.points import Points

LOSSES = 30  # workers that may die over one chunk before the chunk is blamed
AHEAD = 3  # chunks submitted per thread of the workers
START = 120  # s until a new worker must have connected, as the computer may be busy
PATIENCE = 180.0  # s without any local worker after which the study ends


class StudyError(BellcrankError, RuntimeError):
    """A study cannot continue; what was computed is in its folder."""


@contextmanager
def client_of(cluster: Any, workers: int | None) -> Iterator[Any]:
    """Yield a client of dask.distributed.

    Parameters
    ----------
    cluster
        Address, cluster or client; None for processes on this computer.
    workers
        Number of these processes.
    """
    distributed = extra("distributed", "study", "a study")
    if isinstance(cluster, distributed.Client):
        yield cluster
        return
    if cluster is not None:
        if not isinstance(cluster, str) and not hasattr(cluster, "scheduler_address"):
            raise InputError(
                f'cluster is {cluster!r}; expected an address ("tcp://host:8786"), a client or a cluster of dask.'
            )
        try:
            client = distributed.Client(cluster, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise InputError(f"cluster {cluster!r} cannot be reached: {error}") from None
        with client:
            yield client
        return
    made = _local(distributed, workers or os.cpu_count() or 1)
    with _quiet(), made as local, distributed.Client(local, set_as_default=False) as client:
        yield client


@contextmanager
def _local(distributed: Any, workers: int) -> Iterator[Any]:
    """Yield a cluster of local processes that, unlike forked or spawned ones, do not run the user's script again."""
    dask = extra("dask", "study", "a study")
    with dask.config.set(
        {"distributed.scheduler.allowed-failures": LOSSES, "distributed.worker.use-file-locking": False}
    ):
        if os.name == "nt":
            made = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0")
        else:
            inside = extra("distributed.deploy.subprocess", "study", "a study")
            options = {"nthreads": 1, "host": "127.0.0.1", "death_timeout": START, "silence_logs": logging.CRITICAL}
            one = {"cls": inside.SubprocessWorker, "options": {"worker_kwargs": {**options, "dashboard": False}}}
            made = distributed.SpecCluster(
                scheduler={
                    "cls": distributed.Scheduler,
                    # any free port for its statistics, too: another study on this computer may use the default one
                    "options": {
                        "host": "127.0.0.1",
                        "port": 0,
                        "dashboard": False,
                        "dashboard_address": "127.0.0.1:0",
                    },
                },
                workers=dict.fromkeys(range(workers), one),
                worker=one,
                name="bellcrank",
                silence_logs=logging.CRITICAL,
            )
        with made:
            yield made


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence messages about dying workers, whose chunks are computed again."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def done_chunks(
    client: Any, packed: bytes, expected: Expected, points: Points, chunks: Sequence[tuple[int, int]], local: bool
) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    """Yield (first, last, result) of each chunk in the order of completion; chunks of dead workers are resubmitted.

    Parameters
    ----------
    client
        Client of dask.distributed.
    packed, expected
        As in worked.
    points
        Values of all runs.
    chunks
        First and last run of each chunk; last is exclusive.
    local
        The workers are processes of this computer.
    """
    distributed = extra("distributed", "study", "a study")
    path = [p or os.getcwd() for p in sys.path] if local else []
    losses: dict[int, int] = {}
    waiting, ending = list(reversed(chunks)), distributed.as_completed(loop=client.loop, raise_errors=False)
    running: dict[Any, tuple[int, int]] = {}

    def give_out() -> None:
        room = AHEAD * max(1, sum(client.nthreads().values())) - len(running)
        while waiting and room > 0:
            first, last = waiting.pop()
            future = client.submit(worked, packed, expected, path, first, points.part(first, last), pure=False)
            running[future.key] = (first, last)
            ending.add(future)
            room -= 1

    give_out()
    for future in _arriving(client, ending, local):
        first, last = running.pop(future.key)
        why = _lost(distributed, future)
        if client.status != "running":
            raise StudyError(
                "the cluster is gone. What was computed is in the folder; the same study continues from there."
            )
        if why:
            losses[first] = losses.get(first, 0) + 1
            if losses[first] > LOSSES:
                raise StudyError(
                    f"the runs from {first} to {last - 1} end every worker that takes them ({why}), most likely "
                    "because memory is too small. Take smaller chunks: chunk=..., in another folder."
                )
            waiting.append((first, last))
        elif future.status != "finished":
            error = future.exception()
            raise StudyError(f"a worker failed at the runs from {first} on: {type(error).__name__}: {error}")
        else:
            found = future.result()
            if "error" in found:
                raise StudyError(found["error"])
            yield first, last, found
        future.release()
        give_out()


def _arriving(client: Any, ending: Any, local: bool) -> Iterator[Any]:
    """Yield futures as they end.

    Raise an error if all local workers are gone for good, since no future would ever end. Those of another cluster may
    be queued for as long as necessary.
    """
    seen = looked = time.monotonic()
    while not ending.is_empty():
        now = time.monotonic()
        if ending.has_ready():
            yield next(ending)
            seen = looked = time.monotonic()
        elif local and now - looked > min(1.0, PATIENCE / 4.0):
            looked, seen = now, now if client.nthreads() else seen
            if now - seen > PATIENCE:
                raise StudyError(
                    f"no worker has been there for {PATIENCE:g} s: none could be started, or all were ended. What was "
                    "computed is in the folder; the same study continues from there. Fewer may do: workers=1."
                )
        else:
            with ending.thread_condition:
                ending.thread_condition.wait(0.1)


def _lost(distributed: Any, future: Any) -> str:
    """Return why a chunk was not computed, if its worker was lost and the chunk itself did not fail."""
    if future.status in ("cancelled", "lost"):
        return "its worker was lost"
    if future.status == "error" and isinstance(future.exception(), distributed.KilledWorker):
        return "its worker was killed"
    return ""
