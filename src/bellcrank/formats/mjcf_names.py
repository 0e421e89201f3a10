"""Names of a MuJoCo model's elements.

MuJoCo has one list of names for each kind of element, and names may be empty. A mechanism has one list for joints and
loops and one for bodies and frames, and every element has a name.
"""

from __future__ import annotations

from typing import Any

from bellcrank.model.parts import Line

# Kind of element -> field of the model with the addresses of their names.
ADDRESSES = {
    "body": "name_bodyadr",
    "joint": "name_jntadr",
    "geom": "name_geomadr",
    "site": "name_siteadr",
    "equality": "name_eqadr",
    "tendon": "name_tendonadr",
    "actuator": "name_actuatoradr",
}


class NameList:
    """Names that are in use."""

    def __init__(self, taken: list[str]) -> None:
        self.taken = set(taken)

    def new(self, wanted: str) -> str:
        """Return `wanted`, with underscores appended if it is taken, and add it to the list."""
        while wanted in self.taken:
            wanted += "_"
        self.taken.add(wanted)
        return wanted


def given(model: Any, kind: str) -> list[str]:
    """Return the names of this `kind` of element in the file of `model`, empty where there is none."""
    text = bytes(model.names)
    return [
        text[at : text.index(b"\0", at)].decode("utf-8", "replace") for at in getattr(model, ADDRESSES[kind]).tolist()
    ]


def shown(model: Any, kind: str) -> list[str]:
    """Return the names of this `kind` of element of `model` for the report, with a number where there is none."""
    return [name or f"{kind}{i}" for i, name in enumerate(given(model, kind))]


class Names:
    """Names of bodies, joints, sites and equalities, unique where a mechanism requires it."""

    def __init__(self, model: Any) -> None:
        self.lines: list[Line] = []
        bodies, joints = given(model, "body"), given(model, "joint")
        bodies[0] = "world"
        self.frames, self.motions = NameList([*filter(None, bodies)]), NameList([*filter(None, joints)])
        self.body = [name or self.frames.new(f"body{i}") for i, name in enumerate(bodies)]
        self.joint = [name or self.motions.new(f"joint{i}") for i, name in enumerate(joints)]
        self.equality = [
            self._other(self.motions, "equality", name or f"equality{i}", bool(name))
            for i, name in enumerate(given(model, "equality"))
        ]
        self.site = [self._other(self.frames, "site", name, True) if name else "" for name in given(model, "site")]

    def _other(self, names: NameList, kind: str, wanted: str, by_file: bool) -> str:
        new = names.new(wanted)
        if by_file and new != wanted:
            self.lines.append(Line(f'{kind} "{wanted}"', f'the name is taken: called "{new}"', "note"))
        return new
