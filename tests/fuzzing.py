"""A process that reads damaged files one after the other and reports every wrong result.

    python tests/fuzzing.py KIND FIRST COUNT

Each case has a number, FIRST is the number of the first one, and a case can be repeated alone. The cases run in a
process of their own because the faults that they look for would end it: a crash, a hang, a gigabyte of memory. A case
that takes longer than PATIENCE is reported.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from bellcrank.dynamics import crba
from bellcrank.dynamics import singular_mass as movable
from bellcrank.errors import BellcrankError
from bellcrank.formats import mjcf_model, read
from bellcrank.model import Mechanism
from mutation import PLAIN, XML, mutated

PATIENCE = 20  # seconds of processor time for a case, however busy the machine is
MEMORY = 6 << 30
DATA = Path(__file__).parent / "unit/data"
ROBOTS = [Path(p) / "cmeel.prefix/share/example-robot-data/robots" for p in sys.path]
MODELS = [Path(p) / "gymnasium/envs/mujoco/assets" for p in sys.path]

LOOPED = re.sub("<mimic.*?/>", "", (DATA / "arm.urdf").read_text()).replace(
    "</robot>",
    """
  <loop_joint name="end" type="continuous"><link1 link="upper" xyz="1 0 0" rpy="0 0 0"/>
  <link2 link="palm" xyz="0 0 1"/><axis xyz="0 1 0"/></loop_joint>
  <coupling name="gears">
  <predecessor link="left_finger"/><successor link="right_finger"/><ratio value="6"/></coupling></robot>""",
)
SHEET = """closed_loop: [[palm, upper], [tool, column]]
type: [6d, 3d]
joint_name: [lift, turn]
joint_type: [SPHERICAL, UJOINT_XY]
name_mot:
  - turn
  - lift
"""
MODEL = """<mujoco model="thing"><compiler angle="degree"/><option gravity="0 1 -9" timestep="0.002"/>
<default><joint damping="0.1"/><geom density="900"/></default>
<worldbody><light pos="0 0 4"/>
  <body name="a" pos="0.1 0.2 1" euler="10 20 30">
    <joint name="j1" type="hinge" axis="0 1 0" pos="0 0 .1" ref="10" range="-90 90" limited="true"/>
    <joint name="j2" type="slide" axis="1 0 0" armature="0.2" stiffness="3" springref="0.1"/>
    <geom type="box" size=".1 .2 .3" pos="0.1 0 0" mass="2"/>
    <site name="s1" pos="1 0 0" euler="0 90 0"/>
    <body name="b" pos="1 0 0" quat="1 0 0.5 0"><inertial mass="1" pos="0 0.2 0.1" diaginertia="0.1 0.1 0.05"/>
      <joint name="j3" type="hinge" axis="0 0.6 0.8" pos="0.1 0.1 0"/>
      <body name="tip" pos="0.3 0 0"><geom type="capsule" size="0.1 0.2" fromto="0 0 0 1 0 0"/></body>
    </body>
  </body>
  <body name="c" pos="0 1 0"><freejoint name="free"/><geom size=".1" mass="1"/><site name="s2" pos="0 0 0.5"/>
    <body name="d"><joint name="ball" type="ball"/><geom type="cylinder" size=".1 .2"/></body></body>
</worldbody>
<equality><connect name="con" body1="a" body2="c" anchor="0.3 0.1 0.2"/><weld site1="s1" site2="s2"/>
  <joint joint1="j1" joint2="j3" polycoef="0 2 0 0 0"/></equality>
