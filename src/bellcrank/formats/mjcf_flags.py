"""Flags of a MuJoCo model (`<option><flag>`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bellcrank.model.parts import ReportLine

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
