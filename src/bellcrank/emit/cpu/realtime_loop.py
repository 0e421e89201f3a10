"""LLVM IR of the real-time loop: wait, read the newest input, tick (subroutines.py), publish, record. No allocation.

    i64 @drive(ptr block)        returns when requested to stop (STOPPED), or when the lane is not live (HALTED)

`block` is an array of 8-byte words (BLOCK_WORDS): flags and counters, and pointers to memory shared with the rest of
the process. Inputs come through a mailbox and states are published in a window. Both are sequence locks: a counter,
which is odd during a write, and the data it protects, so that the newest data wins and no side waits. Rows go into a
ring buffer that another thread empties; a full ring loses rows, and counts them. The clock is three functions given in
the block, so that tests can supply their own; @real_now, @real_sleep and @real_own (the CPU time of the thread) are the
computer's.

Times are in nanoseconds. Histograms have eight bins for each power of two (`bin_edges`).
"""

from __future__ import annotations

import numpy as np

from bellcrank.emit.llvm import sincos
from bellcrank.emit.llvm.lanes import Writer, indented
from bellcrank.emit.llvm.subroutines import COPY_FUNCTION, begin_function, clock_function, tick_routines
from bellcrank.graph import Program
from bellcrank.quoting import comment

HISTOGRAM_BINS = 512
KEPT_EVENTS = 256  # newest overruns whose details are kept
KEPT_PERIODS = 8192  # newest periods: time of waking, delay, duration, and CPU time of the thread

BLOCK_WORDS = (
    *("stop", "pause", "period", "ticks", "most", "spin", "now", "sleep", "own", "clock"),
    *("state", "spare", "p", "u", "ws", "mailbox", "seen", "window", "ring", "capacity", "head", "tail", "lost"),
    *("stride", "phase", "steps", "overruns", "skipped", "caught_up", "deadline", "log", "logged", "trace", "traced"),
    *("costs", "cost_least", "cost_most", "cost_sum", "delays", "delay_least", "delay_most", "delay_sum"),
    *("owns", "own_least", "own_most", "own_sum"),
)
WORD_INDEX = {name: k for k, name in enumerate(BLOCK_WORDS)}
STOPPED, HALTED = 0, 1


