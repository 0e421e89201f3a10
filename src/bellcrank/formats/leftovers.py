"""Parts of a URDF file that are not used, as lines of the report: nothing is dropped silently.

The reader marks the elements and attributes that it reads (xml_elements.py); everything else in the file is grouped
here.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from bellcrank.formats.xml_elements import XmlElement
from bellcrank.model.parts import ReportLine

SHAPES_REASON = "shapes do not change the motion"
# Tag -> why it is not used, and the level of the report line.
UNUSED_TAGS = {
    "visual": (SHAPES_REASON, "ok"),
    "collision": (SHAPES_REASON, "ok"),
    "material": ("colours do not change the motion", "ok"),
    "transmission": ("gear ratios and rotors are not read; give the joint an armature instead", "note"),
    "gazebo": ("settings of another simulator", "note"),
    "ros2_control": ("wiring of a robot's controllers", "note"),
    "sensor": ("sensors do not change the motion", "ok"),
    "safety_controller": ("limits of a robot's own controller", "note"),
    "calibration": ("reference positions of a robot's encoders", "note"),
    "contact": ("contact parameters; give them to contacts of bc.collisions", "note"),
    "self_collision_checking": ("links do not collide with each other unless a contact says so", "ok"),
    "hardwareInterface": ("wiring of a robot's controllers", "note"),
}
USED_TAGS = """link joint inertial mass inertia origin parent child axis limit dynamics mimic
    loop_joint link1 link2 loop coupling constraint predecessor successor ratio"""
URDF_TAGS = (*USED_TAGS.split(), *UNUSED_TAGS)
# Shapes share a line per link, materials one line per file; everything else gets its own line.
LINE_GROUPS = {"visual": "shapes", "collision": "shapes", "material": "materials"}


def leftovers(root: XmlElement) -> Iterator[ReportLine]:
    """Yield one report line for each part of the document `root` that was not read."""
    pending = [root]
    while pending:
        element = pending.pop(0)
        yield from _attributes(element)
        if element.text:
            yield ReportLine(element.name, f'text "{element.text[:40]}" between the elements: not used', "note")
        unread = [child for child in element.children if not child.was_read]
        groups: dict[str, list[XmlElement]] = {}
        for child in unread:
            groups.setdefault(LINE_GROUPS.get(child.tag, str(id(child))), []).append(child)
        for group in groups.values():
            yield _unused(element, group)
        pending += [child for child in element.children if child.was_read]


def _attributes(element: XmlElement) -> Iterator[ReportLine]:
    for name, value in element.attributes.items():
        if name in element.read_attributes:
            continue
        if name == "xmlns" or name.startswith("xmlns:"):
            yield ReportLine(f"{element.name} {name}", "XML namespace: not used")
        else:
            yield ReportLine(element.name, f'attribute {name}="{value[:40]}": not used', "note")


def _unused(parent: XmlElement, group: list[XmlElement]) -> ReportLine:
    first = group[0]
    label = first.attributes.get("name") or first.attributes.get("reference")
    if len(group) == 1 and label and parent.parent is None:
        where = f'{first.tag} "{label}"'
    else:
        counts = {tag: sum(e.tag == tag for e in group) for tag in dict.fromkeys(e.tag for e in group)}
        where = ", ".join(f"{n} <{tag}>" if n > 1 else f"<{tag}>" for tag, n in counts.items())
        where += f" of {parent.name}" if parent.parent is not None else ""
    why, level = _reason(parent, first)
    inside = list(dict.fromkeys(child.tag for child in first.children)) if first.tag not in LINE_GROUPS else []
    holds = f" (holds {', '.join(inside[:8])}{', ...' if len(inside) > 8 else ''})" if inside else ""
    return ReportLine(where, f"not used: {why}{holds}", level)


def _reason(parent: XmlElement, e: XmlElement) -> tuple[str, str]:
    """Return why the element is not used, and the level of the report line."""
    if e.tag in UNUSED_TAGS:
        return UNUSED_TAGS[e.tag]
    if e.tag in URDF_TAGS and parent.tag == "joint":
        return f"a {parent.attributes.get('type')} joint has none", "ok"
    if e.tag in URDF_TAGS:
        return f"it has no meaning inside <{parent.tag}>", "warning"
    if e.tag.startswith("xacro:"):
        return "a xacro macro that was not expanded; run xacro on the file first", "warning"
    close = get_close_matches(e.tag, URDF_TAGS, n=1, cutoff=0.75)
    return "not an element of URDF" + (f"; did you mean <{close[0]}>?" if close else ""), "warning"
