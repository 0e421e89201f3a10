"""How cores work together on one state: LLVM IR of the protocol around the streams of emit/streams.py.

All of it goes through `@shared`, some cache lines that the module owns. The caller's thread is processor 0; the others
are workers, each in a native loop `@worker_k`, which Python enters from a thread of its own (emit/crew.py).

    step       number of the state being computed, and after it the addresses of the arrays
    claim_k    what worker k does: 4 * step + AWAY, IDLE, WORKING or REVOKED
    done_k     the same, written when a step is done, and its status. A line of its own: callers look only at this one,
               so that claiming a step needs no traffic between the cores
    abort      number of a step that the caller has given up to compute it alone
    busy       whether a caller is in a step: a second one computes alone

A caller posts a step only if all workers are done with the last, and a worker touches a step only after it has changed
its claim from IDLE to WORKING by an atomic exchange. So a caller that waits in vain, because the other core is busy
with something else, can take the step back: by the same exchange, from IDLE to REVOKED, after which that worker will
not touch it. It then tells those who are WORKING by `abort` that no more messages will come (they finish with whatever
they have), waits for them and computes the state alone. Nothing is ever locked, and nobody waits long for a worker that
has not begun.

Waiting is spinning, at first with the processor's own pause and then with sched_yield, so that whoever is waited for
gets the core if there is only one. A worker that has nothing to do for LINGER leaves its loop and sleeps in Python.
"""

from __future__ import annotations

from collections.abc import Sequence

LINE = 128  # bytes that no two cores share: two cache lines, for processors fetch them in pairs
AWAY, IDLE, WORKING, REVOKED = range(4)
SPINS = 1000  # some ten microseconds
YIELD_EVERY = 128  # spins of a worker that has been idle for longer than that
LINGER = 5_000_000  # ns: a control loop of 1 kHz finds its workers awake

# Places in @shared, in lines; the arrays' addresses follow the step.
STEP, ABORT, BUSY, MODE, STOP, STATES = 0, 2, 3, 4, 5, 6
PATIENCE = 8  # in the line of MODE: spins and yields, beyond SPINS, before a step is taken back
TOGETHER, ALONE = 8, 16  # in the line of BUSY: how many states were computed how
STATUS = 8  # in the line of a worker


def messages_start(processors: int) -> int:
    return LINE * (STATES + 2 * processors)


def claim_at(k: int) -> int:
    return LINE * (STATES + 2 * k)


def done_at(k: int) -> int:
    return LINE * (STATES + 2 * k + 1)


def _at(offset: int) -> str:
    return f"getelementptr (i8, ptr @shared, i64 {offset})" if offset else "@shared"


def _pause(triple: str) -> tuple[str, str]:
    """(declaration, call) of what a processor likes to see in a loop that waits."""
    if triple.startswith("x86_64"):
        return "declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"
    if triple.startswith(("aarch64", "arm64")):
        return "declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"
    return "", ""


def definition(arrays: Sequence[str], workspace: tuple[str, str], sizes: Sequence[int], size: int, triple: str) -> str:
    """`arrays` are the parameters; `workspace` the text that takes and gives back the caller's %ws; `sizes` the bytes
    of the workers' own; `size` that of @shared.

    The module around it defines `@alone(arrays)` and, for each processor k, `@stream_k(ptr %ws, arrays, i64 %step)`.
    """
    declared, pause = _pause(triple)
    workers = range(1, len(sizes) + 1)
    return "\n".join(
        [
            f"@shared = global [{size} x i8] zeroinitializer, align {LINE}",
            declared,
            "declare i32 @sched_yield()",
            "declare i32 @clock_gettime(i32, ptr)",
            _clock("darwin" in triple),
            _await(pause),
            _hurry(workers),
            _finish(pause),
            _together(arrays, workers, *workspace),
            _calls(arrays, workers),
            *(_worker(k, arrays, sizes[k - 1], pause) for k in workers),
        ]
    )


def _clock(darwin: bool) -> str:
    return f"""define internal i64 @clock() nounwind noinline {{
  %t = alloca [2 x i64]
  %r = call i32 @clock_gettime(i32 {6 if darwin else 1}, ptr %t)
  %s = load i64, ptr %t
  %n.at = getelementptr i64, ptr %t, i64 1
  %n = load i64, ptr %n.at
  %s.n = mul i64 %s, 1000000000
  %now = add i64 %s.n, %n
  ret i64 %now
}}"""


