"""Write the mechanism of a case as a URDF or MJCF file, read it back and compare.

The package has no writers. allowed.py lists what a format cannot express; loops that it cannot express are added after
reading.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.dynamics import crba, kinematics, rnea
from bellcrank.model import Frame, Loop, Mechanism
from bellcrank.model.parts import Body, Joint, triple

Array = np.ndarray[Any, Any]
SOURCES = ("built", "urdf", "mjcf")
GROUND = "ground"
# Joints and loops of a case that a file may contain, with their names in that format.
JOINTS = {
    "urdf": {
        "fixed": "fixed", "revolute": "continuous", "prismatic": "prismatic", "planar": "planar",
        "spherical": "spherical", "floating": "floating",
    },
    "mjcf": {"fixed": "", "revolute": "hinge", "prismatic": "slide", "spherical": "ball", "floating": "free"},
}  # fmt: skip
LOOPS = {
    "urdf": ("revolute", "prismatic", "cylindrical", "spherical", "planar", "fixed"),
    "mjcf": ("spherical", "fixed", "gear", "rack"),
}
PASSIVE = {"urdf": ("damping",), "mjcf": ("damping", "armature", "stiffness", "rest")}  # passive forces of a joint


class Parts(bc.Builder):
    """A Builder that exposes its parts as files describe them: bodies not yet lumped, positions in body frames."""

    def loose(self) -> tuple[list[Body], list[Joint], list[Frame]]:
        """Return bodies, joints and frames as `build` passes them on."""
        at = {GROUND: np.zeros(3)} | {j.child: np.asarray(j.point) for j in self._joints.values()}
        bodies = [replace(x, com=triple(np.subtract(x.com, at[x.name]))) for x in self._bodies.values()]
        joints = [replace(x, point=triple(np.subtract(x.point, at[x.parent]))) for x in self._joints.values()]
        frames = [replace(x, point=triple(np.subtract(x.point, at[x.body]))) for x in self._frames.values()]
        return bodies, joints, frames


def _numbers(values: Any) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(values))


def _tag(tag: str, /, *inside: str, **attributes: Any) -> str:
    given = {k: v if isinstance(v, str) else _numbers(v) for k, v in attributes.items() if v is not None}
    head = " ".join([tag, *(f"{k.rstrip('_')}={quoteattr(v)}" for k, v in given.items())])
    return f"<{head}>{''.join(inside)}</{tag}>"


def rpy(R: Any) -> Array:
    """Return angles with R = Rz(yaw) Ry(pitch) Rx(roll)."""
    R = np.asarray(R, float)
    pitch = np.arctan2(-R[2, 0], np.hypot(R[2, 1], R[2, 2]))
    return np.array([np.arctan2(R[2, 1], R[2, 2]), pitch, np.arctan2(R[1, 0], R[0, 0])])


# -- URDF


def urdf(parts: Parts, loops: Sequence[Loop], m: Mechanism) -> str:
    """Return the text of a URDF robot. m: gives the frames of the loops."""
    bodies, joints, _ = parts.loose()
    inside = [_tag("link", name=GROUND), *(_link(x) for x in bodies), *(_joint(x) for x in joints)]
    return _tag("robot", *inside, *(_loop_joint(x, m) for x in loops), name=parts.name)


def _link(b: Body) -> str:
    I = np.asarray(b.inertia, float)
    moments = {f"i{'xyz'[i]}{'xyz'[j]}": I[i, j] for i in range(3) for j in range(i, 3)}
    mass = _tag("mass", value=b.mass)
    return _tag("link", _tag("inertial", _tag("origin", xyz=b.com), mass, _tag("inertia", **moments)), name=b.name)


def _joint(j: Joint) -> str:
    ends = _tag("parent", link=j.parent) + _tag("child", link=j.child)
    more = [_tag("origin", xyz=j.point, rpy=(0.0, 0.0, 0.0))]
    more += [_tag("axis", xyz=j.axis)] if j.kind in ("revolute", "prismatic", "planar") else []
    more += [_tag("dynamics", damping=j.damping)] if j.damping else []
    if j.mimic is not None:
        more += [_tag("mimic", joint=j.mimic.joint, multiplier=j.mimic.multiplier, offset=j.mimic.offset)]
    return _tag("joint", ends, *more, name=j.name, type=JOINTS["urdf"][j.kind])


def _loop_joint(loop: Loop, m: Mechanism) -> str:
    ends = [m.frames[x] for x in (loop.a, loop.b)]
    links = [_tag(f"link{k}", link=x.body, xyz=x.point, rpy=rpy(x.rotation)) for k, x in enumerate(ends, 1)]
    axis = [] if loop.kind in ("spherical", "fixed") else [_tag("axis", xyz=(0.0, 0.0, 1.0))]
    return _tag("loop_joint", *links, *axis, name=loop.name, type=loop.kind)


# -- MJCF


def mjcf(parts: Parts, loops: Sequence[Loop], m: Mechanism) -> str:
    """Return the text of an MJCF model: bodies nested in their parents, loop ends as sites."""
    bodies, joints, frames = parts.loose()
    by_name = {b.name: b for b in bodies}
    ends = [replace(m.frames[x], name=f"{x}.site") for loop in loops if not loop.joints for x in (loop.a, loop.b)]

    def within(parent: str) -> list[str]:
        sites = [_site(x) for x in (*frames, *ends) if x.body == parent]
        return [*sites, *(_body(by_name[j.child], j, within(j.child)) for j in joints if j.parent == parent)]

    how = [_tag("compiler", angle="radian", inertiafromgeom="false", autolimits="true")]
    how += [_tag("option", gravity=parts.gravity)]
    equalities = _tag("equality", *map(_equality, loops)) if loops else ""
    return _tag("mujoco", *how, _tag("worldbody", *within(GROUND)), equalities, model=parts.name)


def _site(f: Frame) -> str:
    R = np.asarray(f.rotation, float)
    return _tag("site", name=f.name, pos=f.point, xyaxes=[*R[:, 0], *R[:, 1]])


def _body(b: Body, j: Joint, inside: list[str]) -> str:
    I = np.asarray(b.inertia, float)
    full = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
    kind = JOINTS["mjcf"][j.kind]
    passive = {x: getattr(j, x) for x in ("damping", "armature", "stiffness") if getattr(j, x)}
    passive |= {"springref": j.rest} if j.rest else {}
    axis = {"axis": j.axis} if kind in ("hinge", "slide") else {}
    own = [_tag("joint", name=j.name, type=kind, **axis, **passive)] if kind else []
    return _tag("body", _tag("inertial", pos=b.com, mass=b.mass, fullinertia=full), *own, *inside,
                name=b.name, pos=j.point)  # fmt: skip


def _equality(loop: Loop) -> str:
    if loop.joints:
        return _tag("joint", name=loop.name, joint1=loop.joints[1], joint2=loop.joints[0],
                    polycoef=(loop.offset, loop.value, 0.0, 0.0, 0.0))  # fmt: skip
    tag = "weld" if loop.kind == "fixed" else "connect"
    return _tag(tag, name=loop.name, site1=f"{loop.a}.site", site2=f"{loop.b}.site")


# -- write, read, compare

WRITERS: dict[str, Callable[[Parts, Sequence[Loop], Mechanism], str]] = {"urdf": urdf, "mjcf": mjcf}


def by_file(source: str, parts: Parts, built: Mechanism) -> Mechanism:
    """Write the parts of a mechanism to a file, read it, and add the loops that the format cannot express."""
    told = [x for x in built.loops if x.kind in LOOPS[source]]
    text = WRITERS[source](parts, told, built)
    m = bc.read(text, gravity=parts.gravity) if source == "urdf" else bc.read(text)
    assert not m.report.warnings, m.report
    assert {x.name for x in m.loops} == {x.name for x in told}
    rename = {GROUND: m.ground}
    frames = {k: replace(f, body=rename.get(f.body, f.body)) for k, f in built.frames.items() if k not in m.frames}
    loops = [x for x in built.loops if x not in told]
    m = replace(m, frames=dict(m.frames) | frames, loops=(*m.loops, *loops))
    compare(m, built)
    return m


def compare(m: Mechanism, built: Mechanism) -> None:
    """Check that two mechanisms are equal up to the order of their parts: by column names, and by what they compute."""
    assert all(sorted(mine) == sorted(theirs) for mine, theirs in zip(m.columns, built.columns, strict=True))
    order_q, order_v = ([built.columns[k].index(x) for x in m.columns[k]] for k in (0, 1))
    for seed in range(3):
        q, v, a = built.random(seed)
        mine = [x[order].tolist() for x, order in ((q, order_q), (v, order_v), (a, order_v))]
        pairs = {
            "inverse dynamics": (rnea.inverse_dynamics(m.tree, *mine),
                                 np.array(rnea.inverse_dynamics(built.tree, *map(list, (q, v, a))))[order_v]),
            "mass matrix": (crba.mass_matrix(m.tree, mine[0]),
                            np.array(crba.mass_matrix(built.tree, q.tolist()))[np.ix_(order_v, order_v)]),
            "potential energy": (kinematics.potential_energy(m.tree, mine[0]),
                                 kinematics.potential_energy(built.tree, q.tolist())),
        }  # fmt: skip
        for name in chain((b.name for b in built.bodies), (x for x in built.frames if not x.endswith(".site"))):
            pairs[name] = kinematics.pose(m.tree, mine[0], name), kinematics.pose(built.tree, q.tolist(), name)
        for what, (found, wanted) in pairs.items():
            x, y = np.array(found, float), np.array(wanted, float)
            assert x.shape == y.shape, what
            off = float(np.abs(x - y).max(initial=0.0))
            assert off <= 1e-10 * max(1.0, float(np.abs(y).max(initial=0.0))), (
                f"{what} of what was read: off by {off:.2e}"
            )
    found = {x.name: x for x in m.loops}
    for loop in built.loops:
        assert equation(found[loop.name]) == pytest.approx(equation(loop), rel=1e-12), loop
        assert loop.joints or found[loop.name].kind == loop.kind


def equation(loop: Loop) -> dict[str, float]:
    """Return the equation of a gear or rack, divided by the factor of the alphabetically first joint."""
    if loop.kind not in ("gear", "rack"):
        return {"value": float(loop.value)}
    first, second = loop.joints
    factors = {first: -float(loop.value), second: 1.0, "": float(loop.offset)}
    return {name: x / factors[min(first, second)] for name, x in factors.items()}