def bin_edges() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the lower ends of the bins and the end of the last.

    Bins 8 to 23 are empty, because each number below 8 has its own bin.
    """
    k = np.arange(HISTOGRAM_BINS + 1)
    octave, part = k // 8, k % 8
    return np.where(octave < 3, np.minimum(k, 8), np.ldexp(8.0 + part, octave - 3)).astype(float)


class BlockWriter(Writer):
    """Writer of one lane, with accesses to words of the block."""

    def let(self, text: str, prefix: str = "r") -> str:
        """Write the definition of a new value by `text`; return its name, which begins with `prefix`."""
        return super().let(text, prefix)

    def label(self, name: str) -> None:
        """Write the label `name`."""
        self.do(f"{name}:")

    def address(self, word: str) -> str:
        """Return the address of `word`."""
        return self.let(f"getelementptr i64, ptr %block, i64 {WORD_INDEX[word]}")

    def word(self, name: str) -> str:
        """Load the word `name`, which other threads write, with acquire ordering."""
        return self.let(f"load atomic i64, ptr {self.address(name)} acquire, align 8")

    def put(self, name: str, value: str) -> None:
        """Store `value` in the word `name` with release ordering."""
        self.do(f"store atomic i64 {value}, ptr {self.address(name)} release, align 8")

    def pointer(self, name: str) -> str:
        """Load the pointer in the word `name`."""
        return self.let(f"load ptr, ptr {self.address(name)}, align 8")

    def increment(self, name: str, amount: str = "1") -> None:
        """Add `amount` to the word `name`."""
        self.put(name, self.let(f"add i64 {self.word(name)}, {amount}"))

    def now(self, clock: str = "now") -> str:
        """Call the clock function in the word `clock`; return its result."""
        function = self.pointer(clock)
        return self.let(f"call i64 {function}(ptr {self.pointer('clock')})")

    def branch(self, condition: str, yes: str, no: str) -> None:
        """Branch to the label `yes` if `condition` is true, else to `no`."""
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")


def source(program: Program, trig_width: int) -> tuple[str, int]:
    """Return the module of `program` for one lane of float64, and the slots of the workspace.

    `trig_width` is the number of lanes of one vector of @sincos.
    """
    routines = tick_routines(program, 1, trig_width, "float64", {"start": program.start})
    parts = [
        f"; {comment(program.tick.name)} in real time",
        sincos.definition(trig_width, "float64"),
        routines.text,
        begin_function(program),
        CLOCK_FUNCTIONS,
        NOTE_FUNCTION,
        COPY_FUNCTION,
        _drive_function(program),
        "@writable = global i64 0",
    ]
    return "\n".join(parts), routines.slots


CLOCK_FUNCTIONS = f"""declare i32 @clock_gettime(i32, ptr)
declare i32 @clock_nanosleep(i32, i32, ptr, ptr)
{clock_function("i64 @real_now(ptr %clock) nounwind", 1)}
{clock_function("i64 @real_own(ptr %clock) nounwind", 3)}
define void @real_sleep(ptr %clock, i64 %until) nounwind {{
  %ts = alloca [2 x i64], align 8
  %s = sdiv i64 %until, 1000000000
  %n = srem i64 %until, 1000000000
  store i64 %s, ptr %ts, align 8
  %n.at = getelementptr i64, ptr %ts, i64 1
  store i64 %n, ptr %n.at, align 8
  %rc = call i32 @clock_nanosleep(i32 1, i32 1, ptr %ts, ptr null)
  ret void
}}"""

# Counts x in a histogram and updates the minimum, the maximum and the sum, which are the three words at `stats`.
NOTE_FUNCTION = """declare i64 @llvm.ctlz.i64(i64, i1)
define internal void @note(ptr %bins, ptr %stats, i64 %given) nounwind {
  %negative = icmp slt i64 %given, 0
  %x = select i1 %negative, i64 0, i64 %given
  %lz = call i64 @llvm.ctlz.i64(i64 %x, i1 false)
  %small = icmp ult i64 %x, 8
  %octave = sub i64 63, %lz
  %shift = sub i64 %octave, 3
  %safe = select i1 %small, i64 0, i64 %shift
  %top = lshr i64 %x, %safe
  %low = and i64 %top, 7
  %row = mul i64 %octave, 8
  %large = add i64 %row, %low
  %bin = select i1 %small, i64 %x, i64 %large
  %at = getelementptr i64, ptr %bins, i64 %bin
  %n = load i64, ptr %at, align 8
  %n1 = add i64 %n, 1
  store i64 %n1, ptr %at, align 8
  %least = load i64, ptr %stats, align 8
  %less = icmp slt i64 %x, %least
  %least1 = select i1 %less, i64 %x, i64 %least
  store i64 %least1, ptr %stats, align 8
  %most.at = getelementptr i64, ptr %stats, i64 1
  %most = load i64, ptr %most.at, align 8
  %more = icmp sgt i64 %x, %most
  %most1 = select i1 %more, i64 %x, i64 %most
  store i64 %most1, ptr %most.at, align 8
  %sum.at = getelementptr i64, ptr %stats, i64 2
  %sum = load i64, ptr %sum.at, align 8
  %sum1 = add i64 %sum, %x
  store i64 %sum1, ptr %sum.at, align 8
  ret void
}"""


def _drive_function(program: Program) -> str:
    t, size, nu, row = BlockWriter(1, "float64"), program.size, program.nu, program.row
    t.label("begin")
    t.put("deadline", t.let(f"add i64 {t.now()}, {t.word('period')}"))
    t.do("br label %wait")

    t.label("wait")
    t.branch(t.let(f"icmp ne i64 {t.word('stop')}, 0"), "stopped", "sleep")
    t.label("sleep")
    deadline = t.word("deadline")
    early = t.let(f"sub i64 {deadline}, {t.word('spin')}")
    sleep = t.pointer("sleep")
    t.do(f"call void {sleep}(ptr {t.pointer('clock')}, i64 {early})")
    t.do("br label %spin")
    t.label("spin")
    woken = t.now()
    t.branch(t.let(f"icmp slt i64 {woken}, {deadline}"), "spin", "awake")
    t.label("awake")
    t.branch(t.let(f"icmp ne i64 {t.word('pause')}, 0"), "idle", "read")
    t.label("idle")
    t.put("deadline", t.let(f"add i64 {woken}, {t.word('period')}"))
    t.do("br label %wait")

    t.label("read")
    cpu_time_before = t.now("own")
    delay = t.let(f"sub i64 {woken}, {deadline}")
    t.do(f"call void @note(ptr {t.pointer('delays')}, ptr {t.address('delay_least')}, i64 {delay})")
    if nu:
        _read_mailbox(t, program)
    else:
        t.do("br label %step")

    t.label("step")
    ticks, u = t.word("ticks"), t.pointer("u")
    state_before, free_state, p, ws = (t.pointer(x) for x in ("state", "spare", "p", "ws"))
    state = t.let(f"call ptr @go(i64 {ticks}, ptr {state_before}, ptr {free_state}, ptr {p}, ptr {u}, ptr {ws})")
    next_free_state = t.let(
        f"select i1 {t.let(f'icmp eq ptr {state}, {state_before}')}, ptr {free_state}, ptr {state_before}"
    )
    t.do(f"store ptr {state}, ptr {t.address('state')}, align 8")
    t.do(f"store ptr {next_free_state}, ptr {t.address('spare')}, align 8")
    window = t.pointer("window")
    seq = t.let(f"load atomic i64, ptr {window} monotonic, align 8")
    t.do(f"store atomic i64 {t.let(f'add i64 {seq}, 1')}, ptr {window} release, align 8")
    t.do("fence seq_cst")
    inside = t.let(f"getelementptr i64, ptr {window}, i64 1")
    t.do(f"call void @copy(ptr {inside}, ptr {state}, i64 {size})")
    after = t.let(f"getelementptr i64, ptr {window}, i64 {1 + size}")
    t.do(f"call void @copy(ptr {after}, ptr {u}, i64 {nu})")
    t.do(f"store atomic i64 {t.let(f'add i64 {seq}, 2')}, ptr {window} release, align 8")
    phase = t.let(f"add i64 {t.word('phase')}, 1")
    full = t.let(f"icmp uge i64 {phase}, {t.word('stride')}")
    t.put("phase", t.let(f"select i1 {full}, i64 0, i64 {phase}"))
    t.branch(full, "row", "account")

    t.label("row")
    head, tail, capacity = t.word("head"), t.word("tail"), t.word("capacity")
    used = t.let(f"sub i64 {head}, {tail}")
    t.branch(t.let(f"icmp ult i64 {used}, {capacity}"), "keep", "lose")
    t.label("lose")
    t.increment("lost")
    t.do("br label %account")
    t.label("keep")
    slot = t.let(f"urem i64 {head}, {capacity}")
    offset = t.let(f"mul i64 {slot}, {(row + nu) * 8}")
    to = t.let(f"getelementptr i8, ptr {t.pointer('ring')}, i64 {offset}")
    t.do(f"call void @copy(ptr {to}, ptr {state}, i64 {row})")
    input_address = t.let(f"getelementptr double, ptr {to}, i64 {row}")
    t.do(f"call void @copy(ptr {input_address}, ptr {u}, i64 {nu})")
    t.put("head", t.let(f"add i64 {head}, 1"))
    t.do("br label %account")

    t.label("account")
    t.increment("steps", ticks)
    cpu_time_spent = t.let(f"sub i64 {t.now('own')}, {cpu_time_before}")
    ended = t.now()
    cost = t.let(f"sub i64 {ended}, {woken}")
    t.do(f"call void @note(ptr {t.pointer('costs')}, ptr {t.address('cost_least')}, i64 {cost})")
    t.do(f"call void @note(ptr {t.pointer('owns')}, ptr {t.address('own_least')}, i64 {cpu_time_spent})")
    _append_ring_line(t, "trace", "traced", KEPT_PERIODS, (woken, delay, cost, cpu_time_spent))
    period = t.word("period")
    next_deadline = t.let(f"add i64 {deadline}, {period}")
    t.put("deadline", next_deadline)
    live = t.let(f"load double, ptr {t.let(f'getelementptr double, ptr {state}, i64 {program.live}')}, align 8")
    t.branch(t.let(f"fcmp ogt double {live}, 0.0"), "check", "halted")
    t.label("check")
    lateness = t.let(f"sub i64 {ended}, {next_deadline}")
    t.branch(t.let(f"icmp sgt i64 {lateness}, 0"), "overrun", "wait")

    t.label("overrun")
    t.increment("overruns")
    behind = t.let(f"sdiv i64 {lateness}, {period}")
    max_behind = t.word("most")
    excess = t.let(f"sub i64 {behind}, {max_behind}")
    any_excess = t.let(f"icmp sgt i64 {excess}, 0")
    skip = t.let(f"select i1 {any_excess}, i64 {excess}, i64 0")
    t.increment("skipped", skip)
    t.increment("caught_up", t.let(f"select i1 {any_excess}, i64 0, i64 1"))
    t.put("deadline", t.let(f"add i64 {next_deadline}, {t.let(f'mul i64 {skip}, {period}')}"))
    _append_ring_line(t, "log", "logged", KEPT_EVENTS, (t.word("steps"), delay, cost, skip))
    t.do("br label %wait")
    t.label("stopped")
    t.do(f"ret i64 {STOPPED}")
    t.label("halted")
    t.do(f"ret i64 {HALTED}")
    return f"define i64 @drive(ptr %block) nounwind {{\n{indented(t.lines)}}}"


def _append_ring_line(t: BlockWriter, lines: str, count: str, capacity: int, values: tuple[str, str, str, str]) -> None:
    """Write a line of four numbers into a ring of the newest `capacity` lines."""
    written = t.word(count)
    entry = t.let(f"mul i64 {t.let(f'urem i64 {written}, {capacity}')}, 32")
    line = t.let(f"getelementptr i8, ptr {t.pointer(lines)}, i64 {entry}")
    for k, value in enumerate(values):
        t.do(f"store i64 {value}, ptr {t.let(f'getelementptr i64, ptr {line}, i64 {k}')}, align 8")
    t.put(count, t.let(f"add i64 {written}, 1"))


def _read_mailbox(t: BlockWriter, program: Program) -> None:
    """Read the newest input if it is complete; otherwise the input before stays in force."""
    nu, box = program.nu, t.pointer("mailbox")
    sequence_before = t.let(f"load atomic i64, ptr {box} acquire, align 8")
    odd = t.let(f"icmp ne i64 {t.let(f'and i64 {sequence_before}, 1')}, 0")
    t.branch(odd, "step", "fetch")
    t.label("fetch")
    u = t.pointer("u")
    spare = t.let(f"getelementptr double, ptr {u}, i64 {nu}")  # the buffer behind the inputs
    t.do(f"call void @copy(ptr {spare}, ptr {t.let(f'getelementptr i64, ptr {box}, i64 1')}, i64 {nu})")
    t.do("fence acquire")
    sequence_after = t.let(f"load atomic i64, ptr {box} acquire, align 8")
    t.branch(t.let(f"icmp eq i64 {sequence_before}, {sequence_after}"), "take", "step")
    t.label("take")
    t.do(f"call void @copy(ptr {u}, ptr {spare}, i64 {nu})")
    changed = t.let(f"icmp ne i64 {sequence_before}, {t.word('seen')}")
    t.put("seen", sequence_before)
    if program.renew is None:
        t.do("br label %step")
        return
    t.branch(changed, "mark", "step")
    t.label("mark")  # the integrator's memory belongs to old inputs
    t.do(f"store double 1.0, ptr {_fresh_flag_address(t, program)}, align 8")
    t.do("br label %step")


def _fresh_flag_address(t: BlockWriter, program: Program) -> str:
    return t.let(f"getelementptr double, ptr {t.pointer('state')}, i64 {program.fresh}")
