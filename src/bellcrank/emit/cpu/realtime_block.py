"""Block of words that a real-time loop shares with the rest of the process, and text that reads and writes them.

Histograms have eight bins for each power of two (`bin_edges`).
"""

from __future__ import annotations

import numpy as np

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


def bin_edges() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the lower ends of the bins and the end of the last.

    Bins 8 to 23 are empty, because each number below 8 has its own bin.
    """
    k = np.arange(HISTOGRAM_BINS + 1)
    octave, part = k // 8, k % 8
    return np.where(octave < 3, np.minimum(k, 8), np.ldexp(8.0 + part, octave - 3)).astype(float)


class BlockWriter:
    """Writer of lines with fresh names, and of accesses to words of the block."""

    def __init__(self) -> None:
        """Begin without lines."""
        self.lines: list[str] = []
        self.count = 0

    def let(self, text: str) -> str:
        """Write the definition of a new value by `text`; return its name."""
        self.count += 1
        self.lines.append(f"  %r{self.count} = {text}")
        return f"%r{self.count}"

    def do(self, text: str) -> None:
        """Write the line `text`."""
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        """Write the label `name`."""
        self.lines.append(f"{name}:")

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
