"""How cores work together on one state: LLVM IR of the protocol around the streams of emit/cores/streams.py.

All of it goes through `@shared`, some cache lines that the module owns. The caller's thread is processor 0; the others
are workers, each in a native loop `@worker_k`, which Python enters from a thread of its own (emit/cores/crew.py).

    step       number of the state being computed, and after it the addresses of the arrays
    claim_k    what worker k does: 4 * step + AWAY, IDLE, WORKING or REVOKED
    done_k     the same, written when a step is done, and its status. A line of its own: callers look only at this one,
               so that claiming a step needs no traffic between the cores
    abort      number of a step that the caller has given up to compute it alone
    busy       whether a caller is in a step: a second one computes alone, and a worker that comes waits outside

A caller posts a step only if all workers are done with the last, and a worker touches a step only after it has changed
its claim from IDLE to WORKING by an atomic exchange. So a caller that waits in vain, because the other core is busy
with something else, can take the step back: by the same exchange, from IDLE to REVOKED, after which that worker will
not touch it. It then tells those who are WORKING by `abort` that no more messages will come (they finish with whatever
they have), waits for them, takes the step back from all who are still IDLE and computes the state alone. Nobody waits
long for a worker that has not begun.

tests/targets/test_handover.py runs this text in every order that there is, for two and three processors, and for two
also with stores that others see as late, and in any order, as `release` allows.

Waiting is spinning, at first with the processor's own pause and then with sched_yield, so that whoever is waited for
gets the core if there is only one. A worker that has nothing to do for LINGER leaves its loop and sleeps in Python.

shared.py has the places and the waiting, caller.py the side of processor 0, worker.py that of the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.emit.cores import caller, worker
from bellcrank.emit.cores.protocol import LINE, pause, waiting


def definition(arrays: Sequence[str], workspace: tuple[str, str], sizes: Sequence[int], size: int, triple: str) -> str:
    """`arrays` are the parameters; `workspace` the text that takes and gives back the caller's %ws; `sizes` the bytes
    of the workers' own; `size` that of @shared.

    The module around it defines `@alone(arrays)` and, for each processor k, `@stream_k(ptr %ws, arrays, i64 %step)`.
    """
    declared, idle = pause(triple)
    workers = range(1, len(sizes) + 1)
    return "\n".join(
        [
            f"@shared = global [{size} x i8] zeroinitializer, align {LINE}",
            declared,
            "declare i32 @sched_yield()",
            "declare i32 @clock_gettime(i32, ptr)",
            worker.clock("darwin" in triple),
            waiting(idle),
            caller.hurry(workers),
            caller.finish(idle),
            caller.together(arrays, workers, *workspace),
            caller.calls(arrays, workers),
            *(worker.loop(k, arrays, sizes[k - 1], idle) for k in workers),
        ]
    )


def sent(flag: str) -> str:
    """The last instruction of a message, whose values lie there already."""
    return f"store atomic i64 %step, ptr {flag} release, align 8"


def awaited(flag: str, me: int) -> str:
    """The first instruction of who receives it."""
    return f"call void @await(ptr {flag}, i64 %step, i64 {me})"
