"""What the loops do to a mechanism: which equations are redundant, and what mobility is left.

The rank of C is looked at in many assembled configurations. Rows that are always a combination of others are named, and
which of them depend on each other (rank.py); the mobility is what the rank leaves, and beside it stands Gruebler's
count, which knows nothing of geometry.

Files have 1.5708 where a quarter of a turn is meant. Taken at their word, axes that are parallel but for the last digit
hold a linkage fast, so what is redundant but for ROUGH counts as redundant; how far the loops then stay open is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.dynamics.loops.assembly import ROUGH, SPREAD, assembled, closes, open_ends, searched
from bellcrank.dynamics.loops.blocks import pseudo_inverse, redundancy, singular_values
from bellcrank.dynamics.loops.numbers import Array, closed, moved, units
from bellcrank.dynamics.loops.rank import Group, Rank
from bellcrank.dynamics.loops.rows import families, names
from bellcrank.errors import ModelError
from bellcrank.model import Mechanism
from bellcrank.model.parts import EQUATIONS
from bellcrank.model.tree import Tree
from bellcrank.text import table

WALKERS, STEPS = 4, 3
FAR_WALKERS, FAR_STEPS = 24, 16  # where it matters how far a mechanism gets
EXACT_ZERO = 1e-7  # singular values below this, against the largest, count as zero
EXACT_NOISE = 3e-11  # where all are exact, those that should be zero are smaller
NOTHING = 1e-10  # and whose rows are smaller than this, where one is usual, is rounding alone
OPEN_SAID = 1e-8  # what loops stay open by, if it is more
SLACK_MARGIN = 10.0  # between configurations that were seen and others, of how far loops stay open
# Where nothing closes at first: how many times as many configurations are tried, as far as so many numbers allow.
MOST_TRIES, MOST_NUMBERS = 20, 5e6
NOISE_MARGIN = 30.0  # between what is left of zeros, and what is none


@dataclass(frozen=True, eq=False)
class Analysis:
    names: tuple[str, ...]  # of all equations
    kept: tuple[int, ...]  # as many as are independent, and are so in most configurations
    trivial: tuple[int, ...]  # those that hold whatever the mechanism does
    rank: Rank  # all but the trivial ones, and which of them depend on each other
    pattern: Array  # (rank.rows, nv): where C is not always zero
    nv: int
    samples: Array  # assembled configurations, the first of them where it started
    more: int = 0  # freedoms that the mechanism has there, beyond those that it has elsewhere: it starts singular
    rough: float = 0.0  # singular values below this count as zero: 0 where the numbers are exact
    slack: float = 0.0  # what the loops may stay open by, because their equations contradict each other in that
    hold: float = 0.0  # where nothing can move: the smallest singular value, which holds it
    told: bool = False  # it began where somebody said, so that the mechanism alone does not decide it

    @property
    def redundant(self) -> tuple[str, ...]:
        """Names of the equations that follow from the others."""
        out = set(self.kept) | set(self.trivial)
        return tuple(name for k, name in enumerate(self.names) if k not in out)

    @property
    def mobility(self) -> int:
        return self.nv - len(self.kept)

    @property
    def gruebler(self) -> int:
        """Freedoms of the tree less all equations: what counting alone says."""
        return self.nv - len(self.names)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know of where it starts, and of the whole."""
        singular = f"it starts where it is singular, with {self.more} more: the motion from there is not determined"
        return (singular, *self.doubts) if self.more else self.doubts

    @property
    def doubts(self) -> tuple[str, ...]:
        """Whether the mechanism is what was meant."""
        found = []
        if self.rough and self.slack > OPEN_SAID:
            found.append(
                f"numbers are not exact: the loops stay open by up to {self.slack / SLACK_MARGIN:.1e} (m, or 1 for "
                "directions) as it moves. Axes that are parallel, or lengths that fit, but for the last digits are "
                "taken as meant so; write them with all digits to have it closed"
            )
        if self.nv and not self.mobility:
            found.append(
                "it cannot move: the loops leave no freedom. If it should, look at what is nearly parallel, or nearly "
                f"fits (the weakest hold is {self.hold:.1e} of the strongest; what is below {ROUGH:g} would not count)"
            )
        return tuple(found)

    def __str__(self) -> str:
        state = dict.fromkeys(self.kept, "kept") | dict.fromkeys(self.trivial, "holds by itself")
        rows = [(name, state.get(k, "redundant: follows from the others")) for k, name in enumerate(self.names)]
        equations = f"{len(self.kept)} of {len(self.names)} equations"
        head = f"mobility {self.mobility} (Gruebler counts {self.gruebler}), {equations}"
        return "\n".join([head, *self.warnings, table(("equation", ""), rows)])


