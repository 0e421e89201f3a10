"""Choice of the joints that open closed loops: which joints form the tree, and which become loop equations.

The criteria, in this order:

1. Nothing is lost: a joint with forces in it (damping, friction, a spring, a rotor), one that others depend on (mimic,
   gear) or one that no loop can replace (helical) is not cut.
2. The fewest equations: cut the joints with the most freedom. The tree then has the fewest coordinates, too.
3. Joints with limits stay, because limits are checked in coordinates.
4. Short paths to the ground: the least sum of depths, so that mass matrices are small and sparse.
5. Earlier joints in the given order stay.

Criteria 1 to 3 give a minimum spanning tree (grown from the ground as in R. C. Prim, Shortest connection networks,
1957); criteria 4 and 5 are then improved by exchanging a joint of the tree for a cut one, as long as that helps. A
joint may have to carry its parent instead of its child. A reversed revolute, prismatic, cylindrical or helical joint
has the same coordinate about the opposite axis, and keeps its type; other joints do not, and are not reversed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bellcrank.errors import ModelError
from bellcrank.model.joints import KINDS
from bellcrank.model.parts import EQUATIONS, Joint

REVERSIBLE_JOINTS = ("revolute", "prismatic", "cylindrical", "helical", "fixed")
FORCE_FIELDS = ("armature", "damping", "friction", "stiffness")


@dataclass(frozen=True)
class LoopCut:
    """Names of the joints that are reversed, to carry their parent, and of those that become loops."""

    reversed: tuple[str, ...]
    loops: tuple[str, ...]


@dataclass(frozen=True)
class TreeArc:
    """The joint that carries a body, and the body at its other end."""

    joint: int
    parent: str


SpanningTree = dict[str, TreeArc]  # keys are bodies


def best_cut(joints: Sequence[Joint], ground: str, bodies: Sequence[str], followed: Mapping[str, str]) -> LoopCut:
    """Return the joints to cut and the joints to reverse.

    Parameters
    ----------
    joints
        All joints.
    ground
        Name of the ground.
    bodies
        Names of the bodies.
    followed
        Joints that must not be cut, with the reason.
    """
    search = _TreeSearch(joints, ground, followed)
    tree = search.grow(bodies)
    while (better := search.improve(tree)) is not None:
        tree = better
    carrier = {arc.joint: arc.parent for arc in tree.values()}
    for i in range(len(joints)):
        if i not in carrier and search.reasons_to_keep[i]:
            raise search.refusal(search.cycle(tree, i))
    return LoopCut(
        tuple(j.name for i, j in enumerate(joints) if carrier.get(i) == j.child),
        tuple(j.name for i, j in enumerate(joints) if i not in carrier),
    )


class _TreeSearch:
    def __init__(self, joints: Sequence[Joint], ground: str, followed: Mapping[str, str]) -> None:
        self.joints, self.ground = joints, ground
        self.reasons_to_keep = [_reason_to_keep(j) or followed.get(j.name, "") for j in joints]
        self.joints_of_body: dict[str, list[int]] = {}
        for i, j in enumerate(joints):
            self.joints_of_body.setdefault(j.parent, []).append(i)
            self.joints_of_body.setdefault(j.child, []).append(i)

    def weight(self, i: int) -> tuple[int, int, int]:
        """Return the cost of keeping joint i in the tree: (0 if it must stay, its freedom, 1 without limits)."""
        j = self.joints[i]
        limited = abs(_plain_number(j.limits.lower)) + abs(_plain_number(j.limits.upper)) < float("inf")
        return 0 if self.reasons_to_keep[i] else 1, KINDS[j.kind].nv, 0 if limited else 1

    def can_carry(self, i: int, parent: str) -> bool:
        return self.joints[i].parent == parent or self.joints[i].kind in REVERSIBLE_JOINTS

    def other_end(self, i: int, end: str) -> str:
        j = self.joints[i]
        return j.child if end == j.parent else j.parent

    def grow(self, bodies: Sequence[str]) -> SpanningTree:
        tree: SpanningTree = {}
        depth = {self.ground: 0}
        while True:
            ready = [
                (self.weight(i), depth[body], i, body)
                for body in depth
                for i in self.joints_of_body.get(body, ())
                if self.other_end(i, body) not in depth and self.can_carry(i, body)
            ]
            if not ready:
                break
            _, d, i, body = min(ready)
            tree[self.other_end(i, body)] = TreeArc(i, body)
            depth[self.other_end(i, body)] = d + 1
        for j in self.joints:
            if j.child in depth and j.parent not in depth:
                raise ModelError(
                    f'joint "{j.name}": "{j.parent}" is connected by it alone, but is its parent, and a {j.kind} joint '
                    f'cannot be reversed. Give "{j.child}" as its parent and "{j.parent}" as its child.'
                )
        for b in bodies:
            if b not in depth:
                has_joints = b in self.joints_of_body
                what = "is not connected: its joints do not lead" if has_joints else "has no joint that leads"
                raise ModelError(
                    f'body "{b}" {what} to "{self.ground}"; add one, such as joint("...", "floating", "{self.ground}", '
                    f'"{b}").'
                )
        return tree

    def cost(self, tree: SpanningTree) -> tuple[float, ...]:
        used = {arc.joint for arc in tree.values()}
        a, b, c = (sum(self.weight(i)[k] for i in used) for k in range(3))
        depth = sum(sum(1 for _ in self.carriers(tree, body)) for body in tree)
        return a, b, c, depth, sum(used)

    def carriers(self, tree: SpanningTree, body: str) -> Iterator[str]:
        """Yield the body and those that carry it, without the ground."""
        while body in tree:
            yield body
            body = tree[body].parent

    def sides(self, tree: SpanningTree, i: int) -> tuple[list[str], list[str]]:
        """Return the two branches of the loop that joint i closes, without common bodies."""
        a, b = (list(self.carriers(tree, end)) for end in (self.joints[i].parent, self.joints[i].child))
        while a and b and a[-1] == b[-1]:
            a.pop()
            b.pop()
        return a, b

    def cycle(self, tree: SpanningTree, i: int) -> list[int]:
        a, b = self.sides(tree, i)
        return [*(tree[body].joint for body in reversed(a)), *(tree[body].joint for body in b), i]

    def improve(self, tree: SpanningTree) -> SpanningTree | None:
        """Return a better tree with one joint exchanged, or None."""
        used = {arc.joint for arc in tree.values()}
        best, least = None, self.cost(tree)
        for i in range(len(self.joints)):
            if i in used:
                continue
            for side in self.sides(tree, i):
                for n in range(len(side)):
                    candidate = self.exchange(tree, i, side[: n + 1])
                    if candidate is not None and (cost := self.cost(candidate)) < least:
                        best, least = candidate, cost
        return best

    def exchange(self, tree: SpanningTree, i: int, side: list[str]) -> SpanningTree | None:
        """Attach side[0] by joint i and reverse the path from there to side[-1], whose own joint is cut."""
        parent = self.other_end(i, side[0])
        arcs = [TreeArc(i, parent), *(TreeArc(tree[below].joint, below) for below in side[:-1])]
        if not all(self.can_carry(arc.joint, arc.parent) for arc in arcs):
            return None
        return {**tree, **dict(zip(side, arcs, strict=True))}

    def refusal(self, cycle: Sequence[int]) -> ModelError:
        why = "; ".join(f'"{self.joints[i].name}" {self.reasons_to_keep[i]}' for i in cycle)
        return ModelError(
            f"these joints form a closed loop, and none of them can be cut: {why}. Write one of them as close(...) "
            "instead of joint(...), without the property that keeps it."
        )


def _reason_to_keep(j: Joint) -> str:
    """Return why a joint must not be cut, or ""."""
    if j.kind not in EQUATIONS and j.kind != "floating":
        return f"is {j.kind}, which no loop can replace"
    forces = [
        what for what in FORCE_FIELDS if not (isinstance(getattr(j, what), (int, float)) and getattr(j, what) == 0.0)
    ]
    if forces:
        return f"has {', '.join(forces)}"
    return f'mimics "{j.mimic.joint}"' if j.mimic is not None else ""


def _plain_number(x: object) -> float:
    return float(x) if isinstance(x, (int, float)) else 0.0
