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

This file has the side of processor 0, handover_worker.py that of the others, the layout of the memory and the waiting.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.emit.cores.handover_worker import (
    ABORT_LINE,
    ALONE_OFFSET,
    AWAY,
    BUSY_LINE,
    IDLE,
    LINE_BYTES,
    LINGER_NS,
    MODE_LINE,
    REVOKED,
    STATUS_OFFSET,
    STEP_LINE,
    TOGETHER_OFFSET,
    WORKING,
    aborted_code,
    await_function,
    claim_offset,
    done_offset,
    pause_hint,
    polling_blocks,
    shared_address,
    wait_limit_code,
    worker_loop,
)  # fmt: skip
from bellcrank.emit.llvm.subroutines import clock_function


def definition(
    arrays: Sequence[str],
    workspace: tuple[str, str],
    sizes: Sequence[int],
    size: int,
    triple: str,
    linger: int = LINGER_NS,
) -> str:
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
    linger
        ns of idle time before a worker sleeps.
    """
    declared, idle = pause_hint(triple)
    workers = range(1, len(sizes) + 1)
    return "\n".join(
        [
            f"@shared = global [{size} x i8] zeroinitializer, align {LINE_BYTES}",
            declared,
            "declare i32 @sched_yield()",
            "declare i32 @clock_gettime(i32, ptr)",
            clock_function("internal i64 @clock() nounwind noinline", 6 if "darwin" in triple else 1),
            await_function(idle),
            revoke_idle_function(workers),
            finish_function(idle),
            parallel_step_function(arrays, workers, *workspace),
            exported_functions(arrays, workers),
            *(worker_loop(k, arrays, sizes[k - 1], idle, linger) for k in workers),
        ]
    )


def send_instruction(flag: str) -> str:
    """Return the last instruction of a message, a store to `flag`; its values have been stored before."""
    return f"store atomic i64 %step, ptr {flag} release, align 8"


def await_instruction(flag: str, me: int) -> str:
    """Return the first instruction of the receiver `me`, which waits for `flag`."""
    return f"call void @await(ptr {flag}, i64 %step, i64 {me})"


def _begun_code(claim: str, k: str) -> str:
    """Return code for %begun: the worker with that claim works on this step, or has completed it."""
    return f"""  %v{k} = load atomic i64, ptr {claim} acquire, align 8
  %tag{k} = and i64 %v{k}, 3
  %number{k} = and i64 %v{k}, -4
  %ours{k} = icmp eq i64 %number{k}, %mine
  %idle{k} = icmp eq i64 %tag{k}, {IDLE}
  %working{k} = icmp eq i64 %tag{k}, {WORKING}
  %held{k} = or i1 %idle{k}, %working{k}
  %begun{k} = and i1 %ours{k}, %held{k}
"""


def revoke_idle_function(workers: Sequence[int]) -> str:
    """Return @hurry, which checks for `workers` that have not begun a step.

    A worker that is away will not begin; from an idle one the step is revoked if the caller has waited long enough. In
    both cases the step is aborted, and the caller computes it alone.
    """
    lines = []
    for k in workers:
        place = shared_address(claim_offset(k))
        lines.append(f"""{_begun_code(place, str(k))}  br i1 %begun{k}, label %next{k}, label %absent{k}
absent{k}:
  br i1 %idle{k}, label %waiting{k}, label %abort{k}
waiting{k}:
  br i1 %enough, label %revoke{k}, label %next{k}
revoke{k}:
  %pair{k} = cmpxchg ptr {place}, i64 %v{k}, i64 %revoked acq_rel acquire, align 8
  %won{k} = extractvalue {{ i64, i1 }} %pair{k}, 1
  br i1 %won{k}, label %abort{k}, label %next{k}
abort{k}:
  store atomic i64 %step, ptr {shared_address(LINE_BYTES * ABORT_LINE)} release, align 8
  br label %next{k}
next{k}:
""")
    return f"""define internal void @hurry(i64 %step, i1 %enough) nounwind noinline {{
  %mine = mul i64 %step, 4
  %revoked = or i64 %mine, {REVOKED}
{"".join(lines)}  ret void
}}"""


def finish_function(pause: str) -> str:
    """Return @finish: wait until a worker has completed a step or can no longer begin it; `pause` is the spin hint.

    A step that was aborted is revoked from workers that are still idle. (A worker that is away returns only when no
    step is in progress.)
    """
    return f"""define internal void @finish(ptr %claim, ptr %done, i64 %step) nounwind noinline {{
  %mine = mul i64 %step, 4
  %idle.step = or i64 %mine, {IDLE}
  %revoked = or i64 %mine, {REVOKED}
  br label %look
{polling_blocks("%done", "%idle.step", "end", pause)}slow:
{wait_limit_code()}  call void @hurry(i64 %step, i1 %enough)
{aborted_code()}  br i1 %over, label %ask, label %yield
ask:
{_begun_code("%claim", "")}  br i1 %begun, label %yield, label %absent
absent:
  br i1 %idle, label %revoke, label %end
revoke:
  %pair = cmpxchg ptr %claim, i64 %v, i64 %revoked acq_rel acquire, align 8
  %won = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %won, label %end, label %yield
yield:
  call i32 @sched_yield()
  br label %look
end:
  ret void
}}"""


def parallel_step_function(arrays: Sequence[str], workers: Sequence[int], take: str, give: str) -> str:
    """Return @together, a step of all processors, which returns the status, or -1 if it must be computed alone.

    Parameters
    ----------
    arrays
        Names of the parameters.
    workers
        Numbers of the workers.
    take
        Code that obtains the caller's workspace.
    give
        Code that releases it.
    """
    args = ", ".join(f"ptr %{a}" for a in arrays)
    ready = "".join(
        f"""  %v{k} = load atomic i64, ptr {shared_address(done_offset(k))} acquire, align 8
  %idle{k} = icmp eq i64 %v{k}, %before.idle
  %all{k} = and i1 %all{k - 1}, %idle{k}
