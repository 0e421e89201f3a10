"""Execution of chunks through Dask, on this computer's cores or on a given cluster; Dask does the scheduling.

A progress bar on a terminal's stderr estimates the end.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from bellcrank.errors import BellcrankError, InputError
from bellcrank.lazy_import import optional_import
from bellcrank.studies.chunk_worker import compute_chunk
from bellcrank.studies.sampling_plans import Points
from bellcrank.studies.study_identity import ExpectedDigests

MAX_LOST_WORKERS = 30  # workers that may die over one chunk before the chunk is blamed
CHUNKS_PER_THREAD = 3  # chunks submitted per thread of the workers
WORKER_START_SECONDS = 120  # s until a new worker must have connected, as the computer may be busy
BAR_WIDTH = 30  # of the progress
NO_WORKER_SECONDS = 180.0  # s without any local worker after which the study ends


class StudyError(BellcrankError, RuntimeError):
    """A study cannot continue; what was computed is in its folder."""


@contextmanager
def dask_client(cluster: Any, workers: int | None) -> Iterator[Any]:
    """Yield a client of dask.distributed.

    Parameters
    ----------
    cluster
        Address, cluster or client; None for processes on this computer.
    workers
        Number of these processes.
    """
    distributed = optional_import("distributed", "study", "a study")
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
    local_cluster = _local_cluster(distributed, workers or os.cpu_count() or 1)
    with _silenced_logs(), local_cluster as local, distributed.Client(local, set_as_default=False) as client:
        yield client


@contextmanager
def _local_cluster(distributed: Any, workers: int) -> Iterator[Any]:
    """Yield a cluster of local processes that, unlike forked or spawned ones, do not run the user's script again."""
    dask = optional_import("dask", "study", "a study")
    with dask.config.set(
        {"distributed.scheduler.allowed-failures": MAX_LOST_WORKERS, "distributed.worker.use-file-locking": False}
    ):
        if os.name == "nt":
            cluster = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0")
        else:
            subprocess_module = optional_import("distributed.deploy.subprocess", "study", "a study")
            shared = {"host": "127.0.0.1", "dashboard": False}
            quiet = {"silence_logs": logging.CRITICAL}
            kwargs = {**shared, **quiet, "nthreads": 1, "death_timeout": WORKER_START_SECONDS}
            worker = {"cls": subprocess_module.SubprocessWorker, "options": {"worker_kwargs": kwargs}}
            # any free port for its statistics, too: another study on this computer may use the default one
            options = {**shared, "port": 0, "dashboard_address": "127.0.0.1:0"}
            scheduler = {"cls": distributed.Scheduler, "options": options}
            workers_by_name = dict.fromkeys(range(workers), worker)
            cluster = distributed.SpecCluster(workers_by_name, scheduler, worker, name="bellcrank", **quiet)
        with cluster:
            yield cluster


@contextmanager
def _silenced_logs() -> Iterator[None]:
    """Silence messages about dying workers, whose chunks are computed again."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def computed_chunks(
    client: Any,
    packed: bytes,
    expected: ExpectedDigests,
    points: Points,
    chunks: Sequence[tuple[int, int]],
    local: bool,
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
    distributed = optional_import("distributed", "study", "a study")
    path = [p or os.getcwd() for p in sys.path] if local else []
    losses: dict[int, int] = {}
    pending, completions = list(reversed(chunks)), distributed.as_completed(loop=client.loop, raise_errors=False)
    running: dict[Any, tuple[int, int]] = {}

    def give_out() -> None:
        room = CHUNKS_PER_THREAD * max(1, sum(client.nthreads().values())) - len(running)
        while pending and room > 0:
            first, last = pending.pop()
            future = client.submit(compute_chunk, packed, expected, path, first, points.part(first, last), pure=False)
            running[future.key] = (first, last)
            completions.add(future)
            room -= 1

    give_out()
    for future in _completed_futures(client, completions, local):
        first, last = running.pop(future.key)
        loss_reason = _loss_reason(distributed, future)
        if client.status != "running":
            raise StudyError(
                "the cluster is gone. What was computed is in the folder; the same study continues from there."
            )
        if loss_reason:
            losses[first] = losses.get(first, 0) + 1
            if losses[first] > MAX_LOST_WORKERS:
                raise StudyError(
                    f"the runs from {first} to {last - 1} end every worker that takes them ({loss_reason}), most "
                    "likely because memory is too small. Take smaller chunks: chunk=..., in another folder."
                )
            pending.append((first, last))
        elif future.status != "finished":
            error = future.exception()
            raise StudyError(f"a worker failed at the runs from {first} on: {type(error).__name__}: {error}")
        else:
            result = future.result()
            if "error" in result:
                raise StudyError(result["error"])
            yield first, last, result
        future.release()
        give_out()


def _completed_futures(client: Any, ending: Any, local: bool) -> Iterator[Any]:
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
        elif local and now - looked > min(1.0, NO_WORKER_SECONDS / 4.0):
            looked, seen = now, now if client.nthreads() else seen
            if now - seen > NO_WORKER_SECONDS:
                raise StudyError(
                    f"no worker has been there for {NO_WORKER_SECONDS:g} s: none could be started, or all were ended. "
                    "What was computed is in the folder; the same study continues from there. Fewer may do: workers=1."
                )
        else:
            with ending.thread_condition:
                ending.thread_condition.wait(0.1)


def _loss_reason(distributed: Any, future: Any) -> str:
    """Return why a chunk was not computed, if its worker was lost and the chunk itself did not fail."""
    if future.status in ("cancelled", "lost"):
        return "its worker was lost"
    if future.status == "error" and isinstance(future.exception(), distributed.KilledWorker):
        return "its worker was killed"
    return ""


class StudyProgress:
    """Progress of a study.

    Parameters
    ----------
    runs
        Number of all runs.
    todo
        First and last run of each chunk that is missing.
    progress
        Function that is called with the share done, False for silence, True or None for a bar on a terminal.
    """

    def __init__(self, runs: int, todo: Sequence[tuple[int, int]], progress: Any) -> None:
        self.runs, self.to_do = runs, sum(last - first for first, last in todo)
        self.done_before = runs - self.to_do
        self.finished = 0
        self._callback = progress if callable(progress) else None
        self._shows_bar = progress is not False and self._callback is None and (progress is True or sys.stderr.isatty())
        self._began = time.monotonic()

    def __enter__(self) -> StudyProgress:
        return self

    def count_done(self, runs: int) -> None:
        """Count `runs` that are finished."""
        self.finished += runs
        if self._callback is not None:
            self._callback((self.done_before + self.finished) / self.runs)
        if self._shows_bar:
            sys.stderr.write(f"\r{self}\x1b[K")
            sys.stderr.flush()

    def __str__(self) -> str:
        share = (self.done_before + self.finished) / self.runs
        spent = time.monotonic() - self._began
        rate = self.finished / spent if spent > 0 else 0.0
        left = (self.to_do - self.finished) / rate if rate else 0.0
        end = time.strftime("%H:%M:%S", time.localtime(time.time() + left))
        full = round(BAR_WIDTH * share)
        bar = "\u2588" * full + "\u2591" * (BAR_WIDTH - full)
        return f"{bar} {share:4.0%} of {self.runs} runs, {rate:.0f} a second, {left:.0f} s left, until {end}"

    def __exit__(self, *_: object) -> None:
        if self._shows_bar:
            sys.stderr.write("\n")
