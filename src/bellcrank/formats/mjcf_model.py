"""Compiled MuJoCo model: its compilation, its flags, names and body frames, and what its actuators add to joints.

MuJoCo's compiler runs in a separate process, since invalid models can make it hang or crash. The process has a limit on
time and memory; it leaves the compiled model in a file, and prints warnings or an error.

MuJoCo has one list of names for each kind of element, and names may be empty. A mechanism has one list for joints and
loops and one for bodies and frames, and every element has a name.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.errors import ReadError
from bellcrank.lazy_import import optional_import
from bellcrank.model.parts import Array, ReportLine
from bellcrank.model.quaternion import rotation_matrix

# Kind of element -> field of the model with the addresses of their names.
NAME_ADDRESS_FIELDS = {
    "body": "name_bodyadr",
    "joint": "name_jntadr",
    "geom": "name_geomadr",
    "site": "name_siteadr",
    "equality": "name_eqadr",
    "tendon": "name_tendonadr",
    "actuator": "name_actuatoradr",
}
FREE = 0  # of mjtJoint
JOINT, IN_PARENT, TENDON = 0, 1, 3  # of mjtTrn
ADDED_FIELDS = ("actuator_armature", "actuator_damping", "actuator_dampingpoly")
NAMES_SHOWN = 4  # names in one line of the report
CPU_SECONDS = 60  # processor time; large meshes take a few
MEMORY_BYTES = 16 << 30
# Security: no part of a model is in this program; the model's path is an argument, or its text comes through stdin.
COMPILER_PROGRAM = """
import json, sys, warnings
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[3]), int(sys.argv[3])))
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[4]), int(sys.argv[4])))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except (ImportError, ValueError, OSError):
    pass
import mujoco
said = []
mujoco.set_mju_user_warning(lambda message: said.append(str(message)))
warnings.showwarning = lambda message, *_, **__: said.append(str(message))
warnings.simplefilter("always")
try:
    if sys.argv[1]:
        spec = mujoco.MjSpec.from_file(sys.argv[1])
    else:
        spec = mujoco.MjSpec.from_string(sys.stdin.buffer.read().decode("utf-8", "replace"))
    mujoco.mj_saveModel(spec.compile(), sys.argv[2], None)
    print(json.dumps({"warnings": said}))
except BaseException as error:
    print(json.dumps({"error": f"{error}" or type(error).__name__}))
