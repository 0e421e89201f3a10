"""Reader of URDF, the robot description of ROS: links and joints as XML; nothing is dropped silently.

Conventions: fixed joints are lumped and their links stay as frames; `continuous` is a revolute joint with one
coordinate and no limits; a link without <inertial> is massless; a `mimic` joint has no coordinate of its own; a limit
that cannot be meant (lower above upper) is left out with a warning. `ball` and `spherical` are joint types, too. Closed
loops are read in the notations of other tools: urdf_loops.py.

The reader marks the elements and attributes that it reads (xml_elements.py); everything else in the file is
grouped, and has a line in the report.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

import numpy as np

from bellcrank.errors import ModelError, unknown
from bellcrank.formats import urdf_loops
from bellcrank.formats.locked_joints import Lock, lock_joints
from bellcrank.formats.xml_elements import XmlElement
from bellcrank.model import Mechanism, mechanism_of
from bellcrank.model.joints import KINDS
from bellcrank.model.parts import Array, Body, Joint, Limits, Mimic, ReportLine, matrix, triple
from bellcrank.model.pose import RIGHT_ANGLES, AngleReader

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


# URDF's joint types -> ours.
JOINT_TYPES = {"continuous": "revolute", "ball": "spherical"} | {
    kind: kind for kind in ("revolute", "prismatic", "fixed", "floating", "planar", "spherical")
}


def read_urdf(
    robot: XmlElement,
    *,
    base: str = "fixed",
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    check: str = "error",
    right_angles: float = RIGHT_ANGLES,
    lock: Lock = (),
    loop_file: urdf_loops.LoopFile | None = None,
) -> Mechanism:
    """Read a mechanism from the document `robot`.

    Parameters
    ----------
    robot
        Root element.
    base, gravity, check, right_angles, lock
        As in `read`.
    loop_file
        Closed loops of a YAML file.
    """
    reader = _UrdfReader(AngleReader(right_angles))
    source = robot.source
    name = robot.get("name") or source.rsplit("/", 1)[-1].removesuffix(".urdf")
    bodies = [reader.link(e) for e in robot.distinct_children("link")]
    joints = [reader.joint(e) for e in robot.distinct_children("joint")]
    if not bodies:
        macros = any(child.tag.startswith("xacro:") for child in robot.children)
        tip = " Its contents are xacro macros: run xacro on it first (xacro in.urdf > out.urdf)." if macros else ""
        raise robot.error(f"has no <link>; expected at least one.{tip}")
    root = _root_link(robot, bodies, joints)
    links = [b.name for b in bodies]
    if loop_file is not None:
        joints, loop_file_lines = urdf_loops.retype_joints(loop_file, joints)
        reader.lines += loop_file_lines
    closing = list(_closures(robot, loop_file, joints, links, reader.angles))
    mounted, ground, joints = reader.mount(root, bodies, joints, base)
    if not isinstance(lock, tuple) or lock:
        joints, lock_lines = lock_joints(joints, lock)
        reader.lines += lock_lines
    fixed_links = _fixed_to_ground(ground, joints)
    lines = [*(_body_line(b, fixed_links) for b in bodies), *reader.lines]
    lines += [*(line for c in closing for line in c.lines), *leftovers(robot)]
    loops, frames = [x for c in closing for x in c.loops], [f for c in closing for f in c.frames]
    parts = (mounted, joints, frames, loops)
    try:
        return mechanism_of(name, *parts, ground=ground, gravity=gravity, source=source, lines=lines, checks=check)
    except ModelError as error:
        raise ModelError(f"{source}: {error}") from None


def _closures(
    robot: XmlElement,
    loop_file: urdf_loops.LoopFile | None,
    joints: Sequence[Joint],
    links: Sequence[str],
    angles: AngleReader,
) -> Iterator[urdf_loops.LoopClosures]:
    """Yield the closed loops of the document and of the YAML file, where they have any."""
    if any(e.tag in urdf_loops.LOOP_TAGS for e in robot.children):
        yield urdf_loops.read_loops(robot, joints, links, angles)
    if loop_file is not None:
        yield urdf_loops.loop_file_closures(loop_file, links)


@dataclass
class _UrdfReader:
    angles: AngleReader
    lines: list[ReportLine] = field(default_factory=list)

    def note(self, e: XmlElement, text: str, level: str = "note") -> None:
        self.lines.append(ReportLine(e.name, text, level))

    def link(self, e: XmlElement) -> Body:
        name = e.require_attribute("name", "the link's name")
        inertial = e.child("inertial")
        if inertial is None:
            return Body(name, declared=False)
        mass = inertial.require_child("mass").number("value")
        R, com = inertial.origin(self.angles, self.lines)
        I = self.inertia(inertial.require_child("inertia"))
        return Body(name, mass, triple(com), matrix(R @ I @ R.T))

    def inertia(self, e: XmlElement) -> Array:
        """Return the inertia matrix; products of inertia are often omitted and then zero, the moments are required."""
        missing = [k for k in ("ixy", "ixz", "iyz") if k not in e.attributes]
        if missing:
            self.note(e, f"no {', '.join(missing)}: taken as 0")
        xx, yy, zz = (e.number(k) for k in ("ixx", "iyy", "izz"))
        xy, xz, yz = (e.number(k, 0.0) for k in ("ixy", "ixz", "iyz"))
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    def joint(self, e: XmlElement) -> Joint:
        name = e.require_attribute("name", "the joint's name")
        joint_type = e.known("type", "joint type", JOINT_TYPES)
        kind = e.attributes["type"].strip()
        parent = e.require_child("parent").require_attribute("link", "the name of the parent link")
        child = e.require_child("child").require_attribute("link", "the name of the child link")
        R, point = e.origin(self.angles, self.lines)
        j = Joint(name, joint_type, parent, child, rotation=matrix(R), point=triple(point))
        if kind == "fixed":
            return j
        properties = [kind]
        if kind in ("revolute", "continuous", "prismatic", "planar"):
            j = replace(j, axis=self.axis(e))
        if (child_element := e.child("limit")) is not None:
            j = replace(j, limits=self.limits(child_element, kind))
            properties.append(_limits_text(j.limits))
        elif kind in ("revolute", "prismatic"):
            self.note(e, "no <limit>: taken as unlimited")
        if (child_element := e.child("dynamics")) is not None:
            j = replace(j, damping=child_element.number("damping", 0.0), friction=child_element.number("friction", 0.0))
            properties.append(f"damping {j.damping:g}, friction {j.friction:g}")
        if (child_element := e.child("mimic")) is not None:
            master = child_element.require_attribute("joint", "the name of a joint")
            mimic = Mimic(master, child_element.number("multiplier", 1.0), child_element.number("offset", 0.0))
            j = replace(j, mimic=mimic)
            properties.append(f'moves as {mimic.multiplier:g} * "{master}" + {mimic.offset:g}')
        self.note(e, f"{'; '.join(properties)}: kept", "ok")
        return j

    def axis(self, e: XmlElement) -> tuple[float, float, float]:
        element = e.child("axis")
        if element is None or "xyz" not in element.attributes:
            self.note(e, "no <axis>: (1, 0, 0), as URDF has it")
        return (1.0, 0.0, 0.0) if element is None else element.vector("xyz", (1.0, 0.0, 0.0))

    def limits(self, e: XmlElement, kind: str) -> Limits:
        velocity, effort = (e.number(k, math.inf, infinite=True) for k in ("velocity", "effort"))
        if kind == "continuous" or KINDS[JOINT_TYPES[kind]].nq != 1:
            if not {"lower", "upper"}.isdisjoint(e.attributes):
                self.note(e, f"lower and upper not used: a {kind} joint has none", "ok")
            e.read_attributes |= {"lower", "upper"}
            return Limits(velocity=velocity, effort=effort)
        given = {"lower", "upper"} & set(e.attributes)
        if not given:
            self.note(e, "neither lower nor upper: taken as unlimited")
            return Limits(velocity=velocity, effort=effort)
        lower, upper = (e.number(k, 0.0, infinite=True) for k in ("lower", "upper"))
        if len(given) == 1:
            self.note(e, f"no {({'lower', 'upper'} - given).pop()}: 0, as URDF has it")
        if lower > upper:
            self.note(e, f"lower {lower:g} is above upper {upper:g}: not used, taken as unlimited", "warning")
            lower, upper = -math.inf, math.inf
        return Limits(lower, upper, velocity, effort)

    def mount(
        self, root: Body, bodies: list[Body], joints: list[Joint], base: str
    ) -> tuple[list[Body], str, list[Joint]]:
        """Return the bodies that may move, the ground's name, and the joints including the base's own.

        Parameters
        ----------
        root
            The root link.
        bodies, joints
            All of the file.
        base
            "fixed" or "floating".
        """
        if base == "fixed":
            self.lines.append(ReportLine(f'link "{root.name}"', "the ground"))
            return [b for b in bodies if b is not root], root.name, joints
        ground = _unused_name("universe", [b.name for b in bodies])
        free = Joint(_unused_name("root_joint", [j.name for j in joints]), "floating", ground, root.name)
        self.lines.append(ReportLine(f'link "{root.name}"', f'floats in "{ground}" on joint "{free.name}"'))
        return bodies, ground, [free, *joints]


def _root_link(robot: XmlElement, bodies: Sequence[Body], joints: Sequence[Joint]) -> Body:
    """Return the only link that is not the child of a joint."""
    by_name = {b.name: b for b in bodies}
    for j, e in zip(joints, robot.children_named("joint"), strict=True):
        for end in (j.parent, j.child):
            if end not in by_name:
                raise e.error(unknown("link", end, by_name))
    children = {j.child for j in joints}
    roots = [b for b in bodies if b.name not in children]
    if not roots:
        raise robot.error(
            "every link is the child of a joint, so no link is the root. "
            "Expected one root link; make the joint that leads back to it a <loop_joint>."
        )
    if len(roots) > 1:
        names = ", ".join(f'"{b.name}"' for b in roots[:8]) + (", ..." if len(roots) > 8 else "")
        what = f"{len(roots)} links have no parent: {names}; expected one root."
        raise robot.error(f"{what} Join the others to it (a fixed joint will do).")
    return roots[0]


def _fixed_to_ground(ground: str, joints: Sequence[Joint]) -> set[str]:
    """Return the names of the ground and the links that fixed joints connect to it."""
    fixed_children: dict[str, list[str]] = {}
    for j in joints:
        if j.kind == "fixed":
            fixed_children.setdefault(j.parent, []).append(j.child)
    fixed_links, pending = {ground}, [ground]
    while pending:
        more = [child for child in fixed_children.get(pending.pop(), ()) if child not in fixed_links]
        fixed_links.update(more)
        pending += more
    return fixed_links


def _body_line(b: Body, still: set[str]) -> ReportLine:
    where = f'link "{b.name}"'
    if not b.declared:
        return ReportLine(where, "no <inertial>: massless")
    if b.name in still and b.mass:
        return ReportLine(where, f"{b.mass:g} kg: not used, for it is part of the ground and does not move", "note")
    return ReportLine(where, f"{b.mass:g} kg: kept")


def _unused_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _limits_text(limit: Limits) -> str:
    bounded = min(-limit.lower, limit.upper) < math.inf
    parts = [f"limits {limit.lower:g} .. {limit.upper:g}"] if bounded else []
    parts += [f"{k} {getattr(limit, k):g}" for k in ("velocity", "effort") if math.isfinite(getattr(limit, k))]
    return ", ".join(parts) or "no limits"
