"""Compose a small mechanism with given joints and loop closures that is closed at the zero configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.dynamics import kinematics
from bellcrank.dynamics.loops.constraint_equations import CLOSURES
from bellcrank.model import Frame, Loop, Mechanism
from bellcrank.model.function_text import function_text
from bellcrank.model.joints import KINDS
from bellcrank.model.parts import EQUATIONS, matrix, triple
from crossing.files import PASSIVE, Parts
from trees import rotation

Array = np.ndarray[Any, Any]
Numbers = np.random.Generator
NONE = "none"  # value of a dimension that a case does not use
RADIUS = 0.2  # m, of rolling bodies
TAIL = 4  # number of bodies in a branch that can be cut into segments


# -- bodies and joints


def tree(
    name: str,
    kinds: Sequence[str],
    closed_by: Sequence[str],
    traits: Sequence[str],
    seed: int,
    source: str = "built",
    tail: int = 0,
) -> Parts:
    """Return a tree with one body for each joint kind, at least two revolute joints, and one body for each loop.

    source: a file limits the passive forces to those of its format. tail: number of identical bodies in a row behind
    the last one, which form a branch that can be cut into segments.
    """
    rng = np.random.default_rng(seed)
    b = Parts(name, gravity=(0.6, -1.1, -9.0))
    traits = (*traits, source)
    if "flexible" in traits:
        _flexible(b)
    extra = {"revolute": 2 + max(0, sum(map(coupled, closed_by)) - 1)}  # each coupling has two joints of its own
    missing = {kind: max(0, count - kinds.count(kind)) for kind, count in extra.items()}
    wanted = [*(kind for kind, count in missing.items() for _ in range(count)), *kinds]
    wanted = wanted[1:] + wanted[:1] if seed % 2 and wanted[1] != "fixed" else wanted
    first = len(wanted)  # first body of the tail
    wanted += ["revolute"] * tail
    for i, kind in enumerate(wanted):
        hangs = i >= min(first, len(wanted) - 1)  # it is a child of the previous one
        parent = "ground" if i == 0 else f"b{i - 1 if hangs else int(rng.integers(0, i))}"
        if i == 1 and "flexible" in traits:
            parent = "beam.end"
        _body(b, rng, i, kind, parent, traits)
    if "mimic" in traits:
        _body(b, rng, len(wanted), "revolute", f"b{len(wanted) - 1}", ("following",), mimic=(_single(wanted), 0.7, 0.1))
    if "spring" in traits:
        last = f"b{len(wanted) - 1}"
        b.spring("tie", "ground", last, (0.1, 0.4, -0.3), (0.3, -0.2, 0.5), stiffness=20.0, length=0.3, damping=0.5)
    b.frame("tool", f"b{len(wanted) - 1}", (0.2, 0.1, -0.3), rotation(rng))
    for k, kind in enumerate(x for x in closed_by if not coupled(x)):
        _body(b, rng, len(wanted) + 1 + k, carrier(kind, source), "ground", traits)
    return b


def _single(kinds: Sequence[str]) -> str:
    """Return the name of the last joint that has one coordinate."""
    return f"j{max(i for i, kind in enumerate(kinds) if KINDS[kind].nv == 1)}"


def _body(b: Parts, rng: Numbers, i: int, kind: str, parent: str, traits: Sequence[str], **more: Any) -> None:
    axes, point = rotation(rng), rng.uniform(-0.4, 0.4, 3)
    R = rotation(rng)
    inertia = R @ np.diag(rng.uniform(0.2, 0.3, 3)) @ R.T
    b.body(f"b{i}", mass=float(rng.uniform(1.0, 2.0)), com=point + rng.uniform(-0.2, 0.2, 3), inertia=inertia)
    if "passive" in traits:
        more |= {"damping": 0.3, "friction": 0.2, "friction_speed": 0.5, "armature": 0.1}
        more |= {"stiffness": 2.0, "rest": 0.1} if KINDS[kind].nq == KINDS[kind].nv else {}
        for source in set(traits) & set(PASSIVE):
            more = {name: x for name, x in more.items() if name in (*PASSIVE[source], "mimic")}
    if kind == "universal":
        more["second_axis"] = axes[1]
    if kind == "helical":
        more["pitch"] = 0.2
    b.joint(f"j{i}", kind, parent, f"b{i}", point=point, axis=axes[0], **more)


def _flexible(b: bc.Builder) -> None:
    rubber = bc.Material(E=5e6, nu=0.3, density=1000.0)
    b.beam(
        "beam", length=1.0, section=bc.Section.rectangle(0.1, 0.08), material=rubber, elements=4, modes=2, damping=0.02
    )
    b.joint("root", "revolute", "ground", "beam", axis=(0.0, 0.6, 0.8))


# -- loops


def _same(rng: Numbers) -> Array:
    return np.eye(4)


def _moved(turn: str, shift: Sequence[int]) -> Callable[[Numbers], Array]:
    """Return frame b in frame a: turned ("any" way, "about" z, or not at all) and shifted along some axes."""

    def pose(rng: Numbers) -> Array:
        X = np.eye(4)
        angle = rng.uniform(0.3, 1.0)
        if turn == "any":
            X[:3, :3] = rotation(rng)
        elif turn == "about":
            c, s = np.cos(angle), np.sin(angle)
            X[:2, :2] = [[c, -s], [s, c]]
        for k in shift:
            X[k, 3] = rng.uniform(0.1, 0.4)
        return X

    return pose


def _universal(rng: Numbers) -> Array:
    """Return a rotation about z of a, then about x of b."""
    X, Y = _moved("about", ())(rng), np.eye(4)
    c, s = np.cos(0.7), np.sin(0.7)
    Y[1:3, 1:3] = [[c, -s], [s, c]]
    return X @ Y


def _rolling(turn: str) -> Callable[[Numbers], Array]:
    def pose(rng: Numbers) -> Array:
        X = _moved(turn, (0, 1))(rng)
        axle = X[2, 2] if turn == "tilted" else 0.0
        X[2, 3] = RADIUS * np.sqrt(1.0 - axle * axle)
        return X

    return pose


def _wheel(rng: Numbers) -> Array:
    """Return a wheel frame whose axle, z of b, is inclined against the normal of the plane, z of a."""
    X = _moved("any", (0, 1))(rng)
    X[2, 3] = RADIUS * np.sqrt(1.0 - X[2, 2] ** 2)
    return X


def _on_surface(rng: Numbers) -> Array:
    X = _moved("any", (0, 1))(rng)
    X[2, 3] = 0.3 * X[0, 3] * X[0, 3]
    return X


def _on_curve(rng: Numbers) -> Array:
    X = _moved("any", (0,))(rng)
    X[1, 3], X[2, 3] = 0.5 * X[0, 3], 0.3 * X[0, 3] * X[0, 3]
    return X


# Position of frame b in frame a when the loop is closed. Closures that are not listed close with equal frames.
PLACED: dict[str, Callable[[Numbers], Array]] = {
    "spherical": _moved("any", ()),
    "universal": _universal,
    "revolute": _moved("about", ()),
    "cylindrical": _moved("about", (2,)),
    "prismatic": _moved("", (2,)),
    "planar": _moved("about", (0, 1)),
    "distance": _moved("any", (0, 1, 2)),
    "point_on_line": _moved("any", (2,)),
    "ball_on_plane": _rolling("any"),
    "wheel_on_plane": _wheel,
    "knife_edge": _moved("any", (0, 1, 2)),
    "point_on_surface": _on_surface,
    "point_on_curve": _on_curve,
}
LAWS: dict[str, Callable[[], str]] = {
    "point_on_surface": lambda: function_text("surface", lambda x, y, z: z - 0.3 * x * x, 3),
    "point_on_curve": lambda: "|".join(
        function_text("curve", f, 3) for f in (lambda x, y, z: y - 0.5 * x, lambda x, y, z: z - 0.3 * x * x)
    ),
    "cam": lambda: function_text("cam", lambda a: 0.1 * bc.sin(a), 1),
}


def coupled(kind: str) -> bool:
    """Return whether a closure relates joint coordinates instead of frames."""
    return CLOSURES[kind][1] is None


def carrier(kind: str, source: str = "built") -> str:
    """Return the joint that carries the second body of a loop, with as many freedoms as the loop has equations.

    Files have no universal joint, so a spherical joint with one more freedom replaces it.
    """
    two = "universal" if source == "built" else "spherical"
    return {1: "revolute", 2: two, 3: "spherical"}.get(EQUATIONS[kind], "floating")


def freedoms(joints: Sequence[str], closed_by: Sequence[str], source: str = "built") -> int:
    """Return the number of velocities of a case's tree, without modes and mimic joints."""
    carried = sum(KINDS[carrier(kind, source)].nv for kind in closed_by if not coupled(kind))
    return sum(KINDS[kind].nv for kind in joints) + carried + max(2, 1 + sum(map(coupled, closed_by)))