"""
# Members of mjtDisableBit without mjDSBL_ -> what MuJoCo then leaves out.
DISABLED_PARTS = {
    "CONSTRAINT": ("equality", "friction", "limit", "contact"),
    "EQUALITY": ("equality",),
    "FRICTIONLOSS": ("friction",),
    "LIMIT": ("limit",),
    "CONTACT": ("contact",),
    "PASSIVE": ("spring", "damper"),  # up to MuJoCo 3.3
    "SPRING": ("spring",),
    "DAMPER": ("damper",),
    "GRAVITY": ("gravity",),
    "ACTUATION": ("actuation",),
}
SOLVER_FLAGS = {  # flags that concern only MuJoCo's own solver, integrator or collision detection
    *("CLAMPCTRL", "WARMSTART", "FILTERPARENT", "REFSAFE", "SENSOR", "MIDPHASE", "EULERDAMP", "AUTORESET", "NATIVECCD"),
    *("ISLAND", "MULTICCD"),
}
SOLVER_ENABLE_FLAGS = {
    *("OVERRIDE", "ENERGY", "FWDINV", "INVDISCRETE", "DIAGEXACT", "IPC", "SPECULATIVE"),
    *("MULTICCD", "NATIVECCD", "ISLAND"),  # older versions enable these, newer ones disable them
}


class UniqueNames:
    """Names that are in use."""

    def __init__(self, taken: list[str]) -> None:
        self.taken = set(taken)

    def add_unique(self, wanted: str) -> str:
        """Return `wanted`, with underscores appended if it is taken, and add it to the list."""
        while wanted in self.taken:
            wanted += "_"
        self.taken.add(wanted)
        return wanted


def file_names(model: Any, kind: str) -> list[str]:
    """Return the names of this `kind` of element in the file of `model`, empty where there is none."""
    text = bytes(model.names)
    return [
        text[address : text.index(b"\0", address)].decode("utf-8", "replace")
        for address in getattr(model, NAME_ADDRESS_FIELDS[kind]).tolist()
    ]


def report_names(model: Any, kind: str) -> list[str]:
    """Return the names of this `kind` of element of `model` for the report, with a number where there is none."""
    return [name or f"{kind}{i}" for i, name in enumerate(file_names(model, kind))]


def element_list(kind: str, names: list[str]) -> str:
    """Return 'joint "a"', or '3 joints: "a", "b", ...', for the `names` of elements of this `kind`."""
    if len(names) == 1:
        return f'{kind} "{names[0]}"'
    more = ", ..." if len(names) > NAMES_SHOWN else ""
    plural = {"body": "bodies"}.get(kind, f"{kind}s")
    return f"{len(names)} {plural}: " + ", ".join(f'"{name}"' for name in names[:NAMES_SHOWN]) + more


class ElementNames:
    """Names of bodies, joints, sites and equalities, unique where a mechanism requires it."""

    def __init__(self, model: Any) -> None:
        self.lines: list[ReportLine] = []
        bodies, joints = file_names(model, "body"), file_names(model, "joint")
        bodies[0] = "world"
        self.frames, self.motions = UniqueNames([*filter(None, bodies)]), UniqueNames([*filter(None, joints)])
        self.body = [name or self.frames.add_unique(f"body{i}") for i, name in enumerate(bodies)]
        self.joint = [name or self.motions.add_unique(f"joint{i}") for i, name in enumerate(joints)]
        self.equality = [
            self._other(self.motions, "equality", name or f"equality{i}", bool(name))
            for i, name in enumerate(file_names(model, "equality"))
        ]
        self.site = [self._other(self.frames, "site", name, True) if name else "" for name in file_names(model, "site")]

    def _other(self, names: UniqueNames, kind: str, wanted: str, by_file: bool) -> str:
        new = names.add_unique(wanted)
        if by_file and new != wanted:
            self.lines.append(ReportLine(f'{kind} "{wanted}"', f'the name is taken: called "{new}"', "note"))
        return new


def body_frame_offsets(model: Any) -> Array:
    """Return (nbody, 3), m: the origin of each body frame, the last joint's anchor, in MuJoCo's frame of `model`."""
    origins = np.zeros((model.nbody, 3))
    for i in np.flatnonzero(model.body_jntnum):
        last = model.body_jntadr[i] + model.body_jntnum[i] - 1
        if model.jnt_type[last] != FREE:
            origins[i] = model.jnt_pos[last]
    return origins


def rotation(wxyz: Array) -> Array:
    """Return the rotation matrix of the quaternion `wxyz`, scalar first; quarter turns are exact to rounding."""
    w, x, y, z = (float(e) for e in wxyz / np.linalg.norm(wxyz))
    rows = rotation_matrix((x, y, z, w))
    R = np.array([[float(e) for e in row] for row in (rows.a, rows.b, rows.c)])
    return np.where(np.abs(R - np.round(R)) < 1e-15, np.round(R), R) + 0.0


def contributing_actuators(model: Any, transmissions: tuple[int, ...], target: int) -> Iterator[int]:
    """Yield the actuators of a joint or tendon that have an armature or a damping.

    Parameters
    ----------
    model
        Compiled MuJoCo model.
    transmissions
        Types of transmission (mjtTrn).
    target
        Index of the joint or tendon.
    """
    values = [x for x in (getattr(model, name, None) for name in ADDED_FIELDS) if x is not None]
    for i in range(len(model.actuator_trntype)):
        on_it = model.actuator_trntype[i] in transmissions and model.actuator_trnid[i][0] == target
        if on_it and any(np.any(x[i]) for x in values):
            yield i


def joint_contributions(model: Any, joint: int) -> tuple[float, float]:
    """Return the armature and damping that all actuators of `model` add to each coordinate of the `joint`."""
    armature = damping = 0.0
    for i in contributing_actuators(model, (JOINT, IN_PARENT), joint):
        square = float(model.actuator_gear[model.actuator_outadr[i]][0]) ** 2
        armature += square * float(model.actuator_armature[i])
        damping += square * float(model.actuator_damping[i])
    return armature, damping


def compile_model(text: str | None, source: str) -> tuple[Any, list[str]]:
    """Return the compiled model of `text`, or of the file `source` with all that it includes; and MuJoCo's warnings."""
    mujoco = optional_import("mujoco", "mjcf", f"{source}: a MuJoCo model (MJCF), which")
    with tempfile.TemporaryDirectory(prefix="bellcrank-") as folder:
        file = os.path.join(folder, "model.mjb")
        arguments = [source if text is None else "", file, str(CPU_SECONDS), str(MEMORY_BYTES)]
        command = [sys.executable, "-P", "-c", COMPILER_PROGRAM, *arguments]
        model_bytes = (text or "").encode("utf-8", "replace")
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        process = subprocess.run(command, input=model_bytes, capture_output=True, check=False, env=environment)
        answer = _answer(process.stdout)
        if "error" in answer:
            raise ReadError(f"{source}: MuJoCo cannot compile it: {_single_line(answer['error'])}")
        if "warnings" not in answer or not Path(file).is_file():
            ended = f"it ended with {process.returncode}. {_single_line(process.stderr.decode(errors='replace'))}"
            timed_out = -process.returncode in [getattr(signal, name, None) for name in ("SIGXCPU", "SIGKILL")]
            why = f"it was stopped after {CPU_SECONDS} s of work" if timed_out else ended
            raise ReadError(f"{source}: MuJoCo's compiler failed: {why}. Correct the model.")
        return mujoco.MjModel.from_binary_path(file), [_single_line(x) for x in answer["warnings"]]


