"""Flags of a MuJoCo model (`<option><flag>`), and the gravity that results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.model.parts import Array, Line

# Members of mjtDisableBit without mjDSBL_ -> what MuJoCo then leaves out.
DISABLED = {
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
SOLVER = {  # flags that concern only MuJoCo's own solver, integrator or collision detection
    *("CLAMPCTRL", "WARMSTART", "FILTERPARENT", "REFSAFE", "SENSOR", "MIDPHASE", "EULERDAMP", "AUTORESET", "NATIVECCD"),
    *("ISLAND", "MULTICCD"),
}
ENABLED = {
    *("OVERRIDE", "ENERGY", "FWDINV", "INVDISCRETE", "DIAGEXACT", "IPC", "SPECULATIVE"),
    *("MULTICCD", "NATIVECCD", "ISLAND"),  # older versions enable these, newer ones disable them
}


@dataclass(frozen=True)
class Switches:
    """Flags of a compiled model."""

    off: frozenset[str]  # names in the values of DISABLED
    sleep: bool
    lines: tuple[Line, ...]

    @property
    def passive(self) -> bool:
        """True if gravity compensation and fluid forces act: they are disabled together with springs and dampers."""
        return not {"spring", "damper"} <= self.off


def switches(model: Any, mujoco: Any) -> Switches:
    """Return the flags of the compiled `model`; `mujoco` is the imported package."""
    off: set[str] = set()
    lines = []
    for name, bit in _set(mujoco.mjtDisableBit, "mjDSBL_", int(model.opt.disableflags)):
        off |= set(DISABLED.get(name, ()))
        lines.append(_told(f"flag {name.lower()}, disabled", name in DISABLED, name in SOLVER, bit))
    enabled = dict(_set(mujoco.mjtEnableBit, "mjENBL_", int(model.opt.enableflags)))
    lines += [
        _told(f"flag {name.lower()}, enabled", False, name in ENABLED, bit)
        for name, bit in enabled.items()
        if name != "SLEEP"
    ]
    return Switches(frozenset(off), "SLEEP" in enabled, tuple(lines))


def _set(flags: Any, prefix: str, given: int) -> Iterator[tuple[str, int]]:
    known = {name.removeprefix(prefix): int(bit) for name, bit in flags.__members__.items() if name.startswith(prefix)}
    for name, bit in known.items():
        if given & bit:
            yield name, bit
    rest = given & ~sum(known.values())
    if rest:
        yield f"bits {rest:#x}", rest


def _told(where: str, read: bool, solver: bool, bit: int) -> Line:
    if read:
        return Line(where, "kept")
    if solver:
        return Line(where, "not used: of MuJoCo's own solver, integrator or collision detection")
    return Line(where, f"not known (bit {bit:#x}), and not used: the motion may differ", "warning")


def gravity_of(model: Any, on: Switches, asked: Sequence[float] | None) -> tuple[list[float], list[Line]]:
    """Return gravity in world axes, and lines for the report.

    Gravity compensation removes a share of every body's weight. If the share is the same for all moving bodies, it is a
    smaller gravity; otherwise it is not used.

    Parameters
    ----------
    model
        Compiled MuJoCo model.
    on
        Its flags.
    asked
        The user's gravity, or None for that of the model.
    """
    g: Array = np.array(model.opt.gravity if asked is None else asked, float)
    lines = []
    if asked is None and "gravity" in on.off:
        g = np.zeros(3)
        lines.append(Line("gravity", "0, as a flag disables it"))
    moving = _moving(model)
    shares = set(model.body_gravcomp[moving & (model.body_mass > 0.0)].tolist()) if on.passive and g.any() else {0.0}
    if len(shares) == 1 and shares != {0.0}:
        share = shares.pop()
        g = g * (1.0 - share)
        lines.append(Line("gravcomp", f"{share:g} of the weight of all bodies: gravity is {g.tolist()}", "note"))
    return (g + 0.0).tolist(), lines


def uneven_gravcomp(model: Any, on: Switches) -> Array:
    """Return the indices of the moving bodies of `model` with flags `on` whose gravity compensation is not used."""
    moving = _moving(model) & (model.body_mass > 0.0)
    if not on.passive or "gravity" in on.off or len(set(model.body_gravcomp[moving].tolist())) < 2:
        return np.zeros(0, int)
    found: Array = np.flatnonzero(moving & (model.body_gravcomp != 0.0))
    return found


def _moving(model: Any) -> Array:
    """Return for each body whether it moves: a joint carries it, or its parent moves."""
    moving: Array = model.body_jntnum > 0
    for i in range(1, model.nbody):  # parents come first
        moving[i] |= moving[model.body_parentid[i]]
    return moving
