"""Kernels made, called, dropped, forked and interrupted from eight threads (bench/kernels_soak.py), for a while."""

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


def test_a_short_while() -> None:
    assert soaked(0.1).startswith("end, ")


@pytest.mark.long
def test_a_long_while() -> None:
    """Memory is flat once all that is made once is made: a hundredth of it in a minute would be a leak."""
    said = soaked(5.0)
    found = re.search(r"([\d.]+) MiB at the end, ([-+][\d.]+) MiB a minute", said)
    assert found is not None
    assert float(found[2]) < 0.01 * float(found[1]), said
