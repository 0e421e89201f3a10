"""The number of source files that a first small call goes through stays small.

A reader who follows the call must read these files. Features that a mechanism does not have (loops, springs, contacts,
identical bodies by the hundred) cost no file.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import sys
import bellcrank as bc

HOME = bc.__file__.removesuffix("__init__.py")
bc.kernel, bc.simulate  # what they import is not counted
arm, ran = bc.zoo.puma600(), set()
state = arm.random(0)

def watch(frame, event, _):
    name = frame.f_code.co_filename
    if event == "call" and name.startswith(HOME) and frame.f_code.co_name != "<module>":
        ran.add(name.removeprefix(HOME))

sys.setprofile(watch)
{call}
sys.setprofile(None)
print(*sorted(ran))
"""
# Upper limits; fewer are better. They include graph/store_coverage.py, which checks the code, and buffers.py of a run.
FILES = {"arm.forward_dynamics(*state)": 47, "bc.simulate(arm, seconds=0.05)": 73}


@pytest.mark.parametrize("call", FILES)
def test_a_cold_call_goes_through_few_files(call: str, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "BELLCRANK_CACHE": str(tmp_path / "empty")}
    environment["BELLCRANK_POISON"] = "0"  # the default of users
    code = CODE.replace("{call}", call)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    ran = done.stdout.split()
    assert len(ran) <= FILES[call], "\n".join([f"{len(ran)} files, and {FILES[call]} are counted on:", *ran])