def with_loops(m: Mechanism, kinds: Sequence[str], seed: int) -> Mechanism:
    """Add a loop of each kind. Its second body is connected to the first body of the tree by a joint of its own."""
    rng = np.random.default_rng(seed + 1)
    frames, loops = dict(m.frames), list[Loop]()
    q = m.neutral().tolist()
    carried = [f"b{k}" for k in sorted(int(x.name[1:]) for x in m.bodies if x.name[1:].isdigit())]
    carried = carried[len(carried) - sum(not coupled(kind) for kind in kinds) :]
    for i, kind in enumerate(kinds):
        name = f"loop{i}"
        if coupled(kind):
            loops.append(_coupling(m, name, kind, sum(x.a == "" for x in loops)))
            continue
        a, b = m.frames["tool"].body, carried.pop(0)
        X_WA = np.eye(4)
        X_WA[:3, :3], X_WA[:3, 3] = rotation(rng), rng.uniform(-0.3, 0.3, 3)
        X_AB = PLACED.get(kind, _same)(rng)
        frames[f"{name}.a"] = on_body(m, q, f"{name}.a", a, X_WA)
        frames[f"{name}.b"] = on_body(m, q, f"{name}.b", b, X_WA @ X_AB)
        values = {"distance": float(np.linalg.norm(X_AB[:3, 3])), "ball_on_plane": RADIUS, "wheel_on_plane": RADIUS}
        law = LAWS[kind]() if kind in LAWS else ""
        loops.append(Loop(name, kind, f"{name}.a", f"{name}.b", values.get(kind, 0.0), law=law))
    return replace(m, frames=frames, loops=tuple(loops)) if loops else m


def _coupling(m: Mechanism, name: str, kind: str, before: int) -> Loop:
    """Return a coupling of two one-coordinate joints that holds at zero. before: other couplings."""
    single = [j.name for j in m.joints if KINDS[j.kind].nv == 1 and j.mimic is None and j.name.startswith("j")]
    pair = (single[before], single[before + 1])
    if kind == "combination":
        return Loop(name, kind, joints=pair, weights=(1.0, -1.4))
    return Loop(name, kind, joints=pair, value=0.0 if kind == "cam" else 0.7, law=LAWS[kind]() if kind == "cam" else "")


def on_body(m: Mechanism, q: Sequence[float], name: str, body: str, X: Array) -> Frame:
    at = np.eye(4) if body == m.ground else np.array(kinematics.pose(m.tree, list(q), body), dtype=float)
    local = np.linalg.inv(at) @ X
    return Frame(name, body, matrix(local[:3, :3]), triple(local[:3, 3]))


def closures() -> tuple[str, ...]:
    """Return every kind of loop closure that the package has."""
    return tuple(CLOSURES)
