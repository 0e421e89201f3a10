"""What a URDF file says and we do not use, as lines of the report: nothing is dropped silently.

The reader marks what it asks for (markup.py); everything else in the file ends up here, grouped so that a person can read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from bellcrank.model.parts import Line
from bellcrank.read.markup import Element

SHAPES = "shapes do not change the motion"
# Tag -> why it is not used, and how loudly to say so.
KNOWN = {
    "visual": (SHAPES, "ok"),
    "collision": (SHAPES, "ok"),
    "material": ("colours do not change the motion", "ok"),
    "transmission": ("gear ratios and rotors are not read; give the joint an armature instead", "note"),
    "gazebo": ("settings of another simulator", "note"),
    "ros2_control": ("wiring of a robot's controllers", "note"),
    "sensor": ("sensors do not change the motion", "ok"),
    "safety_controller": ("limits of a robot's own controller", "note"),
    "calibration": ("reference positions of a robot's encoders", "note"),
    "contact": ("contact parameters; there is no contact", "note"),
    "self_collision_checking": ("there is no collision checking", "ok"),
    "hardwareInterface": ("wiring of a robot's controllers", "note"),
}
URDF = ("link", "joint", "inertial", "mass", "inertia", "origin", "parent", "child", "axis", "limit", "dynamics", "mimic", *KNOWN)
IN_GROUPS = ("visual", "collision", "material")  # one line for all of an element's; the others get a line each


def leftovers(root: Element) -> Iterator[Line]:
    """One line for each thing in the file that nobody asked for."""
    waiting = [root]
    while waiting:
        element = waiting.pop(0)
        yield from _attributes(element)
        if element.text:
            yield Line(element.name, f'text "{element.text[:40]}" between the elements: not used', "note")
        unread = [child for child in element.children if not child.read]
        groups: dict[str, list[Element]] = {}
        for child in unread:
            groups.setdefault(child.tag if child.tag in IN_GROUPS else str(id(child)), []).append(child)
        for group in groups.values():
            yield _unused(element, group)
        waiting += [child for child in element.children if child.read]


def _attributes(element: Element) -> Iterator[Line]:
    for name, value in element.attributes.items():
        if name in element.asked:
            continue
        if name == "xmlns" or name.startswith("xmlns:"):
            yield Line(f"{element.name} {name}", "XML namespace: not used")
        else:
            yield Line(element.name, f'attribute {name}="{value[:40]}": not used', "note")


def _unused(parent: Element, group: list[Element]) -> Line:
    first = group[0]
    top = parent.parent is None
    label = first.attributes.get("name") or first.attributes.get("reference")
    count = f"{len(group)} " if len(group) > 1 else ""
    where = f'{first.tag} "{label}"' if top and label and len(group) == 1 else f"{count}<{first.tag}>"
    where = where if top else f"{where} of {parent.name}"
    inside = sorted({child.tag for element in group for child in element.children})
    holds = f" (holds {', '.join(inside[:8])}{', ...' if len(inside) > 8 else ''})" if inside and first.tag not in IN_GROUPS else ""
    if first.tag in KNOWN:
        why, level = KNOWN[first.tag]
        return Line(where, f"not used: {why}{holds}", level)
    if first.tag in URDF and parent.tag == "joint":
        return Line(where, f"not used: a {parent.attributes.get('type')} joint has none{holds}")
    if first.tag.startswith("xacro:"):
        return Line(where, f"not used: a xacro macro that was not expanded{holds}; run xacro on the file first", "warning")
    close = get_close_matches(first.tag, URDF, n=1)
    meant = f' (did you mean <{close[0]}>?)' if close else ""
    return Line(where, f"not used: not an element of URDF{meant}{holds}", "warning")
