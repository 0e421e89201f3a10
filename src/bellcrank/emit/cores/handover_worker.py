"""Worker's side of the handover protocol (handover.py), and what both sides share: layout of the memory, and waiting.

A worker waits for a step, claims it, computes a part, and goes to sleep when none comes. The rest of this file are
offsets in `@shared`, spinning and aborting.
"""

from __future__ import annotations

from collections.abc import Sequence

LINE_BYTES = 128  # bytes of two cache lines, which processors prefetch in pairs; prevents false sharing
AWAY, IDLE, WORKING, REVOKED = range(4)
MAX_SPINS = 1000  # about ten microseconds
YIELD_EVERY = 128  # spins between two yields of a worker that has been idle for longer than MAX_SPINS
LINGER_NS = 5_000_000  # ns of idle time before a worker sleeps: a control loop of 1 kHz finds its workers awake

# Offsets in @shared, in lines; the arrays' addresses follow the step.
STEP_LINE, ABORT_LINE, BUSY_LINE, MODE_LINE, STOP_LINE, WORKER_LINES = 0, 2, 3, 4, 5, 6
WAIT_LIMIT_OFFSET = 8  # in the line of MODE_LINE: spins and yields, beyond MAX_SPINS, before a step is revoked
TOGETHER_OFFSET, ALONE_OFFSET = 8, 16  # in the line of BUSY_LINE: counters of states computed together and alone
STATUS_OFFSET = 8  # in the line of a worker's completion word


def messages_start(processors: int) -> int:
    """Return the offset of the first message, behind the lines of all `processors`."""
    return LINE_BYTES * (WORKER_LINES + 2 * processors)


def claim_offset(k: int) -> int:
    """Return the offset of the claim of worker `k`."""
    return LINE_BYTES * (WORKER_LINES + 2 * k)


def done_offset(k: int) -> int:
    """Return the offset of the completion word of worker `k`."""
    return LINE_BYTES * (WORKER_LINES + 2 * k + 1)


def shared_address(offset: int) -> str:
    """Return the address at `offset` in @shared, as an LLVM constant."""
    return f"getelementptr (i8, ptr @shared, i64 {offset})" if offset else "@shared"


def pause_hint(triple: str) -> tuple[str, str]:
    """Return declaration and call of the spin-wait hint of the processor in `triple`."""
    if triple.startswith("x86_64"):
        return "declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"
    if triple.startswith(("aarch64", "arm64")):
        return "declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"
    return "", ""


def polling_blocks(flag: str, wanted: str, target_label: str, pause: str) -> str:
    """Return the blocks look, wait and spin, which poll a word.

    Once it has the expected value, control goes to `target_label`; after MAX_SPINS to the label slow, with the
    number of polls in %count. Control may come back to look only from a block named yield.

    Parameters
    ----------
    flag
        Address of the word.
    wanted
        Expected value.
    target_label
        Label to go on to.
    pause
        Spin-wait hint.
    """
    return f"""look:
  %count = phi i64 [0, %0], [%count.next, %spin], [%count.next, %yield]
  %seen = load atomic i64, ptr {flag} acquire, align 8
  %there = icmp eq i64 %seen, {wanted}
  br i1 %there, label %{target_label}, label %wait
wait:
  %count.next = add i64 %count, 1
  %long = icmp ugt i64 %count, {MAX_SPINS}
  br i1 %long, label %slow, label %spin
spin:
  {pause}
  br label %look
"""


def wait_limit_code() -> str:
    """Return code for %enough: the word was polled as often as the caller's patience allows."""
    address = shared_address(LINE_BYTES * MODE_LINE + WAIT_LIMIT_OFFSET)
    return f"""  %patience = load atomic i64, ptr {address} monotonic, align 8
  %spent = sub i64 %count, {MAX_SPINS}
  %enough = icmp ugt i64 %spent, %patience
"""


def aborted_code() -> str:
    """Return code for %over: the step was aborted."""
    return f"""  %abort = load atomic i64, ptr {shared_address(LINE_BYTES * ABORT_LINE)} acquire, align 8
  %over = icmp eq i64 %abort, %step
"""