def _await(pause: str) -> str:
    """Returns when a message of this step is there, or when none will come. Only the caller (%me = 0) can give up."""
    return f"""define internal void @await(ptr %flag, i64 %step, i64 %me) nounwind noinline {{
  br label %look
look:
  %count = phi i64 [0, %0], [%count.next, %spin], [%count.next, %yield]
  %seen = load atomic i64, ptr %flag acquire, align 8
  %there = icmp eq i64 %seen, %step
  br i1 %there, label %done, label %wait
wait:
  %count.next = add i64 %count, 1
  %long = icmp ugt i64 %count, {SPINS}
  br i1 %long, label %slow, label %spin
spin:
  {pause}
  br label %look
slow:
  %abort = load atomic i64, ptr {_at(LINE * ABORT)} acquire, align 8
  %over = icmp eq i64 %abort, %step
  br i1 %over, label %done, label %ask
ask:
  %caller = icmp eq i64 %me, 0
  %patience = load atomic i64, ptr {_at(LINE * MODE + PATIENCE)} monotonic, align 8
  %spent = sub i64 %count, {SPINS}
  %enough = icmp ugt i64 %spent, %patience
  br i1 %caller, label %hurry, label %yield
hurry:
  call void @hurry(i64 %step, i1 %enough)
  br label %yield
yield:
  call i32 @sched_yield()
  br label %look
done:
  ret void
}}"""


def _hurry(workers: Sequence[int]) -> str:
    """Looks who has not begun. Who is away will not; from who is idle the step is taken back if we have waited enough.
    Then it will be computed alone.
    """
    lines = []
    for k in workers:
        place = _at(claim_at(k))
        lines.append(f"""  %v{k} = load atomic i64, ptr {place} acquire, align 8
  %tag{k} = and i64 %v{k}, 3
  %number{k} = and i64 %v{k}, -4
  %ours{k} = icmp eq i64 %number{k}, %mine
  %idle{k} = icmp eq i64 %tag{k}, {IDLE}
  %working{k} = icmp eq i64 %tag{k}, {WORKING}
  %held{k} = or i1 %idle{k}, %working{k}
  %begun{k} = and i1 %ours{k}, %held{k}
  br i1 %begun{k}, label %next{k}, label %absent{k}
absent{k}:
  br i1 %idle{k}, label %waiting{k}, label %abort{k}
waiting{k}:
  br i1 %enough, label %revoke{k}, label %next{k}
revoke{k}:
  %pair{k} = cmpxchg ptr {place}, i64 %v{k}, i64 %revoked acq_rel acquire, align 8
  %won{k} = extractvalue {{ i64, i1 }} %pair{k}, 1
  br i1 %won{k}, label %abort{k}, label %next{k}
abort{k}:
  store atomic i64 %step, ptr {_at(LINE * ABORT)} release, align 8
  br label %next{k}
next{k}:
""")
    return f"""define internal void @hurry(i64 %step, i1 %enough) nounwind noinline {{
  %mine = mul i64 %step, 4
  %revoked = or i64 %mine, {REVOKED}
{"".join(lines)}  ret void
}}"""


def _finish(pause: str) -> str:
    """Waits until a worker is done with this step, or will not touch it."""
    return f"""define internal void @finish(ptr %claim, ptr %done, i64 %step) nounwind noinline {{
  %mine = mul i64 %step, 4
  %idle = or i64 %mine, {IDLE}
  br label %look
look:
  %count = phi i64 [0, %0], [%count.next, %spin], [%count.next, %yield]
  %seen = load atomic i64, ptr %done acquire, align 8
  %there = icmp eq i64 %seen, %idle
  br i1 %there, label %end, label %wait
wait:
  %count.next = add i64 %count, 1
  %long = icmp ugt i64 %count, {SPINS}
  br i1 %long, label %slow, label %spin
spin:
  {pause}
  br label %look
slow:
  %patience = load atomic i64, ptr {_at(LINE * MODE + PATIENCE)} monotonic, align 8
  %spent = sub i64 %count, {SPINS}
  %enough = icmp ugt i64 %spent, %patience
  call void @hurry(i64 %step, i1 %enough)
  %abort = load atomic i64, ptr {_at(LINE * ABORT)} acquire, align 8
  %over = icmp eq i64 %abort, %step
  br i1 %over, label %ask, label %yield
ask:
  %claimed = load atomic i64, ptr %claim acquire, align 8
  %tag = and i64 %claimed, 3
  %number = and i64 %claimed, -4
  %ours = icmp eq i64 %number, %mine
  %held.0 = icmp eq i64 %tag, {IDLE}
  %held.1 = icmp eq i64 %tag, {WORKING}
  %held.2 = or i1 %held.0, %held.1
  %begun = and i1 %ours, %held.2
  br i1 %begun, label %yield, label %end
yield:
  call i32 @sched_yield()
  br label %look
end:
  ret void
}}"""


