"""Closed loops from a YAML file beside a URDF, in the notation of Gepetto's example-parallel-robots.

    closed_loop: [[frame_A, frame_B], ...]    links of the URDF whose frames meet
    type: [6d, 3d, ...]                       of each: held completely (a fixed joint; the default), or at the point
    joint_name: [...]                         joints that are not what the URDF says,
    joint_type: [SPHERICAL, ...]              and what they are: SPHERICAL, FIXED, or UJOINT_XY: a universal joint about
                                              the joint frame's x, then y
    name_mot: [...]                           the joints with motors, which say nothing of the motion

Needs pyyaml (the extra `yaml`): such files are lists in lists over several lines.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bellcrank.errors import InputError, ReadError, brief, check_known
from bellcrank.formats.file_bytes import file_bytes
from bellcrank.formats.urdf_loops import LoopClosures
from bellcrank.lazy_import import optional_import
from bellcrank.model.parts import EQUATIONS, Frame, Joint, Loop, ReportLine

KEYS = ("closed_loop", "type", "joint_name", "joint_type", "name_mot")
LOOP_TYPES = {"6d": "fixed", "3d": "spherical"}
AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
MAX_YAML_BYTES = 1_000_000  # bytes, and more than any robot needs
MAX_DEPTH = 20
# Type in the file -> ours, and its axes.
JOINT_TYPES: dict[str, tuple[str, dict[str, Any]]] = {"SPHERICAL": ("spherical", {}), "FIXED": ("fixed", {})} | {
    f"UJOINT_{a}{b}": ("universal", {"axis": AXES[a], "second_axis": AXES[b]}) for a in AXES for b in AXES if a != b
}


@dataclass(frozen=True)
class LoopFile:
    """Content of the file, checked as far as is possible without the URDF."""

    source: str
    loops: tuple[tuple[str, str, str], ...]  # frame, frame, type
    joints: tuple[tuple[str, str], ...]  # name, type
    lines: tuple[ReportLine, ...]  # about keys that are not used


def find_loop_file(urdf: Path, loops: str | os.PathLike[str] | bool) -> LoopFile | None:
    """Return the YAML file `loops`, or the one beside `urdf` with its name (robot.yaml, robot.yml), or None.

    Parameters
    ----------
    urdf
        Path of the URDF.
    loops
        Path of a YAML file; True for the one beside the URDF; False for none.
    """
    if loops is False:
        return None
    if loops is not True:
        if not isinstance(loops, (str, os.PathLike)):
            raise InputError(f"loops is {loops!r}; expected the path of a YAML file, or False for none.")
        return _read(file_bytes(Path(loops)), os.fspath(loops))
    for suffix in (".yaml", ".yml"):
        beside = urdf.with_suffix(suffix)
        if beside.is_file() and b"closed_loop" in (data := file_bytes(beside)):  # other files are not about loops
            return _read(data, str(beside))
    return None


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
            if depth > MAX_DEPTH:
                raise ReadError(f"{where}: nested {MAX_DEPTH} deep; this is not a YAML file of loops.")
        return yaml.safe_load(data)
    except (ReadError, MemoryError):
        raise
    except Exception as error:  # malformed dates, numbers and booleans may raise any error in yaml
        why = " ".join(str(error).split())[:300] if isinstance(error, (yaml.YAMLError, ValueError)) else "a wrong tag"
        raise ReadError(f"{source}: not YAML: {why}. Correct the file there.") from None


def _read(data: bytes, source: str) -> LoopFile:
    content = _content(data, source)
    if not isinstance(content, dict):
        raise ReadError(f"{source}: expected keys such as closed_loop, found {brief(content)}.")
    pairs = _pairs(content, source)
    kinds = [kind.lower() for kind in _texts(content, "type", source)] if "type" in content else ["6d"] * len(pairs)
    if len(kinds) != len(pairs):
        raise ReadError(f"{source}: closed_loop has {len(pairs)} pairs and type {len(kinds)}; expected one for each.")
    for kind in kinds:
        check_known("type of closed_loop", kind, LOOP_TYPES, source, ReadError)
    names, types = _texts(content, "joint_name", source), _texts(content, "joint_type", source)
    if len(names) != len(types):
        raise ReadError(f"{source}: {len(names)} joint_name and {len(types)} joint_type; expected one for each.")
    for kind in types:
        check_known("joint_type", kind, JOINT_TYPES, source, ReadError)
    loops = tuple((a, b, kind) for (a, b), kind in zip(pairs, kinds, strict=True))
    lines = []
    if motors := _texts(content, "name_mot", source):
        lines.append(ReportLine("name_mot", f"not used: which joints have motors ({', '.join(motors)})"))
    for key in content:
        if key not in KEYS:
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
        new_kind, axes = JOINT_TYPES[kind]
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
        held = LOOP_TYPES[kind]
        result.loops.append(Loop(name, held, f"{name}.a", f"{name}.b"))
        text = f"{kind}: {held}, {EQUATIONS[held]} equations (from {loop_file.source})"
        result.lines.append(ReportLine(f'closed_loop "{name}"', text))
    result.lines += loop_file.lines
    return result
