"""Closed loops in URDF files, in the notations that are in use; the format itself has none.

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
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bellcrank.errors import ReadError, check_known
from bellcrank.formats.number_checks import AngleReader, axes_along
from bellcrank.formats.xml_elements import XmlElement
from bellcrank.model.loop_checks import TURNING_JOINTS
from bellcrank.model.parts import EQUATIONS, Array, Frame, Joint, Loop, ReportLine, matrix, triple

LOOP_TAGS = ("loop_joint", "loop", "constraint", "coupling")
# Their types -> ours.
LOOP_TYPES = {
    "continuous": "revolute",
    "ball": "spherical",
    "position": "spherical",
    "rolling": "gear",
} | {kind: kind for kind in ("revolute", "prismatic", "cylindrical", "spherical", "planar", "fixed")}


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
                result.frames.append(
                    Frame(f"{name}.{letter}", end.attributes["link"].strip(), matrix(R @ Q), triple(point))
                )
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
