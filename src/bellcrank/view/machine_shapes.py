"""Built-in machines with detailed shapes, which pages draw by the scripts of the cockpit's page.

A machine is recognised by the name of its mechanism and by its bodies, because a user's mechanism may have the same
name. The scripts are bundled from web/ and are not in git: without them a machine is drawn by simple shapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from bellcrank.model import Mechanism

MAX_TRIANGLES = 20_000  # maximum of all meshes together, drawn by a graphics card
ARM = ("cab", "boom", "stick", "bucket")
CYLINDERS = tuple(f"{name}_{part}" for name in ARM[1:] for part in ("barrel", "rod"))


@dataclass(frozen=True)
class MachineShape:
    """Detailed shape: its name in web/src/view.ts, ground level in m, required bodies, and full bucket load in kg."""

    name: str
    ground_level: float
    bodies: tuple[str, ...]
    full_load: float = 1500.0


LINKAGE = MachineShape("linkage", 0.0, (*ARM, "lever", "link", *CYLINDERS))
MACHINE_SHAPES = {
    "excavator": MachineShape("excavator", -1.0, ARM),
    "excavator_linkage": LINKAGE,
    "excavator_flexible": LINKAGE,
    "excavator_tracked": LINKAGE,
}


def shape_of(m: Mechanism) -> MachineShape | None:
    """Return the detailed shape of `m`, if it has one."""
    shape = MACHINE_SHAPES.get(m.name)
    names = [b.name for b in m.bodies]
    if shape is None or not set(shape.bodies) <= set(names):
        return None
    return shape if shape.name != "excavator" or tuple(names[:4]) == ARM else None


def joint_data(m: Mechanism) -> list[dict[str, Any]]:
    """Return the joints of `m` with parent, body (-1 is the ground) and the joint's origin in the parent frame."""
    index = {m.ground: -1} | {b.name: i for i, b in enumerate(m.bodies)}
    return [
        {"name": j.name, "parent": index[j.parent], "body": index[j.child], "point": [float(x) for x in j.point]}
        for j in m.joints
    ]


def script() -> str:
    """Return the scripts that draw detailed shapes; "" if they are not bundled."""
    path = files("bellcrank") / "cockpit" / "static" / "report.js"
    return path.read_text("utf-8").replace("</script", "<\\/script") if path.is_file() else ""
