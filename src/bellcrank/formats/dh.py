"""Mechanisms from tables of joint parameters: Denavit-Hartenberg in both conventions, Wong's (k, l) and Saha's (r).

    classic    frame i at the far end of link i,  X = Rz(theta) Tz(d) Tx(a) Rx(alpha)  (Denavit, Hartenberg; distal)
    modified   frame i at the near end of link i, X = Rx(alpha) Tx(a) Rz(theta) Tz(d)  (Craig; Khalil; proximal)
    Wong 1991  modified, with hinges given from each link's centre of gravity instead of a and d
    Saha 2001  classic (his frame i + 1 is our i), with the far hinge given from the centre of mass

Masses, centres of mass and inertias are given in the link frame of the convention; `pose(q, "link3")` is that frame.
A joint's coordinate is added to the table's theta (R) or d (P).

A Denavit-Hartenberg table may be a TOML file:

    name = "arm"
    convention = "modified"          # or "classic"
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

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import ModelError, ReadError, brief, check_known
from bellcrank.formats.locked_joints import Lock, lock_joints
from bellcrank.formats.number_checks import inertia, number, vector
from bellcrank.model import Mechanism, mechanism_of
from bellcrank.model.parts import Body, Frame, Joint, Limits, Number, ReportLine, matrix, triple
from bellcrank.model.pose import RIGHT_ANGLES, AngleReader, axis_rotation
from bellcrank.parameters import has_free

GRAVITY = (0.0, 0.0, -9.81)
JOINT_TYPES = {"R": "revolute", "P": "prismatic"}
# Properties of a joint that a row may have beside its geometry.
FORCE_OPTIONS = ("armature", "damping", "friction", "stiffness", "rest")
LIMIT_OPTIONS = ("lower", "upper", "velocity", "effort")
FILE_KEYS = ("name", "convention", "angles", "link")  # entries of a TOML file


@dataclass(frozen=True)
class DhRow:
    """One joint and the link that it moves; a link without mass is massless, inertia is about its centre of mass.

    `inertia` has 3 moments, 6 numbers (xx, yy, zz, xy, xz, yz) or is a 3x3 matrix.
    """

    joint: str = "R"
    theta: Number = 0.0
    d: Number = 0.0
    a: Number = 0.0
    alpha: Number = 0.0
    mass: Number | None = None
    com: Sequence[Number] = (0.0, 0.0, 0.0)
    inertia: Any = (0.0, 0.0, 0.0)
    name: str = ""  # name of the link and its joint; by default link1 and joint1
    options: Mapping[str, Number] = field(default_factory=dict)  # FORCE_OPTIONS and LIMIT_OPTIONS by name


@explain_argument_errors
def from_dh(
    name: str,
    rows: Sequence[DhRow | Mapping[str, Any]],
    convention: str = "modified",
    *,
    degrees: bool = False,
    gravity: Sequence[float] = GRAVITY,
    check: str = "error",
    right_angles: float = RIGHT_ANGLES,
    lock: Lock = (),
    source: str = "Denavit-Hartenberg table",
    lines: Sequence[ReportLine] = (),
) -> Mechanism:
    """Return a serial arm from its Denavit-Hartenberg table.

    Parameters
    ----------
    name : str
        Name of the mechanism.
    rows : sequence of DhRow or mapping
        One row for each joint, from the ground outwards.
    convention : {"modified", "classic"}
        See the module docstring.
    degrees : bool
        theta and alpha of the table are in degrees (coordinates and limits never are).
    gravity : sequence of 3 floats
        In world axes, m/s^2.
    check : {"error", "warn"}
        "error" refuses inertias that no real body has; "warn" reports them.
    right_angles : float
        Angles within this many radians of a multiple of a quarter turn are taken as exact, and reported.
    lock : sequence of str, or mapping of str to float
        Joints to fix, by name (at zero) or as {name: value}.
    source : str
        Name of the source in the report.
    lines : sequence of Line
        Further lines of the report.

    Returns
    -------
    Mechanism
        The arm.

    Raises
    ------
    ModelError
        If the table is invalid.

    Examples
    --------
    >>> row = {"joint": "R", "a": 1.0, "mass": 1.0, "com": (0.5, 0, 0), "inertia": (0.01, 0.1, 0.1)}
    >>> bc.from_dh("two rods", [row, row]).nv
    2
    """
    check_known("convention", convention, ("classic", "modified"), f'mechanism "{name}"', ModelError)
    if not len(rows):
        raise ModelError(f'mechanism "{name}": the table has no rows; expected one for each joint.')
    angles = AngleReader(right_angles)
    bodies, joints, frames, report_lines = [], [], [], list(lines)
    R, p, parent = np.eye(3), np.zeros(3), "ground"  # the previous frame, in the previous body's frame
    for i, entry in enumerate(rows, 1):
        row = entry if isinstance(entry, DhRow) else as_row(entry, f"row {i}")
        link, joint_name = row.name or f"link{i}", row.name or f"joint{i}"
        where = f'row {i} ("{link}")'
        check_known("joint", row.joint, JOINT_TYPES, where, ModelError, " R turns, P slides.")
        theta, d, a, alpha = (number(getattr(row, k), where, k) for k in ("theta", "d", "a", "alpha"))
        theta, alpha = (angles.read(_radians(x) if degrees else x) for x in (theta, alpha))
        twist, offset = axis_rotation(0, alpha), np.array([a, 0.0, 0.0])
        if convention == "modified":
            R, p = R @ twist, p + R @ offset
        R, p = R @ axis_rotation(2, theta), p + R @ np.array([0.0, 0.0, d])
        pose, options = (matrix(R), triple(p)), _options(row.options, where)
        joints.append(Joint(joint_name, JOINT_TYPES[row.joint], parent, link, *pose, **options))
        # The link frame in the body's frame, whose origin is at the joint: both are equal in the modified convention.
        R, p = (np.eye(3), np.zeros(3)) if convention == "modified" else (twist, offset)
        bodies.append(_body(link, row, R, p, where))
        frames.append(Frame(link, link, matrix(R), triple(p)))
        geometry = f"theta {theta:g}, d {d:g}, a {a:g}, alpha {alpha:g}"
        report_lines.append(ReportLine(where, f"{convention}, {JOINT_TYPES[row.joint]}: {geometry}"))
        report_lines += [ReportLine(where, note, "note") for note in angles.pop_notes()]
        parent = link
    joints, lock_lines = lock_joints(joints, lock)
    report_lines += lock_lines
    return mechanism_of(name, bodies, joints, frames, gravity=gravity, source=source, lines=report_lines, checks=check)


@explain_argument_errors
def from_wong(
    name: str,
    *,
    alpha: Sequence[float],
    mass: Sequence[float],
    k: Sequence[Sequence[float]],
    l: Sequence[Sequence[float]] | Mapping[tuple[int, int], Sequence[float]],
    inertia: Sequence[Any],
    parent: Sequence[int] | None = None,
    names: Sequence[str] = (),
    gravity: Sequence[float] = GRAVITY,
    check: str = "error",
    source: str = "Wong's (k, l) table",
    lines: Sequence[ReportLine] = (),
) -> Mechanism:
    """Return a mechanism of revolute joints, chain or tree, from Wong's table.

    Source: D. Wong, thesis, University of British Columbia, 1991, sections 2.2.4 and 3.1.2. The axes of link i have z
    along its own hinge and A(i-1 -> i) = Rz(theta)^T Rx(alpha)^T (eq 3.18). The first hinge is at the origin.

    Parameters
    ----------
    name : str
        Name of the mechanism.
    alpha : sequence of float
        Twist of each link, rad.
    mass : sequence of float
        Mass of each link, kg.
    k : sequence of 3-vectors
        k[i] goes from link i's centre of gravity to its own hinge, in axes of link i, m.
    l : mapping of (i, j) to 3-vector, or sequence of 3-vectors
        l[i, j] goes from link i's centre of gravity to the hinge of link j, in axes of link i, m; links count from 1.
        For a chain also a list, l[i] to the next hinge.
    inertia : sequence
        Inertia of each link about its centre of gravity: 3, 6 or 3x3 numbers, kg m^2.
    parent : sequence of int, optional
        Number of each link's parent, 0 for the ground; by default a chain.
    names : sequence of str
        Names of the links; by default link1, link2, ...
    gravity : sequence of 3 floats
        In world axes, m/s^2.
    check : {"error", "warn"}
        "error" refuses inertias that no real body has; "warn" reports them.
    source : str
        Name of the source in the report.
    lines : sequence of Line
        Further lines of the report.

    Returns
    -------
    Mechanism
        The chain or tree.

    Raises
    ------
    ModelError
        If the table is invalid.
    """
    n = len(mass)
    parent = list(range(n)) if parent is None else list(parent)
    labels = list(names) or [f"link{i}" for i in range(1, n + 1)]
    hinges = {(i + 1, i + 2): v for i, v in enumerate(l)} if not isinstance(l, Mapping) else dict(l)
    _check_lengths(name, n, alpha=alpha, k=k, inertia=inertia, parent=parent, names=labels)
    if odd := [x for x in labels if not isinstance(x, str)]:
        raise ModelError(f'mechanism "{name}": names has {brief(odd[0])}; expected texts.')
    bodies, joints, report_lines = [], [], list(lines)
    for i in range(1, n + 1):
        link, where, p = labels[i - 1], f'link {i} ("{labels[i - 1]}")', parent[i - 1]
        if not 0 <= p < i:
            raise ModelError(f"{where}: its parent is {p}; expected 0 (the ground) or the number of an earlier link.")
        if p and (p, i) not in hinges:
            raise ModelError(
                f"{where}: there is no l[{p}, {i}], the vector from link {p}'s centre of gravity to this hinge."
            )
        point = np.subtract(vector(hinges[p, i], where, "l"), vector(k[p - 1], where, "k")) if p else np.zeros(3)
        row = DhRow(mass=mass[i - 1], com=np.negative(vector(k[i - 1], where, "k")).tolist(), inertia=inertia[i - 1])
        bodies.append(_body(link, row, np.eye(3), np.zeros(3), where))
        joint = link if len(names) else f"joint{i}"
        twist = axis_rotation(0, number(alpha[i - 1], where, "alpha"))
        carrier, shown = (labels[p - 1],) * 2 if p else ("ground", "the ground")
        report_lines.append(ReportLine(where, f"revolute on {shown}: alpha {alpha[i - 1]:g}"))
        joints.append(Joint(joint, "revolute", carrier, link, matrix(twist), triple(point + 0.0)))
    return mechanism_of(name, bodies, joints, gravity=gravity, source=source, lines=report_lines, checks=check)


@explain_argument_errors
def from_saha(
    name: str,
    *,
    a: Sequence[float],
    b: Sequence[float],
    alpha: Sequence[float],
    mass: Sequence[float],
    r: Sequence[Sequence[float]],
    inertia: Sequence[Any],
    joints: Sequence[str] = (),
    theta: Sequence[float] = (),
    gravity: Sequence[float] = GRAVITY,
    check: str = "error",
    source: str = "Saha's (r) table",
    lines: Sequence[ReportLine] = (),
) -> Mechanism:
    """Return a serial arm of R and P joints from Saha's table.

    Source: S. K. Saha, Multibody System Dynamics, 2001, appendix A and table II. The classic convention with Saha's
    numbering: his frame i + 1 is on link i.

    Parameters
    ----------
    name : str
        Name of the mechanism.
    a, b, alpha : sequence of float
        Lengths (m), offsets (m) and twists (rad). A P joint's b is an offset of its coordinate, and usually 0.
    mass : sequence of float
        Mass of each link, kg.
    r : sequence of 3-vectors
        r[i] goes from link i's centre of mass to joint i + 1, in frame i + 1, m.
    inertia : sequence
        Inertia of each link about its centre of mass, in frame i + 1: 3, 6 or 3x3 numbers, kg m^2.
    joints : sequence of {"R", "P"}
        Joint types; by default all "R".
    theta : sequence of float
        Joint angles, rad. An R joint's theta is an offset of its coordinate, and usually 0.
    gravity : sequence of 3 floats
        In world axes, m/s^2.
    check : {"error", "warn"}
        "error" refuses inertias that no real body has; "warn" reports them.
    source : str
        Name of the source in the report.
    lines : sequence of Line
        Further lines of the report.

    Returns
    -------
    Mechanism
        The arm.

    Raises
    ------
    ModelError
        If the table is invalid.
    """
    n = len(mass)
    joints, theta = list(joints) or ["R"] * n, list(theta) or [0.0] * n
    _check_lengths(name, n, a=a, b=b, alpha=alpha, r=r, inertia=inertia, joints=joints, theta=theta)
    coms = [np.negative(vector(x, f"link {i}", "r")).tolist() for i, x in enumerate(r, 1)]
    rows = list(map(DhRow, joints, theta, b, a, alpha, mass, coms, inertia))
    return from_dh(name, rows, "classic", gravity=gravity, check=check, source=source, lines=lines)


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
    import tomllib

    try:
        table: dict[str, Any] = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ReadError(f"{source}: not UTF-8 text: {error}. Save the file as UTF-8.") from None
    except ValueError as error:  # malformed numbers and dates may raise other errors than TOMLDecodeError
        raise ReadError(f"{source}: not TOML: {str(error)[:300]}. Correct the file there.") from None
    except RecursionError:
        raise ReadError(f"{source}: nested too deeply; this is not a Denavit-Hartenberg table.") from None
    for key in table:
        check_known("entry", key, FILE_KEYS, source, ReadError)
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


def _check_lengths(name: str, n: int, **columns: Sequence[Any]) -> None:
    """Raise an error if a column of the table of the mechanism `name` has not `n` entries."""
    for what, given in columns.items():
        if len(given) != n:
            raise ModelError(
                f'mechanism "{name}": {what} has {len(given)} entries and mass has {n}; expected equal numbers.'
            )


def as_row(given: Mapping[str, Any], where: str) -> DhRow:
    """Return the DhRow of the mapping `given`, whose keys include joint forces and limits; `where` is for errors."""
    if not isinstance(given, Mapping):
        raise ModelError(f"{where} is {brief(given)}; expected a DhRow or a mapping of its entries.")
    known = [f.name for f in fields(DhRow) if f.name != "options"]
    for key in given:
        check_known("entry", key, (*known, *FORCE_OPTIONS, *LIMIT_OPTIONS), where, ModelError)
    for key in ("name", "joint"):
        if not isinstance(given.get(key, ""), str):
            raise ModelError(f"{where}: {key} is {brief(given[key])}; expected a text.")
    return DhRow(
        **{k: given[k] for k in known if k in given},
        options={k: given[k] for k in (*FORCE_OPTIONS, *LIMIT_OPTIONS) if k in given},
    )


def _options(options: Mapping[str, Number], where: str) -> dict[str, Any]:
    """Return the checked forces and limits as arguments of a joint."""
    for key in options:
        check_known("option", key, (*FORCE_OPTIONS, *LIMIT_OPTIONS), where, ModelError)
    numbers = {key: number(value, where, key) for key, value in options.items()}
    limits = {key: numbers.pop(key) for key in LIMIT_OPTIONS if key in numbers}
    return {"limits": Limits(**limits), **numbers}


def _radians(angle: Number) -> Number:
    return angle * (math.pi / 180.0) if has_free(angle) else math.radians(angle)


def _body(link: str, row: DhRow, R: Any, p: Any, where: str) -> Body:
    """Return the row's link as a body; R and p are the pose of its frame in the body's."""
    com = vector(row.com, where, "com")
    I: Any = np.asarray(inertia(row.inertia, where))
    if row.mass is None:
        if any(com) or I.any():
            raise ModelError(
                f"{where}: has a com or an inertia but no mass; expected one. Give the mass, or leave all three out."
            )
        return Body(link, declared=False)
    return Body(link, number(row.mass, where, "mass"), triple(p + R @ com + 0.0), matrix(R @ I @ R.T + 0.0))
