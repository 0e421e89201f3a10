"""Flags of a MuJoCo model (`<option><flag>`), and the gravity that results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.model.parts import Array, Line

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


@dataclass(frozen=True)
class ModelFlags:
    """Flags of a compiled model."""

    off: frozenset[str]  # names in the values of DISABLED_PARTS
    sleep: bool
    lines: tuple[Line, ...]

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


def _flag_line(where: str, read: bool, solver: bool, bit: int) -> Line:
    if read:
        return Line(where, "kept")
    if solver:
        return Line(where, "not used: of MuJoCo's own solver, integrator or collision detection")
    return Line(where, f"not known (bit {bit:#x}), and not used: the motion may differ", "warning")


def effective_gravity(
    model: Any, flags: ModelFlags, user_gravity: Sequence[float] | None
) -> tuple[list[float], list[Line]]:
    """Return gravity in world axes, and lines for the report.

    Gravity compensation removes a share of every body's weight. If the share is the same for all moving bodies, it is a
    smaller gravity; otherwise it is not used.

    Parameters
    ----------
    model
        Compiled MuJoCo model.
    flags
        Its flags.
    user_gravity
        The user's gravity, or None for that of the model.
    """
    g: Array = np.array(model.opt.gravity if user_gravity is None else user_gravity, float)
    lines = []
    if user_gravity is None and "gravity" in flags.off:
        g = np.zeros(3)
        lines.append(Line("gravity", "0, as a flag disables it"))
    moving = _moving_bodies(model)
    shares = set(model.body_gravcomp[moving & (model.body_mass > 0.0)].tolist()) if flags.passive and g.any() else {0.0}
    if len(shares) == 1 and shares != {0.0}:
        share = shares.pop()
        g = g * (1.0 - share)
        lines.append(Line("gravcomp", f"{share:g} of the weight of all bodies: gravity is {g.tolist()}", "note"))
    return (g + 0.0).tolist(), lines


def uneven_gravcomp(model: Any, flags: ModelFlags) -> Array:
    """Return the indices of the moving bodies of `model` with flags `flags` whose gravity compensation is not used."""
    moving = _moving_bodies(model) & (model.body_mass > 0.0)
    if not flags.passive or "gravity" in flags.off or len(set(model.body_gravcomp[moving].tolist())) < 2:
        return np.zeros(0, int)
    found: Array = np.flatnonzero(moving & (model.body_gravcomp != 0.0))
    return found


def _moving_bodies(model: Any) -> Array:
    """Return for each body whether it moves: a joint carries it, or its parent moves."""
    moving: Array = model.body_jntnum > 0
    for i in range(1, model.nbody):  # parents come first
        moving[i] |= moving[model.body_parentid[i]]
    return moving
