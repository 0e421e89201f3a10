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
from pathlib import Path
import bellcrank as bc

HOME = bc.__file__.removesuffix("__init__.py")
bc.kernel, bc.read, bc.simulate
arm, linkage = bc.zoo.puma600(), bc.zoo.excavator_linkage()
state, ran, imports = arm.random(0), set(), 0

def watch(frame, event, _):
    # Note the file of each function of the package, except while a module is imported.
    global imports
    code = frame.f_code
    if code.co_name == "<module>":
        frame.f_trace_lines = False
        imports += (event == "call") - (event == "return")
        return watch
    if not imports and code.co_filename.startswith(HOME):
        ran.add(code.co_filename.removeprefix(HOME))
        if code.co_name == "{last}":
            sys.settrace(None)

sys.settrace(watch)
{call}
sys.settrace(None)
print(*sorted(ran))
"""
ROBOT = "robot.urdf"
LINK = """<link name="link{i}"><inertial><origin xyz="0.1 0 0.05"/><mass value="{mass}"/>
<inertia ixx="0.02" ixy="0.001" ixz="0" iyy="0.03" iyz="0" izz="0.025"/></inertial></link>"""
JOINT = """<joint name="joint{i}" type="revolute"><parent link="link{below}"/><child link="link{i}"/>
<origin xyz="0.3 0 0.1" rpy="{roll} 0 0"/><axis xyz="0 0 1"/><limit lower="-3" upper="3" velocity="2" effort="50"/>
</joint>"""
# Upper limits; fewer are better. They include buffers.py of a run. From a robot file, the walk ends at the LLVM text.
FILES = {
    "arm.forward_dynamics(*state)": (43, ""),
    f"bc.kernel(bc.read('{ROBOT}'), 'forward_dynamics')": (47, "compile_text"),
    "bc.simulate(arm, seconds=0.05)": (67, ""),
    "bc.simulate(linkage, seconds=0.05)": (70, "compile_text"),
}


@pytest.mark.parametrize("call", FILES)
def test_a_cold_call_goes_through_few_files(call: str, tmp_path: Path) -> None:
    links = [LINK.format(i=i, mass=7 - i) for i in range(7)]
    joints = [JOINT.format(i=i, below=i - 1, roll=(0.0, 1.5707963267948966, 0.4)[i % 3]) for i in range(1, 7)]
    (tmp_path / ROBOT).write_text(f"<robot name='six'>{''.join([*links, *joints])}</robot>", "utf-8")
    path = os.pathsep.join(str(Path(folder).absolute()) for folder in sys.path)
    environment = os.environ | {"PYTHONPATH": path, "BELLCRANK_CACHE": str(tmp_path / "empty")}
    environment["BELLCRANK_POISON"] = "0"  # the default of users
    limit, last = FILES[call]
    command = [sys.executable, "-c", CODE.replace("{call}", call).replace("{last}", last)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
    ran = done.stdout.split()
    assert len(ran) <= limit, "\n".join([f"{len(ran)} files, and {limit} are counted on:", *ran])