def _together(arrays: Sequence[str], workers: Sequence[int], take: str, give: str) -> str:
    """A step of all processors: its status, or -1 where it has to be computed alone."""
    args = ", ".join(f"ptr %{a}" for a in arrays)
    ready = "".join(
        f"""  %v{k} = load atomic i64, ptr {_at(done_at(k))} acquire, align 8
  %idle{k} = icmp eq i64 %v{k}, %before.idle
  %all{k} = and i1 %all{k - 1}, %idle{k}
"""
        for k in workers
    )
    post = "".join(f"  store ptr %{a}, ptr {_at(8 + 8 * i)}, align 8\n" for i, a in enumerate(arrays))
    wait = "".join(f"  call void @finish(ptr {_at(claim_at(k))}, ptr {_at(done_at(k))}, i64 %step)\n" for k in workers)
    gather = "".join(
        f"  %bad{k} = load i64, ptr {_at(done_at(k) + STATUS)}, align 8\n  %s{k} = or i64 %s{k - 1}, %bad{k}\n"
        for k in workers
    )
    return f"""define internal i64 @together({args}) nounwind noinline {{
  %all0 = icmp eq i64 0, 0
  %before = load i64, ptr {_at(STEP)}, align 8
  %before.4 = mul i64 %before, 4
  %before.idle = or i64 %before.4, {IDLE}
{ready}  br i1 %all{workers[-1]}, label %go, label %no
go:
{take}  %step = add i64 %before, 1
{post}  store atomic i64 %step, ptr {_at(STEP)} release, align 8
  %s0 = call i64 @stream_0(ptr %ws, {args}, i64 %step)
{give}{wait}  %abort = load atomic i64, ptr {_at(LINE * ABORT)} acquire, align 8
  %over = icmp eq i64 %abort, %step
  br i1 %over, label %no, label %yes
yes:
{gather}  ret i64 %s{workers[-1]}
no:
  ret i64 -1
}}"""


def _counted(place: int, name: str) -> str:
    return f"  %{name}.n = atomicrmw add ptr {_at(LINE * BUSY + place)}, i64 1 monotonic\n"


def _calls(arrays: Sequence[str], workers: Sequence[int]) -> str:
    """`@anyway` is right whatever the workers do; `@one` and `@many` say 1 if Python should wake a worker first."""
    args = ", ".join(f"ptr %{a}" for a in arrays)
    strided = ", ".join(f"ptr %{a}, i64 %stride_{a}" for a in arrays)
    rows = "".join(
        f"  %o{i} = mul i64 %k, %stride_{a}\n  %p{i} = getelementptr i8, ptr %{a}, i64 %o{i}\n"
        for i, a in enumerate(arrays)
    )
    row = ", ".join(f"ptr %p{i}" for i in range(len(arrays)))
    away = "".join(
        f"""  %v{k} = load atomic i64, ptr {_at(done_at(k))} monotonic, align 8
  %tag{k} = and i64 %v{k}, 3
  %is{k} = icmp eq i64 %tag{k}, {AWAY}
  %any{k} = or i1 %any{k - 1}, %is{k}
"""
        for k in workers
    )
    last = workers[-1]
    return f"""define internal i1 @someone_away() nounwind noinline {{
  %any0 = icmp ne i64 0, 0
{away}  %mode = load atomic i64, ptr {_at(LINE * MODE)} monotonic, align 8
  %team = icmp eq i64 %mode, 0
  %answer = and i1 %any{last}, %team
  ret i1 %answer
}}
define i64 @anyway({args}) nounwind {{
  %pair = cmpxchg ptr {_at(LINE * BUSY)}, i64 0, i64 1 acquire monotonic, align 8
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %try, label %alone
try:
  %status = call i64 @together({args})
  store atomic i64 0, ptr {_at(LINE * BUSY)} release, align 8
  %failed = icmp eq i64 %status, -1
  br i1 %failed, label %alone, label %done
done:
{_counted(TOGETHER, "together")}  ret i64 %status
alone:
{_counted(ALONE, "alone")}  %own = call i64 @alone({args})
  ret i64 %own
}}
define i64 @one({args}) nounwind {{
  %away = call i1 @someone_away()
  br i1 %away, label %wake, label %go
wake:
  ret i64 1
go:
  %status = call i64 @anyway({args})
  ret i64 %status
}}
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
define i64 @many(i64 %n, {strided}) nounwind {{
  %away = call i1 @someone_away()
  br i1 %away, label %wake, label %go
wake:
  ret i64 1
go:
  %status = call i64 @rows(i64 %n, {strided})
  ret i64 %status
}}"""