"""
        for k in workers
    )
    post = "".join(f"  store ptr %{a}, ptr {shared_address(8 + 8 * i)}, align 8\n" for i, a in enumerate(arrays))
    wait = "".join(
        f"  call void @finish(ptr {shared_address(claim_offset(k))}, ptr {shared_address(done_offset(k))}, i64 %step)\n"
        for k in workers
    )
    gather = "".join(
        f"  %bad{k} = load i64, ptr {shared_address(done_offset(k) + STATUS_OFFSET)}, align 8\n"
        f"  %s{k} = or i64 %s{k - 1}, %bad{k}\n"
        for k in workers
    )
    return f"""define internal i64 @together({args}) nounwind noinline {{
  %all0 = icmp eq i64 0, 0
  %before = load i64, ptr {shared_address(STEP_LINE)}, align 8
  %before.4 = mul i64 %before, 4
  %before.idle = or i64 %before.4, {IDLE}
{ready}  br i1 %all{workers[-1]}, label %go, label %no
go:
{take}  %step = add i64 %before, 1
{post}  store atomic i64 %step, ptr {shared_address(STEP_LINE)} release, align 8
  %s0 = call i64 @stream_0(ptr %ws, {args}, i64 %step)
{give}{wait}{aborted_code()}  br i1 %over, label %no, label %yes
yes:
{gather}  ret i64 %s{workers[-1]}
no:
  ret i64 -1
}}"""


def _count_code(place: int, name: str) -> str:
    return f"  %{name}.n = atomicrmw add ptr {shared_address(LINE_BYTES * BUSY_LINE + place)}, i64 1 monotonic\n"


def _unless_away(name: str, function: str, parameters: str) -> str:
    """Return the function `name`, which calls another `function` unless a worker must be woken first."""
    return f"""define i64 @{name}({parameters}) nounwind {{
  %away = call i1 @someone_away()
  br i1 %away, label %wake, label %go
wake:
  ret i64 1
go:
  %status = call i64 @{function}({parameters})
  ret i64 %status
}}"""


def exported_functions(arrays: Sequence[str], workers: Sequence[int]) -> str:
    """Return the exported functions, with the parameters `arrays`, for the processors `workers`.

    `@anyway` is correct regardless of the workers' state; `@one` and `@many` return 1 if Python should wake a worker
    first.
    """
    args = ", ".join(f"ptr %{a}" for a in arrays)
    strided = ", ".join(f"ptr %{a}, i64 %stride_{a}" for a in arrays)
    rows = "".join(
        f"  %o{i} = mul i64 %k, %stride_{a}\n  %p{i} = getelementptr i8, ptr %{a}, i64 %o{i}\n"
        for i, a in enumerate(arrays)
    )
    row = ", ".join(f"ptr %p{i}" for i in range(len(arrays)))
    away = "".join(
        f"""  %v{k} = load atomic i64, ptr {shared_address(done_offset(k))} monotonic, align 8
  %tag{k} = and i64 %v{k}, 3
  %is{k} = icmp eq i64 %tag{k}, {AWAY}
  %any{k} = or i1 %any{k - 1}, %is{k}
"""
        for k in workers
    )
    last = workers[-1]
    return f"""define internal i1 @someone_away() nounwind noinline {{
  %any0 = icmp ne i64 0, 0
{away}  %mode = load atomic i64, ptr {shared_address(LINE_BYTES * MODE_LINE)} monotonic, align 8
  %team = icmp eq i64 %mode, 0
  %answer = and i1 %any{last}, %team
  ret i1 %answer
}}
define i64 @anyway({args}) nounwind {{
  %pair = cmpxchg ptr {shared_address(LINE_BYTES * BUSY_LINE)}, i64 0, i64 1 acquire monotonic, align 8
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %try, label %alone
try:
  %status = call i64 @together({args})
  store atomic i64 0, ptr {shared_address(LINE_BYTES * BUSY_LINE)} release, align 8
  %failed = icmp eq i64 %status, -1
  br i1 %failed, label %alone, label %done
done:
{_count_code(TOGETHER_OFFSET, "together")}  ret i64 %status
alone:
{_count_code(ALONE_OFFSET, "alone")}  %own = call i64 @alone({args})
  ret i64 %own
}}
{_unless_away("one", "anyway", args)}
define i64 @rows(i64 %n, {strided}) nounwind {{
  %none = icmp eq i64 %n, 0
  br i1 %none, label %end, label %loop
loop:
  %k = phi i64 [0, %0], [%k.next, %loop]
  %seen = phi i64 [0, %0], [%status, %loop]
{rows}  %bad = call i64 @anyway({row})
  %status = or i64 %seen, %bad
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %n
  br i1 %more, label %loop, label %end
end:
  %result = phi i64 [0, %0], [%status, %loop]
  ret i64 %result
}}
{_unless_away("many", "rows", f"i64 %n, {strided}")}"""