def _answer(printed: bytes) -> dict[str, Any]:
    """Return the last line that the process printed; MuJoCo may print something of its own before."""
    try:
        answer = json.loads(printed.splitlines()[-1])
    except (IndexError, ValueError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _single_line(text: str) -> str:
    return " ".join(text.split())[:600]


@dataclass(frozen=True)
class ModelFlags:
    """Flags of a compiled model."""

    off: frozenset[str]  # names in the values of DISABLED_PARTS
    sleep: bool
    lines: tuple[ReportLine, ...]

    @property
    def passive(self) -> bool:
        """True if gravity compensation and fluid forces act: they are disabled together with springs and dampers."""
        return not {"spring", "damper"} <= self.off


def model_flags(model: Any, mujoco: Any) -> ModelFlags:
    """Return the flags of the compiled `model`; `mujoco` is the imported package."""
    off: set[str] = set()
    lines = []
    for name, bit in _set_flags(mujoco.mjtDisableBit, "mjDSBL_", int(model.opt.disableflags)):
        off |= set(DISABLED_PARTS.get(name, ()))
        lines.append(_flag_line(f"flag {name.lower()}, disabled", name in DISABLED_PARTS, name in SOLVER_FLAGS, bit))
    enabled = dict(_set_flags(mujoco.mjtEnableBit, "mjENBL_", int(model.opt.enableflags)))
    lines += [
        _flag_line(f"flag {name.lower()}, enabled", False, name in SOLVER_ENABLE_FLAGS, bit)
        for name, bit in enabled.items()
        if name != "SLEEP"
    ]
    return ModelFlags(frozenset(off), "SLEEP" in enabled, tuple(lines))


def _set_flags(flags: Any, prefix: str, given: int) -> Iterator[tuple[str, int]]:
    known = {name.removeprefix(prefix): int(bit) for name, bit in flags.__members__.items() if name.startswith(prefix)}
    for name, bit in known.items():
        if given & bit:
            yield name, bit
    unknown_bits = given & ~sum(known.values())
    if unknown_bits:
        yield f"bits {unknown_bits:#x}", unknown_bits


def _flag_line(where: str, read: bool, solver: bool, bit: int) -> ReportLine:
    if read:
        return ReportLine(where, "kept")
    if solver:
        return ReportLine(where, "not used: of MuJoCo's own solver, integrator or collision detection")
    return ReportLine(where, f"not known (bit {bit:#x}), and not used: the motion may differ", "warning")