def _worker(k: int, arrays: Sequence[str], size: int, pause: str) -> str:
    """The native loop of a worker. It returns when there was nothing to do for long, or when it is told to stop."""
    claim, done = _at(claim_at(k)), _at(done_at(k))
    take = "".join(f"  %{a} = load ptr, ptr {_at(8 + 8 * i)}, align 8\n" for i, a in enumerate(arrays))
    args = ", ".join(f"ptr %{a}" for a in arrays)
    return f"""define void @worker_{k}() nounwind {{
  %raw = call ptr @malloc(i64 {size + 64})
  %raw.int = ptrtoint ptr %raw to i64
  %raw.up = add i64 %raw.int, 63
  %raw.on = and i64 %raw.up, -64
  %ws = inttoptr i64 %raw.on to ptr
  %first = load atomic i64, ptr {_at(STEP)} acquire, align 8
  %first.4 = mul i64 %first, 4
  %first.idle = or i64 %first.4, {IDLE}
  store atomic i64 %first.idle, ptr {claim} release, align 8
  store atomic i64 %first.idle, ptr {done} release, align 8
  br label %begin
begin:
  %last = phi i64 [%first, %0], [%step, %skip], [%step, %work]
  %last.4 = mul i64 %last, 4
  %last.idle = or i64 %last.4, {IDLE}
  br label %look
look:
  %count = phi i64 [0, %begin], [%count.next, %spin], [{SPINS - YIELD_EVERY}, %yield]
  %since = phi i64 [0, %begin], [%since, %spin], [%since.next, %yield]
  %step = load atomic i64, ptr {_at(STEP)} acquire, align 8
  %same = icmp eq i64 %step, %last
  br i1 %same, label %wait, label %claim
wait:
  %count.next = add i64 %count, 1
  %long = icmp ugt i64 %count, {SPINS}
  br i1 %long, label %slow, label %spin
spin:
  {pause}
  br label %look
slow:
  %stop = load atomic i64, ptr {_at(LINE * STOP)} monotonic, align 8
  %stopped = icmp ne i64 %stop, 0
  br i1 %stopped, label %leave, label %time
time:
  %now = call i64 @clock()
  %unset = icmp eq i64 %since, 0
  %since.next = select i1 %unset, i64 %now, i64 %since
  %idle.for = sub i64 %now, %since.next
  %enough = icmp ugt i64 %idle.for, {LINGER}
  br i1 %enough, label %leave, label %yield
yield:
  call i32 @sched_yield()
  br label %look
claim:
  %step.4 = mul i64 %step, 4
  %step.working = or i64 %step.4, {WORKING}
  %step.idle = or i64 %step.4, {IDLE}
  %pair = cmpxchg ptr {claim}, i64 %last.idle, i64 %step.working acq_rel acquire, align 8
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %work, label %skip
skip:
  store atomic i64 %step.idle, ptr {claim} release, align 8
  store atomic i64 %step.idle, ptr {done} release, align 8
  br label %begin
work:
{take}  %status = call i64 @stream_{k}(ptr %ws, {args}, i64 %step)
  store i64 %status, ptr {_at(done_at(k) + STATUS)}, align 8
  store atomic i64 %step.idle, ptr {claim} release, align 8
  store atomic i64 %step.idle, ptr {done} release, align 8
  br label %begin
leave:
  %gone = or i64 %last.4, {AWAY}
  store atomic i64 %gone, ptr {claim} release, align 8
  store atomic i64 %gone, ptr {done} release, align 8
  call void @free(ptr %raw)
  ret void
}}"""
