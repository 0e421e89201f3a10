"""Denavit-Hartenberg tables as TOML files.

name = "arm"
convention = "modified"          # or "classic" (see formats/dh.py)
angles = "degrees"               # of theta and alpha; or "radians"

[[link]]                         # one for each joint, from the ground outwards; everything but mass is optional
name = "shoulder"                # of the link and its joint
joint = "R"                      # R turns, P slides
theta = 0                        # offset of the joint's angle (R), or the fixed angle (P)
d = 0.4                          # fixed distance (R), or offset of the joint's distance (P)
a = 0
alpha = 90
mass = 2.5                       # left out: massless
com = [0, 0, 0.1]                # in the link frame of the convention
inertia = [0.02, 0.02, 0.01]     # about the centre of mass: 3, 6 (xx, yy, zz, xy, xz, yz) or 3x3 numbers
damping = 0.1                    # also armature, friction, stiffness, rest, lower, upper, velocity, effort (SI)
"""

from __future__ import annotations

import tomllib
from typing import Any

from bellcrank.errors import ModelError, ReadError, brief, check_known
from bellcrank.formats.dh import from_dh
from bellcrank.model.mechanism import Mechanism

KEYS = ("name", "convention", "angles", "link")


def read_table(data: bytes, source: str, **options: Any) -> Mechanism:
    """Read a mechanism from the TOML text `data`.

    Parameters
    ----------
    data
        Content of the file.
    source
        Name of the file, for errors and the report.
    **options
        gravity, check, right_angles and lock, as in from_dh.
    """
    try:
        table: dict[str, Any] = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ReadError(f"{source}: not UTF-8 text: {error}. Save the file as UTF-8.") from None
    except ValueError as error:  # malformed numbers and dates may raise other errors than TOMLDecodeError
        raise ReadError(f"{source}: not TOML: {str(error)[:300]}. Correct the file there.") from None
    except RecursionError:
        raise ReadError(f"{source}: nested too deeply; this is not a Denavit-Hartenberg table.") from None
    for key in table:
        check_known("entry", key, KEYS, source, ReadError)
    links = table.get("link")
    if not isinstance(links, list) or not links or not all(isinstance(row, dict) for row in links):
        raise ReadError(f"{source}: has no [[link]] table; expected one for each joint, as in docs/reading.md.")
    angles = table.get("angles", "degrees")
    if angles not in ("degrees", "radians"):
        raise ReadError(f'{source}: angles is {brief(angles)}; expected "degrees" or "radians".')
    name = table.get("name") or source.rsplit("/", 1)[-1].removesuffix(".toml")
    if not isinstance(name, str):
        raise ReadError(f"{source}: name is {brief(name)}; expected a text.")
    convention = table.get("convention", "modified")
    try:
        return from_dh(name, links, convention, degrees=angles == "degrees", source=source, **options)
    except ModelError as error:
        raise ModelError(f"{source}: {error}") from None
