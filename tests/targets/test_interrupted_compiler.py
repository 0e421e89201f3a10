"""Signals during LLVM calls, and while modules are dropped, do not stop other threads from compiling."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers that send signals")

CODE = """
import random, signal, threading, time
from bellcrank.emit.llvm.host import llvm

class Interrupt(Exception): pass

def interrupt(*_): raise Interrupt

def work():
    while not over.is_set():
        binding.parse_assembly("")

binding, over, chance = llvm(), threading.Event(), random.Random(1)
other = threading.Thread(target=work, daemon=True)
other.start()
signal.signal(signal.SIGALRM, interrupt)
until, times = time.monotonic() + 2.0, 0
while time.monotonic() < until:
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-5, 4e-4))
            for _ in range(20):
                binding.parse_assembly("")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupt:
        times += 1
over.set()
other.join(20.0)
print("hangs" if other.is_alive() else "goes on", "after" if times > 20 else "with too few", "interrupts")
"""


def test_other_threads_go_on() -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120, env=environment)
    assert done.stdout == "goes on after interrupts\n", done.stderr[-2000:]
