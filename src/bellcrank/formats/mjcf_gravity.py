"""Gravity of a MuJoCo model, less the share that its gravity compensation carries.

MuJoCo lifts each body by the share `gravcomp` of its weight, and applies that force joint by joint. Along a joint with
`actuatorgravcomp` it belongs to the forces of the actuators: it acts only if the model has an actuator, on any joint,
and actuation is not disabled. A mechanism has one gravity for all bodies. So compensation is used if it carries the
same share of every body along every joint, and the report warns otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bellcrank.formats.mjcf_flags import ModelFlags
from bellcrank.formats.mjcf_model import NAMES_SHOWN, element_list, report_names
from bellcrank.model.parts import Array, ReportLine


def effective_gravity(
    model: Any, flags: ModelFlags, user_gravity: Sequence[float] | None
) -> tuple[list[float], list[ReportLine]]:
    """Return gravity in world axes, and lines for the report.

    Parameters
    ----------
    model
        Compiled MuJoCo model.
    flags
        Its flags.
    user_gravity
        The user's gravity, or None for that of the model. It also replaces a gravity that a flag disables.
    """
    g: Array = np.array(model.opt.gravity if user_gravity is None else user_gravity, float)
    lines = []
    if user_gravity is None and "gravity" in flags.off:
        g = np.zeros(3)
        lines.append(ReportLine("gravity", "0, as a flag disables it"))
    if flags.passive and g.any():
        compensation = _Compensation(model, flags)
        lines += compensation.lines()
        share = compensation.common_share
        if share:
            g = g * (1.0 - share)
            lines.append(
                ReportLine("gravcomp", f"{share:g} of the weight of all bodies: gravity is {g.tolist()}", "note")
            )
    return (g + 0.0).tolist(), lines


class _Compensation:
    """Gravity compensation of a model: its bodies, the joints along which it acts, and their common share."""

    def __init__(self, model: Any, flags: ModelFlags) -> None:
        self.model = model
        self.through_actuators = np.array(getattr(model, "jnt_actgravcomp", np.zeros(model.njnt)), bool)
        self.why_not = "the model has no actuator" if not getattr(model, "nactuator", model.nu) else ""
        if "actuation" in flags.off:
            self.why_not = "a flag disables actuation"
        idle = self.through_actuators & bool(self.why_not)
        heavy = model.body_mass > 0.0
        self.lifted = heavy & _carried_by(model, ~idle)  # bodies along some joint
        self.hanging = heavy & _carried_by(model, idle)  # bodies along some joint without compensation
        self.acts = bool(np.any(model.body_gravcomp > 0.0))  # MuJoCo counts positive shares, and then uses all
        self.bodies = np.flatnonzero((self.lifted | self.hanging) & (model.body_gravcomp != 0.0))
        shares = {*model.body_gravcomp[self.lifted].tolist(), *([0.0] if self.hanging.any() else [])}
        self.uniform = len(shares) < 2 or not self.acts
        self.common_share = float(shares.pop()) if shares and self.uniform and self.acts else 0.0

    def lines(self) -> Iterator[ReportLine]:
        """Yield report lines for compensation that is not used, or that goes through actuators."""
        if not len(self.bodies):
            return
        names = report_names(self.model, "body")
        bodies = element_list("body", [names[i] for i in self.bodies])
        if not self.acts:
            yield ReportLine(bodies, "gravcomp: not used, as in MuJoCo where no body has a positive one", "note")
            return
        if not self.uniform:
            shares = ", ".join(f"{self.model.body_gravcomp[i]:g}" for i in self.bodies[:NAMES_SHOWN])
            more = ", ..." if len(self.bodies) > NAMES_SHOWN else ""
            how = "they have their weight. A force on a frame (bc.system, forces=) can carry them"
            condition = f" In MuJoCo it acts on joints without actuatorgravcomp only, because {self.why_not}"
            text = f"gravcomp {shares}{more}: not used, {how}"
            yield ReportLine(bodies, f"{text}.{condition}" if np.any(self.hanging[self.bodies]) else text, "warning")
        elif self.common_share:
            yield from self._actuator_lines()
        else:
            yield ReportLine(
                bodies, f"gravcomp: acts on no joint, because of actuatorgravcomp, and {self.why_not}", "note"
            )

    def _actuator_lines(self) -> Iterator[ReportLine]:
        names = report_names(self.model, "joint")
        joints = [name for name, x in zip(names, self.through_actuators, strict=True) if x]
        if joints:
            text = "actuatorgravcomp: the compensation acts while actuators are enabled, driven or not; here always"
            yield ReportLine(element_list("joint", joints), text, "note")
        limited = self.through_actuators & np.array(self.model.jnt_actfrclimited, bool)
        joints = [name for name, x in zip(names, limited, strict=True) if x]
        if joints:
            text = "actuatorgravcomp: the compensation is limited by actuatorfrcrange in MuJoCo, and has no limit here"
            yield ReportLine(element_list("joint", joints), text, "warning")


def _carried_by(model: Any, joints: Array) -> Array:
    """Return for each body whether one of the `joints` (a mask) carries it, or a body above it."""
    carried: Array = np.zeros(model.nbody, bool)
    carried[model.jnt_bodyid[joints]] = True
    for i in range(1, model.nbody):  # parents come first
        carried[i] |= carried[model.body_parentid[i]]
    return carried
