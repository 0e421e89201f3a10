"""Handover protocol of cores that compute one state together: LLVM IR around the streams of emit/cores/streams.py.

All communication goes through `@shared`, some cache lines that the module owns. The caller's thread is processor 0;
the others are workers, each in a native loop `@worker_k`, which Python enters from a separate thread
(emit/cores/thread_team.py).

    step       number of the state being computed, followed by the addresses of the arrays
    claim_k    state of worker k: 4 * step + AWAY, IDLE, WORKING or REVOKED
    done_k     the same, written when a step is done, and its status. It has a line of its own: callers poll only this
               one, so that claiming a step needs no traffic between the cores
    abort      number of a step that the caller has aborted to compute it alone
    busy       a caller is in a step: a second caller computes alone, and a worker that arrives waits outside

A caller posts a step only if all workers are done with the last one, and a worker touches a step only after it has
changed its claim from IDLE to WORKING by an atomic exchange. So a caller that waits in vain, because the other core is
busy with something else, can revoke the step: by the same exchange, from IDLE to REVOKED, after which that worker will
not touch it. Then `abort` tells the WORKING ones that no more messages will come (they finish with whatever they have);
the caller waits for them, revokes the step from all that are still IDLE, and computes the state alone. The wait for a
worker that has not begun is bounded.

tests/targets/test_handover.py runs this code in all interleavings for two and three processors, and for two also with
delayed and reordered stores, as `release` allows.

Waiting is spinning, first with the processor's pause instruction and then with sched_yield, so that the other thread
gets the core if there is only one. A worker without work for LINGER_NS leaves its loop and sleeps in Python.

handover_memory.py has the layout and the waiting, handover_caller.py the side of processor 0, handover_worker.py that
of the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.emit.cores import handover_caller, handover_worker
from bellcrank.emit.cores.handover_memory import LINE_BYTES, await_function, pause_hint


def definition(arrays: Sequence[str], workspace: tuple[str, str], sizes: Sequence[int], size: int, triple: str) -> str:
    """Return the protocol as LLVM IR.

    The module around it defines `@alone(arrays)` and, for each processor k, `@stream_k(ptr %ws, arrays, i64 %step)`.

    Parameters
    ----------
    arrays
        Names of the parameters.
    workspace
        Code that obtains, and code that releases, the caller's %ws.
    sizes
        Bytes of the workers' workspaces.
    size
        Bytes of @shared.
    triple
        Target triple.
    """
    declared, idle = pause_hint(triple)
    workers = range(1, len(sizes) + 1)
    return "\n".join(
        [
            f"@shared = global [{size} x i8] zeroinitializer, align {LINE_BYTES}",
            declared,
            "declare i32 @sched_yield()",
            "declare i32 @clock_gettime(i32, ptr)",
            handover_worker.clock_function("darwin" in triple),
            await_function(idle),
            handover_caller.revoke_idle_function(workers),
            handover_caller.finish_function(idle),
            handover_caller.parallel_step_function(arrays, workers, *workspace),
            handover_caller.exported_functions(arrays, workers),
            *(handover_worker.worker_loop(k, arrays, sizes[k - 1], idle) for k in workers),
        ]
    )


def send_instruction(flag: str) -> str:
    """Return the last instruction of a message, a store to `flag`; its values have been stored before."""
    return f"store atomic i64 %step, ptr {flag} release, align 8"


def await_instruction(flag: str, me: int) -> str:
    """Return the first instruction of the receiver `me`, which waits for `flag`."""
    return f"call void @await(ptr {flag}, i64 %step, i64 {me})"