def analysis(mechanism: Mechanism, near: Array | None = None) -> Analysis:
    """What the loops do to this mechanism; worked out once, where it is closed near the zero configuration.

    near: a configuration to begin at, where nothing is found near zero that closes. Free numbers have their nominal
    values.
    """
    kept: dict[str, Analysis] = mechanism.__dict__
    if "_closure" in kept:
        return kept["_closure"]
    plain = mechanism.at() if mechanism.parameters else mechanism
    if near is None:
        return kept.setdefault("_closure", analysed(plain.tree, plain.neutral()))
    try:
        return analysis(mechanism)
    except ModelError:
        kept["_closure"] = replace(analysed(plain.tree, near), told=True)
        return kept["_closure"]


def analysed(tree: Tree, start: Array) -> Analysis:
    """From a configuration that the mechanism may start from, or the nearest that closes the loops."""
    what = names(tree)
    q, rough = _closed_from(tree, start, what)
    samples = _walked(tree, q, rough)
    if not rough and _inexact(tree, samples):
        rough = ROUGH
        samples = _walked(tree, q, rough)
    at = closed(tree, samples)
    C = _natural(tree, at.C)
    s = _singular_values(C)
    rank = int((s > (rough or EXACT_ZERO)).sum(axis=1).max(initial=0))
    noise = float(s[:, rank:].max(initial=0.0))
    size = np.abs(C).max(axis=(0, 2), initial=0.0)
    trivial = tuple(int(k) for k in np.flatnonzero(size < max(NOTHING, 3.0 * noise)))
    regular = (s > max(EXACT_ZERO, NOISE_MARGIN * noise)).sum(axis=1)
    usual = regular == rank if (regular == rank).any() else np.ones(len(samples), bool)
    rows, loose = [k for k in range(len(what)) if k not in trivial], max(1e-6, NOISE_MARGIN * noise)
    # A group without any independent equation is rounding alone, and would hold what is meant to move.
    groups, _ = _groups(tree, C[usual][:, rows], at.C[:, rows], rows, rank, loose)
    idle = {rows[k] for g in groups if not g.rank for k in g.places}
    trivial, rows = tuple(sorted({*trivial, *idle})), [k for k in rows if k not in idle]
    whose = [k for k, loop in enumerate(tree.loops) for _ in range(EQUATIONS[loop.kind])]
    kept = tuple(rows[k] for k in _independent(C[usual][:, rows], rank))
    scale = np.abs(at.C).max(initial=0.0) or 1.0
    return Analysis(
        tuple(what),
        kept,
        trivial,
        Rank(
            tuple(rows),
            *_groups(tree, C[usual][:, rows], at.C[:, rows], rows, rank, loose),
            tuple(whose[k] for k in rows),
        ),
        np.abs(at.C[:, rows]).max(axis=0, initial=0.0) > 1e-13 * scale,
        tree.nv,
        samples,
        max(0, rank - int(regular[0])),
        rough,
        SLACK_MARGIN * float(np.abs(at.value).max(initial=0.0)),
        float(s[:, rank - 1].max()) if rank else 0.0,
    )


def _closed_from(tree: Tree, start: Array, what: list[str]) -> tuple[Array, float]:
    """The nearest configuration that closes the loops, and how roughly."""
    room = tree.nv * max(1, len(what)) * len(SPREAD)
    for tries in (1, max(1, min(MOST_TRIES, int(MOST_NUMBERS / room)))):
        q, residual, good = searched(tree, start, tries=tries)
        if good:
            return q, 0.0
        near, _, good = searched(tree, start, rough=ROUGH, tries=tries)
        if good:
            # Found by another way, it may well be exact.
            again, left = assembled(tree, near)
            return (again, 0.0) if closes(tree, again, left) else (near, ROUGH)
    raise ModelError(
        f"the loops cannot be closed: in the best of {1 + tries * len(SPREAD)} attempts {open_ends(what, residual)}. "
        "Look at points, axes and lengths of these loops; if they do fit, say near which configuration: "
        "assemble(q_guess) finds it, and it is remembered."
    )


def reached(tree: Tree, of: Analysis) -> Array:
    """Many configurations that the mechanism can reach from where the analysis began, far ones among them: each walks
    on in much the direction that it had.
    """
    return _walked(tree, of.samples[0], of.rough, FAR_WALKERS, FAR_STEPS, straight=2.0)


