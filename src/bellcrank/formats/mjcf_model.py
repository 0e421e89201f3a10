"""Names and body frames of a compiled MuJoCo model, and what its actuators add to joints and tendons.

MuJoCo has one list of names for each kind of element, and names may be empty. A mechanism has one list for joints and
loops and one for bodies and frames, and every element has a name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

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
