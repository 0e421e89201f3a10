"""What the cores of one state share, and how one waits for another: places in `@shared`, spinning, giving up.

handover.py says what all of it is for.
"""

from __future__ import annotations

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


def at(offset: int) -> str:
    return f"getelementptr (i8, ptr @shared, i64 {offset})" if offset else "@shared"


def pause(triple: str) -> tuple[str, str]:
    """(declaration, call) of what a processor likes to see in a loop that waits."""
    if triple.startswith("x86_64"):
        return "declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"
    if triple.startswith(("aarch64", "arm64")):
        return "declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"
    return "", ""


def looking(flag: str, wanted: str, there: str, pause: str) -> str:
    """Blocks look, wait and spin: until the word at `flag` is `wanted`, then on to label `there`; after SPINS to label
    slow, with how often it was looked at in %count. What comes back to look comes from block yield.
    """
    return f"""look:
  %count = phi i64 [0, %0], [%count.next, %spin], [%count.next, %yield]
  %seen = load atomic i64, ptr {flag} acquire, align 8
  %there = icmp eq i64 %seen, {wanted}
  br i1 %there, label %{there}, label %wait
wait:
  %count.next = add i64 %count, 1
  %long = icmp ugt i64 %count, {SPINS}
  br i1 %long, label %slow, label %spin
spin:
  {pause}
  br label %look
"""


def patience() -> str:
    """%enough: whether that was looked at as often as the caller has patience for."""
    return f"""  %patience = load atomic i64, ptr {at(LINE * MODE + PATIENCE)} monotonic, align 8
  %spent = sub i64 %count, {SPINS}
  %enough = icmp ugt i64 %spent, %patience
"""


def aborted() -> str:
    """%over: whether the step was given up."""
    return f"""  %abort = load atomic i64, ptr {at(LINE * ABORT)} acquire, align 8
  %over = icmp eq i64 %abort, %step
"""


def waiting(pause: str) -> str:
    """@await returns when a message of this step is there, or when none will come. Only the caller (%me = 0) can give
    up.
    """
    return f"""define internal void @await(ptr %flag, i64 %step, i64 %me) nounwind noinline {{
  br label %look
{looking("%flag", "%step", "done", pause)}slow:
{aborted()}  br i1 %over, label %done, label %ask
ask:
  %caller = icmp eq i64 %me, 0
{patience()}  br i1 %caller, label %hurry, label %yield
hurry:
  call void @hurry(i64 %step, i1 %enough)
  br label %yield
yield:
  call i32 @sched_yield()
  br label %look
done:
  ret void
}}"""