def _walked(
    tree: Tree, q: Array, rough: float, walkers: int = WALKERS, steps: int = STEPS, straight: float = 0.0
) -> Array:
    """q, and configurations that the mechanism can reach from there: random moves that C allows, and back onto the
    loops. straight: how much of the move before is in the next one.
    """
    rng = np.random.default_rng(0)
    found, now = [q[None]], np.repeat(q[None], walkers, axis=0)
    way = np.zeros((walkers, tree.nv))
    for _ in range(steps):
        move = _allowed(closed(tree, now).C, rng.normal(size=(walkers, tree.nv)) + straight * way, rough)
        way = move / np.maximum(np.sqrt(np.mean(move**2, axis=1, keepdims=True)), 1e-300)
        longest = np.maximum(np.abs(move).max(axis=1, initial=0.0, keepdims=True), 1e-300)
        move *= rng.uniform(0.2, 0.6, size=(walkers, 1)) / longest
        new, residual = assembled(tree, moved(tree, now, move), rough=rough)
        good = closes(tree, new, residual, rough)
        now, way = np.where(good[:, None], new, now), np.where(good[:, None], way, 0.0)
        found.append(now[good])
    return np.concatenate(found)


def _allowed(C: Array, v: Array, rough: float) -> Array:
    """The part of v with C v = 0."""
    C = C[:, np.abs(C).max(axis=(0, 2), initial=0.0) > 0.0]
    P = pseudo_inverse(C, rough or 1e-6)
    return np.asarray(v - np.einsum("...km,...m->...k", P, np.einsum("...mk,...k->...m", C, v)))


def _natural(tree: Tree, C: Array) -> Array:
    rows, columns = units(tree, C)
    return np.asarray(C * rows[:, None] * columns)


def _singular_values(C: Array) -> Array:
    """Of each configuration, against its largest."""
    if 0 in C.shape:
        return np.zeros((len(C), 0))
    s = singular_values(C)
    return np.where(s[:, :1] < NOTHING, 0.0, s / np.maximum(s[:, :1], NOTHING))  # of rounding none is large


def _inexact(tree: Tree, samples: Array) -> bool:
    """Whether the mechanism is held by what is nearly nothing, wherever it is: then that is not meant."""
    s = _singular_values(_natural(tree, closed(tree, samples).C))
    nearly = (s > EXACT_NOISE) & (s < ROUGH)
    stuck = len(samples) == 1 and (s < ROUGH).any()
    return bool(nearly.any(axis=1).all() or stuck)


def _groups(
    tree: Tree, C: Array, plain: Array, rows: list[int], rank: int, least: float
) -> tuple[tuple[Group, ...], tuple[float, ...]]:
    """Rows that depend on each other somewhere, together; and how large rows usually are, alike in a group where they
    are of one loop and of one unit.
    """
    scale = np.linalg.norm(plain, axis=2).mean(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    if rank == len(rows):
        return (), tuple(float(x) for x in scale)
    P = np.abs(redundancy(C, rank))
    groups = []
    for places in _together(P.max(axis=0) > least):
        followers = round(float(np.median([np.trace(x[np.ix_(places, places)]) for x in P])))
        groups.append(Group(places, len(places) - followers))
    for family, _ in families(tree):
        alike = [k for g in groups for k in g.places if rows[k] in family]
        scale[alike] = scale[alike].mean() if alike else 1.0
    return tuple(g for g in groups if g.rank < len(g.places)), tuple(float(x) for x in scale)


def _together(tied: Array) -> Iterator[tuple[int, ...]]:
    """Places that are tied to each other, directly or through others; those tied to nothing, not even to themselves,
    are left out.
    """
    left = [k for k in range(len(tied)) if tied[k, k]]
    while left:
        mine = {left[0]}
        while (more := {int(j) for k in mine for j in np.flatnonzero(tied[k]) if j in left} | mine) != mine:
            mine = more
        left = [k for k in left if k not in mine]
        yield tuple(sorted(mine))


def _independent(C: Array, rank: int) -> tuple[int, ...]:
    """Rows that are independent in these configurations, none of which is singular, one after the other.

    The next row is the one of which most is new where least of it is new. Ties go to the first.
    """
    says = np.flatnonzero(np.abs(C).max(axis=(0, 2), initial=0.0) > 0.0)
    rest = np.array(C[:, says])
    norm = np.linalg.norm(rest, axis=2, keepdims=True)
    rest = np.where(norm > 1e-9, rest / np.where(norm > 0, norm, 1.0), 0.0)
    kept: list[int] = []
    for _ in range(rank):
        new: Any = np.quantile(np.linalg.norm(rest, axis=2), 0.25, axis=0)
        new[kept] = -1.0
        k = int(np.flatnonzero(new > new.max() * (1 - 1e-6))[0])
        kept.append(k)
        row = rest[:, k]
        unit = row / np.maximum(np.linalg.norm(row, axis=1, keepdims=True), 1e-300)
        rest = rest - np.einsum("smk,sk->sm", rest, unit)[..., None] * unit[:, None]
    return tuple(int(says[k]) for k in sorted(kept))
