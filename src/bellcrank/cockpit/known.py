"""Machines that have sticks; any other mechanism has sliders (machines.generic)."""

from __future__ import annotations

from collections.abc import Callable

from bellcrank.cockpit import excavator, linkage
from bellcrank.cockpit.machines import Machine

MACHINES: dict[str, Callable[[], Machine]] = {"excavator": excavator.machine, "excavator_linkage": linkage.machine}
