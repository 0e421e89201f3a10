"""Where to cut closed loops open: which joints carry the bodies, and which become loops between them.

The rule, in this order:

1. Nothing is lost: a joint with forces in it (damping, friction, a spring, a rotor), one that others follow (mimic,
   gear) or one that no loop can replace (helical) is not cut.
2. The fewest equations: cut the joints with the most freedom. The tree has then the fewest coordinates, too.
3. Joints with limits stay, because limits are watched in coordinates.
4. Short ways to the ground: the least sum of depths, so that mass matrices are small and sparse.
5. What was given first stays.

1 to 3 are a minimum spanning tree (grown from the ground as R. C. Prim, Shortest connection networks, 1957); 4 and 5
are then bettered by exchanging a joint of the tree for a cut one, as long as that helps. A joint may have to carry its
parent instead of its child. Turned round, a revolute, prismatic, cylindrical or helical joint has the same coordinate
about the opposite axis, and stays what it was; the others do not, and are not turned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bellcrank.errors import ModelError
from bellcrank.model.joints import KINDS
from bellcrank.model.parts import EQUATIONS, Joint

REVERSIBLE = ("revolute", "prismatic", "cylindrical", "helical", "fixed")
FORCES = ("armature", "damping", "friction", "stiffness")


@dataclass(frozen=True)
class Cut:
    """The joints by name: those that must carry their parent, and those that become loops."""

    reversed: tuple[str, ...]
    cut: tuple[str, ...]


@dataclass(frozen=True)
class Arc:
    """A body's way to the ground: over this joint, from there."""

    joint: int
    parent: str


Tree = dict[str, Arc]  # by body


def best_cut(joints: Sequence[Joint], ground: str, bodies: Sequence[str], followed: Mapping[str, str]) -> Cut:
    """Which joints to cut and which to turn round. followed: joints that may not be cut, and why."""
    problem = _Problem(joints, ground, followed)
    tree = problem.grown(bodies)
    while (better := problem.improved(tree)) is not None:
        tree = better
    carrier = {arc.joint: arc.parent for arc in tree.values()}
    for i in range(len(joints)):
        if i not in carrier and problem.kept[i]:
            raise problem.refusal(problem.cycle(tree, i))
    return Cut(
        tuple(j.name for i, j in enumerate(joints) if carrier.get(i) == j.child),
        tuple(j.name for i, j in enumerate(joints) if i not in carrier),
    )


class _Problem:
    def __init__(self, joints: Sequence[Joint], ground: str, followed: Mapping[str, str]) -> None:
        self.joints, self.ground = joints, ground
        self.kept = [_why_not(j) or followed.get(j.name, "") for j in joints]
        self.at: dict[str, list[int]] = {}
        for i, j in enumerate(joints):
            self.at.setdefault(j.parent, []).append(i)
            self.at.setdefault(j.child, []).append(i)

    def weight(self, i: int) -> tuple[int, int, int]:
        """What it costs to keep joint i in the tree: nothing if it may not be cut, then its freedom, then no limits."""
        j = self.joints[i]
        limited = abs(_plain(j.limits.lower)) + abs(_plain(j.limits.upper)) < float("inf")
        return 0 if self.kept[i] else 1, KINDS[j.kind].nv, 0 if limited else 1

    def usable(self, i: int, parent: str) -> bool:
        return self.joints[i].parent == parent or self.joints[i].kind in REVERSIBLE

    def other(self, i: int, end: str) -> str:
        j = self.joints[i]
        return j.child if end == j.parent else j.parent

    def grown(self, bodies: Sequence[str]) -> Tree:
        tree: Tree = {}
        depth = {self.ground: 0}
        while True:
            ready = [
                (self.weight(i), depth[body], i, body)
                for body in depth
                for i in self.at.get(body, ())
                if self.other(i, body) not in depth and self.usable(i, body)
            ]
            if not ready:
                break
            _, d, i, body = min(ready)
            tree[self.other(i, body)] = Arc(i, body)
            depth[self.other(i, body)] = d + 1
        for j in self.joints:
            if j.child in depth and j.parent not in depth:
                raise ModelError(
                    f'joint "{j.name}": "{j.parent}" hangs on it alone, but is its parent, and a {j.kind} joint cannot '
                    f'be turned round. Give "{j.child}" as its parent and "{j.parent}" as its child.'
                )
        for b in bodies:
            if b not in depth:
                what = "hangs in the air: its joints do not lead" if b in self.at else "has no joint that leads"
                raise ModelError(
                    f'body "{b}" {what} to "{self.ground}"; add one, such as joint("...", "floating", "{self.ground}", '
                    f'"{b}").'
                )
        return tree

    def cost(self, tree: Tree) -> tuple[float, ...]:
        used = {arc.joint for arc in tree.values()}
        a, b, c = (sum(self.weight(i)[k] for i in used) for k in range(3))
        depth = sum(sum(1 for _ in self.up(tree, body)) for body in tree)
        return a, b, c, depth, sum(used)

    def up(self, tree: Tree, body: str) -> Iterator[str]:
        """The body and those that carry it, the ground not."""
        while body in tree:
            yield body
            body = tree[body].parent

    def sides(self, tree: Tree, i: int) -> tuple[list[str], list[str]]:
        """The loop that joint i closes: what carries its parent and what carries its child, without what they share."""
        a, b = (list(self.up(tree, end)) for end in (self.joints[i].parent, self.joints[i].child))
        while a and b and a[-1] == b[-1]:
            a.pop()
            b.pop()
        return a, b

    def cycle(self, tree: Tree, i: int) -> list[int]:
        a, b = self.sides(tree, i)
        return [*(tree[body].joint for body in reversed(a)), *(tree[body].joint for body in b), i]

    def improved(self, tree: Tree) -> Tree | None:
        """A better tree with one joint exchanged, or none."""
        used = {arc.joint for arc in tree.values()}
        best, least = None, self.cost(tree)
        for i in range(len(self.joints)):
            if i in used:
                continue
            for side in self.sides(tree, i):
                for n in range(len(side)):
                    candidate = self.exchanged(tree, i, side[: n + 1])
                    if candidate is not None and (cost := self.cost(candidate)) < least:
                        best, least = candidate, cost
        return best

    def exchanged(self, tree: Tree, i: int, side: list[str]) -> Tree | None:
        """Hangs side[0] on joint i and turns round the way from there to side[-1], whose own joint is cut."""
        parent = self.other(i, side[0])
        arcs = [Arc(i, parent), *(Arc(tree[below].joint, below) for below in side[:-1])]
        if not all(self.usable(arc.joint, arc.parent) for arc in arcs):
            return None
        return {**tree, **dict(zip(side, arcs, strict=True))}

    def refusal(self, cycle: Sequence[int]) -> ModelError:
        why = "; ".join(f'"{self.joints[i].name}" {self.kept[i]}' for i in cycle)
        return ModelError(
            f"these joints form a closed loop, and none of them can be cut: {why}. Write one of them as close(...) "
            "instead of joint(...), without what keeps it."
        )


def _why_not(j: Joint) -> str:
    """Why a joint may not be cut, or nothing."""
    if j.kind not in EQUATIONS and j.kind != "floating":
        return f"is {j.kind}, which no loop can replace"
    forces = [what for what in FORCES if not (isinstance(getattr(j, what), (int, float)) and getattr(j, what) == 0.0)]
    if forces:
        return f"has {', '.join(forces)}"
    return f'mimics "{j.mimic.joint}"' if j.mimic is not None else ""


def _plain(x: object) -> float:
    return float(x) if isinstance(x, (int, float)) else 0.0