def await_function(pause: str) -> str:
    """Return @await, with the spin-wait hint `pause`: it waits for a message of this step, or until none will come.

    Only the caller (%me = 0) can abort.
    """
    return f"""define internal void @await(ptr %flag, i64 %step, i64 %me) nounwind noinline {{
  br label %look
{polling_blocks("%flag", "%step", "done", pause)}slow:
{aborted_code()}  br i1 %over, label %done, label %ask
ask:
  %caller = icmp eq i64 %me, 0
{wait_limit_code()}  br i1 %caller, label %hurry, label %yield
hurry:
  call void @hurry(i64 %step, i1 %enough)
  br label %yield
yield:
  call i32 @sched_yield()
  br label %look
done:
  ret void
}}"""


def worker_loop(k: int, arrays: Sequence[str], size: int, pause: str, linger: int = LINGER_NS) -> str:
    """Return the native loop @worker_k, which returns after a long idle time or when it must stop.

    It enters while it holds BUSY_LINE, when no step is in progress: an idle worker with the number of a step that
    others are computing would look as if it had completed it.

    Parameters
    ----------
    k
        Number of the worker.
    arrays
        Names of the parameters.
    size
        Bytes of its workspace.
    pause
        Spin-wait hint.
    linger
        ns of idle time before it returns.
    """
    claim, done = shared_address(claim_offset(k)), shared_address(done_offset(k))
    take = "".join(f"  %{a} = load ptr, ptr {shared_address(8 + 8 * i)}, align 8\n" for i, a in enumerate(arrays))
    args = ", ".join(f"ptr %{a}" for a in arrays)
    return f"""define void @worker_{k}() nounwind {{
  %raw = call ptr @malloc(i64 {size + 64})
  %raw.int = ptrtoint ptr %raw to i64
  %raw.up = add i64 %raw.int, 63
  %raw.on = and i64 %raw.up, -64
  %ws = inttoptr i64 %raw.on to ptr
  br label %enter
enter:
  %taken = cmpxchg ptr {shared_address(LINE_BYTES * BUSY_LINE)}, i64 0, i64 1 acquire monotonic, align 8
  %free = extractvalue {{ i64, i1 }} %taken, 1
  br i1 %free, label %in, label %outside
outside:
  %unwanted = load atomic i64, ptr {shared_address(LINE_BYTES * STOP_LINE)} monotonic, align 8
  %turned = icmp ne i64 %unwanted, 0
  br i1 %turned, label %out, label %later
later:
  call i32 @sched_yield()
  br label %enter
in:
  %first = load atomic i64, ptr {shared_address(STEP_LINE)} acquire, align 8
  %first.4 = mul i64 %first, 4
  %first.idle = or i64 %first.4, {IDLE}
  store atomic i64 %first.idle, ptr {claim} release, align 8
  store atomic i64 %first.idle, ptr {done} release, align 8
  store atomic i64 0, ptr {shared_address(LINE_BYTES * BUSY_LINE)} release, align 8
  br label %begin
begin:
  %last = phi i64 [%first, %in], [%step, %skip], [%step, %work]
  %last.4 = mul i64 %last, 4
  %last.idle = or i64 %last.4, {IDLE}
  br label %look
look:
  %count = phi i64 [0, %begin], [%count.next, %spin], [{MAX_SPINS - YIELD_EVERY}, %yield]
  %since = phi i64 [0, %begin], [%since, %spin], [%since.next, %yield]
  %step = load atomic i64, ptr {shared_address(STEP_LINE)} acquire, align 8
  %same = icmp eq i64 %step, %last
  br i1 %same, label %wait, label %claim
wait:
  %count.next = add i64 %count, 1
  %long = icmp ugt i64 %count, {MAX_SPINS}
  br i1 %long, label %slow, label %spin
spin:
  {pause}
  br label %look
slow:
  %stop = load atomic i64, ptr {shared_address(LINE_BYTES * STOP_LINE)} monotonic, align 8
  %stopped = icmp ne i64 %stop, 0
  br i1 %stopped, label %leave, label %time
time:
  %now = call i64 @clock()
  %unset = icmp eq i64 %since, 0
  %since.next = select i1 %unset, i64 %now, i64 %since
  %idle.for = sub i64 %now, %since.next
  %enough = icmp ugt i64 %idle.for, {linger}
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
  store i64 %status, ptr {shared_address(done_offset(k) + STATUS_OFFSET)}, align 8
  store atomic i64 %step.idle, ptr {claim} release, align 8
  store atomic i64 %step.idle, ptr {done} release, align 8
  br label %begin
leave:
  %gone = or i64 %last.4, {AWAY}
  store atomic i64 %gone, ptr {claim} release, align 8
  store atomic i64 %gone, ptr {done} release, align 8
  br label %out
out:
  call void @free(ptr %raw)
  ret void
}}"""
