"""Machines with a pair of sticks or levers of their own; all other mechanisms get sliders (machines.generic)."""

from __future__ import annotations

from collections.abc import Callable

from bellcrank.cockpit.machines import Machine
from bellcrank.excavators import rope
from bellcrank.excavators.linkage import machine as linkage
from bellcrank.excavators.rotary import rotary_machine as excavator

MACHINES: dict[str, Callable[[], Machine]] = {
    "excavator": excavator.machine,
    "excavator_linkage": linkage.machine,
    "excavator_flexible": linkage.flexible,
    "excavator_tracked": linkage.tracked,
    "rope": rope.machine,
}
