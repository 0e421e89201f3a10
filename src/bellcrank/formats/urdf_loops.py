"""Closed loops of URDF files, in the notations that are in use; the format itself has none.

<loop_joint name= type=>   Drake (until 2017) and Isaac Sim: <link1 link= xyz= rpy=/>, <link2 .../>, <axis xyz=/>. Isaac
                           Sim's manual writes <link1> twice.
<loop name= type=>         URDF+ (M. Chignoli, J.-J. Slotine, P. M. Wensing and S. Kim, URDF+: an enhanced URDF for
                           robots with kinematic loops, 2024): <predecessor link=> and <successor link=>, each with an
                           <origin/>, and <axis xyz=/>
<coupling name=>           URDF+: <predecessor link=/>, <successor link=/>, <ratio value=/>
<constraint name= type=>   the earlier name of both, and what URDF+'s own writer produces: type "position" (two points
                           meet) or "rolling" (a coupling)

The two frames of a loop are given in their links, and its axis in both frames. A coupling is between the joints that
move the links relative to their nearest common link: (that of the successor) = ratio * (that of the predecessor).

A YAML file beside the URDF has them in the notation of Gepetto's example-parallel-robots:

    closed_loop: [[frame_A, frame_B], ...]    links of the URDF whose frames meet
    type: [6d, 3d, ...]                       of each: held completely (a fixed joint; the default), or at the point
    joint_name: [...]                         joints that are not what the URDF says,
    joint_type: [SPHERICAL, ...]              and what they are: SPHERICAL, FIXED, or UJOINT_XY: a universal joint about
                                              the joint frame's x, then y
    name_mot: [...]                           the joints with motors, which say nothing of the motion

It needs pyyaml (the extra `yaml`): such files are lists in lists over several lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bellcrank.errors import ReadError, brief, check_known
from bellcrank.formats.xml_elements import XmlElement
from bellcrank.lazy_import import optional_import
from bellcrank.model.loop_checks import TURNING_JOINTS
from bellcrank.model.parts import EQUATIONS, Array, Frame, Joint, Loop, ReportLine, matrix, triple
from bellcrank.model.pose import AngleReader, axes_along

LOOP_TAGS = ("loop_joint", "loop", "constraint", "coupling")
# Their types -> ours.
LOOP_TYPES = {"continuous": "revolute", "ball": "spherical", "position": "spherical", "rolling": "gear"} | {
    kind: kind for kind in ("revolute", "prismatic", "cylindrical", "spherical", "planar", "fixed")
}
YAML_KEYS = ("closed_loop", "type", "joint_name", "joint_type", "name_mot")
YAML_LOOP_TYPES = {"6d": "fixed", "3d": "spherical"}
AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
MAX_YAML_BYTES = 1_000_000  # bytes, and more than any robot needs
MAX_YAML_DEPTH = 20
# Type in the file -> ours, and its axes.
YAML_JOINT_TYPES: dict[str, tuple[str, dict[str, Any]]] = {"SPHERICAL": ("spherical", {}), "FIXED": ("fixed", {})} | {
    f"UJOINT_{a}{b}": ("universal", {"axis": AXES[a], "second_axis": AXES[b]}) for a in AXES for b in AXES if a != b
}


@dataclass
class LoopClosures:
    """Loops of a file, the frames that they need, and lines of the report."""

    loops: list[Loop] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    lines: list[ReportLine] = field(default_factory=list)


def read_loops(robot: XmlElement, joints: Sequence[Joint], links: Sequence[str], angles: AngleReader) -> LoopClosures:
    """Return the closed loops of the document `robot`.

    Parameters
    ----------
    robot
        Root element.
    joints, links
        All joints, and the names of all links.
    angles
        Reader of angles.
    """
    result = LoopClosures()
    for e in robot.distinct_children(*LOOP_TAGS):
        name = e.require_attribute("name", "the loop's name")
        coupled = e.tag == "coupling" or (e.tag == "constraint" and "type" not in e.attributes)
        kind = "gear" if coupled else e.known("type", "type of loop", LOOP_TYPES)
        ends = list(_ends(e, links))
        if kind == "gear":
            loop = _coupling(e, name, [end.require_attribute("link", "the name of a link") for end in ends], joints)
            result.lines.append(ReportLine(e.name, f"{loop.joints[1]} = {loop.value:g} * {loop.joints[0]}: kept"))
        else:
            Q = _axes(e, kind, result)
            for end, letter in zip(ends, "ab", strict=True):
                # The attributes of <link1>, or an <origin>.
                pose = end.pose if end.tag in ("link1", "link2") else end.origin
                R, point = pose(angles, result.lines)
                link = end.attributes["link"].strip()
                result.frames.append(Frame(f"{name}.{letter}", link, matrix(R @ Q), triple(point)))
            loop = Loop(name, kind, f"{name}.a", f"{name}.b")
            result.lines.append(ReportLine(e.name, f"closes a loop, {kind}: {EQUATIONS[kind]} equations"))
        result.loops.append(loop)
    return result


def _ends(e: XmlElement, links: Sequence[str]) -> Iterator[XmlElement]:
    """Yield the two elements that name the links."""
    first, second = ("link1", "link2") if e.tag == "loop_joint" else ("predecessor", "successor")
    ends = [*e.children_named(first), *e.children_named(second)]
    if len(ends) != 2:
        has = ", ".join(f"<{child.tag}>" for child in e.children[:10]) or "nothing"
        has += f", ... ({len(e.children)} in all)" if len(e.children) > 10 else ""
        raise e.error(f"expected <{first}> and <{second}>, one each; it has {has}.")
    for end in ends:
        link = end.require_attribute("link", "the name of a link")
        check_known("link", link, links, end.where, ReadError)
        yield end


def _axes(e: XmlElement, kind: str, closures: LoopClosures) -> Array:
    """Return axes with z along the axis of the loop."""
    if kind in ("spherical", "fixed"):
        return np.eye(3)
    axis = e.child("axis")
    if axis is None or "xyz" not in axis.attributes:
        closures.lines.append(ReportLine(e.name, "no <axis>: (1, 0, 0), as URDF has it", "note"))
    z = np.array((1.0, 0.0, 0.0) if axis is None else axis.vector("xyz", (1.0, 0.0, 0.0)))
    if float(np.linalg.norm(z)) < 1e-9:
        raise e.error(f"its <axis> is {tuple(z)} and has no direction; expected a unit vector.")
    return axes_along(z)


def _coupling(e: XmlElement, name: str, links: Sequence[str], joints: Sequence[Joint]) -> Loop:
    given = e.child("ratio")
    ratio = 1.0 if given is None else given.number("value")
    carrier = {j.child: j for j in joints}
    paths = [_path_to_root(link, carrier) for link in links]
    while all(paths) and paths[0][-1] is paths[1][-1]:  # joints that carry both do not move one against the other
        paths = [way[:-1] for way in paths]
    moving_joints = [[j for j in way if j.kind != "fixed"] for way in paths]
    for link, way in zip(links, moving_joints, strict=True):
        if len(way) != 1:
            names = ", ".join(f'"{j.name}"' for j in way) or "none"
            raise e.error(
                f'"{link}" moves relative to the link that both ends share by {len(way)} joints ({names}); '
                "expected exactly one on either side."
            )
    first, second = moving_joints[0][0], moving_joints[1][0]
    if ratio == 0.0:
        raise e.error(f'the ratio is 0, which would hold joint "{second.name}" still; expected another.')
    return coupling(name, {j.name: j.kind for j in (first, second)}, ratio)


def coupling(name: str, kinds: Mapping[str, str], ratio: float, offset: float = 0.0) -> Loop:
    """Return the gear or rack by which the second joint of `kinds`, {name: type}, is `ratio` * the first + `offset`."""
    first, second = kinds
    turning = [kind in TURNING_JOINTS for kind in kinds.values()]
    if turning == [False, True]:  # the first joint of a rack is the rotating one
        return Loop(name, "rack", value=1.0 / ratio, offset=-offset / ratio, joints=(second, first))
    kind = "rack" if turning == [True, False] else "gear"
    return Loop(name, kind, value=ratio, offset=offset, joints=(first, second))


def _path_to_root(link: str, carrier: Mapping[str, Joint]) -> list[Joint]:
    """Return the joints from a link to the root."""
    joints: list[Joint] = []
    while link in carrier and carrier[link] not in joints:
        joints.append(carrier[link])
        link = joints[-1].parent
    return joints


@dataclass(frozen=True)
class LoopFile:
    """Content of the file, checked as far as is possible without the URDF."""

    source: str
    loops: tuple[tuple[str, str, str], ...]  # frame, frame, type
    joints: tuple[tuple[str, str], ...]  # name, type
    lines: tuple[ReportLine, ...]  # about keys that are not used


def _content(data: bytes, source: str) -> Any:
    """Return the content of the file: texts, numbers, lists and mappings."""
    yaml = optional_import("yaml", "yaml", f"{source} (loops=False leaves it alone)")
    if len(data) > MAX_YAML_BYTES:
        raise ReadError(f"{source}: {len(data)} bytes; expected a YAML file of loops, at most {MAX_YAML_BYTES}.")
    depth = 0
    try:
        for event in yaml.parse(data, Loader=yaml.SafeLoader):
            where = f"{source}, line {event.start_mark.line + 1}"
            if isinstance(event, yaml.AliasEvent):
                raise ReadError(
                    f"{where}: refused: an alias (*{event.anchor[:40]}), which can be used to attack a reader. "
                    "A YAML file of loops needs none; write out what is meant."
                )
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_YAML_DEPTH:
                raise ReadError(f"{where}: nested {MAX_YAML_DEPTH} deep; this is not a YAML file of loops.")
        return yaml.safe_load(data)
    except (ReadError, MemoryError):
        raise
    except Exception as error:  # malformed dates, numbers and booleans may raise any error in yaml
        why = " ".join(str(error).split())[:300] if isinstance(error, (yaml.YAMLError, ValueError)) else "a wrong tag"
        raise ReadError(f"{source}: not YAML: {why}. Correct the file there.") from None


def read_loop_file(data: bytes, source: str) -> LoopFile:
    """Return the closed loops of the YAML file `source` with the content `data`."""
    content = _content(data, source)
    if not isinstance(content, dict):
        raise ReadError(f"{source}: expected keys such as closed_loop, found {brief(content)}.")
    pairs = _pairs(content, source)
    kinds = [kind.lower() for kind in _texts(content, "type", source)] if "type" in content else ["6d"] * len(pairs)
    if len(kinds) != len(pairs):
        raise ReadError(f"{source}: closed_loop has {len(pairs)} pairs and type {len(kinds)}; expected one for each.")
    for kind in kinds:
        check_known("type of closed_loop", kind, YAML_LOOP_TYPES, source, ReadError)
    names, types = _texts(content, "joint_name", source), _texts(content, "joint_type", source)
    if len(names) != len(types):
        raise ReadError(f"{source}: {len(names)} joint_name and {len(types)} joint_type; expected one for each.")
    for kind in types:
        check_known("joint_type", kind, YAML_JOINT_TYPES, source, ReadError)
    loops = tuple((a, b, kind) for (a, b), kind in zip(pairs, kinds, strict=True))
    lines = []
    if motors := _texts(content, "name_mot", source):
        lines.append(ReportLine("name_mot", f"not used: which joints have motors ({', '.join(motors)})"))
    for key in content:
        if key not in YAML_KEYS:
            name = key if isinstance(key, str) else brief(key)
            lines.append(ReportLine(name, f"not used: not a known key ({source})", "warning"))
    return LoopFile(source, loops, tuple(zip(names, types, strict=True)), tuple(lines))


def _pairs(content: dict[Any, Any], source: str) -> list[list[str]]:
    """Return the pairs of links that loops join."""
    pairs = content.get("closed_loop") or []
    if not isinstance(pairs, list) or not all(isinstance(p, list) and len(p) == 2 for p in pairs):
        raise ReadError(f"{source}: closed_loop is {brief(pairs)}; expected pairs: [[frame_A, frame_B], ...].")
    for pair in pairs:
        if not all(isinstance(link, str) for link in pair):
            raise ReadError(f"{source}: closed_loop has {brief(pair)}; expected the names of two links.")
    return pairs


def _texts(content: dict[Any, Any], key: str, source: str) -> list[str]:
    """Return a list of texts; a single text counts as a list of one."""
    value = content.get(key)
    value = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(x, str) for x in value):
        raise ReadError(f"{source}: {key} is {brief(value)}; expected a list of names.")
    return value


def retype_joints(loop_file: LoopFile, joints: Sequence[Joint]) -> tuple[list[Joint], list[ReportLine]]:
    """Return the `joints` with the types that the `loop_file` gives them, and lines for the report."""
    by_name = {j.name: j for j in joints}
    lines = []
    for name, kind in loop_file.joints:
        check_known("joint", name, by_name, f"{loop_file.source}: joint_name", ReadError)
        j = by_name[name]
        new_kind, axes = YAML_JOINT_TYPES[kind]
        by_name[name] = Joint(j.name, new_kind, j.parent, j.child, rotation=j.rotation, point=j.point, **axes)
        text = f"{j.kind} in the URDF, {new_kind} by {loop_file.source}"
        lines.append(ReportLine(f'joint "{name}"', text, "note"))
    return list(by_name.values()), lines


def loop_file_closures(loop_file: LoopFile, links: Sequence[str]) -> LoopClosures:
    """Return the closed loops of the `loop_file`; `links` are the names of all links."""
    result = LoopClosures()
    for a, b, kind in loop_file.loops:
        name = f"{a}:{b}"
        for link, letter in ((a, "a"), (b, "b")):
            check_known("link", link, links, f"{loop_file.source}: closed_loop", ReadError)
            result.frames.append(Frame(f"{name}.{letter}", link))
        held = YAML_LOOP_TYPES[kind]
        result.loops.append(Loop(name, held, f"{name}.a", f"{name}.b"))
        text = f"{kind}: {held}, {EQUATIONS[held]} equations (from {loop_file.source})"
        result.lines.append(ReportLine(f'closed_loop "{name}"', text))
    result.lines += loop_file.lines
    return result
