"""Names of a MuJoCo model's elements.

MuJoCo has one list of names for each kind of element, and names may be empty. A mechanism has one list for joints and
loops and one for bodies and frames, and every element has a name.
"""

from __future__ import annotations

from typing import Any

from bellcrank.model.parts import ReportLine

# Kind of element -> field of the model with the addresses of their names.
NAME_ADDRESS_FIELDS = {
    "body": "name_bodyadr",
    "joint": "name_jntadr",
    "geom": "name_geomadr",
    "site": "name_siteadr",
    "equality": "name_eqadr",
    "tendon": "name_tendonadr",
    "actuator": "name_actuatoradr",
}
NAMES_SHOWN = 4  # names in one line of the report


class UniqueNames:
    """Names that are in use."""

    def __init__(self, taken: list[str]) -> None:
        self.taken = set(taken)

    def add_unique(self, wanted: str) -> str:
        """Return `wanted`, with underscores appended if it is taken, and add it to the list."""
        while wanted in self.taken:
            wanted += "_"
        self.taken.add(wanted)
        return wanted


def file_names(model: Any, kind: str) -> list[str]:
    """Return the names of this `kind` of element in the file of `model`, empty where there is none."""
    text = bytes(model.names)
    return [
        text[address : text.index(b"\0", address)].decode("utf-8", "replace")
        for address in getattr(model, NAME_ADDRESS_FIELDS[kind]).tolist()
    ]


def report_names(model: Any, kind: str) -> list[str]:
    """Return the names of this `kind` of element of `model` for the report, with a number where there is none."""
    return [name or f"{kind}{i}" for i, name in enumerate(file_names(model, kind))]


def element_list(kind: str, names: list[str]) -> str:
    """Return 'joint "a"', or '3 joints: "a", "b", ...', for the `names` of elements of this `kind`."""
    if len(names) == 1:
        return f'{kind} "{names[0]}"'
    more = ", ..." if len(names) > NAMES_SHOWN else ""
    plural = {"body": "bodies"}.get(kind, f"{kind}s")
    return f"{len(names)} {plural}: " + ", ".join(f'"{name}"' for name in names[:NAMES_SHOWN]) + more


class ElementNames:
    """Names of bodies, joints, sites and equalities, unique where a mechanism requires it."""

    def __init__(self, model: Any) -> None:
        self.lines: list[ReportLine] = []
        bodies, joints = file_names(model, "body"), file_names(model, "joint")
        bodies[0] = "world"
        self.frames, self.motions = UniqueNames([*filter(None, bodies)]), UniqueNames([*filter(None, joints)])
        self.body = [name or self.frames.add_unique(f"body{i}") for i, name in enumerate(bodies)]
        self.joint = [name or self.motions.add_unique(f"joint{i}") for i, name in enumerate(joints)]
        self.equality = [
            self._other(self.motions, "equality", name or f"equality{i}", bool(name))
            for i, name in enumerate(file_names(model, "equality"))
        ]
        self.site = [self._other(self.frames, "site", name, True) if name else "" for name in file_names(model, "site")]

    def _other(self, names: UniqueNames, kind: str, wanted: str, by_file: bool) -> str:
        new = names.add_unique(wanted)
        if by_file and new != wanted:
            self.lines.append(ReportLine(f'{kind} "{wanted}"', f'the name is taken: called "{new}"', "note"))
        return new
