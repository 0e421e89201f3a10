"""Kernels are made, called, dropped, forked and interrupted from eight threads for a while (bench/kernels_soak.py)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="says how much memory there is")
ROOT = Path(__file__).resolve().parents[2]


def soaked(minutes: float) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, "-m", "bench.kernels_soak", "--minutes", str(minutes)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def grown(said: str, what: str) -> tuple[float, float]:
    """Return MiB at the end, and the growth per minute, of resident and allocated memory while no thread works."""
    found = re.search(rf"{what} .* ([\d.]+) MiB at the end, ([-+][\d.]+) a minute", said)
    assert found is not None, said
    return float(found[1]), float(found[2])


def test_a_short_while() -> None:
    said = soaked(0.1)
    assert re.search(r"^end, exit status 0", said, re.M)
    assert grown(said, "resident")[0] > grown(said, "held")[0] > 1.0


@pytest.mark.long
def test_a_long_while() -> None:
    """Memory stays constant after the first of everything is made: a hundredth of it per minute would be a leak."""
    said = soaked(5.0)
    for what in ("resident", "held"):
        size, more = grown(said, what)
        assert more < 0.01 * size, said


LEAK = """
import bellcrank as bc
from bench.kernels_soak import slope, weighed
for keep in (False, True):
    kept, weights = [], []
    for k in range(8):
        made = [bc.kernel(bc.zoo.load("pendulum"), "forward_dynamics", method="aba") for _ in range(5)]
        kept += made if keep else []
        del made
        weights.append({"second": 10.0 * k, **weighed()})
    print(60.0 * slope(weights, "held") / weights[-1]["held"])
"""


def test_leak_is_detected() -> None:
    """The measurement detects a leak: dropped kernels take no memory, and kept ones more than the limit."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "PYTHONMALLOC": "malloc"}
    command = [sys.executable, "-c", LEAK]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    dropped, kept = map(float, done.stdout.split())
    assert dropped < 0.002 < 0.02 < kept, done.stderr