<tendon><fixed name="t"><joint joint="j1" coef="1"/></fixed></tendon>
<actuator><motor joint="j1" gear="10"/></actuator></mujoco>"""


def sources(kind: str) -> list[str]:
    """Return the files that are damaged; real ones where they are installed."""
    if kind == "urdf":
        folder = next((f for f in ROBOTS if f.is_dir()), DATA)
        real = [p for p in sorted(folder.rglob("*.urdf")) if p.stat().st_size < 30_000]
        return [(DATA / "arm.urdf").read_text(), LOOPED, *(p.read_text(errors="replace") for p in real)]
    if kind == "mjcf":
        folder = next((f for f in MODELS if f.is_dir()), DATA)
        return [MODEL, *(p.read_text() for p in sorted(folder.glob("*.xml")))]
    return {"yaml": [SHEET], "toml": [(DATA / "arm_modified.toml").read_text()]}[kind]


def case(kind: str, number: int) -> bytes:
    rng = random.Random(f"{kind} {number}")
    return mutated(rng, rng.choice(sources(kind)), XML if kind in ("urdf", "mjcf") else PLAIN)


def mechanism(kind: str, data: bytes, folder: Path, base: str) -> Mechanism:
    suffix = {"urdf": "urdf", "mjcf": "xml", "yaml": "yaml", "toml": "toml"}[kind]
    file = folder / f"file.{suffix}"
    file.write_bytes(data)
    if kind == "yaml":
        return read(DATA / "arm.urdf", loops=file)
    return read(file, base=base if kind == "urdf" else "fixed")


def sound(m: Mechanism) -> str:
    """Return a sentence about what is wrong with a mechanism that was read, or an empty text."""
    str(m), repr(m), str(m.report)
    q = m.random(1)[0]
    M = np.array(crba.mass_matrix(m.tree, q.tolist()), dtype=float).reshape(m.nv, m.nv)
    if not np.isfinite(M).all():
        return "the mass matrix is not finite"
    if m.nv and np.linalg.eigvalsh(M)[0] < -1e-9 * np.abs(M).max():
        return f"the mass matrix has the eigenvalue {np.linalg.eigvalsh(M)[0]:g}"
    with contextlib.suppress(BellcrankError):  # a singular mechanism, which the error reports
        movable.check_mass_matrix(m)
    return ""


def outcome(kind: str, number: int, folder: Path) -> tuple[str, str]:
    """Return ("read", ""), ("refused", why) or ("wrong", why)."""
    try:
        m = mechanism(kind, case(kind, number), folder, random.Random(number).choice(("fixed", "floating")))
        wrong = sound(m)
    except BellcrankError as error:
        said = str(error)
        if not said.strip() or len(said) > 3000:
            return "wrong", f"an error of {len(said)} characters: {said[:200]!r}"
        return "refused", said
    except Exception as error:  # any other exception is a fault
        return "wrong", f"{type(error).__name__}: {str(error)[:200]}"
    return ("wrong", wrong) if wrong else ("read", "")


def forked(command: list[str], input: bytes, **_: Any) -> subprocess.CompletedProcess[bytes]:
    """Replace subprocess.run of mjcf_model by a forked child that has already imported MuJoCo.

    The import took nine tenths of a case.
    """
    import mujoco  # noqa: F401

    with contextlib.ExitStack() as open_:
        streams = [open_.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        streams[0].write(input)
        streams[0].seek(0)
        if (child := os.fork()) == 0:
            try:
                for number, stream in enumerate(streams):
                    os.dup2(stream.fileno(), number)
                sys.argv, sys.stdin, sys.stdout = ["-c", *command[4:]], open(0), open(1, "w")  # noqa: SIM115
                exec(command[3], {"__name__": "__main__"})
                sys.stdout.flush()
            finally:
                os._exit(0)
        status = os.waitpid(child, 0)[1]
        for stream in streams:
            stream.seek(0)
        return subprocess.CompletedProcess(
            command, os.waitstatus_to_exitcode(status), streams[1].read(), streams[2].read()
        )


class Hang(BaseException):
    """Raised by the alarm."""


def _alarm(*_: Any) -> None:
    raise Hang


def main(kind: str, first: int, count: int) -> None:
    faulthandler.enable()
    mjcf_model.CPU_SECONDS = 4
    mjcf_model.subprocess = SimpleNamespace(run=forked)  # type: ignore[assignment]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, _alarm)
    counts = {"read": 0, "refused": 0, "wrong": 0}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, first + count):
            print(number, file=sys.stderr, flush=True)  # after a crash, the last printed number is its case
            signal.setitimer(signal.ITIMER_PROF, PATIENCE)
            # an alarm has no effect where no Python code runs
            faulthandler.dump_traceback_later(30 * PATIENCE, exit=True)
            try:
                result, why = outcome(kind, number, Path(folder))
            except Hang:
                result, why = "wrong", f"took more than {PATIENCE} s"
            signal.setitimer(signal.ITIMER_PROF, 0)
            faulthandler.cancel_dump_traceback_later()
            counts[result] += 1
            if result == "wrong":
                print(json.dumps({"case": f"{kind} {number}", "why": why}), flush=True)
    print(json.dumps(counts))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
